/*
 * cel: the Common Expression Language, as far as validation rules of custom resources use it.
 *
 * Literals, members, indexes, operators, `in`, ?:, lists, has(), the macros all, exists,
 * exists_one, filter and map, size, startsWith, endsWith, contains, matches, duration, timestamp,
 * int, double and string. Values come from a JSON tree with its OpenAPI schema, which says what a
 * text is (a date-time is a timestamp, a duration a duration). There are no types before
 * evaluation: what a real server refuses when a rule is written fails here when it is evaluated.
 * Evaluation takes a bounded number of steps.
 */
#pragma once

#include "format/json_tree.h"

#define CEL_TEXT_MAX 4096u    /* a rule; those of people have some hundred bytes */
#define CEL_DEPTH_MAX 64u     /* expressions in each other */
#define CEL_STEPS_MAX 100000u /* of one evaluation: some thousand elements, several times over */

struct cel_program;

struct cel_input {
    const struct tree *self;
    const struct tree *old_self; /* NULL: there is none */
    const struct tree *schema;   /* of both; NULL: not known */
};

/* -ERR_INVALID with the place for what is no expression or not known here; -ERR_LIMIT. The text is
 * copied. */
NODISCARD
int cel_compile(struct str text, struct arena *a, const struct cel_program **ret, struct err *err);
/* Whether the expression looks at the state before: such a rule is about changes alone. */
bool cel_uses_old_self(const struct cel_program *program);
/* What a rule says. -ERR_INVALID when it is no boolean or something in it fails ("no such key: a");
 * -ERR_LIMIT when it takes too long. */
NODISCARD
int cel_evaluate(const struct cel_program *program, const struct cel_input *input,
                 struct arena *tmp, bool *ret, struct err *err);
