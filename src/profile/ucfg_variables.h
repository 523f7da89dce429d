/*
 * ucfg_variables: text with variables: "${NAME}", "${NAME:default}", "${NAME:+instead}",
 * "${NAME:?message}"; names and defaults may have variables in them. "$$" is '$', "$}" is '}', any
 * other '$' is itself.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define SPLICE_DEPTH_MAX 16u /* of variables in variables; bounds the stack */

enum splice_op { SPLICE_PLAIN, SPLICE_DEFAULT, SPLICE_INSTEAD, SPLICE_MESSAGE };

struct splice {
    uint32_t n;
    uint32_t cap;
    struct splice_piece {
        bool variable;
        enum splice_op op;
        struct str text;            /* when it is no variable */
        const struct splice *name;  /* of a variable */
        const struct splice *right; /* what stands behind ':' */
    } * pieces;
};

/* err->pos.column is the place within `text`, from 1. */
NODISCARD
int splice_parse(struct str text, struct arena *out, struct splice *ret, struct err *err);

/* Whether there is no variable in it; `*ret` is the text then. */
bool splice_is_text(const struct splice *s, struct arena *out, struct str *ret);
/* Whether it is one variable and nothing else, "${NAME}"; `*ret` is its name then. */
bool splice_is_name(const struct splice *s, struct str *ret);
