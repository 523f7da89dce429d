#include "sandbox/sim/outbound.h"

#include "base/alloc.h"
#include "sandbox/sim/sim_call_internal.h"

struct sim_outbound {
    struct outbound outbound;
    struct sim_client client;
    struct inbox *inbox; /* borrowed */
};

struct outbound_call {
    struct sim_call call; /* its memory holds the answer's body */
    struct inbox *inbox;
    struct inbox_message *message; /* until it has arrived */
    outbound_on_reply on_reply;
    void *ctx;
    struct inbox_answer answer;
};

static struct sim_outbound *outbound_of(struct outbound *outbound)
{
    return CONTAINER_OF(outbound, struct sim_outbound, outbound);
}

static void inbox_message_free(struct inbox_message *m)
{
    if (m != NULL) {
        list_del(&m->link);
        arena_done(&m->memory);
        alloc_free(m);
    }
}

void inbox_init(struct inbox *inbox)
{
    *inbox = (struct inbox){ 0 };
    list_init(&inbox->messages);
}

void inbox_done(struct inbox *inbox)
{
    while (inbox->messages.next != NULL && !list_empty(&inbox->messages)) {
        inbox_message_free(CONTAINER_OF(inbox->messages.next, struct inbox_message, link));
    }
}

const struct inbox_message *inbox_at(const struct inbox *inbox, uint32_t i)
{
    LIST_EACH (&inbox->messages, item) {
        if (i-- == 0) {
            return CONTAINER_OF(item, struct inbox_message, link);
        }
    }
    return NULL;
}

struct str inbox_header(const struct inbox_message *message, const char *name)
{
    for (uint32_t i = 0; i < message->request.header_n; i++) {
        if (str_eq_fold(message->request.headers[i].name, str_from(name))) {
            return message->request.headers[i].value;
        }
    }
    return STR_NONE;
}

static void inbox_take(struct inbox *inbox, struct inbox_message *m, struct inbox_answer *ret)
{
    *ret = (struct inbox_answer){ .status = m->is_mail ? 250 : 200,
                                  .body = m->is_mail ? STR("OK") : STR("ok") };
    if (inbox->script != NULL) {
        inbox->script(inbox->ctx, m, ret);
    }
    m->status = ret->failure != 0 ? 0 : ret->status;
    list_add(&inbox->messages, &m->link);
    inbox->arrived++;
    if (inbox->n < INBOX_MESSAGES_MAX) {
        inbox->n++;
    } else {
        inbox_message_free(CONTAINER_OF(inbox->messages.next, struct inbox_message, link));
    }
}

static void outbound_call_free(struct sim_call *base)
{
    struct outbound_call *call = CONTAINER_OF(base, struct outbound_call, call);
    sim_call_done(base);
    inbox_message_free(call->message);
    alloc_free(call);
}

/* What a mail server says where an HTTP server would answer `status`. */
static int smtp_status(int status)
{
    return status == 429 ? 451 : status == 503 ? 421 : 554;
}

static void outbound_call_arrives(void *ctx)
{
    struct outbound_call *call = ctx;
    struct sim_outcome outcome;
    struct inbox_answer answer = { 0 };
    bool is_mail = call->message->is_mail;
    sim_outcome_draw(call->call.faults, &outcome);
    if (outcome.execute) {
        call->message->at = loop_now(call->call.transit.loop);
        inbox_take(call->inbox, STEAL(call->message), &answer);
    }
    if (call->call.client == NULL) {
        outbound_call_free(&call->call);
        return;
    }
    if (outcome.action == SIM_ACTION_REPLY) {
        answer = (struct inbox_answer){
            .status = is_mail ? smtp_status(outcome.answer.status) : outcome.answer.status,
            .body = STR("try again later"),
            .retry_after = is_mail ? 0 : outcome.answer.retry_after,
        };
    }
    call->answer = answer;
    call->answer.body = arena_str(&call->call.memory, answer.body);
    call->answer.header = arena_str(&call->call.memory, answer.header);
    if (outcome.action == SIM_ACTION_FAIL) {
        call->call.failure = outcome.failure;
    } else if (answer.failure != 0) {
        call->call.failure = (struct sim_failure){ answer.failure, sim_connection_reset.text };
    }
    bool silent =
        outcome.action == SIM_ACTION_DROP || (call->call.failure.code == 0 && answer.status == 0);
    sim_call_deliver(&call->call, silent ? USEC_NEVER / 2
                                         : faults_latency(call->call.faults) + call->answer.delay);
}

