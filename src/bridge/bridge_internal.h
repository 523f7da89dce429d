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
#define BRIDGE_UNSURE MINUTES(15) /* by then every watch has begun anew */
#define BRIDGE_REFUSED_BASE SECONDS(10)
#define BRIDGE_REFUSED_MAX MINUTES(5)
#define ROUTING_ABSENT_AFTER SECONDS(30) /* between two answers that there are no requests */
#define ROUTING_LOOK_AGAIN MINUTES(5)    /* whether there are, where there were none */
#define ROUTING_UNSURE                                                                             \
    SECONDS(30) /* what a lost answer was about is seen by then, or never was                      \
                 */

#define CODEX_ABSENT_AFTER SECONDS(30) /* between two answers that there are no drain rules */

/* When a patch may be tried again after it failed. */
struct bridge_retry {
    struct backoff backoff;
    usec_t at;        /* monotonic */
    uint64_t version; /* of the object, that the server knows better; a newer one is not held up */
};

/* The pleas of one workload cluster; only with --workload-approval=requests. They are watched
 * once after each connect, and then as long as there is one, or a request that needs one. */
struct routing {
    struct yard *yard;
    struct supply supply; /* while `open` */
    bool open;
    bool told; /* the berths know that it is complete */
    enum { ROUTING_UNKNOWN, ROUTING_SERVED, ROUTING_ABSENT } state; /* of the kind */
    bool missed;               /* noted: the server has answered that there is no such kind */
    usec_t missed_at;          /* monotonic: for the first time; 0 = it has not */
    usec_t look_at;            /* ABSENT */
    bool warned;               /* of the present trouble */
    bool owes;                 /* some plea may be open, whether the link is there or not */
    uint32_t in_flight;        /* writes */
    uint64_t awaited;          /* the version of one that we have made; the watch will bring it */
    usec_t unsure_until;       /* an answer was lost */
    struct bridge_retry retry; /* of pleas whose Machine is gone */
    struct loop_timer timer;
};

/* MachineDrainRules. */
struct codex {
    struct supply supply;
    bool absent;      /* the server does not have the kind: there are none */
    usec_t missed_at; /* monotonic: when it said so for the first time; 0 = it has not */
    bool warned;      /* of the present trouble */
    bool known;       /* as the Machines know it, */
    bool empty;       /* and so is `absent` */
    bool sorted;      /* `rules` are all that there are */
    const struct store_item **rules; /* by namespace and name; in `memory` */
    uint32_t n;
    struct arena memory;
};

struct yard {
    struct bridge *bridge;
    struct list link_dirty;  /* in bridge->stirred: its Nodes or its wants are to be looked at */
    struct list berths;      /* of struct berth */
    struct link *link;       /* NULL until it is wanted for the first time */
    struct routing *routing; /* beside `link`; NULL = requests are not routed */
    struct str name;         /* "namespace/name"; from its own end */
    struct str space;
    struct str cluster;
    usec_t away_since;        /* monotonic: when its link was seen not to be fresh; 0 = it is */
    struct loop_timer review; /* Nodes without a Machine are looked at again, */
    struct backoff backoff;   /* after what was to be done for them failed */
    char uid[64];             /* of the Cluster that `link` belongs to */
    char text[];
};

struct berth {
    struct bridge *bridge;
    struct store_item *item; /* borrowed: whose extra it is */
    struct yard *yard;
    struct list link;            /* in the yard's */
    struct prioqueue_item later; /* in bridge->later */
    usec_t at;                   /* monotonic; of `later` */
    struct buf pair;             /* its key in bridge->pairs; empty = it has no Node */
    struct buf host;             /* its key in bridge->by_host; empty = it has no Metal3 host */
    bool paired;                 /* it is the one in bridge->pairs */
    bool hosted;
    struct crossing *to_machine; /* on their way; NULL = none */
    struct crossing *to_node;
    struct crossing *to_host;
    struct crossing *probe;
    struct crossing *to_plea;
    /* An approval whose answer was lost may be there, until a newer version tells, or a watch has
     * had the time to begin anew. */
    uint64_t approved_on; /* the version it was sent for */
    usec_t approved_till; /* monotonic */
    struct bridge_retry machine_retry;
    struct bridge_retry node_retry;
    struct bridge_retry host_retry;
    struct bridge_retry plea_retry;
    uint32_t plea_skip;       /* names in a row that somebody else has */
    bool routes;              /* its requests, or their pleas, are to be watched */
    usec_t missed_at;         /* monotonic: the first live read that found no Node; 0 = none did */
    bool absent;              /* so did a second one */
    usec_t deletion_quiet_at; /* monotonic; 0 = it is not */
    usec_t maintenance_quiet_at;
    bool keeps_link;
    bool decided; /* `phase` is; otherwise it is another shard's */
    enum rules_phase phase;
    uint32_t said; /* news that are true and have been told; a bit each */
    /* Metal3 with --metal3-require-drained. */
    struct crossing *survey;
    usec_t surveyed_at; /* monotonic; 0 = never */
    bool cordoned;
    bool drained;         /* it was when surveyed_at was; that is not true for long */
    struct buf undrained; /* what the last look found instead, in words */
    struct err trouble;   /* of its last patch */
};

