#include "sandbox/sim/sim_api_internal.h"

#include "sandbox/sim/virtual_loop.h"

struct api_call {
    struct list link;            /* in the door's calls */
    struct faults_orphan orphan; /* when the client is gone */
    struct door *door;           /* NULL when the client is gone */
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
    struct door_failure failure;
    struct apiserver_reply reply;
    usec_t date; /* when it answered, by the server's clock, in whole seconds */
};

static const struct str door_methods[] = {
    [API_GET] = STR_INIT("GET"),     [API_POST] = STR_INIT("POST"),     [API_PUT] = STR_INIT("PUT"),
    [API_PATCH] = STR_INIT("PATCH"), [API_DELETE] = STR_INIT("DELETE"),
};

static const struct door_failure door_reset = { ERR_IO, "connection reset by peer" };
static const struct door_failure door_refused = { ERR_IO, "connection refused" };
static const struct door_failure door_late = { ERR_TIMEOUT, "no answer within the timeout" };

struct door *door_of(struct api *api)
{
    return CONTAINER_OF(api, struct door, api);
}

struct err door_err(struct door_failure failure)
{
    struct err err = { 0 };
    (void)err_set(&err, failure.code, "%s", failure.text); /* the code is what is wanted */
    return err;
}

/* The texts of a kube-apiserver 1.35: 429 by its in-flight filter, the others from etcd and from
 * shutting down. */
