/*
 * drain_internal: what the files of this folder share: a drain, its pods, the budgets' own side, and requests
 * in flight.
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

#define DRAIN_WINDOW                                                                               \
    16u /* requests in flight of one drain: a server notices, but is not flooded                   \
         */
#define DRAIN_SETTLE SECONDS(5) /* an accepted eviction that its budget does not show by then */
#define DRAIN_BLOCKED_AFTER SECONDS(10)    /* a replacement that starts is no news */
#define DRAIN_FORCE_PATIENCE MINUTES(1)    /* for a deletion by force, its grace at least */
#define DRAIN_BUDGETS_PATIENCE SECONDS(10) /* without a list of budgets, then by trying */
#define DRAIN_SPACES_PATIENCE SECONDS(10)  /* without one of namespaces; only force goes on then */

enum drain_deed {
    DRAIN_EVICT,
    DRAIN_DELETE, /* what a budget held for too long, with grace */
    DRAIN_KILL,   /* what does not go, without */
};

/* Whether an unready pod may go is the server's to say. What it should say is known from the
 * budget's status, so where that is no, it is asked rarely. */
#define DRAIN_UNREADY_BASE SECONDS(30)
#define DRAIN_UNREADY_MAX MINUTES(5)

struct drain_warden {
    struct drains *drains;
    struct store_item *item;
    struct list patients; /* by their `cover` */
    struct list charges;  /* flights, by their `charge` */
    uint32_t charged;
    uint64_t refused_version; /* the server refused what this version allows; 0: nothing */
    usec_t retry_at;          /* then it is tried again, should no newer version come */
    struct backoff backoff;
    usec_t moved_at; /* it last let one of our pods go; -1: never */
};

struct drain_patient {
    struct drain *drain;
    struct store_item *item;
    struct list link;            /* in drain->patients, by name */
    struct drain_warden *warden; /* its budget; the first one if it has several */
    struct list cover;           /* in warden->patients */
    bool many;
    uint64_t shape; /* of the budgets when `warden` was found */
    struct drain_flight *flight;
    bool accepted; /* the server will delete it */
    bool gone;     /* the server does not know it: its end is only not seen yet */
    bool killed;   /* deleted without grace, */
    usec_t killed_at;
    usec_t retry_at;
    struct backoff backoff;
    usec_t refused_at;  /* a budget first held it; -1: none has */
    usec_t deleting_at; /* its deletion began; USEC_NEVER: it has not */
    usec_t try_at;      /* unready under a budget: the server is asked then, whatever is allowed */
    struct backoff tries;
    enum drain_wait wait;   /* what it waits for now, */
    enum drain_wait waited; /* what for it waited last, */
    usec_t wait_at;         /* and since when */
    struct buf why;         /* the server's words */
};

struct drain_flight {
    struct drain *drain;
    struct list link;              /* in drain->flights */
    struct drain_patient *patient; /* NULL: it has gone, or is another one by now */
    struct drain_warden *warden;   /* the budget it is about; NULL: none, or gone */
    struct list charge;            /* in warden->charges while it counts there */
    struct api_call *call;         /* NULL: answered, and only a charge any more */
    enum drain_deed deed;
    bool exempt;           /* no disruption is spent */
    uint64_t version;      /* of the budget when it was sent */
    uint64_t seen_version; /* of the pod when its deletion was seen; 0: not yet */
    usec_t settle_at;      /* answered: the charge ends, seen or not */
    struct arena memory;
    struct str space;
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
    const struct drain_patient *patient; /* only compared */
};

/* What the node's annotation says; texts in `memory`. */
struct drain_book {
    bool given; /* the node has one: it is drained as Cluster API would drain it */
    struct str text;
    struct rulebook rules;
    struct err trouble; /* it cannot be read */
    struct arena memory;
};

struct drain {
    struct drains *drains;
    struct list link; /* in drains->drains, oldest first */
    struct drain_spec spec;
    struct arena memory; /* of the spec's texts */
    struct drain_book book;
    int32_t turn; /* the lowest order of those that have to go; with a book */
    void (*on_change)(void *ctx);
    void *ctx;
    struct store pods;
    struct reflector reflector;
    struct list patients;
    struct list flights;
    uint32_t flying; /* flights without an answer */
    bool synced;
    bool dirty;
    bool notify;
    bool forcing;
    bool resting;
    bool looking;
    bool unreachable;
    bool barred;    /* a pod is there that must not be evicted, so none is */
    bool stirred;   /* claims that stay have come or gone */
    uint32_t shown; /* `left`, when on_change last told */
    usec_t next;    /* it must be looked at then; USEC_NEVER: events will tell */
    uint32_t left;
    uint32_t terminating;
    uint64_t evicted;
    uint64_t refused;
    uint64_t forced;
    struct drain_view view;
    struct drain_patient *worst; /* waits longest; NULL: none */
    usec_t worst_since;          /* monotonic */
    struct buf told;             /* what the last Event about a blocked pod was about */
    struct buf reason;
};