enum crossing_kind {
    CROSSING_MACHINE,
    CROSSING_NODE,
    CROSSING_HOST,
    CROSSING_STRAY,  /* a Node without a Machine */
    CROSSING_PROBE,  /* a live read of a Node */
    CROSSING_SURVEY, /* likewise, and of its pods */
    CROSSING_PLEA,
};

struct crossing {
    struct bridge *bridge;
    struct list link; /* in bridge->crossings */
    enum crossing_kind kind;
    struct berth *berth; /* NULL: its Machine is gone, or it never had one */
    struct yard *yard;   /* of the Node; NULL = it is no Node */
    struct api_call *call;
    struct link_call *link_call;
    struct arena memory;
    struct str name;  /* of the object, as its store has it */
    uint64_t version; /* that it was decided on */
    struct rules_news news[RULES_EVENTS_MAX];
    uint32_t news_n;
    bool approves;
    bool releases;    /* takes the hook away from a Machine that is being deleted */
    usec_t held_from; /* wall; then: since when it was held */
    /* Of a survey: the labels of namespaces, packed, in `memory`. */
    struct map spaces;
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
    struct tally tally;
    struct metrics *metrics; /* may be NULL */
    struct edition edition;
    struct supply machines;
    struct supply clusters;
    struct supply secrets;
    struct supply hosts;
    struct codex codex;
    struct map yards;   /* "namespace/cluster" → struct yard */
    struct map pairs;   /* "namespace/cluster/node" → struct berth */
    struct map by_host; /* "namespace/host" or a host's UID → struct berth */
    uint32_t crowd;     /* berths that name a host and are not there: another one is */
    struct map by_uid;  /* a Machine's UID → struct berth */
    struct list stirred;
    struct list crossings;
    struct prioqueue later;
    struct ratelimit connects;
    struct loop_timer turn;
    struct loop_timer host_review; /* hosts that carry something of ours are looked at again, */
    struct backoff host_backoff;   /* after what was to be done for them failed */
    struct arena tmp;              /* of one turn */
    struct buf path;
    struct buf body;
    struct buf key;
    struct buf query; /* of the Machines' supply */
    uint32_t window;  /* patches of Machines and hosts in flight */
    bool acting;      /* it did in the last turn */
    bool stopping;
    struct bridge_stats stats;
};

/* Asks for a turn, soon. */
void bridge_wake(struct bridge *b);
/* It may decide and send at this instant. */
bool bridge_acts(const struct bridge *b);
bool bridge_logs(const struct bridge *b);

/* ── yards and berths ──────────────────────────────────────────────────────────────────────── */

void berth_on_change(void *ctx, struct store_item *item, const void *before);
void berth_on_gone(void *ctx, struct store_item *item);
void berth_mark(struct berth *at);
/* Looks at it again then; the earliest time counts. */
void berth_later(struct berth *at, usec_t when);
/* Members of its control plane that wait for each other are looked at. */
void berth_stir_members(struct berth *at);
const struct machine *berth_machine(const struct berth *at);
/* NULL = there is none. */
const struct cluster *yard_cluster(const struct yard *y);
/* Whether this shard looks after it. */
bool yard_is_ours(const struct yard *y);
void yard_stir(struct yard *y);
/* Looks at its Nodes again that no Machine claims: now, or after a failure a little later. */
void yard_review(struct yard *y);
void yard_review_later(struct yard *y);
void yard_mark_all(struct yard *y);
void yard_on_cluster(void *ctx, struct store_item *item, const void *before);
void yard_on_cluster_gone(void *ctx, struct store_item *item);
void yard_on_secret(void *ctx, struct store_item *item, const void *before);
void yard_on_secret_gone(void *ctx, struct store_item *item);
/* Opens or closes its link, as its Machines want. */
void yard_settle(struct yard *y);
/* Drops its link at once. */
void yard_cut(struct yard *y);
/* A yard that nobody needs is freed. */
void yard_tidy(struct yard *y);

/* ── the turn ──────────────────────────────────────────────────────────────────────────────── */

void bridge_turn(void *ctx);
/* What is known of a Machine and its Node at this instant; texts that are made live in `out`. */
void berth_facts(struct berth *at, struct arena *out, struct rules_facts *ret);

/* What known bugs make of the facts and of the verdict (base/mutation.h); nothing without one. */
void berth_flaw(struct berth *at, struct rules_facts *facts, struct rules_options *options);
void berth_flaw_verdict(struct berth *at, struct rules_verdict *verdict);
void hosts_flaw(struct berth *at, struct power_facts *facts, struct power_options *options);
void hosts_flaw_verdict(struct bridge *b, const struct power_facts *facts,
                        struct power_verdict *verdict);