static const struct apiserver_reply door_answers[] = {
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

static void door_judge_answer(struct faults *f, struct door_verdict *ret)
{
    if (faults_strike(f, f->busy)) {
        *ret = (struct door_verdict){ .fate = DOOR_ANSWER,
                                      .answer = door_answers[rng_below(&f->rng, 2)] };
    } else if (faults_strike(f, f->error_500)) {
        *ret = (struct door_verdict){ .fate = DOOR_ANSWER,
                                      .execute = rng_chance(&f->rng, 500),
                                      .answer = door_answers[2] };
    } else if (faults_strike(f, f->error_503)) {
        *ret = (struct door_verdict){ .fate = DOOR_ANSWER, .answer = door_answers[3] };
    } else if (faults_strike(f, f->error_504)) {
        *ret = (struct door_verdict){ .fate = DOOR_ANSWER,
                                      .execute = rng_chance(&f->rng, 500),
                                      .answer = door_answers[4] };
    }
}

void door_judge(struct faults *f, struct door_verdict *ret)
{
    *ret = (struct door_verdict){ .fate = DOOR_SERVE, .execute = true };
    if (f->parted) {
        *ret = (struct door_verdict){ .fate = DOOR_SILENCE };
    } else if (f->down || faults_strike(f, f->refused)) {
        *ret = (struct door_verdict){ .fate = DOOR_FAIL, .failure = door_refused };
    } else if (faults_strike(f, f->request_lost)) {
        /* Whether the loss is noticed is another matter: a reset comes back, silence does not. */
        *ret = (struct door_verdict){ .fate = rng_chance(&f->rng, 500) ? DOOR_FAIL : DOOR_SILENCE,
                                      .failure = door_reset };
    } else if (faults_strike(f, f->reply_lost)) {
        *ret = (struct door_verdict){ .fate = rng_chance(&f->rng, 500) ? DOOR_FAIL : DOOR_SILENCE,
                                      .execute = true,
                                      .failure = door_reset };
    } else {
        door_judge_answer(f, ret);
    }
}

/* The resource a path is about: "/api/v1/namespaces/x/pods/y/eviction?…" is "pods/eviction". */
static struct str door_resource(struct arena *a, struct str path, bool *ret_named)
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

void door_count(struct door *d, struct str path, enum door_verb verb)
{
    CLEANUP(arena_done)
    struct arena tmp = { .first = 256 };
    bool named;
    struct str resource = door_resource(&tmp, path, &named);
    verb = verb == DOOR_GET && !named ? DOOR_LIST : verb;
    d->sent++;
    uint32_t i = 0;
    while (i < d->tallies_n && !str_eq(d->tallies[i].resource, resource)) {
        i++;
    }
    if (i == d->tallies_n) {
        if (i + 1 >= DOOR_RESOURCES_MAX) {
            resource = STR("other");
            i = DOOR_RESOURCES_MAX - 1;
        }
        d->tallies[i].resource = arena_str(&d->memory, resource);
        d->tallies_n = i + 1;
    }
    d->tallies[i].sent[verb]++;
}

static void door_call_free(struct api_call *call)
{
    if (call->door != NULL) {
        call->door->in_flight--;
    }
    list_del(&call->link);
    list_del(&call->orphan.link);
    loop_timer_done(&call->transit);
    loop_timer_done(&call->delivered);
    arena_done(&call->memory);
    alloc_free(call);
}

static void door_orphan_drop(struct faults_orphan *orphan)
{
    door_call_free(CONTAINER_OF(orphan, struct api_call, orphan));
}

/* The client does not wait any more. What is on the wire may still arrive. */
static void door_call_abandon(struct api_call *call)
{
    if (!call->transit.armed || !rng_chance(&call->faults->rng, call->faults->cancel_executes)) {
        door_call_free(call);
        return;
    }
    call->door->in_flight--;
    call->door = NULL;
    list_del(&call->link);
    loop_timer_done(&call->delivered);
    call->orphan.drop = door_orphan_drop;
    list_add(&call->faults->orphans, &call->orphan.link);
}

static void door_execute(struct api_call *call, struct apiserver_reply *ret)
{
    const struct api_request *r = &call->request;
    struct apiserver_request request = {
        .method = door_methods[r->verb],
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
static void door_call_deliver(struct api_call *call, usec_t after)
{
    usec_t at = loop_now(call->door->view) + after;
    if (at > call->deadline) {
        call->failure = door_late;
        at = call->deadline;
    }
    loop_timer_set(&call->delivered, at);
}

static void door_call_arrives(void *ctx)
{
    struct api_call *call = ctx;
    struct door_verdict verdict;
    door_judge(call->faults, &verdict);
    struct apiserver_reply reply = { 0 };
    if (verdict.execute) {
        door_execute(call, &reply);
        /* A request that opens a stream is api_watch's business; as a call it is just held open. */
        if (reply.watch != NULL) {
            apiserver_watch_close(reply.watch);
            reply.watch = NULL;
            verdict.fate = DOOR_SILENCE;
        }
    }
    if (call->door == NULL) {
        door_call_free(call);
        return;
    }
    call->reply = verdict.fate == DOOR_ANSWER ? verdict.answer : reply;
    call->date = loop_wall(call->door->net) / SECONDS(1) * SECONDS(1);
    if (verdict.fate == DOOR_FAIL) {
        call->failure = verdict.failure;
    }
    usec_t after = faults_latency(call->faults) + call->reply.delay;
    door_call_deliver(call, verdict.fate == DOOR_SILENCE ? USEC_NEVER / 2 : after);
}

static void door_call_delivered(void *ctx)
{
    struct api_call *call = ctx;
    struct err err;
    struct api_reply reply = { 0 };
    if (call->failure.code != 0) {
        err = door_err(call->failure);
        reply.err = &err;
    } else {
        reply.status = call->reply.status;
        reply.body = call->reply.body;
        reply.retry_after = call->reply.retry_after;
        reply.date = call->date;
        reply.took = loop_now(call->door->view) - call->sent;
    }
    api_on_reply on_reply = call->on_reply;
    void *on_reply_ctx = call->ctx;
    /* The handle is gone before the callback, which may free the door. */
    struct arena memory = { 0 };
    if (call->transit.armed) {
        door_call_abandon(call); /* given up while it is still under way */
    } else {
        memory = call->memory;
        call->memory = (struct arena){ 0 };
        door_call_free(call);
    }
    on_reply(on_reply_ctx, &reply);
    arena_done(&memory);
}

static struct api_call *door_send(struct api *api, const struct api_request *request,
                                  api_on_reply on_reply, void *ctx)
{
    static const enum door_verb verbs[] = {
        [API_GET] = DOOR_GET,     [API_POST] = DOOR_POST,     [API_PUT] = DOOR_PUT,
        [API_PATCH] = DOOR_PATCH, [API_DELETE] = DOOR_DELETE,
    };
    struct door *d = door_of(api);
    struct api_call *call = ALLOC_NEW(struct api_call);
    call->door = d;
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
    loop_timer_init(&call->transit, d->net, door_call_arrives, call);
    loop_timer_init(&call->delivered, d->view, door_call_delivered, call);
    usec_t timeout = request->timeout != 0 ? request->timeout : API_TIMEOUT;
    call->sent = loop_now(d->view);
    call->deadline = call->sent + timeout;
    usec_t latency = faults_latency(d->faults);
    loop_timer_set(&call->transit, loop_now(d->net) + latency);
    if (latency >= timeout) {
        /* It will still arrive, after the client has given up. */
        door_call_deliver(call, latency + 1);
    }
    list_add(&d->calls, &call->link);
    d->in_flight++;
    door_count(d, request->path, verbs[request->verb]);
    return call;
}

static void door_cancel(struct api *api UNUSED, struct api_call *call)
{
    door_call_abandon(call);
}

static const struct api_ops door_ops = {
    .send = door_send,
    .cancel = door_cancel,
    .watch = door_watch,
    .watch_stop = door_watch_stop,
};

struct api *door_new(struct loop *view, struct apiserver *server, struct faults *faults)
{
    struct door *d = ALLOC_NEW(struct door);
    d->api.ops = &door_ops;
    d->view = view;
    d->net = vloop_beside(view);
    d->server = server;
    d->faults = faults;
    if (faults == NULL) {
        faults_init(&d->own, 0);
        d->faults = &d->own;
    }
    d->memory.first = 1024;
    d->agent = STR("drydock");
    list_init(&d->calls);
    list_init(&d->watches);
    return &d->api;
}

void door_set_agent(struct api *api, struct str agent)
{
    struct door *d = door_of(api);
    d->agent = arena_str(&d->memory, agent);
}

void door_set_token(struct api *api, struct str token)
{
    struct door *d = door_of(api);
    d->authorization =
        token.n > 0 ? arena_printf(&d->memory, "Bearer " STR_FMT, STR_ARG(token)) : STR_NONE;
}

void door_free(struct api *api)
{
    if (api == NULL) {
        return;
    }
    struct door *d = door_of(api);
    LIST_EACH (&d->calls, item) {
        door_call_abandon(CONTAINER_OF(item, struct api_call, link));
    }
    LIST_EACH (&d->watches, item) {
        door_watch_stop(api, door_watch_from(item));
    }
    faults_done(&d->own);
    arena_done(&d->memory);
    alloc_free(d);
}

void door_cut(struct api *api)
{
    struct door *d = door_of(api);
    LIST_EACH (&d->calls, item) {
        struct api_call *call = CONTAINER_OF(item, struct api_call, link);
        /* On its way it is lost by chance, and executed without anybody to tell otherwise. */
        if (call->transit.armed && rng_chance(&d->faults->rng, d->faults->cancel_executes)) {
            struct apiserver_reply reply = { 0 };
            door_execute(call, &reply);
            if (reply.watch != NULL) {
                apiserver_watch_close(reply.watch);
            }
        }
        loop_timer_stop(&call->transit);
        call->failure = door_reset;
        loop_timer_set(&call->delivered, MIN(loop_now(d->view), call->deadline));
    }
    LIST_EACH (&d->watches, item) {
        door_watch_cut(door_watch_from(item));
    }
}

const struct door_tally *door_tallies(struct api *api, uint32_t *ret_n)
{
    const struct door *d = door_of(api);
    *ret_n = d->tallies_n;
    return d->tallies;
}

uint64_t door_sent(struct api *api)
{
    return door_of(api)->sent;
}

uint32_t door_in_flight(struct api *api)
{
    return door_of(api)->in_flight;
}
