#include "format/gval_value.h"

#include <math.h>

#include "base/buf.h"
#include "format/gofloat.h"

const struct gval_op_rule gval_op_rules[GVAL_OP_COUNT] = {
    [GVAL_OP_COALESCE] = { STR_INIT("??"), 0 }, [GVAL_OP_OR] = { STR_INIT("||"), 20 },
    [GVAL_OP_AND] = { STR_INIT("&&"), 21 },     [GVAL_OP_EQ] = { STR_INIT("=="), 40 },
    [GVAL_OP_NE] = { STR_INIT("!="), 40 },      [GVAL_OP_GE] = { STR_INIT(">="), 40 },
    [GVAL_OP_GT] = { STR_INIT(">"), 40 },       [GVAL_OP_LE] = { STR_INIT("<="), 40 },
    [GVAL_OP_LT] = { STR_INIT("<"), 40 },       [GVAL_OP_MATCH] = { STR_INIT("=~"), 40 },
    [GVAL_OP_DIFFER] = { STR_INIT("!~"), 40 },  [GVAL_OP_IN] = { STR_INIT("in"), 40 },
    [GVAL_OP_XOR] = { STR_INIT("^"), 60 },      [GVAL_OP_BITAND] = { STR_INIT("&"), 60 },
    [GVAL_OP_BITOR] = { STR_INIT("|"), 60 },    [GVAL_OP_SHL] = { STR_INIT("<<"), 90 },
    [GVAL_OP_SHR] = { STR_INIT(">>"), 90 },     [GVAL_OP_ADD] = { STR_INIT("+"), 120 },
    [GVAL_OP_SUB] = { STR_INIT("-"), 120 },     [GVAL_OP_MUL] = { STR_INIT("*"), 150 },
    [GVAL_OP_DIV] = { STR_INIT("/"), 150 },     [GVAL_OP_MOD] = { STR_INIT("%"), 150 },
    [GVAL_OP_POW] = { STR_INIT("**"), 200 },
};

struct gval_value gval_value_bool(bool yes)
{
    return (struct gval_value){ .kind = GVAL_BOOL, .yes = yes };
}

struct gval_value gval_value_number(double number)
{
    return (struct gval_value){ .kind = GVAL_NUMBER, .number = number };
}

struct gval_value gval_value_text(struct str text)
{
    return (struct gval_value){ .kind = GVAL_TEXT, .text = text };
}

/* Offsets as texts have them: none, "Z", "+0100", "+01:00". */
enum { ZONE_NONE = 1, ZONE_UTC = 2, ZONE_PLAIN = 4, ZONE_COLON = 8 };

/* Cuts the offset off the end of `*text` and says of which form it is. */
static int date_cut_zone(struct str *text, struct str *ret)
{
    struct str t = *text;
    if (str_ends(t, STR("Z"))) {
        str_cut_suffix(t, STR("Z"), text);
        *ret = STR("Z");
        return ZONE_UTC;
    }
    for (size_t n = 5; n <= 6 && t.n > 10 + n; n++) {
        char sign = t.p[t.n - n];
        bool colon = t.p[t.n - 3] == ':';
        if ((sign == '+' || sign == '-') && colon == (n == 6)) {
            *ret = str_sub(t, t.n - n, n);
            *text = str_sub(t, 0, t.n - n);
            return colon ? ZONE_COLON : ZONE_PLAIN;
        }
    }
    *ret = STR("Z");
    return ZONE_NONE;
}

