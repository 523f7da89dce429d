/*
 * arbiter: grants disruptions. Every part of the controller that wants to disturb an object asks
 * here, and the MaintenanceLimits that apply to the object decide.
 *
 * All asks wait in one queue (priority, age, uid). When every limit that applies allows one more,
 * the target is locked (by a Lease, which only one controller can create) and a reservation is
 * written into the status of each limit by compare-and-swap, in order of the limits' names. Only
 * then is the ask held. So two controllers that both believe to lead cannot exceed a limit between
 * them, nor hold one target twice. A release removes the reservations, then the lock; the owner
 * releases only after it has undone everything that it did under the grant.
 *
 * A request may be granted several times, and two controllers may be at work on different grants of
 * it. So each grant has a number, which its owner keeps in the request's status and which the
 * reservations and the lock carry. A reservation or lock is removed only when its owner has said
 * that its number is over, and the owner says so only when the server's object does, for good.
 * However late its knowledge is, an arbiter never removes what another grant rests on.
 *
 * Owners keep their asks: after a restart an owner asks again under the same uid, and the arbiter
 * finds the reservations and the lock that are there. What no ask claims, once all owners have said
 * that they know their own, is swept (orphan_sweep.c).
 *
 * The arbiter also writes the whole status of MaintenanceLimits and MaintenanceSelectors. Without
 * their CRDs there are no limits, and every ask is held as soon as its target is locked.
 */
#pragma once

#include "base/log.h"
#include "kube/client.h"
#include "kube/recorder.h"
#include "kinds/maintenance_limit.h"
#include "kube/store.h"

struct jval;    /* format/json.h */
struct metrics; /* base/metric.h */
struct arbiter;
struct ask;

/* What an ask rests on. A MaintenanceRequest is an object that the arbiter can read for itself.
 * Without one, only the target's own state tells whether it is still wanted; the names of such asks
 * contain a '/', which no name of a request does, so that their reservations are told apart. */
enum ask_owner { ASK_OF_REQUEST, ASK_OF_TARGET };
#define ASK_OWNERS 2

enum arbiter_missing_limit { MISSING_LIMIT_UNLIMITED, MISSING_LIMIT_DENY, MISSING_LIMIT_PERCENT };

struct arbiter_config {
    struct client *client;     /* borrowed */
    struct recorder *recorder; /* borrowed; NULL: no Events */
    struct log *log;           /* may be NULL */
    struct metrics *metrics;   /* may be NULL */
    const struct store *nodes; /* borrowed: kube/node.h projections */
    struct str namespace;      /* where target locks are: the controller's own namespace; copied */
    /* Nothing is granted, written or swept while may_act says no. Yes means: the caller leads, has
     * listed its nodes since, and their watch does not fail. */
    bool (*may_act)(void *ctx);
    /* Why nothing new is granted, to anybody, although it leads: a sentence; empty = it is. What is
     * held stays so. May be NULL. */
    struct str (*paused)(void *ctx);
    /* API-server time, wall (R16). */
    usec_t (*wall)(void *ctx);
    /* Whether something that was done for the request or Node of that uid is still to be undone:
     * then its reservations stay, although no ask claims them. May be NULL. */
    bool (*has_mark)(void *ctx, struct str uid);
    /* Something has changed: who was refused by arbiter_would_grant may try again. From the loop;
     * may be NULL. */
    void (*on_capacity)(void *ctx);
    /* After each turn: whatever this header shows may have changed. From the loop; may be NULL. */
    void (*on_turn)(void *ctx);
    void *ctx;
    bool legacy_notready;     /* --legacy-notready */
    bool legacy_double_count; /* --legacy-double-count */
    bool grant_missing;       /* --grant-missing-targets */
    enum arbiter_missing_limit missing;
    uint32_t missing_limit_percent; /* MISSING_LIMIT_PERCENT */
};

struct arbiter *arbiter_new(const struct arbiter_config *config);
/* Like a crash: nothing more is sent. Asks must have been ended. Accepts NULL. */
void arbiter_free(struct arbiter *a);

/* Leading began or ended, or what may_act says has changed otherwise. */
void arbiter_wake(struct arbiter *a);
/* A node is new, has changed or goes; `before` is its projection until now, NULL for a new one. */
void arbiter_on_node(struct arbiter *a, const struct store_item *item, const void *before,
                     bool gone);
/* The owner has asked for all that it holds or wants: other reservations of such owners may be
 * swept. Said again after each list; `false` when the owner cannot tell any more. */
