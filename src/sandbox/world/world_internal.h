/*
 * world_internal: the inside of the world, shared by its rooms. Nobody else includes this.
 *
 * A record (struct thing) stands for each object the world reacts to. A commit changes the record
 * and marks it, and whoever depends on it, as dirty; a moment later the turn tends each dirty
 * thing: one function a kind, which reads what it needs from the server and then writes. What the
 * server gives to read lives only until the next write.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/alloc.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "format/selector.h"
#include "format/json_tree.h"
#include "sandbox/world/world.h"

enum thing_kind {
    THING_NODE,
    THING_NAMESPACE,
    THING_BUDGET,
    THING_DEPLOYMENT,
    THING_REPLICASET,
    THING_STATEFULSET,
    THING_DAEMONSET,
    THING_CRONJOB,
    THING_JOB,
    THING_POD,
    THING_KINDS,
};

struct thing;

struct thing_type {
    struct str group;
    struct str version;
    struct str plural;
    struct str kind;
    void (*tend)(struct world *w, struct thing *t);
};

/* One object. The fields below `timer` are a pod's or a node's. */
struct thing {
    struct world *w;
    enum thing_kind kind;
    struct arena memory; /* of its texts */
    struct str key;      /* "namespace/name" or "name" */
    struct str namespace;
    struct str name;
    struct str uid;
    struct list dirty;       /* in the world's dirty ones; or in its graveyard */
    struct list of_kind;     /* in the world's things of the kind */
    struct thing *owner;     /* its controller, if that is known */
    struct list sibling;     /* among the owner's children */
    struct list children;    /* in order of their coming */
    struct loop_timer timer; /* marks it dirty */
    bool gone;

    /* A pod. */
    struct thing *node;  /* NULL: not bound, or to a node that is not there */
    struct list on_node; /* among the node's pods */
    struct list waiting; /* for a place, among the world's */
    bool bound;
    bool deleting;
    bool finished;
    bool succeeded;
    bool running;
    bool ready;
    bool restarts;   /* its machine went down under it */
    usec_t next_at;  /* when it will have started, stopped or run its time; 0 = not chosen */
    usec_t taint_at; /* when its node got a taint that evicts; 0 = none */

    /* A node. */
    struct list pods;
    uint32_t pods_n;
    uint32_t score; /* of the scheduler, while it looks */
    bool machine_up;
    bool reachable; /* the kubelet talks */
    bool rebooting;
    bool schedulable; /* ready, not cordoned, no taint that keeps pods away */
    bool evicts;      /* has a NoExecute taint */
    usec_t up_at;     /* the machine is up then; 0 = it is, or never */
    usec_t unknown_at;
    uint32_t boots;
    uint32_t number; /* for its addresses */
    struct loop_timer beat;
    usec_t beat_status_at;
};

struct world {
    struct loop *loop;
    struct apiserver *server;
    struct world_config config;
    struct rng rng;
    struct arena tmp;               /* of one thing's tending */
    struct map things[THING_KINDS]; /* by key */
    struct list of_kind[THING_KINDS];
    struct map by_uid;
    struct list dirty;
    struct list graveyard; /* gone while somebody may still look at them */
    struct list waiting;   /* pods without a place */
    struct loop_timer turn;
    apiserver_on_commit_fn on_commit;
    void *on_commit_ctx;
    uint64_t requests;
    uint32_t numbers; /* of nodes made */
};

extern const struct thing_type thing_types[THING_KINDS];

/* The object, or NULL. Lives until the next write. */
const struct jval *thing_object(struct thing *t);
void thing_dirty(struct thing *t);
void thing_dirty_at(struct thing *t, usec_t at);
struct thing *world_find(struct world *w, enum thing_kind kind, struct str key);
struct str thing_path(struct thing *t, const char *subresource); /* in tmp */

#define THINGS_EACH(w, kind, t)                                                                    \
    for (struct thing *t = thing_first((w), (kind)); t != NULL; t = thing_next(t))
struct thing *thing_first(struct world *w, enum thing_kind kind);
struct thing *thing_next(struct thing *t);
#define THING_OF(link, member) CONTAINER_OF(link, struct thing, member)

/* Sends a request as `who`; answers its status. Texts that belong to it are printed into tmp. */
int world_send(struct world *w, const char *who, const char *method, struct str path,
               struct str body, struct str *ret_body);
int world_patch(struct world *w, const char *who, struct str path, struct str body);
/* Merges `status` (an object in tmp) into the thing's status, unless it is there already. */
void thing_set_status(struct thing *t, const char *who, struct tree *status);
void thing_delete(struct thing *t, const char *who, int64_t grace); /* -1: its own */
struct str world_time(struct world *w); /* now, as metav1.Time; in tmp */
int64_t jval_number(const struct jval *v, const char *path, int64_t otherwise);
usec_t jval_span_at(const struct jval *object, const char *annotation, usec_t otherwise);
/* "25%" of `whole` or a plain number. */
int64_t jval_share(const struct jval *v, int64_t whole, bool round_up, int64_t otherwise);
/* A condition for a status list; lastTransitionTime stays while `old` has the same status. */
struct tree *world_condition(struct world *w, const struct jval *old_list, const char *type,
                             const char *status, const char *reason, const char *message);

/* The rooms. */
void node_tend(struct world *w, struct thing *t);
void node_observe(struct thing *t, const struct jval *object);
void node_gone(struct thing *t);
void namespace_tend(struct world *w, struct thing *t);
void pod_tend(struct world *w, struct thing *t);
void pod_observe(struct thing *t, const struct jval *old, const struct jval *object);
void schedule_pod(struct world *w, struct thing *t);
void schedule_again(struct world *w); /* something changed that may make a place */
bool schedule_tolerates(const struct jval *tolerations, const struct jval *taint,
                        int64_t *ret_seconds);
void deployment_tend(struct world *w, struct thing *t);
void replicaset_tend(struct world *w, struct thing *t);
void statefulset_tend(struct world *w, struct thing *t);
void daemonset_tend(struct world *w, struct thing *t);
void job_tend(struct world *w, struct thing *t);
void cronjob_tend(struct world *w, struct thing *t);
void budget_tend(struct world *w, struct thing *t);
void budget_pod_changed(struct world *w, struct str namespace);

/* A pod from the template of `owner`'s object; NULL when that is gone. Change it, then create it.
 */
struct tree *workload_pod(struct thing *owner, const struct jval *object, struct str name);
void workload_create(struct thing *owner, struct tree *pod);
struct str workload_hash(struct world *w, const struct jval *template); /* in tmp */
struct tree *workload_owner(struct thing *owner);

struct workload_count {
    uint32_t alive; /* neither deleting nor finished */
    uint32_t ready;
    uint32_t deleting;
    uint32_t succeeded;
    uint32_t failed;
};
struct workload_count workload_count(struct thing *owner);
