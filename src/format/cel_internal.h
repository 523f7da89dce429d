/*
 * cel_internal: the expression that cel_parse.c makes and cel.c evaluates.
 */
#pragma once

#include "format/cel.h"

enum cel_op {
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_DOUBLE,
    CEL_TEXT,
    CEL_LIST,   /* items */
    CEL_NAME,   /* text */
    CEL_MEMBER, /* items[0] . text */
    CEL_HAS,    /* items[0] . text */
    CEL_INDEX,  /* items[0] [ items[1] ] */
    CEL_CALL,   /* text(items) */
    CEL_METHOD, /* items[0] . text(items[1…]) */
    CEL_MACRO,  /* items[0] . text(name, items[1]) */
    CEL_NOT,    /* ! */
    CEL_NEGATE, /* - */
    CEL_OR,     /* the others: items[0] op items[1] */
    CEL_AND,
    CEL_EQ,
    CEL_NE,
    CEL_LT,
    CEL_LE,
    CEL_GT,
    CEL_GE,
    CEL_IN,
    CEL_ADD,
    CEL_SUBTRACT,
    CEL_MULTIPLY,
    CEL_DIVIDE,
    CEL_MODULO,
    CEL_CHOOSE, /* items[0] ? items[1] : items[2] */
};

struct cel_node {
    enum cel_op op;
    bool truth;
    int64_t integer;
    double number;
    struct str text;
    struct str name; /* of a macro's variable */
    struct cel_node **items;
    uint32_t n;
    uint32_t cap;
};

struct cel_program {
    struct str text;
    const struct cel_node *root;
    bool uses_old_self;
};