void arbiter_owner_synced(struct arbiter *a, enum ask_owner owner, bool owner_synced);

enum ask_stage {
    ASK_WAITING, /* `why` says for what */
    ASK_TAKING,  /* the lock and the reservations are being written */
    ASK_HELD,    /* the lock and all reservations are on the server */
    ASK_ENDING,  /* the reservations and the lock are being removed */
    ASK_ENDED,   /* none of them is on the server; the handle may be freed */
};

enum ask_why {
    ASK_WHY_NONE,
    ASK_WHY_LIMIT_REACHED,
    ASK_WHY_TARGET_BUSY,
    ASK_WHY_PAUSED,     /* a limit is */
    ASK_WHY_ALL_PAUSED, /* arbiter_config.paused says so */
    ASK_WHY_GAP,
    ASK_WHY_NOT_COMPUTED, /* a limit's inputs cannot be read, or may_act says no */
    ASK_WHY_BACKOFF,
    ASK_WHY_TARGET_NOT_FOUND,
    ASK_WHY_DENIED,      /* --missing-limit=deny */
    ASK_WHY_LEDGER_FULL, /* no reservation fits into the limit's object any more */
};

struct ask_spec {
    enum ask_owner owner;
    struct str uid; /* of the request, or of the node; reservations and locks carry it */
    struct str name;
    enum target_type type;
    struct str namespace; /* empty for nodes */
    struct str target;
    int32_t priority;
    usec_t since;     /* wall: when it queued */
    bool last;        /* in rejection back-off: behind all others */
    struct str state; /* to be shown in the reservation: "Preparing", "Approved", … */
    /* ASK_OF_REQUEST: the number of the grant that the request has or wants. All lower numbers are
     * over. 0: the request keeps no numbers (an object of an older version), and every reservation
     * under its uid is its own. */
    uint32_t grant;
    /* Adoption (R17): the target is being disturbed already, for instance because it was approved
     * or in progress before a restart. The ask never waits, and is reserved even above a limit.
     * Before that its request (or the target, by `confirm`) is read live: until then, and if the
     * request has ended after all, the ask stays ASK_TAKING. */
    bool already_true;
    /* ASK_OF_TARGET: whether the target, as it was read just now and still of that uid, is being
     * disturbed, as already_true says. From the loop, with the ctx of ask_new. */
    bool (*confirm)(void *ctx, const struct jval *target);
    /* The ask waits in the queue and takes nothing. When it could be held, its share is kept from
     * the asks behind it, `why` is ASK_WHY_NONE, and its owner is told: to take the share, the
     * owner frees this ask and makes another. For an owner that has more to do before it takes
     * anything. Such an ask is never ended, only freed. */
    bool queue_only;
};

/* `on_change` comes from the loop when the stage, the reason or the limits that apply have changed;
 * it may add and end asks. Texts are copied. One ask a uid: NULL when there is one already, as of
 * an object that was deleted and restored, or of a server that gives a uid twice. */
struct ask *ask_new(struct arbiter *a, const struct ask_spec *spec, void (*on_change)(void *ctx),
                    void *ctx);
/* Priority, since, last, state, grant and already_true may have changed; the uid and the target
 * never do. With another grant number nothing is held at first. */
void ask_update(struct ask *k, const struct ask_spec *spec);
#define ASK_GRANTS_ALL UINT32_MAX
/* All grant numbers below `below` are over, for good: their reservations and lock may be removed.
 * ASK_OF_REQUEST: an ask whose reservations are there cannot end before its owner has said so. */
void ask_close_grants_below(struct ask *k, uint32_t below);
/* Removes the reservations and then the lock; ASK_ENDED follows at once or later. Another ask_new
 * under the same uid is allowed only after ASK_ENDED. */
void ask_end(struct ask *k);
/* Forgets the handle; reservations and lock stay on the server. */
void ask_free(struct ask *k); /* accepts NULL */

enum ask_stage ask_stage(const struct ask *k);

