/*
 * requests_internal: what the files of the part share; nobody else includes it.
 *
 *   part.c     its life: doors, observing, turns
 *   claim.c    one request: what is known of it, and doing what phase.h says
 *   letter.c   its writes, one at a time, and what their answers mean
 *   orphan.c   requests that are gone and nodes that carry the mark of such
 *   account.c   what others may see
 */
#pragma once

#include "base/prioqueue.h"
#include "kube/node.h"
#include "kube/reflector.h"
#include "request/phase.h"
#include "request/requests.h"
#include "request/safety_checks.h"

#define REQUESTS_WINDOW 32u      /* writes in flight; more only queue in the API server */
#define REQUESTS_SOFT_WINDOW 16u /* of them, those that only tell people something */
#define CLAIM_SOFT_EVERY SECONDS(10)
#define CLAIM_SOFT_FAR                                                                             \
    SECONDS(60) /* for those far behind in the queue: nobody counts their steps */
#define CLAIM_NEAR 10u
#define CLAIM_STEPS_EVERY SECONDS(2) /* how often a preparation tells its numbers */
#define CLAIM_PAUSE_BASE SECONDS(5)  /* between a check that failed and the next ask */
#define CLAIM_PAUSE_MAX MINUTES(5)
#define CLAIM_HOPE_EVERY SECONDS(1) /* between two looks whether that pause may end early */

enum letter_kind { LETTER_NONE, LETTER_STATUS, LETTER_STATE, LETTER_REMOVE, LETTER_READ };

/* A request as the part keeps it; of one that is gone, until nothing of it is left. */
struct claim {
    struct requests *r;
    struct list link;           /* in `claims` or `orphans` */
    struct list dirty;          /* in `dirty` */
    struct list writer;         /* in `writers` or `soft_writers`: waits for the window */
    struct prioqueue_item wake; /* in `waking` */
    usec_t wake_at;             /* monotonic */
    struct store_item *item;    /* borrowed; NULL: the object is gone */
    struct arena memory;        /* of the texts here */
    struct str name;
    struct str uid;
    struct str space;
    struct str target;
    enum target_type type;
    bool typed;

    struct ask *ask;
    struct ask_spec asked; /* texts: of `memory`, or constant */
    bool releasing;
    struct prepare *prepare;
    struct arena prepare_memory; /* of its options */
    struct undo *undo;
    bool undo_done;
    bool touched; /* a cordon of ours may be on the node, or on its way there */
    bool lift;    /* what the limits said about it last */
    enum phase_check check;
    struct safety *safety; /* also one that has refused, while the claim is hopeful */
    struct list hope;      /* in `hopeful`: pauses, and ends that when it hears that it may */
    usec_t hoped_at;       /* monotonic: when it was last looked at */
    struct buf check_error;
    struct phase_rollback rollback; /* texts: of the two below */
    struct buf rollback_reason;
    struct buf rollback_message;
    usec_t pause; /* monotonic */
    struct backoff pausing;
    bool committed;
    struct buf target_uid; /* of the target that was granted; empty: none yet */
    usec_t timer_start;    /* wall, of the timer that `timer_…` measures */
    usec_t timer_elapsed;  /* when it was first seen here */
    usec_t timer_now;      /* monotonic, of that moment */

    struct api_call *call;
    enum letter_kind kind; /* of `call` */
    enum mr_state state;   /* LETTER_STATE */
    uint32_t grant;        /* LETTER_STATUS */
    uint64_t version;      /* that it is based on */
    struct buf news;       /* to tell when it has arrived: warning, reason, note; a line each */
    bool refresh;          /* read the object before the next write, unless something newer came */
    usec_t retry_at;       /* monotonic: nothing is sent before */
    usec_t read_at;        /* monotonic: the watch has until then */
    usec_t told_at;        /* monotonic: when the status was written last */
    struct backoff backoff;
};

/* A node that carries the mark of a request nobody knows. */
struct stray {
    struct requests *r;
    struct list link;
    struct undo *undo;
    bool done;
    struct str uid;
    struct str node;
    char bytes[];
};

