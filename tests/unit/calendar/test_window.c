#include "calendar/window.h"
#include "tests/unit/calendar/vector_fixture.h"
#include "tests/unit/calendar/zone_fixture.h"

static void window_read_excludes(struct schedule_config *c, struct window *w)
{
    const struct jval *list = jval_get(c->root, STR("exclude"));
    JVAL_EACH (list, item) {
        struct day_date date = { .month = 1, .day = 1 };
        schedule_check(c, day_parse_date(jval_str(item), &date, &c->err));
        window_exclude(w, date);
    }
}

TEST(window_passes_as_recorded)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *all = jval_get(vectors_load("vectors/schedule.json", &a), STR("cases"));
    int cases = 0;
    JVAL_EACH (all, one) {
        if (!vectors_kind(one, "timeWindow")) {
            continue;
        }
        vectors_enter(one);
        cases++;
        struct schedule_config config;
        schedule_parse(&config, one, &a);
        struct window w = { .open = schedule_time_of_day(&config, "start"),
                            .close = schedule_time_of_day(&config, "end"),
                            .weekdays = schedule_weekdays(&config, "weekdays") };
        window_read_excludes(&config, &w);
        schedule_check(&config, config.invalid ? 0 : window_check(&w, &config.err));
        CHECK_EQ(!config.invalid, vectors_ok(one));
        if (config.invalid) {
            continue;
        }
        struct timestamp now = schedule_timestamp(one, "now");
        struct window_answer answer = window_at(&w, now);
        CHECK_EQ(answer.passed, jval_bool(jval_get(one, STR("passed")), false));
        CHECK_STR(str_from(answer.reason), jval_str(jval_at(one, "info.reason")));
        CHECK(answer.next > timestamp_to_usec(now));
    }
    check_case(-1);
    CHECK_EQ(cases, 42);
}