/* Lives until the loop runs. */
struct ask_view {
    enum ask_stage stage;
    enum ask_why why;
    struct str reason;  /* "LimitReached", "TargetBusy", …: for conditions */
    struct str message; /* names the limit and its numbers, in words */
    usec_t next;        /* wall: when that could change by itself (a gap ends); USEC_NEVER */
    uint32_t position;  /* in the queue of its tightest limit, from 1; 0: none */
    /* Names of the limits that apply, ascending; when held, of those it is reserved in. */
    const struct str *limits;
    uint32_t limit_n;
    struct str blocker; /* uid of the target's holder, or of the oldest holder of the full limit */
    struct str limit;   /* the limit that refuses; empty = none does */
    uint32_t grant;     /* as asked for */
    /* The reservations can be removed only when the owner has said that `grant` is over. */
    bool must_close_grant;
    /* A reservation or the lock is of a higher number than `grant`, and of the same uid: of a grant
     * that the owner has not heard of yet, or that its object has forgotten. 0: there is none. */
    uint32_t newer_grant;
    /* ASK_HELD: why nothing is to be prepared under it now, a sentence: a limit that it is reserved
     * in is paused, or everything is. Empty: go on. */
    struct str paused;
};
void ask_view(const struct ask *k, struct ask_view *ret);

/* True when the ask of that uid is held under that grant number: lock and reservations are on the
 * server. For whoever acts under a grant that another part keeps. */
bool arbiter_holds(const struct arbiter *a, struct str uid, uint32_t grant);

/* Would an ask like that be held if it came now? From what is known, without asking the server.
 * Asks that wait already come first; but when an ask with queue_only waits under the same uid, the
 * share that is kept for that ask is the answer. For owners that keep a queue of their own
 * (ASK_OF_TARGET). `ret` says why not, and lives until the loop runs. */
bool arbiter_would_grant(const struct arbiter *a, const struct ask_spec *spec, struct arena *out,
                         struct ask_view *ret);

/* The double check before an approval (R13): every limit that applies is read live once more, and
 * the target. `on_rechecked` comes from the loop with NULL when the grant still stands, or with
 * what has changed since (a limit that selects the target now, a pause, over-commitment, a target
 * of another uid). An ask has one such check at a time; ask_end and ask_free cancel it. */
void ask_recheck(struct ask *k, struct str target_uid,
                 void (*on_rechecked)(void *ctx, const struct err *err), void *ctx);

/* Options of the limits that apply to a held ask, combined (R19; limit_merge_options); `out` keeps
 * the texts. */
void ask_options(const struct ask *k, struct arena *out, struct limit_options *ret);

/* A workload, and how many of its ready pods would go. */
struct arbiter_loss {
    enum target_type type; /* not TARGET_NODE */
    struct str target;     /* "namespace/name" */
    uint32_t pods;
};
/* Whether the limits of workloads would still hold if all these pods went at once: under each limit
 * at most as many workloads are unavailable as it allows, counting those that are reserved, those
 * that its policies hit and those that lack pods already. A workload that lacks pods already is not
 * counted twice. -ERR_BUSY names the limit that would not hold, or that cannot be computed. Each
 * workload may be given once. */
NODISCARD
int arbiter_check_losses(const struct arbiter *a, const struct arbiter_loss *losses, uint32_t n,
                         struct err *err);

/* ── for people ────────────────────────────────────────────────────────────────────────────── */

struct arbiter_holder {
    struct str uid;
    struct str name;
    struct str target;
    struct str state;
    usec_t since; /* wall */
};

/* Lives until the loop runs. */
struct arbiter_limit {
    struct str name;
    enum target_type type;
    bool accepted;
    struct str problem; /* why it grants nothing, in words; empty = nothing is wrong */
    struct str selects; /* which objects of the type, in words; empty = all */
    bool exclusive;
    uint32_t percent;
    uint32_t minimum;
    uint32_t max_count; /* maxCount; UINT32_MAX = none */
    uint32_t population;
    uint32_t nominal;
    uint32_t unavailable;
    uint32_t granted;
    uint32_t waiting;
    uint32_t limit; /* status.limit */
    usec_t gap_end; /* wall: nothing is granted before; 0 = there is no gap */
    bool paused;
    bool overcommitted;
    uint32_t ledger_bytes; /* of its reservations; RESERVATIONS_BYTES_MAX */
    bool ledger_full;
    const struct arbiter_holder *holders;
};
uint32_t arbiter_limit_count(const struct arbiter *a);
/* By name. False stops the walk. */
void arbiter_each_limit(const struct arbiter *a, struct arena *out,
                        bool (*fn)(void *ctx, const struct arbiter_limit *limit), void *ctx);

/* Counts the turns: while the number is the same, so is whatever this header shows. */
uint64_t arbiter_turn_count(const struct arbiter *a);

bool arbiter_synced(const struct arbiter *a); /* limits and selectors are known, or not installed */
bool arbiter_has_limits(const struct arbiter *a, enum target_type type);

void arbiter_check(const struct arbiter *a); /* asserts what must hold between turns */