/* The labels of namespaces. */
struct drain_spaces {
    uint32_t readers; /* drains whose rules ask for them; 0: they are not watched */
    struct store store;
    struct reflector reflector;
    bool synced;
    bool denied;        /* the server does not let us know them */
    struct err trouble; /* the last failure of the watch */
    usec_t patience;    /* until then a first list is waited for whatever happens */
};

struct drains {
    struct loop *loop;
    struct drains_config config;
    struct list drains;
    struct loop_timer turn;
    struct store budgets;
    struct reflector reflector;
    bool watching;
    bool synced;
    bool blind;     /* budgets cannot be watched: evictions are tried */
    uint64_t shape; /* counts up when a pod may have another budget than before */
    usec_t blind_at;
    struct err trouble; /* the last failure of the budgets' watch */
    struct drain_spaces spaces;
    struct buf path;
    struct buf body;
    struct drains_stats stats;
};

static inline struct drain_pod *drain_patient_pod(const struct drain_patient *p)
{
    return p->item->object;
}

static inline struct drain_budget *drain_warden_budget(const struct drain_warden *w)
{
    return w->item->object;
}

/* now + span, and never when the span is. */
static inline usec_t drain_after(usec_t now, usec_t span)
{
    return now > 0 && span >= USEC_NEVER - now ? USEC_NEVER : now + span;
}

/* The halves of "namespace/name". */
static inline struct str drain_space(const struct store_item *item)
{
    return str_sub(item->name, 0, str_find_char(item->name, '/'));
}

static inline struct str drain_name(const struct store_item *item)
{
    return str_sub(item->name, str_find_char(item->name, '/') + 1, item->name.n);
}

/* lot.c: what becomes of a pod, by the rules of its drain. */
enum drain_lot {
    DRAIN_GOES,
    DRAIN_STAYS,  /* neither sent away nor waited for */
    DRAIN_WAITED, /* never evicted */
    DRAIN_BARRED, /* must not be evicted, and must not be there */
};
enum drain_lot drain_patient_lot(const struct drain_patient *p, enum drain_wait *ret_wait);
/* Nobody has to see to it: it ends in the course of things. */
bool drain_wait_is_calm(enum drain_wait wait);

/* book.c: the node's rulebook. */
void drain_drop_book(struct drain *d);
/* Its rules cannot be used. */
bool drain_book_is_bad(const struct drain *d);
/* The rule that decides; *ret is NULL if none does. < 0: nobody can tell. */
NODISCARD
int drain_ask_book(const struct drain_patient *p, const struct rulebook_rule **ret);
int32_t drain_patient_order(const struct drain_patient *p);
/* It counts as gone. */
bool drain_patient_is_over(const struct drain_patient *p, usec_t now);
/* Finds out whose turn it is, and whether anybody may go at all. */
void drain_find_turn(struct drain *d, usec_t now);
bool drain_has_turn(const struct drain_patient *p);

/* spaces.c: the labels of namespaces. */
void drains_watch_spaces(struct drains *ds);
void drains_unwatch_spaces(struct drains *ds);
/* As format/label_pack.h packs them; NULL: they are not known. */
struct str *drains_find_space(const struct drains *ds, struct str name);
/* Their first list may still come. */
bool drains_await_spaces(const struct drains *ds, usec_t now);

/* drain.c */
void drain_mark(struct drain *d);
/* The patient waits for something that is not under way, since `since` if that is new. */
void drain_patient_wait(struct drain_patient *p, enum drain_wait wait, usec_t since);
void drains_mark_all(struct drains *ds);

/* warden.c: which budget covers which pod, and what it allows. */
void drains_watch_budgets(struct drains *ds);
void drains_unwatch_budgets(struct drains *ds);
/* Evictions can be decided about. */
bool drains_ready(const struct drains *ds);
/* Finds the patient's budget, if that may have changed. */
void drain_patient_match(struct drain_patient *p);
void drain_patient_uncover(struct drain_patient *p);
/* It allows one disruption more than we have asked for. */
bool drain_warden_open(const struct drain_warden *w, usec_t now);
void drain_warden_charge(struct drain_warden *w, struct drain_flight *f);
void drain_warden_settle(struct drain_flight *f);
/* All drains that have patients under it are looked at again. */
void drain_warden_mark(const struct drain_warden *w);

/* flight.c: requests. */
bool drain_may_send(const struct drain *d);
void drain_send(struct drain_patient *p, enum drain_deed deed, bool exempt);
/* The pod is not there any more, or is another one. */
void drain_flight_orphan(struct drain_flight *f);
void drain_flight_free(struct drain_flight *f);

/* tell.c: words for people. */
void drain_explain(const struct drain_patient *p, struct buf *out);
void drain_tell_accepted(const struct drain_flight *f);
void drain_tell_blocked(struct drain *d);
