/*
 * fieldset: a set of fields of an object, as FieldsV1 in metadata.managedFields has it.
 *
 * A set is a tree of path elements: "f:name" for a member, `k:{"name":"x"}` for the element of a
 * list with keys, `v:"x"` for that of a set. An element with nothing below it is in the set; one
 * with elements below is in it only with ".". The root stands for the whole object and is never in
 * the set, so an empty root is the empty set.
 */
#pragma once

#include "sandbox/apiserver/builtin_types.h"

enum fieldset_mode {
    FIELDSET_APPLIED, /* what a configuration names: maps only through their members */
    FIELDSET_ADDED,   /* what a write adds: maps as well */
};

enum fieldset_shape { FIELDSET_LEAF, FIELDSET_MAP, FIELDSET_SET, FIELDSET_KEYED_LIST };

/* How a value is divided among owners; one that is owned as a whole is a leaf. */
enum fieldset_shape fieldset_shape(struct types *types, const struct tree *schema,
                                   const struct tree *value);
/* The path element of a list's item. */
struct str fieldset_item_key(struct types *types, const struct tree *schema, struct arena *a,
                             const struct tree *item);

/* Without what identifies the object and what the server sets itself. */
struct tree *fieldset_of(struct types *types, const struct tree *schema, struct arena *a,
                         const struct tree *object, enum fieldset_mode mode);
/* What changed from `old` to `now`: values that differ or are new, and what is gone. */
void fieldset_compare(struct types *types, const struct tree *schema, struct arena *a,
                      const struct tree *old, const struct tree *now, struct tree **ret_changed,
                      struct tree **ret_removed);

struct tree *fieldset_union(struct arena *a, const struct tree *x, const struct tree *y);
struct tree *fieldset_difference(struct arena *a, const struct tree *x, const struct tree *y);
struct tree *fieldset_intersection(struct arena *a, const struct tree *x, const struct tree *y);
bool fieldset_empty(const struct tree *set);
/* Whether the element itself is in the set; `node` below a root, NULL for absent. */
bool fieldset_has(const struct tree *node);

/* Calls back for each path in the set, ".spec.list[name=\"x\"].y", in the order of the real
 * server: at each level what is in the set first, then what lies below. */
void fieldset_paths(const struct tree *set, struct arena *a,
                    void (*on_path)(void *ctx, struct str path), void *ctx);
