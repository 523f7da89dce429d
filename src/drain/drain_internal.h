/*
 * drain_internal: what the files of this folder share: a drain, its pods, the budgets' own side,
 * and requests in flight.
 *
 * A patient is our side of a pod, a warden our side of a budget that covers patients; both hang at
 * their store item and go with it. A flight is a request on its way; one that spends a disruption
 * outlives its answer until the budget's status shows the spending (it is a charge until then).
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "drain/pdb.h"
#include "drain/drain.h"
#include "drain/pod.h"
#include "drain/drain_rules.h"
#include "kube/reflector.h"

#define DRAIN_IN_FLIGHT_MAX                                                                        \
    16u /* requests in flight of one drain: a server notices, but is not flooded                   \
         */
#define DRAIN_SETTLE_TIMEOUT                                                                       \
    SECONDS(5) /* an accepted eviction that its budget does not show by then */
#define DRAIN_BLOCKED_AFTER SECONDS(10) /* a replacement that starts is no news */
#define DRAIN_FORCE_TIMEOUT MINUTES(1)  /* for a deletion by force, its grace at least */
#define DRAIN_PDBS_TIMEOUT SECONDS(10)  /* without a list of budgets, then by trying */
#define DRAIN_NAMESPACES_TIMEOUT                                                                   \
    SECONDS(10) /* without one of namespaces; only force goes on then */

enum drain_verb {
    DRAIN_VERB_EVICT,
    DRAIN_VERB_DELETE,       /* what a budget held for too long, with grace */
    DRAIN_VERB_FORCE_DELETE, /* what does not go, without */
};

/* Whether an unready pod may go is the server's to say. What it should say is known from the
 * budget's status, so where that is no, it is asked rarely. */
#define DRAIN_UNREADY_BASE SECONDS(30)
#define DRAIN_UNREADY_MAX MINUTES(5)

struct pdb_state {
    struct drains *drains;
    struct store_item *item;
    struct list pod_states; /* by their `cover` */
    struct list unsettled;  /* flights, by their `charge` */
    uint32_t unsettled_n;
    uint64_t refused_version; /* the server refused what this version allows; 0: nothing */
    usec_t retry_at;          /* then it is tried again, should no newer version come */
    struct backoff backoff;
    usec_t evicted_at; /* it last let one of our pods go; -1: never */
};

struct drain_pod_state {
    struct drain *drain;
    struct store_item *item;
    struct list link;      /* in drain->patients, by name */
    struct pdb_state *pdb; /* its budget; the first one if it has several */
    struct list pdb_link;  /* in warden->patients */
    bool many_pdbs;
    uint64_t pdb_changes; /* of the budgets when `warden` was found */
    struct eviction *eviction;
    bool accepted;      /* the server will delete it */
    bool gone;          /* the server does not know it: its end is only not seen yet */
    bool force_deleted; /* deleted without grace, */
    usec_t force_deleted_at;
    usec_t retry_at;
    struct backoff backoff;
    usec_t refused_at;       /* a budget first held it; -1: none has */
    usec_t deleting_at;      /* its deletion began; USEC_NEVER: it has not */
    usec_t unready_retry_at; /* unready under a budget: the server is asked then, whatever is
                                allowed */
    struct backoff unready_backoff;
    enum drain_wait wait;      /* what it waits for now, */
    enum drain_wait last_wait; /* what for it waited last, */
    usec_t wait_since;         /* and since when */
    struct buf server_message; /* the server's words */
};

struct eviction {
    struct drain *drain;
    struct list link;                  /* in drain->flights */
    struct drain_pod_state *pod_state; /* NULL: it has gone, or is another one by now */
    struct pdb_state *pdb;             /* the budget it is about; NULL: none, or gone */
    struct list unsettled_link;        /* in warden->charges while it counts there */
    struct api_call *call;             /* NULL: answered, and only a charge any more */
    enum drain_verb verb;
    bool exempt;           /* no disruption is spent */
    uint64_t version;      /* of the budget when it was sent */
    uint64_t seen_version; /* of the pod when its deletion was seen; 0: not yet */
    usec_t settle_at;      /* answered: the charge ends, seen or not */
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
    const struct drain_pod_state *pod_state; /* only compared */
};

/* What the node's annotation says; texts in `memory`. */
struct drain_node_rules {
    bool given; /* the node has one: it is drained as Cluster API would drain it */
    struct str text;
    struct drain_rules rules;
    struct err failure; /* it cannot be read */
    struct arena memory;
};

