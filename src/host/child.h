/*
 * child: another program, run with a deadline and a limit on what it says.
 *
 * No shell, no inherited descriptors, and an environment that is given whole. It leads a process
 * group of its own, so that the deadline ends what it has started, too. Standard input is empty.
 */
#pragma once

#include "base/err.h"
#include "port/loop.h"

struct child_spec {
    struct str command;     /* with a '/': that file; otherwise looked for in PATH of `env` */
    const struct str *args; /* without the command itself */
    uint32_t args_n;
    const struct str *env; /* "NAME=value"; of two with one name the last counts */
    uint32_t env_n;
    usec_t time_max;
    size_t output_max; /* bytes, of standard output and of standard error each */
};

struct child_result {
    int exit_code;         /* -1 when a signal ended it */
    int signo;             /* 0 when it exited */
    struct str out;        /* lives until the callback returns */
    struct str complaint;  /* standard error, likewise */
    const struct err *err; /* it was ended by us: the deadline or the limit; NULL otherwise */
};

struct child;

typedef void (*child_on_end)(void *ctx, const struct child_result *result);

/* `on_end` is called once, from the loop; the child is gone when it returns. */
NODISCARD
int child_start(struct loop *loop, const struct child_spec *spec, child_on_end on_end, void *ctx,
                struct child **ret, struct err *err);

/* Kills it; on_end is not called. Not from inside on_end. Accepts NULL. */
void child_stop(struct child *c);
