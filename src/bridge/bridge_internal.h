/*
 * bridge_internal: what the files of the bridge share.
 *
 *   bridge.c            start and end, leader election, informers, what others may see
 *   bridge_turn.c       the turn: facts of each changed Machine → rules → patches
 *   machine_state.c     what is kept for each Machine, and the indexes by Node, host and UID
 *   cluster_state.c     what is kept for each Cluster, and when its link opens and closes
 *   in_flight.c         all writes: sending, conflicts, refusals, back-off
 *   absence_check.c     live reads that confirm that a Node is gone
 *   drained_check.c     live reads that confirm that a Node is cordoned and drained
 *   drain_rule_watch.c  MachineDrainRules, and those that apply to a Machine
 *   metal3.c            BareMetalHosts: whose they are, switching them off and on
 *   approval_routing.c  MaintenanceRequests in workload clusters (--workload-approval=requests)
 *   bridge_events.c     Events at Machines and Clusters
 *   mutations.c         known bugs, for tests
 *
 * The decisions are pure and stand alone: rules*.c for a Machine and its Node, metal3_power.c for a
 * host, approval_route.c for a MaintenanceRequest. link*.c and workload_token.c keep the connection
 * to one workload cluster. machine.c, cluster.c, workload_node.c, workload_request.c, metal3_host.c
 * and drain_rule.c say what is read of each kind.
 *
 * The way of a deletion: the informer of Machines calls machine_on_change and marks the Machine;
 * bridge_turn takes it, machine_facts collects what is known, rules_decide says what the Machine
 * and its Node should carry, in_flight_patch_node and in_flight_patch_machine send the difference.
 * Everything here is rebuilt from the objects after a restart.
 */
#pragma once

#include "base/list.h"
#include "base/prioqueue.h"
#include "bridge/bridge.h"
#include "bridge/capi_version.h"
#include "kube/informer.h"
#include "bridge/bridge_metrics.h"
#include "drain/drain_rules.h"
#include "kube/client_metrics.h"
#include "kube/lease.h"
#include "kube/recorder.h"
#include "kube/writer.h"

#define BRIDGE_ABSENT_AFTER SECONDS(30)  /* between the two reads that confirm a missing Node */
#define BRIDGE_FAILED_BASE MSECONDS(500) /* back-off of a write that failed */
#define BRIDGE_FAILED_MAX SECONDS(30)
#define BRIDGE_REFUSED_BASE SECONDS(10) /* back-off of a write that the server refuses */
#define BRIDGE_REFUSED_MAX MINUTES(5)
#define BRIDGE_APPROVAL_UNSURE MINUTES(15) /* by then every watch has begun anew */
#define KIND_ABSENT_AFTER SECONDS(30)      /* between two 404s for a kind */
#define ROUTING_RECHECK MINUTES(5)         /* looks for the kind again after that */
#define ROUTING_UNSURE SECONDS(30) /* by then the watch shows a write whose reply was lost */

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

/* The bridge's MaintenanceRequests in one workload cluster; only with --workload-approval=requests.
 * They are listed once after each connect. The watch stays open as long as one of them is open, or
 * a Machine needs one. */
struct approval_routing {
    struct cluster_state *cluster;
    struct informer informer; /* while `open` */
    bool open;
    bool machines_marked; /* the Machines were marked when the list was complete */
    enum { ROUTING_UNKNOWN, ROUTING_SERVED, ROUTING_ABSENT } state; /* of the kind */
    bool kind_missing;    /* the server has answered 404, and the turn has not looked at it yet */
    usec_t missed_at;     /* monotonic: the first 404; 0 = none */
    usec_t recheck_at;    /* ROUTING_ABSENT */
    bool warned;          /* the present error was logged */
    bool maybe_open;      /* a MaintenanceRequest may be open, also while there is no connection */
    uint32_t in_flight;   /* writes */
    uint64_t awaited;     /* the newest version that was created; the watch has to bring it */
    usec_t unsure_until;  /* the reply to a write was lost; 0 = none was */
    struct writer writer; /* of MaintenanceRequests whose Machine is gone */
    struct loop_timer timer;
};

