/*
 * gval_value: the values of expressions over a query's result, and the operators on them.
 *
 * Converts between kinds as the original's library (gval) does: a text that is a number is one to
 * an operator that wants numbers, numbers other than 0 are true, and what cannot be compared as
 * numbers is compared as text. Dates are compared as instants.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/timestamp.h"

enum gval_kind { GVAL_NIL, GVAL_BOOL, GVAL_NUMBER, GVAL_TEXT, GVAL_DATE, GVAL_LIST };

struct gval_value {
    enum gval_kind kind;
    bool yes;
    double number;
    struct str text;
    struct timestamp date;
    uint32_t n;
    const struct gval_value *items;
};

enum gval_op {
    GVAL_OP_COALESCE, /* a ?? b */
    GVAL_OP_OR,
    GVAL_OP_AND,
    GVAL_OP_EQ,
    GVAL_OP_NE,
    GVAL_OP_GE,
    GVAL_OP_GT,
    GVAL_OP_LE,
    GVAL_OP_LT,
    GVAL_OP_MATCH,  /* =~ */
    GVAL_OP_DIFFER, /* !~ */
    GVAL_OP_IN,
    GVAL_OP_XOR,
    GVAL_OP_BITAND,
    GVAL_OP_BITOR,
    GVAL_OP_SHL,
    GVAL_OP_SHR,
    GVAL_OP_ADD,
    GVAL_OP_SUB,
    GVAL_OP_MUL,
    GVAL_OP_DIV,
    GVAL_OP_MOD,
    GVAL_OP_POW,
    GVAL_OP_COUNT,
};

/* How operators are written and how tightly they bind. */
extern const struct gval_op_rule {
    struct str text;
    uint8_t power;
} gval_op_rules[GVAL_OP_COUNT];

struct gval_value gval_value_bool(bool yes);
struct gval_value gval_value_number(double number);
struct gval_value gval_value_text(struct str text);
/* The layouts of ISO 8601 and RFC 3339, in UTC where they have no offset. */
NODISCARD
int gval_value_date(struct str text, struct gval_value *ret, struct err *err);

bool gval_value_to_bool(const struct gval_value *v, bool *ret);
bool gval_value_to_number(const struct gval_value *v, double *ret);
/* As Go's %v has it. */
struct str gval_value_print(const struct gval_value *v, struct arena *out);
bool gval_value_is_zero(const struct gval_value *v);
const char *gval_value_type(const struct gval_value *v); /* in Go's words */

/* Both sides are evaluated; =~ and !~ are not for here. Text of the result is in `out`. */
NODISCARD
int gval_value_infix(enum gval_op op, const struct gval_value *a, const struct gval_value *b,
                     struct arena *out, struct gval_value *ret, struct err *err);
/* '!', '-' or '~'. */
NODISCARD
int gval_value_prefix(char sign, const struct gval_value *a, struct arena *out,
                      struct gval_value *ret, struct err *err);
