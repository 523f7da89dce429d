/*
 * gval_lex: the words of an expression over a query's result, cut as Go's text/scanner cuts them.
 *
 * Signs are single characters: which of them belong together depends on whether an operand or an
 * operator is wanted ("!~" is one operator, and two in front of an operand).
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum gval_lex_kind {
    GVAL_TOKEN_END,
    GVAL_TOKEN_NUMBER,
    GVAL_TOKEN_TEXT, /* `value` is the text without its quotes */
    GVAL_TOKEN_NAME,
    GVAL_TOKEN_SIGN,
};

struct gval_lex_token {
    enum gval_lex_kind kind;
    char sign;       /* GVAL_TOKEN_SIGN: its character */
    struct str text; /* as it was written */
    struct str value;
};

struct gval_lex {
    struct str text;
    size_t at;
};

/* `value` is in `out`. Fails on a text literal that is not one; the place is token.text then. */
NODISCARD
int gval_lex_next(struct gval_lex *lex, struct arena *out, struct gval_lex_token *ret,
                  struct err *err);
