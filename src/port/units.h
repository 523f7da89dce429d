/*
 * units: the door to the machine's service manager: services and what else it starts and stops.
 *
 * One question or order at a time; its end comes later, from the loop, once. host/ opens this door
 * on systemd.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum unit_verb {
    UNIT_LOOK,
    UNIT_RELOAD_MANAGER, /* the manager reads its files again */
    UNIT_START,
    UNIT_STOP,
    UNIT_RESTART,
    UNIT_RELOAD_OR_RESTART,
    UNIT_TRY_RESTART, /* only if it runs */
    UNIT_ENABLE,
    UNIT_DISABLE,
    UNIT_MASK,
    UNIT_UNMASK,
    UNIT_RESET_FAILED,
    UNIT_VERBS,
};

struct unit_request {
    enum unit_verb verb;
    struct str unit; /* "chrony.service"; empty for UNIT_RELOAD_MANAGER */
    usec_t time_max;
};

/* Lives until the callback returns. */
struct unit_reply {
    struct str problem; /* empty = it was done */
    /* UNIT_LOOK, in words of systemd: */
    struct str load;   /* loaded, not-found, masked, … */
    struct str active; /* active, inactive, failed, activating, … */
    struct str file;   /* enabled, disabled, static, masked, …; empty = it has no file */
    bool need_reload;  /* its files are newer than what the manager knows */
};

struct units {
    int (*ask)(void *ctx, const struct unit_request *request,
               void (*on_end)(void *ctx, const struct unit_reply *reply), void *end_ctx,
               struct err *err);
    void *ctx;
};
