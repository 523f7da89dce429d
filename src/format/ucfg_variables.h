/*
 * ucfg_variables: text with variables: "${NAME}", "${NAME:default}", "${NAME:+instead}",
 * "${NAME:?message}"; names and defaults may have variables in them. "$$" is '$', "$}" is '}', any
 * other '$' is itself.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define UCFG_VARS_DEPTH_MAX 16u /* of variables in variables; bounds the stack */

enum ucfg_vars_op { UCFG_VARS_PLAIN, UCFG_VARS_DEFAULT, UCFG_VARS_ALTERNATIVE, UCFG_VARS_MESSAGE };

struct ucfg_vars {
    uint32_t n;
    uint32_t cap;
    struct ucfg_vars_piece {
        bool variable;
        enum ucfg_vars_op op;
        struct str text;                 /* when it is no variable */
        const struct ucfg_vars *name;    /* of a variable */
        const struct ucfg_vars *operand; /* what stands behind ':' */
    } * pieces;
};

/* err->pos.column is the place within `text`, from 1. */
NODISCARD
int ucfg_vars_parse(struct str text, struct arena *out, struct ucfg_vars *ret, struct err *err);

/* Whether there is no variable in it; `*ret` is the text then. */
bool ucfg_vars_is_text(const struct ucfg_vars *s, struct arena *out, struct str *ret);
/* Whether it is one variable and nothing else, "${NAME}"; `*ret` is its name then. */
bool ucfg_vars_is_name(const struct ucfg_vars *s, struct str *ret);
