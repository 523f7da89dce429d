/*
 * arbiter_internal: what the arbiter's files share.
 *
 * A book is our side of a MaintenanceLimit, a sight that of a MaintenanceSelector, a lock that of a
 * target; a crowd is a kind of object that limits count, other than nodes. Everything is decided
 * anew each turn from what the server last said: which ledgers an ask is in, who has a lock. What
 * is under way is only remembered so that it is not sent twice.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "kube/node.h"
#include "kube/reflector.h"
#include "kinds/request_name.h"
#include "ledger/arbiter.h"
#include "ledger/limit.h"
#include "kinds/maintenance_selector.h"
#include "ledger/limit_status_patch.h"

#define ARBITER_LIMITS_PATH "/apis/repairman.k8s.io/v1/maintenancelimits"
#define ARBITER_QUIET SECONDS(1)    /* between writes of numbers that nobody decides by */
#define ARBITER_CONFLICTS_MAX 5u    /* lost writes in a row before a limit's book is left alone */
#define ARBITER_UNKNOWN SECONDS(10) /* inputs that cannot be read for so long are told */
#define ARBITER_LOCKS_MAX 32u       /* lock requests in flight */
#define ARBITER_ORPHANS_MAX 8u      /* questions about entries that nobody claims, in flight */
#define ARBITER_ORPHAN_WAIT                                                                        \
    MINUTES(1) /* an entry is left unclaimed for so long by a part that                            \
                  cannot be asked */
#define ARBITER_FOREIGN_WAIT                                                                       \
    MINUTES(5) /* what another controller holds for somebody who waits here is left to it */
#define ARBITER_TOLD MINUTES(5)       /* one Event with one text */
#define ARBITER_MISSING_TOLD HOURS(1) /* that no limit is there */

/* One object that a limit may count or that an ask is about. */
struct member {
    enum target_type type;
    struct str name; /* "name", or "namespace/name" */
    struct str space;
    struct str plain; /* without its namespace */
    uint32_t traits;
    selector_lookup *lookup; /* of its labels */
    void *ctx;
};

/* ── workloads and namespaces ──────────────────────────────────────────────────────────────── */

struct thing_label {
    struct str key;
    struct str value;
};

struct thing {
    struct thing_label *labels;
    uint32_t label_n;
    uint32_t traits;
    int64_t spare; /* pods that serve, beyond those wanted; below 0 some are missing */
};

struct crowd {
    struct arbiter *arbiter;
    bool spaces; /* these are namespaces */
    enum target_type type;
    struct store store;
    struct reflector reflector;
    bool running;
    bool synced;
};

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

struct book {
    struct arbiter *arbiter;
    struct store_item *item; /* NULL: it is no object but what --missing-limit says */
    struct limit own;        /* then */
    struct list link;        /* in arbiter->books, by name */
    /* Who is counted. */
    bool usable; /* its population can be told: accepted, and the selector it refers to is there */
    struct str reason; /* otherwise, why; both live in `words` */
    struct str problem;
    struct arena words;
    uint32_t population;
    struct map hits; /* name → const struct limit_policy */
    /* Of this turn. */
    struct limit_tally tally; /* with what is to be struck and added already done */
    uint32_t adding;
    uint32_t kept; /* for those who stand in line */
    bool releasing;
    uint32_t waiting;
    /* The object on the server. */
    struct api_call *call;
    enum api_verb verb;
    uint64_t serial; /* counts writes */
    bool unsure;     /* what is known may be old: read before writing */
    uint32_t conflicts;
    struct backoff backoff;
    usec_t retry_at; /* monotonic */
    usec_t written_at;
    usec_t unknown_at; /* since when its inputs cannot be read; -1: they can */
    /* What the write under way will be told with. */
    struct statement_diff sent;
    struct buf over;
    struct buf told[2];
    usec_t told_at[2];
};

/* ── targets ───────────────────────────────────────────────────────────────────────────────── */

struct lock {
    struct arbiter *arbiter;
    struct str name;   /* of the Lease */
    struct str target; /* "node//n1"; empty while no ask is about it */
    struct arena memory;
    struct list asks;  /* by their `at` */
    struct ask *taker; /* of this turn: who has it or may take it */
    bool there;        /* the Lease, and what is in it: */
    uint64_t version;
    uint32_t list;  /* the last list that had it */
    uint32_t grant; /* of its holder; 0: it does not say */
    struct buf holder;
    struct buf holder_name;
    struct buf uid;
    struct buf made; /* uid of the Lease that was created from here */
    struct api_call *call;
    enum api_verb verb;
    bool unsure;
    struct backoff backoff;
    usec_t retry_at;
};

/* Somebody in a ledger or a lock whom nobody claims. */
struct orphan {
    struct arbiter *arbiter;
    struct arena memory;
    struct str uid;
    struct str name;
    enum ask_owner owner;
    uint32_t over; /* grants below that are over: strike them, */
    bool plain;    /* and those without a number, */
    bool marked;   /* unless something of it is still to be undone */
    bool seen;     /* by this sweep */
    usec_t since;
    usec_t retry_at;
    struct api_call *call;
};

