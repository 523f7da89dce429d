#include "sandbox/sim/sim_api_internal.h"

struct api_call {
    struct list link;            /* in the door's calls */
    struct faults_orphan orphan; /* when the client is gone */
    struct sim_api *sim;         /* NULL when the client is gone */
    struct faults *faults;
    struct apiserver *server;
    struct arena memory;
    struct api_request request;
    struct str agent;
    struct str authorization;
    api_on_reply on_reply;
    void *ctx;
    usec_t sent;                 /* in the view's time */
    usec_t deadline;             /* in the view's time */
    struct loop_timer transit;   /* on the net: the request arrives */
    struct loop_timer delivered; /* on the view: an outcome arrives, or the time is up */
    struct sim_failure failure;
    struct apiserver_reply reply;
    usec_t date; /* when it answered, by the server's clock, in whole seconds */
};

static const struct str sim_api_methods[] = {
    [API_GET] = STR_INIT("GET"),     [API_POST] = STR_INIT("POST"),     [API_PUT] = STR_INIT("PUT"),
    [API_PATCH] = STR_INIT("PATCH"), [API_DELETE] = STR_INIT("DELETE"),
};

static const struct sim_failure sim_reset = { ERR_IO, "connection reset by peer" };
static const struct sim_failure sim_refused = { ERR_IO, "connection refused" };
static const struct sim_failure sim_timeout = { ERR_TIMEOUT, "no answer within the timeout" };

struct sim_api *sim_api_of(struct api *api)
{
    return CONTAINER_OF(api, struct sim_api, api);
}

struct err sim_api_err(struct sim_failure failure)
{
    struct err err = { 0 };
    (void)err_set(&err, failure.code, "%s", failure.text); /* the code is what is wanted */
    return err;
}

/* The texts of a kube-apiserver 1.35: 429 by its in-flight filter, the others from etcd and from
 * shutting down. */
static const struct apiserver_reply sim_api_fault_replies[] = {
    {
        .status = 429,
        .content_type = STR_INIT("text/plain; charset=utf-8"),
        .body = STR_INIT("Too many requests, please try again later.\n"),
        .retry_after = SECONDS(1),
    },
    {
        .status = 429,
        .content_type = STR_INIT("text/plain; charset=utf-8"),
        .body = STR_INIT("Too many requests, please try again later.\n"),
    },
    {
        .status = 500,
        .content_type = STR_INIT("application/json"),
        .body = STR_INIT("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                         "\"status\":\"Failure\",\"message\":\"etcdserver: request timed out\","
                         "\"code\":500}\n"),
    },
    {
        .status = 503,
        .content_type = STR_INIT("application/json"),
        .body = STR_INIT("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                         "\"status\":\"Failure\",\"message\":\"apiserver is shutting down\","
                         "\"reason\":\"ServiceUnavailable\",\"code\":503}\n"),
    },
    {
        .status = 504,
        .content_type = STR_INIT("application/json"),
        .body = STR_INIT("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                         "\"status\":\"Failure\",\"message\":\"Timeout: request did not complete "
                         "within the requested timeout - context deadline exceeded\","
                         "\"reason\":\"Timeout\",\"details\":{},\"code\":504}\n"),
    },
};

static void sim_api_draw_error_reply(struct faults *f, struct sim_api_outcome *ret)
{
    if (faults_happens(f, f->error_429)) {
        *ret = (struct sim_api_outcome){ .fate = SIM_ACTION_REPLY,
                                         .answer = sim_api_fault_replies[rng_below(&f->rng, 2)] };
    } else if (faults_happens(f, f->error_500)) {
        *ret = (struct sim_api_outcome){ .fate = SIM_ACTION_REPLY,
                                         .execute = rng_chance(&f->rng, 500),
                                         .answer = sim_api_fault_replies[2] };
    } else if (faults_happens(f, f->error_503)) {
        *ret = (struct sim_api_outcome){ .fate = SIM_ACTION_REPLY,
                                         .answer = sim_api_fault_replies[3] };
    } else if (faults_happens(f, f->error_504)) {
        *ret = (struct sim_api_outcome){ .fate = SIM_ACTION_REPLY,
                                         .execute = rng_chance(&f->rng, 500),
                                         .answer = sim_api_fault_replies[4] };
    }
}