struct requests_gauges {
    struct metric *phases;
    struct metric_series *approvals;
    struct metric *rejections;
    struct metric *ends;
    struct metric_series *expired;
    struct metric_series *forged;
    struct metric_series *adopted;
    struct metric_series *conflicts;
    struct metric_series *errors;
    struct metric_series *waits;
    struct metric_series *preparations;
};

struct requests {
    struct requests_config config;
    struct loop *loop;
    struct store store;
    struct reflector reflector;
    struct preparer *preparer;
    struct list claims;
    struct list orphans;
    struct list dirty;
    struct list writers;
    struct list soft_writers;
    struct list strays;
    struct list hopeful;
    struct map by_uid;   /* uid → struct claim, orphans included */
    struct map rejected; /* client and target → struct rejection */
    struct prioqueue waking;
    struct loop_timer turn;
    uint64_t turns;
    struct loop_timer wake;
    struct arena tmp; /* of the turn */
    struct buf path;
    struct buf body;
    uint32_t in_flight;
    bool acting; /* may_act, as last seen */
    bool listed; /* since acting began or the last list */
    bool absent; /* the CRD is not installed */
    bool knows;  /* told to the arbiter */
    bool prunes; /* the server drops the numbers of grants: its CRD is older than this program */

    bool stray_wanted; /* a node carries a mark nobody knows */
    struct api_call *stray_call;
    struct map stray_live; /* uids that the server has */
    struct buf stray_page;
    usec_t stray_at; /* monotonic: not before */
    struct requests_gauges gauges;
};

/* ── part.c ────────────────────────────────────────────────────────────────────────────────── */
void requests_soon(struct requests *r);
usec_t requests_wall(const struct requests *r);
const struct node *requests_node(const struct requests *r, struct str name);
/* When the same client was last refused the same target; 0 = never. */
usec_t requests_rejected(struct requests *r, const struct mrequest *m);

/* ── claim.c ───────────────────────────────────────────────────────────────────────────────── */
struct claim *claim_new(struct requests *r, struct store_item *item);
void claim_free(struct claim *c);
void claim_mark(struct claim *c);
/* What is in memory of it goes, as in a crash: somebody else may lead. */
void claim_forget(struct claim *c);
void claim_step(struct claim *c);
/* The object has another content than before. */
void claim_on_change(struct claim *c, const struct mrequest *before);
void claim_wake_at(struct claim *c, usec_t at);
bool claim_marked(const struct claim *c);
/* The number of the grant that it has, or would have next; 0: they are not kept. */
uint32_t claim_grant(const struct claim *c);
/* True when nothing is asked for any more; otherwise it is on its way there. */
bool claim_end_ask(struct claim *c);
void claim_undo(struct claim *c, bool lift);
void claim_tidy_undo(struct claim *c);
void claim_end_safety(struct claim *c);
bool claim_by_wake(struct prioqueue_item *a, struct prioqueue_item *b);

/* ── letter.c ──────────────────────────────────────────────────────────────────────────────── */
/* Sends what the plan wants written, if anything and if it may; one at a time. */
void letter_send(struct claim *c, const struct phase_plan *plan);
void letter_cancel(struct claim *c);

/* ── orphan.c ──────────────────────────────────────────────────────────────────────────────── */
void orphan_take(struct claim *c); /* its object is gone */
void orphan_step(struct claim *c); /* may free it */
void stray_look(struct requests *r);
void stray_done(struct requests *r);

/* ── account.c ──────────────────────────────────────────────────────────────────────────────── */
void account_init(struct requests *r);
void account_done(struct requests *r);
/* A change that has arrived on the server, for the numbers. */
void account_note(struct requests *r, const struct mrequest *before, const struct mrequest *now);
void account_count(struct metric_series *s); /* accepts NULL */
/* For the legacy event: how many grants the tightest of the limits allows. */
uint32_t account_limit(const struct requests *r, const struct ask_view *view);
