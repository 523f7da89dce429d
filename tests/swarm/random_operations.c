#include "tests/swarm/random_operations.h"

static void draw_operation(struct random_operation *op, struct rng *rng)
{
    bool cron = rng_chance(rng, 300);
    op->every_min = cron ? 20 + 10 * rng_below(rng, 2) : 0;
    op->reboot = rng_chance(rng, 550)
                     ? RANDOM_REBOOT_NEVER
                     : (enum random_reboot)rng_below(rng, RANDOM_REBOOT_ALWAYS + 1);
    op->bare = op->reboot != RANDOM_REBOOT_NEVER && rng_chance(rng, 200);
    op->quiet = op->reboot == RANDOM_REBOOT_NEVER && rng_chance(rng, 250);
    op->preflight = !op->bare && rng_chance(rng, 300);
}

static void draw_maintenance(struct random_maintenance *m, struct rng *rng)
{
    static const uint32_t periods[] = { 15, 20, 30 };
    *m = (struct random_maintenance){ .operation_n = 1 + rng_below(rng, RANDOM_OPERATIONS_MAX) };
    for (uint32_t i = 0; i < m->operation_n; i++) {
        draw_operation(&m->operations[i], rng);
    }
    if (rng_chance(rng, 550)) {
        m->period_min = periods[rng_below(rng, ARRAY_LEN(periods))];
        m->opens_at = rng_below(rng, m->period_min);
        m->open_min = 5 + rng_below(rng, m->period_min - 9); /* and closed for four at least */
    }
    m->class = rng_chance(rng, 600) ? -1 : (int32_t)rng_below(rng, RANDOM_LIMITS_CLASSES);
    m->max_concurrent = 1 + rng_below(rng, 3);
    m->spread = rng_chance(rng, 350);
    m->canary = rng_chance(rng, 300) ? 1 + rng_below(rng, 2) : 0;
    m->soak_s = 10 * rng_below(rng, 7);
    m->cordon = rng_chance(rng, 600) ? 0 : 1 + rng_below(rng, 2);
    m->drain = rng_chance(rng, 400);
    m->drain_s = 60 + rng_below(rng, 240);
    m->retries = rng_below(rng, 4);
    m->pause = rng_chance(rng, 250);
    m->on_failure = rng_chance(rng, 500) ? 0 : 1 + rng_below(rng, 2);
    m->kept_s = rng_chance(rng, 250) ? 30 + rng_below(rng, 120) : 0;
    m->min_ready_s = rng_below(rng, 20);
    m->priority = (int32_t)rng_below(rng, 3);
}

/* Every machine is to be served within some ticks: a first wave would be served again and again at
 * each tick, and a window that is closed most of the time lets one machine through between two. */
static void make_room_for_ticks(struct random_maintenance *m)
{
    if (random_maintenance_has_cron(m)) {
        m->canary = 0;
        m->open_min = m->period_min > 0 ? m->period_min - 4 : 0;
        m->max_concurrent = MAX(m->max_concurrent, 2u);
    }
}

void random_operations_make(struct random_operations *r, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed ^ 0x4f9d2c61ULL);
    *r = (struct random_operations){ .n = 1 + rng_below(&rng, RANDOM_MAINTENANCES_MAX) };
    for (uint32_t i = 0; i < r->n; i++) {
        draw_maintenance(&r->maintenances[i], &rng);
        make_room_for_ticks(&r->maintenances[i]);
    }
    r->has_limit = rng_chance(&rng, 600);
    r->limit = (struct random_limit){
        .count = 1 + rng_below(&rng, 3),
        .class = rng_chance(&rng, 600) ? -1 : (int32_t)rng_below(&rng, RANDOM_LIMITS_CLASSES),
        .drains = rng_chance(&rng, 300),
        .drain_s = 60,
        .on_drain = RANDOM_LIMITS_REJECT,
        .rejections_max = 100, /* a visit's request is not to end for good */
    };
    r->unlimited_visits = rng_below(&rng, 3);
    r->failing = rng_chance(&rng, 500) ? rng_below(&rng, 500) : 0;
}

bool random_maintenance_is_open(const struct random_maintenance *m, usec_t wall)
{
    if (m->period_min == 0) {
        return true;
    }
    usec_t period = MINUTES(m->period_min);
    usec_t since = (wall + period - MINUTES(m->opens_at)) % period; /* hours hold whole periods */
    return since < MINUTES(m->open_min);
}

bool random_maintenance_has_cron(const struct random_maintenance *m)
{
    bool cron = false;
    for (uint32_t i = 0; i < m->operation_n; i++) {
        cron = cron || m->operations[i].every_min > 0;
    }
    return cron;
}

