/*
 * template_lex: the tokens of a Go template, and what its literals mean.
 *
 * Blanks inside actions are tokens: "{{.a .b}}" has two operands and "{{.a.b}}" one. The text
 * around actions comes trimmed as their "{{-" and "-}}" say; comments are gone.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "format/govalue.h"

enum ttoken_kind {
    TOKEN_EOF,
    TOKEN_TEXT,
    TOKEN_LEFT,  /* "{{" */
    TOKEN_RIGHT, /* "}}" */
    TOKEN_SPACE,
    TOKEN_ASSIGN,
    TOKEN_DECLARE,
    TOKEN_PIPE,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_CHAR, /* any other character that can be printed */
    TOKEN_STRING,
    TOKEN_RAW,
    TOKEN_RUNE, /* 'x' */
    TOKEN_NUMBER,
    TOKEN_DOT,
    TOKEN_FIELD,    /* ".name" */
    TOKEN_VARIABLE, /* "$name" or "$" */
    TOKEN_WORD,
    TOKEN_BOOL,
    TOKEN_NIL,
    TOKEN_BLOCK,
    TOKEN_BREAK,
    TOKEN_CONTINUE,
    TOKEN_DEFINE,
    TOKEN_ELSE,
    TOKEN_END,
    TOKEN_IF,
    TOKEN_RANGE,
    TOKEN_TEMPLATE,
    TOKEN_WITH,
};

struct ttoken {
    enum ttoken_kind kind;
    uint32_t at; /* where it begins in the template */
    struct str text;
};

/* All tokens of the template, with TOKEN_EOF at the end. */
NODISCARD
int tlex(struct str text, struct arena *tmp, struct ttoken **ret, struct err *err);

/* What a string, rune or number stands for. A number too large for Go's int is GO_NONE: to Go that
 * is an error only once it is used. */
NODISCARD
int template_lex_value(struct str text, const struct ttoken *token, struct arena *out,
                       struct govalue *ret, struct err *err);

/* The failure with the place in `text` put before it. */
int template_lex_fail(struct err *err, struct str text, size_t at, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
