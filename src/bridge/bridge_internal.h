/*
 * bridge_internal: what the bridge keeps, for the files that make it.
 *
 * A *berth* is a Machine's place here, a *yard* a Cluster's: its Machines and its link. A
 * *crossing* is a request on its way to either side. Berths hang off the items of the Machines'
 * store, yards off a map by "namespace/name"; both are rebuilt from the objects at a restart.
 */
#pragma once

#include "base/list.h"
#include "base/prioqueue.h"
#include "bridge/bridge.h"
#include "bridge/capi_version.h"
#include "kube/informer.h"
#include "bridge/bridge_metrics.h"
#include "drain/drain_rules.h"
#include "kube/lease.h"
#include "kube/recorder.h"

#define BRIDGE_ABSENT_AFTER SECONDS(30) /* between the two reads that confirm a missing Node */
#define BRIDGE_FAILED_BASE MSECONDS(500)
#define BRIDGE_FAILED_MAX SECONDS(30)
#define BRIDGE_APPROVAL_UNSURE MINUTES(15) /* by then every watch has begun anew */
#define BRIDGE_REFUSED_BASE SECONDS(10)
#define BRIDGE_REFUSED_MAX MINUTES(5)
#define ROUTING_ABSENT_AFTER SECONDS(30) /* between two answers that there are no requests */
#define ROUTING_RECHECK MINUTES(5)       /* whether there are, where there were none */
#define ROUTING_UNSURE                                                                             \
    SECONDS(30) /* what a lost answer was about is seen by then, or never was                      \
                 */

#define DRAIN_RULE_ABSENT SECONDS(30) /* between two answers that there are no drain rules */

/* When a patch may be tried again after it failed. */
struct bridge_retry {
    struct backoff backoff;
    usec_t at;        /* monotonic */
    uint64_t version; /* of the object, that the server knows better; a newer one is not held up */
};

/* What a request writes or reads. A Machine has at most one of each kind in flight. */
enum in_flight_kind {
    IN_FLIGHT_MACHINE = WRITE_MACHINE,
    IN_FLIGHT_NODE = WRITE_NODE,
    IN_FLIGHT_HOST = WRITE_HOST,
    IN_FLIGHT_REQUEST = WRITE_REQUEST,
    IN_FLIGHT_ABSENCE_CHECK, /* a live read of a Node that the watch does not show */
    IN_FLIGHT_DRAINED_CHECK, /* a live read of a Node and its pods */
    IN_FLIGHT_KINDS,
};

/* The pleas of one workload cluster; only with --workload-approval=requests. They are watched
 * once after each connect, and then as long as there is one, or a request that needs one. */
struct approval_routing {
    struct cluster_state *cluster;
    struct informer informer; /* while `open` */
    bool open;
    bool machines_marked; /* the berths know that it is complete */
    enum { ROUTING_UNKNOWN, ROUTING_SERVED, ROUTING_ABSENT } state; /* of the kind */
    bool kind_missing;         /* noted: the server has answered that there is no such kind */
    usec_t missed_at;          /* monotonic: for the first time; 0 = it has not */
    usec_t recheck_at;         /* ABSENT */
    bool warned;               /* of the present trouble */
    bool maybe_open;           /* some plea may be open, whether the link is there or not */
    uint32_t in_flight;        /* writes */
    uint64_t awaited;          /* the version of one that we have made; the watch will bring it */
    usec_t unsure_until;       /* an answer was lost */
    struct bridge_retry retry; /* of pleas whose Machine is gone */
    struct loop_timer timer;
};

/* MachineDrainRules. */
struct drain_rule_watch {
    struct informer informer;
    bool absent;        /* the server does not have the kind: there are none */
    usec_t missed_at;   /* monotonic: when it said so for the first time; 0 = it has not */
    bool warned;        /* of the present trouble */
    bool known;         /* as the Machines know it, */
    bool marked_absent; /* and so is `absent` */
    bool sorted;        /* `rules` are all that there are */
    const struct store_item **rules; /* by namespace and name; in `memory` */
    uint32_t n;
    struct arena memory;
};

struct cluster_state {
    struct bridge *bridge;
    struct list dirty;    /* in bridge->stirred: its Nodes or its wants are to be looked at */
    struct list machines; /* of struct machine_state */
    struct link *link;    /* NULL until it is wanted for the first time */
    struct approval_routing *routing; /* beside `link`; NULL = requests are not routed */
    struct str name;                  /* "namespace/name"; from its own end */
    struct str namespace;
    struct str cluster;
    usec_t unreachable_since;  /* monotonic: when its link was seen not to be fresh; 0 = it is */
    struct loop_timer recheck; /* Nodes without a Machine are looked at again, */
    struct backoff backoff;    /* after what was to be done for them failed */
    char text[];
};

