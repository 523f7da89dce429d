/*
 * maintenance_selector: reads a MaintenanceSelector: which objects a limit that refers to it
 * counts.
 *
 * Without a selector and names it selects none; the first version of the API had only such.
 */
#pragma once

#include "format/selector.h"
#include "kinds/target_type.h"
#include "kinds/store_kind.h"

#define MAINTENANCE_SELECTOR_NAMES_MAX 1000u /* the schema's maximum */

struct maintenance_selector {
    struct str name; /* "namespace/name" */
    struct str uid;
    int64_t generation;
    enum target_type type;
    struct str reason; /* why it is not accepted; empty = it is */
    struct str problem;
    bool has_selector;
    struct selector selector;
    bool namespaced;
    struct selector namespaces;
    const struct str *names; /* sorted */
    uint32_t name_n;
    struct str status; /* JSON */
};

void maintenance_selector_parse(const struct jval *object, struct arena *out,
                                struct maintenance_selector *ret);
/* For kube/store. */
extern const struct store_kind maintenance_selector_kind;

/* One of its names: of a namespaced object with or without its namespace. */
bool maintenance_selector_has_name(const struct maintenance_selector *p, struct str name,
                                   struct str bare_name);
