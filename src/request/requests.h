/*
 * requests: MaintenanceRequests from their first sight to their end.
 *
 * An actor creates a request for a target and waits; when the arbiter holds its ask, the node is
 * prepared (cordon, drain, volumes), everything is checked once more on live reads, and the state
 * becomes Approved. The actor works, reports InProgress and Completed, and the way back is walked:
 * undo, status, reservations, lock. Everything is level-triggered: what a request needs next
 * follows from the object, the reservations and the time, so a crash between two steps loses
 * nothing.
 */
#pragma once

#include "base/log.h"
#include "ledger/arbiter.h"

struct requests;
struct drains; /* drain/drain.h */

struct core_request_news;

struct requests_config {
    struct client *client;      /* borrowed */
    struct recorder *recorder;  /* borrowed */
    struct log *log;            /* may be NULL */
    struct metrics *metrics;    /* may be NULL */
    struct arbiter *arbiter;    /* borrowed */
    struct drains *drains;      /* borrowed */
    const struct store *nodes;  /* borrowed: kube/node.h projections */
    bool (*may_act)(void *ctx); /* as the arbiter's */
    usec_t (*wall)(void *ctx);
    /* A request was rejected, or its actor has not finished in time; NULL: nobody is told. */
    void (*on_trouble)(void *ctx, const struct core_request_news *news);
    void *ctx;
    usec_t finished_ttl;   /* --finished-ttl; 0 = finished requests are kept for ever */
    usec_t skew_tolerance; /* --clock-skew-tolerance */
    bool trust_approval;   /* --trust-external-approval */
};

struct requests *requests_new(const struct requests_config *config);
void requests_free(struct requests *r); /* like a crash; accepts NULL */
void requests_wake(struct requests *r); /* may_act answers something else now */
/* A node is new, has changed or goes. */
void requests_on_node(struct requests *r, const struct store_item *item, const void *before,
                      bool gone);
/* The arbiter has had a turn: a safety check that refused a request may pass now. */
void requests_on_arbiter_turn(struct requests *r);
/* Whether a node carries the mark of that request: its cordon is still to be lifted. */
bool requests_node_has_mark(const struct requests *r, struct str uid);
bool requests_synced(const struct requests *r); /* known, or their CRD is not installed */

/* A request as people see it. Texts live until the loop runs. */
struct requests_view {
    struct str name;
    struct str uid;
    struct str client;
    enum target_type type;
    struct str namespace;
    struct str target;
    struct str state; /* spec.state */
    struct str phase;
    struct str step;
    struct str reason;
    struct str message; /* what it waits for, with numbers, and what would unblock it */
    uint32_t position;
    int32_t priority;
    bool waits;             /* Pending */
    bool last;              /* then: it is not in the queue now, or is behind all others */
    bool ended;             /* Completed or Rejected */
    usec_t since;           /* wall: since when it is in this phase */
    usec_t deadline;        /* wall; USEC_NEVER = none */
    struct str at_deadline; /* what happens then */
    usec_t next;            /* wall: when what it waits for could change by itself; USEC_NEVER */
    const struct str *limits;
    uint32_t limit_n;
    struct str limit;   /* the one that refuses; empty = none does */
    struct str blocker; /* uid of the request or node it waits for, as in the arbiter's ask_view */
};
/* Counts the turns: while the number is the same, so are the views. */
uint64_t requests_turns(const struct requests *r);
uint32_t requests_count(const struct requests *r);
/* In queue order, then the rest by name. False stops the walk. */
void requests_each(const struct requests *r, struct arena *out,
                   bool (*fn)(void *ctx, const struct requests_view *view), void *ctx);

void requests_check(const struct requests *r);
