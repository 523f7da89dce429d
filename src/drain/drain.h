/*
 * drain: evicts the pods of nodes as their budgets allow, moved by events and never by polling.
 *
 * Each drain watches the pods of its node; all drains of one controller share a watch of the
 * PodDisruptionBudgets, which runs only while a drain does. A pod is evicted in the moment in which
 * the status of its budget says that it may. Evictions of ours which that status does not show yet
 * count against it, across all drains, so one allowed disruption is asked for once. Pods that wait
 * for one budget are served in order: the oldest drain first, then by name. An eviction needs one
 * budget and holds no other, so no two drains can wait for each other.
 *
 * Which pods go is decided by drain/pod_policy.h. Without flags these are left alone, neither
 * evicted nor waited for: pods of DaemonSets, mirror pods, and finished pods (Succeeded or Failed:
 * nothing of them runs; kubectl drain deletes them). Pods that are being deleted are waited for.
 * Without `force` no pod goes that a budget protects (I5).
 *
 * A node with drain rules (drain/drain_rules.h) is drained as Cluster API would drain it: pods that
 * a rule skips stay, others are waited for until their objects are gone, finished pods go, and the
 * pods of the lowest order go first: the others wait until none of those is there.
 *
 * A drain never cordons: its caller does (drain/cordon.h).
 */
#pragma once

#include "format/selector.h"
#include "kube/client.h"
#include "kube/recorder.h"

struct drains; /* all drains of one controller */
struct drain;  /* of one node */

struct drains_config {
    struct client *client;     /* borrowed */
    struct recorder *recorder; /* borrowed; NULL: no Events */
    /* Asked before anything is sent; NULL: always. In a process that was frozen a timer may be due
     * before the process notices that it does not lead any more. */
    bool (*may_act)(void *ctx);
    /* The server does not let us evict or delete a pod (403). Called once for a node and a reason,
     * however many pods and tries meet it; NULL: nobody is told. */
    void (*on_denied)(void *ctx, struct str node, struct str pod, struct str reason);
    /* The server does not let us read PodDisruptionBudgets. Called once; NULL: nobody is told. */
    void (*on_budgets_denied)(void *ctx);
    /* A drain is blocked, or one that was is not any more; from within a step or a stop, so no
     * drain may be started or stopped here. NULL: nobody is told. */
    void (*on_blocked)(void *ctx);
    void *ctx;
};

struct drain_spec {
    struct str node;     /* copied */
    struct str node_uid; /* copied; for Events */
    /* How long budgets may refuse a pod, from the first refusal on; USEC_NEVER: for ever. With
     * `force` the pod is then deleted; otherwise the drain shows timed_out, and goes on. */
    usec_t eviction_timeout;
    /* How long a pod may take to go once its deletion has begun, its grace period at least. With
     * `force` the pod is then deleted without grace. */
    usec_t deletion_timeout;
    bool force;
    usec_t grace;   /* for every pod, in whole seconds; < 0: the pod's own */
    uint32_t flags; /* DRAIN_…; 0: as described above */
    /* Between tries of an eviction that was refused while budgets cannot be watched, so that no
     * event tells when to try again. 0: a wait that grows. */
    usec_t retry;
    const struct selector *pods; /* other pods are left alone; borrowed; NULL: all are meant */
    /* The node's annotation KEY_DRAIN_RULES; copied; .p NULL: it has none. */
    struct str drain_rules;
};

/* Finished pods are evicted, too: their objects go, as with kubectl drain. */
#define DRAIN_EVICT_FINISHED 1u
/* The label cluster.x-k8s.io/drain counts: `skip` leaves the pod alone, `wait-completed` waits. */
#define DRAIN_USE_POD_LABEL 2u
/* While such a pod is there nothing is evicted at all, as kubectl drain refuses to begin: */
#define DRAIN_FORBID_UNMANAGED 4u
#define DRAIN_FORBID_EMPTYDIR 8u
#define DRAIN_FORBID_DAEMONSET 16u
/* on_change comes, too, when another number of pods is left or other volume claims stay. */
#define DRAIN_NOTIFY_ALL 32u
/* Nothing is sent: the drain only watches the pods. */
#define DRAIN_OBSERVE_ONLY 64u

/* Why a pod is neither evicted nor being deleted. */
enum drain_wait {
    DRAIN_WAIT_NONE,
    DRAIN_WAIT_PDB,       /* its budget allows no disruption, or refused one */
    DRAIN_WAIT_MANY_PDBS, /* it has several budgets, and the API evicts no such pod */
    DRAIN_WAIT_FAILED,    /* the server answered with another error */
    DRAIN_WAIT_STUCK,     /* its deletion takes too long */
    /* From here on the policy decides: the pod's time has not come, or never comes. */
    DRAIN_WAIT_COMPLETION, /* it is waited for until it completes */
    DRAIN_WAIT_ORDER,      /* pods of a lower order go first */
    DRAIN_WAIT_UNMANAGED,  /* DRAIN_FORBID_UNMANAGED: no controller would make the pod again */
    DRAIN_WAIT_EMPTYDIR,   /* DRAIN_FORBID_EMPTYDIR */
    DRAIN_WAIT_DAEMONSET,  /* DRAIN_FORBID_DAEMONSET */
    DRAIN_WAIT_RULES,      /* the node's rules cannot be used, or ask for labels not known yet */
};

