/*
 * ucfg_value: a value of a configuration file, as go-ucfg keeps it: text that names variables stays
 * unresolved until somebody asks, and a mapping can have items like a list, for names that are
 * numbers are indexes.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum uval_kind {
    UVAL_NULL,
    UVAL_BOOL,
    UVAL_INT,  /* below 0 */
    UVAL_UINT, /* 0 and above */
    UVAL_FLOAT,
    UVAL_STR,
    UVAL_SPLICE, /* text with variables */
    UVAL_OBJ,    /* a mapping or a list */
};

struct splice;

struct uval {
    enum uval_kind kind;
    bool truth;   /* UVAL_BOOL */
    bool list;    /* UVAL_OBJ: it was written as a list */
    bool dynamic; /* it came out of a variable */
    bool shared;  /* that variable is a key of the file */
    int64_t integer;
    uint64_t natural;
    double real;
    struct str text;             /* UVAL_STR, and UVAL_SPLICE as written */
    const struct splice *splice; /* UVAL_SPLICE */
    struct pos pos;
    struct str path; /* "profiles.0.name" */
    uint32_t member_n;
    struct uval_member {
        struct str name;
        struct pos pos;
        struct uval *value;
    } * members; /* of a name that comes twice the last one counts */
    uint32_t item_n;
    struct uval **items; /* none is NULL */
};

/* An integer as strconv reads it with base 0: 0x1f, 0o17, 017, 0b11, 1_000, a sign before it. */
bool uval_read_integer(struct str text, struct uval *ret);
/* The kind as messages say it: "a string", "a mapping". */
const char *uval_kind_name(const struct uval *v);
/* The text of a scalar; false for a mapping or a list. */
bool uval_text(const struct uval *v, struct arena *out, struct str *ret);
