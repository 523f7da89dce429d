/*
 * arbiter_internal: what the arbiter's files share.
 *
 * A limit_state is our side of a MaintenanceLimit, a selector_state that of a MaintenanceSelector,
 * a target_lock that of a target's Lease; a workload_watch brings a kind of object, other than
 * nodes, that limits count. Each turn decides anew from what the server last said: which limits
 * have a reservation of an ask, who has a lock. Requests under way are remembered only so that they
 * are not sent twice.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "kube/node.h"
#include "kube/informer.h"
#include "kube/writer.h"
#include "kinds/maintenance_request.h"
#include "ledger/arbiter.h"
#include "ledger/limit.h"
#include "kinds/maintenance_selector.h"
#include "kinds/limit_status_patch.h"

#define ARBITER_WRITE_INTERVAL SECONDS(1) /* between writes of numbers that decide nothing */
#define ARBITER_CONFLICTS_MAX 5u /* lost writes of a limit's status in a row, then a back-off */
#define ARBITER_UNKNOWN_AFTER SECONDS(10) /* then the status says that inputs cannot be read */
#define ARBITER_LOCK_CALLS_MAX 32u        /* requests about locks in flight */
#define ARBITER_ORPHAN_CALLS_MAX 8u       /* reads of the requests of orphans in flight */
/* How long a reservation without a request to read has to be unclaimed before it is swept. */
#define ARBITER_ORPHAN_WAIT MINUTES(1)
/* How long a reservation that another controller wrote for an ask that waits here is left alone. */
#define ARBITER_FOREIGN_WAIT MINUTES(5)
#define ARBITER_EVENT_INTERVAL MINUTES(5) /* between Events with the same text */
#define ARBITER_MISSING_INTERVAL HOURS(1) /* between Events that say that no limit applies */

/* One object that a limit may count or that an ask is about. */
struct counted_object {
    enum target_type type;
    struct str name; /* "name", or "namespace/name" */
    struct str namespace;
    struct str bare_name; /* without its namespace */
    uint32_t traits;
    selector_lookup *lookup; /* of its labels */
    void *ctx;
};

/* ── workloads and namespaces ──────────────────────────────────────────────────────────────── */

struct workload_label {
    struct str key;
    struct str value;
};

struct workload {
    struct workload_label *labels;
    uint32_t label_n;
    uint32_t traits;
    int64_t spare_pods; /* ready pods beyond those wanted; below 0: some are missing */
};

struct workload_watch {
    struct arbiter *arbiter;
    bool namespaces; /* the objects are namespaces, for their labels */
    enum target_type type;
    struct informer objects;
    bool running;
};

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

struct limit_state {
    struct arbiter *arbiter;
    struct store_item *item; /* NULL: no object, but the limit that --missing-limit asks for */
    struct limit own;        /* that limit */
    struct list link;        /* in arbiter->limit_states, by name */
    /* Which objects are counted. */
    bool usable;       /* the limit is accepted, and the selector that it refers to is there */
    struct str reason; /* why the limit is not usable; both texts live in `text_memory` */
    struct str problem;
    struct arena text_memory;
    uint32_t population;
    struct map policy_hits; /* name → const struct limit_policy */
    /* Of this turn. */
    struct limit_counts counts; /* as if this turn's reservations were added and removed already */
    uint32_t to_add;
    uint32_t kept_for_queue; /* for asks with queue_only */
    uint64_t bytes_claimed;  /* by both */
    bool releasing;
    uint32_t waiting;
    /* The object on the server. */
    struct writer writer;
    uint64_t write_count; /* counts writes */
    uint32_t conflicts;   /* in a row */
    usec_t written_at;
    usec_t inputs_unknown_since; /* since when its inputs cannot be read; -1: they can */
    /* What the Events say once the write under way is accepted. */
    struct limit_status_diff pending_diff;
    struct buf overcommit_text;
    struct buf event_text[2];
    usec_t event_sent_at[2];
};

/* ── targets ───────────────────────────────────────────────────────────────────────────────── */

