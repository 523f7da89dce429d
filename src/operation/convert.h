/*
 * convert: NodeMaintenances from what other tools are configured with: the DaemonSet of kured, and
 * Plans of system-upgrade-controller.
 *
 * Each source becomes one NodeMaintenance. What has no counterpart is noted with its place, and so
 * is what means something else now or needs a hand: nothing is left out without a word. A value
 * that the tool itself would refuse is an error.
 */
#pragma once

#include "format/json_tree.h"

#define CONVERT_BYTES_MAX ((size_t)1024 * 1024) /* of a file; a Plan has some KiB */
#define CONVERT_SOURCES_MAX 1000u               /* of all files together */
#define CONVERT_NOTES_MAX 1000u                 /* of a source; nobody reads more */

enum convert_weight {
    CONVERT_LOST, /* not carried over */
    CONVERT_LOOK, /* carried over, and to be looked at */
};

struct convert_note {
    enum convert_weight weight;
    struct pos pos;
    struct str about; /* "--lock-ttl", "spec.exclusive" */
    struct str text;  /* in a sentence */
};

struct convert {
    struct arena *memory;
    struct str source;   /* "DaemonSet kube-system/kured" */
    struct tree *object; /* the NodeMaintenance */
    struct tree *limit;  /* a MaintenanceLimit that allows as much; NULL: none is needed */
    struct convert_note *notes;
    uint32_t note_n;
    uint32_t note_cap;
};

struct convert_list {
    struct convert *items;
    uint32_t n;
    uint32_t cap;
    /* Whether there is a time zone of this name; NULL: every name is one. */
    bool (*zone_is_known)(void *ctx, struct str name);
    void *ctx;
};

/* Adds what is found in a file: YAML documents or JSON, Lists included; kinds of no concern are
 * passed over. Errors have their place in err->pos. */
NODISCARD
int convert_kured(struct str text, struct arena *memory, struct convert_list *list,
                  struct err *err);
NODISCARD
int convert_suc(struct str text, struct arena *memory, struct convert_list *list, struct err *err);

/* As YAML, with the notes as comments before it, and the limit behind it. */
void convert_print(const struct convert *c, struct buf *out);
