/*
 * controller_internal: what the files of the controller share; nobody else includes it.
 *
 *   controller.c         creation, end, and callbacks of the core and of timers
 *   config_reload.c      the configuration in force and its replacement
 *   managed_node.c       one node: its patches, and when it is decided again
 *   controller_turn.c    a turn: propose, arbitrate, act
 *   grant.c              from a node that asks for maintenance to its patch
 *   limit_reservation.c  reservations under MaintenanceLimits, shared with requests
 *   node_drain.c         drains that profiles ask for
 *   node_notify.c        notifications about one node
 *   controller_view.c    what others read of the controller
 */
#pragma once

#include "base/prioqueue.h"
#include "core/core.h"
#include "drain/drain_rules.h"
#include "kube/writer.h"
#include "ledger/lease_grants.h"
#include "profile/alerts.h"
#include "profile/controller.h"
#include "profile/engine.h"
#include "profile/controller_metrics.h"
#include "profile/external_facts.h"
#include "profile/node_report.h"
#include "profile/notify/notify.h"
#include "profile/pod_shuffle_metrics.h"

#define NODES_PATH STR("/api/v1/nodes")
#define CONTROLLER_TAKES_MAX 8u /* staggers in one expression; people use one */

/* How far a node is between asking for maintenance and its patch. */
enum grant_stage {
    GRANT_NONE,
    GRANT_PODS,      /* waits until its pods, which were not watched, are read */
    GRANT_LEASES,    /* takes the Leases of its staggers, one after the other */
    GRANT_LIMITS,    /* waits for its reservations */
    GRANT_RECORD,    /* waits for the ledger to be written */
    GRANT_CONFIRM,   /* recorded; waits for what other systems say from now on */
    GRANT_HELD,      /* its patch may go out, on the recorded version of the node */
    GRANT_INHERITED, /* the last leader's, or its outcome is unknown: its patch may still arrive */
};

struct grant {
    enum grant_stage stage;
    struct buf owner; /* the profile */
    usec_t began;     /* wall time */
    uint64_t version; /* GRANT_RECORD and after: of the node, as recorded */
    uint64_t serial;  /* GRANT_RECORD: the Lease's note that has it; 0 = not written yet */
    uint32_t takes[CONTROLLER_TAKES_MAX]; /* check instances whose Lease is to be taken */
    uint32_t take_n;
    struct stagger_take *take;
    struct arena memory; /* of `facts` */
    uint32_t *facts;     /* check instances whose answers are asked for anew before the node goes */
    uint32_t fact_n;
    usec_t confirm_since; /* GRANT_CONFIRM: wall time; older answers do not count */
    usec_t confirm_until; /* likewise, monotonic: how long it waits for them */
};

/* A notification that is being sent, or that waits for its next try. Everything that its text is
 * made of is kept here: the profile may have moved on when it is tried again. */
struct node_message {
    struct node_message *next;
    struct managed_node *m;
    struct notify_call *call; /* NULL: it waits */
    struct arena memory;
    struct str instance;
    struct notify_facts facts;
    usec_t began;     /* monotonic: the first try */
    struct buf error; /* of the last try; empty = it is the first */
    usec_t retry_at;  /* monotonic */
    struct backoff backoff;
};

/* Notifications of a node that are not in its annotation yet. */
struct node_notifications {
    struct node_message *first; /* tried for the first time; NULL: none */
    struct node_message *retries;
    struct arena memory; /* of `sent` */
    struct engine_sent *sent;
    uint32_t sent_n;
    uint32_t sent_cap;
};

/* What is kept of a node besides its projection. */
struct managed_node {
    struct controller *c;
    struct store_item *item;          /* borrowed: the managed node ends with it */
    struct prioqueue_item wake;       /* in `waking` */
    usec_t wake_at;                   /* monotonic: when to decide it again */
    struct prioqueue_item queue_item; /* in `wants_grant`, or in `queue` */
    struct wait_queue *queue;         /* NULL: in `wants_grant`, or nowhere */
    uint64_t offered;                 /* id of the wait queue that offered it a place; 0 = none */
    usec_t since;                     /* wall time since when it asks */
    uint64_t depends;                 /* bits of check instances, see fleet.h */
    bool any_group;
    bool reads_pods; /* its checks read its pods */
    struct writer writer;
    bool entering;        /* its last patch takes the node into maintenance */
    bool outcome_unknown; /* … and it is unknown whether the server applied it */
    usec_t sent_at;
    struct grant *grant;     /* NULL: none */
    struct ask *reserved;    /* its reservations; NULL: none */
    bool inherited;          /* `reserved` is for an inherited grant, which may come to nothing */
    struct ask *limit_queue; /* its place in the arbiter's queue; NULL: none */
    struct drain *drain;     /* NULL: none */
    struct node_notifications *notifications; /* NULL: none */
    struct hypervisor_alter *alter;           /* changes of its Hypervisor; NULL: none ever was */
    struct buf error;                         /* why the node is not touched */
    uint64_t failing;  /* a hash of what fails in its profiles; 0 = nothing */
    struct buf events; /* to be sent after the patch: kind, profile and text, a line each */
};