/* Texts live until the loop runs. */
struct drain_status {
    bool synced;          /* the node's pods are known */
    uint32_t left;        /* pods that have to go, those included that are being deleted */
    uint32_t terminating; /* how many of them are being deleted */
    uint64_t evicted;     /* accepted by the server */
    uint64_t refused;     /* refused by a budget (429) */
    uint64_t forced;      /* deletions that no budget was asked for, or without grace */
    /* The pod that waits longest, and for what; `pod` empty: no pod waits. */
    struct str pod;
    struct str namespace;
    struct str pdb; /* the budget that refuses the pod; empty: none does */
    enum drain_wait wait;
    struct str reason; /* a sentence with current numbers */
    usec_t since;      /* wall; when the pod began to wait, or its budget last let a pod go */
    bool blocked;      /* somebody should look: the wait is long, or does not end by itself */
    bool timed_out;    /* the pod waits longer than the drain's timeouts allow */
};

struct drains_stats {
    uint32_t active;
    uint32_t blocked;    /* how many of them are */
    uint64_t sent;       /* evictions asked for, repeats included */
    uint64_t evicted;    /* accepted */
    uint64_t refused;    /* by a budget */
    uint64_t absent;     /* the pod had gone already */
    uint64_t failed;     /* conflicts, errors and silence: tried again */
    uint64_t forced;     /* deletions after a timeout that were accepted */
    uint64_t finished;   /* times a drain had nothing left */
    bool pdbs_unwatched; /* budgets cannot be watched */
};

struct drains *drains_new(struct loop *loop, const struct drains_config *config);
/* Like a crash: every drain is gone and nothing more is sent. Accepts NULL; not from on_change. */
void drains_free(struct drains *ds);

/* `on_change` comes from the loop when the drain is done (or not any more), blocked, unblocked,
 * timed out, or blocked by something else. It may start and stop drains. */
struct drain *drain_start(struct drains *ds, const struct drain_spec *spec,
                          void (*on_change)(void *ctx), void *ctx);
/* Nothing more is sent; requests under way may still take effect. Accepts NULL. */
void drain_stop(struct drain *d);

/* A drain that rests sends nothing, and its eviction_timeout stands still. For a caller whose next
 * step is under way once the drain is done: that step may uncordon the node, and pods that come
 * then are not to be evicted. */
void drain_pause(struct drain *d, bool rest);

/* The same for all drains, those that begin later included, whatever each of them is told. */
void drains_pause(struct drains *ds, bool rest);

/* The node's annotation, as in the spec, may have changed. Cheap when it has not. */
void drain_set_rules(struct drain *d, struct str text);

/* From now on no budget is asked and no flag forbids: the pods that are left are deleted, with
 * their grace, and without it where that has had no effect for a minute. Pods that are skipped
 * stay. */
void drain_force(struct drain *d);
/* From now on as with DRAIN_OBSERVE_ONLY. */
void drain_observe_only(struct drain *d);
/* The node's kubelet is silent, or is back. While it is silent nobody ends pods there, so they get
 * one second of grace, and a pod whose grace is over counts as gone. */
void drain_set_unreachable(struct drain *d, bool unreachable);

/* No pod is left that would have to go. A pod that comes later ends this. */
bool drain_is_done(const struct drain *d);
void drain_status(const struct drain *d, struct drain_status *ret);
void drains_stats(const struct drains *ds, struct drains_stats *ret);
/* Every drain that has not ended, the oldest first, with the node that it drains. */
void drains_each(const struct drains *ds,
                 void (*fn)(void *ctx, struct str node, const struct drain *d), void *ctx);
/* How far the drain is, in words: "draining: 2 pods are left; shop/web-0: its budget …". */
struct str drain_text(const struct drain *d, struct arena *out);
/* Those that wait besides the pod of drain_status, some by name, to follow a sentence about that
 * one: "; also waiting: shop/web-1, shop/web-2 and 3 more". Empty: none. */
struct str drain_also_waiting(const struct drain *d, struct arena *out);

/* A pod that waits, and for what. */
struct drain_waiting_pod {
    struct str namespace;
    struct str pod;
    enum drain_wait wait;
    struct str reason; /* in `out` */
};
/* Pods in trouble first, then those whose wait is expected, each by name; `max` at most are
 * written. Returns how many there are. */
uint32_t drain_waiting_pods(const struct drain *d, struct arena *out, struct drain_waiting_pod *ret,
                            uint32_t max);
/* The PersistentVolumeClaims of pods that keep their volumes (struct pod_verdict). */
void drain_each_volume_claim(const struct drain *d,
                             void (*fn)(void *ctx, struct str namespace, struct str claim),
                             void *ctx);

void drains_check(const struct drains *ds);