struct target_lock {
    struct arbiter *arbiter;
    struct str name;   /* of the Lease */
    struct str target; /* "node//n1"; empty while no ask is about it */
    struct arena memory;
    struct list asks;  /* by their lock_link */
    struct ask *taker; /* of this turn: the ask that has the lock or may take it */
    bool exists;       /* there is a Lease; the rest is what it says */
    uint64_t version;
    uint32_t list;  /* number of the last list that contained it */
    uint32_t grant; /* the holder's grant number; 0: the Lease has none */
    struct buf holder;
    struct buf holder_name;
    struct buf uid;
    struct buf created_uid; /* uid of the Lease that was created from here */
    struct writer writer;
};

/* The holder of reservations or of a lock whose uid no ask has. */
struct orphan {
    struct arbiter *arbiter;
    struct arena memory;
    struct str uid;
    struct str name;
    enum ask_owner owner;
    uint32_t closed_below; /* grants with lower numbers are over: remove their reservations */
    bool unnumbered;       /* remove reservations without a number, too */
    bool marked; /* remove nothing: something done for the request is to be undone first */
    bool seen;   /* by this sweep */
    usec_t since;
    usec_t retry_at;
    struct api_call *call;
};

/* ── asks ──────────────────────────────────────────────────────────────────────────────────── */

struct applied_limit {
    struct limit_state *limit;
    uint64_t version; /* of the limit when `reserved` was found out */
    bool reserved;
    bool newer_grant;        /* there is a reservation of a grant that we have not heard of */
    bool wanted;             /* of this turn: a reservation is to be added */
    uint64_t added_by_write; /* the limit's write_count of the write that adds the reservation */
    bool added_here;         /* that write was accepted: no other controller has added it */
    /* already_true: the version of the limit that was known when the last live read was sent, and
     * when the last one confirmed the ask. */
    uint64_t confirm_asked;
    uint64_t confirmed;
};

struct ask {
    struct arbiter *arbiter;
    struct list link;        /* in arbiter->queue */
    struct list lock_link;   /* in lock->asks */
    struct list notify_link; /* in arbiter->notify_list: its owner is to be told */
    struct arena memory;
    struct ask_spec spec;
    struct buf state;
    struct str target_name; /* the target as reservations name it */
    void (*on_change)(void *ctx);
    void *ctx;
    struct target_lock *lock;
    struct applied_limit *applied; /* the limits that apply, by name */
    uint32_t applied_n;
    uint64_t limits_version; /* the arbiter's when `applied` was found; 0: find it again */
    bool target_missing;     /* the target is not there */
    bool target_known;       /* target_missing is certain */
    bool ending;
    uint32_t closed_below; /* grants with lower numbers are over */
    bool must_close_grant; /* of this turn: see ask_view */
    bool notified_must_close;
    bool notified_paused; /* ask_is_paused, likewise */
    bool held;
    bool granting; /* of this turn */
    bool offered;  /* of this turn: queue_only, and its share is kept for it */
    bool notified_offered;
    bool keep;            /* it cannot be decided now: reservations and lock stay as they are */
    usec_t waiting_since; /* monotonic: since when it is not granted; USEC_NEVER: it is */
    bool adopted;         /* it was held once: from then on already_true forces nothing more */
    bool must_confirm;    /* of this turn: whether it is already_true has to be read live */
    struct api_call *confirm_call;
    usec_t confirm_retry;
    bool was_unavailable; /* the target was unavailable when the ask was granted */
    enum ask_stage stage;
    enum ask_why why;
    enum ask_why notified_why;                /* the reason that its owner knows */
    const struct limit_state *blocking_limit; /* the limit that `why` is about; NULL: none */
    uint32_t position;
    /* the double check before an approval (R13) */
    bool rechecking;
    bool recheck_listed; /* the limits were read */
    bool recheck_read;   /* the target was read */
    uint64_t recheck_list;
    struct api_call *recheck_call;
    usec_t recheck_retry;
    struct str recheck_uid;
    struct err recheck_err;
    void (*on_rechecked)(void *ctx, const struct err *err);
    void *recheck_ctx;
};

