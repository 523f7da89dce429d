/*
 * controller_internal: what the files of the controller share; nobody else includes it.
 *
 *   controller.c         its life as a part of the core, and what the core tells it
 *   config_reload.c      the configuration in force and its replacement
 *   managed_node.c       one node: its patches and when to look at it again
 *   controller_turn.c    a turn: propose, arbitrate, act
 *   grant.c              leases and the ledger between a node's ask and its patch
 *   limit_reservation.c  reservations under MaintenanceLimits, shared with requests
 *   node_drain.c         drains that profiles ask for
 *   node_notify.c        notifications about one node
 *   controller_view.c    what others may see
 */
#pragma once

#include "base/prioqueue.h"
#include "core/core.h"
#include "drain/drain_rules.h"
#include "ledger/lease_grants.h"
#include "profile/controller.h"
#include "profile/engine.h"
#include "profile/controller_metrics.h"
#include "profile/external_facts.h"
#include "profile/notify/notify.h"
#include "profile/pod_shuffle_metrics.h"

#define NODES_PATH STR("/api/v1/nodes")
#define CONTROLLER_TAKES_MAX 8u /* staggers in one expression; people use one */

/* Where a node stands between its ask and its maintenance. */
enum grant_stage {
    GRANT_NONE,
    GRANT_PODS,      /* has its pods looked at, which were not watched */
    GRANT_LEASES,    /* takes the leases of its staggers, one after the other */
    GRANT_LIMITS,    /* waits for its reservations */
    GRANT_RECORD,    /* waits for the ledger to be written */
    GRANT_HELD,      /* may go, on the recorded version of the node */
    GRANT_INHERITED, /* another leader's: its patch may still arrive */
};

struct grant {
    enum grant_stage stage;
    struct buf owner;                     /* the profile */
    usec_t began;                         /* wall time */
    uint64_t version;                     /* GRANT_RECORD and after: of the node, as recorded */
    uint64_t serial;                      /* GRANT_RECORD: the note that carries it */
    uint32_t takes[CONTROLLER_TAKES_MAX]; /* check instances whose lease is to be taken */
    uint32_t take_n;
    struct stagger_take *take;
};

/* A message that could not be sent, of one instance: each waits for its own next try. */
struct send_retry {
    struct send_retry *next;
    struct buf instance;
    struct buf error;
    usec_t retry_at; /* monotonic */
    struct backoff backoff;
};

/* A message on its way, and those that were sent and are not all in the annotation. */
struct node_notifications {
    struct notify_call *call;
    struct buf instance;
    struct buf profile;
    struct timestamp since; /* of the profile's state when it was begun */
    struct arena memory;    /* of `sent` */
    struct engine_sent *sent;
    uint32_t sent_n;
    uint32_t sent_cap;
    struct send_retry *retries; /* NULL: none */
};

/* What is kept of a node besides its projection. */
struct managed_node {
    struct controller *c;
    struct store_item *item;          /* borrowed: the managed node ends with it */
    struct prioqueue_item wake;       /* in `waking` */
    usec_t wake_at;                   /* monotonic: when to look again */
    struct prioqueue_item queue_item; /* in `wants_grant`, or in its wait queue */
    struct wait_queue *queue;         /* NULL: in `wants_grant`, or nowhere */
    uint64_t offered; /* in `wants_grant`: the wait queue that has a place for it; 0 = it came by
                         itself */
    usec_t since;     /* wall time since when it has asked */
    uint64_t depends; /* bits of check instances, see fleet.h */
    bool any_group;
    bool reads_pods; /* its checks look at its pods */
    bool refresh;    /* read the node before the next patch, unless something newer came */
    struct api_call *call;
    enum api_verb verb;   /* of `call` */
    bool entering;        /* `call`, or the last one, takes the node into maintenance */
    bool outcome_unknown; /* and nobody knows whether it did */
    uint64_t version;     /* that the last patch was based on */
    usec_t sent_at;
    usec_t retry_at; /* nothing is sent before */
    struct backoff backoff;
    struct grant *grant;     /* NULL: none */
    struct ask *reserved;    /* its reservations; NULL: none */
    bool inherited;          /* they are an inherited grant's: it may never become a fact */
    struct ask *limit_queue; /* its place in the line before the limits; NULL: none */
    struct drain *drain;     /* NULL: none */
    struct node_notifications *notifications; /* NULL: none */
    struct buf error;                         /* why the node is not touched */
    uint64_t failing;  /* a hash of what fails in its profiles; 0 = nothing */
    struct buf events; /* to tell once the patch is through: kind, profile, text; a line each */
};

