/*
 * requests_part: MaintenanceRequests as a part of a controller process (core/core.h): they are
 * served from the moment in which the core has an arbiter.
 */
#pragma once

#include "core/core.h"
#include "request/requests.h"

struct requests_part {
    struct core_part part;
    struct core *core; /* borrowed; NULL: it never joined */
    struct requests_config config;
    struct requests *requests; /* NULL: their CRDs are not there yet */
};

/* Of the configuration, only the options of requests are read; the rest comes from the core. */
void requests_part_init(struct requests_part *p, struct core *core,
                        const struct requests_config *config);
/* Like a crash; accepts a zeroed one. */
void requests_part_done(struct requests_part *p);
