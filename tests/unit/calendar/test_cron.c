#include "calendar/cron.h"
#include "calendar/day.h"
#include "tests/unit/calendar/zone_fixture.h"

static struct cron cron_of(const char *text)
{
    struct cron c = { 0 };
    struct err err = { 0 };
    if (cron_parse(str_from(text), &c, &err) < 0) {
        check_fail(__FILE__, __LINE__, "%s", err.msg);
    }
    return c;
}

static bool cron_same(const struct cron *a, const struct cron *b)
{
    return a->minutes == b->minutes && a->hours == b->hours && a->days == b->days &&
           a->months == b->months && a->weekdays == b->weekdays && a->any_day == b->any_day &&
           a->any_weekday == b->any_weekday;
}

TEST(cron_reads_the_same_pattern_in_many_words)
{
    static const char *const pairs[][2] = {
        { "0 0 * * *", "@daily" },
        { "0 0 * * *", "  @midnight\t" },
        { "0 * * * *", "@hourly" },
        { "0 0 * * 7", "@weekly" },
        { "0 0 1 * *", "@monthly" },
        { "0 0 1 1 *", "@yearly" },
        { "0 0 1 jan *", "@annually" },
        { "0,15,30,45 * * * *", "*/15\t*  ? * *" },
        { "0 22,23 * * 1,2,3,4,5", "0 22/1 * * MON-fri" },
        { "5 4 * * 5,6,0", "5 4 * * fri-sun" },
        { "5 4 * * 5,6,0", "5 4 * * 5-7" },
        { "5 4 * * 5,6,0", "5 4 * * 5-0" },
        { "5 4 * * 0", "5 4 * * sun-sun" },
        { "5 4 * * 1,3,5", "5 4 * * 1/2" },
        { "10,30,50 8 * 3,6,9,12 *", "10-50/20 8 * mar/3 *" },
        { "0 8,10,12,14,16,18,20,22 * * *", "0 8/2 * * */1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        check_case((int64_t)i);
        struct cron a = cron_of(pairs[i][0]);
        struct cron b = cron_of(pairs[i][1]);
        CHECK(cron_same(&a, &b));
    }
    check_case(-1);
}

TEST(cron_names_the_field_that_is_wrong)
{
    static const char *const cases[][2] = {
        { "61 * * * *", "cron '61 * * * *': minute: found '61', want 0 to 59" },
        { "* 24 * * *", "cron '* 24 * * *': hour: found '24', want 0 to 23" },
        { "* * 0 * *", "cron '* * 0 * *': day of the month: found '0', want 1 to 31" },
        { "* * * foo *", "cron '* * * foo *': month: found 'foo', want 1 to 12 or jan to dec" },
        { "* * * * 8", "cron '* * * * 8': weekday: found '8', want 0 to 7 or sun to sat" },
        { "? * * * *", "cron '? * * * *': minute: found '?', want 0 to 59" },
        { "1, * * * *", "cron '1, * * * *': minute: found '', want 0 to 59" },
        { "1- * * * *", "cron '1- * * * *': minute: found '', want 0 to 59" },
        { "5-x * * * *", "cron '5-x * * * *': minute: found 'x', want 0 to 59" },
        { "5-1 * * * *", "cron '5-1 * * * *': minute: found '5-1', want a range that goes up" },
        { "*/0 * * * *", "cron '*/0 * * * *': minute: found step '0', want 1 to 59" },
        { "*/ * * * *", "cron '*/ * * * *': minute: found step '', want 1 to 59" },
        { "*/60 * * * *", "cron '*/60 * * * *': minute: found step '60', want 1 to 59" },
        { "* * * *", "cron '* * * *': found 4 fields, want minute, hour, day of the month, month "
                     "and weekday" },
        { "", "cron '': found 0 fields, want minute, hour, day of the month, month and weekday" },
        { "* * * * * *", "cron '* * * * * *': found '*' behind the fifth field, want nothing" },
        { "0 0 30 2 *",
          "cron '0 0 30 2 *': found days that no such month has, want one that comes" },
        { "0 0 31 2,4,6,9,11 *", "cron '0 0 31 2,4,6,9,11 *': found days that no such month has, "
                                 "want one that comes" },
        { "@reboot", "cron '@reboot': want @hourly, @daily, @midnight, @weekly, @monthly, "
                     "@yearly, @annually or five fields" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct cron c = { .minutes = 77 };
        struct err err = { 0 };
        CHECK_EQ(cron_parse(str_from(cases[i][0]), &c, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i][1]);
        CHECK_EQ(c.minutes, 77);
    }
    check_case(-1);
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct cron c;
    struct err err = { 0 };
    CHECK_EQ(cron_parse(arena_printf(&a, "%300s", "* * * * *"), &c, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "cron: found 300 bytes, want 256 at most");
}

TEST(cron_finds_the_next_time)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    static const struct {
        const char *pattern;
        const char *zone; /* NULL: UTC */
        int after[5];
        int next[5]; /* UTC */
    } cases[] = {
        { "30 22 * * mon-fri", NULL, { 2026, 5, 1, 22, 29 }, { 2026, 5, 1, 22, 30 } },
        { "30 22 * * mon-fri", NULL, { 2026, 5, 1, 22, 30 }, { 2026, 5, 4, 22, 30 } },
        { "0 0 29 2 *", NULL, { 2096, 3, 1, 0, 0 }, { 2104, 2, 29, 0, 0 } },
        { "0 0 13 * 5", NULL, { 2026, 5, 1, 0, 0 }, { 2026, 5, 8, 0, 0 } },
        { "0 0 13 * 5", NULL, { 2026, 5, 8, 0, 0 }, { 2026, 5, 13, 0, 0 } },
        { "0 0 */2 * 5", NULL, { 2026, 5, 1, 0, 0 }, { 2026, 5, 3, 0, 0 } },
        { "0 0 * * */2", NULL, { 2026, 5, 1, 0, 0 }, { 2026, 5, 2, 0, 0 } },
        { "0 0 1-31 * 1", NULL, { 2026, 5, 5, 0, 0 }, { 2026, 5, 6, 0, 0 } },
        { "59 23 31 12 *", NULL, { 2026, 12, 31, 23, 59 }, { 2027, 12, 31, 23, 59 } },
        { "30 2 * * *", "Berlin", { 2026, 3, 28, 2, 0 }, { 2026, 3, 29, 1, 0 } }, /* jumped over */
        { "30 2 * * *", "Berlin", { 2026, 3, 29, 1, 0 }, { 2026, 3, 30, 0, 30 } },
        { "30 2 * * *", "Berlin", { 2026, 10, 24, 2, 0 }, { 2026, 10, 25, 0, 30 } }, /* twice */
        { "30 2 * * *", "Berlin", { 2026, 10, 25, 0, 30 }, { 2026, 10, 26, 1, 30 } },
        { "30 * * * *", "Berlin", { 2026, 3, 29, 0, 30 }, { 2026, 3, 29, 1, 30 } },
        { "30 * * * *", "Berlin", { 2026, 10, 25, 0, 30 }, { 2026, 10, 25, 1, 30 } },
        { "0 12 30 12 *", "Apia", { 2011, 12, 29, 0, 0 }, { 2011, 12, 30, 10, 0 } },
        { "0 12 29 2 *", "Berlin", { 2096, 3, 1, 0, 0 }, { 2104, 2, 29, 11, 0 } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        const int *from = cases[i].after;
        const int *to = cases[i].next;
        const struct zone *z = cases[i].zone == NULL ? NULL : zones_load(cases[i].zone, &a);
        struct cron c = cron_of(cases[i].pattern);
        usec_t after = SECONDS(zones_civil_seconds(from[0], from[1], from[2], from[3], from[4]));
        CHECK_EQ(cron_next(&c, z, after),
                 SECONDS(zones_civil_seconds(to[0], to[1], to[2], to[3], to[4])));
    }
    check_case(-1);
    struct cron c = cron_of("* * * * *");
    CHECK_EQ(cron_next(&c, NULL, -1), 0);
    CHECK_EQ(cron_next(&c, NULL, MINUTES(-1) - 1), MINUTES(-1));
    CHECK_EQ(cron_next(&c, NULL, USEC_NEVER - 1), USEC_NEVER);
    c.days = 0; /* no text gives this */
    c.any_weekday = true;
    CHECK_EQ(cron_next(&c, NULL, 0), USEC_NEVER);
}

static bool cron_shows(const struct cron *c, int64_t local)
{
    struct civil t = civil_from_sec(local);
    bool day = (c->days & UINT32_C(1) << t.day) != 0;
    bool weekday = (c->weekdays & 1u << t.weekday) != 0;
    bool either = !c->any_day && !c->any_weekday;
    return (c->minutes & UINT64_C(1) << t.minute) != 0 && (c->hours & UINT32_C(1) << t.hour) != 0 &&
           (c->months & 1u << t.month) != 0 && (either ? day || weekday : day && weekday);
}

/* Lives through every minute: a time counts when clocks show it or have just jumped over it, and
 * not again when they have been put back. */
static int cron_walk(const struct cron *c, const struct zone *z, int64_t from, int64_t until)
{
    bool every_hour = c->hours == 0xffffff;
    struct zone_span span = zone_at(z, from);
    int64_t shown = from + span.offset;
    usec_t next = cron_next(c, z, SECONDS(from) - 1);
    int found = 0;
    for (int64_t sec = from; sec < until; sec += 60) {
        if (sec >= span.until) {
            span = zone_at(z, sec);
        }
        int64_t local = sec + span.offset;
        bool match = every_hour && cron_shows(c, local);
        for (; !every_hour && shown <= local; shown += 60) {
            match = match || cron_shows(c, shown);
        }
        if (match) {
            CHECK_EQ(next, SECONDS(sec));
            next = cron_next(c, z, SECONDS(sec));
            found++;
        } else {
            CHECK(next > SECONDS(sec));
        }
    }
    return found;
}

TEST(cron_agrees_with_every_minute_of_years)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    static const struct {
        const char *pattern;
        const char *zone;
        int years;
        int found;
    } cases[] = {
        { "30 22 * * mon-fri", NULL, 8, 2088 },
        { "0 0 29 2 *", NULL, 10, 3 },
        { "15 2 */10 * *", "Berlin", 4, 0 },
        { "*/30 1-3 * * *", "Lord_Howe", 4, 0 },
        { "45 * * 3,4,10 sun", "Berlin", 4, 0 },
        { "0 0 1,15 * fri", "Casablanca", 4, 0 },
        { "@weekly", "Nuuk", 8, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        const struct zone *z = cases[i].zone == NULL ? NULL : zones_load(cases[i].zone, &a);
        struct cron c = cron_of(cases[i].pattern);
        int found = cron_walk(&c, z, zones_civil_seconds(2020, 1, 1, 0, 0),
                              zones_civil_seconds(2020 + cases[i].years, 1, 1, 0, 0));
        CHECK(cases[i].found == 0 ? found > 50 : found == cases[i].found);
    }
    check_case(-1);
}

/* A field as text, and what it means. */
static struct str cron_invent(struct rng *rng, struct arena *a, int low, int high, uint64_t *bits,
                              bool *any)
{
    struct str text = STR_NONE;
    *bits = 0;
    *any = false;
    uint32_t items = 1 + rng_below(rng, 3);
    for (uint32_t i = 0; i < items; i++) {
        int from = low + (int)rng_below(rng, (uint32_t)(high - low + 1));
        int to = from + (int)rng_below(rng, (uint32_t)(high - from + 1));
        int step = 1 + (int)rng_below(rng, 20);
        struct str item;
        switch (rng_below(rng, 6)) {
        case 0:
            item = arena_printf(a, "%d-%d/%d", from, to, step);
            break;
        case 1:
            item = arena_printf(a, "%d-%d", from, to);
            step = 1;
            break;
        case 2:
            item = arena_printf(a, "*/%d", step);
            from = low;
            to = high;
            *any = *any || step == 1;
            break;
        case 3:
            item = STR("*");
            from = low;
            to = high;
            step = 1;
            *any = true;
            break;
        default:
            item = arena_printf(a, "%d", from);
            to = from;
        }
        for (; from <= to; from += step) {
            *bits |= UINT64_C(1) << from;
        }
        text = i == 0 ? item : arena_printf(a, STR_FMT "," STR_FMT, STR_ARG(text), STR_ARG(item));
    }
    return text;
}

PROPERTY(cron_agrees_with_every_minute_around_a_transition)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    uint64_t bits[5];
    bool any[5];
    static const int bounds[5][2] = { { 0, 59 }, { 0, 23 }, { 1, 31 }, { 1, 12 }, { 0, 6 } };
    struct str text = STR_NONE;
    for (int i = 0; i < 5; i++) {
        struct str field = cron_invent(rng, &a, bounds[i][0], bounds[i][1], &bits[i], &any[i]);
        text = arena_printf(&a, STR_FMT " " STR_FMT, STR_ARG(text), STR_ARG(field));
    }
    struct cron want = { .minutes = bits[0],
                         .hours = (uint32_t)bits[1],
                         .days = (uint32_t)bits[2],
                         .months = (uint16_t)bits[3],
                         .weekdays = (uint8_t)bits[4],
                         .any_day = any[2],
                         .any_weekday = any[4] };
    struct cron c;
    struct err err = { 0 };
    if (cron_parse(text, &c, &err) < 0) {
        CHECK(str_contains(str_from(err.msg), STR("found days that no such month has")));
        return;
    }
    CHECK(cron_same(&c, &want));
    const struct zone *z = zones_load(zones_names[rng_below(rng, ARRAY_LEN(zones_names))], &a);
    int64_t start = zones_civil_seconds(2005, 1, 1, 0, 0) + rng_below(rng, 30000) * DAY_SEC;
    int64_t until = zone_at(z, start).until;
    start = until == INT64_MAX ? start : until / 60 * 60 - 3 * DAY_SEC;
    (void)cron_walk(&c, z, start, start + 8 * DAY_SEC); /* it may have none in this week */
}

TEST(cron_window_opens_for_its_duration)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct cron_window w = { .cron = cron_of("0 22 * * *"),
                             .duration = HOURS(4),
                             .zone = zones_load("Berlin", &a) };
    usec_t start =
        SECONDS(zones_civil_seconds(2026, 10, 24, 20, 0)); /* clocks go back in this night */
    struct cron_answer answer = cron_window_at(&w, start - 1);
    CHECK(!answer.open);
    CHECK_EQ(answer.next, start);
    answer = cron_window_at(&w, start);
    CHECK(answer.open);
    CHECK_EQ(answer.next, start + HOURS(4));
    CHECK(cron_window_at(&w, start + HOURS(4) - 1).open);
    answer = cron_window_at(&w, start + HOURS(4));
    CHECK(!answer.open);
    CHECK_EQ(answer.next, start + HOURS(25));
}

TEST(cron_windows_that_touch_are_one)
{
    struct cron_window w = { .cron = cron_of("0,30 8-9 * * *"), .duration = MINUTES(30) };
    struct cron_answer answer = cron_window_at(&w, HOURS(8));
    CHECK(answer.open);
    CHECK_EQ(answer.next, HOURS(10));
    w.duration = MINUTES(29);
    CHECK_EQ(cron_window_at(&w, HOURS(8)).next, HOURS(8) + MINUTES(29));
    /* Open for ever: it is looked at again now and then. */
    w = (struct cron_window){ .cron = cron_of("* * * * *"), .duration = MINUTES(2) };
    answer = cron_window_at(&w, HOURS(8));
    CHECK(answer.open);
    CHECK(answer.next > HOURS(9));
}

/* Whatever touches, overlaps or leaves out: the answer is that of each window for itself. */
PROPERTY(cron_window_tells_the_first_change)
{
    static const char *const patterns[] = { "0 2 * * *",     "*/20 9-17 * * 1-5", "15,45 * * * *",
                                            "0 0 1 * *",     "@hourly",           "0 */6 * * sun",
                                            "7 3,4 13 * fri" };
    struct cron_window w = { .cron = cron_of(patterns[rng_below(rng, ARRAY_LEN(patterns))]),
                             .duration = MINUTES(1 + rng_below(rng, 400)) };
    usec_t now = rng_usec(rng, 0, DAYS(3650));
    struct cron_answer answer = cron_window_at(&w, now);
    CHECK(answer.next > now);
    for (int i = 0; i < 30; i++) {
        usec_t at = i == 0 ? answer.next - 1 : rng_usec(rng, now, answer.next - 1);
        bool open = false;
        for (int64_t minute = at / MINUTES(1); SECONDS(minute * 60) > at - w.duration; minute--) {
            open = open || cron_shows(&w.cron, minute * 60);
        }
        CHECK_EQ(open, answer.open);
    }
    CHECK(answer.open || cron_shows(&w.cron, answer.next / SECONDS(1)));
}
