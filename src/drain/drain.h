/*
 * drain: sends the pods of nodes away as their budgets allow, moved by events and never by polling.
 *
 * Each drain watches the pods of its node; all drains of one controller share a watch of the
 * PodDisruptionBudgets, which runs only while a drain does. A pod is evicted in the moment in which
 * the status of its budget says that it may. Evictions of ours which that status does not show yet
 * count against it, across all drains, so one allowed disruption is asked for once. Pods that wait
 * for one budget are served in order: the oldest drain first, then by name. An eviction needs one
 * budget and holds no other, so no two drains can wait for each other.
 *
 * Left alone, as neither sent away nor waited for: pods of DaemonSets, mirror pods, and finished
 * pods (Succeeded or Failed: nothing of them runs; kubectl drain deletes them). Pods that are being
 * deleted are waited for. Without `force` no pod goes that a budget holds (I5).
 *
 * A node with a rulebook (see rulebook.h) is drained as Cluster API would: pods that it skips stay,
 * others are waited for until their objects are gone, finished pods go, and of those that go the
 * ones of the lowest order go first, while the rest waits until none of them is there.
 *
 * Cordoning is the caller's: a drain says nothing about the node, only about its pods.
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
    /* Asked before anything is sent; NULL: always. A process that was frozen may find a timer due
     * before it finds out that it does not lead any more. */
    bool (*may_act)(void *ctx);
    void *ctx;
    mutations_t mutations; /* tests only */
};

struct drain_spec {
    struct str node;     /* copied */
    struct str node_uid; /* copied; for Events */
    /* How long budgets may refuse a pod, from the first moment in which one held it; USEC_NEVER:
     * for ever. With `force` it is then deleted, otherwise the drain has timed out and goes on. */
    usec_t eviction_timeout;
    /* How long a pod may take to go once its deletion has begun, its grace period at least. With
     * `force` it is then deleted without grace. */
    usec_t deletion_timeout;
    bool force;
    usec_t grace;   /* for every pod, in whole seconds; < 0: the pod's own */
    uint32_t flags; /* DRAIN_…; 0: as described above */
    /* Between tries of an eviction whose refusal no event will end: its budget is not watched. 0: a
     * wait that grows. */
    usec_t retry;
    const struct selector *pods; /* others are left alone; borrowed; NULL: all are meant */
    struct str drain_rules;      /* the node's annotation KEY_DRAIN_RULES; copied; .p NULL: none */
};

/* Finished pods are sent away, too: their objects go, as kubectl drain has it. */
#define DRAIN_EVICT_FINISHED 1u
/* The label cluster.x-k8s.io/drain counts: `skip` leaves the pod alone, `wait-completed` waits. */
#define DRAIN_USE_POD_LABEL 2u
/* While such a pod is there nothing is evicted at all, as kubectl drain refuses to begin: */
#define DRAIN_FORBID_UNMANAGED 4u
#define DRAIN_FORBID_EMPTYDIR 8u
#define DRAIN_FORBID_DAEMONSET 16u
/* on_change tells how many are left, and which claims stay. */
#define DRAIN_NOTIFY_ALL 32u
/* Nothing is sent; pods are only looked at. */
#define DRAIN_OBSERVE_ONLY 64u

/* Why a pod is not on its way. */
enum drain_wait {
    DRAIN_WAIT_NONE,
    DRAIN_WAIT_PDB,       /* its budget allows no disruption, or refused one */
    DRAIN_WAIT_MANY_PDBS, /* it has several budgets, and the API evicts no such pod */
    DRAIN_WAIT_FAILED,    /* the server answered otherwise */
    DRAIN_WAIT_STUCK,     /* its deletion takes too long */
    /* From here on it is not the pod's time, or never is. */
    DRAIN_WAIT_COMPLETION, /* it wishes to complete, which is nobody's fault */
    DRAIN_WAIT_ORDER,      /* nor is it that others go first */
    DRAIN_WAIT_UNMANAGED,  /* the rules bar its eviction: nothing would make it again, */
    DRAIN_WAIT_EMPTYDIR,   /* it has an emptyDir, */
    DRAIN_WAIT_DAEMONSET,  /* it is of a DaemonSet */
    DRAIN_WAIT_RULES,      /* the rulebook cannot be used, or asks for labels that are not known */
};

/* Texts live until the loop runs. */
struct drain_status {
    bool synced;          /* the node's pods are known */
    uint32_t left;        /* pods that have to go, those included that are being deleted */
    uint32_t terminating; /* of them */
    uint64_t evicted;     /* accepted by the server */
    uint64_t refused;     /* refused by a budget (429) */
    uint64_t forced;      /* deletions that no budget was asked for, or without grace */
    /* What waits longest, and for what; `pod` empty: nothing waits. */
    struct str pod;
    struct str namespace;
    struct str pdb; /* empty: it is no budget that holds it */
    enum drain_wait wait;
    struct str reason; /* a sentence with current numbers */
    usec_t since;      /* wall; when it began to wait, or its budget last let a pod go */
    bool blocked;      /* it waits too long for that to be the way of things */
    bool timed_out;    /* it waits longer than the drain's timeouts allow */
};

struct drains_stats {
    uint32_t active;
    uint32_t blocked;    /* of them */
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

/* `on_change` comes from the loop when the drain is done (or is not any more), blocked, unblocked,
 * timed out, or waits for something else. It may start and stop drains. */
struct drain *drain_start(struct drains *ds, const struct drain_spec *spec,
                          void (*on_change)(void *ctx), void *ctx);
/* Nothing more is sent; what is under way may still happen. Accepts NULL. */
void drain_stop(struct drain *d);

/* Sends nothing while it rests: what its end was waited for is under way, and may let pods come to
 * the node again. */
void drain_pause(struct drain *d, bool rest);

/* The node's annotation, which may change under way; as in the spec. Cheap when it has not. */
void drain_set_rules(struct drain *d, struct str text);

/* From now on no budget is asked and no rule bars: what is left is deleted, with its grace, and
 * without it where that has no effect for a minute more. Pods that are skipped stay. */
void drain_force(struct drain *d);
/* Sends nothing any more, and goes on looking: as with DRAIN_OBSERVE_ONLY. */
void drain_observe_only(struct drain *d);
/* The node's kubelet is silent, or is back: nobody ends pods there, so they are given a second, and
 * one whose grace is over counts as gone. */
void drain_set_unreachable(struct drain *d, bool unreachable);

/* No pod is left that would have to go. A pod that comes later ends this. */
bool drain_is_done(const struct drain *d);
void drain_status(const struct drain *d, struct drain_status *ret);
void drains_stats(const struct drains *ds, struct drains_stats *ret);

/* A pod that waits, and for what. */
struct drain_waiting_pod {
    struct str namespace;
    struct str pod;
    enum drain_wait wait;
    struct str reason; /* in `out` */
};
/* Those first that are in trouble, then by name, `max` at most; answers how many there are. */
uint32_t drain_waiting_pods(const struct drain *d, struct arena *out, struct drain_waiting_pod *ret,
                            uint32_t max);
/* PersistentVolumeClaims of pods that are there to stay: of DaemonSets, mirrors, those that wish it
 * where wishes count, and those that the rulebook skips. */
void drain_each_volume_claim(const struct drain *d,
                             void (*fn)(void *ctx, struct str namespace, struct str claim),
                             void *ctx);

void drains_check(const struct drains *ds);
