/*
 * drain: drains one node as the controller does, and tells when it asked for what.
 *
 *     bench-drain KUBECONFIG NODE
 *
 * Between the drain and its transport sits a tap. It notes when a line of the budgets' watch says
 * that a budget which allowed no disruption allows one now, before anybody has read the line, and
 * when the next eviction is handed to the transport. Prints one line of JSON; exit 1 when the node
 * is not empty after five minutes.
 */
#include <time.h>

#include "base/arena.h"
#include "drain/drain.h"
#include "format/json_writer.h"
#include "host/kubeconfig.h"
#include "host/loop.h"
#include "host/transport.h"

#define PATIENCE MINUTES(5)
#define SAMPLES_MAX 10000u

struct tap {
    struct api api; /* first */
    struct api *inner;
    api_on_event on_event; /* of the budgets' watch */
    void *ctx;
    bool first;     /* a line has told what is allowed at the beginning */
    int64_t before; /* disruptionsAllowed of the line before */
    usec_t opened_at;
    usec_t latency[SAMPLES_MAX]; /* budget opened → eviction handed over */
    uint32_t latencies;
    usec_t sent[SAMPLES_MAX]; /* civil time of each eviction */
    uint32_t sents;
};

struct bench {
    struct loop *loop;
    struct tap tap;
    struct client client;
    struct recorder recorder;
    struct drain *drain;
    struct loop_timer timer; /* patience, then the last Events */
    usec_t done_at;
};

static usec_t bench_clock(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now); /* cannot fail for these clocks */
    return SECONDS(now.tv_sec) + now.tv_nsec / 1000;
}

static struct tap *tap_of(struct api *api)
{
    return CONTAINER_OF(api, struct tap, api);
}

static struct api_call *tap_send(struct api *api, const struct api_request *request,
                                 api_on_reply on_reply, void *ctx)
{
    struct tap *t = tap_of(api);
    if (str_ends(request->path, STR("/eviction")) && t->sents < SAMPLES_MAX) {
        t->sent[t->sents++] = bench_clock(CLOCK_REALTIME);
        if (t->opened_at > 0) {
            t->latency[t->latencies++] = bench_clock(CLOCK_MONOTONIC) - t->opened_at;
            t->opened_at = 0;
        }
    }
    return api_send(t->inner, request, on_reply, ctx);
}

static void tap_cancel(struct api *api, struct api_call *call)
{
    api_cancel(tap_of(api)->inner, call);
}

static void tap_on_event(void *ctx, const struct api_watch_event *event)
{
    struct tap *t = ctx;
    static const struct str key = STR_INIT("\"disruptionsAllowed\":");
    size_t at = event->kind == API_WATCH_LINE ? str_find(event->line, key) : SIZE_MAX;
    if (at != SIZE_MAX) {
        struct str digits = str_sub(event->line, at + key.n, 20);
        int64_t allowed = 0;
        for (size_t i = 0; i < digits.n && digits.p[i] >= '0' && digits.p[i] <= '9'; i++) {
            allowed = allowed * 10 + digits.p[i] - '0';
        }
        if (t->first && t->before <= 0 && allowed > 0) {
            t->opened_at = bench_clock(CLOCK_MONOTONIC);
        }
        t->first = true;
        t->before = allowed;
    }
    t->on_event(t->ctx, event);
}

static struct api_watch *tap_watch(struct api *api, const struct api_watch_spec *spec,
                                   api_on_event on_event, void *ctx)
{
    struct tap *t = tap_of(api);
    if (!str_contains(spec->path, STR("/poddisruptionbudgets"))) {
        return api_watch(t->inner, spec, on_event, ctx);
    }
    t->on_event = on_event;
    t->ctx = ctx;
    return api_watch(t->inner, spec, tap_on_event, t);
}

static void tap_watch_stop(struct api *api, struct api_watch *watch)
{
    api_watch_stop(tap_of(api)->inner, watch);
}

static const struct api_ops tap_ops = {
    .send = tap_send,
    .cancel = tap_cancel,
    .watch = tap_watch,
    .watch_stop = tap_watch_stop,
};

