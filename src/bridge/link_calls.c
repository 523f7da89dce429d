/*
 * link_calls: API requests to a workload cluster. A request waits in `queued` until the rate limit
 * and the number in flight allow it. Requests that are cut off move to `ended` and are answered
 * with status 0 from the link's timer.
 */
#include "base/alloc.h"
#include "bridge/link_internal.h"

struct link_call {
    struct list place; /* in one of the link's three lists */
    struct link *link;
    uint32_t *count; /* of that list */
    struct arena memory;
    struct api_request request;
    api_on_reply on_reply;
    void *ctx;
    struct api_call *call; /* in flight */
    enum err_code code;    /* ended: why */
};

static struct link_call *link_call_first(const struct list *head)
{
    return list_empty(head) ? NULL : CONTAINER_OF(head->next, struct link_call, place);
}

static void link_call_leave(struct link_call *c)
{
    list_del(&c->place);
    if (c->count != NULL) {
        (*c->count)--;
        c->count = NULL;
    }
}

static void link_call_move(struct link_call *c, struct list *head, uint32_t *count)
{
    link_call_leave(c);
    list_add(head, &c->place);
    c->count = count;
    (*count)++;
}

static void link_call_free(struct link_call *c)
{
    link_call_leave(c);
    if (c->call != NULL) {
        api_cancel(c->link->api, STEAL(c->call));
    }
    arena_done(&c->memory);
    alloc_free(c);
}

static void link_call_end(struct link_call *c, enum err_code code)
{
    struct link *l = c->link;
    c->code = code;
    link_call_move(c, &l->ended, &l->ended_n);
    link_wake(l);
}

struct link_call *link_send(struct link *l, const struct api_request *request,
                            api_on_reply on_reply, void *ctx)
{
    struct link_call *c = ALLOC_NEW(struct link_call);
    *c = (struct link_call){
        .link = l,
        .memory = { .first = 512 },
        .request = *request,
        .on_reply = on_reply,
        .ctx = ctx,
    };
    if (!link_fresh(l)) {
        link_call_end(c, ERR_CANCELLED);
    } else if (l->queued_n >= LINK_QUEUE_MAX) {
        link_call_end(c, ERR_LIMIT);
    } else {
        c->request.path = arena_str(&c->memory, request->path);
        c->request.content_type = arena_str(&c->memory, request->content_type);
        c->request.accept = arena_str(&c->memory, request->accept);
        c->request.body = arena_str(&c->memory, request->body);
        link_call_move(c, &l->queued, &l->queued_n);
        link_wake(l);
    }
    return c;
}

void link_cancel(struct link_call *call)
{
    if (call != NULL) {
        link_wake(call->link); /* another one may go, or the link may close */
        link_call_free(call);
    }
}

/* Calls back last: the callback may free the link. */
static void link_call_on_reply(void *ctx, const struct api_reply *reply)
{
    struct link_call *c = ctx;
    struct link *l = c->link;
    api_on_reply on_reply = c->on_reply;
    void *on_reply_ctx = c->ctx;
    c->call = NULL;
    (void)client_note(&l->client, c->request.verb, reply); /* the caller judges the reply */
    link_call_free(c);
    struct err err = { 0 };
    if (client_take_traffic(&l->client, reply->body.n, &err) < 0) {
        link_exceed(l, &err);
    }
    if (reply->status == 401) {
        client_explain(reply->status, reply->body, reply->err, &err);
        link_fail(l, LINK_BREAK_DENIED, &err);
    }
    link_wake(l);
    on_reply(on_reply_ctx, reply);
}

usec_t link_calls_at(struct link *l)
{
    if (l->api == NULL || l->queued_n == 0 || l->in_flight_n >= LINK_CALLS_MAX) {
        return USEC_NEVER;
    }
    if (l->token.next != NULL) {
        return USEC_NEVER; /* requests in flight end, the others take the new connection */
    }
    return MAX(ratelimit_ready_at(&l->bucket, loop_now(l->loop)), client_open_at(&l->client));
}

void link_calls_send(struct link *l)
{
    usec_t now = loop_now(l->loop);
    while (link_calls_at(l) <= now) {
        struct link_call *c = link_call_first(&l->queued);
        if (c->request.verb != API_GET && l->config.may_write != NULL &&
            !l->config.may_write(l->config.ctx)) {
            link_call_end(c, ERR_CANCELLED);
            continue;
        }
        ratelimit_take(&l->bucket, now);
        link_call_move(c, &l->in_flight, &l->in_flight_n);
        c->call = api_send(l->api, &c->request, link_call_on_reply, c);
    }
}

void link_calls_end(struct link *l)
{
    struct link_call *c;
    while ((c = link_call_first(&l->in_flight)) != NULL) {
        api_cancel(l->api, STEAL(c->call));
        link_call_end(c, ERR_CANCELLED);
    }
    while ((c = link_call_first(&l->queued)) != NULL) {
        link_call_end(c, ERR_CANCELLED);
    }
}

static void link_call_explain(const struct link_call *c, struct err *ret)
{
    const struct link *l = c->link;
    if (c->code == ERR_LIMIT) {
        (void)err_set(ret, c->code,
                      "more than %u requests wait for cluster '" STR_FMT "/" STR_FMT "'",
                      LINK_QUEUE_MAX, STR_ARG(l->config.namespace), STR_ARG(l->config.cluster));
    } else {
        (void)err_set(ret, c->code, "no connection to cluster '" STR_FMT "/" STR_FMT "'%s%s",
                      STR_ARG(l->config.namespace), STR_ARG(l->config.cluster),
                      l->trouble.code != 0 ? ": " : "", l->trouble.msg);
    }
}

bool link_calls_notify(struct link *l, const bool *freed)
{
    /* A callback may send again at once; such a request is answered from the next timer. */
    for (uint32_t n = l->ended_n; n > 0 && l->ended_n > 0; n--) {
        struct link_call *c = link_call_first(&l->ended);
        struct err err = { 0 };
        link_call_explain(c, &err);
        api_on_reply on_reply = c->on_reply;
        void *ctx = c->ctx;
        link_call_free(c);
        on_reply(ctx, &(struct api_reply){ .err = &err });
        if (*freed) {
            return false;
        }
    }
    if (l->ended_n > 0) {
        link_wake(l);
    }
    return true;
}

void link_calls_done(struct link *l)
{
    struct list *heads[] = { &l->in_flight, &l->queued, &l->ended };
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        LIST_EACH (heads[i], item) {
            link_call_free(CONTAINER_OF(item, struct link_call, place));
        }
    }
}