/* ── asks ──────────────────────────────────────────────────────────────────────────────────── */

struct ask_part {
    struct book *book;
    uint64_t version; /* of the limit when `reserved` was found out */
    bool reserved;
    bool behind;     /* a grant is there that we have not heard of */
    bool wanted;     /* of this turn: it is to be added */
    uint64_t adding; /* the book's write that adds it */
    bool mine;       /* that write went through: nobody else has put it there */
    /* Versions of the limit: known when it was last asked whether it is a fact, and when it was. */
    uint64_t asked;
    uint64_t confirmed;
};

struct ask {
    struct arbiter *arbiter;
    struct list link;   /* in arbiter->queue, in its order */
    struct list at;     /* in lock->asks */
    struct list notice; /* in arbiter->notices: its owner is to be told */
    struct arena memory;
    struct ask_spec spec;
    struct buf state;
    struct str full; /* the target as ledgers name it */
    void (*on_change)(void *ctx);
    void *ctx;
    struct lock *lock;
    struct ask_part *parts; /* the limits that apply, by name */
    uint32_t part_n;
    uint32_t part_cap;
    uint64_t shape; /* the arbiter's, when they were found; 0: they are to be found again */
    bool missing;   /* its target is not there */
    bool known;     /* … and that is certain */
    bool ending;
    uint32_t over; /* grants below that are over */
    bool lapses;   /* of this turn: see ask_view */
    bool told_lapses;
    bool held;
    bool want;    /* of this turn */
    bool offered; /* of this turn: it stands in line, and what it needs is kept for it */
    bool told_offer;
    bool keep;    /* it cannot be judged now: what it has, it keeps */
    usec_t waits; /* monotonic: since when it has not been wanted; USEC_NEVER: it is */
    bool adopted; /* it was held once: an adoption is done, from then on it is like any other */
    bool doubt;   /* of this turn: whether it is a fact still has to be read */
    struct api_call *fact_call;
    usec_t fact_retry;
    bool was_unavailable; /* its target was, when it was granted */
    enum ask_stage stage;
    enum ask_why why;
    enum ask_why told;            /* the reason that its owner knows */
    const struct book *full_book; /* that `why` is about; NULL: none */
    uint32_t position;
    /* G6 */
    bool checking;
    bool check_listed; /* the limits were read */
    bool check_read;   /* the target was */
    uint64_t check_list;
    struct api_call *check_call;
    usec_t check_retry;
    struct str check_uid;
    struct err check_err;
    void (*on_checked)(void *ctx, const struct err *err);
    void *check_ctx;
};

struct arbiter {
    struct arbiter_config config;
    struct loop *loop;
    struct client *client;
    struct arena memory;
    struct loop_timer turn;
    uint64_t turns;
    usec_t next; /* when the turn must come by itself */
    bool may;    /* of this turn */
    usec_t now;
    usec_t wall;
    bool freed;
    uint64_t room; /* a fingerprint of all that arbiter_allows looks at */
    uint64_t lock_changes;
    /* limits */
    struct store limits;
    struct reflector limits_reflector;
    bool limits_synced;
    bool limits_absent; /* the CRD is not there */
    struct list books;
    struct book *fallback[TARGET_TYPES]; /* --missing-limit=<percent> */
    uint64_t shape;                      /* counts up when other limits may apply to a target */
    bool recount[TARGET_TYPES];
    bool books_dirty; /* a ledger has changed, or who claims what: look for orphans */
    /* selectors */
    struct store pickers;
    struct reflector pickers_reflector;
    bool pickers_synced;
    struct list sights;
    /* what limits count */
    struct crowd crowds[TARGET_TYPES]; /* none for nodes */
    struct crowd spaces;
    /* locks */
    struct reflector locks_reflector;
    bool locks_synced;
    uint32_t lock_list;
    uint64_t lock_list_floor;
    struct map locks;   /* name of the Lease → struct lock */
    struct map targets; /* "node//n1" → struct lock with asks */
    uint32_t lock_calls;
    struct str locks_path;
    /* asks */
    struct map asks;               /* uid → struct ask */
    uint32_t asking[TARGET_TYPES]; /* how many of them */
    struct list queue;
    struct list notices;
    bool knows[ASK_OWNERS];
    struct map orphans; /* uid → struct orphan */
    uint32_t orphan_calls;
    usec_t missing_told[TARGET_TYPES]; /* wall */
    /* the double check */
    struct api_call *check_call;
    uint64_t check_list; /* the live list of limits that is under way, or the last one */
    usec_t check_retry;
    struct backoff check_backoff;
    struct buf path;
    struct buf body;
    struct arena views; /* of ask_view: until the next turn */
    struct arena tmp;   /* of one turn */
};

