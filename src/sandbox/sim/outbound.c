#include "sandbox/sim/outbound.h"

#include "base/alloc.h"
#include "sandbox/sim/sim_api_internal.h"

struct sim_outbound {
    struct outbound outbound;
    struct loop *view; /* borrowed: the client's */
    struct loop *net;  /* borrowed: where wires and servers live */
    struct inbox *inbox;
    struct faults *faults; /* borrowed, or `own` */
    struct faults no_faults;
    struct list calls;
    uint32_t in_flight;
};

struct outbound_call {
    struct list link;              /* in the wire's calls */
    struct faults_orphan orphan;   /* when the client is gone */
    struct sim_outbound *outbound; /* NULL when the client is gone */
    struct faults *faults;
    struct inbox *inbox;
    struct inbox_message *message; /* until it has arrived */
    outbound_on_reply on_reply;
    void *ctx;
    usec_t deadline;             /* in the view's time */
    struct loop_timer transit;   /* on the net: the message arrives */
    struct loop_timer delivered; /* on the view: an outcome arrives, or the time is up */
    struct sim_failure failure;
    struct arena memory; /* of the answer */
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

static void outbound_call_free(struct outbound_call *call)
{
    if (call->outbound != NULL) {
        call->outbound->in_flight--;
    }
    list_del(&call->link);
    list_del(&call->orphan.link);
    loop_timer_done(&call->transit);
    loop_timer_done(&call->delivered);
    inbox_message_free(call->message);
    arena_done(&call->memory);
    alloc_free(call);
}

static void outbound_call_drop(struct faults_orphan *orphan)
{
    outbound_call_free(CONTAINER_OF(orphan, struct outbound_call, orphan));
}

/* The client does not wait any more. What is under way may still arrive. */
static void outbound_call_abandon(struct outbound_call *call)
{
    if (!call->transit.armed || !rng_chance(&call->faults->rng, call->faults->cancel_executes)) {
        outbound_call_free(call);
        return;
    }
    call->outbound->in_flight--;
    call->outbound = NULL;
    list_del(&call->link);
    loop_timer_done(&call->delivered);
    call->orphan.drop = outbound_call_drop;
    list_add(&call->faults->orphans, &call->orphan.link);
}

/* Lets the outcome arrive `after` from now, or the end of the client's patience if that is sooner.
 */
static void outbound_call_deliver(struct outbound_call *call, usec_t after)
{
    usec_t at = loop_now(call->outbound->view) + after;
    if (at > call->deadline) {
        call->failure = (struct sim_failure){ ERR_TIMEOUT, "no answer within the timeout" };
        at = call->deadline;
    }
    loop_timer_set(&call->delivered, at);
}

/* What a mail server says where an HTTP server would answer `status`. */
static int smtp_status(int status)
{
    return status == 429 ? 451 : status == 503 ? 421 : 554;
}

static void outbound_call_arrives(void *ctx)
{
    struct outbound_call *call = ctx;
    struct sim_api_outcome verdict;
    struct inbox_answer answer = { 0 };
    bool is_mail = call->message->is_mail;
    sim_api_draw_outcome(call->faults, &verdict);
    if (verdict.execute) {
        call->message->at = loop_now(call->transit.loop);
        inbox_take(call->inbox, STEAL(call->message), &answer);
    }
    if (call->outbound == NULL) {
        outbound_call_free(call);
        return;
    }
    if (verdict.fate == SIM_ACTION_REPLY) {
        answer = (struct inbox_answer){
            .status = is_mail ? smtp_status(verdict.answer.status) : verdict.answer.status,
            .body = STR("try again later"),
            .retry_after = is_mail ? 0 : verdict.answer.retry_after,
        };
    }
    call->answer = answer;
    call->answer.body = arena_str(&call->memory, answer.body);
    if (verdict.fate == SIM_ACTION_FAIL) {
        call->failure = verdict.failure;
    } else if (answer.failure != 0) {
        call->failure = (struct sim_failure){ answer.failure, "connection reset by peer" };
    }
    bool silent =
        verdict.fate == SIM_ACTION_DROP || (call->failure.code == 0 && answer.status == 0);
    outbound_call_deliver(call, silent ? USEC_NEVER / 2
                                       : faults_latency(call->faults) + call->answer.delay);
}

static void outbound_call_delivered(void *ctx)
{
    struct outbound_call *call = ctx;
    struct err err;
    struct outbound_reply reply = { 0 };
    if (call->failure.code != 0) {
        err = sim_api_err(call->failure);
        reply.err = &err;
    } else {
        reply.status = call->answer.status;
        reply.body = call->answer.body;
        reply.retry_after = call->answer.retry_after;
    }
    outbound_on_reply on_reply = call->on_reply;
    void *on_reply_ctx = call->ctx;
    /* The handle is gone before the callback, which may free the wire. */
    struct arena memory = call->memory;
    call->memory = (struct arena){ 0 };
    outbound_call_abandon(call);
    on_reply(on_reply_ctx, &reply);
    arena_done(&memory);
}

static struct outbound_call *outbound_call_new(struct outbound *outbound, usec_t timeout,
                                               outbound_on_reply on_reply, void *ctx)
{
    struct sim_outbound *w = outbound_of(outbound);
    struct outbound_call *call = ALLOC_NEW(struct outbound_call);
    call->outbound = w;
    call->faults = w->faults;
    call->inbox = w->inbox;
    call->on_reply = on_reply;
    call->ctx = ctx;
    call->message = ALLOC_NEW(struct inbox_message);
    call->message->memory.first = 1024;
    call->memory.first = 256;
    loop_timer_init(&call->transit, w->net, outbound_call_arrives, call);
    loop_timer_init(&call->delivered, w->view, outbound_call_delivered, call);
    timeout = timeout != 0 ? timeout : OUTBOUND_TIMEOUT;
    call->deadline = loop_now(w->view) + timeout;
    usec_t latency = faults_latency(w->faults);
    loop_timer_set(&call->transit, loop_now(w->net) + latency);
    if (latency >= timeout) {
        /* It will still arrive, after the client has given up. */
        outbound_call_deliver(call, latency + 1);
    }
    list_add(&w->calls, &call->link);
    w->in_flight++;
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
    outbound_call_abandon(call);
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
    w->view = view;
    w->net = loop_root(view);
    w->inbox = inbox;
    w->faults = faults;
    if (faults == NULL) {
        faults_init(&w->no_faults, 0);
        w->faults = &w->no_faults;
    }
    list_init(&w->calls);
    return &w->outbound;
}

void sim_outbound_free(struct outbound *outbound)
{
    if (outbound == NULL) {
        return;
    }
    struct sim_outbound *w = outbound_of(outbound);
    LIST_EACH (&w->calls, item) {
        outbound_call_abandon(CONTAINER_OF(item, struct outbound_call, link));
    }
    faults_done(&w->no_faults);
    alloc_free(w);
}

uint32_t sim_outbound_in_flight(struct outbound *outbound)
{
    return outbound_of(outbound)->in_flight;
}