struct machine_state {
    struct bridge *bridge;
    struct store_item *item; /* borrowed: whose extra it is */
    struct cluster_state *cluster;
    struct list link;           /* in the yard's */
    struct prioqueue_item wake; /* in bridge->later */
    usec_t at;                  /* monotonic; of `later` */
    struct buf node_key;        /* its key in bridge->by_node; empty = it has no Node */
    struct buf host;            /* its key in bridge->by_host; empty = it has no Metal3 host */
    struct in_flight *in_flight[IN_FLIGHT_KINDS]; /* NULL = none of that kind */
    struct bridge_retry retry[WRITE_OBJECTS];     /* of writes, by enum in_flight_kind */
    /* An approval whose answer was lost may be there, until a newer version tells, or a watch has
     * had the time to begin anew. */
    uint64_t approval_version;    /* the version it was sent for */
    usec_t approval_unsure_until; /* monotonic */
    uint32_t request_name_skip;   /* names in a row that somebody else has */
    bool needs_routing;           /* its requests, or their pleas, are to be watched */
    usec_t missed_at; /* monotonic: the first live read that found no Node; 0 = none did */
    bool absent;      /* so did a second one */
    usec_t deletion_leftover_at; /* monotonic; 0 = it is not */
    usec_t maintenance_leftover_at;
    bool keeps_link;
    bool decided; /* `phase` is; otherwise it is another shard's */
    enum rules_phase phase;
    uint32_t events_sent; /* news that are true and have been told; a bit each */
    /* Metal3 with --metal3-require-drained. */
    usec_t drained_check_at; /* monotonic; 0 = never */
    bool cordoned;
    bool drained;               /* it was when drained_check_at was; that is not true for long */
    struct buf not_drained_why; /* what the last look found instead, in words */
    struct err trouble;         /* of its last patch */
};

struct in_flight {
    struct bridge *bridge;
    struct list link; /* in bridge->in_flight */
    enum in_flight_kind kind;
    struct machine_state *machine; /* NULL: its Machine is gone, or it never had one */
    struct cluster_state *cluster; /* of the Node; NULL = it is no Node */
    struct api_call *call;
    struct link_call *link_call;
    struct arena memory;
    struct str name;  /* of the object, as its store has it */
    uint64_t version; /* that it was decided on */
    struct rules_event_record events[RULES_EVENTS_MAX];
    uint32_t event_n;
    bool approves;
    bool releases;    /* takes the hook away from a Machine that is being deleted */
    usec_t held_from; /* wall; then: since when it was held */
    /* Of a survey: the labels of namespaces, packed, in `memory`. */
    struct map namespaces;
    uint32_t pages; /* that were asked for */
    bool paged;     /* all have come */
};

struct bridge {
    struct bridge_config config;
    struct arena memory; /* of the configuration's texts */
    struct loop *loop;
    struct log *log; /* may be NULL */
    struct client client;
    struct recorder recorder;
    struct lease lease;
    struct bridge_metrics series;
    struct metrics *metrics; /* may be NULL */
    struct capi_version capi;
    struct informer machines;
    struct informer clusters;
    struct informer secrets;
    struct informer hosts;
    struct drain_rule_watch drain_rules;
    struct map by_cluster;    /* "namespace/cluster" → struct cluster_state */
    struct map by_node;       /* "namespace/cluster/node" → struct machine_state */
    struct map by_host;       /* "namespace/host" or a host's UID → struct machine_state */
    uint32_t host_duplicates; /* berths that name a host and are not there: another one is */
    struct map by_uid;        /* a Machine's UID → struct machine_state */
    struct list dirty_clusters;
    struct list in_flight; /* of struct in_flight */
    struct prioqueue wake;
    struct ratelimit connects;
    struct loop_timer turn;
    struct loop_timer host_recheck; /* hosts that carry something of ours are looked at again, */
    struct backoff host_backoff;    /* after what was to be done for them failed */
    struct arena tmp;               /* of one turn */
    struct buf path;
    struct buf body;
    struct buf key;
    struct buf query;           /* of the Machines' supply */
    uint32_t patches_in_flight; /* patches of Machines and hosts in flight */
    bool acting;                /* it did in the last turn */
    bool stopping;
    struct bridge_stats stats;
};

/* Asks for a turn, soon. */
void bridge_wake(struct bridge *b);
/* It may decide and send at this instant. */
bool bridge_may_act(const struct bridge *b);
/* For a kind of the management cluster; the bridge fills in the client and who is told. */
void bridge_init_informer(struct bridge *b, struct informer *informer,
                          struct informer_config config);
