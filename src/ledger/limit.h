/*
 * limit: one MaintenanceLimit as it was read, and its arithmetic.
 *
 * Pure. Reading never fails: what cannot be used makes a limit that is not accepted, says why, and
 * grants nothing. An object as the first version of the API wrote it (percent, policies, no spec at
 * all) is read as it always was.
 */
#pragma once

#include "format/selector.h"
#include "ledger/arbiter.h"
#include "ledger/reservation.h"

#define LIMIT_POLICIES_MAX 16u /* the schema's maximum */

/* What a policy can look at, of one object. */
#define TRAIT_NOT_READY (1u << 0)
#define TRAIT_UNKNOWN (1u << 1) /* Ready is Unknown */
#define TRAIT_UNSCHEDULABLE (1u << 2)
#define TRAIT_DELETING (1u << 3)
#define TRAIT_IN_MAINTENANCE (1u << 4) /* somebody else's maintenance shows on it */
#define TRAIT_UNAVAILABLE (1u << 5)
#define TRAIT_PROGRESSING (1u << 6)

/* A policy that is known; they are in a table that lives for ever. */
struct limit_policy {
    struct str name;
    uint32_t traits; /* any of them is a hit */
    bool nodes;      /* for nodes; otherwise for workloads */
};

struct limit {
    struct str name;
    struct str uid;
    int64_t generation;
    bool type_known; /* a type that is known; otherwise it concerns nobody */
    enum target_type type;
    struct str reason; /* why it is not accepted, for the condition; empty = it is */
    struct str problem;
    uint32_t percent;
    const struct limit_policy *policies[LIMIT_POLICIES_MAX]; /* those known, in their order */
    uint32_t policy_n;
    struct str unknown; /* policies that are not, for the condition */
    bool has_selector;  /* by `selector` */
    struct selector selector;
    bool has_selector_ref; /* to a MaintenanceSelector, `reference` = "namespace/name" */
    struct str selector_ref;
    bool namespaced; /* only in namespaces of `spaces` */
    struct selector namespaces;
    bool exclusive;
    int32_t priority;
    uint32_t minimum;
    uint32_t max_count; /* maxCount; UINT32_MAX = none */
    bool paused;
    bool repair_unavailable;
    usec_t gap;
    bool has_drain; /* `options.drain` and `options.detach` are configured */
    bool has_detach;
    struct limit_options options;
    /* status, as the server has it */
    struct reservations reservations;
    usec_t ledger_init_time; /* wall; USEC_NEVER = never */
    usec_t last_grant;
    usec_t last_release;
    struct str status; /* all of it, JSON */
};

void limit_parse(const struct jval *object, struct arena *out, struct limit *ret);

/* For kube/store: projects into a struct limit; the context is not used. */
extern const struct store_kind limit_kind;

/* Which objects of its type it concerns: "pool=gpu", "as MaintenanceSelector a/b says, in
 * namespaces with team=c"; empty = all. */
struct str limit_selects_text(const struct limit *l, struct arena *out);

/* The first policy that such an object meets, or NULL. */
const struct limit_policy *limit_match_policy(const struct limit *l, uint32_t traits);

/* How many may be disturbed of a population, whatever is unavailable. */
uint32_t limit_nominal(const struct limit *l, uint32_t population);

struct limit_counts {
    uint32_t population;
    uint32_t granted;     /* |G| */
    uint32_t unavailable; /* |U|; G not counted, unless counting twice is wanted */
};

/* status.limit */
uint32_t limit_effective(const struct limit *l, const struct limit_counts *t);

struct limit_target {
    bool granted;     /* in G */
    bool unavailable; /* in U */
};

/* One more grant stays within the limit; pause and gap are other questions. */
bool limit_allows_one_more(const struct limit *l, const struct limit_counts *t,
                           struct limit_target target);
/* More is granted than may be, or would be if it were asked for now. */
bool limit_is_overcommitted(const struct limit *l, const struct limit_counts *t);
/* Wall: when the gap after the last operation is over. Stamps are whole seconds, rounded down, so
 * one more is waited for. 0 = there is none. */
usec_t limit_gap_end(const struct limit *l);

/* Of limits that match one target, in order of their names: leaves those that apply, and answers
 * how many. An Exclusive one pushes all others aside. */
uint32_t limit_keep_applicable(const struct limit **matching, uint32_t n);

/* What limits that apply together ask for, in order of their names: the smallest time limit
 * that there is wins, the first that configures a preparation gives it. The texts are the limits'.
 */
void limit_merge_options(const struct limit *const *limits, uint32_t n, struct limit_options *ret);
