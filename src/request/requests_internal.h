/*
 * requests_internal: what the files that serve MaintenanceRequests share.
 *
 *   requests.c          the watch of all requests, the turn, and the life of the module
 *   tracked_request.c   one request: what is known of it, and doing what phase.h decides
 *   request_write.c     the writes of one request, one at a time, and what their answers mean
 *   request_cleanup.c   requests that were deleted, and nodes with the mark of an unknown request
 *   requests_metrics.c  Prometheus metrics
 *   requests_view.c     requests as people see them
 *
 * phase.h decides, prepare.h and safety_checks.h act on nodes; none of them includes this header.
 */
#pragma once

#include "base/prioqueue.h"
#include "kube/node.h"
#include "kube/informer.h"
#include "kube/writer.h"
#include "request/phase.h"
#include "request/requests.h"
#include "request/safety_checks.h"

#define REQUESTS_WRITES_MAX 32u      /* writes in flight; more only queue in the API server */
#define REQUESTS_INFO_WRITES_MAX 16u /* of them, those that only inform people */
#define REQUESTS_CHECKS_MAX 32u      /* last checks under way: each reads from the server */
#define STATUS_EVERY SECONDS(10)
#define STATUS_FAR_EVERY SECONDS(60) /* for requests behind the first STATUS_NEAR of the queue */
#define STATUS_NEAR 10u
#define STATUS_STEPS_EVERY SECONDS(2) /* how often the numbers of a preparation are written */
#define CHECK_PAUSE_BASE SECONDS(5)   /* between a check that failed and the next ask */
#define CHECK_PAUSE_MAX MINUTES(5)
#define PAUSE_CHECK_EVERY SECONDS(1) /* whether that pause may end early */

enum request_write {
    REQUEST_WRITE_NONE,
    REQUEST_WRITE_STATUS,
    REQUEST_WRITE_STATE,
    REQUEST_WRITE_DELETE,
    REQUEST_WRITE_REREAD
};

/* A request as long as its object exists, and after that until its cordon and its reservations are
 * gone. */
struct tracked_request {
    struct requests *r;
    struct list link;           /* in `tracked` or `deleted` */
    struct list dirty;          /* in `dirty` */
    struct list write_link;     /* in `write_queue` or `info_write_queue` */
    struct prioqueue_item wake; /* in `wake_queue` */
    usec_t wake_at;             /* monotonic */
    struct store_item *item;    /* borrowed; NULL: the object is gone */
    struct arena memory;        /* of the texts below */
    struct str name;
    struct str uid;
    struct str namespace;
    struct str target; /* empty: the request does not name one yet */
    enum target_type type;

    struct ask *ask;
    struct ask_spec asked; /* texts: of `memory`, or constant */
    bool releasing;        /* the ask belongs to a grant that is over, and is given back */
    struct prepare *prepare;
    struct prepare_undo *undo;
    bool maybe_cordoned; /* a cordon of ours may be on the node, or on its way there */
    bool uncordon;       /* what the limits said last: whether the cordon is lifted at the end */
    enum phase_check check;
    struct list check_link;       /* in `check_queue` */
    struct safety_checks *safety; /* under way; or refused, while the request is in `paused` */
    struct list pause_link;       /* in `paused`: ends the pause early when the checks would pass */
    usec_t pause_checked_at;      /* monotonic: when that was last checked */
    struct buf check_error;
    struct phase_rollback rollback;
    struct arena rollback_memory; /* of its texts */
    usec_t pause_until;           /* monotonic */
    struct backoff pause_backoff;
    bool approved_by_us;   /* the state Approved on the server is our own write */
    struct buf target_uid; /* of the target that was granted; empty: none yet */
    usec_t timer_start;    /* wall, of the timer that `timer_…` measures */
    usec_t timer_elapsed;  /* how long the timer had run when it was first seen here */
    usec_t timer_now;      /* monotonic: when it was first seen here */

