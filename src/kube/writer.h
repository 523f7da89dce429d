/*
 * writer: the requests by which one object on the server is changed, one at a time, and what their
 * answers mean for the next one.
 *
 * Whoever keeps an object holds its writer. The rules are the same for all of them:
 *   - done: the object of the answer enters the store, and waiting ends;
 *   - conflict (409): somebody else was faster. Nothing is sent for the version that the write was
 *     decided on, until the watch brings a newer one or the wait is over; then the object is read.
 *     So it is if the object is gone (404), which may come back;
 *   - refused (403, 422): the same request would fail again, so the wait is long;
 *   - anything else: the write may have been done all the same, so the object is read after a wait;
 *   - if the answer has a Retry-After, the wait is at least that long.
 * How long the waits are is up to the keeper (struct writer_rules), and so is what is sent next: a
 * writer repeats nothing by itself.
 */
#pragma once

#include "format/json_writer.h"
#include "kube/client.h"
#include "kube/store.h"

/* Waits grow from `base` to `max`; 0 = there is no wait. */
struct writer_wait {
    usec_t base;
    usec_t max;
};

struct writer_rules {
    struct writer_wait conflict; /* RETRY_OBSERVE */
    struct writer_wait absent;   /* RETRY_ABSENT */
    struct writer_wait refused;  /* RETRY_REFUSED */
    struct writer_wait failed;   /* every other failure */
    bool urgent;                 /* somebody waits for it; see client->urgent */
};

struct writer {
    struct client *client;            /* borrowed */
    const struct writer_rules *rules; /* borrowed */
    struct api_call *call;            /* NULL: nothing is in flight */
    enum api_verb verb;               /* of `call`, or of the last one */
    bool must_read;                   /* what is known may be old: read it before the next write */
    bool outdated;                    /* conflict or 404: `retry_at` concerns `version` only */
    uint64_t version;                 /* that the last request was decided on; 0 = of none */
    usec_t retry_at;                  /* monotonic: nothing is sent before */
    struct backoff backoff;
};

/* What an answer brought. */
struct writer_reply {
    struct arena memory;
    const struct jval *object; /* as the server has it now, with RETRY_DONE; NULL after a DELETE */
    bool unreadable;           /* the server has accepted, but the object cannot be read */
    struct err err;            /* why it failed */
};

void writer_init(struct writer *w, struct client *client, const struct writer_rules *rules);
void writer_cancel(struct writer *w); /* what is in flight; accepts a zeroed one */

/* When a write that is decided on `version` may be sent: monotonic, maybe in the past. */
usec_t writer_retry_at(const struct writer *w, uint64_t version);
/* The same, and not before the server takes requests again. */
usec_t writer_ready_at(const struct writer *w, uint64_t version);
/* True when the object, known in `version`, is to be read before the next write. */
bool writer_must_read(const struct writer *w, uint64_t version);

/* A PATCH is a merge patch unless it says otherwise. The callback begins with writer_on_reply. */
void writer_send(struct writer *w, const struct api_request *request, uint64_t version,
                 api_on_reply on_reply, void *ctx);
/* Judges an answer and sets the next wait. The object is also learnt by `store`, where `name` is
 * found; NULL: it is not kept in one. RETRY_LATER if a good answer cannot be read. */
enum retry_verdict writer_on_reply(struct writer *w, const struct api_reply *reply,
                                   struct store *store, struct str name, struct writer_reply *ret);
/* The same for a request that went another way and was judged there. */
enum retry_verdict writer_on_verdict(struct writer *w, enum retry_verdict verdict,
                                     const struct api_reply *reply, struct store *store,
                                     struct str name, struct writer_reply *ret);
void writer_reply_done(struct writer_reply *r);
/* Waits as after a failure. */
void writer_back_off(struct writer *w);

/* "metadata": {"resourceVersion": …}, or nothing without a version: the server then refuses a patch
 * of any other version. */
void writer_add_version(struct json_writer *w, uint64_t version);
/* The body of a DELETE that the server refuses for any other object, or version if one is given. */
void writer_print_delete(struct str uid, uint64_t version, struct buf *out);
