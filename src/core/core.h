/*
 * core: what the parts of one controller process share, and how a part plugs in.
 *
 * There is one client of the API server, one store of the Nodes, one leader Lease, one recorder of
 * Events, one set of drains and, once the CRDs are installed, one arbiter of MaintenanceLimits. A
 * part (profiles, requests, ...) begins with a struct core_part, joins with core_join before
 * core_start, and is told what concerns it through its core_part_ops. No part knows another one.
 *
 * Parts are freed before the core. Everything is borrowed from whoever calls core_new.
 */
#pragma once

#include "base/log.h"
#include "base/mutation.h"
#include "core/core_metrics.h"
#include "drain/drain.h"
#include "kube/informer.h"
#include "kube/lease.h"
#include "kube/node.h"
#include "kube/recorder.h"
#include "ledger/arbiter.h"

struct core_part;

/* What the leader keeps in the Lease, for lease_note. */
enum { CORE_NOTE_GRANTS, CORE_NOTE_ALERTS };

/* A MaintenanceRequest that somebody should know of; texts live until the call ends. */
struct core_request_news {
    bool expired; /* its actor has not finished in time; otherwise it was rejected */
    struct str request;
    struct str node; /* empty: its target is a workload */
    struct str reason;
};

/* What a part wants to be told; any of them may be NULL. All are called from the loop. */
struct core_part_ops {
    /* A Node is new, has changed (`before` is its projection until now) or goes. */
    void (*on_node)(struct core_part *p, struct store_item *item, const void *before, bool gone);
    /* A list or watch event has been taken into the store. */
    void (*on_nodes)(struct core_part *p);
    /* A whole list of the Nodes has been taken. */
    void (*on_synced)(struct core_part *p);
    void (*on_leading)(struct core_part *p, bool leading);
    /* What core_may_act answers may have changed. */
    void (*on_may_act)(struct core_part *p);
    /* core->arbiter has come, or it is known that there is none. */
    void (*on_arbiter)(struct core_part *p);
    /* The limits may allow more than before. */
    void (*on_capacity)(struct core_part *p);
    /* The arbiter has had a turn: all that it tells may be different. */
    void (*on_arbiter_turn)(struct core_part *p);
    /* The annotation of the Lease holds what lease_note was given, up to this serial. */
    void (*on_lease_noted)(struct core_part *p, uint64_t serial);
    /* A drain of any part is blocked, or is not any more. No drain may be started or stopped. */
    void (*on_drain_blocked)(struct core_part *p);
    void (*on_request)(struct core_part *p, const struct core_request_news *news);
    /* The part has done something for that request that is still to be undone. */
    bool (*has_mark)(struct core_part *p, struct str uid);
    /* The Node is being disturbed by the part, as the Node object itself says: it counts under the
     * limits until this ends. */
    bool (*disturbs)(const struct core_part *p, const struct store_item *item);
    /* False: the part can do nothing yet, and `*ret_why` says why. The process is not ready then;
     * its other parts work. */
    bool (*is_ready)(const struct core_part *p, struct str *ret_why);
    /* A new leader has to list the Nodes again before it acts: the part counts them exactly. */
    bool (*counts_nodes)(const struct core_part *p);
    /* Writes are in flight that an orderly end waits for. */
    bool (*is_busy)(const struct core_part *p);
};

struct core_part {
    const struct core_part_ops *ops;
    struct list link; /* in the core's `parts` */
    /* The annotations of Nodes that it reads in the store; borrowed, set before core_join or by
     * core_keep_annotations. */
    const struct str *annotations;
    uint32_t annotation_n;
};

struct core_config {
    struct loop *loop;
    struct api *api;
    struct log *log;            /* may be NULL */
    struct metrics *metrics;    /* may be NULL */
    struct str identity;        /* "<hostname>_<uuid>": who holds the Lease; copied, as all texts */
    struct str lease_namespace; /* empty = "default" */
    struct str lease_name;      /* empty = CORE_LEASE_NAME */
    struct str server;          /* the API server's host and port, for metrics; may be empty */
    bool elect;                 /* false: it leads from the start, and there is no Lease */
    bool use_limits;            /* look for the CRDs, and start the arbiter when they are there */
    struct arbiter_config limits; /* its switches and its namespace alone are read */
    MUTATIONS_FIELD;
    /* Leadership has begun or ended; may be NULL. After an end that was not asked for, the core
     * stands for election again; a command may prefer to exit. */
    void (*on_leading)(void *ctx, bool leading);
    /* Called once, when core_stop has finished; may be NULL. */
    void (*on_stopped)(void *ctx);
    void *ctx;
};

