/*
 * originals: what was there before the agent came, so that it can be put back when a resource is
 * taken off the list.
 *
 * One record a resource, below the agent's own folder, written before the first change and never
 * overwritten by what the agent itself has made. The record also holds the resource, because it is
 * needed when nobody asks for the resource any more.
 */
#pragma once

#include "agent/resource.h"
#include "agent/root.h"

struct originals {
    struct root *root; /* borrowed */
    struct str folder; /* borrowed */
};

struct original_record {
    struct str id;
    uint64_t sequence; /* the resource's place in the order of work */
    struct resource resource;
    bool resource_known; /* this version can read it */
    struct original original;
};

/* False: there is none. */
NODISCARD
int originals_find(const struct originals *o, struct str id, bool *ret, struct err *err);
/* Keeps the original of a record that is there, and brings the rest up to date. */
NODISCARD
int originals_put(const struct originals *o, const struct resource *resource, uint64_t sequence,
                  const struct original *original, struct err *err);
/* All records, the last of the order of work first. */
NODISCARD
int originals_list(const struct originals *o, struct arena *out, struct original_record **ret,
                   uint32_t *ret_n, struct err *err);
NODISCARD
int originals_remove(const struct originals *o, struct str id, struct err *err);
