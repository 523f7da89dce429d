#include "calendar/wait.h"
#include "tests/unit/calendar/vector_fixture.h"

/* Go's Duration.Seconds(). */
static double wait_seconds(int64_t ns)
{
    int64_t whole = ns / 1000000000;
    return (double)whole + (double)(ns % 1000000000) / 1e9;
}

TEST(wait_passes_as_recorded)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *all = jval_get(vectors_load("vectors/schedule.json", &a), STR("cases"));
    int cases = 0;
    JVAL_EACH (all, one) {
        bool excludes = vectors_kind(one, "waitExclude");
        if (!excludes && !vectors_kind(one, "wait")) {
            continue;
        }
        vectors_enter(one);
        cases++;
        struct schedule_config config;
        schedule_parse(&config, one, &a);
        struct wait w = { .duration_ns = schedule_duration(&config, "duration") };
        if (excludes) {
            w.exclude = schedule_weekdays(&config, "exclude");
            config.invalid = config.invalid || w.exclude == 0;
        }
        CHECK_EQ(!config.invalid, vectors_ok(one));
        if (config.invalid) {
            continue;
        }
        struct timestamp now = schedule_timestamp(one, "now");
        struct wait_answer answer = wait_at(&w, schedule_timestamp(one, "last_transition"), now);
        CHECK_EQ(answer.passed, jval_bool(jval_get(one, STR("passed")), false));
        CHECK(answer.next > timestamp_to_usec(now));
        double want = 0;
        bool told = jval_f64(jval_at(one, "info.remaining_seconds"), &want);
        CHECK_EQ(told, !answer.passed);
        CHECK(wait_seconds(answer.remaining_ns) == want);
    }
    check_case(-1);
    CHECK_EQ(cases, 77);
}

TEST(wait_says_when_it_ends)
{
    struct wait w = { .duration_ns = 600000000000 };
    struct timestamp last = { .sec = 1000, .nsec = 500 };
    struct wait_answer answer = wait_at(&w, last, (struct timestamp){ .sec = 1200 });
    CHECK(!answer.passed);
    CHECK_EQ(answer.next, 1600000001); /* the first microsecond after 1600.000000500 */
    answer = wait_at(&w, last, timestamp_from_usec(answer.next));
    CHECK(answer.passed);
    CHECK_EQ(answer.next, USEC_NEVER);
    w.duration_ns = INT64_MAX;
    answer = wait_at(&w, (struct timestamp){ .sec = INT64_MAX / 1000000 }, last);
    CHECK_EQ(answer.next, USEC_NEVER);
}

/* An hour on a Sunday evening, Monday not counted: it is passed on Sunday, falls back on Monday as
 * the original's does once the clock shows the transition's time, and is passed from Tuesday on. */
TEST(wait_exclude_tells_its_way_through_an_excluded_day)
{
    struct wait w = { .duration_ns = 3600000000000, .exclude = 1 << 1 };
    int64_t sunday = 1646524800; /* 2022-03-06 */
    struct timestamp last = { .sec = sunday + INT64_C(12) * 3600 };
    struct wait_answer answer = wait_at(&w, last, last);
    static const struct {
        bool passed;
        usec_t at; /* after Sunday began */
    } story[] = {
        { false, HOURS(12) },
        { true, HOURS(13) + 1 },
        { false, HOURS(36) },
        { true, HOURS(48) },
    };
    for (size_t i = 1; i < ARRAY_LEN(story); i++) {
        check_case((int64_t)i);
        CHECK_EQ(answer.passed, story[i - 1].passed);
        CHECK_EQ(answer.next, SECONDS(sunday) + story[i].at);
        answer = wait_at(&w, last, timestamp_from_usec(answer.next));
    }
    check_case(-1);
    CHECK(answer.passed);
}

TEST(wait_that_counts_no_day_never_passes)
{
    struct wait w = { .duration_ns = 3600000000000, .exclude = DAY_WEEK };
    struct timestamp last = { .sec = 1646568000 };
    struct wait_answer answer = wait_at(&w, last, (struct timestamp){ .sec = last.sec + 864000 });
    CHECK(!answer.passed);
    CHECK_EQ(answer.next, USEC_NEVER);
}

TEST(wait_looks_again_at_very_long_waits)
{
    /* Six days a week do not count: 200 of them take four years. */
    struct wait w = { .duration_ns = INT64_C(200) * 86400000000000, .exclude = 0x7e };
    struct timestamp last = { .sec = 1646568000 };
    struct timestamp now = last;
    struct wait_answer answer = wait_at(&w, last, now);
    int looks = 0;
    while (!answer.passed) {
        CHECK(answer.next > timestamp_to_usec(now));
        now = timestamp_from_usec(answer.next);
        answer = wait_at(&w, last, now);
        looks++;
    }
    CHECK(looks > 1 && looks < 12);
    CHECK(now.sec - last.sec > 1390 * DAY_SEC && now.sec - last.sec < 1410 * DAY_SEC);
}

/* What is answered holds until the time that is told, and not at it. */
PROPERTY(wait_tells_the_first_change)
{
    struct wait w = {
        .duration_ns = ((int64_t)rng_below(rng, 40) * 3600 + rng_below(rng, 2)) * 1000000000,
        .exclude = (uint8_t)rng_below(rng, 128),
    };
    struct timestamp last = { .sec = 1700000000 + rng_below(rng, 604800),
                              .nsec = (int32_t)(rng_below(rng, 3) * 250000000),
                              .offset = ((int32_t)rng_below(rng, 27) - 12) * 3600 };
    usec_t now = SECONDS(last.sec) + SECONDS(rng_below(rng, 864000)) - SECONDS(43200);
    for (int i = 0; i < 6; i++) {
        struct wait_answer answer = wait_at(&w, last, timestamp_from_usec(now));
        CHECK(answer.next > now);
        usec_t until = MIN(answer.next, now + DAYS(30));
        for (int probe = 0; probe < 40; probe++) {
            usec_t at = rng_usec(rng, now, until - 1);
            CHECK_EQ(wait_at(&w, last, timestamp_from_usec(at)).passed, answer.passed);
        }
        CHECK_EQ(wait_at(&w, last, timestamp_from_usec(until - 1)).passed, answer.passed);
        if (answer.next == USEC_NEVER) {
            break;
        }
        CHECK_EQ(wait_at(&w, last, timestamp_from_usec(answer.next)).passed, !answer.passed);
        now = answer.next;
    }
}
