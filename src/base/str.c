#include "base/str.h"

#include <errno.h>
#include <math.h>

struct str str_from(const char *text)
{
    return text == NULL ? STR_NONE : (struct str){ .p = text, .n = strlen(text) };
}

struct str str_sub(struct str s, size_t from, size_t n)
{
    ASSERT(from <= s.n);
    return (struct str){ .p = s.n == 0 ? s.p : s.p + from, .n = MIN(n, s.n - from) };
}

static char str_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool str_eq_fold(struct str a, struct str b)
{
    if (a.n != b.n) {
        return false;
    }
    for (size_t i = 0; i < a.n; i++) {
        if (str_lower(a.p[i]) != str_lower(b.p[i])) {
            return false;
        }
    }
    return true;
}

int str_cmp(struct str a, struct str b)
{
    size_t n = MIN(a.n, b.n);
    int order = n == 0 ? 0 : memcmp(a.p, b.p, n);
    if (order != 0) {
        return order;
    }
    return a.n < b.n ? -1 : a.n > b.n;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq(str_sub(s, 0, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n && str_eq(str_sub(s, s.n - suffix.n, suffix.n), suffix);
}

bool str_contains(struct str s, struct str part)
{
    return str_find(s, part) != SIZE_MAX;
}

size_t str_find(struct str s, struct str part)
{
    if (part.n == 0) {
        return 0;
    }
    if (s.n < part.n) {
        return SIZE_MAX;
    }
    const char *hit = memmem(s.p, s.n, part.p, part.n);
    return hit == NULL ? SIZE_MAX : (size_t)(hit - s.p);
}

size_t str_find_char(struct str s, char c)
{
    const char *hit = s.n == 0 ? NULL : memchr(s.p, c, s.n);
    return hit == NULL ? SIZE_MAX : (size_t)(hit - s.p);
}

size_t str_rfind_char(struct str s, char c)
{
    const char *hit = s.n == 0 ? NULL : memrchr(s.p, c, s.n);
    return hit == NULL ? SIZE_MAX : (size_t)(hit - s.p);
}

bool str_cut_suffix(struct str s, struct str suffix, struct str *ret_rest)
{
    bool has = str_ends(s, suffix);
    *ret_rest = has ? str_sub(s, 0, s.n - suffix.n) : s;
    return has;
}

bool str_cut_prefix(struct str s, struct str prefix, struct str *ret_rest)
{
    bool has = str_starts(s, prefix);
    *ret_rest = has ? str_sub(s, prefix.n, s.n - prefix.n) : s;
    return has;
}

bool str_cut(struct str s, struct str sep, struct str *ret_left, struct str *ret_right)
{
    size_t at = str_find(s, sep);
    if (at == SIZE_MAX) {
        *ret_left = s;
        *ret_right = STR_NONE;
        return false;
    }
    *ret_left = str_sub(s, 0, at);
    *ret_right = str_sub(s, at + sep.n, s.n - at - sep.n);
    return true;
}

bool str_split_next(struct str *rest, char sep, struct str *ret_piece)
{
    if (rest->p == NULL) {
        return false;
    }
    size_t at = str_find_char(*rest, sep);
    if (at == SIZE_MAX) {
        *ret_piece = *rest;
        *rest = STR_NONE;
        return true;
    }
    *ret_piece = str_sub(*rest, 0, at);
    *rest = str_sub(*rest, at + 1, rest->n - at - 1);
    return true;
}

static bool str_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.n > 0 && str_is_space(s.p[0])) {
        s = str_sub(s, 1, s.n - 1);
    }
    while (s.n > 0 && str_is_space(s.p[s.n - 1])) {
        s.n--;
    }
    return s;
}

bool str_to_u64(struct str s, uint64_t *ret)
{
    uint64_t value = 0;
    if (s.n == 0) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') {
            return false;
        }
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.p[i] - '0'), &value)) {
            return false;
        }
    }
    *ret = value;
    return true;
}

bool str_to_u32(struct str s, uint32_t *ret)
{
    uint64_t value;
    if (!str_to_u64(s, &value) || value > UINT32_MAX) {
        return false;
    }
    *ret = (uint32_t)value;
    return true;
}

bool str_to_i64(struct str s, int64_t *ret)
{
    struct str digits;
    bool negative = str_cut_prefix(s, STR("-"), &digits);
    uint64_t value;
    if (!str_to_u64(digits, &value) || value > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    *ret = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool str_to_f64(struct str s, double *ret)
{
    char text[512];
    if (s.n == 0 || s.n >= sizeof(text) || str_is_space(s.p[0])) {
        return false;
    }
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (end != text + s.n || !isfinite(value)) {
        return false;
    }
    *ret = value;
    return true;
}
