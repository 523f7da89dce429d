#include "operation/rollout.h"

#include "tests/check.h"

#define MACHINES 12u

/* A story of MACHINES machines m0 … m11, whose hashes are their numbers. */
struct story {
    struct rollout_machine machines[MACHINES];
    struct rollout_wave waves[3];
    struct rollout_spec spec;
    struct rollout_record record;
    struct rollout_facts facts;
    struct rollout_plan plan;
    struct arena memory;
};

static void story_init(struct story *s)
{
    *s = (struct story){
        .spec = { .max_concurrent = { 2, false }, .max_active = 256, .waves = s->waves },
        .facts = { .now = HOURS(1), .machines = s->machines, .machine_n = MACHINES },
    };
    for (uint32_t i = 0; i < MACHINES; i++) {
        s->machines[i] = (struct rollout_machine){
            .name = arena_printf(&s->memory, "m%u", i),
            .hash = i,
            .can_run = true,
            .ready = true,
        };
    }
}

static void story_done(struct story *s)
{
    arena_done(&s->memory);
}

static void story_decide(struct story *s)
{
    rollout_decide(&s->spec, &s->record, &s->facts, &s->memory, &s->plan);
    s->record = s->plan.record;
}

/* "m0 m1": who is next. */
static struct str story_next(struct story *s)
{
    struct str text = STR("");
    story_decide(s);
    for (uint32_t i = 0; i < s->plan.next_n; i++) {
        text = arena_printf(&s->memory, STR_FMT "%s" STR_FMT, STR_ARG(text), i > 0 ? " " : "",
                            STR_ARG(s->machines[s->plan.next[i]].name));
    }
    return text;
}

static void story_set(struct story *s, uint32_t from, uint32_t to, enum rollout_progress progress)
{
    for (uint32_t i = from; i < to; i++) {
        s->machines[i].progress = progress;
    }
}

TEST(rollout_resolve_rounds_percentages_up)
{
    CHECK_EQ(rollout_resolve((struct rollout_count){ 10, true }, 12), 2);
    CHECK_EQ(rollout_resolve((struct rollout_count){ 1, true }, 3), 1);
    CHECK_EQ(rollout_resolve((struct rollout_count){ 100, true }, 3), 3);
    CHECK_EQ(rollout_resolve((struct rollout_count){ 10, true }, 0), 0);
    CHECK_EQ(rollout_resolve((struct rollout_count){ 5, false }, 3), 5);
}

TEST(rollout_hash_is_the_same_for_ever)
{
    CHECK_EQ(rollout_hash(STR("worker-1")), (int64_t)0x13029f9e83d15b3dULL);
}

TEST(rollout_takes_as_many_as_may_be_active)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    CHECK_STR(story_next(&s), "m0 m1");
    s.machines[0].progress = ROLLOUT_ACTIVE;
    CHECK_STR(story_next(&s), "m1");
    s.machines[1].progress = ROLLOUT_ACTIVE;
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_CONCURRENT);
    s.spec.max_concurrent = (struct rollout_count){ 25, true };
    CHECK_STR(story_next(&s), "m2");
    s.spec.max_active = 2;
    CHECK_STR(story_next(&s), "");
}

TEST(rollout_keeps_neighbours_apart)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    s.spec.max_concurrent.value = 12;
    s.spec.spread_max = 1;
    for (uint32_t i = 0; i < MACHINES; i++) {
        s.machines[i].spread = i % 3 == 0 ? STR("a") : i % 3 == 1 ? STR("b") : STR("c");
    }
    CHECK_STR(story_next(&s), "m0 m1 m2");
    s.machines[0].progress = ROLLOUT_ACTIVE;
    CHECK_STR(story_next(&s), "m1 m2");
    s.machines[1].progress = ROLLOUT_ACTIVE;
    s.machines[2].progress = ROLLOUT_ACTIVE;
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_SPREAD);
}

/* It goes on as soon as its wait is over, for it has its place already. */
TEST(rollout_keeps_neighbours_apart_from_one_that_a_failure_left_cordoned)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    s.spec.max_concurrent.value = 12;
    s.spec.spread_max = 1;
    for (uint32_t i = 0; i < MACHINES; i++) {
        s.machines[i].spread = i % 2 == 0 ? STR("a") : STR("b");
    }
    s.machines[0].progress = ROLLOUT_BACKOFF;
    CHECK_STR(story_next(&s), "m1 m2");
    s.machines[0].kept = true;
    CHECK_STR(story_next(&s), "m1");
}

