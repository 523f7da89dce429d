/*
 * core_internal: what the files of core/ share.
 *
 *   core.c          its life, leading, the Nodes
 *   core_arbiter.c  finds the CRDs of requests and limits, and starts the arbiter
 *   core_pause.c    the pause of everything, an annotation of the Lease
 */
#pragma once

#include "core/core.h"

/* Calls that function of each part that has it. */
#define CORE_EACH_PART(core, part, fn, ...)                                                        \
    LIST_EACH (&(core)->parts, link_) {                                                            \
        struct core_part *part = CONTAINER_OF(link_, struct core_part, link);                      \
        if (part->ops->fn != NULL) {                                                               \
            part->ops->fn(part, ##__VA_ARGS__);                                                    \
        }                                                                                          \
    }

void core_tell_may_act(struct core *c);
bool core_is_busy(const struct core *c);

void core_pause_init(struct core *c);
void core_pause_start(struct core *c);
void core_pause_done(struct core *c);
/* The Lease as it was read; also the `on_read` of lease.h. */
void core_pause_read(void *ctx, const struct jval *lease);

void core_arbiter_init(struct core *c);
void core_arbiter_look(struct core *c);
void core_arbiter_done(struct core *c);
