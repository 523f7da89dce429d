/*
 * check_expr: check expressions: names of check instances joined by "&&", "||", "!" and parentheses.
 *
 * Reads what the original reads: "!" binds tighter than "&&", "&&" tighter than "||", and only the
 * space separates words, so that a tab or a line break is an error with a name and a place. More
 * is read than there: "a&&b" without spaces, and names with '-' and '.'. Words that are numbers,
 * "true" and "false" are constants there even if an instance has that name; a configuration that
 * relied on it must not begin to act, so they are here too, and the instance still runs.
 *
 * Nothing is short-circuited: each occurrence of a name runs, from left to right, before the
 * expression is evaluated.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "format/instance_names.h"

#define EXPR_BYTES_MAX 4096u /* no line that people write is longer */
#define EXPR_NODES_MAX 512u  /* names and operators; bounds the time of one evaluation */
#define EXPR_DEPTH_MAX 64u   /* of '(' and '!'; bounds the parser's stack */

enum expr_kind { EXPR_NAME, EXPR_CONSTANT, EXPR_NOT, EXPR_AND, EXPR_OR };

struct expr_node {
    enum expr_kind kind;
    bool value;     /* EXPR_CONSTANT */
    uint32_t var;   /* EXPR_NAME, EXPR_CONSTANT: which of the expression's names stands here */
    uint32_t left;  /* EXPR_AND, EXPR_OR: nodes before this one */
    uint32_t right; /* EXPR_AND, EXPR_OR, EXPR_NOT */
};

struct expr {
    struct str text;
    uint32_t n;              /* 0: the empty expression, which always passes */
    struct expr_node *nodes; /* operands before their operators; the last one is the root */
    uint32_t var_n;
    struct expr_var {
        struct str name;
        uint32_t index; /* of the instance, as struct names gave it */
    } * vars;           /* each name once, in order of appearance */
    uint32_t run_n;
    uint32_t *runs; /* the vars in the order in which they run, repeats included */
};

enum expr_verdict { EXPR_FALSE, EXPR_TRUE, EXPR_FAILED };

/* All text of the result is copied into `out`; err->pos is the place within `text`. */
NODISCARD
int expr_parse(struct str text, const struct names *names, struct arena *out, struct expr *ret,
               struct err *err);

/* `verdicts` has one for each of e->vars. If one failed, nothing is evaluated: -ERR_INVALID, and
 * the message lists the failed instances in the order in which they ran. */
NODISCARD
int expr_eval(const struct expr *e, const enum expr_verdict *verdicts, bool *ret, struct err *err);

/* The canonical text: single spaces, no parentheses that change nothing. */
void expr_print(const struct expr *e, struct buf *out);