int gval_value_date(struct str text, struct gval_value *ret, struct err *err)
{
    static const struct {
        size_t n;        /* bytes of date and clock */
        char separator;  /* between them */
        int zones;       /* offsets that may follow */
        const char *end; /* what stamps have and this layout has not */
    } layouts[] = {
        { 10, '\0', ZONE_NONE, "T00:00:00" },
        { 16, ' ', ZONE_NONE, ":00" },
        { 19, ' ', ZONE_NONE | ZONE_COLON, "" },
        { 13, 'T', ZONE_UTC | ZONE_PLAIN, ":00:00" },
        { 16, 'T', ZONE_UTC | ZONE_PLAIN, ":00" },
        { 19, 'T', ZONE_UTC | ZONE_PLAIN | ZONE_COLON, "" },
    };
    struct str body = text;
    struct str zone;
    struct str fraction;
    int form = date_cut_zone(&body, &zone);
    bool has_fraction = str_cut(body, STR("."), &body, &fraction);
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        char full[TIMESTAMP_TEXT_MAX];
        struct timestamp date;
        if (body.n != layouts[i].n || (body.n > 10 && body.p[10] != layouts[i].separator) ||
            (layouts[i].zones & form) == 0 || (has_fraction && body.n != 19)) {
            continue;
        }
        struct str clock = str_sub(body, MIN(body.n, (size_t)11), body.n - MIN(body.n, (size_t)11));
        int n = snprintf(full, sizeof(full), STR_FMT "%s" STR_FMT "%s%s" STR_FMT "%.*s%s%.*s",
                         STR_ARG(str_sub(body, 0, 10)), clock.n > 0 ? "T" : "", STR_ARG(clock),
                         layouts[i].end, has_fraction ? "." : "", STR_ARG(fraction),
                         zone.n == 5 ? 3 : (int)zone.n, zone.p, zone.n == 5 ? ":" : "",
                         zone.n == 5 ? 2 : 0, zone.p + (zone.n == 5 ? 3 : 0));
        struct err ignored = { 0 }; /* the message below says it in the language of expressions */
        if (n < (int)sizeof(full) &&
            timestamp_parse((struct str){ .p = full, .n = (size_t)n }, &date, &ignored) == 0) {
            *ret = (struct gval_value){ .kind = GVAL_DATE, .date = date };
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "date() could not parse " STR_FMT, STR_ARG(text));
}

bool gval_value_to_number(const struct gval_value *v, double *ret)
{
    if (v->kind == GVAL_NUMBER) {
        *ret = v->number;
        return true;
    }
    return v->kind == GVAL_TEXT && gofloat_parse(v->text, ret);
}

bool gval_value_to_bool(const struct gval_value *v, bool *ret)
{
    double number = 0;
    if (v->kind == GVAL_BOOL || v->kind == GVAL_NIL) {
        *ret = v->yes;
        return true;
    }
    if (v->kind == GVAL_TEXT) {
        bool yes = str_eq(v->text, STR("true")) || str_eq(v->text, STR("TRUE"));
        if (yes || str_eq(v->text, STR("false")) || str_eq(v->text, STR("FALSE"))) {
            *ret = yes;
            return true;
        }
    }
    if (!gval_value_to_number(v, &number)) {
        return false;
    }
    *ret = number != 0; /* also for NaN */
    return true;
}

struct str gval_value_print(const struct gval_value *v, struct arena *out)
{
    char text[TIMESTAMP_TEXT_MAX];
    CLEANUP(buf_done)
    struct buf list = { 0 };
    switch (v->kind) {
    case GVAL_NIL:
        return STR("<nil>");
    case GVAL_BOOL:
        return v->yes ? STR("true") : STR("false");
    case GVAL_NUMBER:
        return arena_str(out, gofloat_print(v->number, text));
    case GVAL_TEXT:
        return v->text;
    case GVAL_DATE:
        return arena_str(out, timestamp_print_go(v->date, text));
    case GVAL_LIST:
        break;
    }
    buf_add_char(&list, '[');
    for (uint32_t i = 0; i < v->n; i++) {
        buf_add(&list, i > 0 ? STR(" ") : STR_NONE);
        buf_add(&list, gval_value_print(&v->items[i], out));
    }
    buf_add_char(&list, ']');
    return arena_str(out, buf_str(&list));
}

bool gval_value_is_zero(const struct gval_value *v)
{
    switch (v->kind) {
    case GVAL_NIL:
        return true;
    case GVAL_BOOL:
        return !v->yes;
    case GVAL_NUMBER:
        return v->number == 0;
    case GVAL_TEXT:
        return v->text.n == 0;
    case GVAL_DATE:
        return timestamp_is_zero(v->date);
    case GVAL_LIST:
        break;
    }
    return false; /* an empty list is one nevertheless */
}

