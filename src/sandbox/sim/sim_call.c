#include "sandbox/sim/sim_call_internal.h"

const struct sim_failure sim_connection_reset = { ERR_IO, "connection reset by peer" };
static const struct sim_failure sim_refused = { ERR_IO, "connection refused" };
static const struct sim_failure sim_timeout = { ERR_TIMEOUT, "no answer within the timeout" };

/* The texts of a kube-apiserver 1.35: 429 by its in-flight filter, the others from etcd and from
 * shutting down. */
static const struct apiserver_reply sim_fault_replies[] = {
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

static void sim_outcome_draw_error_reply(struct faults *f, struct sim_outcome *ret)
{
    if (faults_happens(f, f->error_429)) {
        *ret = (struct sim_outcome){ .action = SIM_ACTION_REPLY,
                                     .answer = sim_fault_replies[rng_below(&f->rng, 2)] };
    } else if (faults_happens(f, f->error_500)) {
        *ret = (struct sim_outcome){ .action = SIM_ACTION_REPLY,
                                     .execute = rng_chance(&f->rng, 500),
                                     .answer = sim_fault_replies[2] };
    } else if (faults_happens(f, f->error_503)) {
        *ret = (struct sim_outcome){ .action = SIM_ACTION_REPLY, .answer = sim_fault_replies[3] };
    } else if (faults_happens(f, f->error_504)) {
        *ret = (struct sim_outcome){ .action = SIM_ACTION_REPLY,
                                     .execute = rng_chance(&f->rng, 500),
                                     .answer = sim_fault_replies[4] };
    }
}

void sim_outcome_draw(struct faults *f, struct sim_outcome *ret)
{
    *ret = (struct sim_outcome){ .action = SIM_ACTION_SERVE, .execute = true };
    if (f->partitioned) {
        *ret = (struct sim_outcome){ .action = SIM_ACTION_DROP };
    } else if (f->down || faults_happens(f, f->refused)) {
        *ret = (struct sim_outcome){ .action = SIM_ACTION_FAIL, .failure = sim_refused };
    } else if (faults_happens(f, f->request_lost)) {
        /* Half of the time the client gets a reset, otherwise it only sees silence. */
        *ret = (struct sim_outcome){ .action = rng_chance(&f->rng, 500) ? SIM_ACTION_FAIL
                                                                        : SIM_ACTION_DROP,
                                     .failure = sim_connection_reset };
    } else if (faults_happens(f, f->reply_lost)) {
        *ret = (struct sim_outcome){ .action = rng_chance(&f->rng, 500) ? SIM_ACTION_FAIL
                                                                        : SIM_ACTION_DROP,
                                     .execute = true,
                                     .failure = sim_connection_reset };
    } else {
        sim_outcome_draw_error_reply(f, ret);
    }
}

struct err sim_failure_err(struct sim_failure failure)
{
    struct err err = { 0 };
    (void)err_set(&err, failure.code, "%s", failure.text); /* the code is what is wanted */
    return err;
}

void sim_client_init(struct sim_client *c, struct loop *view, struct faults *faults)
{
    *c = (struct sim_client){ .view = view, .net = loop_root(view), .faults = faults };
    if (faults == NULL) {
        faults_init(&c->no_faults, 0);
        c->faults = &c->no_faults;
    }
    list_init(&c->calls);
    list_init(&c->waiting);
}

void sim_client_done(struct sim_client *c)
{
    c->ending = true;
    LIST_EACH (&c->calls, item) {
        sim_call_abandon(CONTAINER_OF(item, struct sim_call, link));
    }
    faults_done(&c->no_faults);
}

static void sim_call_travel(struct sim_call *call, bool own_connection)
{
    struct sim_client *client = call->client;
    call->failure = (struct sim_failure){ 0 };
    loop_timer_stop(&call->delivered);
    call->counted = !own_connection;
    client->travelling += call->counted ? 1 : 0;
    usec_t latency = faults_latency(client->faults);
    loop_timer_set(&call->transit, loop_now(client->net) + latency);
    if (loop_now(client->view) + latency >= call->deadline) {
        /* The request still arrives, after the client has given up. */
        sim_call_deliver(call, latency + 1);
    }
}

/* Its connection is free for one that waits. */
static void sim_call_arrived_back(struct sim_call *call)
{
    struct sim_client *client = call->client;
    list_del(&call->waiting);
    if (client == NULL || !call->counted) {
        return;
    }
    call->counted = false;
    client->travelling--;
    if (!client->ending && !list_empty(&client->waiting)) {
        struct sim_call *next = CONTAINER_OF(client->waiting.next, struct sim_call, waiting);
        list_del(&next->waiting);
        sim_call_travel(next, /* own_connection= */ false);
    }
}

void sim_call_start(struct sim_call *call, struct sim_client *client, usec_t timeout,
                    bool own_connection, const struct sim_call_handlers *handlers, void *ctx)
{
    call->client = client;
    call->faults = client->faults;
    call->free = handlers->free;
    loop_timer_init(&call->transit, client->net, handlers->arrives, ctx);
    loop_timer_init(&call->delivered, client->view, handlers->delivered, ctx);
    call->deadline = loop_now(client->view) + timeout;
    list_add(&client->calls, &call->link);
    client->in_flight++;
    if (!own_connection && client->requests_max > 0 && client->travelling >= client->requests_max) {
        list_add(&client->waiting, &call->waiting);
        call->failure = sim_timeout;
        loop_timer_set(&call->delivered, call->deadline);
        return;
    }
    sim_call_travel(call, own_connection);
}

void sim_call_deliver(struct sim_call *call, usec_t after)
{
    usec_t at = loop_now(call->client->view) + after;
    if (at > call->deadline) {
        call->failure = sim_timeout;
        at = call->deadline;
    }
    loop_timer_set(&call->delivered, at);
}

static void sim_call_drop(struct faults_orphan *orphan)
{
    struct sim_call *call = CONTAINER_OF(orphan, struct sim_call, orphan);
    call->free(call);
}

void sim_call_abandon(struct sim_call *call)
{
    if (!call->transit.armed || !rng_chance(&call->faults->rng, call->faults->cancel_executes)) {
        call->free(call);
        return;
    }
    sim_call_arrived_back(call);
    call->client->in_flight--;
    call->client = NULL;
    list_del(&call->link);
    loop_timer_done(&call->delivered);
    call->orphan.drop = sim_call_drop;
    list_add(&call->faults->orphans, &call->orphan.link);
}

void sim_call_done(struct sim_call *call)
{
    sim_call_arrived_back(call);
    if (call->client != NULL) {
        call->client->in_flight--;
    }
    list_del(&call->link);
    list_del(&call->orphan.link);
    loop_timer_done(&call->transit);
    loop_timer_done(&call->delivered);
    arena_done(&call->memory);
}
