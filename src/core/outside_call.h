/*
 * outside_call: requests to one server outside the cluster, one at a time, with a time limit and a
 * back-off that grows while that server fails.
 *
 * Whoever speaks to a server holds one of these for it. Level-triggered: ask outside_call_ready
 * before each request; when it is not ready, set a timer for `retry_at`. Each reply is judged once,
 * by outside_call_judge, which also sets the wait.
 */
#pragma once

#include "kube/retry.h"
#include "port/loop.h"
#include "port/outbound.h"

#define OUTSIDE_RETRY_MIN SECONDS(2)
#define OUTSIDE_RETRY_MAX MINUTES(5)

struct outside_call {
    struct loop *loop;          /* borrowed */
    struct outbound *outbound;  /* borrowed */
    struct outbound_call *call; /* NULL: none is in flight */
    struct backoff backoff;
    usec_t retry_at; /* monotonic: nothing is sent before */
    uint64_t sent;
    uint64_t failed; /* no answer, 429 or 5xx */
    outbound_on_reply on_reply;
    void *ctx;
};

void outside_call_init(struct outside_call *c, struct loop *loop, struct outbound *outbound);
void outside_call_done(struct outside_call *c); /* cancels; accepts a zeroed one */

/* Nothing is in flight, and the wait is over. */
bool outside_call_ready(const struct outside_call *c);
/* Only when it is ready. A request without a timeout has OUTBOUND_TIMEOUT. */
void outside_call_send(struct outside_call *c, const struct outbound_request *request,
                       outbound_on_reply on_reply, void *ctx);
/* 0 for 2xx, which ends the back-off. Otherwise the error names what was answered, never the body:
 * -ERR_DENIED for 401 and 403, -ERR_NOTFOUND for 404, -ERR_CONFLICT for 409, -ERR_BUSY for 429,
 * -ERR_INVALID for other answers below 500, -ERR_IO above, and the door's error where there was
 * no answer. After the last three kinds nothing is sent until `retry_at`. */
NODISCARD
int outside_call_judge(struct outside_call *c, const struct outbound_reply *reply, struct err *err);
/* The answer was no good after all: waits as after a failure. */
void outside_call_back_off(struct outside_call *c, usec_t at_least);