/* Nodes that wait for the same group, the longest-waiting first. */
struct wait_queue {
    uint64_t id;
    uint32_t index; /* the check instance */
    struct prioqueue waiting;
};

/* A configuration and the memory it lives in. */
struct active_config {
    struct arena memory;
    struct config config;
    struct str *annotations; /* of nodes, that it reads */
    uint32_t annotation_n;
    bool has_max_maintenance; /* a maxMaintenance is among its checks */
    usec_t loaded;
};

struct controller {
    struct core_part part;
    struct core *core; /* borrowed */
    struct loop *loop;
    struct log *log;
    struct controller_config config;
    struct active_config *active; /* in force */
    struct buf config_file;
    struct buf config_error; /* why the newest file is not in force */
    uint64_t config_generation;
    struct fleet *fleet;
    struct external_facts *external;
    struct notifier notify;
    struct lease_grants ledger;
    struct pod_shuffle *shuffle;
    struct controller_metrics metrics;
    struct loop_timer turn;
    struct loop_timer wake; /* for `waking` and wait queues */
    struct prioqueue waking;
    struct prioqueue wants_grant;
    struct map wait_queues; /* id → struct wait_queue */
    struct arena tmp;       /* of the turn */
    struct buf path;
    struct buf body;
    struct controller_stats stats;
    uint64_t changed;     /* bits of check instances that external facts changed */
    usec_t capacity_next; /* wall time: when capacity could grow by itself */
    usec_t warn_at;
    uint64_t warn_hidden;
    uint32_t any_groups; /* nodes with any_group */
    uint32_t granting;   /* grants between ask and patch */
    bool grants_read;    /* the ledger of the leader before has been read */
    bool all_queued;     /* everybody who asks is in line */
    bool all_reserved;   /* every node that is in maintenance has claimed its reservations */
    bool queue_dirty;    /* many may have become due at once: as `all_queued`, for what is dirty */
    bool capacity_changed;
    uint32_t limit_queue_n; /* nodes with a `limit_queue` */
};

/* ── controller.c ──────────────────────────────────────────────────────────────────────────── */
bool controller_may_act(const struct controller *c);
void controller_schedule_turn(struct controller *c);

/* ── config_reload.c ────────────────────────────────────────────────────────────────────────────
 */
struct active_config *reload_default(void);
void reload_free(struct active_config *s); /* accepts NULL */
void reload_activate(struct controller *c, struct active_config *s);

/* ── managed_node.c ─────────────────────────────────────────────────────────────────────────────
 */
struct managed_node *managed_node_get(struct controller *c, struct store_item *item);
void managed_node_free(struct managed_node *m);
/* Looks at it again no later than then; monotonic. */
void managed_node_wake_at(struct managed_node *m, usec_t at);
void managed_node_wake_due(struct controller *c); /* marks those whose time has come */
usec_t managed_node_next_wake(const struct controller *c);
/* Monotonic time of a wall time that lies ahead. */
usec_t controller_monotonic(const struct controller *c, usec_t wall);
void managed_node_send(struct managed_node *m, enum api_verb verb);
bool prio_by_wake(struct prioqueue_item *a, struct prioqueue_item *b);
bool prio_by_since(struct prioqueue_item *a, struct prioqueue_item *b);

/* ── controller_turn.c ──────────────────────────────────────────────────────────────────────────
 */
void controller_turn(void *ctx);
void turn_mark_all(struct controller *c);
void turn_leave_queue(struct managed_node *m); /* it asks no more */
void turn_engine_input(const struct managed_node *m, bool explain, struct arena *out,
                       struct engine_input *ret);
/* After the patch that carried them: the triggers that ran, its transitions and their events. */
void turn_send_pending_events(struct managed_node *m);

/* ── grant.c ───────────────────────────────────────────────────────────────────────────────── */
void grant_begin(struct managed_node *m, const struct engine_effect *effect);
/* After a decision: `wants_grant`, the profile that asks, if any. One that had its pods looked at
 * goes on, or asks no more. */
void grant_recheck_pods(struct managed_node *m, struct str wants_grant);
/* The patch that takes the node into maintenance may go out on this version; otherwise that
 * version is recorded first. */