TEST(rollout_orders_by_plane_then_service_then_rule)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    s.spec.max_concurrent.value = 4;
    s.machines[7].control_plane = true;
    CHECK_STR(story_next(&s), "m7 m0 m1 m2");
    s.spec.control_plane = ROLLOUT_CP_LAST;
    CHECK_STR(story_next(&s), "m0 m1 m2 m3");
    s.spec.control_plane = ROLLOUT_CP_IGNORE;
    for (uint32_t i = 0; i < MACHINES; i++) {
        s.machines[i].served = i < 10 ? HOURS(1) : 0;
        s.machines[i].zone = i % 2 == 0 ? STR("b") : STR("a");
        s.machines[i].label = 100 - (int64_t)i;
        s.machines[i].created = HOURS(i % 4);
    }
    CHECK_STR(story_next(&s), "m10 m11 m0 m1"); /* never served comes first */
    s.spec.by = ROLLOUT_BY_ZONE;
    CHECK_STR(story_next(&s), "m11 m10 m1 m3");
    s.spec.by = ROLLOUT_BY_LABEL;
    CHECK_STR(story_next(&s), "m11 m10 m9 m8");
    s.spec.by = ROLLOUT_BY_AGE;
    CHECK_STR(story_next(&s), "m10 m11 m0 m4");
    s.machines[5].asked_for = true;
    CHECK_STR(story_next(&s), "m5 m10 m11 m0");
}

static void story_with_waves(struct story *s)
{
    s->waves[0] =
        (struct rollout_wave){ .name = STR("canary"), .size = { 1, false }, .soak = MINUTES(30) };
    s->waves[1] = (struct rollout_wave){ .name = STR("early"), .size = { 50, true } };
    s->spec.wave_n = 2;
    s->spec.max_concurrent.value = 12;
}

TEST(rollout_goes_through_waves_and_soaks)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    story_with_waves(&s);
    CHECK_STR(story_next(&s), "m0");
    CHECK_STR(s.plan.wave, "canary");
    s.machines[0].progress = ROLLOUT_ACTIVE;
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_ACTIVE);
    s.machines[0].progress = ROLLOUT_SUCCEEDED;
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_SOAK);
    CHECK_EQ(s.plan.at, HOURS(1) + MINUTES(30));
    s.facts.now += MINUTES(30);
    CHECK_STR(story_next(&s), "m1 m2 m3 m4 m5");
    CHECK_STR(s.plan.wave, "early");
    story_set(&s, 1, 6, ROLLOUT_SUCCEEDED);
    CHECK_STR(story_next(&s), "m6 m7 m8 m9 m10 m11");
    CHECK_STR(s.plan.wave, "rest");
    story_set(&s, 6, 12, ROLLOUT_SUCCEEDED);
    CHECK_STR(story_next(&s), "");
    CHECK(s.plan.done);
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_NONE);
}

TEST(rollout_replaces_a_canary_that_cannot_run)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    story_with_waves(&s);
    s.machines[0].can_run = false;
    CHECK_STR(story_next(&s), "m1");
    for (uint32_t i = 0; i < MACHINES; i++) {
        s.machines[i].can_run = false;
    }
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.record.wave, 0); /* nobody ran, so nobody is promoted */
}

TEST(rollout_needs_a_success_to_go_on)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    story_with_waves(&s);
    s.machines[0].progress = ROLLOUT_FAILED;
    s.machines[0].can_run = false; /* a canary that died of it is not replaced */
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_NO_SUCCESS);
    s.machines[0].progress = ROLLOUT_SKIPPED; /* nothing changed: nothing to soak for */
    CHECK_STR(story_next(&s), "m1 m2 m3 m4 m5");
}

TEST(rollout_waits_for_machines_of_a_selector_that_matches_none)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    story_with_waves(&s);
    s.waves[0] = (struct rollout_wave){ .name = STR("gpu"), .by_selector = true };
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_NO_CANDIDATE);
    s.machines[7].selectors = 1;
    CHECK_STR(story_next(&s), "m7");
}

TEST(rollout_restarts_a_soak_once)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    story_with_waves(&s);
    s.machines[0].progress = ROLLOUT_SUCCEEDED;
    story_decide(&s);
    s.facts.now += MINUTES(20);
    s.machines[0].ready = false;
    s.machines[0].excused = true;
    story_decide(&s);
    CHECK_EQ(s.record.restarts, 0);
    s.machines[0].excused = false;
    story_decide(&s);
    CHECK_EQ(s.record.restarts, 1);
    s.facts.now += MINUTES(5);
    s.machines[0].ready = true;
    story_decide(&s);
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_SOAK);
    CHECK_EQ(s.plan.at, s.facts.now + MINUTES(30));
    s.waves[0].gates_fail = true;
    story_decide(&s);
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_SOAK_FAILED);
}

TEST(rollout_ends_no_soak_before_all_gates_have_answered)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    story_with_waves(&s);
    s.waves[0].soak = 0;
    s.waves[0].gates_unknown = true;
    s.machines[0].progress = ROLLOUT_SUCCEEDED;
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_SOAK);
    s.waves[0].gates_unknown = false;
    CHECK_STR(story_next(&s), "m1 m2 m3 m4 m5");
}

