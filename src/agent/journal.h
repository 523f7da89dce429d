/*
 * journal: what the agent must not forget, in the order in which it happened.
 *
 * A mark says that a resource is to be refreshed. It is on the disk before the change that calls
 * for it is made, and struck out after the refresh has succeeded: a power cut between the two
 * repeats the refresh and never loses it. A run has an id; an id that was written is never started
 * again.
 *
 * Each line carries its own checksum. A line that a crash has cut, or that is damaged, is left out;
 * the others count.
 */
#pragma once

#include "agent/root.h"
#include "base/map.h"

#define JOURNAL_BYTES_MAX ((size_t)1024 * 1024) /* written anew at 64 KiB: a journal has less */
#define JOURNAL_RENEW_BYTES ((size_t)64 * 1024)
#define JOURNAL_RUN_KEPT DAYS(30)

struct journal_run {
    usec_t started; /* wall */
    usec_t ended;   /* wall; 0 = it never ended: it was interrupted */
    int64_t exit_code;
};

struct journal {
    struct root *root; /* borrowed: NULL = nothing is written */
    struct str path;   /* borrowed */
    struct map marks;  /* by id of the resource */
    struct map runs;   /* by id of the run: struct journal_run */
    size_t bytes;      /* of the file */
    uint32_t damaged;  /* lines that were left out */
};

/* Reads lines; pure. */
void journal_parse(struct journal *j, struct str text);

/* `path` is the file's; the folders on the way are made, unless the root is only read. */
NODISCARD
int journal_open(struct journal *j, struct root *root, struct str path, usec_t wall,
                 struct err *err);
void journal_done(struct journal *j);

bool journal_is_marked(const struct journal *j, struct str id);
/* One write for all of them. Those that are marked already cost nothing. */
NODISCARD
int journal_mark(struct journal *j, const struct str *ids, uint32_t n, struct err *err);
NODISCARD
int journal_unmark(struct journal *j, struct str id, struct err *err);

/* NULL: it was never started. */
const struct journal_run *journal_run_find(const struct journal *j, struct str id);
/* -ERR_CONFLICT when the id is known. */
NODISCARD
int journal_run_begin(struct journal *j, struct str id, usec_t wall, struct err *err);
NODISCARD
int journal_run_end(struct journal *j, struct str id, int64_t exit_code, usec_t wall,
                    struct err *err);
