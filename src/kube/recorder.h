/*
 * recorder: Events, made and aggregated as client-go does it.
 *
 * They are events.k8s.io/v1 Events. Where the server denies that (403), they are sent as the core
 * API's, which roles of old know; where it denies both, Events are lost, and each of them asks
 * both.
 *
 * The first event of a kind (type, action, reason, reporter, regarding, related; not the note) is
 * created. A repeat while it is remembered makes it a series by a patch; further repeats only count
 * in memory, and are written every RECORDER_REFRESH and when the series has been silent for
 * RECORDER_SILENCE. Events are told to people, not relied on: the queue is bounded and drops, a
 * token bucket keeps a storm from the API server, what the server rejects is not tried again, and
 * only a server out of reach is waited for. While writes are in flight that somebody waits for,
 * Events let them go first, for a while. With nothing remembered there is no timer.
 */
#pragma once

#include "base/arena.h"
#include "base/ratelimit.h"
#include "base/list.h"
#include "base/map.h"
#include "kube/client.h"

#define RECORDER_QUEUE_MAX 1000u       /* waiting to be sent, as client-go's */
#define RECORDER_REMEMBERED_MAX 4096u  /* series; a forgotten one starts again as a new event */
#define RECORDER_RATE 20u              /* events a second, */
#define RECORDER_BURST 100u            /* after as many at once: a node's pods in one drain */
#define RECORDER_TRIES 12u             /* for a server out of reach */
#define RECORDER_RETRY SECONDS(10)     /* between them, and up to a quarter more */
#define RECORDER_YIELD MSECONDS(200)   /* between looks whether urgent writes are over */
#define RECORDER_YIELD_MAX SECONDS(10) /* and they go first no longer than that */
#define RECORDER_YIELD_QUEUED 750u     /* with more, Events would soon be dropped */
#define RECORDER_SILENCE MINUTES(6)    /* ends a series */
#define RECORDER_REFRESH MINUTES(30)   /* writes its count */
#define RECORDER_NOTE_BYTES_MAX 1024u  /* the API server's limit */

/* An object that an event speaks of. `name` empty = none. */
struct recorder_ref {
    struct str kind;
    struct str api_version;
    struct str name;
    struct str namespace; /* empty = it has none */
    struct str uid;
    struct str version;
};

struct recorder_event {
    struct str type; /* "Normal", "Warning" */
    struct str reason;
    struct str action;
    struct str note;
    struct recorder_ref regarding;
    struct recorder_ref related;
};

struct recorder_stats {
    uint64_t created;
    uint64_t patched;
    uint64_t dropped;  /* the queue was full */
    uint64_t rejected; /* by the server */
    uint64_t lost;     /* given up after RECORDER_TRIES */
    uint32_t queued;
    uint32_t remembered;
};

enum recorder_api { RECORDER_API_EVENTS, RECORDER_API_CORE, RECORDER_APIS };

struct recorder {
    struct client *client; /* borrowed */
    struct str controller; /* borrowed: reportingController */
    struct str instance;   /* borrowed: "<controller>-<hostname>" */
    struct map series;     /* key → struct recorder_series */
    struct list queue;     /* of struct recorder_series */
    struct api_call *call; /* for the queue's first */
    struct loop_timer send;
    struct loop_timer tidy;
    struct ratelimit bucket;
    usec_t not_before; /* a server out of reach is left alone until then */
    int64_t last_ns;   /* of the last name made */
    uint32_t tries;    /* for the queue's first */
    enum recorder_api api;
    bool denied[RECORDER_APIS]; /* the queue's first by this one */
    bool told[RECORDER_APIS];   /* on_denied was called */
    /* The server does not let us write Events; once for each API. NULL: nobody is told. */
    void (*on_denied)(void *ctx, enum recorder_api api);
    void *ctx;
    struct buf path;
    struct buf body;
    struct recorder_stats stats;
};

/* `controller` is "maintenance", `instance` "maintenance-<hostname>". */
void recorder_init(struct recorder *r, struct client *client, struct str controller,
                   struct str instance);
/* Whom to tell of a right that is missing; before anything is sent. */
void recorder_on_denied(struct recorder *r, void (*on_denied)(void *ctx, enum recorder_api api),
                        void *ctx);
/* What waits is not sent. */
void recorder_done(struct recorder *r);

void recorder_add(struct recorder *r, const struct recorder_event *event);

void recorder_check(const struct recorder *r);