TEST(window_names_what_is_wrong)
{
    struct err err = { 0 };
    struct window w = { .open = 3600, .close = 7200 };
    CHECK_EQ(window_check(&w, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "a timewindow needs to have weekdays specified");
    w.weekdays = DAY_WEEK;
    CHECK_EQ(window_check(&w, &err), 0);
    w.open = 22 * 3600 + 300;
    CHECK_EQ(window_check(&w, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "found a window from 22:05 to 02:00, want the end after the start, or "
                       "'overnight: true'");
    w.overnight = true;
    CHECK_EQ(window_check(&w, &err), 0);
    w.close = w.open;
    CHECK_EQ(window_check(&w, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "found a window from 22:05 to the same time, want two different ones");
}

TEST(window_tells_when_it_opens_and_closes)
{
    struct window w = { .weekdays = 1 << 1, .open = 36000, .close = 39600 };
    struct timestamp now = { .sec = zones_civil_seconds(2026, 3, 3, 12, 0) }; /* a Tuesday */
    struct window_answer answer = window_at(&w, now);
    CHECK(!answer.passed);
    CHECK_STR(answer.reason, "current day of week forbidden");
    /* The end is not part of it: the first microsecond behind it is. */
    CHECK_EQ(answer.next, SECONDS(zones_civil_seconds(2026, 3, 9, 10, 0)) + 1);
    answer = window_at(&w, timestamp_from_usec(answer.next - 1));
    CHECK(!answer.passed && answer.reason == NULL);
    CHECK_EQ(answer.next, SECONDS(zones_civil_seconds(2026, 3, 9, 10, 0)) + 1);
    answer = window_at(&w, timestamp_from_usec(answer.next));
    CHECK(answer.passed);
    CHECK_EQ(answer.next, SECONDS(zones_civil_seconds(2026, 3, 9, 11, 0)));
    w.close = w.open;
    CHECK_EQ(window_at(&w, now).next, USEC_NEVER);
}

TEST(window_that_hardly_ever_opens_is_looked_at_again)
{
    struct window w = { .weekdays = DAY_WEEK, .open = 36000, .close = 39600 };
    for (int month = 1; month <= 12; month++) {
        w.exclude[month] = UINT32_MAX;
    }
    w.exclude[2] &= ~(UINT32_C(1) << 29);
    usec_t now = SECONDS(zones_civil_seconds(2026, 3, 3, 0, 0));
    int looks = 0;
    while (!window_at(&w, timestamp_from_usec(now)).passed) {
        usec_t next = window_at(&w, timestamp_from_usec(now)).next;
        CHECK(next > now);
        now = next;
        looks++;
    }
    CHECK_EQ(now, SECONDS(zones_civil_seconds(2028, 2, 29, 10, 0)) + 1);
    CHECK(looks < 5);
}

/* Friday 22:00 to Saturday 04:00 belongs to Friday. */
TEST(window_over_midnight_belongs_to_its_evening)
{
    struct window w = { .weekdays = 1 << 5, .overnight = true, .open = 79200, .close = 14400 };
    static const struct {
        int day; /* of May 2026; the first is a Friday */
        int hour;
        int passed;
        int next_day;
        int next_hour;
        int after;
    } cases[] = {
        { 1, 3, false, 1, 22, true },  { 1, 22, false, 1, 22, true }, { 1, 23, true, 2, 4, false },
        { 2, 0, true, 2, 4, false },   { 2, 3, true, 2, 4, false },   { 2, 4, false, 8, 22, true },
        { 2, 23, false, 8, 22, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct timestamp now = { .sec =
                                     zones_civil_seconds(2026, 5, cases[i].day, cases[i].hour, 0) };
        struct window_answer answer = window_at(&w, now);
        CHECK_EQ(answer.passed, cases[i].passed);
        CHECK_EQ(answer.next,
                 SECONDS(zones_civil_seconds(2026, 5, cases[i].next_day, cases[i].next_hour, 0)) +
                     (cases[i].after ? 1 : 0));
    }
    check_case(-1);
    window_exclude(&w, (struct day_date){ .month = 5, .day = 1 });
    struct window_answer answer =
        window_at(&w, (struct timestamp){ .sec = zones_civil_seconds(2026, 5, 2, 3, 0) });
    CHECK(!answer.passed);
    CHECK_STR(answer.reason, "day/month forbidden");
}

TEST(window_follows_the_clocks_of_its_zone)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    static const struct {
        uint32_t open, close; /* minutes of the day in Berlin */
        int month, day;       /* in 2026 */
        int from, until;      /* minutes after that day's midnight in UTC */
    } cases[] = {
        { 120, 240, 1, 10, 60, 180 },   { 120, 240, 7, 10, 0, 120 },
        { 60, 240, 3, 29, 0, 120 },    /* 02:00 to 03:00 is left out */
        { 150, 240, 3, 29, 60, 120 },  /* opens where clocks land */
        { 60, 150, 3, 29, 0, 60 },     /* closes there */
        { 60, 240, 10, 25, -60, 180 }, /* 02:00 to 03:00 comes twice */
        { 60, 150, 10, 25, -60, 30 },  /* closes at the first 02:30 */
        { 150, 240, 10, 25, 30, 180 }, /* opens at the first 02:30 */
        { 60, 180, 10, 25, -60, 120 }, /* 03:00 comes once */
        { 180, 240, 10, 25, 120, 180 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct window w = { .weekdays = DAY_WEEK,
                            .open = cases[i].open * 60,
                            .close = cases[i].close * 60,
                            .zone = zones_load("Berlin", &a) };
        usec_t midnight = SECONDS(zones_civil_seconds(2026, cases[i].month, cases[i].day, 0, 0));
        usec_t from = midnight + MINUTES(cases[i].from);
        struct window_answer answer = window_at(&w, timestamp_from_usec(midnight - HOURS(2)));
        CHECK(!answer.passed);
        /* Where clocks jump over the start they are behind it at once. */
        CHECK(answer.next == from + 1 || (cases[i].month == 3 && answer.next == from));
        answer = window_at(&w, timestamp_from_usec(from + 1));
        CHECK(answer.passed);
        CHECK_EQ(answer.next, midnight + MINUTES(cases[i].until));
        CHECK(!window_at(&w, timestamp_from_usec(answer.next)).passed);
    }
    check_case(-1);
}

/* By intervals: a window of a day is from the first instant that shows its start to the first that
 * shows its end. */
static bool window_oracle(const struct window *w, usec_t now)
{
    int64_t sec = now / SECONDS(1);
    int64_t today = day_of(sec + zone_at(w->zone, sec).offset);
    bool wraps = w->overnight && w->close < w->open;
    for (int64_t day = today - 3; day <= today + 3; day++) {
        struct civil date = civil_from_sec(day * DAY_SEC);
        if ((w->weekdays >> date.weekday & 1) == 0 || (w->exclude[date.month] >> date.day & 1)) {
            continue;
        }
        struct zone_instants open = zone_instants(w->zone, day * DAY_SEC + w->open);
        struct zone_instants close =
            zone_instants(w->zone, (day + (wraps ? 1 : 0)) * DAY_SEC + w->close);
        if ((now > SECONDS(open.first) || (open.fit == ZONE_GAP && now == SECONDS(open.first))) &&
            now < SECONDS(close.first)) {
            return true;
        }
    }
    return false;
}

static struct window window_random(struct rng *rng, struct arena *a)
{
    struct window w = { .weekdays = (uint8_t)(1 + rng_below(rng, 127)),
                        .overnight = rng_chance(rng, 500),
                        .open = rng_below(rng, 96) * 900,
                        .close = rng_below(rng, 96) * 900 };
    if (w.close <= w.open && !w.overnight) {
        w.close = MIN(w.open + 1800, UINT32_C(86340));
    }
    for (int i = 0; i < 20; i++) {
        window_exclude(&w, (struct day_date){ .month = 1 + (int)rng_below(rng, 12),
                                              .day = 1 + (int)rng_below(rng, 28) });
    }
    if (rng_chance(rng, 800)) {
        w.zone = zones_load(zones_names[rng_below(rng, ARRAY_LEN(zones_names))], a);
    }
    return w;
}

/* What is answered is what intervals say, holds until the time that is told, and not at it. */
PROPERTY(window_tells_the_first_change)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct window w = window_random(rng, &a);
    int64_t start =
        zones_civil_seconds(2011, 12, 20, 0, 0) + rng_below(rng, 50) * INT64_C(31557600);
    if (w.zone != NULL && rng_chance(rng, 700)) {
        int64_t until = zone_at(w.zone, start).until; /* where it is hardest */
        start = until == INT64_MAX ? start : until - 3 * DAY_SEC;
    }
    usec_t now = SECONDS(start) + (rng_chance(rng, 500) ? 1 : 0);
    for (int i = 0; i < 12; i++) {
        struct window_answer answer = window_at(&w, timestamp_from_usec(now));
        CHECK_EQ(answer.passed, window_oracle(&w, now));
        CHECK(answer.next > now);
        if (answer.next == USEC_NEVER) {
            CHECK_EQ(w.open, w.close);
            break;
        }
        for (int probe = 0; probe < 8; probe++) {
            usec_t at = rng_usec(rng, now, answer.next - 1);
            CHECK_EQ(window_oracle(&w, at), answer.passed);
        }
        CHECK_EQ(window_oracle(&w, answer.next - 1), answer.passed);
        CHECK_EQ(window_oracle(&w, answer.next), !answer.passed);
        now = answer.next;
    }
}
