/*
 * drain_internal: what the files of this folder share about drains under way: a drain, what it
 * knows of its pods and of the budgets that cover them, and the evictions it has sent.
 *
 * A drain_pod_state is our side of a pod, a pdb_state our side of a PodDisruptionBudget that covers
 * such pods; each hangs at its store item and goes with it. An eviction is a request to the server.
 * One that spends a disruption outlives the server's answer: it is unsettled, and counts against
 * its budget, until the budget's status shows the disruption.
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "drain/pdb.h"
#include "drain/pod_policy.h"
#include "kube/informer.h"

/* Requests of one drain without an answer: many for one node, and no flood for the server. */
#define DRAIN_IN_FLIGHT_MAX 16u
/* An accepted eviction that its budget's status does not show by then is not waited for. */
#define DRAIN_SETTLE_TIMEOUT SECONDS(5)
#define DRAIN_BLOCKED_AFTER SECONDS(10) /* a budget that waits for a replacement is no news */
#define DRAIN_FORCE_TIMEOUT MINUTES(1)  /* for a deletion by force, its grace at least */
#define DRAIN_PDBS_TIMEOUT                                                                         \
    SECONDS(10) /* for the first list of budgets; then evictions are tried                         \
                 */
/* For the first list of namespaces; then only a forced drain goes on. */
#define DRAIN_NAMESPACES_TIMEOUT SECONDS(10)

enum drain_verb {
    DRAIN_VERB_EVICT,
    DRAIN_VERB_DELETE,       /* with grace: a budget refused the pod for too long */
    DRAIN_VERB_FORCE_DELETE, /* without grace: the pod's deletion takes too long */
};

/* The server decides whether an unready pod may be evicted although its budget allows none. The
 * budget's status tells what it will say, so where that is no, the server is asked rarely. */
#define DRAIN_UNREADY_BASE SECONDS(30)
#define DRAIN_UNREADY_MAX MINUTES(5)

struct pdb_state {
    struct drains *drains;
    struct store_item *item;
    struct list pod_states; /* by their pdb_link */
    struct list unsettled;  /* evictions, by their unsettled_link */
    uint32_t unsettled_n;
    uint64_t refused_version; /* the server refused what this version allows; 0: nothing */
    usec_t retry_at;          /* then an eviction is tried again, should no newer version come */
    struct backoff backoff;
    usec_t evicted_at; /* when the budget last let one of our pods go; -1: never */
};

struct drain_pod_state {
    struct drain *drain;
    struct store_item *item;
    struct list link;      /* in drain->pod_states, by name */
    struct pdb_state *pdb; /* the pod's budget; the first one if it has several */
    struct list pdb_link;  /* in pdb->pod_states */
    bool many_pdbs;
    uint64_t pdb_changes; /* drains->pdb_changes when `pdb` was found */
    struct eviction *eviction;
    bool accepted;           /* the server will delete the pod */
    bool gone;               /* the server has no such pod; our watch does not show it yet */
    usec_t force_deleted_at; /* when the pod was deleted without grace; -1: it was not */
    usec_t retry_at;
    struct backoff backoff;
    usec_t refused_at;       /* when a budget first refused the pod; -1: none has */
    usec_t deleting_at;      /* when the pod's deletion began; USEC_NEVER: it has not */
    usec_t unready_retry_at; /* unready under a budget: the server is asked then, whatever the
                                budget's status allows */
    struct backoff unready_backoff;
    enum drain_wait wait;      /* what the pod waits for now */
    enum drain_wait last_wait; /* what the pod waited for last, which may be now */
    usec_t wait_since;         /* when `last_wait` began */
    struct buf server_message; /* the server's words when it last refused or failed */
    bool denied;               /* its last answer was 403, and server_message says why */
};

struct eviction {
    struct drain *drain;
    struct list link;                  /* in drain->evictions */
    struct drain_pod_state *pod_state; /* NULL: the pod is gone, or another has its name by now */
    struct pdb_state *pdb;             /* the pod's budget; NULL: none, or gone */
    struct list unsettled_link;        /* in pdb->unsettled while it counts there */
    struct api_call *call;             /* NULL: answered, and only unsettled any more */
    enum drain_verb verb;
    bool exempt;           /* no disruption is spent */
    uint64_t version;      /* of the budget when the request was sent */
    uint64_t seen_version; /* of the pod when its deletion was seen; 0: not yet */
    usec_t settle_at;      /* once answered: when it stops counting, shown or not */
    struct arena memory;
    struct str namespace;
    struct str name;
    struct str uid;
    struct str note; /* of the Event to send when it is accepted */
};

/* What a drain shows; compared to notice a change. */
struct drain_view {
    bool synced;
    bool done;
    bool blocked;
    bool timed_out;
    enum drain_wait wait;
    const struct drain_pod_state *pod_state; /* the pod that waits longest; NULL: none waits */
};

/* What the node's annotation says; texts in `memory`. */
struct drain_node_rules {
    struct str text; /* .p NULL: the node has no such annotation */
    struct drain_rules rules;
    struct err failure; /* the text cannot be read */
    struct arena memory;
};

