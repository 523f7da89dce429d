/*
 * ucfg: a configuration file and the conversion of its values, as go-ucfg on yaml.v2 does it.
 *
 * Any scalar is a string, a plain number of a duration is seconds, a scalar is a list of one.
 * Variables are resolved when a value is asked for, so one that is missing hurts only where it is
 * used. They are looked for among the keys of the file first, then in what the caller calls the
 * environment. Where go-ucfg computes nonsense (durations beyond 292 years wrap around, a chain of
 * two references is called a cycle) the answer here is the sensible one.
 */
#pragma once

#include "format/config_problems.h"
#include "format/ucfg_value.h"

#define UCFG_BYTES_MAX ((size_t)1024 * 1024) /* a ConfigMap cannot hold more */
#define UCFG_TEXT_MAX ((size_t)64 * 1024)    /* a value after its variables were replaced */
#define UCFG_STEPS_MAX 1000u                 /* variables looked up for one value */
#define UCFG_INDEX_MAX 1024u                 /* names up to this number are indexes */
#define UCFG_REFERENCE_MAX 32u               /* references to references; more is a cycle */

struct ucfg_env {
    bool (*find)(void *ctx, struct str name, struct str *ret); /* NULL: nothing is set */
    /* The bytes of a time zone's file (calendar/zone.h), in `out`; NULL: no zones are known. */
    int (*zone)(void *ctx, struct str name, struct arena *out, struct str *ret, struct err *err);
    void *ctx;
};

struct ucfg {
    struct str text; /* borrowed: from the caller, as long as problems are to be placed */
    const struct ucfg_value *root;
    struct ucfg_env env;
    struct arena *out; /* where everything lives */
};

/* -ERR_INVALID when it cannot be read; the reasons are among the problems. */
NODISCARD
int ucfg_load(struct str text, struct ucfg_env env, struct arena *out, struct ucfg *ret,
              struct problems *problems);

/* The value with its variables replaced, never UCFG_VALUE_VARIABLES. */
NODISCARD
int ucfg_resolve(const struct ucfg *u, const struct ucfg_value *v, struct ucfg_value *ret,
                 struct err *err);

/* NULL when there is none; `obj` may be NULL. */
const struct ucfg_value *ucfg_get(const struct ucfg_value *obj, struct str name);

/* All leave `*ret`, the default, alone when `v` is NULL or null. */
NODISCARD
int ucfg_str(const struct ucfg *u, const struct ucfg_value *v, struct str *ret, struct err *err);
NODISCARD
int ucfg_bool(const struct ucfg *u, const struct ucfg_value *v, bool *ret, struct err *err);
NODISCARD
int ucfg_int(const struct ucfg *u, const struct ucfg_value *v, int64_t *ret, struct err *err);
NODISCARD
int ucfg_duration(const struct ucfg *u, const struct ucfg_value *v, int64_t *ret_ns,
                  struct err *err);

struct ucfg_list {
    struct ucfg_value *items;
    uint32_t n;
    bool absent; /* there was no list at all */
};
/* A mapping has no items, so it is an empty list. */
NODISCARD
int ucfg_list(const struct ucfg *u, const struct ucfg_value *v, struct ucfg_list *ret,
              struct err *err);

struct ucfg_strs {
    struct str *items;
    uint32_t n;
};
NODISCARD
int ucfg_strs(const struct ucfg *u, const struct ucfg_value *v, struct ucfg_strs *ret,
              struct err *err);
/* `*ret` is NULL where nothing was given. A list passes as an object without members, as it does
 * for go-ucfg; `list` tells. */
NODISCARD
int ucfg_obj(const struct ucfg *u, const struct ucfg_value *v, const struct ucfg_value **ret,
             struct err *err);

/* The place within a scalar whose value is `text`, where the source shows it as it is; its
 * beginning otherwise. Columns of `within` are bytes, those of the answer characters. */
struct pos ucfg_place(const struct ucfg *u, const struct ucfg_value *v, struct str text,
                      struct pos within);