/* MachineDrainRules. */
struct drain_rule_watch {
    struct informer informer;
    bool absent;        /* the server does not have the kind: there are none */
    usec_t missed_at;   /* monotonic: the first 404; 0 = none */
    bool warned;        /* the present error was logged */
    bool known;         /* whether the rules were known when the Machines were last marked */
    bool marked_absent; /* `absent` when the Machines were last marked */
    bool sorted;        /* `rules` is up to date */
    const struct store_item **rules; /* by namespace and name; in `memory` */
    uint32_t n;
    struct arena memory;
};

struct cluster_state {
    struct bridge *bridge;
    struct list dirty;    /* in bridge->dirty_clusters; the next turn looks at Nodes and link */
    struct list machines; /* of struct machine_state */
    struct link *link;    /* NULL until it is wanted for the first time */
    struct approval_routing *routing; /* beside `link`; NULL = requests are not routed */
    struct str name;                  /* "namespace/name", as the next two in `text` */
    struct str namespace;
    struct str cluster;
    usec_t unreachable_since;  /* monotonic: since when the link is not fresh; 0 = it is */
    struct loop_timer recheck; /* tries again to clean Nodes that have no Machine */
    struct backoff backoff;    /* of `recheck` */
    char text[];
};

struct machine_state {
    struct bridge *bridge;
    struct store_item *item; /* borrowed: the Machine in its store; its `extra` is this struct */
    struct cluster_state *cluster;
    struct list link;           /* in cluster->machines */
    struct prioqueue_item wake; /* in bridge->wake: the Machine is looked at again */
    usec_t at;                  /* then; monotonic */
    struct buf node_key;        /* its key in bridge->by_node; empty = it has no Node */
    struct buf host;            /* its key in bridge->by_host; empty = it has no Metal3 host */
    struct in_flight *in_flight[IN_FLIGHT_KINDS]; /* NULL = none of that kind */
    struct writer writers[WRITE_OBJECTS];         /* by enum in_flight_kind */
    /* The reply to an approval was lost: the Machine may be approved until a newer version shows
     * whether it is, or until the watch has begun anew. */
    uint64_t approval_version;    /* the version that the approval was decided on */
    usec_t approval_unsure_until; /* monotonic */
    uint32_t request_name_skip;   /* names of MaintenanceRequests in a row that were taken */
    bool needs_routing;           /* the watch of MaintenanceRequests has to stay open for it */
    usec_t missed_at; /* monotonic: the first live read that found no Node; 0 = none did */
    bool absent;      /* a second live read found none, either */
    usec_t deletion_leftover_at; /* monotonic: since when a used approval is left over; 0 = none */
    usec_t maintenance_leftover_at;
    bool keeps_link; /* its Node is still to be cleaned, although the Machine is not enabled */
    bool decided;    /* `phase` is known; false for Machines of another shard */
    enum rules_phase phase;
    uint32_t events_sent; /* a bit for each enum rules_event that is true and was sent */
    /* Metal3 with --metal3-require-drained. */
    usec_t drained_check_at; /* monotonic; 0 = never */
    bool cordoned;
    bool drained;               /* as of drained_check_at; counts for a short time only */
    struct buf not_drained_why; /* what the last drained check found, for people */
    struct err trouble;         /* of the last write */
};