/* ── drain rules ───────────────────────────────────────────────────────────────────────────── */

void codex_on_change(void *ctx, struct store_item *item, const void *before);
void codex_on_gone(void *ctx, struct store_item *item);
void codex_on_news(void *ctx);
void codex_on_trouble(void *ctx, const struct err *err);
void codex_start(struct bridge *b, struct str path);
void codex_done(struct bridge *b);
/* False: they cannot be listed, and `*ret_why` says what is missing. */
bool codex_ready(const struct bridge *b, struct str *ret_why);

/* The rulebook of a Machine's Node. */
struct berth_book {
    bool asked;         /* the Machine asks for something; otherwise there is none */
    bool known;         /* so are the rules; */
    struct str trouble; /* otherwise why not, as a part of a sentence */
    struct drain_rules book;
    struct str text; /* of DRAIN_RULES_ANNOTATION; `.p` is NULL without one */
};
void berth_book(const struct berth *at, struct arena *out, struct berth_book *ret);

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

void hosts_init(struct bridge *b);
void hosts_on_change(void *ctx, struct store_item *item, const void *before);
void hosts_on_gone(void *ctx, struct store_item *item);
/* The host that a Machine's provider id names; NULL = none, or it is not known. */
struct store_item *hosts_find(const struct berth *at);
/* The host that it names is looked at in this turn. */
void hosts_mark(struct berth *at);
/* All that carry something of ours are looked at: soon, or after a failure a little later. They
 * are few, and the owner that one names need not name it. */
void hosts_review(struct bridge *b);
void hosts_review_later(struct bridge *b);
/* Adds what the host tells to the Machine's edits. */
void hosts_step(struct berth *at, struct edit *machine);
bool hosts_facts(struct berth *at, struct power_facts *ret);
/* Switches off and on those that are to be looked at. */
void hosts_sweep(struct bridge *b);

/* ── routing ───────────────────────────────────────────────────────────────────────────────── */

void routing_begin(struct yard *y); /* with its link */
void routing_free(struct yard *y);
/* The connection ends. */
void routing_hang_up(struct yard *y);
/* What the rules are to know of it. */
void routing_facts(const struct berth *at, struct rules_facts *ret);
/* Looks at what has come, before the Machines are. */
void routing_look(struct yard *y);
/* Something has happened to that Node, or to its Machine. */
void routing_stir(struct yard *y, struct str node);
/* Asks, takes grants and gives them back; adds approvals to a verdict that has no edit of the
 * Node. */
void routing_step(struct berth *at, const struct rules_facts *facts, struct rules_verdict *verdict);
/* Opens or closes the watch. */
void routing_settle(struct yard *y);
/* The open plea of a Machine; NULL = none is known. Its item's name is the MaintenanceRequest's. */
const struct store_item *routing_plea(const struct berth *at);
/* The link is needed, whatever Machines there are. */
bool routing_owes(const struct yard *y);

/* ── crossings ─────────────────────────────────────────────────────────────────────────────── */

void crossing_to_machine(struct berth *at, const struct rules_verdict *verdict,
                         const struct edit *edit);
void crossing_to_node(struct berth *at, const struct rules_verdict *verdict);
void crossing_to_host(struct bridge *b, struct berth *at, struct store_item *host,
                      const struct edit *edit);
void crossing_to_stray(struct yard *y, struct store_item *node, const struct edit *edit);
void crossing_probe(struct berth *at);
void crossing_survey(struct berth *at);
/* What they are made with. */
struct crossing *crossing_new(struct bridge *b, enum crossing_kind kind, struct berth *at,
                              struct str name);
/* Whether what was refused is not tried yet, on this version of the object. */
bool crossing_waits(const struct bridge_retry *retry, struct loop *loop, uint64_t version);
void crossing_retry_after(struct bridge_retry *retry, struct loop *loop,
                          enum retry_verdict verdict);
void crossing_count(const struct crossing *x, enum retry_verdict verdict);
/* The object as the server has it now; NULL = the answer cannot be read. */
const struct jval *crossing_read(const struct api_reply *reply, struct arena *tmp);
/* What was sent on an older version is decided again on a newer one. */
void crossing_conflict(const struct crossing *x, struct store *store);
void crossing_learn(struct store *store, const struct api_reply *reply);
void crossing_path_node(struct bridge *b, struct str node); /* into b->path */
/* Forgets one: its answer does not come any more. */
void crossing_free(struct crossing *x);
/* All that go to the Nodes of a yard. */
void crossing_drop_yard(struct yard *y);

/* ── telling ───────────────────────────────────────────────────────────────────────────────── */

void bridge_tell(struct berth *at, enum rules_event event, struct str note);
void bridge_tell_cluster(struct yard *y, enum rules_event event, struct str note);
