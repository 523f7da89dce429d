/*
 * gc: the garbage collector: deletes dependents of deleted owners, owners that wait for their
 * dependents, and the content of deleted namespaces.
 *
 * It runs on the loop, after the deletion: as in a real cluster, the answer to a DELETE does not
 * wait for it.
 */
#pragma once

#include "base/map.h"
#include "port/loop.h"
#include "sandbox/apiserver/storage.h"

#define GC_DELAY MSECONDS(20)         /* about what the real collector takes to notice */
#define GC_NAMESPACE_DELAY SECONDS(2) /* time to see a namespace in phase Terminating */

struct gc {
    struct apiserver *s;
    struct map gone_owners; /* uids of objects that are gone */
    struct map deleting;    /* places of objects with a finalizer that is ours to remove */
    struct map namespaces;  /* names of those that are terminating */
    struct loop_timer timer;
    struct loop_timer namespace_timer;
};

void gc_init(struct gc *gc, struct apiserver *s, struct loop *loop);
void gc_done(struct gc *gc);

/* Looks at every committed change. */
void gc_on_change(struct gc *gc, const struct storage_change *change);
