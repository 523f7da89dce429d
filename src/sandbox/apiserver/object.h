/*
 * object: one version of one stored object, never changed, shared by reference count.
 *
 * It holds its JSON text once, as every list and watch sends it, and the tape of it, so that
 * selectors and the simulated world read it without parsing. A new version is a new object. The
 * text begins with kind and apiVersion, and where the resourceVersion stands is known: items of
 * lists without a kind and versions that differ in nothing but their number are cut from it.
 */
#pragma once

#include "format/json_tree.h"

struct object {
    uint32_t refs;
    uint32_t store;
    uint64_t rv;
    struct str key; /* "namespace/name", or "name": etcd's order is this key's order */
    struct str namespace;
    struct str name;
    struct str uid;
    struct str json;
    uint32_t head;  /* json from here on is what follows kind and apiVersion */
    uint32_t rv_at; /* where the resourceVersion's digits are */
    uint32_t rv_n;
    const struct jval *root;
    const struct jval *metadata;
    struct str manager; /* who wrote this version; "" = unknown */
};

/* Sets metadata.resourceVersion in `tree` and makes a version of it, with one reference. `tree`
 * has kind, apiVersion and a name. */
struct object *object_new(uint32_t store, struct tree *tree, uint64_t rv, struct str manager,
                          struct arena *tmp);
/* The same content under another resourceVersion. */
struct object *object_with_rv(const struct object *o, uint64_t rv, struct arena *tmp);

struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* accepts NULL */

/* An editable copy. */
struct tree *object_tree(const struct object *o, struct arena *a);
/* Likewise, but borrowing the object's texts: the caller holds the object as long as the tree. */
struct tree *object_tree_borrowed(const struct object *o, struct arena *a);

/* Kind and apiVersion first, then the members in their order. */
void object_write(const struct tree *tree, struct buf *out);
