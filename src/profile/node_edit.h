/*
 * node_edit: the node that is being decided on, with what the decision has already changed about it.
 *
 * Profiles are looked at one after the other, and what a trigger of the first does is seen by the
 * checks of the second: an approval that one of them has used up is gone for the other. The edits
 * become one patch. Nothing of the observed node is changed.
 */
#pragma once

#include "base/arena.h"
#include "format/json_writer.h"
#include "kube/node.h"

/* Who cordoned the node, so that nobody else's cordon is ever lifted. */
#define SUBJECT_CORDON_MARK STR("drydock.dev/cordoned-by")
/* The version at which a leader shut out the patch of the one before: its value says nothing else.
 */
#define SUBJECT_FENCE STR("drydock.dev/fence")

enum edit_kind { EDIT_LABEL, EDIT_ANNOTATION, EDIT_FINALIZER, EDIT_UNSCHEDULABLE };

struct edit {
    enum edit_kind kind;
    bool remove;      /* EDIT_UNSCHEDULABLE: make it schedulable */
    struct str key;   /* borrowed: from the configuration, or a constant */
    struct str value; /* likewise */
};

struct subject {
    struct str name;
    const struct node *node; /* borrowed: as observed */
    struct arena *out;       /* of the edits */
    struct edit *edits;      /* one a key at most; those that change nothing are not there */
    uint32_t edit_n;
    uint32_t edit_cap;
};

/* STR_NONE (`.p` is NULL) when it is not there, which is not the empty text. */
struct str subject_label(const struct subject *s, struct str key);
struct str subject_annotation(const struct subject *s, struct str key);
bool subject_has_finalizer(const struct subject *s, struct str key);
bool subject_unschedulable(const struct subject *s);

void subject_set_label(struct subject *s, struct str key, struct str value);
void subject_remove_label(struct subject *s, struct str key);
void subject_set_annotation(struct subject *s, struct str key, struct str value);
void subject_remove_annotation(struct subject *s, struct str key);
void subject_add_finalizer(struct subject *s, struct str key);
void subject_remove_finalizer(struct subject *s, struct str key);
void subject_set_unschedulable(struct subject *s, bool unschedulable);

/* The merge patch: every edit by its own key, and the version it was decided on. A list of
 * finalizers is replaced as a whole, for which the version is the guard. `version` 0 = without. */
void subject_print_patch(const struct subject *s, uint64_t version, struct buf *out);
