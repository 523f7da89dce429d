/*
 * template_func: the functions a Go template has by itself, and the methods of the values it sees.
 *
 * `and` and `or` are in the table for their names and counts only: what they take is evaluated one
 * by one, so running them is template.c's.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "format/govalue.h"

struct tcall {
    struct arena *tmp;
    const struct goval *args; /* of a method: behind the receiver, which is the first */
    uint32_t n;
    int part; /* of a method: which of those that `run` serves */
    struct goval *ret;
    struct err *err;
};

struct tfunc {
    struct str name;
    uint32_t least;
    uint32_t most;
    int (*run)(struct tcall *c); /* NULL: and, or */
};

struct tmethod {
    enum gokind kind;
    int part;                  /* which of those that `run` serves */
    const struct gotype *type; /* NULL: any of the kind */
    struct str name;
    const char *args; /* one letter each: s string, i integer, t time */
    int (*run)(struct tcall *c);
};

const struct tfunc *tfunc_find(struct str name); /* NULL: there is none */
const struct tmethod *tmethod_find(const struct goval *receiver, struct str name);
NODISCARD
int tmethod_call(const struct tmethod *m, struct tcall *c);
