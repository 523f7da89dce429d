/* Values of a configuration file: integers, names of kinds, text of scalars. */
#include "format/ucfg_value.h"

#include "base/hex.h"
#include "format/gofloat.h"

/* '_' stands between digits, or between the prefix and a digit. */
static bool underscores_fit(struct str digits, bool prefix)
{
    bool digit = prefix;
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] == '_' && !digit) {
            return false;
        }
        digit = digits.p[i] != '_';
    }
    return digit;
}

static bool digits_read(struct str s, unsigned base, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '_') {
            continue;
        }
        unsigned digit = (unsigned)hex_digit(c); /* what is none is above every base */
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    *ret = value;
    return true;
}

bool ucfg_value_read_integer(struct str text, struct ucfg_value *ret)
{
    struct str digits;
    bool negative = str_cut_prefix(text, STR("-"), &digits);
    bool sign = negative || str_cut_prefix(text, STR("+"), &digits);
    unsigned base = 10;
    bool prefix = false;
    if (digits.n == 0) {
        return false;
    }
    if (digits.p[0] == '0') {
        char mark = digits.n >= 3 ? (char)(digits.p[1] | 0x20) : '0';
        base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
        size_t skip = base != 0 ? 2 : 1;
        base = base != 0 ? base : 8;
        prefix = true; /* the leading 0 is a digit itself */
        digits = str_sub(digits, skip, digits.n - skip);
    }
    uint64_t value;
    if (!underscores_fit(digits, prefix) || !digits_read(digits, base, &value) ||
        (sign && value > (uint64_t)INT64_MAX + (negative ? 1 : 0))) {
        return false;
    }
    if (negative && value > 0) {
        *ret = (struct ucfg_value){ .kind = UCFG_VALUE_INT, .integer = (int64_t)(0 - value) };
    } else {
        *ret = (struct ucfg_value){ .kind = UCFG_VALUE_UINT, .natural = value };
    }
    return true;
}

const char *ucfg_value_kind_name(const struct ucfg_value *v)
{
    static const char *const names[] = {
        [UCFG_VALUE_NULL] = "null",          [UCFG_VALUE_BOOL] = "a boolean",
        [UCFG_VALUE_INT] = "an integer",     [UCFG_VALUE_UINT] = "an integer",
        [UCFG_VALUE_FLOAT] = "a number",     [UCFG_VALUE_STR] = "a string",
        [UCFG_VALUE_VARIABLES] = "a string", [UCFG_VALUE_OBJ] = "a mapping",
    };
    return v->kind == UCFG_VALUE_OBJ && v->list ? "a list" : names[v->kind];
}

bool ucfg_value_text(const struct ucfg_value *v, struct arena *out, struct str *ret)
{
    char number[GOFLOAT_TEXT_MAX];
    switch (v->kind) {
    case UCFG_VALUE_NULL:
        *ret = STR("null");
        return true;
    case UCFG_VALUE_BOOL:
        *ret = v->truth ? STR("true") : STR("false");
        return true;
    case UCFG_VALUE_INT:
        *ret = arena_printf(out, "%lld", (long long)v->integer);
        return true;
    case UCFG_VALUE_UINT:
        *ret = arena_printf(out, "%llu", (unsigned long long)v->natural);
        return true;
    case UCFG_VALUE_FLOAT:
        *ret = arena_str(out, gofloat_print(v->real, number));
        return true;
    case UCFG_VALUE_STR:
        *ret = v->text;
        return true;
    case UCFG_VALUE_VARIABLES:
    case UCFG_VALUE_OBJ:
        break;
    }
    return false;
}
