/*
 * template_func: the functions a Go template has by itself, and the methods of the values it sees.
 *
 * `and` and `or` are in the table for their names and counts only: what they take is evaluated one
 * by one, so template.c runs them.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "format/govalue.h"

struct tcall {
    struct arena *tmp;
    const struct govalue *args; /* of a method: behind the receiver, which is the first */
    uint32_t n;
    int part; /* of a method: which of those that `run` serves */
    struct govalue *ret;
    struct err *err;
};

struct template_func {
    struct str name;
    uint32_t least;
    uint32_t most;
    int (*run)(struct tcall *c); /* NULL: and, or */
};

struct template_method {
    enum gokind kind;
    int part;                  /* which of those that `run` serves */
    const struct gotype *type; /* NULL: any of the kind */
    struct str name;
    const char *args; /* one letter each: s string, i integer, t time */
    int (*run)(struct tcall *c);
};

const struct template_func *template_func_find(struct str name); /* NULL: there is none */
const struct template_method *template_method_find(const struct govalue *receiver, struct str name);
NODISCARD
int template_method_call(const struct template_method *m, struct tcall *c);
