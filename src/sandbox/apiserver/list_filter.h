/*
 * list_filter: which objects of a collection a request selects: by namespace, labels and fields.
 */
#pragma once

#include "format/selector.h"
#include "sandbox/apiserver/object.h"
#include "sandbox/apiserver/url_route.h"
#include "sandbox/apiserver/status.h"

struct list_filter {
    const struct kind *kind;
    struct str namespace; /* "" = all */
    struct selector labels;
    struct selector fields;
    struct str name; /* fields demand this metadata.name; "" = any */
};

/* Refuses selectors that do not parse, and fields the kind does not offer. Texts are borrowed from
 * `route` or copied to `a`. */
struct status *list_filter_init(struct list_filter *filter, const struct kind *kind,
                                const struct url_route *route, struct arena *a);
bool list_filter_match(const struct list_filter *filter, const struct object *o);
