/*
 * list_filter: which objects of a collection a request means: namespace, labels and fields.
 */
#pragma once

#include "format/selector.h"
#include "sandbox/apiserver/object.h"
#include "sandbox/apiserver/url_route.h"
#include "sandbox/apiserver/status.h"

struct select {
    const struct kind *kind;
    struct str namespace; /* "" = all */
    struct selector labels;
    struct selector fields;
    struct str name; /* fields demand this metadata.name; "" = any */
};

/* Refuses selectors that do not parse, and fields the kind does not offer. Texts are borrowed from
 * `route` or copied to `a`. */
struct status *select_init(struct select *sel, const struct kind *kind, const struct route *route,
                           struct arena *a);
bool select_match(const struct select *sel, const struct object *o);
