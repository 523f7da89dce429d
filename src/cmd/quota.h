/*
 * quota: MaintenanceLimits and the requests under them, as people read them.
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"

struct quota {
    const struct jval *limits;   /* items of a list; NULL = none */
    const struct jval *requests; /* likewise */
};

/* Tables, 80 columns wide unless a name is longer. */
void quota_print_text(const struct quota *q, struct buf *out);
/* One List: all limits, and the requests that are not Completed. */
void quota_print_json(const struct quota *q, struct buf *out);
