/*
 * arbiter: one budget for every disruption. Whoever wants to disturb an object asks here; the
 * MaintenanceLimits that concern it answer.
 *
 * An ask waits in one queue with all others (priority, age, uid). When every limit that applies has
 * room, the target is locked (a Lease that only one can create) and a reservation is written into
 * the status of each limit by compare-and-swap, in order of their names. Only then is it held, so
 * two arbiters that both believe to lead cannot exceed a limit between them, nor hold one target
 * twice. A release takes the reservations away, then the lock; both survive everything that was
 * done under them.
 *
 * A request may be granted several times, and two controllers may be at work on different grants of
 * it. So each grant has a number, which its owner keeps in the request's status and which the
 * reservations and the lock carry. What is in the books of a number goes only when the owner has
 * said that this number is over; it can say so only when the server's object says so, for good.
 * Whatever an arbiter knows, late or not, it never takes away what another grant rests on.
 *
 * Asks are claims that their owner keeps: after a restart it asks again under the same uid, and
 * finds what is in the books. What nobody asks for, once all owners have said that they know
 * their own, is swept.
 *
 * It keeps MaintenanceLimits and MaintenanceSelectors, all of their status. Without their CRDs
 * there are no limits, and every ask is held as soon as its target is locked.
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
    /* Nothing is granted, written or swept while it says no: the caller leads, its nodes were
     * listed since then, and their watch does not fail. */
    bool (*may_act)(void *ctx);
    /* API-server time, wall (R16). */
    usec_t (*wall)(void *ctx);
    /* Whether something that was done for a request is still to be undone: then what it holds
     * stays, although nobody claims it. May be NULL. */
    bool (*has_mark)(void *ctx, struct str uid);
    /* Something has changed for those who were refused by arbiter_would_grant: they may try again.
     * From the loop; may be NULL. */
    void (*on_capacity)(void *ctx);
    /* After each turn: all that is told here may be different. From the loop; may be NULL. */
    void (*on_turn)(void *ctx);
    void *ctx;
    bool legacy_notready;     /* --legacy-notready */
    bool legacy_double_count; /* --legacy-double-count */
    bool grant_missing;       /* --grant-missing-targets */
    enum arbiter_missing_limit missing;
    uint32_t missing_limit_percent; /* MISSING_LIMIT_PERCENT */
    mutations_t mutations;          /* tests only */
};

struct arbiter *arbiter_new(const struct arbiter_config *config);
/* Like a crash: nothing more is sent. Asks must have been ended. Accepts NULL. */
void arbiter_free(struct arbiter *a);

/* Leading began or ended, or what may_act says has changed otherwise. */
void arbiter_wake(struct arbiter *a);
/* A node is new, has changed or goes; `before` is its projection until now, NULL for a new one. */
void arbiter_on_node(struct arbiter *a, const struct store_item *item, const void *before,
                     bool gone);
/* The owner has asked for all that it holds or wants: what else is in the books under its name may
 * be swept. Said again after each list; `false` when it cannot tell any more. */
void arbiter_owner_synced(struct arbiter *a, enum ask_owner owner, bool owner_synced);

enum ask_stage {
    ASK_WAITING, /* `why` says for what */
    ASK_TAKING,  /* lock and reservations are being written */
    ASK_HELD,    /* all of it is on the server */
    ASK_ENDING,  /* reservations and lock are being taken away */
    ASK_ENDED,   /* nothing of it is on the server; the handle may be freed */
};

enum ask_why {
    ASK_WHY_NONE,
    ASK_WHY_LIMIT_REACHED,
    ASK_WHY_TARGET_BUSY,
    ASK_WHY_PAUSED,
    ASK_WHY_GAP,
    ASK_WHY_NOT_COMPUTED, /* a limit's inputs cannot be read, or nobody may act */
    ASK_WHY_BACKOFF,
    ASK_WHY_TARGET_NOT_FOUND,
    ASK_WHY_DENIED, /* --missing-limit=deny */
};

