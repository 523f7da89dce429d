/*
 * maintenance_selector: one MaintenanceSelector as it was read: which objects it means.
 *
 * Pure. Without a selector and names it means none; the first version of the API had only such.
 */
#pragma once

#include "format/selector.h"
#include "kinds/target_type.h"
#include "kube/store.h"

#define PICKER_NAMES_MAX 1000u /* the schema's maximum */

struct picker {
    struct str name; /* "namespace/name" */
    struct str uid;
    int64_t generation;
    enum target_type type;
    struct str reason; /* why it is not accepted; empty = it is */
    struct str problem;
    bool selects;
    struct selector selector;
    bool spaced;
    struct selector spaces;
    const struct str *names; /* sorted */
    uint32_t name_n;
    struct str status; /* JSON */
};

void picker_parse(const struct jval *object, struct arena *out, struct picker *ret);
/* For kube/store. */
extern const struct store_kind picker_kind;

/* One of its names: of a namespaced object with or without its namespace. */
bool picker_names(const struct picker *p, struct str name, struct str plain);
