/*
 * limits_table: prints MaintenanceLimits and the requests under them from the objects alone, for
 * `drydock limits`. The words are those of a running controller (request/limits_report.h).
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"
#include "request/limits_report.h"

struct limits_table {
    const struct jval *limits;   /* items of a list; NULL = none */
    const struct jval *requests; /* likewise */
    usec_t now;                  /* wall */
    bool wide;
    uint32_t columns; /* of the text; 0 = 80 */
};

/* Tables, 80 columns wide unless a name is longer or all is wanted. */
void limits_table_print_text(const struct limits_table *q, struct buf *out);
/* A name a line, as kubectl's -o name: all limits, and the requests that are not Completed. */
void limits_table_print_names(const struct limits_table *q, struct buf *out);
/* One List: all limits, and the requests that are not Completed. */
void limits_table_print_json(const struct limits_table *q, struct buf *out);
