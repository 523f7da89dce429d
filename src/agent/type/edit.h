/*
 * edit: what the types share that own a part of a text file. Each has one pure function from the
 * text that is there to the text that should be; the rest is the same for all.
 */
#pragma once

#include "agent/resource.h"

struct original;

/* `text` is empty when the file is missing. */
typedef int (*edit_fn)(struct resource_call *call, const void *ctx, struct str text,
                       struct str *ret, struct err *err);

struct edit {
    struct str path;
    edit_fn fn;
    const void *ctx;   /* handed to fn */
    bool create;       /* a file that is missing is made */
    bool remove_empty; /* a file of which nothing is left is removed */
    bool missing_is_right;
};

/* From the fields `path` and `create`. */
struct edit edit_of_fields(const struct resource *r, edit_fn fn, const void *ctx, bool absent);

/* `check` and `apply` of a type whose `prepared` begins with its struct edit. */
int edit_check_own(struct resource_call *call, struct err *err);
int edit_apply_own(struct resource_call *call, struct err *err);

/* Adds the difference, if there is one. */
NODISCARD
int edit_check(struct resource_call *call, const struct edit *edit, struct err *err);
NODISCARD
int edit_apply(struct resource_call *call, const struct edit *edit, struct err *err);
/* The text; empty and false when the file is missing. */
NODISCARD
int edit_read(struct resource_call *call, struct str path, struct str *ret, bool *ret_exists,
              struct err *err);
/* Notes what comes before: the file, and its folder. */
NODISCARD
int edit_prepare(struct resource_prepare *p, struct str path, struct err *err);

/* {"had":true,"text":…,"file":true}: what save notes, and restore finds. */
struct edit_original {
    bool had;        /* the part was there */
    struct str text; /* as it was */
    bool file;       /* the file was there */
};
void edit_save(struct resource_call *call, const struct edit_original *o, struct original *ret);
NODISCARD
int edit_load(struct resource_call *call, const struct original *original,
              struct edit_original *ret, struct err *err);
/* Puts the part back, by `fn`; a file that was not there before goes with the last of its text. */
NODISCARD
int edit_restore(struct resource_call *call, const struct edit_original *o, edit_fn fn,
                 const void *ctx, struct err *err);
