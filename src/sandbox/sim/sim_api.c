#include "sandbox/sim/sim_api_internal.h"

struct api_call {
    struct sim_call call; /* its memory holds the request and the server's reply */
    struct apiserver *server;
    struct api_request request;
    struct str agent;
    struct str authorization;
    api_on_reply on_reply;
    void *ctx;
    usec_t sent; /* in the view's time */
    struct apiserver_reply reply;
    usec_t date; /* when it answered, by the server's clock, in whole seconds */
};

static const struct str sim_api_methods[] = {
    [API_GET] = STR_INIT("GET"),     [API_POST] = STR_INIT("POST"),     [API_PUT] = STR_INIT("PUT"),
    [API_PATCH] = STR_INIT("PATCH"), [API_DELETE] = STR_INIT("DELETE"),
};

struct sim_api *sim_api_of(struct api *api)
{
    return CONTAINER_OF(api, struct sim_api, api);
}

/* The resource a path is about: "/api/v1/namespaces/x/pods/y/eviction?…" is "pods/eviction". */
static struct str sim_api_resource(struct arena *a, struct str path, bool *ret_named)
{
    struct str query;
    struct str rest;
    (void)str_cut(path, STR("?"), &path, &query);
    *ret_named = false;
    if (!str_cut_prefix(path, STR("/api/v1/"), &rest)) {
        struct str group;
        if (!str_cut_prefix(path, STR("/apis/"), &rest) ||
            !str_cut(rest, STR("/"), &group, &rest) || !str_cut(rest, STR("/"), &group, &rest)) {
            return STR("other");
        }
    }
    struct str part[5] = { { NULL, 0 } };
    size_t n = 0;
    while (n < ARRAY_LEN(part) && str_split_next(&rest, '/', &part[n])) {
        n++;
    }
    size_t at = n > 2 && str_eq(part[0], STR("namespaces")) ? 2 : 0;
    *ret_named = n > at + 1;
    if (n > at + 2) {
        return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(part[at]), STR_ARG(part[at + 2]));
    }
    return arena_str(a, part[at]);
}

void sim_api_count_request(struct sim_api *d, struct str path, enum sim_api_verb verb)
{
    CLEANUP(arena_done)
    struct arena tmp = { .first = 256 };
    bool named;
    struct str resource = sim_api_resource(&tmp, path, &named);
    verb = verb == SIM_GET && !named ? SIM_LIST : verb;
    d->sent++;
    uint32_t i = 0;
    while (i < d->counts_n && !str_eq(d->counts[i].resource, resource)) {
        i++;
    }
    if (i == d->counts_n) {
        if (i + 1 >= SIM_RESOURCES_MAX) {
            resource = STR("other");
            i = SIM_RESOURCES_MAX - 1;
        }
        d->counts[i].resource = arena_str(&d->memory, resource);
        d->counts_n = i + 1;
    }
    d->counts[i].sent[verb]++;
}

static void sim_api_call_free(struct sim_call *call)
{
    sim_call_done(call);
    alloc_free(CONTAINER_OF(call, struct api_call, call));
}

static void sim_api_execute(struct api_call *call, struct apiserver_reply *ret)
{
    const struct api_request *r = &call->request;
    struct apiserver_request request = {
        .method = sim_api_methods[r->verb],
        .path = r->path,
        .content_type = r->content_type,
        .accept = r->accept,
        .authorization = call->authorization,
        .user_agent = call->agent,
        .body = r->body,
    };
    apiserver_handle(call->server, &request, &call->call.memory, ret);
}

static void sim_api_call_arrives(void *ctx)
{
    struct api_call *call = ctx;
    struct sim_outcome outcome;
    sim_outcome_draw(call->call.faults, &outcome);
    struct apiserver_reply reply = { 0 };
    if (outcome.execute) {
        sim_api_execute(call, &reply);
        /* A call that should have been an api_watch gets no answer: its stream stays open. */
        if (reply.watch != NULL) {
            apiserver_watch_close(reply.watch);
            reply.watch = NULL;
            outcome.action = SIM_ACTION_DROP;
        }
    }
    if (call->call.client == NULL) {
        sim_api_call_free(&call->call);
        return;
    }
    call->reply = outcome.action == SIM_ACTION_REPLY ? outcome.answer : reply;
    call->date = loop_wall(call->call.client->net) / SECONDS(1) * SECONDS(1);
    if (outcome.action == SIM_ACTION_FAIL) {
        call->call.failure = outcome.failure;
    }
    usec_t after = faults_latency(call->call.faults) + call->reply.delay;
    sim_call_deliver(&call->call, outcome.action == SIM_ACTION_DROP ? USEC_NEVER / 2 : after);
}