bool grant_allows_patch(struct managed_node *m);
void grant_end(struct managed_node *m);
bool grant_is_pending(const struct grant *g); /* asked for, not held yet; accepts NULL */
void grant_commit(struct controller *c);      /* at the end of a turn: what changed is written */
void grant_on_noted(struct controller *c, uint64_t serial);
void grant_inherit_all(struct controller *c);
void grant_drop_all(struct controller *c);
/* An inherited grant goes when its node has moved on. */
void grant_drop_if_stale(struct managed_node *m);
/* An inherited grant whose node asks for the same again goes on as a grant, once the limits are
 * held for it. True: that may still be. */
bool grant_resume(struct managed_node *m, struct str owner);
struct str grant_owner(const struct managed_node *m); /* GRANT_HELD: the profile; otherwise empty */
void grant_on_reserved(struct managed_node *m);       /* GRANT_LIMITS: its reservations are held */

/* ── limit_reservation.c ────────────────────────────────────────────────────────────────────────
 */
#define NODE_LIMIT_QUEUE ((uint64_t)1) /* the line of those whom a MaintenanceLimit refuses */
/* It asks, its turn has come, and a limit has no room for it. */
bool node_limit_refuses(struct managed_node *m, const struct engine_effect *effect);
/* True when the reservations are held already; otherwise grant_on_reserved follows, or the grant's
 * end. */
bool node_limit_reserve(struct managed_node *m, struct str profile);
/* What is a fact has its reservations, whatever the limits say. */
void node_limit_adopt(struct managed_node *m, struct str profile);
/* What may become one by another leader's patch keeps those that it has, and waits for those that
 * it lacks: limits may apply by now that did not when it was granted. */
void node_limit_inherit(struct managed_node *m, struct str profile);
bool node_limit_holds(const struct managed_node *m);       /* an inherited grant may go on */
bool node_limit_has_refused(const struct managed_node *m); /* … and this one may not */
/* After a decision: claims for a node that is in maintenance, gives back for one that is not. */
void node_limit_sync(struct managed_node *m, const struct engine_effect *effect);
void node_limit_drop(struct managed_node *m); /* forgets them; what is on the server stays there */
void node_limit_queue_offer(struct controller *c,
                            struct wait_queue *queue); /* those whom limits allow ask */
/* It waits in the one line with all requests, while it waits for the limits and few enough do. */
void node_limit_queue_enter(struct managed_node *m);
void node_limit_queue_leave(struct managed_node *m);
struct str node_limit_explain(const struct managed_node *m, struct arena *out); /* why it waits */

/* ── controller_view.c ──────────────────────────────────────────────────────────────────────────
 */
void controller_view_collect(void *ctx); /* before the metrics are read */

/* ── node_drain.c ──────────────────────────────────────────────────────────────────────────── */
/* Starts the drain, or gives the one that runs the drain rules that the node has now. */
void node_drain_run(struct managed_node *m, const struct engine_effect *effect);
/* The node has changed: a drain that runs evicts by the node's new drain rules from now on. When
 * the node has no rules any more the drain is left alone: they are removed together with what
 * asked for the drain, and the next decision says whether it goes on. */
void node_drain_set_rules(struct managed_node *m);
void node_drain_stop(struct managed_node *m);
/* "draining: 12 pods are left, 2 of them on the way out; …" */
struct str node_drain_text(const struct managed_node *m, struct arena *out);

/* ── node_notify.c ─────────────────────────────────────────────────────────────────────────── */
void node_notify_send(struct managed_node *m, const struct engine_effect *effect);
void node_notify_free(struct managed_node *m);
/* Marks the sent notifications that the next patch writes to the data annotation. Those of a
 * profile that has more to send are not marked. */
void node_notify_mark_in_patch(struct managed_node *m, const struct engine_effect *effect);
void node_notify_on_patched(struct managed_node *m); /* the annotation holds what was marked */
/* No notification that failed is due any more. */
void node_notify_drop_retries(struct managed_node *m);
/* What the engine is to know of notifications; in `out`. */
void node_notify_progress(const struct managed_node *m, struct arena *out,
                          struct engine_progress *ret);
/* Monotonic: when a failed notification is to be tried again; USEC_NEVER: none waits. */
usec_t node_notify_retry_at(const struct managed_node *m);
