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
#include "kube/informer.h"
#include "request/phase.h"
#include "request/requests.h"
#include "request/safety_checks.h"

#define REQUESTS_WRITES_MAX 32u      /* writes in flight; more only queue in the API server */
#define REQUESTS_INFO_WRITES_MAX 16u /* of them, those that only tell people something */
#define STATUS_EVERY SECONDS(10)
#define STATUS_FAR_EVERY                                                                           \
    SECONDS(60) /* for those far behind in the queue: nobody counts their steps */
#define STATUS_NEAR 10u
#define STATUS_STEPS_EVERY SECONDS(2) /* how often a preparation tells its numbers */
#define CHECK_PAUSE_BASE SECONDS(5)   /* between a check that failed and the next ask */
#define CHECK_PAUSE_MAX MINUTES(5)
#define PAUSE_CHECK_EVERY SECONDS(1) /* between two looks whether that pause may end early */

enum request_write {
    REQUEST_WRITE_NONE,
    REQUEST_WRITE_STATUS,
    REQUEST_WRITE_STATE,
    REQUEST_WRITE_DELETE,
    REQUEST_WRITE_REREAD
};

/* A request as the part keeps it; of one that is gone, until nothing of it is left. */
struct tracked_request {
    struct requests *r;
    struct list link;           /* in `claims` or `orphans` */
    struct list dirty;          /* in `dirty` */
    struct list write_link;     /* in `writers` or `info_write_queue`: waits for the window */
    struct prioqueue_item wake; /* in `waking` */
    usec_t wake_at;             /* monotonic */
    struct store_item *item;    /* borrowed; NULL: the object is gone */
    struct arena memory;        /* of the texts here */
    struct str name;
    struct str uid;
    struct str namespace;
    struct str target; /* empty: the request does not name one yet */
    enum target_type type;

    struct ask *ask;
    struct ask_spec asked; /* texts: of `memory`, or constant */
    bool releasing;
    struct prepare *prepare;
    struct prepare_undo *undo;
    bool maybe_cordoned; /* a cordon of ours may be on the node, or on its way there */
    bool uncordon;       /* what the limits said about it last */
    enum phase_check check;
    struct safety_checks *safety; /* also one that has refused, while the claim is hopeful */
    struct list pause_link;  /* in `hopeful`: pauses, and ends that when it hears that it may */
    usec_t pause_checked_at; /* monotonic: when it was last looked at */
    struct buf check_error;
    struct phase_rollback rollback;
    struct arena rollback_memory; /* of its texts */
    usec_t pause_until;           /* monotonic */
    struct backoff pause_backoff;
    bool approved_by_us;
    struct buf target_uid; /* of the target that was granted; empty: none yet */
    usec_t timer_start;    /* wall, of the timer that `timer_…` measures */
    usec_t timer_elapsed;  /* when it was first seen here */
    usec_t timer_now;      /* monotonic, of that moment */

    struct api_call *call;
    enum request_write kind;   /* of `call` */
    enum mrequest_state state; /* REQUEST_WRITE_STATE */
    uint32_t grant;            /* REQUEST_WRITE_STATUS */
    uint64_t version;          /* that it is based on */
    struct buf events;         /* to tell when it has arrived: warning, reason, note; a line each */
    bool reread;           /* read the object before the next write, unless something newer came */
    usec_t retry_at;       /* monotonic: nothing is sent before */
    usec_t reread_at;      /* monotonic: the watch has until then */
    usec_t status_sent_at; /* monotonic: when the status was written last */
    struct backoff backoff;
};

/* A node that carries the mark of a request nobody knows. */
struct unknown_mark {
    struct list link;
    struct prepare_undo *undo;
    struct str uid;
    struct str node;
    char bytes[];
};

struct requests_metrics {
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
    struct informer objects;
    struct preparer *preparer;
    struct list tracked;
    struct list deleted;
    struct list dirty;
    struct list write_queue;
    struct list info_write_queue;
    struct list unknown_marks;
    struct list paused;
    struct map by_uid;   /* uid → struct tracked_request, orphans included */
    struct map rejected; /* client and target → struct rejection */
    struct prioqueue wake_queue;
    struct loop_timer turn;
    uint64_t turns;
    struct loop_timer wake;
    struct arena tmp; /* of the turn */
    struct buf path;
    struct buf body;
    uint32_t in_flight;
    bool acting;       /* may_act, as last seen */
    bool listed;       /* since acting began or the last list */
    bool crd_absent;   /* the CRD is not installed */
    bool synced_told;  /* told to the arbiter */
    bool prunes_grant; /* the server drops the numbers of grants: its CRD is older than this program
                        */

    bool unknown_mark_seen; /* a node carries a mark nobody knows */
    struct api_call *live_uids_call;
    struct map live_uids; /* uids that the server has */
    struct buf live_uids_page;
    usec_t live_uids_at; /* monotonic: not before */
    struct requests_metrics metrics;
};

/* ── part.c ────────────────────────────────────────────────────────────────────────────────── */
void requests_schedule(struct requests *r);
usec_t requests_wall(const struct requests *r);
const struct node *requests_node(const struct requests *r, struct str name);
/* When the same client was last refused the same target; 0 = never. */
usec_t requests_last_rejection(struct requests *r, const struct maintenance_request *m);

/* ── claim.c ───────────────────────────────────────────────────────────────────────────────── */
struct tracked_request *tracked_new(struct requests *r, struct store_item *item);
void tracked_free(struct tracked_request *c);
void tracked_mark_dirty(struct tracked_request *c);
/* What is in memory of it goes, as in a crash: somebody else may lead. */
void tracked_reset(struct tracked_request *c);
void tracked_step(struct tracked_request *c);
/* The object has another content than before. */
void tracked_on_change(struct tracked_request *c, const struct maintenance_request *before);
void tracked_wake_at(struct tracked_request *c, usec_t at);
bool tracked_node_marked(const struct tracked_request *c);
/* The number of the grant that it has, or would have next; 0: they are not kept. */
uint32_t tracked_grant_number(const struct tracked_request *c);
/* True when nothing is asked for any more; otherwise it is on its way there. */
bool tracked_end_ask(struct tracked_request *c);
void tracked_undo(struct tracked_request *c, bool uncordon);
void tracked_finish_undo(struct tracked_request *c);
/* Ends the preparation, the checks, the write on its way and the waits. */
void tracked_stop_work(struct tracked_request *c);
bool tracked_wakes_before(struct prioqueue_item *a, struct prioqueue_item *b);

/* ── letter.c ──────────────────────────────────────────────────────────────────────────────── */
/* Sends what the plan wants written, if anything and if it may; one at a time. */
void request_write_send(struct tracked_request *c, const struct phase_plan *plan);
void request_write_cancel(struct tracked_request *c);

/* ── orphan.c ──────────────────────────────────────────────────────────────────────────────── */
void request_cleanup_begin(struct tracked_request *c); /* its object is gone */
void request_cleanup_step(struct tracked_request *c);  /* may free it */
void unknown_marks_check(struct requests *r);
void unknown_marks_done(struct requests *r);

/* ── account.c ──────────────────────────────────────────────────────────────────────────────── */
void requests_metrics_init(struct requests *r);
void requests_metrics_done(struct requests *r);
/* A change that has arrived on the server, for the numbers. */
void requests_metrics_note(struct requests *r, const struct maintenance_request *before,
                           const struct maintenance_request *now);