const char *gval_value_type(const struct gval_value *v)
{
    static const char *const types[] = {
        [GVAL_NIL] = "<nil>",   [GVAL_BOOL] = "bool",      [GVAL_NUMBER] = "float64",
        [GVAL_TEXT] = "string", [GVAL_DATE] = "time.Time", [GVAL_LIST] = "[]interface {}",
    };
    return types[v->kind];
}

static int date_cmp(struct timestamp a, struct timestamp b)
{
    if (a.sec != b.sec) {
        return a.sec < b.sec ? -1 : 1;
    }
    return a.nsec < b.nsec ? -1 : a.nsec > b.nsec ? 1 : 0;
}

/* Of one kind and the same: nothing is converted. */
static bool value_same(const struct gval_value *a, const struct gval_value *b)
{
    if (a->kind != b->kind || a->n != b->n) {
        return false;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (!value_same(&a->items[i], &b->items[i])) {
            return false;
        }
    }
    return a->yes == b->yes && a->number == b->number && str_eq(a->text, b->text) &&
           date_cmp(a->date, b->date) == 0;
}

static bool value_equal(const struct gval_value *a, const struct gval_value *b)
{
    double x = 0;
    double y = 0;
    bool k = false;
    bool l = false;
    if (gval_value_to_number(a, &x) && gval_value_to_number(b, &y)) {
        return x == y;
    }
    if (gval_value_to_bool(a, &k) && gval_value_to_bool(b, &l)) {
        return k == l;
    }
    return value_same(a, b);
}

/* Conversions to integers as Go's compiler makes them on amd64: what does not fit is the smallest
 * one. */
static int64_t to_i64(double x)
{
    static const double edge = 9223372036854775808.0; /* 2^63 */
    return x >= -edge && x < edge ? (int64_t)x : INT64_MIN;
}

static double shift(double a, double b, bool left)
{
    int64_t x = to_i64(a);
    /* A count that is negative or no number is a huge one there. */
    unsigned count = b > -1 && b < 64 ? (unsigned)b : 64;
    if (count == 64) {
        return left || x >= 0 ? 0 : -1;
    }
    return left ? (double)(int64_t)((uint64_t)x << count) : (double)(x >> count);
}

static struct gval_value calculate(enum gval_op op, double a, double b)
{
    switch (op) {
    case GVAL_OP_GE:
        return gval_value_bool(a >= b);
    case GVAL_OP_GT:
        return gval_value_bool(a > b);
    case GVAL_OP_LE:
        return gval_value_bool(a <= b);
    case GVAL_OP_LT:
        return gval_value_bool(a < b);
    case GVAL_OP_XOR:
        return gval_value_number((double)(to_i64(a) ^ to_i64(b)));
    case GVAL_OP_BITAND:
        return gval_value_number((double)(to_i64(a) & to_i64(b)));
    case GVAL_OP_BITOR:
        return gval_value_number((double)(to_i64(a) | to_i64(b)));
    case GVAL_OP_SHL:
    case GVAL_OP_SHR:
        return gval_value_number(shift(a, b, op == GVAL_OP_SHL));
    case GVAL_OP_ADD:
        return gval_value_number(a + b);
    case GVAL_OP_SUB:
        return gval_value_number(a - b);
    case GVAL_OP_MUL:
        return gval_value_number(a * b);
    case GVAL_OP_DIV:
        return gval_value_number(a / b);
    case GVAL_OP_MOD:
        return gval_value_number(fmod(a, b));
    default:
        ASSERT(op == GVAL_OP_POW);
        return gval_value_number(pow(a, b));
    }
}

static bool order_holds(enum gval_op op, int order)
{
    return op == GVAL_OP_GE   ? order >= 0
           : op == GVAL_OP_GT ? order > 0
           : op == GVAL_OP_LE ? order <= 0
                              : order < 0;
}

