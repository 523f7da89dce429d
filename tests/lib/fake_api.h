/*
 * fake_api: a door to a cluster that a test plays by hand: it keeps what was asked and answers when
 * and as the test says.
 *
 * For what no server would do, or only with luck: a malformed line, an answer that never comes, two
 * answers in the wrong order. Whole stories are better told with the sandbox.
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "port/api.h"

struct fake_call {
    struct list link;
    struct arena memory;
    enum api_verb verb;
    struct str path;
    struct str content_type;
    struct str accept;
    struct str body;
    usec_t timeout;
    api_on_reply on_reply;
    void *ctx;
};

struct fake_watch {
    struct list link;
    struct arena memory;
    struct str path;
    struct str accept;
    usec_t silence_max;
    api_on_event on_event;
    void *ctx;
    bool open;
};

struct fake_api {
    struct api api; /* first */
    struct list calls;
    struct list watches;
    uint32_t call_count;  /* open now */
    uint32_t watch_count; /* open now */
    uint32_t sent;        /* ever */
    uint32_t watched;     /* ever */
};

void fake_api_init(struct fake_api *f);
void fake_api_done(struct fake_api *f);

/* The oldest; NULL when there is none. */
struct fake_call *fake_call_first(struct fake_api *f);
struct fake_watch *fake_watch_first(struct fake_api *f);

void fake_call_reply(struct fake_api *f, struct fake_call *call, int status, struct str body);
void fake_call_reply_with(struct fake_api *f, struct fake_call *call,
                          const struct api_reply *reply);
void fake_call_reply_after(struct fake_api *f, struct fake_call *call, int status,
                           usec_t retry_after);
void fake_call_fail(struct fake_api *f, struct fake_call *call, enum err_code code);

/* Opens the stream if it is not open yet. */
void fake_watch_line(struct fake_watch *w, struct str line);
void fake_watch_open(struct fake_watch *w);
/* The server ends it: in order after it was opened, refused with a status before. */
void fake_watch_end(struct fake_api *f, struct fake_watch *w, int status, struct str body);
void fake_watch_fail(struct fake_api *f, struct fake_watch *w, enum err_code code);
