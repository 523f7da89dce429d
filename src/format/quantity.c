#include "format/quantity.h"

#define NANO (-9)
#define FORM_RULE                                                                                  \
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

typedef unsigned __int128 u128;

static const struct suffix {
    struct str text;
    enum quantity_format format;
    int32_t exponent; /* of ten, or of two */
} suffixes[] = {
    { STR_INIT("n"), QUANTITY_DECIMAL, -9 }, { STR_INIT("u"), QUANTITY_DECIMAL, -6 },
    { STR_INIT("m"), QUANTITY_DECIMAL, -3 }, { STR_INIT(""), QUANTITY_DECIMAL, 0 },
    { STR_INIT("k"), QUANTITY_DECIMAL, 3 },  { STR_INIT("M"), QUANTITY_DECIMAL, 6 },
    { STR_INIT("G"), QUANTITY_DECIMAL, 9 },  { STR_INIT("T"), QUANTITY_DECIMAL, 12 },
    { STR_INIT("P"), QUANTITY_DECIMAL, 15 }, { STR_INIT("E"), QUANTITY_DECIMAL, 18 },
    { STR_INIT("Ki"), QUANTITY_BINARY, 10 }, { STR_INIT("Mi"), QUANTITY_BINARY, 20 },
    { STR_INIT("Gi"), QUANTITY_BINARY, 30 }, { STR_INIT("Ti"), QUANTITY_BINARY, 40 },
    { STR_INIT("Pi"), QUANTITY_BINARY, 50 }, { STR_INIT("Ei"), QUANTITY_BINARY, 60 },
};

/* "-12.50Mi" in its parts. */
struct parts {
    bool negative;
    struct str whole; /* without leading zeros */
    struct str fraction;
    struct str suffix;
};

static size_t digits_at(struct str s, size_t at)
{
    size_t end = at;
    while (end < s.n && s.p[end] >= '0' && s.p[end] <= '9') {
        end++;
    }
    return end;
}

static bool parts_split(struct str s, struct parts *ret)
{
    size_t at = 0;
    *ret = (struct parts){ .negative = s.n > 0 && s.p[0] == '-' };
    if (s.n > 0 && (s.p[0] == '-' || s.p[0] == '+')) {
        at++;
    }
    while (at < s.n && s.p[at] == '0') {
        at++;
    }
    size_t end = digits_at(s, at);
    ret->whole = str_sub(s, at, end - at);
    at = end;
    if (at < s.n && s.p[at] == '.') {
        end = digits_at(s, at + 1);
        ret->fraction = str_sub(s, at + 1, end - at - 1);
        at = end;
    }
    ret->suffix = str_sub(s, at, s.n - at);
    while (at < s.n && s.p[at] != '\0' && strchr("eEinumkKMGTP", s.p[at]) != NULL) {
        at++;
    }
    if (at < s.n && (s.p[at] == '-' || s.p[at] == '+')) {
        at++;
    }
    return digits_at(s, at) == s.n;
}

#define EXPONENT_MAX 1000000
#define MAGNITUDE_DIGITS 39 /* printing may move as many from the number into the exponent */

static bool suffix_read(struct str text, struct suffix *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (str_eq(suffixes[i].text, text)) {
            *ret = suffixes[i];
            return true;
        }
    }
    int64_t exponent;
    struct str number = str_sub(text, 1, text.n - 1); /* the empty suffix is in the table */
    if (number.n > 1 && number.p[0] == '+' && number.p[1] != '-') {
        number = str_sub(number, 1, number.n - 1);
    }
    if ((text.p[0] != 'e' && text.p[0] != 'E') || !str_to_i64(number, &exponent) ||
        exponent > EXPONENT_MAX || exponent < -EXPONENT_MAX) {
        return false;
    }
    *ret = (struct suffix){ .format = QUANTITY_EXPONENT, .exponent = (int32_t)exponent };
    return true;
}

/* Appends the digits to `*magnitude`. */
static bool digits_read(struct str digits, u128 *magnitude)
{
    for (size_t i = 0; i < digits.n; i++) {
        if (__builtin_mul_overflow(*magnitude, (u128)10, magnitude) ||
            __builtin_add_overflow(*magnitude, (u128)(digits.p[i] - '0'), magnitude)) {
            return false;
        }
    }
    return true;
}

/* Up to the next multiple of 10^scale, away from zero; the answer says whether it was one. */
static bool round_up(struct quantity *q, int32_t scale)
{
    bool exact = true;
    for (; q->scale < scale && q->magnitude > 0; q->scale++) {
        exact = exact && q->magnitude % 10 == 0;
        q->magnitude /= 10;
    }
    q->scale = MAX(q->scale, scale);
    q->magnitude += exact ? 0 : 1;
    return exact;
}