void sim_api_draw_outcome(struct faults *f, struct sim_api_outcome *ret)
{
    *ret = (struct sim_api_outcome){ .fate = SIM_ACTION_SERVE, .execute = true };
    if (f->partitioned) {
        *ret = (struct sim_api_outcome){ .fate = SIM_ACTION_DROP };
    } else if (f->down || faults_happens(f, f->refused)) {
        *ret = (struct sim_api_outcome){ .fate = SIM_ACTION_FAIL, .failure = sim_refused };
    } else if (faults_happens(f, f->request_lost)) {
        /* Whether the loss is noticed is another matter: a reset comes back, silence does not. */
        *ret = (struct sim_api_outcome){ .fate = rng_chance(&f->rng, 500) ? SIM_ACTION_FAIL
                                                                          : SIM_ACTION_DROP,
                                         .failure = sim_reset };
    } else if (faults_happens(f, f->reply_lost)) {
        *ret = (struct sim_api_outcome){ .fate = rng_chance(&f->rng, 500) ? SIM_ACTION_FAIL
                                                                          : SIM_ACTION_DROP,
                                         .execute = true,
                                         .failure = sim_reset };
    } else {
        sim_api_draw_error_reply(f, ret);
    }
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

static void sim_api_call_free(struct api_call *call)
{
    if (call->sim != NULL) {
        call->sim->in_flight--;
    }
    list_del(&call->link);
    list_del(&call->orphan.link);
    loop_timer_done(&call->transit);
    loop_timer_done(&call->delivered);
    arena_done(&call->memory);
    alloc_free(call);
}

static void sim_api_call_drop(struct faults_orphan *orphan)
{
    sim_api_call_free(CONTAINER_OF(orphan, struct api_call, orphan));
}

/* The client does not wait any more. What is on the wire may still arrive. */
static void sim_api_call_abandon(struct api_call *call)
{
    if (!call->transit.armed || !rng_chance(&call->faults->rng, call->faults->cancel_executes)) {
        sim_api_call_free(call);
        return;
    }
    call->sim->in_flight--;
    call->sim = NULL;
    list_del(&call->link);
    loop_timer_done(&call->delivered);
    call->orphan.drop = sim_api_call_drop;
    list_add(&call->faults->orphans, &call->orphan.link);
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
    apiserver_handle(call->server, &request, &call->memory, ret);
}

/* Lets the outcome arrive `after` from now, or the end of the client's patience if that is sooner.
 */
static void sim_api_call_deliver(struct api_call *call, usec_t after)
{
    usec_t at = loop_now(call->sim->view) + after;
    if (at > call->deadline) {
        call->failure = sim_timeout;
        at = call->deadline;
    }
    loop_timer_set(&call->delivered, at);
}

static void sim_api_call_arrives(void *ctx)
{
    struct api_call *call = ctx;
    struct sim_api_outcome outcome;
    sim_api_draw_outcome(call->faults, &outcome);
    struct apiserver_reply reply = { 0 };
    if (outcome.execute) {
        sim_api_execute(call, &reply);
        /* A request that opens a stream is api_watch's business; as a call it is just held open. */
        if (reply.watch != NULL) {
            apiserver_watch_close(reply.watch);
            reply.watch = NULL;
            outcome.fate = SIM_ACTION_DROP;
        }
    }
    if (call->sim == NULL) {
        sim_api_call_free(call);
        return;
    }
    call->reply = outcome.fate == SIM_ACTION_REPLY ? outcome.answer : reply;
    call->date = loop_wall(call->sim->net) / SECONDS(1) * SECONDS(1);
    if (outcome.fate == SIM_ACTION_FAIL) {
        call->failure = outcome.failure;
    }
    usec_t after = faults_latency(call->faults) + call->reply.delay;
    sim_api_call_deliver(call, outcome.fate == SIM_ACTION_DROP ? USEC_NEVER / 2 : after);
}

static void sim_api_call_delivered(void *ctx)
{
    struct api_call *call = ctx;
    struct err err;
    struct api_reply reply = { 0 };
    if (call->failure.code != 0) {
        err = sim_api_err(call->failure);
        reply.err = &err;
    } else {
        reply.status = call->reply.status;
        reply.body = call->reply.body;
        reply.retry_after = call->reply.retry_after;
        reply.date = call->date;
        reply.took = loop_now(call->sim->view) - call->sent;
    }
    api_on_reply on_reply = call->on_reply;
    void *on_reply_ctx = call->ctx;
    /* The handle is gone before the callback, which may free the door. */
    struct arena memory = { 0 };
    if (call->transit.armed) {
        sim_api_call_abandon(call); /* given up while it is still under way */
    } else {
        memory = call->memory;
        call->memory = (struct arena){ 0 };
        sim_api_call_free(call);
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
    struct sim_api *d = sim_api_of(api);
    struct api_call *call = ALLOC_NEW(struct api_call);
    call->sim = d;
    call->faults = d->faults;
    call->server = d->server;
    call->on_reply = on_reply;
    call->ctx = ctx;
    call->request = *request;
    call->request.path = arena_str(&call->memory, request->path);
    call->request.content_type = arena_str(&call->memory, request->content_type);
    call->request.accept = arena_str(&call->memory, request->accept);
    call->request.body = arena_str(&call->memory, request->body);
    call->agent = arena_str(&call->memory, d->agent);
    call->authorization = arena_str(&call->memory, d->authorization);
    loop_timer_init(&call->transit, d->net, sim_api_call_arrives, call);
    loop_timer_init(&call->delivered, d->view, sim_api_call_delivered, call);
    usec_t timeout = request->timeout != 0 ? request->timeout : API_TIMEOUT;
    call->sent = loop_now(d->view);
    call->deadline = call->sent + timeout;
    usec_t latency = faults_latency(d->faults);
    loop_timer_set(&call->transit, loop_now(d->net) + latency);
    if (latency >= timeout) {
        /* It will still arrive, after the client has given up. */
        sim_api_call_deliver(call, latency + 1);
    }
    list_add(&d->calls, &call->link);
    d->in_flight++;
    sim_api_count_request(d, request->path, verbs[request->verb]);
    return call;
}

static void sim_api_cancel(struct api *api UNUSED, struct api_call *call)
{
    sim_api_call_abandon(call);
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
    d->view = view;
    d->net = loop_root(view);
    d->server = server;
    d->faults = faults;
    if (faults == NULL) {
        faults_init(&d->no_faults, 0);
        d->faults = &d->no_faults;
    }
    d->memory.first = 1024;
    d->agent = STR("drydock");
    list_init(&d->calls);
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
    LIST_EACH (&d->calls, item) {
        sim_api_call_abandon(CONTAINER_OF(item, struct api_call, link));
    }
    LIST_EACH (&d->watches, item) {
        sim_api_watch_stop(api, sim_api_watch_from(item));
    }
    faults_done(&d->no_faults);
    arena_done(&d->memory);
    alloc_free(d);
}

void sim_api_disconnect(struct api *api)
{
    struct sim_api *d = sim_api_of(api);
    LIST_EACH (&d->calls, item) {
        struct api_call *call = CONTAINER_OF(item, struct api_call, link);
        /* On its way it is lost by chance, and executed without anybody to tell otherwise. */
        if (call->transit.armed && rng_chance(&d->faults->rng, d->faults->cancel_executes)) {
            struct apiserver_reply reply = { 0 };
            sim_api_execute(call, &reply);
            if (reply.watch != NULL) {
                apiserver_watch_close(reply.watch);
            }
        }
        loop_timer_stop(&call->transit);
        call->failure = sim_reset;
        loop_timer_set(&call->delivered, MIN(loop_now(d->view), call->deadline));
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
    return sim_api_of(api)->in_flight;
}
