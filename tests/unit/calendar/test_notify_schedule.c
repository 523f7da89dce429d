#include "calendar/notify_schedule.h"
#include "tests/unit/calendar/vector_fixture.h"

/* The schedule of a recorded case; false when it is of another kind. */
static bool notify_schedule_read(const struct jval *one, struct schedule_config *c,
                                 struct notify_schedule *n, struct arena *a)
{
    if (vectors_kind(one, "weekday") || jval_get(one, STR("last")) == NULL) {
        return false;
    }
    struct err err = { 0 };
    *n = (struct notify_schedule){ 0 };
    CHECK_EQ(notify_schedule_parse_kind(jval_str(jval_get(one, STR("kind"))), &n->kind, &err), 0);
    schedule_parse(c, one, a);
    switch (n->kind) {
    case NOTIFY_SCHEDULE_PERIODIC:
        n->span_ns = schedule_duration_or(c, "interval", NOTIFY_SCHEDULE_INTERVAL_NS);
        break;
    case NOTIFY_SCHEDULE_SCHEDULED:
        n->instant = schedule_time_of_day(c, "instant");
        n->weekdays = schedule_weekdays(c, "weekdays");
        break;
    case NOTIFY_SCHEDULE_ONESHOT:
        n->span_ns = schedule_duration_or(c, "delay", NOTIFY_SCHEDULE_DELAY_NS);
        break;
    }
    return true;
}

TEST(notify_schedule_is_due_as_recorded)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *all = jval_get(vectors_load("vectors/schedule.json", &a), STR("cases"));
    int cases = 0;
    JVAL_EACH (all, one) {
        struct schedule_config config;
        struct notify_schedule n;
        if (!notify_schedule_read(one, &config, &n, &a)) {
            continue;
        }
        vectors_enter(one);
        cases++;
        CHECK_EQ(!config.invalid, vectors_ok(one));
        struct str current = jval_str(jval_get(one, STR("current")));
        struct str previous = jval_str(jval_get(one, STR("previous")));
        struct notify_schedule_facts facts = {
            .moved = !str_eq(current, previous),
            .was_operational = str_eq(previous, STR("operational")),
            .transition = schedule_timestamp(one, "transition"),
            .last = schedule_timestamp(one, "last"),
            .now = schedule_timestamp(one, "now"),
        };
        struct notify_schedule_answer answer = notify_schedule_at(&n, &facts);
        CHECK_EQ(answer.due, jval_bool(jval_get(one, STR("due")), false));
        CHECK(!answer.due || answer.reason == NULL);
        CHECK(answer.next > timestamp_to_usec(facts.now));
    }
    check_case(-1);
    CHECK_EQ(cases, 111);
}