static void outbound_call_delivered(void *ctx)
{
    struct outbound_call *call = ctx;
    struct err err;
    struct outbound_reply reply = { 0 };
    if (call->call.failure.code != 0) {
        err = sim_failure_err(call->call.failure);
        reply.err = &err;
    } else {
        reply.status = call->answer.status;
        reply.body = call->answer.body;
        reply.header = call->answer.header;
        reply.retry_after = call->answer.retry_after;
    }
    outbound_on_reply on_reply = call->on_reply;
    void *on_reply_ctx = call->ctx;
    /* The handle is gone before the callback, which may free the client. */
    struct arena memory = call->call.memory;
    call->call.memory = (struct arena){ 0 };
    sim_call_abandon(&call->call);
    on_reply(on_reply_ctx, &reply);
    arena_done(&memory);
}

static struct outbound_call *outbound_call_new(struct outbound *outbound, usec_t timeout,
                                               outbound_on_reply on_reply, void *ctx)
{
    static const struct sim_call_handlers handlers = {
        .arrives = outbound_call_arrives,
        .delivered = outbound_call_delivered,
        .free = outbound_call_free,
    };
    struct sim_outbound *w = outbound_of(outbound);
    struct outbound_call *call = ALLOC_NEW(struct outbound_call);
    call->inbox = w->inbox;
    call->on_reply = on_reply;
    call->ctx = ctx;
    call->message = ALLOC_NEW(struct inbox_message);
    call->message->memory.first = 1024;
    call->call.memory.first = 256;
    sim_call_start(&call->call, &w->client, timeout != 0 ? timeout : OUTBOUND_TIMEOUT,
                   /* own_connection= */ true, &handlers, call);
    return call;
}

static struct outbound_call *sim_outbound_http(struct outbound *outbound,
                                               const struct outbound_request *request,
                                               outbound_on_reply on_reply, void *ctx)
{
    struct outbound_call *call = outbound_call_new(outbound, request->timeout, on_reply, ctx);
    struct inbox_message *m = call->message;
    struct outbound_header *headers =
        ARENA_ARRAY(&m->memory, struct outbound_header, request->header_n);
    for (uint32_t i = 0; i < request->header_n; i++) {
        headers[i].name = arena_str(&m->memory, request->headers[i].name);
        headers[i].value = arena_str(&m->memory, request->headers[i].value);
    }
    m->request = *request;
    m->request.method = arena_str(&m->memory, request->method);
    m->request.url = arena_str(&m->memory, request->url);
    m->request.headers = headers;
    m->request.body = arena_str(&m->memory, request->body);
    m->request.reply_header = arena_str(&m->memory, request->reply_header);
    return call;
}

static struct outbound_call *sim_outbound_mail(struct outbound *outbound,
                                               const struct outbound_mail *mail,
                                               outbound_on_reply on_reply, void *ctx)
{
    struct outbound_call *call = outbound_call_new(outbound, mail->timeout, on_reply, ctx);
    struct inbox_message *m = call->message;
    struct str *to = ARENA_ARRAY(&m->memory, struct str, mail->to_n);
    for (uint32_t i = 0; i < mail->to_n; i++) {
        to[i] = arena_str(&m->memory, mail->to[i]);
    }
    m->is_mail = true;
    m->mail = *mail;
    m->mail.address = arena_str(&m->memory, mail->address);
    m->mail.from = arena_str(&m->memory, mail->from);
    m->mail.to = to;
    m->mail.payload = arena_str(&m->memory, mail->payload);
    m->mail.identity = arena_str(&m->memory, mail->identity);
    m->mail.user = arena_str(&m->memory, mail->user);
    m->mail.password = arena_str(&m->memory, mail->password);
    return call;
}

static void sim_outbound_cancel(struct outbound *outbound UNUSED, struct outbound_call *call)
{
    sim_call_abandon(&call->call);
}

static const struct outbound_ops sim_outbound_ops = {
    .http = sim_outbound_http,
    .mail = sim_outbound_mail,
    .cancel = sim_outbound_cancel,
};

struct outbound *sim_outbound_new(struct loop *view, struct inbox *inbox, struct faults *faults)
{
    struct sim_outbound *w = ALLOC_NEW(struct sim_outbound);
    w->outbound.ops = &sim_outbound_ops;
    sim_client_init(&w->client, view, faults);
    w->inbox = inbox;
    return &w->outbound;
}

void sim_outbound_free(struct outbound *outbound)
{
    if (outbound == NULL) {
        return;
    }
    struct sim_outbound *w = outbound_of(outbound);
    sim_client_done(&w->client);
    alloc_free(w);
}

uint32_t sim_outbound_in_flight(struct outbound *outbound)
{
    return outbound_of(outbound)->client.in_flight;
}
