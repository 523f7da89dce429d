/*
 * maintenance_limit: reads a MaintenanceLimit: its spec, and the reservations in its status.
 *
 * Reading never fails: a spec that cannot be used makes a limit that is not accepted, says why, and
 * grants nothing. An object as the first version of the API wrote it (percent, policies, no spec at
 * all) is read as it always was. What a limit allows is computed by ledger/limit.h; what its status
 * says is written by limit_status_patch.h.
 */
#pragma once

#include "format/selector.h"
#include "kinds/reservation.h"
#include "kinds/store_kind.h"
#include "kinds/target_type.h"

#define LIMIT_POLICIES_MAX 16u         /* the schema's maximum */
#define LIMIT_REJECTION_BACKOFF_S 300u /* where the limit does not say */

/* What a policy can look at, of one object. */
#define TRAIT_NOT_READY (1u << 0)
#define TRAIT_UNKNOWN (1u << 1) /* Ready is Unknown */
#define TRAIT_UNSCHEDULABLE (1u << 2)
#define TRAIT_DELETING (1u << 3)
#define TRAIT_IN_MAINTENANCE (1u << 4) /* somebody else's maintenance shows on it */
#define TRAIT_UNAVAILABLE (1u << 5)
#define TRAIT_PROGRESSING (1u << 6)

/* A policy by its name; constants. */
struct limit_policy {
    struct str name;
    uint32_t traits; /* any of them is a hit */
    bool nodes;      /* for nodes; otherwise for workloads */
};

enum on_approved { ON_APPROVED_REQUEUE, ON_APPROVED_CLOSE };
enum on_in_progress {
    ON_PROGRESS_RELEASE,
    ON_PROGRESS_REQUEUE,
    ON_PROGRESS_CLOSE,
    ON_PROGRESS_HOLD
};
enum on_timeout { ON_TIMEOUT_REJECT, ON_TIMEOUT_PROCEED, ON_TIMEOUT_FORCE };

struct limit_drain {
    bool enabled;
    bool cordon;
    bool uncordon_after;
    bool ignore_daemon_sets;
    bool delete_empty_dir;
    bool evict_unmanaged;
    int64_t grace_s;    /* < 0: the pod's own */
    uint32_t timeout_s; /* 0 = none */
    enum on_timeout on_timeout;
    uint32_t post_grace_s;
    uint32_t retry_s;
    struct str pod_selector; /* as text of format/selector; empty = all */
};

struct limit_detach {
    bool enabled;
    uint32_t timeout_s;
    enum on_timeout on_timeout; /* never FORCE */
    uint32_t post_grace_s;
    const struct str *ignore_drivers;
    uint32_t ignore_n;
};

#define SAFETY_BUDGETS 1u /* safetyChecks */
#define SAFETY_QUORUM 2u
#define SAFETY_WORKLOADS 4u

struct limit_options {
    struct limit_drain drain;
    struct limit_detach detach;
    uint32_t approved_s; /* 0 = none */
    enum on_approved on_approved;
    uint32_t in_progress_s;
    enum on_in_progress on_in_progress;
    uint32_t rejection_backoff_s;
    uint32_t max_rejections; /* 0 = any number */
    uint32_t safety;         /* SAFETY_… */
    usec_t ledger_init_time; /* wall: the earliest ledgerInitTime; USEC_NEVER = none */
};

struct limit {
    struct str name;
    struct str uid;
    int64_t generation;
    bool type_known; /* otherwise the limit concerns nobody */
    enum target_type type;
    struct str reason; /* why it is not accepted, for the condition; empty = it is */
    struct str problem;
    uint32_t percent;
    const struct limit_policy *policies[LIMIT_POLICIES_MAX]; /* those known, in their order */
    uint32_t policy_n;
    struct str unknown; /* policies that are not, for the condition */
    bool has_selector;  /* by `selector` */
    struct selector selector;
    bool has_selector_ref;
    struct str selector_ref; /* "namespace/name" of a MaintenanceSelector */
    bool namespaced;         /* only objects in namespaces that `namespaces` selects */
    struct selector namespaces;
    bool exclusive;
    int32_t priority;
    uint32_t minimum;
    uint32_t max_count; /* maxCount; UINT32_MAX = none */
    bool paused;
    bool repair_unavailable;
    usec_t gap;     /* betweenOperationsSeconds */
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
