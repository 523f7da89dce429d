/*
 * node_marks: what drydock has written on a Node, and the patch that takes it away again.
 *
 * For the end of an installation. What people write for drydock to read (profiles, approvals,
 * holds, the label that asks for a deletion) is theirs and stays; only `abort`, which the
 * controller would have consumed, goes, too.
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"

#define NODE_MARKS_MAX 16u /* there are fewer keys */

struct node_marks {
    struct node_mark {
        struct str key;
        bool label; /* otherwise an annotation */
    } items[NODE_MARKS_MAX];
    uint32_t n;
    bool lift; /* the node is cordoned, and a mark says that the cordon is ours to lift */
    /* It is cordoned and stays so, for a reason that a mark gives; NULL: no mark does. */
    const char *stays;
};

/* Texts are borrowed from constants alone. */
void node_marks_find(const struct jval *node, struct node_marks *ret);
/* A merge patch of that version. There is something to take away. */
void node_marks_patch(const struct node_marks *m, struct str version, struct buf *out);