struct ask_spec {
    enum ask_owner owner;
    struct str uid; /* of the request, or of the node; what the books know it by */
    struct str name;
    enum target_type type;
    struct str namespace; /* empty for nodes */
    struct str target;
    int32_t priority;
    usec_t since;     /* wall: when it queued */
    bool last;        /* in rejection back-off: behind all others */
    struct str state; /* to be shown in the reservation: "Preparing", "Approved", … */
    /* ASK_OF_REQUEST: the number of the grant that it has or wants. All below it are over. 0:
     * numbers are not kept (an object of an older version); what is there under its uid is its own.
     */
    uint32_t grant;
    /* Adoption (R17): it is a fact. It is reserved even above the limit, and never waits; also what
     * was approved or in progress before a restart. Its request, or what confirm judges by, is read
     * live before it is entered above a limit: until then, and when it has ended after all, it
     * stays ASK_TAKING. */
    bool already_true;
    /* ASK_OF_TARGET: whether the target, as it was read just now and still of that uid, is what
     * `adopt` says. From the loop, with the ctx of ask_new. */
    bool (*confirm)(void *ctx, const struct jval *target);
    /* It stands in line and takes nothing. Where it could be held, what it would take is kept from
     * those behind it, `why` is ASK_WHY_NONE, and its owner is told: to have it, it frees this ask
     * and makes another. For a part with more to do before it takes anything. Never ended, only
     * freed.
     */
    bool queue_only;
};

/* `on_change` comes from the loop when the stage, the reason or the limits that apply have changed;
 * it may add and end asks. Texts are copied. One ask a uid. */
struct ask *ask_new(struct arbiter *a, const struct ask_spec *spec, void (*on_change)(void *ctx),
                    void *ctx);
/* What has changed of it: priority, since, last, state, grant, and that it is to be adopted. The
 * uid and the target never do. With another number nothing is held at first. */
void ask_update(struct ask *k, const struct ask_spec *spec);
#define ASK_GRANTS_ALL UINT32_MAX
/* All numbers below `below` are over, for good: what is in the books of them may go. ASK_OF_REQUEST
 * says so before an ask can end of which something is there. */
void ask_close_grants_below(struct ask *k, uint32_t below);
/* Takes back what it holds, last things last; ASK_ENDED follows at once or later. A new ask_new
 * under the same uid is fine only after ASK_ENDED. */
void ask_end(struct ask *k);
/* Forgets the handle; what is on the server stays there. */
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
    const struct str
        *limits; /* names of those that apply, ascending; those it is reserved in when held */
    uint32_t limit_n;
    struct str
        blocker;      /* uid of whoever holds the target, or the oldest holder of the full limit */
    struct str limit; /* the one that refuses; empty = none does */
    uint32_t grant;   /* as asked for */
    bool must_close_grant; /* what is there of it can go only when its owner has said that `grant`
                              is over */
};
void ask_view(const struct ask *k, struct ask_view *ret);

/* Would an ask like that be held if it came now? From what is known, without asking the server; who
 * waits already is served before it, unless one with its uid stands in line: then what is kept for
 * that is its own. For a part that keeps those who wait itself (ASK_OF_TARGET). `ret` says why not,
 * and lives until the loop runs. */
bool arbiter_would_grant(const struct arbiter *a, const struct ask_spec *spec, struct arena *out,
                         struct ask_view *ret);

/* The double check before an approval (R13), from live reads: every limit that applies is read
 * again, and the target; `on_rechecked` comes from the loop with NULL when the grant still stands,
 * or with what has changed since (a limit that selects it now, a pause, over-commitment, a target
 * of another uid). One at a time an ask. Ends with the ask. */
void ask_recheck(struct ask *k, struct str target_uid,
                 void (*on_rechecked)(void *ctx, const struct err *err), void *ctx);

/* Options of the limits that apply to a held ask, combined (R19; limit_merge_options); `out` keeps
 * the texts. */
void ask_options(const struct ask *k, struct arena *out, struct limit_options *ret);

/* A workload, and how many of its pods that serve would go. */
struct arbiter_loss {
    enum target_type type; /* not TARGET_NODE */
    struct str target;     /* "namespace/name" */
    uint32_t pods;
};
/* Whether the limits of workloads still hold when all of that goes at once: under none more are
 * unavailable than it allows, counting what is held, what its policies hit and what lacks pods
 * already. A workload that lacks pods as it is loses nothing by it. -ERR_BUSY says which limit does
 * not, or that it cannot be told. Each workload once. */
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
    const struct arbiter_holder *holders;
};
uint32_t arbiter_limit_count(const struct arbiter *a);
/* By name. False stops the walk. */
void arbiter_each_limit(const struct arbiter *a, struct arena *out,
                        bool (*fn)(void *ctx, const struct arbiter_limit *limit), void *ctx);

/* Counts its turns: as long as it is the same, so is all that is told here. */
uint64_t arbiter_turn_count(const struct arbiter *a);

bool arbiter_synced(const struct arbiter *a); /* limits and selectors are known, or not installed */
bool arbiter_has_limits(const struct arbiter *a, enum target_type type);

void arbiter_check(const struct arbiter *a); /* asserts what must hold between turns */
