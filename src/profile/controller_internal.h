/*
 * controller_internal: what the files of the controller share; nobody else includes it.
 *
 *   controller.c  its life: doors, leading, observing
 *   setup.c       the configuration in force and its replacement
 *   member.c      one node: its patches and when to look at it again
 *   turn.c        a turn: propose, arbitrate, act
 *   grant.c       leases and the ledger between an ask and its patch
 *   budget.c      reservations under MaintenanceLimits, shared with requests
 *   errand.c      drains and notifications, which take time
 *   look.c        what others may see
 */
#pragma once

#include "base/prioqueue.h"
#include "drain/drain.h"
#include "drain/drain_rules.h"
#include "kube/lease.h"
#include "kube/node.h"
#include "kube/recorder.h"
#include "kube/reflector.h"
#include "ledger/arbiter.h"
#include "ledger/lease_grants.h"
#include "profile/controller.h"
#include "profile/engine.h"
#include "profile/controller_metrics.h"
#include "profile/external_facts.h"
#include "profile/notify/notify.h"
#include "profile/pod_shuffle_metrics.h"

#define NODES_PATH STR("/api/v1/nodes")
#define CONTROLLER_NAME STR("maintenance") /* as events name it */
#define CONTROLLER_TAKES_MAX 8u            /* staggers in one expression; people use one */

/* Where a node stands between its ask and its maintenance. */
enum grant_stage {
    GRANT_NONE,
    GRANT_PODS,   /* has its pods looked at, which were not watched */
    GRANT_LEASES, /* takes the leases of its staggers, one after the other */
    GRANT_LIMITS, /* waits for its reservations */
    GRANT_RECORD, /* waits for the ledger to be written */
    GRANT_HELD,   /* may go, on the recorded version of the node */
    GRANT_GHOST,  /* another leader's: its patch may still arrive */
};

struct grant {
    enum grant_stage stage;
    struct buf owner;                     /* the profile */
    usec_t began;                         /* wall time */
    uint64_t version;                     /* GRANT_RECORD and after: of the node, as recorded */
    uint64_t serial;                      /* GRANT_RECORD: the note that carries it */
    struct list record;                   /* in `recording` */
    uint32_t takes[CONTROLLER_TAKES_MAX]; /* check instances whose lease is to be taken */
    uint32_t take_n;
    struct inquiry_take *take;
};

/* A message that could not be sent, of one instance: each waits for its own next try. */
struct trial {
    struct trial *next;
    struct buf instance;
    struct buf error;
    usec_t retry_at; /* monotonic */
    struct backoff backoff;
};

/* A message on its way, and those that were sent and are not all in the annotation. */
struct errand {
    struct notify_call *call;
    struct buf instance;
    struct buf profile;
    struct timestamp since; /* of the profile's state when it was begun */
    struct arena memory;    /* of `told` */
    struct engine_told *told;
    uint32_t told_n;
    uint32_t told_cap;
    struct trial *trials; /* NULL: none */
};

/* What is kept of a node besides its projection. */
struct member {
    struct controller *c;
    struct store_item *item;    /* borrowed: the member ends with it */
    struct prioqueue_item wake; /* in `waking` */
    usec_t wake_at;             /* monotonic: when to look again */
    struct prioqueue_item ask;  /* in `asks`, or in its room */
    struct room *room;          /* NULL: in `asks`, or nowhere */
    uint64_t offered; /* in `asks`: the room that has a place for it; 0 = it came by itself */
    usec_t since;     /* wall time since when it has asked */
    uint64_t depends; /* bits of check instances, see fleet.h */
    bool any_room;
    bool pods;    /* its checks look at its pods */
    bool refresh; /* read the node before the next patch, unless something newer came */
    struct api_call *call;
    enum api_verb verb; /* of `call` */
    bool arriving;      /* `call`, or the last one, takes the node into maintenance */
    bool unsure;        /* and nobody knows whether it did */
    uint64_t version;   /* that the last patch was based on */
    usec_t sent_at;
    usec_t retry_at; /* nothing is sent before */
    struct backoff backoff;
    struct grant *grant;   /* NULL: none */
    struct ask *reserved;  /* its reservations; NULL: none */
    bool expects;          /* they are a ghost's: it may never become a fact */
    struct ask *line;      /* its place in the line before the limits; NULL: none */
    struct drain *drain;   /* NULL: none */
    struct errand *errand; /* NULL: none */
    struct buf error;      /* why the node is not touched */
    uint64_t failing;      /* a hash of what fails in its profiles; 0 = nothing */
    struct buf news;       /* to tell once the patch is through: kind, profile, text; a line each */
};