static void print_window(const struct random_maintenance *m, struct buf *out)
{
    if (m->period_min == 0) {
        return;
    }
    buf_add(out, STR(",\"window\":{\"recurrences\":[{\"cron\":\""));
    for (uint32_t at = m->opens_at; at < 60; at += m->period_min) {
        buf_printf(out, "%s%u", at == m->opens_at ? "" : ",", at);
    }
    buf_printf(out, " * * * *\",\"duration\":\"%um\"}],\"minRemaining\":\"1m\"}", m->open_min);
}

static void print_rollout(const struct random_maintenance *m, struct buf *out)
{
    buf_printf(out, ",\"rollout\":{\"maxConcurrent\":%u,\"minReady\":\"%us\"", m->max_concurrent,
               m->min_ready_s);
    if (m->spread) {
        buf_add(out, STR(",\"spread\":{\"key\":\"topology.kubernetes.io/zone\",\"max\":1}"));
    }
    if (m->canary > 0) {
        buf_printf(out, ",\"waves\":[{\"name\":\"canary\",\"size\":%u,\"soak\":\"%us\"}]",
                   m->canary, m->soak_s);
    }
    buf_add(out, STR("}"));
}

static void print_care(const struct random_maintenance *m, struct buf *out)
{
    static const char *const cordons[] = { "Auto", "Always", "Never" };
    static const char *const on_failure[] = { "Auto", "KeepCordoned", "Uncordon" };
    bool reboots = false;
    for (uint32_t i = 0; i < m->operation_n; i++) {
        reboots = reboots || m->operations[i].reboot != RANDOM_REBOOT_NEVER;
    }
    /* A drain needs a cordon. */
    buf_printf(out, ",\"disruption\":{\"cordon\":\"%s\"",
               cordons[m->drain || reboots ? MIN(m->cordon, 1u) : m->cordon]);
    if (m->drain || reboots) {
        buf_printf(out, ",\"drain\":{\"timeout\":\"%us\"}", m->drain_s);
    }
    buf_printf(out,
               "},\"failurePolicy\":{\"retries\":%u,\"backoff\":{\"initial\":\"5s\",\"factor\":2,"
               "\"max\":\"30s\"},\"onLimit\":\"%s\",\"pauseAfter\":\"50%%\","
               "\"onNodeFailure\":\"%s\"",
               m->retries, m->pause ? "Pause" : "Continue", on_failure[m->on_failure]);
    if (m->kept_s > 0) {
        buf_printf(out, ",\"failedNodeTTL\":\"%us\"", m->kept_s);
    }
    buf_add(out, STR("}"));
}

static void print_operation(const struct random_operation *op, uint32_t index, uint32_t version,
                            struct buf *out)
{
    static const char *const reboots[] = { "Never", "IfRequired", "Always" };
    buf_printf(out, "%s{\"name\":\"op%u\",\"type\":\"%s\",\"timeout\":\"5m\"", index > 0 ? "," : "",
               index, op->every_min > 0 ? "cron" : "one-shot");
    if (op->every_min > 0) {
        buf_printf(out, ",\"schedule\":\"*/%u * * * *\"", op->every_min);
    }
    if (!op->bare) {
        buf_printf(out, ",\"script\":\"work %u\"", version);
    } else {
        buf_printf(out, ",\"nonce\":\"n%u\"", version);
    }
    if (op->preflight) {
        buf_add(out, STR(",\"preflight\":{\"script\":\"preflight\"}"));
    }
    if (op->quiet) {
        buf_add(out, STR(",\"disruptive\":\"Never\""));
    }
    if (op->reboot != RANDOM_REBOOT_NEVER) {
        buf_printf(out,
                   ",\"reboot\":{\"policy\":\"%s\",\"timeout\":\"10m\",\"minInterval\":\"0s\"}",
                   reboots[op->reboot]);
    }
    buf_add(out, STR("}"));
}

void random_maintenance_print(const struct random_maintenance *m, uint32_t index, uint32_t version,
                              struct buf *out)
{
    buf_printf(out,
               "{\"apiVersion\":\"drydock.dev/v1alpha1\",\"kind\":\"NodeMaintenance\","
               "\"metadata\":{\"name\":\"m%u\"},\"spec\":{\"priority\":%d",
               index, m->priority);
    print_window(m, out);
    if (m->class >= 0) {
        buf_printf(out,
                   ",\"nodeSeries\":{\"selector\":{\"matchLabels\":{\"example.com/class\":"
                   "\"%c\"}}}",
                   'a' + (int)m->class);
    }
    print_rollout(m, out);
    print_care(m, out);
    buf_add(out, STR(",\"operations\":["));
    for (uint32_t i = 0; i < m->operation_n; i++) {
        print_operation(&m->operations[i], i, version, out);
    }
    buf_add(out, STR("]}}"));
}
