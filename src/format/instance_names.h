/*
 * instance_names: the instances that a check expression or a chain may name.
 *
 * The reader of the configuration fills this in, so that format/ can resolve names without knowing
 * what an instance is.
 */
#pragma once

#include "base/err.h"

struct instance_names {
    /* Answers whether there is an instance of that name, and its number among its kind. */
    bool (*find)(void *ctx, struct str name, uint32_t *ret_index);
    /* The name that was probably meant; empty when none is near. May be NULL. */
    struct str (*closest)(void *ctx, struct str name);
    void *ctx;
    const char *kind; /* "check", "trigger" or "notification", as messages say it */
};

/* Returns -ERR_NOTFOUND, with the sentence that operators know from the original. */
int instance_names_unknown(const struct instance_names *names, struct str name, struct err *err);