/* Whether Kubernetes keeps the text as it is: it takes it for canonical without a close look. */
static bool text_is_kept(const struct parts *p, const struct suffix *suffix)
{
    size_t whole = MAX(p->whole.n, (size_t)1); /* an absent one counts as "0" */
    if (suffix->format == QUANTITY_BINARY) {
        u128 value = 0;
        return p->fraction.n == 0 && (int)whole + suffix->exponent * 3 / 10 <= 14 &&
               digits_read(p->whole, &value) && (value & 7) != 0;
    }
    int32_t scale = suffix->exponent - (int32_t)p->fraction.n;
    if (whole + p->fraction.n > 18 || scale < NANO || scale % 3 != 0 || p->whole.n == 0) {
        return false;
    }
    char shifted[18];
    memcpy(shifted, p->whole.p, p->whole.n);
    if (p->fraction.n > 0) {
        memcpy(shifted + p->whole.n, p->fraction.p, p->fraction.n);
    }
    return !str_ends((struct str){ .p = shifted, .n = whole + p->fraction.n }, STR("000"));
}

static int too_large(struct err *err)
{
    return err_set(err, ERR_LIMIT, "a quantity of more than 38 digits");
}

static int apply_binary(struct quantity *q, const struct suffix *suffix, struct err *err)
{
    if (__builtin_mul_overflow(q->magnitude, (u128)1 << suffix->exponent, &q->magnitude)) {
        return too_large(err);
    }
    (void)round_up(q, NANO); /* rounding is what is wanted */
    struct quantity most = { .magnitude = INT64_MAX };
    struct quantity size = { .magnitude = q->magnitude, .scale = q->scale };
    struct quantity one = { .magnitude = 1 };
    if (quantity_cmp(&size, &most) > 0) {
        q->magnitude = most.magnitude;
        q->scale = 0;
    }
    if (q->magnitude > 0 && quantity_cmp(&size, &one) < 0) {
        q->format = QUANTITY_DECIMAL;
    }
    return 0;
}

int quantity_parse(struct str text, struct quantity *ret, struct err *err)
{
    struct parts parts;
    struct suffix suffix;
    if (text.n == 0 || !parts_split(text, &parts)) {
        return err_set(err, ERR_INVALID, FORM_RULE);
    }
    if (!suffix_read(parts.suffix, &suffix)) {
        return err_set(err, ERR_INVALID, "unable to parse quantity's suffix");
    }
    struct quantity q = { .negative = parts.negative, .format = suffix.format };
    if (parts.fraction.n > 1000 || !digits_read(parts.whole, &q.magnitude) ||
        !digits_read(parts.fraction, &q.magnitude)) {
        return too_large(err);
    }
    q.scale = -(int32_t)parts.fraction.n;
    if (suffix.format == QUANTITY_BINARY) {
        int r = apply_binary(&q, &suffix, err);
        if (r < 0) {
            return r;
        }
    } else {
        q.scale += suffix.exponent;
        if (q.scale > EXPONENT_MAX - MAGNITUDE_DIGITS) {
            return too_large(err);
        }
        (void)round_up(&q, NANO); /* rounding is what is wanted */
    }
    if (q.magnitude > 0 && text_is_kept(&parts, &suffix)) {
        q.text = text;
    }
    *ret = q;
    return 0;
}

int quantity_sign(const struct quantity *q)
{
    return q->magnitude == 0 ? 0 : q->negative ? -1 : 1;
}

/* To a smaller scale; false when it does not fit. */
static bool scale_to(u128 *magnitude, int32_t from, int32_t to)
{
    for (; from > to && *magnitude > 0; from--) {
        if (__builtin_mul_overflow(*magnitude, (u128)10, magnitude)) {
            return false;
        }
    }
    return true;
}

int quantity_cmp(const struct quantity *a, const struct quantity *b)
{
    int sign_a = quantity_sign(a);
    int sign_b = quantity_sign(b);
    if (sign_a != sign_b || sign_a == 0) {
        return sign_a < sign_b ? -1 : sign_a > sign_b;
    }
    u128 left = a->magnitude;
    u128 right = b->magnitude;
    int32_t scale = MIN(a->scale, b->scale);
    int order = 0;
    if (!scale_to(&left, a->scale, scale)) {
        order = 1; /* more digits than the other can have */
    } else if (!scale_to(&right, b->scale, scale)) {
        order = -1;
    } else {
        order = left < right ? -1 : left > right;
    }
    return order * sign_a;
}

