/*
 * retry: what an answer of the API server means for whoever asked, in one table, and how long to
 * wait before asking again.
 *
 * Pure: time and randomness are passed in. The gate is shared by all that speak to one server, so a
 * 429 for one request quiets all of them; unless the answer is a Status whose details name an
 * object, which then is alone in having to wait.
 */
#pragma once

#include "port/api.h"

enum retry_verdict {
    RETRY_DONE,    /* 2xx */
    RETRY_OBSERVE, /* 409: somebody else was faster; look again, then decide again */
    RETRY_RELIST,  /* 410: what was asked for has expired */
    RETRY_ABSENT,  /* 404 */
    RETRY_REFUSED, /* the request itself is wrong; the same one will fail again, so wait long */
    RETRY_LATER,   /* this request failed; others may succeed */
    RETRY_QUIET,   /* the server is overloaded or out of reach: all requests wait */
};

enum retry_verdict retry_judge(const struct api_reply *reply);
/* How long the answer asks to wait, as far as it is obeyed; 0 = it does not ask. */
usec_t retry_after(const struct api_reply *reply);

/* Waits grow from `base` by doubling up to `max`, each drawn from its upper half, so that clients
 * which failed together do not come back together. */
struct backoff {
    usec_t base;
    usec_t max;
    uint32_t failures; /* in a row */
};

usec_t backoff_next(struct backoff *b, uint64_t random);
void backoff_reset(struct backoff *b);

struct retry_gate {
    usec_t until; /* monotonic; closed before it */
    struct backoff backoff;
    /* Of the answer that closed it last: */
    usec_t since; /* monotonic: when it was closed, by this one or by those before it */
    int status;   /* HTTP status; 0 = there was no answer */
    usec_t asked; /* what the answer asked for, as it is obeyed; 0 = nothing */
};

void retry_gate_init(struct retry_gate *g);
bool retry_gate_open(const struct retry_gate *g, usec_t now);
/* Learns from an answer: RETRY_QUIET closes it, for as long as the server said or by back-off; any
 * answer from a server that serves resets the back-off. */
void retry_gate_note(struct retry_gate *g, enum retry_verdict verdict,
                     const struct api_reply *reply, usec_t now, uint64_t random);
