#include "tests/swarm/random_limits.h"

static void draw_preparation(struct terms_limit *l, struct rng *rng)
{
    l->drains = rng_chance(rng, 500);
    l->keeps_cordon = rng_chance(rng, 120);
    l->on_drain = (enum terms_on_drain)rng_below(rng, TERMS_ON_DRAIN);
    l->drain_s = 10 + rng_below(rng, 60);
    l->grace_s = rng_chance(rng, 600) ? 0 : rng_below(rng, 60);
}

static void draw_limit(struct terms_limit *l, struct rng *rng)
{
    bool percent = rng_chance(rng, 250);
    l->percent = percent ? 10 + rng_below(rng, 60) : 0;
    l->count = rng_chance(rng, 600) ? 1 : 2 + rng_below(rng, 2);
    l->class = rng_chance(rng, 600) ? -1 : (int32_t)rng_below(rng, TERMS_CLASSES);
    l->exclusive = l->class >= 0 && rng_chance(rng, 400);
    l->priority = (int32_t)rng_below(rng, 3);
    l->not_ready = rng_chance(rng, 300);
    l->unschedulable = rng_chance(rng, 200);
    l->no_repair = rng_chance(rng, 200);
    l->gap_s = rng_chance(rng, 200) ? 10 + rng_below(rng, 20) : 0;
    l->times_approval = rng_chance(rng, 600);
    l->closes = rng_chance(rng, 300);
    l->times_work = rng_chance(rng, 500);
    l->on_progress = rng_chance(rng, 500)
                         ? TERMS_RELEASE
                         : (enum terms_on_progress)rng_below(rng, TERMS_ON_PROGRESS);
    /* A drain that is refused again and again ends some time. */
    l->most_rejections = 2 + rng_below(rng, 3);
    draw_preparation(l, rng);
}

void terms_make(struct terms *t, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed ^ 0x7e1b5a2dULL);
    *t = (struct terms){ .n = 1 + rng_below(&rng, TERMS_LIMITS_MAX) };
    for (uint32_t i = 0; i < TERMS_LIMITS_MAX; i++) {
        draw_limit(&t->limits[i], &rng);
    }
    /* Cordons that stay and count fill a limit for good. */
    for (uint32_t i = 0; i < TERMS_LIMITS_MAX; i++) {
        for (uint32_t j = 0; j < TERMS_LIMITS_MAX; j++) {
            t->limits[i].keeps_cordon = t->limits[i].keeps_cordon && !t->limits[j].unschedulable;
        }
    }
    t->finished_ttl = rng_chance(&rng, 300) ? rng_usec(&rng, 1, 60) * SECONDS(1) : 0;
    t->profile = rng_chance(&rng, 300);
    /* By a draw of its own: what other seeds tell stays the same. */
    rng_init(&rng, seed ^ 0x5ca1ab1eULL);
    t->records = t->profile && rng_chance(&rng, 500);
}

static void print_preparation(const struct terms_limit *l, struct buf *out)
{
    static const char *const on_drain[TERMS_ON_DRAIN] = { "Reject", "Proceed", "Force" };
    if (l->drains) {
        buf_printf(out,
                   ",\"drain\":{\"timeoutSeconds\":%u,\"onTimeout\":\"%s\",\"postGraceSeconds\":%u,"
                   "\"retrySeconds\":2,\"uncordonAfter\":%s}",
                   l->drain_s, on_drain[l->on_drain], l->grace_s,
                   l->keeps_cordon ? "false" : "true");
    }
}

static void print_timeouts(const struct terms_limit *l, struct buf *out)
{
    static const char *const on_progress[TERMS_ON_PROGRESS] = { "Release", "Requeue", "Close",
                                                                "Hold" };
    buf_printf(out, ",\"timeouts\":{\"rejectionBackoffSeconds\":15,\"maxRejections\":%u",
               l->most_rejections);
    if (l->gap_s > 0) {
        buf_printf(out, ",\"betweenOperationsSeconds\":%u", l->gap_s);
    }
    if (l->times_approval) {
        buf_printf(out, ",\"approvedSeconds\":%u,\"onApprovedTimeout\":\"%s\"", TERMS_APPROVED_S,
                   l->closes ? "Close" : "Requeue");
    }
    if (l->times_work) {
        buf_printf(out, ",\"inProgressSeconds\":%u,\"onInProgressTimeout\":\"%s\"",
                   TERMS_IN_PROGRESS_S, on_progress[l->on_progress]);
    }
    buf_add(out, STR("}"));
}

void terms_print(const struct terms_limit *l, struct buf *out)
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
