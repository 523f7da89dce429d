/*
 * json: reading. A document becomes a flat tape of 16-byte values; strings are slices of the input
 * where they hold no escape.
 *
 * The tape lives in an arena, the input must live as long. A value's children follow it on the
 * tape, so navigation is pointer arithmetic and freeing is free. Of duplicate keys the last one
 * counts, as in Go. Numbers keep their text: 64-bit integers stay exact. json_tree.h edits JSON,
 * json_writer.h writes it, json_items.h reads a long list one item at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum jkind { JNULL, JBOOL, JNUM, JSTR, JARR, JOBJ };

struct jval {
    const char *p; /* JSTR: decoded bytes; JNUM: its text; otherwise where it begins in the input */
    uint32_t n;    /* JSTR, JNUM: bytes; JARR: elements; JOBJ: members; JBOOL: 0 or 1 */
    uint32_t tag;  /* kind in the low 3 bits, cells spanned (itself included) above */
};

enum json_flags {
    JSON_GO = 1 << 0, /* as encoding/json: invalid UTF-8 and lone surrogates become U+FFFD instead
                         of errors */
    JSON_TRAILING = 1 << 1, /* stop after the first value; what follows is not looked at */
};

/* `*ret` is the root value. Errors carry line and column, and say what was found and what was
 * wanted. */
NODISCARD
int json_parse(struct str text, unsigned flags, struct arena *out, const struct jval **ret,
               struct err *err);

/* Where `at` bytes into `text` is, for messages. */
struct pos json_pos(struct str text, size_t at);

/* All readers accept NULL and answer "absent", so that paths can be walked without a check at each
 * step. */
enum jkind jval_kind(const struct jval *v); /* JNULL for NULL */
const char *jkind_name(enum jkind kind);    /* "an object", "a string", … */
uint32_t jval_span(const struct jval *v);

/* Iterates over elements, or over members: then `v` is the value and jval_key(v) its name. */
const struct jval *jval_first(const struct jval *parent);
const struct jval *jval_next(const struct jval *parent, const struct jval *v);
struct str jval_key(const struct jval *v); /* of a member that the iteration or a lookup gave */

#define JVAL_EACH(parent, v)                                                                       \
    for (const struct jval *v##_parent_ = (parent), *v = jval_first(v##_parent_); v != NULL;       \
         v = jval_next(v##_parent_, v))

/* NULL when absent, or when `v` is no object. */
const struct jval *jval_get(const struct jval *v, struct str key);
/* A path of member names separated by '.', for names without dots: jval_at(v, "metadata.name"). */
const struct jval *jval_at(const struct jval *v, const char *path);

/* The string, or STR_NONE when it is none. */
struct str jval_str(const struct jval *v);
bool jval_bool(const struct jval *v, bool otherwise);
/* An RFC 3339 timestamp as microseconds since 1970; `otherwise` when it is none. */
usec_t jval_time(const struct jval *v, usec_t otherwise);
bool jval_i64(const struct jval *v, int64_t *ret);
bool jval_f64(const struct jval *v, double *ret);
bool jval_eq(const struct jval *a,
             const struct jval *b); /* as JSON values; member order does not matter */
