/*
 * activity: what a worker that depends on a system outside last did, what it waits for, when it
 * tries again and what went wrong last.
 *
 * There is one such description for each integration and for each node that an integration works
 * on. explain, /api/v1, the dashboard and the metrics all read it, so they cannot disagree.
 *
 * A struct activity_note keeps the texts; whoever works writes to it. Nothing secret may be told to
 * it: what it holds is shown to everybody who can reach the dashboard.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "format/json_writer.h"

#define ACTIVITY_TEXT_MAX 500u /* of one sentence; the rest is cut */

/* Texts live until the note changes. */
struct activity {
    struct str who;   /* "kubernikus" */
    struct str did;   /* what it last did; empty = nothing yet */
    usec_t did_at;    /* wall time; 0 = never */
    struct str waits; /* for what; empty = nothing is to be done */
    usec_t next;      /* wall time of the next try; USEC_NEVER: only an event wakes it */
    struct str error; /* what went wrong last; empty = nothing since the last success */
    usec_t error_at;  /* wall time; 0 = never */
};

struct activity_note {
    struct buf did;
    struct buf waits;
    struct buf error;
    usec_t did_at;
    usec_t error_at;
    usec_t next;       /* wall time; 0 = USEC_NEVER */
    uint64_t version;  /* counts changes */
    uint32_t failures; /* since the last success */
};

void activity_note_done(struct activity_note *n); /* accepts a zeroed one */
/* Something was done: what had gone wrong is over. */
void activity_did(struct activity_note *n, usec_t wall, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* `fmt` empty: it waits for nothing. `next` is wall time, or USEC_NEVER. */
void activity_waits(struct activity_note *n, usec_t next, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* True when the text is new, so that it is worth a line in the log. */
bool activity_failed(struct activity_note *n, usec_t wall, struct str error);
void activity_read(const struct activity_note *n, struct str who, struct activity *ret);

/* {"name": …, "did": …, "didAt": …, "waitsFor": …, "nextTry": …, "lastError": …, "lastErrorAt": …};
 * what is unknown is left out. */
void activity_print_json(const struct activity *a, struct json_writer *w);
/* "integrations": […], or nothing when there is none. */
void activity_print_list(const struct activity *items, uint32_t n, struct json_writer *w);
/* A copy whose texts live in `out`. */
struct activity activity_copy(const struct activity *a, struct arena *out);
/* The same in one sentence: "waits for 2 pods to go; next try in 30s; last: …". */
struct str activity_text(const struct activity *a, usec_t now, struct arena *out);