static void sim_api_call_delivered(void *ctx)
{
    struct api_call *call = ctx;
    struct err err;
    struct api_reply reply = { 0 };
    if (call->call.failure.code != 0) {
        err = sim_failure_err(call->call.failure);
        reply.err = &err;
    } else {
        reply.status = call->reply.status;
        reply.body = call->reply.body;
        reply.retry_after = call->reply.retry_after;
        reply.date = call->date;
        reply.took = loop_now(call->call.client->view) - call->sent;
    }
    api_on_reply on_reply = call->on_reply;
    void *on_reply_ctx = call->ctx;
    /* The handle is gone before the callback, which may free the client. */
    struct arena memory = { 0 };
    if (call->call.transit.armed) {
        sim_call_abandon(&call->call); /* timed out before the request arrived */
    } else {
        memory = call->call.memory;
        call->call.memory = (struct arena){ 0 };
        sim_api_call_free(&call->call);
    }
    on_reply(on_reply_ctx, &reply);
    arena_done(&memory);
}

static struct api_call *sim_api_send(struct api *api, const struct api_request *request,
                                     api_on_reply on_reply, void *ctx)
{
    static const enum sim_api_verb verbs[] = {
        [API_GET] = SIM_GET,     [API_POST] = SIM_POST,     [API_PUT] = SIM_PUT,
        [API_PATCH] = SIM_PATCH, [API_DELETE] = SIM_DELETE,
    };
    static const struct sim_call_handlers handlers = {
        .arrives = sim_api_call_arrives,
        .delivered = sim_api_call_delivered,
        .free = sim_api_call_free,
    };
    struct sim_api *d = sim_api_of(api);
    struct api_call *call = ALLOC_NEW(struct api_call);
    struct arena *memory = &call->call.memory;
    call->server = d->server;
    call->on_reply = on_reply;
    call->ctx = ctx;
    call->request = *request;
    call->request.path = arena_str(memory, request->path);
    call->request.content_type = arena_str(memory, request->content_type);
    call->request.accept = arena_str(memory, request->accept);
    call->request.body = arena_str(memory, request->body);
    call->agent = arena_str(memory, d->agent);
    call->authorization = arena_str(memory, d->authorization);
    call->sent = loop_now(d->client.view);
    sim_call_start(&call->call, &d->client, request->timeout != 0 ? request->timeout : API_TIMEOUT,
                   request->own_connection, &handlers, call);
    sim_api_count_request(d, request->path, verbs[request->verb]);
    return call;
}

static void sim_api_cancel(struct api *api UNUSED, struct api_call *call)
{
    sim_call_abandon(&call->call);
}

static const struct api_ops sim_api_ops = {
    .send = sim_api_send,
    .cancel = sim_api_cancel,
    .watch = sim_api_watch,
    .watch_stop = sim_api_watch_stop,
};

struct api *sim_api_new(struct loop *view, struct apiserver *server, struct faults *faults)
{
    struct sim_api *d = ALLOC_NEW(struct sim_api);
    d->api.ops = &sim_api_ops;
    sim_client_init(&d->client, view, faults);
    d->client.requests_max = SIM_REQUESTS_MAX;
    d->server = server;
    d->memory.first = 1024;
    d->agent = STR("drydock");
    list_init(&d->watches);
    return &d->api;
}

void sim_api_set_user_agent(struct api *api, struct str agent)
{
    struct sim_api *d = sim_api_of(api);
    d->agent = arena_str(&d->memory, agent);
}

void sim_api_set_token(struct api *api, struct str token)
{
    struct sim_api *d = sim_api_of(api);
    d->authorization =
        token.n > 0 ? arena_printf(&d->memory, "Bearer " STR_FMT, STR_ARG(token)) : STR_NONE;
}

void sim_api_free(struct api *api)
{
    if (api == NULL) {
        return;
    }
    struct sim_api *d = sim_api_of(api);
    LIST_EACH (&d->watches, item) {
        sim_api_watch_stop(api, sim_api_watch_from(item));
    }
    sim_client_done(&d->client);
    arena_done(&d->memory);
    alloc_free(d);
}

void sim_api_disconnect(struct api *api)
{
    struct sim_api *d = sim_api_of(api);
    struct faults *f = d->client.faults;
    LIST_EACH (&d->client.calls, item) {
        struct sim_call *call = CONTAINER_OF(item, struct sim_call, link);
        /* A request that has not arrived is lost, or executed without an answer, by chance. */
        if (call->transit.armed && rng_chance(&f->rng, f->cancel_executes)) {
            struct apiserver_reply reply = { 0 };
            sim_api_execute(CONTAINER_OF(call, struct api_call, call), &reply);
            if (reply.watch != NULL) {
                apiserver_watch_close(reply.watch);
            }
        }
        loop_timer_stop(&call->transit);
        list_del(&call->waiting);
        call->failure = sim_connection_reset;
        loop_timer_set(&call->delivered, MIN(loop_now(d->client.view), call->deadline));
    }
    LIST_EACH (&d->watches, item) {
        sim_api_watch_disconnect(sim_api_watch_from(item));
    }
}

const struct sim_api_count *sim_api_counts(struct api *api, uint32_t *ret_n)
{
    const struct sim_api *d = sim_api_of(api);
    *ret_n = d->counts_n;
    return d->counts;
}

uint64_t sim_api_sent(struct api *api)
{
    return sim_api_of(api)->sent;
}

uint32_t sim_api_in_flight(struct api *api)
{
    return sim_api_of(api)->client.in_flight;
}
