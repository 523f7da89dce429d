/*
 * gval: expressions over the one number that a Prometheus query returned: "value < 0.5".
 *
 * The language of the original's library (gval): numbers, texts, lists, arithmetic, comparison,
 * logic, bits, regular expressions, "in", "? :", "??", date(). Operators of equal strength
 * associate to the left, and a prefix operator takes the next operand only. Constant parts are
 * evaluated when they are read, so that their mistakes are found then; names other than `value` are
 * mistakes only when they are evaluated, as "true || unknown" is no mistake there. Not read:
 * objects, which say nothing about a number, and of date()'s layouts those with names of days or
 * hours of one digit.
 *
 * No part is evaluated twice, so the limits on the text bound the time.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define GVAL_BYTES_MAX 4096u /* no line that people write is longer */
#define GVAL_WORDS_MAX 1024u /* and signs; bounds the evaluation's stack */
#define GVAL_DEPTH_MAX 64u   /* of brackets and prefix operators; bounds the parser's stack */

struct gval {
    struct str text;
    const struct gval_node *root;
};

/* The result is in `out` as a whole; err->pos is the place within `text`. */
NODISCARD
int gval_parse(struct str text, struct arena *out, struct gval *ret, struct err *err);

/* Whether the expression holds. Numbers other than 0 are true, NaN among them. */
NODISCARD
int gval_eval(const struct gval *e, double value, struct arena *tmp, bool *ret, struct err *err);