/* Nodes that wait for the same room, the longest-waiting first. */
struct room {
    uint64_t id;
    uint32_t index; /* the check instance */
    struct prioqueue waiting;
    struct list link; /* in `rooms` */
};

/* A configuration and the memory it lives in. */
struct setup {
    struct arena memory;
    struct config config;
    struct str *annotations; /* of nodes, that it reads */
    uint32_t annotation_n;
    bool limited; /* a maxMaintenance is among its checks */
    usec_t loaded;
};

struct controller {
    /* First: the store hands it to node_kind as its context. */
    struct node_keep keep;
    struct loop *loop;
    struct log *log;
    struct controller_config config;
    struct arena memory; /* of the configuration's texts */
    struct setup *setup; /* in force */
    struct buf setup_file;
    struct buf setup_error; /* why the newest file is not in force */
    uint64_t setup_generation;
    struct client client;
    struct intern labels;
    struct store store;
    struct reflector reflector;
    struct lease lease;
    struct recorder recorder;
    struct fleet *fleet;
    struct inquiry *inquiry;
    struct drains *drains;
    struct notify_door notify;
    struct lease_grants ledger;
    struct arbiter *arbiter; /* borrowed; NULL: there are no limits but the configuration's */
    bool limits_known;       /* whether there are, has been said */
    struct shuffle *shuffle;
    struct gauges gauges;
    struct loop_timer turn;
    struct loop_timer wake; /* for `waking` and rooms */
    struct loop_timer stop;
    struct prioqueue waking;
    struct prioqueue asks;
    struct list rooms;
    struct list recording; /* of struct grant */
    struct map room_ids;   /* id → struct room */
    struct arena tmp;      /* of the turn */
    struct buf path;
    struct buf body;
    struct controller_stats stats;
    uint64_t changed;  /* bits of check instances that inquiries changed */
    usec_t rooms_next; /* wall time: when a room could grow by itself */
    usec_t warn_at;
    uint64_t warn_hidden;
    uint32_t any_rooms; /* members with any_room */
    uint32_t granting;  /* grants between ask and patch */
    bool leading;       /* as last reported */
    bool known;         /* the nodes were listed once, at least */
    bool fresh;         /* the nodes were listed since leading began, or that does not matter */
    bool adopted;       /* the ledger of the leader before has been read */
    bool surveyed;      /* everybody who asks is in line */
    bool claimed;       /* every node that is in maintenance has claimed its reservations */
    bool line_up;       /* many may have become due at once: as `surveyed`, for what is dirty */
    bool look_at_rooms;
    uint32_t lined; /* members with a `line` */
    bool stopping;
    bool stopped;
    char why[512]; /* the last failure of the watch */
};

/* ── controller.c ──────────────────────────────────────────────────────────────────────────── */
bool controller_may_act(const struct controller *c);
void controller_soon(struct controller *c);
void controller_list_again(struct controller *c);

/* ── setup.c ───────────────────────────────────────────────────────────────────────────────── */
struct setup *setup_default(const struct controller *c);
void setup_free(struct setup *s); /* accepts NULL */
void setup_use(struct controller *c, struct setup *s);

/* ── member.c ──────────────────────────────────────────────────────────────────────────────── */
struct member *member_of(struct controller *c, struct store_item *item);
void member_end(struct member *m);
/* Looks at it again no later than then; monotonic. */
void member_wake_at(struct member *m, usec_t at);
void member_wake(struct controller *c); /* marks those whose time has come */
usec_t member_next(const struct controller *c);
/* Monotonic time of a wall time that lies ahead. */
usec_t controller_when(const struct controller *c, usec_t wall);
void member_send(struct member *m, enum api_verb verb);
bool prio_by_wake(struct prioqueue_item *a, struct prioqueue_item *b);
bool prio_by_since(struct prioqueue_item *a, struct prioqueue_item *b);

