/*
 * ucfg_value: a value of a configuration file, as go-ucfg keeps it: text that names variables stays
 * unresolved until somebody asks, and a mapping can have items like a list, for names that are
 * numbers are indexes.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum ucfg_value_kind {
    UCFG_VALUE_NULL,
    UCFG_VALUE_BOOL,
    UCFG_VALUE_INT,  /* below 0 */
    UCFG_VALUE_UINT, /* 0 and above */
    UCFG_VALUE_FLOAT,
    UCFG_VALUE_STR,
    UCFG_VALUE_VARIABLES, /* text with variables */
    UCFG_VALUE_OBJ,       /* a mapping or a list */
};

struct ucfg_vars;

struct ucfg_value {
    enum ucfg_value_kind kind;
    bool truth;   /* UCFG_VALUE_BOOL */
    bool list;    /* UCFG_VALUE_OBJ: it was written as a list */
    bool dynamic; /* it came out of a variable */
    bool shared;  /* that variable is a key of the file */
    int64_t integer;
    uint64_t natural;
    double real;
    struct str text;                   /* UCFG_VALUE_STR, and UCFG_VALUE_VARIABLES as written */
    const struct ucfg_vars *variables; /* UCFG_VALUE_VARIABLES */
    struct pos pos;
    struct str path; /* "profiles.0.name" */
    uint32_t member_n;
    struct ucfg_value_member {
        struct str name;
        struct pos pos;
        struct ucfg_value *value;
    } * members; /* of a name that comes twice the last one counts */
    uint32_t item_n;
    struct ucfg_value **items; /* none is NULL */
};

/* An integer as strconv reads it with base 0: 0x1f, 0o17, 017, 0b11, 1_000, a sign before it. */
bool ucfg_value_read_integer(struct str text, struct ucfg_value *ret);
/* The kind as messages say it: "a string", "a mapping". */
const char *ucfg_value_kind_name(const struct ucfg_value *v);
/* The text of a scalar; false for a mapping or a list. */
bool ucfg_value_text(const struct ucfg_value *v, struct arena *out, struct str *ret);