struct arbiter {
    struct arbiter_config config;
    struct loop *loop;
    struct client *client;
    struct arena memory;
    struct loop_timer turn;
    uint64_t turns;
    bool may_act; /* of this turn */
    usec_t now;
    usec_t wall;
    bool freed;
    uint64_t capacity_hash; /* of all that arbiter_would_grant looks at */
    uint64_t lock_changes;
    /* limits */
    struct informer limits;
    struct list limit_states;
    struct limit_state *fallback[TARGET_TYPES]; /* --missing-limit=<percent> */
    uint64_t limits_version; /* counts up when other limits may apply to a target */
    bool recount[TARGET_TYPES];
    bool sweep_needed; /* reservations, locks or asks have changed: look for orphans */
    /* selectors */
    struct informer selectors;
    struct list selector_states;
    /* what limits count */
    struct workload_watch workload_watches[TARGET_TYPES]; /* none for nodes */
    struct workload_watch namespaces;
    /* locks */
    struct reflector target_locks_reflector;
    bool target_locks_synced;
    uint32_t lock_list;
    struct map locks;   /* name of the Lease → struct target_lock */
    struct map targets; /* "node//n1" → struct target_lock with asks */
    uint32_t lock_calls;
    struct str target_locks_path;
    /* asks */
    struct map asks;                  /* uid → struct ask */
    uint32_t ask_count[TARGET_TYPES]; /* asks by the type of their target */
    struct list queue;                /* in its order, after each turn */
    bool queue_unsorted;              /* asks were put at its end that do not belong there */
    struct list notify_list;
    bool owner_synced[ASK_OWNERS];
    struct map orphans; /* uid → struct orphan */
    uint32_t orphan_calls;
    usec_t missing_event_at[TARGET_TYPES]; /* wall */
    /* the double check */
    struct api_call *recheck_call;
    uint64_t recheck_list; /* the live list of limits that is under way, or the last one */
    usec_t recheck_retry;
    struct backoff recheck_backoff;
    struct buf path;
    struct buf body;
    struct arena views; /* of ask_view: until the next turn */
};

static inline const struct limit *limit_of(const struct limit_state *b)
{
    return b->item != NULL ? b->item->object : &b->own;
}

static inline uint64_t limit_state_version(const struct limit_state *b)
{
    return b->item != NULL ? b->item->version : 1;
}

/* The turn comes as soon as the loop runs, or at a time. */
void arbiter_run_soon(struct arbiter *a);
void arbiter_run_at(struct arbiter *a, usec_t monotonic);
/* A wall time as a monotonic one. */
usec_t arbiter_monotonic(const struct arbiter *a, usec_t wall);
/* Other limits than before may apply to targets of that type. */
void arbiter_limits_changed(struct arbiter *a, enum target_type type);

/* population.c: which objects are counted under which limit. */
void population_start(struct arbiter *a);
void population_stop(struct arbiter *a);
/* Starts and stops watches as limits and asks need them. */
void population_update_watches(struct arbiter *a);
bool population_known(const struct arbiter *a, enum target_type type);
/* The object of that name; false when there is none. */
bool population_find(const struct arbiter *a, enum target_type type, struct str name,
                     struct counted_object *ret);
void population_recount(struct arbiter *a);
void population_each(const struct arbiter *a, enum target_type type,
                     void (*fn)(void *ctx, const struct counted_object *m), void *ctx);
/* The limits that apply to an object, in order of their names; returns how many. */
uint32_t population_limits(const struct arbiter *a, const struct counted_object *m,
                           struct limit_state **ret, uint32_t max);
/* What a jval's labels answer; ctx is the jval of metadata.labels. */
bool counted_object_lookup_jval(void *ctx, struct str key, struct str *ret_value);
bool population_selector_matches(const struct arbiter *a, const struct maintenance_selector *p,
                                 const struct counted_object *m);
void population_check(const struct arbiter *a);