    struct writer writer;
    enum request_write kind;   /* of its call */
    enum mrequest_state state; /* REQUEST_WRITE_STATE */
    uint32_t grant;            /* REQUEST_WRITE_STATUS */
    struct buf events;     /* Events to send when the write has arrived: warning, reason, note */
    usec_t status_sent_at; /* monotonic: when the status was written last */
};

/* A node that carries the mark of a request that does not exist, while the mark is removed. */
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
    struct list check_queue; /* requests whose last check waits for another's to end */
    uint32_t checks_running;
    struct list unknown_marks;
    struct list paused;
    struct map by_uid;   /* uid → struct tracked_request, deleted ones included */
    struct map rejected; /* client and target → struct rejection */
    struct prioqueue wake_queue;
    struct loop_timer turn;
    uint64_t turns;
    struct loop_timer wake;
    struct arena tmp; /* of the turn */
    struct buf path;
    struct buf body;
    uint32_t in_flight;   /* calls, the list of live uids included */
    bool acting;          /* may_act, as last seen */
    bool listed;          /* the last list has ended: all requests are known */
    bool crd_absent;      /* the CRD is not installed */
    bool reported_synced; /* to the arbiter */
    bool prunes_grant;    /* the server's CRD is older than this program: grants have no numbers */

    bool unknown_mark_seen; /* a node carries a mark nobody knows */
    struct api_call *live_uids_call;
    struct map live_uids; /* uids that the server has */
    struct buf live_uids_page;
    usec_t live_uids_at; /* monotonic: not before */
    struct requests_metrics metrics;
};

/* ── requests.c ────────────────────────────────────────────────────────────────────────────── */
void requests_schedule(struct requests *r);
usec_t requests_wall(const struct requests *r);
const struct node *requests_node(const struct requests *r, struct str name);
/* When the same client was last refused the same target; 0 = never. */
usec_t requests_last_rejection(struct requests *r, const struct maintenance_request *m);

/* ── tracked_request.c ─────────────────────────────────────────────────────────────────────── */
struct tracked_request *tracked_new(struct requests *r, struct store_item *item);
void tracked_free(struct tracked_request *c);
void tracked_mark_dirty(struct tracked_request *c);
/* Forgets what is only in memory, as in a crash: somebody else may lead. */
void tracked_reset(struct tracked_request *c);
void tracked_step(struct tracked_request *c);
/* The object has another content than before. */
void tracked_on_change(struct tracked_request *c, const struct maintenance_request *before);
void tracked_wake_at(struct tracked_request *c, usec_t at);
bool tracked_node_marked(const struct tracked_request *c);
/* The number of the grant that the request has, or would have next; 0: the server keeps none. */
uint32_t tracked_grant_number(const struct tracked_request *c);
/* Gives back what is held; true when that is done, otherwise it is under way. */
bool tracked_end_ask(struct tracked_request *c);
void tracked_undo(struct tracked_request *c, bool uncordon);
void tracked_finish_undo(struct tracked_request *c);
/* Ends the preparation, the checks, the write on its way and the waits. */
void tracked_stop_work(struct tracked_request *c);
bool tracked_wakes_before(struct prioqueue_item *a, struct prioqueue_item *b);

/* ── request_write.c ───────────────────────────────────────────────────────────────────────── */
extern const struct writer_rules request_write_rules;
/* Sends what the plan wants written, if anything and if it may; one at a time. */
void request_write_send(struct tracked_request *c, const struct phase_plan *plan);
void request_write_cancel(struct tracked_request *c);

/* ── request_cleanup.c ─────────────────────────────────────────────────────────────────────── */
void request_cleanup_begin(struct tracked_request *c); /* the object is gone */
void request_cleanup_step(struct tracked_request *c);  /* may free `c` */
void unknown_marks_check(struct requests *r);
void unknown_marks_done(struct requests *r);

/* ── requests_metrics.c ────────────────────────────────────────────────────────────────────── */
void requests_metrics_init(struct requests *r);
void requests_metrics_done(struct requests *r);
/* Counts a change that has arrived on the server. */
void requests_metrics_note(struct requests *r, const struct maintenance_request *before,
                           const struct maintenance_request *now);