static bool scaled_loop_value(const struct quantity *q, int32_t scale, int64_t *ret)
{
    struct quantity whole = *q;
    (void)round_up(&whole, scale); /* rounding is what is wanted */
    if (!scale_to(&whole.magnitude, whole.scale, scale) || whole.magnitude > INT64_MAX) {
        return false;
    }
    *ret = q->negative ? -(int64_t)whole.magnitude : (int64_t)whole.magnitude;
    return true;
}

bool quantity_value(const struct quantity *q, int64_t *ret)
{
    return scaled_loop_value(q, 0, ret);
}

bool quantity_milli(const struct quantity *q, int64_t *ret)
{
    return scaled_loop_value(q, -3, ret);
}

static int add_signed(struct quantity *q, const struct quantity *y, bool negative, struct err *err)
{
    u128 left = q->magnitude;
    u128 right = y->magnitude;
    struct quantity sum = { .scale = MIN(q->scale, y->scale),
                            .format = left == 0 ? y->format : q->format };
    if (left == 0 || right == 0) {
        sum.scale = left == 0 ? y->scale : q->scale;
    }
    if (!scale_to(&left, q->scale, sum.scale) || !scale_to(&right, y->scale, sum.scale)) {
        return too_large(err);
    }
    if (q->negative == negative) {
        if (__builtin_add_overflow(left, right, &sum.magnitude)) {
            return too_large(err);
        }
        sum.negative = negative;
    } else {
        sum.magnitude = left > right ? left - right : right - left;
        sum.negative = left > right ? q->negative : negative;
    }
    *q = sum;
    return 0;
}

int quantity_add(struct quantity *q, const struct quantity *y, struct err *err)
{
    return add_signed(q, y, y->negative, err);
}

int quantity_sub(struct quantity *q, const struct quantity *y, struct err *err)
{
    return add_signed(q, y, !y->negative, err);
}

static void print_number(const struct quantity *q, u128 magnitude, struct buf *out)
{
    char digits[40];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + (int)(magnitude % 10));
        magnitude /= 10;
    } while (magnitude > 0);
    if (q->negative) {
        buf_add_char(out, '-');
    }
    buf_add(out, (struct str){ .p = digits + at, .n = sizeof(digits) - at });
}

static void print_suffix(enum quantity_format format, int32_t exponent, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (suffixes[i].format == format && suffixes[i].exponent == exponent) {
            buf_add(out, suffixes[i].text);
            return;
        }
    }
}

/* As few digits as an exponent divisible by three allows. */
static void print_decimal(const struct quantity *q, enum quantity_format format, struct buf *out)
{
    u128 magnitude = q->magnitude;
    int32_t exponent = q->scale;
    while (magnitude % 10 == 0) {
        magnitude /= 10;
        exponent++;
    }
    int32_t wanted = exponent - (exponent % 3 + 3) % 3;
    if (format == QUANTITY_DECIMAL) {
        wanted = MIN(wanted, 18); /* there is no suffix above E */
    }
    int32_t zeros = exponent - wanted; /* more than fit the number are printed behind it */
    for (; zeros > 0 && magnitude <= ~(u128)0 / 10; zeros--) {
        magnitude *= 10;
    }
    print_number(q, magnitude, out);
    for (; zeros > 0; zeros--) {
        buf_add_char(out, '0');
    }
    if (format == QUANTITY_DECIMAL) {
        print_suffix(format, wanted, out);
    } else if (wanted != 0) {
        buf_printf(out, "e%d", wanted);
    }
}

void quantity_print(const struct quantity *q, struct buf *out)
{
    if (q->magnitude == 0) {
        buf_add_char(out, '0');
        return;
    }
    if (q->text.n > 0) {
        buf_add(out, q->text);
        return;
    }
    struct quantity whole = *q;
    bool binary = q->format == QUANTITY_BINARY && round_up(&whole, 0) &&
                  scale_to(&whole.magnitude, whole.scale, 0) && whole.magnitude >= 1024;
    if (!binary) {
        print_decimal(q, q->format == QUANTITY_EXPONENT ? q->format : QUANTITY_DECIMAL, out);
        return;
    }
    int32_t exponent = 0;
    while (exponent < 60 && whole.magnitude >= 1024 && whole.magnitude % 1024 == 0) {
        whole.magnitude /= 1024;
        exponent += 10;
    }
    print_number(q, whole.magnitude, out);
    print_suffix(QUANTITY_BINARY, exponent, out);
}