/* Numbers where both sides can be some, unless both are texts; else text, for '+' and the order. */
static int value_arithmetic(enum gval_op op, const struct gval_value *a, const struct gval_value *b,
                            struct arena *out, struct gval_value *ret, struct err *err)
{
    double x = 0;
    double y = 0;
    bool ordering = op >= GVAL_OP_GE && op <= GVAL_OP_LT;
    bool textual = ordering || op == GVAL_OP_ADD;
    bool texts = textual && a->kind == GVAL_TEXT && b->kind == GVAL_TEXT;
    if (!texts && gval_value_to_number(a, &x) && gval_value_to_number(b, &y)) {
        *ret = calculate(op, x, y);
        return 0;
    }
    if (ordering && a->kind == GVAL_DATE && b->kind == GVAL_DATE) {
        *ret = gval_value_bool(order_holds(op, date_cmp(a->date, b->date)));
        return 0;
    }
    if (!textual) {
        return err_set(err, ERR_INVALID, "invalid operation (%s) " STR_FMT " (%s)",
                       gval_value_type(a), STR_ARG(gval_op_rules[op].text), gval_value_type(b));
    }
    struct str left = gval_value_print(a, out);
    struct str right = gval_value_print(b, out);
    *ret = ordering ? gval_value_bool(order_holds(op, str_cmp(left, right)))
                    : gval_value_text(arena_concat(out, left, right));
    return 0;
}

static int value_logic(enum gval_op op, const struct gval_value *a, const struct gval_value *b,
                       struct gval_value *ret, struct err *err)
{
    bool k = false;
    bool l = false;
    if (!gval_value_to_bool(a, &k) || !gval_value_to_bool(b, &l)) {
        return err_set(err, ERR_INVALID, "invalid operation (%s) " STR_FMT " (%s)",
                       gval_value_type(a), STR_ARG(gval_op_rules[op].text), gval_value_type(b));
    }
    *ret = gval_value_bool(op == GVAL_OP_AND ? k && l : k || l);
    return 0;
}

static int value_in(const struct gval_value *a, const struct gval_value *b, struct gval_value *ret,
                    struct err *err)
{
    bool found = false;
    if (b->kind != GVAL_LIST) {
        return err_set(err, ERR_INVALID, "expected type []interface{} for in operator but got %s",
                       gval_value_type(b));
    }
    for (uint32_t i = 0; i < b->n; i++) {
        found = found || value_same(a, &b->items[i]);
    }
    *ret = gval_value_bool(found);
    return 0;
}

int gval_value_infix(enum gval_op op, const struct gval_value *a, const struct gval_value *b,
                     struct arena *out, struct gval_value *ret, struct err *err)
{
    switch (op) {
    case GVAL_OP_COALESCE:
        *ret = gval_value_is_zero(a) ? *b : *a;
        return 0;
    case GVAL_OP_OR:
    case GVAL_OP_AND:
        return value_logic(op, a, b, ret, err);
    case GVAL_OP_EQ:
    case GVAL_OP_NE:
        *ret = gval_value_bool(value_equal(a, b) == (op == GVAL_OP_EQ));
        return 0;
    case GVAL_OP_IN:
        return value_in(a, b, ret, err);
    default:
        return value_arithmetic(op, a, b, out, ret, err);
    }
}

int gval_value_prefix(char sign, const struct gval_value *a, struct arena *out,
                      struct gval_value *ret, struct err *err)
{
    bool yes = false;
    double number = 0;
    if (sign == '!' ? !gval_value_to_bool(a, &yes) : !gval_value_to_number(a, &number)) {
        return err_set(err, ERR_INVALID, "unexpected " STR_FMT "(%s) expected %s",
                       STR_ARG(gval_value_print(a, out)), gval_value_type(a),
                       sign == '!' ? "bool" : "number");
    }
    *ret = sign == '!'   ? gval_value_bool(!yes)
           : sign == '-' ? gval_value_number(-number)
                         : gval_value_number((double)~to_i64(number));
    return 0;
}
