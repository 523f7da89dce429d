#include "format/glob.h"

/* The length of the part that stands for one byte; 0 when a bracket has no end. */
static size_t glob_part(struct str p)
{
    if (p.p[0] != '[') {
        return 1;
    }
    size_t i = 1;
    i += i < p.n && p.p[i] == '!' ? 1 : 0;
    i += i < p.n && p.p[i] == ']' ? 1 : 0; /* the first one is meant as itself */
    while (i < p.n && p.p[i] != ']') {
        i++;
    }
    return i < p.n ? i + 1 : 0;
}

static bool glob_part_has(struct str part, char c)
{
    if (part.p[0] != '[') {
        return part.p[0] == '?' || part.p[0] == c;
    }
    bool not = part.p[1] == '!';
    bool found = false;
    size_t end = part.n - 1;
    for (size_t i = not ? 2 : 1; i < end; i++) {
        unsigned char from = (unsigned char)part.p[i];
        unsigned char to = from;
        if (i + 2 < end && part.p[i + 1] == '-') {
            to = (unsigned char)part.p[i + 2];
            i += 2;
        }
        found = found || ((unsigned char)c >= from && (unsigned char)c <= to);
    }
    return found != not ;
}

int glob_check(struct str pattern, struct err *err)
{
    uint32_t stars = 0;
    if (pattern.n == 0 || pattern.n > GLOB_BYTES_MAX) {
        return err_set(err, ERR_INVALID, "a pattern of 1 to %u letters", GLOB_BYTES_MAX);
    }
    for (size_t i = 0; i < pattern.n;) {
        size_t n = glob_part(str_sub(pattern, i, pattern.n - i));
        if (n == 0) {
            return err_set(err, ERR_INVALID, "a pattern whose brackets are closed");
        }
        stars += pattern.p[i] == '*' ? 1 : 0;
        i += n;
    }
    if (stars > GLOB_STARS_MAX) {
        return err_set(err, ERR_INVALID, "a pattern of at most %u stars", GLOB_STARS_MAX);
    }
    return 0;
}

bool glob_match(struct str pattern, struct str text)
{
    struct err err = { 0 };
    if (glob_check(pattern, &err) < 0) {
        return false;
    }
    size_t p = 0;
    size_t t = 0;
    size_t star = SIZE_MAX; /* the last one, and how much of the text it has taken */
    size_t taken = 0;
    while (t < text.n) {
        size_t n = p < pattern.n ? glob_part(str_sub(pattern, p, pattern.n - p)) : 0;
        if (n > 0 && pattern.p[p] == '*') {
            star = p++;
            taken = t;
        } else if (n > 0 && glob_part_has(str_sub(pattern, p, n), text.p[t])) {
            p += n;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++taken;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*') {
        p++;
    }
    return p == pattern.n;
}
