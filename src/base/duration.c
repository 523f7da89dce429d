#include "base/duration.h"

#define NS_US 1000ULL
#define NS_MS (1000 * NS_US)
#define NS_S (1000 * NS_MS)
#define NS_M (60 * NS_S)
#define NS_H (60 * NS_M)
#define NS_LIMIT (1ULL << 63) /* the magnitude of the least int64 */

static const struct duration_unit {
    struct str name;
    uint64_t ns;
} units[] = {
    { STR_INIT("ns"), 1 },
    { STR_INIT("us"), NS_US },
    { STR_INIT("\xc2\xb5s"), NS_US }, /* the micro sign */
    { STR_INIT("\xce\xbcs"), NS_US }, /* the Greek letter, which looks the same */
    { STR_INIT("ms"), NS_MS },
    { STR_INIT("s"), NS_S },
    { STR_INIT("m"), NS_M },
    { STR_INIT("h"), NS_H },
};

/* Go's quoting in this message: bytes that are not printable ASCII as \xNN. */
static struct str duration_quote(struct str s, char *out, size_t size)
{
    size_t n = 0;
    out[n++] = '"';
    for (size_t i = 0; i < s.n && n + 6 < size; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < ' ' || c >= 0x80) {
            n += (size_t)snprintf(out + n, size - n, "\\x%02x", c);
            continue;
        }
        if (c == '"' || c == '\\') {
            out[n++] = '\\';
        }
        out[n++] = (char)c;
    }
    out[n++] = '"';
    return (struct str){ .p = out, .n = n };
}

static int duration_fail(struct err *err, struct str text)
{
    char quoted[256];
    struct str shown = duration_quote(text, quoted, sizeof(quoted));
    return err_set(err, ERR_INVALID, "time: invalid duration " STR_FMT, STR_ARG(shown));
}

static bool is_digit(struct str s, size_t at)
{
    return at < s.n && s.p[at] >= '0' && s.p[at] <= '9';
}

/* The digits in front; false when they pass 2^63. */
static bool duration_whole(struct str *s, uint64_t *ret)
{
    uint64_t value = 0;
    while (is_digit(*s, 0)) {
        if (value > NS_LIMIT / 10) {
            return false;
        }
        value = value * 10 + (uint64_t)(s->p[0] - '0');
        if (value > NS_LIMIT) {
            return false;
        }
        *s = str_sub(*s, 1, s->n - 1);
    }
    *ret = value;
    return true;
}

/* The digits behind the point; those that no longer fit are dropped, as Go does. */
static uint64_t duration_fraction(struct str *s, double *ret_scale)
{
    uint64_t value = 0;
    bool full = false;
    *ret_scale = 1;
    for (; is_digit(*s, 0); *s = str_sub(*s, 1, s->n - 1)) {
        if (full || value > (NS_LIMIT - 1) / 10) {
            full = true;
            continue;
        }
        value = value * 10 + (uint64_t)(s->p[0] - '0'); /* at most 2^63 + 1: no overflow */
        *ret_scale *= 10;
    }
    return value;
}

static uint64_t duration_unit_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (str_eq(units[i].name, name)) {
            return units[i].ns;
        }
    }
    return 0;
}

/* "1.5h" in front of `*s`. */
static int duration_part(struct str text, struct str *s, uint64_t *ret, struct err *err)
{
    uint64_t whole;
    size_t before = s->n;
    if (!is_digit(*s, 0) && s->p[0] != '.') {
        return duration_fail(err, text);
    }
    if (!duration_whole(s, &whole)) {
        return duration_fail(err, text);
    }
    bool digits = s->n < before;
    uint64_t fraction = 0;
    double scale = 1;
    if (s->n > 0 && s->p[0] == '.') {
        *s = str_sub(*s, 1, s->n - 1);
        before = s->n;
        fraction = duration_fraction(s, &scale);
        digits = digits || s->n < before;
    }
    if (!digits) {
        return duration_fail(err, text);
    }
    size_t end = 0;
    while (end < s->n && s->p[end] != '.' && !is_digit(*s, end)) {
        end++;
    }
    char quoted[256];
    struct str shown = duration_quote(text, quoted, sizeof(quoted));
    if (end == 0) {
        return err_set(err, ERR_INVALID, "time: missing unit in duration " STR_FMT, STR_ARG(shown));
    }
    struct str name = str_sub(*s, 0, end);
    *s = str_sub(*s, end, s->n - end);
    uint64_t unit = duration_unit_find(name);
    if (unit == 0) {
        char unit_quoted[128];
        struct str unit_shown = duration_quote(name, unit_quoted, sizeof(unit_quoted));
        return err_set(err, ERR_INVALID, "time: unknown unit " STR_FMT " in duration " STR_FMT,
                       STR_ARG(unit_shown), STR_ARG(shown));
    }
    if (whole > NS_LIMIT / unit) {
        return duration_fail(err, text);
    }
    *ret = whole * unit + (uint64_t)((double)fraction * ((double)unit / scale));
    return *ret > NS_LIMIT ? duration_fail(err, text) : 0;
}