static inline const struct limit *book_limit(const struct book *b)
{
    return b->item != NULL ? b->item->object : &b->own;
}

static inline uint64_t book_version(const struct book *b)
{
    return b->item != NULL ? b->item->version : 1;
}

/* The turn comes as soon as the loop runs, or at a time. */
void arbiter_soon(struct arbiter *a);
void arbiter_at(struct arbiter *a, usec_t monotonic);
/* A wall time as a monotonic one. */
usec_t arbiter_monotonic(const struct arbiter *a, usec_t wall);
/* The limits that concern targets may be others than before. */
void arbiter_reshape(struct arbiter *a, enum target_type type);

/* population.c: who is counted under which limit. */
void population_start(struct arbiter *a);
void population_stop(struct arbiter *a);
/* Starts and stops watches as limits and asks need them. */
void population_need(struct arbiter *a);
bool population_known(const struct arbiter *a, enum target_type type);
/* The object of that name; false when it is not there. */
bool population_find(const struct arbiter *a, enum target_type type, struct str name,
                     struct member *ret);
void population_recount(struct arbiter *a);
void population_each(const struct arbiter *a, enum target_type type,
                     void (*fn)(void *ctx, const struct member *m), void *ctx);
/* Whether the namespace's labels match. */
bool population_space_matches(const struct arbiter *a, struct str space, const struct selector *s);
/* The books that apply to an object, by name, and how many. */
uint32_t population_books(const struct arbiter *a, const struct member *m, struct book **ret,
                          uint32_t max);
/* What a jval's labels answer; ctx is the jval of metadata.labels. */
bool member_lookup_jval(void *ctx, struct str key, struct str *ret_value);
void population_check(const struct arbiter *a);

/* books.c: the status of limits. */
struct book *book_new(struct arbiter *a, struct store_item *item);
void book_free(struct book *b);
/* Whether its population can be told, and why not. */
void book_judge(struct book *b);
void book_step(struct book *b);
const struct reserve *book_find(const struct book *b, struct str uid);

/* lock.c */
void locks_start(struct arbiter *a);
void locks_stop(struct arbiter *a);
/* The lock of that target, if one is known. */
struct lock *lock_find(const struct arbiter *a, struct str target, struct arena *tmp);
void lock_join(struct ask *k);
void lock_leave(struct ask *k);
bool lock_is_of(const struct lock *l, struct str uid);
/* Gets it for the ask, or finds out who has it. */
void lock_take(struct lock *l, struct ask *k);
/* The Lease of `holder` goes. */
void lock_drop(struct lock *l);

/* queue.c: who may have what. */
void queue_put(struct ask *k);
void queue_decide(struct arbiter *a);
/* After all has been sent: what stage everybody is in. */
void queue_settle(struct arbiter *a);
/* What is there under its uid with that number: is of a grant that is over; is what it asks for;
 * may be taken away by it. Neither of the first two: it is newer than what we know. */
bool ask_is_past(const struct ask *k, uint32_t grant);
bool ask_is_mine(const struct ask *k, uint32_t grant);
bool ask_frees(const struct ask *k, uint32_t grant);
/* Its target is locked for it; a fact may find that somebody else has the lock. */
bool ask_has_lock(const struct ask *k);
bool ask_leaves_entry(const struct ask *k, const struct book *b);
struct ask_part *ask_part_of(const struct ask *k, const struct book *b);
/* Who claims what is in the books under that uid; NULL: nobody, or one who only stands in line. */
struct ask *ask_claiming(const struct arbiter *a, struct str uid);
/* Its owner is told in this turn that something has changed. */
void ask_notice(struct ask *k);

/* sweep.c */
void sweep(struct arbiter *a);
void orphan_forget(struct arbiter *a, struct str uid);
/* What is there under that uid with that number goes: nobody claims it, and it is over. */
bool orphan_frees(const struct arbiter *a, struct str uid, uint32_t grant);
void sweep_stop(struct arbiter *a);
/* Reads what an ask that is to be adopted rests on: its request, or its target. */
void fact_confirm(struct ask *k);

/* sights.c: the status of selectors. */
void sights_start(struct arbiter *a);
void sights_stop(struct arbiter *a);
void sights_step(struct arbiter *a);
void sights_mark(struct arbiter *a, enum target_type type);
const struct picker *sights_find(const struct arbiter *a, struct str reference);

/* double.c */
void double_step(struct arbiter *a);
/* Where its target is read; into the arbiter's `path`. */
void double_target_path(const struct ask *k);
void double_end(struct ask *k);
void double_stop(struct arbiter *a);

/* show.c: what ask_view tells, in other memory. */
void ask_show(const struct ask *k, struct arena *out, struct ask_view *ret);

/* measure.c */
void measure_start(struct arbiter *a);
void measure_stop(struct arbiter *a);

/* tell.c */
void tell_limits(struct book *b, uint32_t limit, uint32_t population);
void tell_over(struct book *b, struct str words);
void tell_missing(struct ask *k);