static void bench_on_change(void *ctx)
{
    struct bench *b = ctx;
    if (drain_is_done(b->drain) && b->done_at == 0) {
        b->done_at = bench_clock(CLOCK_MONOTONIC);
        loop_timer_set(&b->timer, loop_now(b->loop) + SECONDS(1)); /* for the Events */
    }
}

static void bench_on_timer(void *ctx)
{
    struct bench *b = ctx;
    host_loop_stop(b->loop);
}

static void bench_write_samples(struct json_writer *w, const struct tap *t)
{
    jw_key(w, STR("latencies_us"));
    jw_arr(w);
    for (uint32_t i = 0; i < t->latencies; i++) {
        jw_i64(w, t->latency[i]);
    }
    jw_arr_end(w);
    jw_key(w, STR("sent_us"));
    jw_arr(w);
    for (uint32_t i = 0; i < t->sents; i++) {
        jw_i64(w, t->sent[i]);
    }
    jw_arr_end(w);
}

static void bench_print(const struct bench *b, usec_t started)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct drain_status status;
    drain_status(b->drain, &status);
    struct transport_stats stats = transport_stats(b->tap.inner);
    uint64_t requests = stats.sent_watch;
    for (size_t i = 0; i < ARRAY_LEN(stats.sent); i++) {
        requests += stats.sent[i];
    }
    uint64_t events = b->recorder.stats.created + b->recorder.stats.patched;
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        { "wall_us", b->done_at - started },    { "evicted", (int64_t)status.evicted },
        { "refused", (int64_t)status.refused }, { "requests", (int64_t)(requests - events) },
        { "events", (int64_t)events },
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        jw_key(&w, str_from(numbers[i].name));
        jw_i64(&w, numbers[i].value);
    }
    bench_write_samples(&w, &b->tap);
    jw_obj_end(&w);
    printf(STR_FMT "\n", STR_ARG(buf_str(&text)));
}

static int bench_run(struct bench *b, struct str node)
{
    client_init(&b->client, b->loop, &b->tap.api);
    recorder_init(&b->recorder, &b->client, STR("maintenance"), STR("maintenance-bench"));
    loop_timer_init(&b->timer, b->loop, bench_on_timer, b);
    loop_timer_set(&b->timer, loop_now(b->loop) + PATIENCE);
    struct drains *drains = drains_new(
        b->loop, &(struct drains_config){ .client = &b->client, .recorder = &b->recorder });
    const struct drain_spec spec = {
        .node = node,
        .eviction_timeout = USEC_NEVER,
        .deletion_timeout = USEC_NEVER,
        .grace = -1,
    };
    usec_t started = bench_clock(CLOCK_MONOTONIC);
    b->drain = drain_start(drains, &spec, bench_on_change, b);
    host_loop_run(b->loop);
    bool done = drain_is_done(b->drain);
    if (done) {
        bench_print(b, started);
    } else {
        fprintf(stderr, "bench-drain: pods are left\n");
    }
    drains_free(drains);
    recorder_done(&b->recorder);
    loop_timer_done(&b->timer);
    return done ? 0 : 1;
}

int main(int argc, char **argv)
{
    static struct bench b;
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct cluster_access access;
    struct err err = { 0 };
    if (argc != 3) {
        fprintf(stderr, "usage: bench-drain KUBECONFIG NODE\n");
        return 2;
    }
    b.tap.api.ops = &tap_ops;
    b.loop = host_loop_new();
    int r = kubeconfig_load(&(struct kubeconfig_source){ .path = str_from(argv[1]) }, &memory,
                            &access, &err);
    b.tap.inner = r == 0 ? transport_new(b.loop, &access, &err) : NULL;
    if (b.tap.inner == NULL) {
        fprintf(stderr, "bench-drain: %s\n", err.msg);
        host_loop_free(b.loop);
        return 1;
    }
    r = bench_run(&b, str_from(argv[2]));
    transport_free(b.tap.inner);
    host_loop_free(b.loop);
    return r;
}