int duration_parse(struct str text, int64_t *ret_ns, struct err *err)
{
    struct str s = text;
    bool negative = false;
    if (s.n > 0 && (s.p[0] == '-' || s.p[0] == '+')) {
        negative = s.p[0] == '-';
        s = str_sub(s, 1, s.n - 1);
    }
    if (str_eq(s, STR("0"))) {
        *ret_ns = 0;
        return 0;
    }
    if (s.n == 0) {
        return duration_fail(err, text);
    }
    uint64_t total = 0;
    while (s.n > 0) {
        uint64_t part = 0;
        int r = duration_part(text, &s, &part, err);
        if (r < 0) {
            return r;
        }
        total += part; /* each is at most 2^63, so the sum overflows only to 0 */
        if (total > NS_LIMIT || total < part) {
            return duration_fail(err, text);
        }
    }
    if (!negative && total == NS_LIMIT) {
        return duration_fail(err, text);
    }
    *ret_ns = negative ? (int64_t)(0 - total) : (int64_t)total;
    return 0;
}

/* Writes the number backwards before `out[at]` with its fraction of `digits` digits, without
 * trailing zeros; `*value` keeps what is left of the point. */
static size_t duration_put_fraction(char *out, size_t at, uint64_t *value, int digits)
{
    bool printing = false;
    for (int i = 0; i < digits; i++) {
        char digit = (char)('0' + *value % 10);
        printing = printing || digit != '0';
        if (printing) {
            out[--at] = digit;
        }
        *value /= 10;
    }
    if (printing) {
        out[--at] = '.';
    }
    return at;
}

static size_t duration_put_whole(char *out, size_t at, uint64_t value)
{
    do {
        out[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return at;
}

static size_t duration_put_small(char *out, size_t at, uint64_t ns)
{
    static const struct {
        uint64_t below;
        struct str unit;
        int digits;
    } scales[] = {
        { NS_US, STR_INIT("ns"), 0 },
        { NS_MS, STR_INIT("\xc2\xb5s"), 3 },
        { NS_S, STR_INIT("ms"), 6 },
    };
    size_t i = 0;
    while (ns >= scales[i].below) {
        i++;
    }
    at -= scales[i].unit.n;
    memcpy(out + at, scales[i].unit.p, scales[i].unit.n);
    at = duration_put_fraction(out, at, &ns, scales[i].digits);
    return duration_put_whole(out, at, ns);
}

struct str duration_print(int64_t ns, char out[DURATION_TEXT_MAX])
{
    uint64_t value = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    size_t at = DURATION_TEXT_MAX - 1;
    out[at] = '\0';
    if (value == 0) {
        at -= 2;
        memcpy(out + at, "0s", 2);
    } else if (value < NS_S) {
        at = duration_put_small(out, at, value);
    } else {
        out[--at] = 's';
        at = duration_put_fraction(out, at, &value, 9);
        at = duration_put_whole(out, at, value % 60);
        value /= 60;
        if (value > 0) {
            out[--at] = 'm';
            at = duration_put_whole(out, at, value % 60);
            value /= 60;
        }
        if (value > 0) {
            out[--at] = 'h';
            at = duration_put_whole(out, at, value);
        }
    }
    if (ns < 0) {
        out[--at] = '-';
    }
    return (struct str){ .p = out + at, .n = DURATION_TEXT_MAX - 1 - at };
}