#define METAL3_PREFIX STR("/apis/" METAL3_API_VERSION)
struct str bridge_capi_prefix(struct bridge *b); /* "/apis/cluster.x-k8s.io/v1beta2"; in b->tmp */
/* "PREFIX/namespaces/NAMESPACE/PLURAL", in b->path; with an empty namespace "PREFIX/PLURAL". */
struct str bridge_path(struct bridge *b, struct str prefix, struct str namespace,
                       const char *plural);

/* ── Machines (machine_state.c) ────────────────────────────────────────────────────────────── */

void machine_on_change(void *ctx, struct store_item *item, const void *before);
void machine_on_gone(void *ctx, struct store_item *item);
void machine_mark(struct machine_state *ms);
/* Looks at it again then; the earliest time counts. */
void machine_wake_at(struct machine_state *ms, usec_t when);
/* Members of its control plane that wait for each other are looked at. */
void machine_mark_control_plane(struct machine_state *ms);
const struct machine *machine_object(const struct machine_state *ms);
/* It is the Machine that its Node belongs to. Of two that name one Node only the first is. */
bool machine_owns_node(const struct machine_state *ms);
/* The Machine that a Node of the cluster belongs to; NULL = none. */
struct machine_state *machine_of_node(const struct cluster_state *cs, struct str node);
/* The Machine whose request on a Node has that name ("UID" or "UID/number"); NULL = it is gone. */
struct machine_state *machine_of_request(const struct bridge *b, struct str request);

/* ── Clusters (cluster_state.c) ────────────────────────────────────────────────────────────── */

/* The state of that Cluster; made if there is none yet. */
struct cluster_state *cluster_get(struct bridge *b, struct str namespace, struct str cluster);
/* NULL = there is none. */
const struct cluster *cluster_object(const struct cluster_state *cs);
/* Whether this shard looks after it. */
bool cluster_is_ours(const struct cluster_state *cs);
void cluster_mark(struct cluster_state *cs);
/* Looks at its Nodes again that no Machine claims: now, or after a failure a little later. */
void cluster_recheck_nodes(struct cluster_state *cs);
void cluster_recheck_nodes_later(struct cluster_state *cs);
void cluster_mark_machines(struct cluster_state *cs);
void cluster_on_change(void *ctx, struct store_item *item, const void *before);
void cluster_on_gone(void *ctx, struct store_item *item);
void cluster_on_secret(void *ctx, struct store_item *item, const void *before);
void cluster_on_secret_gone(void *ctx, struct store_item *item);
/* Opens or closes its link, as its Machines want. */
void cluster_update_link(struct cluster_state *cs);
/* Drops its link at once. */
void cluster_disconnect(struct cluster_state *cs);
/* A yard that nobody needs is freed. */
void cluster_free_if_idle(struct cluster_state *cs);

/* ── the turn ──────────────────────────────────────────────────────────────────────────────── */

void bridge_turn(void *ctx);
/* What is known of a Machine and its Node at this instant; texts that are made live in `out`. */
void machine_facts(struct machine_state *ms, struct arena *out, struct rules_facts *ret);

/* What known bugs make of the facts and of the verdict (base/mutation.h); nothing without one. */
void mutate_facts(struct machine_state *ms, struct rules_facts *facts,
                  struct rules_options *options);
void mutate_verdict(struct machine_state *ms, struct rules_verdict *verdict);
void mutate_power_facts(struct machine_state *ms, struct power_facts *facts,
                        struct power_options *options);
void mutate_power_verdict(struct bridge *b, const struct power_facts *facts,
                          struct power_verdict *verdict);

/* ── drain rules ───────────────────────────────────────────────────────────────────────────── */

void drain_rule_watch_init(struct bridge *b);
void drain_rule_watch_start(struct bridge *b, struct str path);
void drain_rule_watch_done(struct bridge *b);
/* False: they cannot be listed, and `*ret_why` says what is missing. */
bool drain_rule_watch_ready(const struct bridge *b, struct str *ret_why);

/* The rulebook of a Machine's Node. */
struct machine_drain_rules {
    bool asked;         /* the Machine asks for something; otherwise there is none */
    bool known;         /* so are the rules; */
    struct str trouble; /* otherwise why not, as a part of a sentence */
    struct drain_rules rules;
    struct str text; /* of KEY_DRAIN_RULES; `.p` is NULL without one */
};
void machine_drain_rules(const struct machine_state *ms, struct arena *out,
                         struct machine_drain_rules *ret);

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

