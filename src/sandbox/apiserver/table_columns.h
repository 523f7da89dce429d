/*
 * table_columns: what `kubectl get` shows of the built-in kinds: names, types and priorities (1 =
 * only with -o wide). The values come from table_cells.h.
 */
#pragma once

#include "base/defs.h"

struct table_column {
    const char *group;
    const char *plural;
    const char *name;
    const char *type;
    const char *format;
    int priority;
    const char *description;
};

extern const struct table_column
    table_columns[]; /* those of one kind stand together, in their order */
extern const uint32_t table_columns_n;
