/*
 * outbound: a simulated client of third parties (port/outbound.h), and the inbox where its requests
 * and mails arrive.
 *
 * The inbox stands for all third parties: it keeps the messages in order of arrival and answers as
 * a script says, or 200 "ok" and 250. It outlives its clients: freeing a client is a crash, and
 * messages under way may or may not still arrive. Latency, loss, refusals and errors come from
 * `faults`, as for sim_api.
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "port/loop.h"
#include "port/outbound.h"
#include "sandbox/sim/faults.h"

#define INBOX_MESSAGES_MAX 4096u /* the oldest go first; no test looks back further */

/* What has arrived. */
struct inbox_message {
    struct list link;
    struct arena memory;
    usec_t at; /* true time of the arrival */
    bool is_mail;
    struct outbound_request request;
    struct outbound_mail mail;
    int status; /* what was answered, whether or not the answer got through; 0 = nothing */
};

struct inbox_answer {
    int status;            /* 0: silence, until the client's time is up */
    struct str body;       /* lives until the next message */
    struct str header;     /* the value of the header that the request wants; likewise */
    usec_t retry_after;    /* 0 = none */
    usec_t delay;          /* before the answer sets out */
    enum err_code failure; /* instead of an answer: the connection breaks; 0 = none */
};

/* `answer` holds the default. */
typedef void (*inbox_responder)(void *ctx, const struct inbox_message *message,
                                struct inbox_answer *answer);

struct inbox {
    struct list messages;
    uint32_t n;             /* of those kept */
    uint64_t arrived;       /* of all */
    inbox_responder script; /* may be NULL */
    void *ctx;
};

void inbox_init(struct inbox *inbox);
void inbox_done(struct inbox *inbox); /* accepts a zeroed one */
/* The i-th message kept, from 0; NULL behind the last. */
const struct inbox_message *inbox_at(const struct inbox *inbox, uint32_t i);
/* The value of a request's header; STR_NONE when it has none. */
struct str inbox_header(const struct inbox_message *message, const char *name);

/* `faults` is borrowed and may be NULL: a calm network of the client's own. */
struct outbound *sim_outbound_new(struct loop *view, struct inbox *inbox, struct faults *faults);
void sim_outbound_free(struct outbound *outbound); /* accepts NULL */
uint32_t sim_outbound_in_flight(struct outbound *outbound);
