/*
 * world_internal: the inside of the world, shared by its files. Nobody else includes this.
 *
 * A record (struct world_object) stands for each object the world reacts to. A commit changes the
 * record and marks it, and the records that depend on it, as dirty; a moment later the turn
 * reconciles each dirty object: one function a kind, which reads what it needs from the server and
 * then writes. An object read from the server lives only until the next write.
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

enum world_kind {
    WORLD_NODE,
    WORLD_NAMESPACE,
    WORLD_PDB,
    WORLD_DEPLOYMENT,
    WORLD_REPLICASET,
    WORLD_STATEFULSET,
    WORLD_DAEMONSET,
    WORLD_CRONJOB,
    WORLD_JOB,
    WORLD_POD,
    WORLD_KINDS,
};

struct world_object;

struct world_kind_info {
    struct str group;
    struct str version;
    struct str plural;
    struct str kind;
    void (*reconcile)(struct world *w, struct world_object *t, const struct jval *object);
};

/* One object. The fields below `timer` are a pod's or a node's. */
struct world_object {
    struct world *w;
    enum world_kind kind;
    struct arena memory; /* of its texts */
    struct str key;      /* "namespace/name" or "name" */
    struct str namespace;
    struct str name;
    struct str uid;
    struct list dirty;          /* in the world's `dirty` or `gone_objects` */
    struct list of_kind;        /* in the world's objects of the kind */
    struct world_object *owner; /* its controller, if that is known */
    struct list sibling;        /* among the owner's children */
    struct list children;       /* in order of creation */
    struct loop_timer timer;    /* marks it dirty */
    bool gone;

    /* A pod. */
    struct world_object *node; /* NULL: not bound, or to a node that is not there */
    struct list on_node;       /* among the node's pods */
    struct list waiting;       /* in the world's `waiting`: not scheduled */
    bool bound;
    bool deleting;
    bool finished;
    bool succeeded;
    bool running;
    bool ready;
    bool restarts;   /* its node went down while it ran */
    usec_t next_at;  /* when it will have started, stopped or run its time; 0 = not chosen */
    usec_t taint_at; /* when its node got a taint that evicts; 0 = none */

    /* A node. */
    struct list pods;
    uint32_t pods_n;
    uint32_t score; /* of the scheduler, while it looks */
    bool machine_up;
    bool reachable; /* the kubelet reaches the API server */
    bool rebooting;
    bool schedulable; /* ready, not cordoned, no taint that keeps pods away */
    bool evicts;      /* has a NoExecute taint */
    usec_t up_at;     /* the machine is up then; 0 = it is, or never */
    usec_t unknown_at;
    uint32_t boots;
    uint32_t number; /* for its addresses */
    struct loop_timer heartbeat;
    usec_t heartbeat_status_at;
};

struct world {
    struct loop *loop;
    struct apiserver *server;
    struct world_config config;
    struct rng rng;
    struct arena tmp;                /* while one object is reconciled */
    struct map objects[WORLD_KINDS]; /* by key */
    struct list of_kind[WORLD_KINDS];
    struct map by_uid;
    struct list dirty;
    struct list gone_objects; /* freed at the end of the turn: callers may still hold them */
    struct list waiting;      /* pods that fit on no node yet */
    struct loop_timer turn;
    apiserver_on_commit_fn on_commit;
    void *on_commit_ctx;
    uint64_t requests;
    uint32_t numbers; /* of nodes made */
};

extern const struct world_kind_info world_kinds[WORLD_KINDS];

/* The object, or NULL. Lives until the next write. */
const struct jval *world_object_get(struct world_object *t);
void world_mark_dirty(struct world_object *t);
void world_mark_dirty_at(struct world_object *t, usec_t at);
struct world_object *world_find(struct world *w, enum world_kind kind, struct str key);
struct str world_object_url(struct world_object *t, const char *subresource); /* in tmp */

#define WORLD_OBJECTS_EACH(w, kind, t)                                                             \
    for (struct world_object *t = world_object_first((w), (kind)); t != NULL;                      \
         t = world_object_next(t))
struct world_object *world_object_first(struct world *w, enum world_kind kind);
struct world_object *world_object_next(struct world_object *t);
#define WORLD_OBJECT_OF(link, member) CONTAINER_OF(link, struct world_object, member)

/* Sends a request as `who`; answers its status. Texts that belong to it are printed into tmp. */
int world_send(struct world *w, const char *who, const char *method, struct str path,
               struct str body, struct str *ret_body);
int world_patch(struct world *w, const char *who, struct str path, struct str body);
/* Merges `status` (an object in tmp) into the object's status, unless it is there already. */
void world_object_set_status(struct world_object *t, const char *who, struct tree *status);
void world_object_delete(struct world_object *t, const char *who, int64_t grace); /* -1: its own */
struct str world_time(struct world *w); /* now, as metav1.Time; in tmp */
int64_t jval_number(const struct jval *v, const char *path, int64_t otherwise);
usec_t jval_duration_at(const struct jval *object, const char *annotation, usec_t otherwise);
/* "25%" of `whole` or a plain number. */
int64_t jval_int_or_percent(const struct jval *v, int64_t whole, bool round_up, int64_t otherwise);
/* A condition for a status list; lastTransitionTime stays while `old` has the same status. */
struct tree *world_condition(struct world *w, const struct jval *old_list, const char *type,
                             const char *status, const char *reason, const char *message);

/* The kinds, a file each or two. Only pods and nodes are reconciled while they are deleted. */
void world_node_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void world_node_observe(struct world_object *t, const struct jval *object);
void world_node_gone(struct world_object *t);
void namespace_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void world_pod_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void world_pod_observe(struct world_object *t, const struct jval *old, const struct jval *object);
void scheduler_place_pod(struct world *w, struct world_object *t);
void scheduler_retry_waiting(struct world *w); /* something changed: a waiting pod may fit now */
bool scheduler_tolerates(const struct jval *tolerations, const struct jval *taint,
                         int64_t *ret_seconds);
void deployment_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void replicaset_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void statefulset_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void daemonset_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void job_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void cronjob_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void pdb_reconcile(struct world *w, struct world_object *t, const struct jval *object);
void pdb_pod_changed(struct world *w, struct str namespace);

/* A pod from the template of `owner`'s object; NULL when that is gone. Change it, then create it.
 */
struct tree *workload_new_pod(struct world_object *owner, const struct jval *object,
                              struct str name);
void workload_create_pod(struct world_object *owner, struct tree *pod);
struct str workload_template_hash(struct world *w, const struct jval *template); /* in tmp */
struct tree *workload_owner_reference(struct world_object *owner);

struct workload_count {
    uint32_t alive; /* neither deleting nor finished */
    uint32_t ready;
    uint32_t deleting;
    uint32_t succeeded;
    uint32_t failed;
};
struct workload_count workload_count(struct world_object *owner);
