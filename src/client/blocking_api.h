/*
 * blocking_api: sends one request to an API server and waits for the answer.
 *
 * All other code never blocks; this is for programs that have nothing else to do: a
 * command line, an actor's main thread. A call turns the loop it is given until it is over, so
 * nothing runs behind the caller's back, and between calls nothing runs at all. What may pass
 * (no answer, 429, 5xx) is asked again for as long as `retry_time` says.
 */
#pragma once

#include "base/arena.h"
#include "port/api.h"
#include "port/loop.h"

#define BLOCKING_API_RETRY_TIME SECONDS(20) /* a restarting API server is back by then */

struct blocking_api {
    struct loop *loop; /* borrowed */
    struct api *api;   /* borrowed */
    /* Waits for the first thing to happen, at most until `until`, and handles what is due. */
    void (*turn)(void *ctx, usec_t until);
    /* The caller wants to leave: -ERR_CANCELLED is the answer then. May be NULL. */
    bool (*leaving)(void *ctx);
    void *ctx;
    usec_t retry_time; /* 0 = BLOCKING_API_RETRY_TIME */
    /* Until the server has answered once, a failure that waiting does not mend (nobody listens,
     * no such host, an unknown authority, no credentials) is told at once: somebody sits there. */
    bool fail_fast;
    bool answered; /* the server has, once at least */
};

struct blocking_api_reply {
    int status;
    struct str body; /* in the arena that was given */
};

/* Any status that is worth no repetition is an answer, 404, 409 and 403 among them; none at all is
 * -ERR_IO. Writes must bear to be sent twice: by a resourceVersion or a name. */
NODISCARD
int blocking_api_send(struct blocking_api *t, const struct api_request *request, struct arena *out,
                      struct blocking_api_reply *ret, struct err *err);

/* Takes one line of a watch; true ends the watch. */
typedef bool (*blocking_api_on_line)(void *ctx, struct str line);

/* Follows a watch until a line ends it, or the stream does (both 0), or it is `until` (monotonic,
 * -ERR_TIMEOUT). A stream that ends early is no failure: whoever follows reads again and comes
 * back. */
NODISCARD
int blocking_api_watch(struct blocking_api *t, struct str path, usec_t until,
                       blocking_api_on_line on_line, void *ctx, struct err *err);

/* Nothing happens for that long, or until it is `until` or the caller leaves. */
NODISCARD
int blocking_api_sleep(struct blocking_api *t, usec_t wait, usec_t until, struct err *err);
