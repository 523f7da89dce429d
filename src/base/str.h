/*
 * str: a view of bytes. Not NUL-terminated, never owned.
 *
 * Whoever keeps a str keeps what it points into alive. `const char *` appears only towards libc.
 */
#pragma once

#include "base/defs.h"

struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){ .p = (literal), .n = sizeof(literal) - 1 })
/* For static initialisers, where a compound literal is no constant. */
#define STR_INIT(literal)                                                                          \
    {                                                                                              \
        .p = (literal), .n = sizeof(literal) - 1                                                   \
    }
#define STR_NONE ((struct str){ .p = NULL, .n = 0 })
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).n, (s).p

/* A view of a NUL-terminated string; NULL gives the empty view. */
struct str str_from(const char *text);
struct str str_sub(struct str s, size_t from, size_t n);

/* Inline: half of all that a store or a tree does is this. Most names of one length differ in
 * their first or last byte, which saves the call. */
static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || (a.p[0] == b.p[0] && a.p[a.n - 1] == b.p[a.n - 1] &&
                                       memcmp(a.p, b.p, a.n) == 0));
}
bool str_eq_fold(struct str a, struct str b); /* ASCII case is ignored */
int str_cmp(struct str a, struct str b);      /* byte order, as Go compares strings */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
bool str_contains(struct str s, struct str part);

/* Offset of the first hit, or SIZE_MAX. */
size_t str_find(struct str s, struct str part);
size_t str_find_char(struct str s, char c);
size_t str_rfind_char(struct str s, char c);

/* True when `s` has the suffix (prefix). `*ret_rest` is `s` without it; all of `s` when it has
 * none. */
bool str_cut_suffix(struct str s, struct str suffix, struct str *ret_rest);
bool str_cut_prefix(struct str s, struct str prefix, struct str *ret_rest);

/* Splits at the first `sep`: true and both sides, or false, `*ret_left` = s and `*ret_right` empty.
 */
bool str_cut(struct str s, struct str sep, struct str *ret_left, struct str *ret_right);

/* Walks over the pieces of `*rest` between separators, as Go's strings.Split does: "a," has the
 * pieces "a" and "", and the empty text has one empty piece. */
bool str_split_next(struct str *rest, char sep, struct str *ret_piece);

/* Without leading and trailing ASCII white space. */
struct str str_trim(struct str s);

/* Decimal digits only, all of them consumed, in range; `*ret` untouched otherwise. */
bool str_to_u32(struct str s, uint32_t *ret);
bool str_to_u64(struct str s, uint64_t *ret);
bool str_to_i64(struct str s, int64_t *ret); /* also a leading '-' */
/* What strtod takes in the C locale, all of it consumed, finite. */
bool str_to_f64(struct str s, double *ret);
