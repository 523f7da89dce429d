/*
 * govalue: values as a Go template sees them: text, numbers, lists, maps, times, quantities and the
 * fields of a Node under their Go names.
 *
 * A value made of JSON is opened one level at a time. What JSON leaves out is the zero of its Go
 * type, as in Go's structs; a pointer is its target, or nil. Values borrow from the JSON they were
 * made of and from the arena that was given.
 */
#pragma once

#include "base/timestamp.h"
#include "format/json.h"

enum gokind {
    GO_NONE, /* no value at all: a missing key, or nil as an argument */
    GO_NIL,  /* a nil pointer of some type */
    GO_BOOL,
    GO_INT,
    GO_FLOAT,
    GO_COMPLEX,
    GO_STRING,
    GO_SLICE,
    GO_MAP,
    GO_STRUCT,
    GO_TIME,
    GO_QUANTITY,
};

struct gotype;
struct gomember;

struct govalue {
    enum gokind kind;
    uint32_t n;                     /* of `items` or `members` */
    const struct gotype *type;      /* NULL: what Go calls the kind itself */
    const struct gomember *members; /* a map's, by name; a struct's that is not JSON; a string's */
    union {
        bool truth;
        int64_t number;
        double parts[2]; /* GO_FLOAT: the first; GO_COMPLEX: real and imaginary */
        struct str text; /* GO_STRING; GO_QUANTITY: as it was written */
        struct timestamp time;
        const struct govalue *items; /* NULL: a nil slice */
        const struct jval *json;     /* GO_STRUCT; NULL with no members: all zero */
    };
};

struct gomember {
    struct str name;
    struct govalue value;
};

/* One Go type. Values without fields and without a type name of their own have none. */
struct gotype {
    const char *name;
    enum gokind kind;
    bool pointer;                 /* JSON null, or nothing, is GO_NIL */
    const struct gotype *item;    /* of a slice, or of a map from strings */
    const struct gofield *fields; /* of a struct; the last has no name */
};

struct gofield {
    const char *name;
    const char *path; /* from the struct's JSON; "" is the struct's own */
    const struct gotype *type;
    enum { GOFIELD_PLAIN, GOFIELD_EMBEDDED, GOFIELD_METHOD } role;
};

extern const struct gotype gotype_node; /* v1.Node */
extern const struct gotype gotype_uint8;
extern const struct gotype gotype_duration;
extern const struct gotype gotype_month;
extern const struct gotype gotype_weekday;
extern const struct gotype gotype_resources; /* v1.ResourceList */

struct govalue govalue_str(struct str text);
struct govalue govalue_bool(bool truth);
struct govalue govalue_i64(int64_t number);
struct govalue govalue_time(struct timestamp time);
/* A struct of these members; borrowed. */
struct govalue govalue_struct(const struct gomember *members, uint32_t n);
/* Behaves as the text, and has members besides: `.Profile` and `.Profile.Last`. */
struct govalue govalue_str_with(struct str text, const struct gomember *members, uint32_t n);
struct govalue govalue_from(const struct gotype *type, const struct jval *json, struct arena *a);

const char *govalue_type_name(const struct govalue *v);
bool govalue_truth(const struct govalue *v);
bool govalue_is_nil(const struct govalue *v); /* nil pointer, slice, map or nothing */
/* A struct's field or a map's entry; false when there is none. */
bool govalue_member(const struct govalue *v, struct str name, struct arena *a, struct govalue *ret);
/* The struct's i-th field for printing, in Go's order; false behind the last. */
bool govalue_field_at(const struct govalue *v, uint32_t i, struct arena *a, struct gomember *ret);
