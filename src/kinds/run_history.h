/*
 * run_history: what was done on a machine, kept for people: the runs of NodeMaintenances and how
 * each ended, the newest last, in a ConfigMap for each machine.
 *
 * Jobs go soon after their end, and a NodeState has only the last run of an operation. The text of
 * the ConfigMap has one JSON object a line; the oldest lines go when there are too many.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define RUN_HISTORY_ENTRIES_MAX 100u
#define RUN_HISTORY_BYTES_MAX ((size_t)32 * 1024)
#define RUN_HISTORY_KEY "runs" /* of the ConfigMap's data */

struct run_history_entry {
    usec_t time; /* wall: when the run ended */
    struct str node;
    struct str maintenance;
    struct str operation;
    struct str result; /* "Succeeded", "Skipped", "Failed" */
    struct str reason;
    struct str message; /* the end of the output */
    uint32_t attempt;
    usec_t took;   /* 0 = unknown */
    bool rebooted; /* in the same visit */
};

/* The ConfigMap of a machine: "history-" and the first 32 digits of the name's SHA-256. */
struct str run_history_name(struct str machine, struct arena *out);
/* Adds a line. */
void run_history_print(const struct run_history_entry *e, struct buf *out);
/* False: it is none. Texts live in `out`. */
bool run_history_read(struct str line, struct arena *out, struct run_history_entry *ret);
/* The newest of the old lines and the new ones, as many as are kept. */
void run_history_append(struct str old, struct str lines, struct buf *out);
