/*
 * node: what decisions use of a Node, and nothing else: about 1 KiB instead of 20 to 60.
 *
 * Labels are all kept, interned. Of the annotations only those are kept that the keeper names: the
 * rest is other people's, and may be large. Texts that are a node's own live in the arena of its
 * store item.
 */
#pragma once

#include "kube/intern.h"
#include "kube/store.h"

#define NODE_ANNOTATIONS_MAX 4u /* kept of one node; the keeper names them */
#define NODE_LABELS_MAX 1024u   /* no sane node has a tenth */
#define NODE_ANNOTATION_BYTES_MAX                                                                  \
    ((size_t)256 * 1024) /* the API server's limit for all annotations of an object */

struct node_label {
    const struct intern_text *key;
    const struct intern_text *value;
};

struct node {
    struct str uid;
    const struct node_label *labels; /* as the server gave them: sorted by key */
    uint32_t label_count;
    bool unschedulable;
    bool ready;    /* the Ready condition is True */
    bool deleting; /* it has a deletionTimestamp */
    /* In the order of node_keep; STR_NONE when absent, which is not the empty text. */
    struct str annotations[NODE_ANNOTATIONS_MAX];
};

/* The context of node_kind: where labels are interned and which annotations are kept. */
struct node_keep {
    struct intern *labels;         /* borrowed */
    const struct str *annotations; /* borrowed */
    uint32_t annotation_count;     /* <= NODE_ANNOTATIONS_MAX */
};

/* Projects a Node; its ctx is a struct node_keep, first in whatever struct holds it. */
extern const struct store_kind node_kind;

/* The label's value, or STR_NONE: `.p` is NULL then, and not for an empty value. */
struct str node_label(const struct node *n, struct str key);