TEST(rollout_gives_a_soak_up_that_lasts_for_ever)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    story_with_waves(&s);
    s.machines[0].progress = ROLLOUT_SUCCEEDED;
    s.waves[0].gates_fail = true;
    story_decide(&s);
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_SOAK);
    CHECK_EQ(s.plan.at, s.facts.now + HOURS(3));
    s.facts.now = s.plan.at;
    story_decide(&s);
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_SOAK_FAILED);
}

TEST(rollout_waits_for_an_approval)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    story_with_waves(&s);
    s.waves[0].manual = true;
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_APPROVAL);
    s.machines[4].asked_for = true;
    CHECK_STR(story_next(&s), "m4"); /* a person has named it */
    s.waves[0].approved = true;
    CHECK_STR(story_next(&s), "m4 m0");
}

TEST(rollout_paces_and_tells_of_back_off)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    s.spec.pace = MINUTES(2);
    s.facts.last_end = s.facts.now - MINUTES(1);
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_PACE);
    CHECK_EQ(s.plan.at, s.facts.now + MINUTES(1));
    s.facts.now = s.plan.at;
    CHECK_STR(story_next(&s), "m0 m1");
    story_set(&s, 0, 12, ROLLOUT_SUCCEEDED);
    s.machines[3].progress = ROLLOUT_BACKOFF;
    CHECK_STR(story_next(&s), "");
    CHECK_EQ(s.plan.wait, ROLLOUT_WAIT_BACKOFF);
    CHECK(!s.plan.done);
}

/* ── whatever happens ──────────────────────────────────────────────────────────────────────── */

static void story_randomize(struct story *s, struct rng *rng)
{
    s->spec.max_concurrent.value = 1 + rng_below(rng, 5);
    s->spec.spread_max = rng_below(rng, 3);
    s->spec.by = rng_below(rng, 5);
    s->spec.control_plane = rng_below(rng, 3);
    s->spec.wave_n = rng_below(rng, 3);
    s->waves[0] = (struct rollout_wave){ .size = { 1 + rng_below(rng, 3), false },
                                         .soak = MINUTES(rng_below(rng, 20)) };
    s->waves[1] = (struct rollout_wave){ .size = { 20 + rng_below(rng, 50), true } };
    for (uint32_t i = 0; i < MACHINES; i++) {
        struct rollout_machine *m = &s->machines[i];
        m->hash = rng_below(rng, 6);
        m->spread = rng_below(rng, 2) == 0 ? STR("a") : STR("b");
        m->control_plane = rng_below(rng, 5) == 0;
    }
}

static void story_check_limits(const struct story *s)
{
    uint32_t active = 0;
    uint32_t in_a = 0;
    for (uint32_t i = 0; i < MACHINES; i++) {
        bool is_active = s->machines[i].progress == ROLLOUT_ACTIVE;
        active += is_active ? 1 : 0;
        in_a += is_active && str_eq(s->machines[i].spread, STR("a")) ? 1 : 0;
    }
    CHECK(active <= s->spec.max_concurrent.value);
    if (s->spec.spread_max > 0) {
        CHECK(in_a <= s->spec.spread_max && active - in_a <= s->spec.spread_max);
    }
}

PROPERTY(rollout_serves_everybody_within_its_limits)
{
    CLEANUP(story_done)
    struct story s;
    story_init(&s);
    story_randomize(&s, rng);
    for (uint32_t step = 0; step < 400 && !s.plan.done; step++) {
        story_decide(&s);
        for (uint32_t i = 0; i < s.plan.next_n; i++) {
            s.machines[s.plan.next[i]].progress = ROLLOUT_ACTIVE;
        }
        story_check_limits(&s);
        uint32_t i = rng_below(rng, MACHINES);
        if (s.machines[i].progress == ROLLOUT_ACTIVE) {
            s.machines[i].progress = rng_below(rng, 4) == 0 ? ROLLOUT_SKIPPED : ROLLOUT_SUCCEEDED;
        } else if (s.machines[i].progress == ROLLOUT_TODO) {
            s.machines[i].can_run = rng_below(rng, 3) > 0 || step > 200;
        }
        s.facts.now += MINUTES(1);
    }
    for (uint32_t i = 0; i < MACHINES; i++) {
        s.machines[i].can_run = true;
    }
    for (uint32_t step = 0; step < 400; step++) {
        story_decide(&s);
        for (uint32_t i = 0; i < s.plan.next_n; i++) {
            s.machines[s.plan.next[i]].progress = ROLLOUT_SUCCEEDED;
        }
        for (uint32_t i = 0; i < MACHINES; i++) {
            if (s.machines[i].progress == ROLLOUT_ACTIVE) {
                s.machines[i].progress = ROLLOUT_SUCCEEDED;
            }
        }
        s.facts.now += MINUTES(1);
    }
    CHECK(s.plan.done);
}