/* A request to an API server that is not answered yet. */
struct in_flight {
    struct bridge *bridge;
    struct list link; /* in bridge->in_flight */
    enum in_flight_kind kind;
    struct machine_state *machine; /* NULL: the Machine is gone, or there never was one */
    struct cluster_state *cluster; /* whose workload cluster it goes to; NULL = management */
    struct api_call *call;         /* to the management cluster */
    struct link_call *link_call;   /* to a workload cluster */
    struct arena memory;
    struct str name;  /* of the object, as its store has it */
    uint64_t version; /* of the object that the write was decided on; 0 = it creates one */
    struct rules_event_record events[RULES_EVENTS_MAX]; /* sent if the write succeeds */
    uint32_t event_n;
    bool approves;    /* a maintenance */
    bool releases;    /* takes the hook away from a Machine that is being deleted */
    usec_t held_from; /* wall, with `releases`: since when the hook held the deletion */
    /* IN_FLIGHT_DRAINED_CHECK: the labels of namespaces, packed, in `memory`. */
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
    struct client_metrics client_series;
    struct arena pause_text; /* of bridge_ready */
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
    uint32_t host_duplicates; /* Machines whose host is another Machine's in `by_host` */
    struct map by_uid;        /* a Machine's UID → struct machine_state */
    struct map denials;       /* what the server does not let us read, as told already */
    struct list dirty_clusters;
    struct list in_flight;     /* of struct in_flight */
    struct prioqueue wake;     /* Machines by the time at which they are looked at again */
    struct ratelimit connects; /* of all links */
    struct loop_timer turn;
    struct loop_timer host_recheck; /* looks again at hosts that carry annotations of ours */
    struct backoff host_backoff;    /* of `host_recheck`, after a failure */
    struct arena tmp;               /* of one turn */
    struct buf path;
    struct buf body;
    struct buf key;
    struct buf query;           /* of the informer of Machines */
    uint32_t patches_in_flight; /* of Machines and hosts; at most BRIDGE_IN_FLIGHT_MAX */
    bool acting;                /* it acted in the last turn */
    bool stopping;
    struct bridge_stats stats;
};

/* Asks for a turn, soon. */
void bridge_wake(struct bridge *b);
/* The server has answered 404 for a kind. One may come from a server that has just started; true
 * for the second one, KIND_ABSENT_AFTER after the first, which `missed_at` keeps (0: there was
 * none). */
bool kind_is_absent(usec_t *missed_at, usec_t now);
/* It may decide and send at this instant. */
bool bridge_may_act(const struct bridge *b);
/* For a kind of the management cluster. Client, on_update, on_error and ctx are filled in here. */
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
void machine_mark(struct machine_state *ms); /* the next turn decides it again */
/* The Machine is decided again at that time; the earliest time counts. */
void machine_wake_at(struct machine_state *ms, usec_t when);
/* Other members of its control plane that wait for an approval decide again. */
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
/* Looks again at Nodes that carry labels of ours: now, or after a failure a little later. */
void cluster_recheck_nodes(struct cluster_state *cs);
void cluster_recheck_nodes_later(struct cluster_state *cs);
void cluster_mark_machines(struct cluster_state *cs);
void cluster_on_change(void *ctx, struct store_item *item, const void *before);
void cluster_on_gone(void *ctx, struct store_item *item);
void cluster_on_secret(void *ctx, struct store_item *item, const void *before);
void cluster_on_secret_gone(void *ctx, struct store_item *item);
/* Opens its link if one of its Machines needs it; otherwise closes it. */
void cluster_update_link(struct cluster_state *cs);
/* Drops its link at once. */
void cluster_disconnect(struct cluster_state *cs);
/* Frees it if it has no Machines and its link is idle. */
void cluster_free_if_idle(struct cluster_state *cs);

/* ── the turn (bridge_turn.c) ──────────────────────────────────────────────────────────────── */

void bridge_turn(void *ctx);
/* What is known of a Machine and its Node now; new texts live in `out`. */
void machine_facts(struct machine_state *ms, struct arena *out, struct rules_facts *ret);

/* The known bugs of base/mutation.h change the facts before and the verdict after the rules are
 * asked. Builds without mutations have no such functions. */
#ifdef MUTATIONS
void mutate_facts(struct machine_state *ms, struct rules_facts *facts,
                  struct rules_options *options);
void mutate_verdict(struct machine_state *ms, struct rules_verdict *verdict);
void mutate_power_facts(struct machine_state *ms, struct power_facts *facts,
                        struct power_options *options);
void mutate_power_verdict(struct bridge *b, const struct power_facts *facts,
                          struct power_verdict *verdict);
#else
#define mutate_facts(ms, facts, options) ((void)0)
#define mutate_verdict(ms, verdict) ((void)0)
#define mutate_power_facts(ms, facts, options) ((void)(ms))
#define mutate_power_verdict(b, facts, verdict) ((void)0)
#endif

/* ── MachineDrainRules (drain_rule_watch.c) ────────────────────────────────────────────────── */

