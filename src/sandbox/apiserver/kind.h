/*
 * kind: the kinds that the API server serves: a static table of built-in ones, and those that
 * CustomResourceDefinitions add.
 *
 * A kind is one resource in one version of one group. Kinds that show the same objects (events in
 * both their groups, the versions of a custom resource) share a `store`. Kinds never move while
 * they are registered; built-in ones come first and stay for ever.
 */
#pragma once

#include "format/json_tree.h"

#define KIND_NAMES_MAX 8u /* short names or categories */
#define KINDS_MAX 256u    /* a sandbox with more custom resources is a mistake */

enum kind_flags {
    KIND_NAMESPACED = 1 << 0,
    KIND_GENERATION = 1 << 1, /* metadata.generation counts changes of everything but the status */
    KIND_CUSTOM = 1 << 2,
    KIND_NO_DELETECOLLECTION = 1 << 3,
    KIND_EVENTS_V1 = 1 << 4,      /* events.k8s.io: stored as core events, converted both ways */
    KIND_NO_STATUS_WIPE = 1 << 5, /* create keeps a given status */
    KIND_REVIEW = 1 << 6,         /* a question: answered when it is created, and never stored */
};

enum kind_subresource {
    SUBRESOURCE_STATUS = 1 << 0,
    SUBRESOURCE_SCALE = 1 << 1,
    SUBRESOURCE_EVICTION = 1 << 2,
    SUBRESOURCE_BINDING = 1 << 3,
    SUBRESOURCE_FINALIZE = 1 << 4,
    SUBRESOURCE_LOG = 1 << 5,
    SUBRESOURCE_TOKEN = 1 << 6,
};

struct kind {
    struct str group; /* "" = core */
    struct str version;
    struct str api_version; /* "v1", "policy/v1" */
    struct str plural;
    struct str singular;
    struct str kind;
    struct str list_kind;
    struct str short_names[KIND_NAMES_MAX]; /* ends with an empty one */
    struct str categories[KIND_NAMES_MAX];
    struct str resource;   /* as messages name it: "pods", "leases.coordination.k8s.io" */
    struct str group_kind; /* "Pod", "Lease.coordination.k8s.io" */
    struct str storage_hash;
    unsigned flags;
    unsigned subresources;
    uint32_t store; /* kinds with the same number are views of the same objects */
    /* Custom kinds only; borrowed: from the arena below. */
    const struct tree *version_spec; /* the element of spec.versions: schema, columns, … */
    const struct tree *schema;       /* as types_custom_schema makes it */
    struct str definition;           /* name of the CustomResourceDefinition */
    struct arena arena;
};

struct kinds {
    struct kind *items[KINDS_MAX];
    uint32_t n;
    uint32_t stores; /* numbers given out so far */
};

void kinds_init(struct kinds *k);
void kinds_done(struct kinds *k);

/* NULL when it is not served. */
const struct kind *kinds_find(const struct kinds *k, struct str group, struct str version,
                              struct str plural);
/* By "group/version" and kind, as objects name themselves. */
const struct kind *kinds_find_kind(const struct kinds *k, struct str api_version, struct str kind);
/* The first kind registered for a store: what its objects are written as. */
const struct kind *kinds_of_store(const struct kinds *k, uint32_t store);
bool kinds_has_group(const struct kinds *k, struct str group, struct str version);

/* Adds the served versions of a CustomResourceDefinition (already valid), or brings them up to
 * date. The store stays the same over updates. `*ret_store` is it. -ERR_LIMIT when the table is
 * full. */
NODISCARD
int kinds_define_crd(struct kinds *k, const struct tree *definition, uint32_t *ret_store,
                     struct err *err);
/* Forgets all versions of a definition. */
void kinds_remove_crd(struct kinds *k, struct str definition);

static inline bool kind_is(const struct kind *kind, enum kind_flags flag)
{
    return (kind->flags & flag) != 0;
}

/* "status" → SUBRESOURCE_STATUS; 0 when it is none. */
unsigned kind_subresource(struct str name);
