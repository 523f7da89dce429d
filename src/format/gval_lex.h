/*
 * gval_lex: the words of an expression over a query's result, cut as Go's text/scanner cuts them.
 *
 * Signs are single characters: which of them belong together depends on whether an operand or an
 * operator is wanted ("!~" is one operator, and two in front of an operand).
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum promlex_kind {
    PROMLEX_END,
    PROMLEX_NUMBER,
    PROMLEX_TEXT, /* `value` is the text without its quotes */
    PROMLEX_NAME,
    PROMLEX_SIGN,
};

struct promlex_token {
    enum promlex_kind kind;
    char sign;       /* PROMLEX_SIGN: its character */
    struct str text; /* as it was written */
    struct str value;
};

struct promlex {
    struct str text;
    size_t at;
};

/* `value` is in `out`. Fails on a text literal that is not one; the place is token.text then. */
NODISCARD
int promlex_next(struct promlex *lex, struct arena *out, struct promlex_token *ret,
                 struct err *err);