void metal3_init(struct bridge *b);
/* All that carry something of ours are looked at: soon, or after a failure a little later. They
 * are few, and the owner that one names need not name it. */
void metal3_recheck(struct bridge *b);
void metal3_recheck_later(struct bridge *b);
/* Adds what the host tells to the Machine's edits. */
void metal3_step_machine(struct machine_state *ms, struct meta_patch *machine);
bool metal3_facts(struct machine_state *ms, struct power_facts *ret);
/* Switches off and on those that are to be looked at. */
void metal3_step_hosts(struct bridge *b);

/* ── routing ───────────────────────────────────────────────────────────────────────────────── */

void routing_new(struct cluster_state *cs); /* with its link */
void routing_free(struct cluster_state *cs);
/* The connection ends. */
void routing_disconnect(struct cluster_state *cs);
/* What the rules are to know of it. */
void routing_facts(const struct machine_state *ms, struct rules_facts *ret);
/* Looks at what has come, before the Machines are. */
void routing_check(struct cluster_state *cs);
/* Something has happened to that Node, or to its Machine. */
void routing_mark_node(struct cluster_state *cs, struct str node);
/* Asks, takes grants and gives them back; adds approvals to a verdict that has no edit of the
 * Node. */
void routing_step(struct machine_state *ms, const struct rules_facts *facts,
                  struct rules_verdict *verdict);
/* A write of a MaintenanceRequest was answered; the rest is in_flight's. */
void routing_on_write(const struct in_flight *f, const struct api_reply *reply,
                      enum retry_verdict verdict);
/* Opens or closes the watch. */
void routing_update_watch(struct cluster_state *cs);
/* The open plea of a Machine; NULL = none is known. Its item's name is the MaintenanceRequest's. */
const struct store_item *routing_request(const struct machine_state *ms);
/* The link is needed, whatever Machines there are. */
bool routing_needs_link(const struct cluster_state *cs);

/* ── requests in flight (in_flight.c) ──────────────────────────────────────────────────────── */

/* False: a write of that kind is in flight, or the last one failed and this version of the object
 * is not tried again yet. In both cases the Machine is looked at again when that has changed. */
bool in_flight_may_write(struct machine_state *ms, enum in_flight_kind kind, uint64_t version);
bool in_flight_exists(const struct cluster_state *cs, enum in_flight_kind kind, struct str name);

void in_flight_patch_machine(struct machine_state *ms, const struct rules_verdict *verdict,
                             const struct meta_patch *patch);
void in_flight_patch_host(struct bridge *b, struct machine_state *ms, const struct store_item *host,
                          const struct meta_patch *patch);
void in_flight_patch_node(struct machine_state *ms, const struct store_item *node,
                          const struct rules_verdict *verdict);
/* A Node that has no Machine. */
void in_flight_patch_orphan(struct cluster_state *cs, struct store_item *node,
                            const struct meta_patch *patch);

/* Begins one: `ms` NULL = no Machine waits for it; `cs` NULL = it goes to the management cluster;
 * `name` is the object's, as its store has it. */
struct in_flight *in_flight_new(struct bridge *b, enum in_flight_kind kind,
                                struct machine_state *ms, struct cluster_state *cs,
                                struct str name);
/* The resourceVersion that its patch carries. */
uint64_t in_flight_patch_version(const struct in_flight *f);
/* Sends bridge->body to bridge->path: API_POST or API_PATCH. */
void in_flight_write(struct in_flight *f, enum api_verb verb);
/* Reads bridge->path. The callback clears `link_call` and frees `f`, or sends again. */
void in_flight_get(struct in_flight *f, struct str accept, api_on_reply on_reply);
/* Begins one that reads the Machine's Node. */
struct in_flight *in_flight_get_node(struct machine_state *ms, enum in_flight_kind kind,
                                     struct str accept, api_on_reply on_reply);
/* The object of a reply; NULL = it cannot be read. */
const struct jval *in_flight_parse(const struct api_reply *reply, struct arena *tmp);
/* Cancels it: its callback is not called any more. */
void in_flight_free(struct in_flight *f);
/* All that go to that workload cluster. */
void in_flight_drop_cluster(struct cluster_state *cs);

/* ── live reads ────────────────────────────────────────────────────────────────────────────── */

/* Reads the Node now, or looks at the Machine again when the second read is due. */
void absence_check_start(struct machine_state *ms);
void drained_check_start(struct machine_state *ms);

/* ── telling ───────────────────────────────────────────────────────────────────────────────── */

void bridge_event_for_machine(struct machine_state *ms, enum rules_event event, struct str note);
void bridge_event_for_cluster(struct cluster_state *cs, enum rules_event event, struct str note);
