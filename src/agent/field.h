/*
 * field: what a resource is made of, as a table: the name of each field, what it holds, what it is
 * when nothing is given, and a line of help.
 *
 * Reading, messages and the reference page come from the same table, so that they cannot disagree.
 */
#pragma once

#include "base/arena.h"
#include "format/yaml.h"

#define FIELD_TEXT_MAX ((size_t)1024 * 1024) /* contents above belong into a file of their own */
#define FIELD_ITEMS_MAX 256u                 /* of a list */

enum field_kind {
    FIELD_TEXT,     /* text */
    FIELD_SCALAR,   /* text; a number or a truth value counts as it is written */
    FIELD_WORD,     /* likewise without truth values: an unquoted off must not become false */
    FIELD_PATH,     /* text: absolute, without "." and ".." */
    FIELD_CHOICE,   /* text, one of `choices` */
    FIELD_REGEX,    /* text: a regular expression */
    FIELD_MODE,     /* number: permissions, from octal digits in quotes */
    FIELD_BOOL,     /* truth */
    FIELD_INT,      /* number */
    FIELD_DURATION, /* number: microseconds */
    FIELD_TEXTS,    /* items */
    FIELD_OBJECT,   /* text: an object as JSON */
};

struct field {
    const char *name;
    enum field_kind kind;
    bool required;
    const char *initial; /* the default, as a user would write it; NULL = nothing */
    const char *choices; /* FIELD_CHOICE: "present|absent" */
    const char *help;
};

struct field_table {
    const struct field *items;
    uint32_t n;
};

#define FIELD_TABLE(array)                                                                         \
    {                                                                                              \
        .items = (array), .n = ARRAY_LEN(array)                                                    \
    }

/* What a field holds, in the order of its table. */
struct field_value {
    bool given;
    struct str text;
    bool truth;
    int64_t number;
    const struct str *items;
    uint32_t item_n;
};

/* Reads one value. The message says what was found and what is wanted, and begins with the name of
 * the field. */
NODISCARD
int field_read(const struct field *field, const struct jval *v, struct arena *out,
               struct field_value *ret, struct err *err);

/* Reads the members of `object` that the table has, and sets the defaults of the others. Members
 * that it has not are left to the caller. `*ret_bad` is the member that is wrong, or NULL. */
NODISCARD
int field_read_all(const struct field_table *table, const struct jval *object, struct arena *out,
                   struct field_value **ret, const struct jval **ret_bad, struct err *err);

/* NULL: the table has none. */
const struct field *field_find(const struct field_table *table, struct str name);
/* The value of a field that the table has. */
const struct field_value *field_get(const struct field_table *table,
                                    const struct field_value *values, const char *name);

/* "one of present, absent", "text", …: what stands behind "want" and on the reference page. */
struct str field_wanted(const struct field *field, struct arena *out);

/* An absolute path as FIELD_PATH takes it. */
NODISCARD
int field_check_path(struct str path, struct err *err);