/* limit_status.c: the status of limits. */
struct limit_state *limit_state_new(struct arbiter *a, struct store_item *item);
void limit_state_free(struct limit_state *b);
/* Finds out whether the limit is usable, and why not. */
void limit_state_check_usable(struct limit_state *b);
void limit_state_step(struct limit_state *b);
const struct reservation *limit_state_reservation(const struct limit_state *b, struct str uid);
/* By the reservations that the server has, whatever this turn adds or takes away. */
struct limit_counts limit_state_server_counts(const struct limit_state *b);

/* target_lock.c */
void target_locks_start(struct arbiter *a);
void target_locks_stop(struct arbiter *a);
/* The lock of that target, if one is known. */
struct target_lock *target_lock_find(const struct arbiter *a, struct str target, struct arena *tmp);
void target_lock_join(struct ask *k);
void target_lock_leave(struct ask *k);
bool target_lock_is_held_by(const struct target_lock *l, struct str uid);
/* Creates the Lease for the ask, or reads who has it. */
void target_lock_take(struct target_lock *l, struct ask *k);
/* Deletes the Lease, if it is still the one that we know. */
void target_lock_release(struct target_lock *l);

static inline struct str arbiter_paused(const struct arbiter *a)
{
    return a->config.paused != NULL ? a->config.paused(a->config.ctx) : STR_NONE;
}

/* limit_view.c: held, and nothing is to be prepared under it now. */
bool ask_is_paused(const struct ask *k);

/* queue.c: which asks are granted. */
void queue_insert(struct ask *k);
void queue_decide(struct arbiter *a);
/* After the statuses were sent: takes and releases locks, and finds the stage of every ask. */
void queue_settle(struct arbiter *a);
/* A reservation or lock under the ask's uid with that grant number: is its grant over? is it the
 * grant that is asked for? may it be removed? Neither over nor asked for: it is newer than what we
 * know of the request. */
bool ask_grant_is_closed(const struct ask *k, uint32_t grant);
bool ask_grant_is_current(const struct ask *k, uint32_t grant);
bool ask_may_release(const struct ask *k, uint32_t grant);
/* The target is locked for the ask. For one that is already_true another's lock will do. */
bool ask_has_lock(const struct ask *k);
bool ask_leaves_reservation(const struct ask *k, const struct limit_state *b);
struct applied_limit *ask_applied_limit(const struct ask *k, const struct limit_state *b);
/* The ask that claims the reservations under that uid; NULL: none, or one with queue_only. */
struct ask *ask_find_by_uid(const struct arbiter *a, struct str uid);
/* The ask's owner is told in this turn that something has changed. */
void ask_notify_owner(struct ask *k);

/* orphan_sweep.c: reservations and locks that no ask claims. */
void orphan_sweep(struct arbiter *a);
void orphan_forget(struct arbiter *a, struct str uid);
/* A reservation or lock with that uid and grant number is to be removed: no ask claims it, and the
 * grant is over. */
bool orphan_may_release(const struct arbiter *a, struct str uid, uint32_t grant);
void orphan_sweep_stop(struct arbiter *a);
/* Reads what an ask that is already_true rests on: its request, or its target. */
void ask_confirm(struct ask *k);

/* selector_status.c: the status of selectors. */
void selectors_start(struct arbiter *a);
void selectors_stop(struct arbiter *a);
void selectors_step(struct arbiter *a);
void selectors_mark(struct arbiter *a, enum target_type type);
const struct maintenance_selector *selectors_find(const struct arbiter *a, struct str selector_ref);

/* recheck.c: the double check. */
void recheck_step(struct arbiter *a);
/* Writes the path of the ask's target into the arbiter's `path`. */
void ask_target_path(const struct ask *k);
void recheck_cancel(struct ask *k);
void recheck_stop(struct arbiter *a);

/* limit_view.c: as ask_view, with the texts in `out`. */
void ask_fill_view(const struct ask *k, struct arena *out, struct ask_view *ret);

/* limit_metrics.c */
void limit_metrics_start(struct arbiter *a);
void limit_metrics_stop(struct arbiter *a);

/* limit_events.c */
void limit_event_updated(struct limit_state *b, uint32_t limit, uint32_t population);
void limit_event_overcommitted(struct limit_state *b, struct str text);
void limit_event_missing(struct ask *k);