TEST(notify_schedule_kind_in_any_case)
{
    struct err err = { 0 };
    enum notify_schedule_kind kind;
    CHECK_EQ(notify_schedule_parse_kind(STR("OneShot"), &kind, &err), 0);
    CHECK_EQ(kind, NOTIFY_SCHEDULE_ONESHOT);
    CHECK_EQ(notify_schedule_parse_kind(STR("daily"), &kind, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "schedule type 'daily': want 'periodic', 'scheduled' or 'oneshot'");
}

#define MONDAY INT64_C(1772409600) /* 2026-03-02 */

TEST(notify_schedule_gives_the_words_of_the_original)
{
    struct notify_schedule_facts facts = { .now = { .sec = MONDAY }, .last = timestamp_zero };
    struct notify_schedule n = { .kind = NOTIFY_SCHEDULE_PERIODIC,
                                 .span_ns = NOTIFY_SCHEDULE_INTERVAL_NS };
    facts.was_operational = true;
    CHECK_STR(notify_schedule_at(&n, &facts).reason,
              "NotifyPeriodic: interval not passed or operational");
    facts.was_operational = false;
    facts.last = facts.now;
    CHECK_STR(notify_schedule_at(&n, &facts).reason,
              "NotifyPeriodic: interval not passed or operational");
    CHECK_STR(notify_schedule_at(&n, &facts).note, "NotifyPeriodic: no state change");
    CHECK_EQ(notify_schedule_at(&n, &facts).next, SECONDS(MONDAY + 3600));
    facts.moved = true;
    CHECK(notify_schedule_at(&n, &facts).note == NULL);
    facts.moved = false;

    n = (struct notify_schedule){ .kind = NOTIFY_SCHEDULE_SCHEDULED,
                                  .weekdays = 1 << 1,
                                  .instant = 3600 };
    CHECK_STR(notify_schedule_at(&n, &facts).reason,
              "NotifyScheduled: current time is before specified instant");
    facts.now.sec += 3600;
    CHECK_STR(notify_schedule_at(&n, &facts).reason, "NotifyScheduled: already triggered today");
    CHECK_EQ(notify_schedule_at(&n, &facts).next, SECONDS(MONDAY + 7 * DAY_SEC + 3600));
    facts.now.sec += DAY_SEC;
    CHECK_STR(notify_schedule_at(&n, &facts).reason, "NotifyScheduled: weekday not contained");

    n = (struct notify_schedule){ .kind = NOTIFY_SCHEDULE_ONESHOT,
                                  .span_ns = NOTIFY_SCHEDULE_DELAY_NS };
    facts.transition = timestamp_zero;
    CHECK_STR(notify_schedule_at(&n, &facts).reason, "NotifyOneshot: StateChange is zero");
    CHECK(notify_schedule_at(&n, &facts).loud);
    facts.transition = (struct timestamp){ .sec = MONDAY - 1 };
    CHECK_STR(notify_schedule_at(&n, &facts).reason, "NotifyOneshot: already notified");
    CHECK(!notify_schedule_at(&n, &facts).loud);
    facts.transition = facts.now;
    CHECK(notify_schedule_at(&n, &facts).reason == NULL);
    CHECK_EQ(notify_schedule_at(&n, &facts).next, SECONDS(facts.now.sec + 60));
}

TEST(notify_schedule_without_weekdays_is_never_due)
{
    struct notify_schedule n = { .kind = NOTIFY_SCHEDULE_SCHEDULED };
    struct notify_schedule_facts facts = { .now = { .sec = MONDAY } };
    CHECK_EQ(notify_schedule_at(&n, &facts).next, USEC_NEVER);
}

/* What is answered holds until the time that is told; it is due then if it was not. */
PROPERTY(notify_schedule_tells_when_it_is_due)
{
    struct notify_schedule n = {
        .kind = (enum notify_schedule_kind)rng_below(rng, 3),
        .span_ns = rng_below(rng, 100000) * INT64_C(1000000000),
        .instant = rng_below(rng, (uint32_t)DAY_SEC),
        .weekdays = (uint8_t)(1 + rng_below(rng, 127)),
    };
    struct notify_schedule_facts facts = {
        .transition = { .sec = MONDAY + rng_below(rng, 3000000) },
        .last = { .sec = MONDAY + rng_below(rng, 3000000), .offset = 7200 },
    };
    usec_t now = SECONDS(MONDAY + rng_below(rng, 3000000));
    facts.now = timestamp_from_usec(now);
    struct notify_schedule_answer answer = notify_schedule_at(&n, &facts);
    CHECK(answer.next > now);
    usec_t until = MIN(answer.next, now + DAYS(60));
    for (int probe = 0; probe < 50; probe++) {
        facts.now = timestamp_from_usec(rng_usec(rng, now, until - 1));
        CHECK_EQ(notify_schedule_at(&n, &facts).due, answer.due);
    }
    if (answer.next != USEC_NEVER && !answer.due) {
        facts.now = timestamp_from_usec(answer.next);
        CHECK(notify_schedule_at(&n, &facts).due);
    }
}