struct drain {
    struct drains *drains;
    struct list link; /* in drains->drains, oldest first */
    struct drain_spec spec;
    struct arena memory; /* of the spec's texts */
    struct drain_node_rules drain_rules;
    int32_t current_order; /* the lowest order of those that have to go; with a book */
    void (*on_change)(void *ctx);
    void *ctx;
    struct store pods;
    struct reflector reflector;
    struct list pod_states;
    struct list evictions;
    uint32_t in_flight; /* flights without an answer */
    bool synced;
    bool dirty;
    bool notify;
    bool forcing;
    bool paused;
    bool observing;
    bool unreachable;
    bool forbidden;         /* a pod is there that must not be evicted, so none is */
    bool volumes_changed;   /* claims that stay have come or gone */
    uint32_t notified_left; /* `left`, when on_change last told */
    usec_t next;            /* it must be looked at then; USEC_NEVER: events will tell */
    uint32_t left;
    uint32_t terminating;
    uint64_t evicted;
    uint64_t refused;
    uint64_t forced;
    struct drain_view view;
    struct drain_pod_state *longest_waiter; /* waits longest; NULL: none */
    usec_t longest_since;                   /* monotonic */
    struct buf event_key;                   /* what the last Event about a blocked pod was about */
    struct buf reason;
};

/* The labels of namespaces. */
struct drain_namespaces {
    uint32_t readers; /* drains whose rules ask for them; 0: they are not watched */
    struct store store;
    struct reflector reflector;
    bool synced;
    bool denied;        /* the server does not let us know them */
    struct err failure; /* the last failure of the watch */
    usec_t deadline;    /* until then a first list is waited for whatever happens */
};

struct drains {
    struct loop *loop;
    struct drains_config config;
    struct list drains;
    struct loop_timer turn;
    struct store pdbs;
    struct reflector reflector;
    bool watching;
    bool synced;
    bool pdbs_unwatched;  /* budgets cannot be watched: evictions are tried */
    uint64_t pdb_changes; /* counts up when a pod may have another budget than before */
    usec_t pdbs_deadline;
    struct err failure; /* the last failure of the budgets' watch */
    struct drain_namespaces namespaces;
    struct buf path;
    struct buf body;
    struct drains_stats stats;
};

static inline struct drain_pod *drain_pod_of(const struct drain_pod_state *p)
{
    return p->item->object;
}

static inline struct pdb *pdb_of(const struct pdb_state *w)
{
    return w->item->object;
}

/* now + span, and never when the span is. */
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

/* lot.c: what becomes of a pod, by the rules of its drain. */
enum pod_fate {
    POD_FATE_GOES,
    POD_FATE_STAYS,     /* neither sent away nor waited for */
    POD_FATE_WAITED,    /* never evicted */
    POD_FATE_FORBIDDEN, /* must not be evicted, and must not be there */
};
enum pod_fate drain_pod_fate(const struct drain_pod_state *p, enum drain_wait *ret_wait);
/* Nobody has to see to it: it ends in the course of things. */
bool drain_wait_is_expected(enum drain_wait wait);

/* book.c: the node's rulebook. */
void drain_drop_rules(struct drain *d);
/* Its rules cannot be used. */
bool drain_rules_unusable(const struct drain *d);
/* The rule that decides; *ret is NULL if none does. < 0: nobody can tell. */
NODISCARD
int drain_find_rule(const struct drain_pod_state *p, const struct drain_rule **ret);
int32_t drain_pod_order(const struct drain_pod_state *p);
/* It counts as gone. */
bool drain_pod_is_gone(const struct drain_pod_state *p, usec_t now);
/* Finds out whose turn it is, and whether anybody may go at all. */
void drain_update_order(struct drain *d, usec_t now);
bool drain_pod_has_turn(const struct drain_pod_state *p);

/* spaces.c: the labels of namespaces. */
void drains_watch_namespaces(struct drains *ds);
void drains_unwatch_namespaces(struct drains *ds);
/* As format/label_pack.h packs them; NULL: they are not known. */
struct str *drains_find_namespace(const struct drains *ds, struct str name);
/* Their first list may still come. */
bool drains_await_namespaces(const struct drains *ds, usec_t now);

/* drain.c */
void drain_mark(struct drain *d);
/* The patient waits for something that is not under way, since `since` if that is new. */
void drain_pod_wait(struct drain_pod_state *p, enum drain_wait wait, usec_t since);
void drains_mark_all(struct drains *ds);

/* warden.c: which budget covers which pod, and what it allows. */
void drains_watch_pdbs(struct drains *ds);
void drains_unwatch_pdbs(struct drains *ds);
/* Evictions can be decided about. */
bool drains_pdbs_ready(const struct drains *ds);
/* Finds the patient's budget, if that may have changed. */
void drain_pod_match_pdb(struct drain_pod_state *p);
void drain_pod_forget_pdb(struct drain_pod_state *p);
/* It allows one disruption more than we have asked for. */
bool pdb_state_allows(const struct pdb_state *w, usec_t now);
void pdb_state_add_unsettled(struct pdb_state *w, struct eviction *f);
void eviction_settle(struct eviction *f);
/* All drains that have patients under it are looked at again. */
void pdb_state_mark(const struct pdb_state *w);

/* flight.c: requests. */
bool evict_may_send(const struct drain *d);
void evict_send(struct drain_pod_state *p, enum drain_verb verb, bool exempt);
/* The pod is not there any more, or is another one. */
void eviction_forget_pod(struct eviction *f);
void eviction_free(struct eviction *f);

/* tell.c: words for people. */
void drain_explain(const struct drain_pod_state *p, struct buf *out);
void drain_event_accepted(const struct eviction *f);
void drain_event_blocked(struct drain *d);
