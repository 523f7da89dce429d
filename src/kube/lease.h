/*
 * lease: leader election by a coordination.k8s.io/v1 Lease, as client-go does it, so that old and
 * new controllers never lead at once.
 *
 * Two rules carry it. A holder counts from the *sending* of its last renewal that succeeded and
 * stops after LEASE_RENEW_DEADLINE, before others may begin. Others count from the moment they
 * *saw* the record change, on their own monotonic clock, and begin no sooner than the record's
 * duration after it. So wall clocks may differ as they like: renewTime is written for people and
 * never compared. lease_is_held asks the clock each time; a process that was frozen finds out at
 * its next use, not when some timer gets its turn.
 *
 * Every write carries the resourceVersion it was decided on. Whatever else stands in the Lease,
 * annotations above all, is written back as it was read.
 *
 *     FOLLOW ⇄ HOLD → RELEASE → OVER        FOLLOW → OVER
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "format/json.h"
#include "kube/client.h"

#define LEASE_DURATION SECONDS(15)
#define LEASE_RENEW_DEADLINE SECONDS(10)
#define LEASE_RETRY SECONDS(5)
#define LEASE_TIMEOUT SECONDS(5)     /* of one request */
#define LEASE_RELEASE_MAX SECONDS(5) /* giving it back is a courtesy: others wait at most 15 s */
#define LEASE_BYTES_MAX                                                                            \
    ((size_t)256 * 1024) /* the record is some 400 bytes; grants are added to it */

#define LEASE_NOTES 2u /* annotations that the holder keeps in it */

enum lease_state {
    LEASE_IDLE,
    LEASE_FOLLOW,  /* looks every retry period, takes it when it can */
    LEASE_HOLD,    /* renews every retry period */
    LEASE_RELEASE, /* gives it back */
    LEASE_OVER,
};

struct lease_config {
    struct str namespace; /* borrowed */
    struct str name;
    struct str identity;
    /* Called from the loop when holding begins or ends. */
    void (*on_change)(void *ctx, bool held);
    /* After lease_release: it is given back, or that was given up. */
    void (*on_released)(void *ctx);
    void (*on_error)(void *ctx, const struct err *err);
    /* The annotations that lease_note writes; empty = none is written. Borrowed. */
    struct str note_keys[LEASE_NOTES];
    /* A note of lease_note is on the server; `serial` is the newest of which that is true. */
    void (*on_noted)(void *ctx, uint64_t serial);
    /* The Lease as it was just read, or as a write of ours came back: for what people have written
     * into it. Nothing of the lease may be called from here. May be NULL. */
    void (*on_read)(void *ctx, const struct jval *lease);
    void *ctx;
};

struct lease {
    struct client *client; /* borrowed */
    struct lease_config config;
    enum lease_state state;
    struct loop_timer timer;
    struct api_call *call;
    enum api_verb verb; /* of `call` */
    bool giving;        /* `call` gives the lease back */
    usec_t sent_at;     /* of `call` */
    usec_t next_try;    /* when no call is under way */
    usec_t held_until;  /* HOLD: monotonic; acting ends here */
    usec_t release_end; /* RELEASE: when to give up */
    usec_t observed_at; /* when the record was last seen to change */
    struct buf object;  /* the Lease as last read, JSON */
    struct buf record;  /* its spec, as compared */
    struct buf path;    /* of the lease, and of its collection */
    struct buf body;    /* working memory */
    struct buf holder;  /* who holds it, as last read */
    struct lease_note {
        struct buf text; /* what the annotation is to hold; empty: it is to go */
        bool noting;     /* otherwise it is left as it is */
    } notes[LEASE_NOTES];
    uint64_t note_serial;  /* of `notes` */
    uint64_t note_sent;    /* that `call` carries */
    uint64_t note_written; /* that the server has */
    bool seen;             /* there is a record to compare with */
    bool fresh;            /* `object` (or `absent`) is what the server last said: write on it */
    bool absent;           /* there is no Lease */
    bool unsure;           /* a write got no answer: it may have gone through */
    uint32_t duration_s;   /* of the record */
    uint64_t renewals;
    uint64_t conflicts;
};

void lease_init(struct lease *l, struct client *client, const struct lease_config *config);
/* Nothing is sent: like a crash. */
void lease_done(struct lease *l);

void lease_start(struct lease *l);
/* True when acting is safe at this instant. */
bool lease_is_held(const struct lease *l);
/* Stops holding at once and gives it back; on_released follows. */
void lease_release(struct lease *l);
/* Who held it when it was last seen; empty = nobody. */
struct str lease_holder(const struct lease *l);

/* HOLD: writes a note into the Lease by compare-and-swap, at once or behind the write that is under
 * way; without `hurry` with the next renewal. One write carries what came meanwhile. Whoever has
 * lost the lease cannot write. Answers the note's serial, for on_noted. `which` of note_keys. */
uint64_t lease_note(struct lease *l, uint32_t which, struct str note, bool hurry);
/* The note as it was last read; empty = none. Lives in `out`. */
struct str lease_read_note(const struct lease *l, uint32_t which, struct arena *out);

void lease_check(const struct lease *l);