struct drain {
    struct drains *drains;
    struct list link; /* in drains->drains, oldest first */
    struct drain_spec spec;
    struct arena memory; /* of the spec's texts */
    struct drain_node_rules drain_rules;
    int32_t current_order; /* the lowest order of the pods that have to go */
    void (*on_change)(void *ctx);
    void *ctx;
    struct informer pods; /* of the node */
    struct list pod_states;
    struct list evictions;
    uint32_t in_flight; /* evictions without an answer */
    bool dirty;
    bool notify;
    bool forcing;
    bool paused;
    usec_t rests_since; /* this one or all of them; -1: it does not rest */
    bool observing;
    bool unreachable;
    bool forbidden;         /* a pod is there that must not be evicted, so no pod is */
    bool volumes_changed;   /* pods that keep their volumes have come or gone */
    uint32_t notified_left; /* `left` at the last on_change */
    usec_t next;            /* when the drain's next step is due by itself; USEC_NEVER: on events */
    uint32_t left;
    uint32_t terminating;
    uint64_t evicted;
    uint64_t refused;
    uint64_t forced;
    struct drain_view view;
    usec_t longest_since; /* monotonic: since when view.pod_state waits */
    struct buf event_key; /* what the last Event about a blocked pod was about */
    struct map denials;   /* why the server denied evictions (drain_denial), as told already */
    struct buf reason;
};

/* The labels of namespaces. */
struct drain_namespaces {
    uint32_t readers; /* drains whose rules ask for them; 0: they are not watched */
    struct informer informer;
    bool denied;     /* the server does not let us read them */
    usec_t deadline; /* until then the first list is waited for, even by force */
};

struct drains {
    struct loop *loop;
    struct drains_config config;
    struct list drains;
    struct loop_timer turn;
    struct informer pdbs;
    bool watching;
    bool pdbs_unwatched;  /* budgets cannot be watched: evictions are tried */
    bool pdbs_denied;     /* and on_budgets_denied has told so */
    uint64_t pdb_changes; /* counts up when a pod may have another budget than before */
    usec_t pdbs_deadline;
    struct drain_namespaces namespaces;
    bool paused; /* all of them */
    struct buf path;
    struct buf body;
    struct drains_stats stats;
};

static inline struct drain_pod *drain_pod_of(const struct drain_pod_state *p)
{
    return p->item->object;
}

/* The node is drained as Cluster API would drain it. */
static inline bool drain_has_rules(const struct drain *d)
{
    return d->drain_rules.text.p != NULL;
}

static inline struct pdb *pdb_of(const struct pdb_state *w)
{
    return w->item->object;
}

/* now + span; USEC_NEVER when the span is so long. */
static inline usec_t drain_after(usec_t now, usec_t span)
{
    return now > 0 && span >= USEC_NEVER - now ? USEC_NEVER : now + span;
}

/* The halves of "namespace/name". */
static inline struct str drain_namespace(const struct store_item *item)
{
    return str_sub(item->name, 0, str_find_char(item->name, '/'));
}

static inline struct str drain_name(const struct store_item *item)
{
    return str_sub(item->name, str_find_char(item->name, '/') + 1, item->name.n);
}

/* drain.c */
void drain_mark(struct drain *d);
/* The pod waits for something that is not under way, since `since` if that is new. */
void drain_pod_wait(struct drain_pod_state *p, enum drain_wait wait, usec_t since);
void drains_mark_all(struct drains *ds);

/* drain_order.c: the rules of the node, and whose turn it is. */
void drain_drop_rules(struct drain *d);
bool drain_rules_unusable(const struct drain *d);
/* The verdict's rule lives until drain_set_rules. */
struct pod_verdict drain_pod_verdict(const struct drain_pod_state *p);
/* The pod counts as gone. */
bool drain_pod_is_gone(const struct drain_pod_state *p, usec_t now);
/* Finds out which order is to go now, and whether any pod may go at all. */
void drain_update_order(struct drain *d, usec_t now);
bool drain_pod_has_turn(const struct drain_pod_state *p, const struct pod_verdict *v);

/* namespace_labels.c: the watch of namespaces. */
void drains_watch_namespaces(struct drains *ds);
void drains_unwatch_namespaces(struct drains *ds);
/* As format/label_pack.h packs them; NULL: they are not known. */
const struct str *drains_find_namespace(const struct drains *ds, struct str name);
/* The first list may still come. */
bool drains_await_namespaces(const struct drains *ds, usec_t now);

/* pdb_track.c: which budget covers which pod, and what it allows. */
void drains_watch_pdbs(struct drains *ds);
void drains_unwatch_pdbs(struct drains *ds);
/* Evictions can be decided about. */
bool drains_pdbs_ready(const struct drains *ds);
/* Finds the pod's budget, if that may have changed. */
void drain_pod_match_pdb(struct drain_pod_state *p);
void drain_pod_forget_pdb(struct drain_pod_state *p);
/* The budget allows one disruption more than we have asked for. */
bool pdb_state_allows(const struct pdb_state *w, usec_t now);
void pdb_state_add_unsettled(struct pdb_state *w, struct eviction *f);
/* The eviction does not count against its budget any more; frees it once it has been answered. */
void eviction_settle(struct eviction *f);
/* All drains that have pods under the budget take a step. */
void pdb_state_mark(const struct pdb_state *w);

/* evict.c: requests. */
bool evict_may_send(const struct drain *d);
void evict_send(struct drain_pod_state *p, enum drain_verb verb, bool exempt);
/* The pod is not there any more, or another has its name. */
void eviction_forget_pod(struct eviction *f);
void eviction_free(struct eviction *f);

/* drain_events.c: words for people. */
void drain_explain(const struct drain_pod_state *p, struct buf *out);
void drain_event_accepted(const struct eviction *f);
void drain_event_blocked(struct drain *d);
void drains_tell_blocked(const struct drains *ds);
/* Why the server denied it, without the name of the pod: the same for every pod that meets it. */
struct str drain_denial(const struct drain_pod_state *p);
