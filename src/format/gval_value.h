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

enum promkind { PROM_NIL, PROM_BOOL, PROM_NUMBER, PROM_TEXT, PROM_DATE, PROM_LIST };

struct promvalue {
    enum promkind kind;
    bool yes;
    double number;
    struct str text;
    struct timestamp date;
    uint32_t n;
    const struct promvalue *items;
};

enum promop {
    PROMOP_COALESCE, /* a ?? b */
    PROMOP_OR,
    PROMOP_AND,
    PROMOP_EQ,
    PROMOP_NE,
    PROMOP_GE,
    PROMOP_GT,
    PROMOP_LE,
    PROMOP_LT,
    PROMOP_MATCH,  /* =~ */
    PROMOP_DIFFER, /* !~ */
    PROMOP_IN,
    PROMOP_XOR,
    PROMOP_BITAND,
    PROMOP_BITOR,
    PROMOP_SHL,
    PROMOP_SHR,
    PROMOP_ADD,
    PROMOP_SUB,
    PROMOP_MUL,
    PROMOP_DIV,
    PROMOP_MOD,
    PROMOP_POW,
    PROMOP_COUNT,
};

/* How operators are written and how tightly they bind. */
extern const struct promop_rule {
    struct str text;
    uint8_t power;
} promop_rules[PROMOP_COUNT];

struct promvalue promvalue_bool(bool yes);
struct promvalue promvalue_number(double number);
struct promvalue promvalue_text(struct str text);
/* The layouts of ISO 8601 and RFC 3339, in UTC where they have no offset. */
NODISCARD
int promvalue_date(struct str text, struct promvalue *ret, struct err *err);

bool promvalue_to_bool(const struct promvalue *v, bool *ret);
bool promvalue_to_number(const struct promvalue *v, double *ret);
/* As Go's %v has it. */
struct str promvalue_print(const struct promvalue *v, struct arena *out);
bool promvalue_is_zero(const struct promvalue *v);
const char *promvalue_type(const struct promvalue *v); /* in Go's words */

/* Both sides are evaluated; =~ and !~ are not for here. Text of the result is in `out`. */
NODISCARD
int promvalue_infix(enum promop op, const struct promvalue *a, const struct promvalue *b,
                    struct arena *out, struct promvalue *ret, struct err *err);
/* '!', '-' or '~'. */
NODISCARD
int promvalue_prefix(char sign, const struct promvalue *a, struct arena *out, struct promvalue *ret,
                     struct err *err);
