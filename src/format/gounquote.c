#include "format/gounquote.h"

#include "base/hex.h"
#include "base/utf8.h"

/* The first `count` characters as digits; false when they are not there. */
static bool escape_digits(struct str s, size_t count, uint32_t base, uint32_t *ret)
{
    uint32_t value = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t digit = i < s.n ? (uint32_t)hex_digit(s.p[i]) : base;
        if (digit >= base) { /* hex_digit's -1 is above every base */
            return false;
        }
        value = value * base + digit;
    }
    *ret = value;
    return true;
}

size_t gounquote_escape(struct str rest, char quote, struct buf *out)
{
    static const char letters[] = "abfnrtv\\";
    static const char bytes[] = "\a\b\f\n\r\t\v\\";
    char c = rest.n > 0 ? rest.p[0] : '\0';
    const char *letter = c != '\0' ? strchr(letters, c) : NULL;
    if (letter != NULL || (rest.n > 0 && c == quote)) {
        buf_add_char(out, letter != NULL ? bytes[letter - letters] : quote);
        return 1;
    }
    uint32_t value;
    if (escape_digits(rest, 3, 8, &value)) {
        buf_add_char(out, (char)value);
        return value <= 0xff ? 3 : 0;
    }
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0 || !escape_digits(str_sub(rest, 1, digits), digits, 16, &value)) {
        return 0;
    }
    if (c == 'x') {
        buf_add_char(out, (char)value);
    } else if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        return 0; /* no character */
    } else {
        utf8_add(out, value);
    }
    return 1 + digits;
}
