#include "tests/swarm/random_limits.h"

static void draw_preparation(struct random_limit *l, struct rng *rng)
{
    l->drains = rng_chance(rng, 500);
    l->keeps_cordon = rng_chance(rng, 120);
    l->on_drain = (enum random_limits_on_drain)rng_below(rng, RANDOM_LIMITS_ON_DRAIN);
    l->drain_s = 10 + rng_below(rng, 60);
    l->grace_s = rng_chance(rng, 600) ? 0 : rng_below(rng, 60);
}

static void draw_limit(struct random_limit *l, struct rng *rng)
{
    bool percent = rng_chance(rng, 250);
    l->percent = percent ? 10 + rng_below(rng, 60) : 0;
    l->count = rng_chance(rng, 600) ? 1 : 2 + rng_below(rng, 2);
    l->class = rng_chance(rng, 600) ? -1 : (int32_t)rng_below(rng, RANDOM_LIMITS_CLASSES);
    l->exclusive = l->class >= 0 && rng_chance(rng, 400);
    l->priority = (int32_t)rng_below(rng, 3);
    l->not_ready = rng_chance(rng, 300);
    l->unschedulable = rng_chance(rng, 200);
    l->no_repair = rng_chance(rng, 200);
    l->gap_s = rng_chance(rng, 200) ? 10 + rng_below(rng, 20) : 0;
    l->approved_timeout = rng_chance(rng, 600);
    l->approved_timeout_closes = rng_chance(rng, 300);
    l->progress_timeout = rng_chance(rng, 500);
    l->on_progress =
        rng_chance(rng, 500)
            ? RANDOM_LIMITS_RELEASE
            : (enum random_limits_on_progress)rng_below(rng, RANDOM_LIMITS_ON_PROGRESS);
    /* A drain that is refused again and again ends some time. */
    l->rejections_max = 2 + rng_below(rng, 3);
    draw_preparation(l, rng);
}

void random_limits_make(struct random_limits *t, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed ^ 0x7e1b5a2dULL);
    *t = (struct random_limits){ .n = 1 + rng_below(&rng, RANDOM_LIMITS_MAX) };
    for (uint32_t i = 0; i < RANDOM_LIMITS_MAX; i++) {
        draw_limit(&t->limits[i], &rng);
    }
    /* Cordons that stay and count fill a limit for good. */
    for (uint32_t i = 0; i < RANDOM_LIMITS_MAX; i++) {
        for (uint32_t j = 0; j < RANDOM_LIMITS_MAX; j++) {
            t->limits[i].keeps_cordon = t->limits[i].keeps_cordon && !t->limits[j].unschedulable;
        }
    }
    t->finished_ttl = rng_chance(&rng, 300) ? rng_usec(&rng, 1, 60) * SECONDS(1) : 0;
    t->profile = rng_chance(&rng, 300);
    /* By a draw of its own: what other seeds tell stays the same. */
    rng_init(&rng, seed ^ 0x5ca1ab1eULL);
    t->profile_max = t->profile && rng_chance(&rng, 500);
}

static void print_preparation(const struct random_limit *l, struct buf *out)
{
    static const char *const on_drain[RANDOM_LIMITS_ON_DRAIN] = { "Reject", "Proceed", "Force" };
    if (l->drains) {
        buf_printf(out,
                   ",\"drain\":{\"timeoutSeconds\":%u,\"onTimeout\":\"%s\",\"postGraceSeconds\":%u,"
                   "\"retrySeconds\":2,\"uncordonAfter\":%s}",
                   l->drain_s, on_drain[l->on_drain], l->grace_s,
                   l->keeps_cordon ? "false" : "true");
    }
}

static void print_timeouts(const struct random_limit *l, struct buf *out)
{
    static const char *const on_progress[RANDOM_LIMITS_ON_PROGRESS] = { "Release", "Requeue",
                                                                        "Close", "Hold" };
    buf_printf(out, ",\"timeouts\":{\"rejectionBackoffSeconds\":15,\"maxRejections\":%u",
               l->rejections_max);
    if (l->gap_s > 0) {
        buf_printf(out, ",\"betweenOperationsSeconds\":%u", l->gap_s);
    }
    if (l->approved_timeout) {
        buf_printf(out, ",\"approvedSeconds\":%u,\"onApprovedTimeout\":\"%s\"",
                   RANDOM_LIMITS_APPROVED_S, l->approved_timeout_closes ? "Close" : "Requeue");
    }
    if (l->progress_timeout) {
        buf_printf(out, ",\"inProgressSeconds\":%u,\"onInProgressTimeout\":\"%s\"",
                   RANDOM_LIMITS_IN_PROGRESS_S, on_progress[l->on_progress]);
    }
    buf_add(out, STR("}"));
}

void random_limit_print(const struct random_limit *l, struct buf *out)
{
    buf_add(out, STR("{\"type\":\"node\""));
    if (l->percent > 0) {
        buf_printf(out, ",\"limit\":%u", l->percent);
    } else {
        buf_printf(out, ",\"limit\":0,\"minimum\":%u,\"maxCount\":%u", l->count, l->count);
    }
    if (l->class >= 0) {
        buf_printf(out, ",\"selector\":{\"matchLabels\":{\"example.com/class\":\"%c\"}}",
                   'a' + (int)l->class);
    }
    if (l->exclusive) {
        buf_printf(out, ",\"scope\":\"Exclusive\",\"priority\":%d", l->priority);
    }
    if (l->not_ready || l->unschedulable) {
        buf_printf(out, ",\"policies\":[%s%s%s]", l->not_ready ? "\"NotReady\"" : "",
                   l->not_ready && l->unschedulable ? "," : "",
                   l->unschedulable ? "\"Unschedulable\"" : "");
    }
    if (l->no_repair) {
        buf_add(out, STR(",\"repairUnavailable\":false"));
    }
    print_preparation(l, out);
    print_timeouts(l, out);
    buf_add(out, STR("}"));
}
