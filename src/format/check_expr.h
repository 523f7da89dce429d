/*
 * check_expr: check expressions: names of check instances joined by "&&", "||", "!" and
 * parentheses.
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

#define CHECK_EXPR_BYTES_MAX 4096u /* no line that people write is longer */
#define CHECK_EXPR_NODES_MAX 512u  /* names and operators; bounds the time of one evaluation */
#define CHECK_EXPR_DEPTH_MAX 64u   /* of '(' and '!'; bounds the parser's stack */

enum check_expr_kind {
    CHECK_EXPR_NAME,
    CHECK_EXPR_CONSTANT,
    CHECK_EXPR_NOT,
    CHECK_EXPR_AND,
    CHECK_EXPR_OR
};

struct check_expr_node {
    enum check_expr_kind kind;
    bool value; /* CHECK_EXPR_CONSTANT */
    uint32_t
        var; /* CHECK_EXPR_NAME, CHECK_EXPR_CONSTANT: which of the expression's names stands here */
    uint32_t left;  /* CHECK_EXPR_AND, CHECK_EXPR_OR: nodes before this one */
    uint32_t right; /* CHECK_EXPR_AND, CHECK_EXPR_OR, CHECK_EXPR_NOT */
};

struct check_expr {
    struct str text;
    uint32_t n;                    /* 0: the empty expression, which always passes */
    struct check_expr_node *nodes; /* operands before their operators; the last one is the root */
    uint32_t var_n;
    struct check_expr_var {
        struct str name;
        uint32_t index; /* of the instance, as struct instance_names gave it */
    } * vars;           /* each name once, in order of appearance */
    uint32_t run_n;
    uint32_t *runs; /* the vars in the order in which they run, repeats included */
};

enum check_expr_verdict { CHECK_EXPR_FALSE, CHECK_EXPR_TRUE, CHECK_EXPR_FAILED };

/* All text of the result is copied into `out`; err->pos is the place within `text`. */
NODISCARD
int check_expr_parse(struct str text, const struct instance_names *names, struct arena *out,
                     struct check_expr *ret, struct err *err);

/* `verdicts` has one for each of e->vars. If one failed, nothing is evaluated: -ERR_INVALID, and
 * the message lists the failed instances in the order in which they ran. */
NODISCARD
int check_expr_eval(const struct check_expr *e, const enum check_expr_verdict *verdicts, bool *ret,
                    struct err *err);

/* The canonical text: single spaces, no parentheses that change nothing. */
void check_expr_print(const struct check_expr *e, struct buf *out);
