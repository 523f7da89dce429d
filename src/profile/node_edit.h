/*
 * node_edit: the node that is being decided, with the edits that the decision has made so far.
 *
 * Profiles are decided one after the other, and the checks of the second see the edits of the
 * first's triggers: an approval label that the first has removed is gone for the second. The edits
 * become one patch. The observed node itself is not changed.
 */
#pragma once

#include "base/arena.h"
#include "format/json_writer.h"
#include "kube/node.h"

enum node_edit_kind {
    NODE_EDIT_LABEL,
    NODE_EDIT_ANNOTATION,
    NODE_EDIT_FINALIZER,
    NODE_EDIT_UNSCHEDULABLE
};

struct node_edit_item {
    enum node_edit_kind kind;
    bool remove;      /* NODE_EDIT_UNSCHEDULABLE: make it schedulable */
    struct str key;   /* borrowed: from the configuration, or a constant */
    struct str value; /* likewise */
};

struct node_edit {
    struct str name;
    const struct node *node;      /* borrowed: as observed */
    struct arena *out;            /* of the edits */
    struct node_edit_item *edits; /* one a key at most; those that change nothing are not there */
    uint32_t edit_n;
    uint32_t edit_cap;
};

/* STR_NONE (`.p` is NULL) when it is not there, which is not the empty text. */
struct str node_edit_label(const struct node_edit *s, struct str key);
struct str node_edit_annotation(const struct node_edit *s, struct str key);
bool node_edit_has_finalizer(const struct node_edit *s, struct str key);
bool node_edit_unschedulable(const struct node_edit *s);

void node_edit_set_label(struct node_edit *s, struct str key, struct str value);
void node_edit_remove_label(struct node_edit *s, struct str key);
void node_edit_set_annotation(struct node_edit *s, struct str key, struct str value);
void node_edit_remove_annotation(struct node_edit *s, struct str key);
void node_edit_add_finalizer(struct node_edit *s, struct str key);
void node_edit_remove_finalizer(struct node_edit *s, struct str key);
void node_edit_set_unschedulable(struct node_edit *s, bool unschedulable);

/* The merge patch: every edit by its own key, and the version it was decided on. A list of
 * finalizers is replaced as a whole, for which the version is the guard. `version` 0 = without. */
void node_edit_print_patch(const struct node_edit *s, uint64_t version, struct buf *out);