/* ── turn.c ────────────────────────────────────────────────────────────────────────────────── */
void controller_turn(void *ctx);
void turn_mark_all(struct controller *c);
void turn_leave_line(struct member *m); /* it asks no more */
void turn_input(const struct member *m, bool explain, struct arena *out, struct engine_input *ret);
/* After the patch that carried them: the triggers that ran, its transitions and their events. */
void turn_tell_news(struct member *m);

/* ── grant.c ───────────────────────────────────────────────────────────────────────────────── */
void grant_begin(struct member *m, const struct engine_effect *effect);
/* After a decision: `asks`, the profile that asks, if any. One that had its pods looked at goes on,
 * or asks no more. */
void grant_look_at_pods(struct member *m, struct str asks);
/* The patch that takes the node into maintenance may go out on this version; otherwise that
 * version is recorded first. */
bool grant_is_good(struct member *m);
void grant_end(struct member *m);
bool grant_is_pending(const struct grant *g); /* asked for, not held yet; accepts NULL */
void grant_commit(struct controller *c);      /* at the end of a turn: what changed is written */
void grant_on_noted(void *ctx, uint64_t serial);
void grant_adopt(struct controller *c);
void grant_lose_all(struct controller *c);
/* A ghost goes when its node has moved on. */
void grant_look(struct member *m);
/* A ghost whose node asks for the same again goes on as a grant, once the limits are held for it.
 * True: that may still be. */
bool grant_revive(struct member *m, struct str owner);
struct str grant_owner(const struct member *m); /* GRANT_HELD: the profile; otherwise empty */
void grant_reserved(struct member *m);          /* GRANT_LIMITS: its reservations are held */

/* ── budget.c ──────────────────────────────────────────────────────────────────────────────── */
#define BUDGET_ROOM ((uint64_t)1) /* the line of those whom a MaintenanceLimit refuses */
/* It asks, its turn has come, and a limit has no room for it. */
bool budget_refuses(struct member *m, const struct engine_effect *effect);
/* True when the reservations are held already; otherwise grant_reserved follows, or the grant's
 * end. */
bool budget_reserve(struct member *m, struct str profile);
/* What is a fact has its reservations, whatever the limits say. */
void budget_claim(struct member *m, struct str profile);
/* What may become one by another leader's patch keeps those that it has, and waits for those that
 * it lacks: limits may apply by now that did not when it was granted. */
void budget_expect(struct member *m, struct str profile);
bool budget_holds(const struct member *m);       /* a ghost may go on */
bool budget_has_refused(const struct member *m); /* … and this one may not */
/* After a decision: claims for a node that is in maintenance, gives back for one that is not. */
void budget_follow(struct member *m, const struct engine_effect *effect);
void budget_drop(struct member *m); /* forgets them; what is on the server stays there */
void budget_open(struct controller *c, struct room *room); /* those whom limits allow ask */
/* It waits in the one line with all requests, while it waits for the limits and few enough do. */
void budget_stand(struct member *m);
void budget_unstand(struct member *m);
struct str budget_words(const struct member *m, struct arena *out); /* why it waits */

/* ── look.c ────────────────────────────────────────────────────────────────────────────────── */
void look_collect(void *ctx); /* before the metrics are read */

/* ── errand.c ──────────────────────────────────────────────────────────────────────────────── */
void errand_drain(struct member *m, const struct engine_effect *effect);
/* The node has changed: its drain must not send anything away by rules that are not in force any
 * more. Without rules it goes on only when it was decided that it is still to go on: they go
 * together with what asked for the drain. */
void errand_on_node(struct member *m);
void errand_stop_drain(struct member *m);
void errand_notify(struct member *m, const struct engine_effect *effect);
void errand_end(struct member *m);
/* The patch that follows says what was sent, but for profiles that have more to send. */
void errand_mark_settling(struct member *m, const struct engine_effect *effect);
/* Nothing of what could not be sent is due any more. */
void errand_forget(struct member *m);
/* What the engine is to know of messages; in `out`. */
void errand_progress(const struct member *m, struct arena *out, struct engine_progress *ret);
/* Monotonic: when a message is to be tried again; USEC_NEVER: none waits. */
usec_t errand_retry_at(const struct member *m);
void errand_settle(struct member *m); /* the annotation holds what was marked */
/* "draining: 12 pods are left, 2 of them on the way out; …" */
struct str errand_drain_words(const struct member *m, struct arena *out);