struct core {
    struct node_keep keep; /* first: the Node store hands it to node_kind as its context */
    struct core_config config;
    struct loop *loop;
    struct log *log;
    struct client client;
    struct informer nodes;
    struct recorder recorder;
    struct lease lease; /* with config.elect */
    struct drains *drains;
    struct arbiter *arbiter; /* NULL: there is none, or not yet */
    bool limits_known;       /* whether there is an arbiter has been found out */
    struct str paused;       /* why nothing new is granted, as people said it; empty = nothing is */
    struct str denied;       /* the right without which there is none, as a sentence; empty: none */
    uint64_t bad_input;      /* answers about Nodes that could not be read */
    bool stopping;

    /* The rest is the core's own. */
    struct list parts;
    struct intern labels;
    struct arena memory;      /* of the configuration's texts */
    struct arena keep_memory; /* of the annotations that are kept */
    struct core_metrics metrics;
    struct loop_timer stop;
    struct reflector crd; /* of requests, while they are not installed */
    struct loop_timer crd_retry;
    struct api_call *crd_call;
    bool kind_installed[3]; /* of the arbiter's kinds; see core_arbiter.c */
    uint32_t right;         /* that is asked about */
    struct buf denied_text; /* of `denied` */
    bool crd_watched;
    struct buf paused_text; /* of `paused` */
    struct reflector pause; /* of the Lease, without election */
    struct str pause_path;  /* of `pause` */
    struct str pause_query;
    bool pause_known;  /* the Lease was read */
    bool pause_seen;   /* … in the present list */
    bool pause_denied; /* it may not be, and that was told */
    bool leading;      /* as last told */
    bool nodes_known;  /* the Nodes were listed once, at least */
    bool nodes_fresh;  /* the Nodes were listed since leading began, or that does not matter */
    bool stopped;
};

struct core *core_new(const struct core_config *config);
void core_join(struct core *c, struct core_part *part, const struct core_part_ops *ops);
void core_leave(struct core_part *part);
void core_start(struct core *c);
/* The orderly end: stops acting, lets writes in flight finish for a moment, gives the Lease back,
 * then calls on_stopped. core_free follows, not from within on_stopped. */
void core_stop(struct core *c);
/* Whether a part other than `except` (may be NULL) disturbs the Node. */
bool core_is_disturbed(const struct core *c, const struct core_part *except,
                       const struct store_item *item);
/* Tells every part of it. */
void core_tell_request(struct core *c, const struct core_request_news *news);
/* A write of a part has been answered: an orderly end may have waited for it. */
void core_written(struct core *c);
/* Like a crash: nothing more is sent. Accepts NULL. */
void core_free(struct core *c);

/* True at this instant, by the clock: it leads, or there is no election. */
bool core_holds_lease(const struct core *c);
/* It leads and has listed the Nodes since then. Whether a part is ready is for itself to ask. */
bool core_may_decide(const struct core *c);
/* The same, and the watch of the Nodes does not fail. */
bool core_may_act(const struct core *c);
/* Whether something new may be granted: no one has paused everything. Every part asks this before
 * it begins to disturb anything; what was begun under a grant, drains above all, stands still
 * meanwhile, and what was handed over to others goes on. on_capacity tells of a change. */
bool core_may_grant(const struct core *c);
/* Why not, as a sentence; empty when it may. Lives until the loop runs. */
struct str core_grants_stopped(const struct core *c);
/* It leads, as far as people are told. */
bool core_leads(const struct core *c);
/* Who leads, as far as it knows: the Lease's holder, or itself where election is off. */
struct str core_leader(const struct core *c);
/* Ready for probes: every part is, the Nodes are known, and their watch does not fail. `*ret_why`
 * says what is missing, or what there is to say although it is ready: a right without which
 * requests and limits are not served keeps no profile from its work. It lives until the loop runs.
 */
bool core_ready(const struct core *c, struct str *ret_why);

/* Why no requests are sent now: who said so, since when and until when. Empty = they are sent. */
struct str core_pause_text(const struct core *c, struct arena *out);

/* The part reads these annotations of Nodes from now on. With `relist` the Nodes that are known
 * already are read again before anything is decided. */
void core_keep_annotations(struct core *c, struct core_part *part, const struct str *keys,
                           uint32_t n, bool relist);
/* Nothing is decided before the Nodes have been listed again. */
void core_relist(struct core *c);

/* Asserts what must hold between turns. */
void core_check(const struct core *c);