/* Nodes that wait for the same group of a maxMaintenance, the longest-waiting first. */
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
    struct buf config_error;    /* why the newest file is not in force */
    struct buf config_warnings; /* of the configuration in force, one a line */
    uint64_t config_generation;
    struct fleet *fleet;
    struct external_facts *external;
    struct informer hypervisors; /* zeroed: the configuration names none */
    uint32_t altering;           /* changes of Hypervisors in flight */
    uint32_t hypervisors_state;  /* as nodes were last decided, see hypervisor_alter.c */
    struct notifier notify;
    struct alerts *alerts;
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
    bool grants_read;    /* the last leader's grants have been read */
    bool all_queued;     /* every node that asks is in a queue */
    bool all_reserved;   /* every node in maintenance has asked for its reservations */
    bool queue_dirty;    /* many dirty nodes may ask at once: they are queued first */
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
/* Decides the node again at that time or earlier; monotonic. */
void managed_node_wake_at(struct managed_node *m, usec_t at);
void managed_node_wake_due(struct controller *c); /* marks the nodes whose time has come */
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
void turn_leave_queue(struct managed_node *m); /* it does not ask any more */
void turn_engine_input(const struct managed_node *m, bool explain, struct arena *out,
                       struct engine_input *ret);
void turn_record_event(struct controller *c, const struct store_item *item, const char *type,
                       const char *reason, const char *action, struct str note);
/* After a patch: logs its triggers and transitions, and sends their Events. */
void turn_send_pending_events(struct managed_node *m);

/* ── grant.c ───────────────────────────────────────────────────────────────────────────────── */
void grant_begin(struct managed_node *m, const struct engine_effect *effect);
/* After a decision, with the profile that asks, if any: a grant in GRANT_PODS goes on once the pods
 * are known, one in GRANT_CONFIRM once other systems have answered again; both end when their
 * profile does not ask any more. */
void grant_recheck(struct managed_node *m, struct str wants_grant);
/* Whether the patch into maintenance may go out on the node's present version; if not, that version
 * is recorded first, or other systems are asked again. */
bool grant_allows_patch(struct managed_node *m, const struct engine_effect *effect);
void grant_end(struct managed_node *m);
bool grant_is_pending(const struct grant *g); /* asked for, not held yet; accepts NULL */
void grant_commit(struct controller *c);      /* at the end of a turn: what changed is written */
void grant_on_noted(struct controller *c, uint64_t serial);
void grant_inherit_all(struct controller *c);
void grant_drop_all(struct controller *c);
/* An inherited grant goes when its node has moved on. */
void grant_drop_if_stale(struct managed_node *m);
/* An inherited grant whose node asks for the same again becomes a held grant once it has its
 * reservations. True: it may still become one. */
bool grant_resume(struct managed_node *m, const struct engine_effect *effect);
/* GRANT_HELD, GRANT_CONFIRM: the profile; otherwise empty */
struct str grant_owner(const struct managed_node *m);
bool grant_is_confirming(const struct managed_node *m);
void grant_on_reserved(struct managed_node *m); /* GRANT_LIMITS: its reservations are held */

/* ── limit_reservation.c ────────────────────────────────────────────────────────────────────────
 */
#define NODE_LIMIT_QUEUE ((uint64_t)1) /* the queue of nodes that a MaintenanceLimit refuses */
/* The node asks and is next, but a limit does not allow it. */
bool node_limit_refuses(struct managed_node *m, const struct engine_effect *effect);
/* True when the reservations are held already; otherwise grant_on_reserved follows, or the grant's
 * end. */
bool node_limit_reserve(struct managed_node *m, struct str profile);
/* A node that is in maintenance gets its reservations whatever the limits say. */
void node_limit_adopt(struct managed_node *m, struct str profile);
/* A node with an inherited grant keeps the reservations that it has, and waits for those that it
 * lacks: limits may apply by now that did not when it was granted. */
void node_limit_inherit(struct managed_node *m, struct str profile);
bool node_limit_holds(const struct managed_node *m);       /* an inherited grant may go on */
bool node_limit_has_refused(const struct managed_node *m); /* … or may not */
/* After a decision: a node in maintenance gets its reservations, any other gives them back. */
void node_limit_sync(struct managed_node *m, const struct engine_effect *effect);
void node_limit_drop(struct managed_node *m); /* forgets them; what is on the server stays there */
void node_limit_queue_offer(struct controller *c,
                            struct wait_queue *queue); /* nodes that the limits allow ask */
/* The node also waits in the arbiter's queue, together with requests, unless too many nodes do. */
void node_limit_queue_enter(struct managed_node *m);
void node_limit_queue_leave(struct managed_node *m);
struct str node_limit_explain(const struct managed_node *m, struct arena *out); /* why it waits */
/* The limit under which the node has its reservation and that is paused; empty: none is. In `out`.
 */
struct str node_limit_paused(const struct managed_node *m, struct arena *out);

/* ── hypervisor_alter.c ─────────────────────────────────────────────────────────────────────────
 */
/* Watches the Hypervisors, if the configuration has a plugin of theirs. */
void hypervisors_configure(struct controller *c, const struct config *config);
void hypervisors_stop(struct controller *c);
/* They are known, cannot be known, or are not wanted. */
bool hypervisors_known(const struct controller *c);
/* Makes the change that the decision asks for, unless one is under way or has to wait. */
void hypervisor_alter_run(struct managed_node *m, const struct engine_effect *effect);
/* For struct engine_progress; the context is the managed node. */
bool hypervisor_alter_done(const void *ctx, struct str key);
struct str hypervisor_alter_error(const struct managed_node *m);
void hypervisor_alter_free(struct managed_node *m);

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
/* Tries again what failed and is due. */
void node_notify_send_retries(struct managed_node *m);
void node_notify_retry_now(struct managed_node *m); /* all that failed */
/* How many could not be sent yet. */
uint32_t node_notify_unsent(const struct managed_node *m);
/* The same for people; in `out`. */
void node_notify_explain(const struct managed_node *m, struct arena *out, struct node_report *ret);
/* What the engine is to know of notifications; in `out`. */
void node_notify_progress(const struct managed_node *m, struct arena *out,
                          struct engine_progress *ret);
/* Monotonic: when a failed notification is to be tried again; USEC_NEVER: none waits. */
usec_t node_notify_retry_at(const struct managed_node *m);
