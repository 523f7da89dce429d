#include "format/gofloat.h"

#include <math.h>

static bool is_digit(char c, bool hex)
{
    char lower = (char)(c | 0x20);
    return (c >= '0' && c <= '9') || (hex && lower >= 'a' && lower <= 'f');
}

/* Takes the digits and the underscores at `*at`; an underscore stands between digits, or between
 * the prefix and a digit (`after_prefix`). */
static bool take_digits(struct str text, size_t *at, bool hex, bool after_prefix, size_t *ret_count)
{
    bool digit_before = after_prefix;
    for (; *at < text.n; (*at)++) {
        char c = text.p[*at];
        if (c == '_') {
            bool digit_behind = *at + 1 < text.n && is_digit(text.p[*at + 1], hex);
            if (!digit_before || !digit_behind) {
                return false;
            }
        } else if (is_digit(c, hex)) {
            (*ret_count)++;
        } else {
            break;
        }
        digit_before = c != '_';
    }
    return true;
}

/* Whether the text without its sign is a decimal number, or a hexadecimal one with its exponent. */
static bool is_number(struct str text)
{
    bool hex = text.n > 2 && text.p[0] == '0' && (text.p[1] | 0x20) == 'x';
    size_t at = hex ? 2 : 0;
    size_t digits = 0;
    if (!take_digits(text, &at, hex, hex, &digits)) {
        return false;
    }
    if (at < text.n && text.p[at] == '.') {
        at++;
        if (!take_digits(text, &at, hex, false, &digits)) {
            return false;
        }
    }
    if (digits == 0) {
        return false;
    }
    if (at < text.n && (text.p[at] | 0x20) == (hex ? 'p' : 'e')) {
        at++;
        at += at < text.n && (text.p[at] == '+' || text.p[at] == '-') ? 1 : 0;
        size_t exponent = 0;
        return take_digits(text, &at, false, false, &exponent) && exponent > 0 && at == text.n;
    }
    return !hex && at == text.n;
}

bool gofloat_parse(struct str text, double *ret)
{
    struct str rest = text;
    bool negative = text.n > 0 && text.p[0] == '-';
    if (negative || (text.n > 0 && text.p[0] == '+')) {
        rest = str_sub(text, 1, text.n - 1);
    }
    if (str_eq_fold(rest, STR("inf")) || str_eq_fold(rest, STR("infinity"))) {
        *ret = negative ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    if (str_eq_fold(text, STR("nan"))) {
        *ret = NAN;
        return true;
    }
    char plain[512];
    if (!is_number(rest) || text.n >= sizeof(plain)) {
        return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '_') {
            plain[n++] = text.p[i];
        }
    }
    return str_to_f64((struct str){ .p = plain, .n = n }, ret);
}

struct str gofloat_print(double value, char out[GOFLOAT_TEXT_MAX])
{
    if (isnan(value)) {
        return STR("NaN");
    }
    if (isinf(value)) {
        return value > 0 ? STR("+Inf") : STR("-Inf");
    }
    int precision = 0;
    do {
        (void)snprintf(out, GOFLOAT_TEXT_MAX, "%.*e", precision, value);
    } while (strtod(out, NULL) != value && precision++ < 17);
    int64_t exponent = 0;
    struct str text = str_from(out);
    struct str digits = str_sub(text, str_find_char(text, 'e') + 1, 0);
    digits.n = (size_t)(out + text.n - digits.p);
    bool small = digits.p[0] == '-';
    bool read = str_to_i64(str_sub(digits, 1, digits.n - 1), &exponent);
    ASSERT(read);
    if (small ? exponent > 4 : exponent >= 6) {
        return text;
    }
    int64_t decimals = small ? precision + exponent : precision - exponent;
    (void)snprintf(out, GOFLOAT_TEXT_MAX, "%.*f", decimals > 0 ? (int)decimals : 0, value);
    return str_from(out);
}