void drain_rule_watch_init(struct bridge *b);
void drain_rule_watch_start(struct bridge *b, struct str path);
void drain_rule_watch_done(struct bridge *b);
/* False: they cannot be listed, and `*ret_why` says what is missing. */
bool drain_rule_watch_ready(const struct bridge *b, struct str *ret_why);

/* The drain rules that apply to a Machine's Node. */
struct machine_drain_rules {
    bool asked;         /* the Machine asks its Node for something; otherwise the rest is empty */
    bool known;         /* the MachineDrainRules are listed; */
    struct str trouble; /* otherwise why not, as a part of a sentence */
    struct drain_rules rules;
    struct str text; /* the value of KEY_DRAIN_RULES; `.p` is NULL if they are not known */
};
void machine_drain_rules(const struct machine_state *ms, struct arena *out,
                         struct machine_drain_rules *ret);

/* ── BareMetalHosts (metal3.c) ─────────────────────────────────────────────────────────────── */

void metal3_init(struct bridge *b);
/* Looks again at all hosts that carry annotations of ours: soon, or after a failure a little later.
 * They are few. A host may name an owner that names another host, so the owner alone would not find
 * it. */
void metal3_recheck(struct bridge *b);
void metal3_recheck_later(struct bridge *b);
/* Adds the power of its host to the patch of a Machine, and marks the host. */
void metal3_step_machine(struct machine_state *ms, struct meta_patch *machine);
/* False: no host concerns the Machine. */
bool metal3_facts(struct machine_state *ms, struct power_facts *ret);
/* Decides the hosts that are marked: switches them off or on. */
void metal3_step_hosts(struct bridge *b);

/* ── MaintenanceRequests (approval_routing.c) ──────────────────────────────────────────────── */

/* Made and freed with the link of the Cluster. */
void routing_new(struct cluster_state *cs);
void routing_free(struct cluster_state *cs);
/* The connection ends. */
void routing_disconnect(struct cluster_state *cs);
/* Adds what the rules have to know of MaintenanceRequests. */
void routing_facts(const struct machine_state *ms, struct rules_facts *ret);
/* Takes what the watch has brought; before the Machines of the turn are decided. */
void routing_check(struct cluster_state *cs);
/* The Node or its Machine has changed: its open MaintenanceRequests are looked at again. */
void routing_mark_node(struct cluster_state *cs, struct str node);
/* Creates, starts and completes MaintenanceRequests of a Machine. Adds approvals to the verdict, if
 * that does not patch the Node otherwise. */
void routing_step(struct machine_state *ms, const struct rules_facts *facts,
                  struct rules_verdict *verdict);
/* A write of a MaintenanceRequest was answered; the rest is in_flight's. */
void routing_on_write(const struct in_flight *f, const struct api_reply *reply,
                      enum retry_verdict verdict, const struct jval *object);
/* Opens or closes the watch. */
void routing_update_watch(struct cluster_state *cs);
/* The open MaintenanceRequest of a Machine; NULL = none is known. */
const struct store_item *routing_request(const struct machine_state *ms);
/* A MaintenanceRequest may be open, so the link is needed even if no Machine needs it. */
bool routing_needs_link(const struct cluster_state *cs);

/* ── requests in flight (in_flight.c) ──────────────────────────────────────────────────────── */

void in_flight_init_writer(struct writer *w, struct bridge *b, enum in_flight_kind kind);
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
/* Cancels it: its callback is not called any more. */
void in_flight_free(struct in_flight *f);
/* All that go to that workload cluster. */
void in_flight_drop_cluster(struct cluster_state *cs);

/* ── live reads ────────────────────────────────────────────────────────────────────────────── */

/* Reads the Node now, or looks at the Machine again when the second read is due. */
void absence_check_start(struct machine_state *ms);
void drained_check_start(struct machine_state *ms);

/* ── Events (bridge_events.c) ──────────────────────────────────────────────────────────────── */

void bridge_event_for_machine(struct machine_state *ms, enum rules_event event, struct str note);
void bridge_event_for_cluster(struct cluster_state *cs, enum rules_event event, struct str note);
