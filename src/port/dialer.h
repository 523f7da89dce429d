/*
 * dialer: the door to clusters that are found at run time: an api from the text of a kubeconfig.
 *
 * The text comes from a Secret that others write, so it is taken as a stranger's: what names a file
 * or a program on this machine is refused. Dialling opens no connection and never waits; whether
 * anybody answers shows with the first request.
 */
#pragma once

#include "port/api.h"

struct dialer_spec {
    struct str name;       /* whose it is, for messages: "namespace/cluster" */
    struct str kubeconfig; /* YAML or JSON; may be wiped when the call returns */
    struct str token;      /* who to be instead of whom the kubeconfig names; empty = that one */
};

struct dialer;

struct dialer_ops {
    struct api *(*dial)(struct dialer *d, const struct dialer_spec *spec, struct err *err);
    void (*hang_up)(struct dialer *d, struct api *api);
};

struct dialer {
    const struct dialer_ops *ops;
};

/* NULL and what is wrong with the text. */
static inline struct api *dialer_open(struct dialer *d, const struct dialer_spec *spec,
                                      struct err *err)
{
    return d->ops->dial(d, spec, err);
}

/* What is in flight is dropped without a callback; also from inside one. Accepts NULL. */
static inline void dialer_hang_up(struct dialer *d, struct api *api)
{
    if (api != NULL) {
        d->ops->hang_up(d, api);
    }
}
