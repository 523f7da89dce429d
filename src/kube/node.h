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

#define NODE_ANNOTATIONS_MAX 256u /* kept of one node; the keeper names them */
#define NODE_LABELS_MAX 1024u     /* no sane node has a tenth */
#define NODE_CONDITIONS_MAX 256u  /* a node has five, with every problem detector twenty */
#define NODE_FINALIZERS_MAX 256u
#define NODE_ANNOTATION_BYTES_MAX                                                                  \
    ((size_t)256 * 1024) /* the API server's limit for all annotations of an object */

struct node_label {
    const struct intern_text *key;
    const struct intern_text *value;
};

struct node_annotation {
    const struct intern_text *key;
    struct str value;
};

struct node_condition {
    const struct intern_text *type;
    const struct intern_text *status;
};

struct node {
    struct str uid;
    struct node_label *labels; /* as the server gave them: sorted by key */
    uint32_t label_count;
    bool unschedulable;
    bool ready;                       /* the Ready condition is True */
    usec_t ready_since;               /* wall: since when its status is what it is; 0: unknown */
    usec_t created;                   /* wall */
    struct str boot_id;               /* of the kubelet's report */
    const struct intern_text *kernel; /* status.nodeInfo, as the kubelet reports it */
    const struct intern_text *os_image;
    const struct intern_text *arch;
    bool deleting;                       /* it has a deletionTimestamp */
    struct node_annotation *annotations; /* those of node_keep that are there */
    uint32_t annotation_count;
    uint32_t volumes; /* entries of status.volumesAttached; no decision about the node uses it */
    struct node_condition *conditions; /* as the server gave them */
    uint32_t condition_count;
    const struct intern_text **finalizers;
    uint32_t finalizer_count;
    const struct intern_text *kubelet_version; /* of status.nodeInfo; empty = it does not say */
};

/* The context of node_kind: where labels are interned and which annotations are kept. */
struct node_keep {
    struct intern *labels;         /* borrowed */
    const struct str *annotations; /* borrowed; may be replaced between lists */
    uint32_t annotation_count;     /* <= NODE_ANNOTATIONS_MAX */
};

/* Projects a Node; its ctx is a struct node_keep, first in whatever struct holds it. */
extern const struct store_kind node_kind;

/* The label's value, or STR_NONE: `.p` is NULL then, and not for an empty value. */
struct str node_label(const struct node *n, struct str key);
/* The same for an annotation that is kept. */
struct str node_annotation(const struct node *n, struct str key);
/* The status of the first condition of that type, or STR_NONE. */
struct str node_condition(const struct node *n, struct str type);
