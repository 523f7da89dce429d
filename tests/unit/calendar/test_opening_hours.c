#include "calendar/opening_hours.h"
#include "tests/unit/calendar/zone_fixture.h"

static usec_t at(int year, int month, int day, int hour, int minute)
{
    return SECONDS(zones_civil_seconds(year, month, day, hour, minute));
}

/* Searches to the end of a search, however many turns it takes. */
static enum opening_result next_of(const struct opening_plan *p, usec_t after, struct interval *ret)
{
    struct opening_search search = opening_search_from(after);
    enum opening_result result;
    while ((result = opening_next(p, &search, ret)) == OPENING_AGAIN) {
    }
    return result;
}

static void check_opens(const struct opening_plan *p, usec_t after, usec_t start, usec_t end)
{
    struct interval found = { 0 };
    CHECK_EQ(next_of(p, after, &found), OPENING_FOUND);
    CHECK_EQ(found.start, start);
    CHECK_EQ(found.end, end);
}

static struct recurrence weekly(uint8_t weekdays, uint32_t from, uint32_t to)
{
    return (struct recurrence){
        .kind = RECURRENCE_WEEKLY, .weekdays = weekdays, .from = from * 3600, .to = to * 3600
    };
}

static struct recurrence once(usec_t start, usec_t end)
{
    return (struct recurrence){ .kind = RECURRENCE_ONCE, .once = { .start = start, .end = end } };
}

#define PLAN(...)                                                                                  \
    {                                                                                              \
        .hours = (const struct opening_hours *const[]){ __VA_ARGS__ },                             \
        .hours_n = ARRAY_LEN(((const struct opening_hours *const[]){ __VA_ARGS__ })),              \
    }

TEST(opening_hours_that_touch_are_one)
{
    const struct recurrence open[] = { weekly(1u << 5, 22, 24), weekly(1u << 6, 0, 2),
                                       weekly(1u << 6, 1, 3) };
    const struct opening_hours hours = { .open = open, .open_n = 3 };
    const struct opening_plan p = PLAN(&hours);
    check_opens(&p, at(2026, 5, 1, 0, 0), at(2026, 5, 1, 22, 0), at(2026, 5, 2, 3, 0));
    /* Open already: it starts where the search does. */
    check_opens(&p, at(2026, 5, 2, 1, 0), at(2026, 5, 2, 1, 0), at(2026, 5, 2, 3, 0));
    CHECK(opening_at(&p, at(2026, 5, 2, 2, 59)).open);
    CHECK(!opening_at(&p, at(2026, 5, 2, 3, 0)).open);
}

TEST(opening_hours_leave_out_only_their_own)
{
    const struct recurrence day = weekly(127, 8, 18);
    const struct recurrence lunch = weekly(127, 12, 13);
    const struct recurrence snack = weekly(127, 12, 14);
    const struct opening_hours with_lunch = {
        .open = &day, .open_n = 1, .closed = &lunch, .closed_n = 1
    };
    const struct opening_hours at_noon = { .open = &snack, .open_n = 1 };
    const struct opening_plan one = PLAN(&with_lunch);
    check_opens(&one, at(2026, 5, 1, 9, 0), at(2026, 5, 1, 9, 0), at(2026, 5, 1, 12, 0));
    check_opens(&one, at(2026, 5, 1, 12, 0), at(2026, 5, 1, 13, 0), at(2026, 5, 1, 18, 0));
    const struct opening_plan two = PLAN(&with_lunch, &at_noon);
    check_opens(&two, at(2026, 5, 1, 0, 0), at(2026, 5, 1, 8, 0), at(2026, 5, 1, 18, 0));
}

TEST(opening_hours_freeze_cuts_all)
{
    const struct recurrence always = weekly(127, 0, 24);
    const struct recurrence days = once(at(2026, 12, 20, 0, 0), at(2027, 1, 7, 0, 0));
    const struct opening_hours hours = { .open = &always, .open_n = 1 };
    const struct opening_hours freeze = { .open = &days, .open_n = 1 };
    const struct opening_hours *const freezes[] = { &freeze };
    struct opening_plan p = PLAN(&hours);
    struct interval found;
    CHECK_EQ(next_of(&p, at(2026, 1, 1, 0, 0), &found), OPENING_FOUND);
    CHECK_EQ(found.end, USEC_NEVER);
    p.freezes = freezes;
    p.freeze_n = 1;
    check_opens(&p, at(2026, 12, 1, 0, 0), at(2026, 12, 1, 0, 0), at(2026, 12, 20, 0, 0));
    check_opens(&p, at(2026, 12, 20, 0, 0), at(2027, 1, 7, 0, 0), USEC_NEVER);
}

TEST(opening_hours_that_never_open_say_so)
{
    const struct recurrence day = weekly(2, 8, 18);
    const struct recurrence all = weekly(127, 0, 24);
    const struct recurrence past = once(1, 2);
    const struct opening_hours shut = { .open = &day, .open_n = 1, .closed = &all, .closed_n = 1 };
    const struct opening_hours over = { .open = &past, .open_n = 1 };
    const struct opening_plan p = PLAN(&shut, &over);
    struct interval found;
    CHECK_EQ(next_of(&p, at(2026, 1, 1, 0, 0), &found), OPENING_NEVER);
    const struct opening_plan none = { 0 };
    CHECK_EQ(next_of(&none, at(2026, 1, 1, 0, 0), &found), OPENING_NEVER);
}

TEST(opening_hours_stop_for_breath)
{
    struct err err = { 0 };
    struct recurrence open[64];
    for (uint32_t i = 0; i < ARRAY_LEN(open); i++) {
        open[i] = (struct recurrence){ .kind = RECURRENCE_CRON, .duration = MINUTES(1) };
        CHECK_EQ(cron_parse(STR("*/2 * * * *"), &open[i].cron, &err), 0);
    }
    struct recurrence odd = open[0];
    CHECK_EQ(cron_parse(STR("1/2 * * * *"), &odd.cron, &err), 0);
    const struct opening_hours hours = {
        .open = open, .open_n = 64, .closed = &odd, .closed_n = 0
    };
    const struct opening_hours others = { .open = &odd, .open_n = 1 };
    const struct opening_plan p = PLAN(&hours, &others);
    struct opening_search search = opening_search_from(at(2026, 1, 1, 0, 0));
    struct interval found;
    CHECK_EQ(opening_next(&p, &search, &found), OPENING_AGAIN);
    CHECK(search.steps <= OPENING_STEPS_MAX + 66);
    enum opening_result result;
    int turns = 1;
    while ((result = opening_next(&p, &search, &found)) == OPENING_AGAIN) {
        turns++;
    }
    CHECK_EQ(result, OPENING_TOO_COMPLEX);
    CHECK(turns >= 98 && turns <= 102);
}

/* A plan at random, and each minute in which it is open, found by walking over all starts. */
#define MINUTES_MAX (INT64_C(60) * 24 * 60)

struct brute {
    usec_t from;
    bool open[MINUTES_MAX];
    bool hours[MINUTES_MAX];
};

static void mark(struct brute *b, bool *minutes, struct interval i, bool value)
{
    for (usec_t t = MAX(i.start, b->from); t < i.end; t += MINUTES(1)) {
        usec_t minute = (t - b->from) / MINUTES(1);
        if (minute >= MINUTES_MAX) {
            break;
        }
        minutes[minute] = value;
    }
}

static usec_t first_instant(const struct zone *z, int64_t local)
{
    return SECONDS(zone_instants(z, local).first);
}

static void mark_recurrence(struct brute *b, const struct recurrence *r, bool value)
{
    int64_t first = b->from / DAYS(1) - 9;
    usec_t end = b->from + MINUTES(MINUTES_MAX);
    for (int64_t day = first; day < first + 80 && r->kind == RECURRENCE_WEEKLY; day++) {
        if ((r->weekdays >> day_weekday(day) & 1) != 0) {
            int64_t last = r->to <= r->from ? day + 1 : day;
            mark(b, b->hours,
                 (struct interval){ .start = first_instant(r->zone, day * DAY_SEC + r->from),
                                    .end = first_instant(r->zone, last * DAY_SEC + r->to) },
                 value);
        }
    }
    if (r->kind == RECURRENCE_CRON) {
        for (usec_t t = b->from - r->duration - 1; t < end; t = cron_next(&r->cron, r->zone, t)) {
            bool is_start = t >= b->from - r->duration;
            mark(b, b->hours,
                 (struct interval){ .start = t, .end = is_start ? t + r->duration : t }, value);
        }
    }
    for (int64_t day = first; r->kind == RECURRENCE_RRULE && day < first + 80; day++) {
        if (rrule_next(&r->rule, day) == day) {
            usec_t start = first_instant(r->zone, day * DAY_SEC + r->from);
            mark(b, b->hours, (struct interval){ .start = start, .end = start + r->duration },
                 value);
        }
    }
}

static struct recurrence some_recurrence(struct rng *rng, const struct zone *zone, bool long_ones)
{
    static const char *const patterns[] = { "0 2 * * 0", "30 1-3 * * *", "15 */6 * * 1-5",
                                            "0 22 1,15 * *" };
    static const char *const rules[] = { "FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SU,WE",
                                         "FREQ=MONTHLY;BYDAY=-1SU",
                                         "FREQ=MONTHLY;BYMONTHDAY=1,-1" };
    struct err err = { 0 };
    struct recurrence r = { .zone = zone,
                            .weekdays = (uint8_t)(1 + rng_below(rng, 127)),
                            .from = rng_below(rng, 96) * 900,
                            .to = rng_below(rng, 97) * 900,
                            .duration = MINUTES(5 + rng_below(rng, long_ones ? 4000 : 300)) };
    switch (rng_below(rng, 3)) {
    case 0:
        r.kind = RECURRENCE_WEEKLY;
        r.to = r.to == r.from ? 86400 : r.to;
        break;
    case 1:
        r.kind = RECURRENCE_CRON;
        CHECK_EQ(cron_parse(str_from(patterns[rng_below(rng, 4)]), &r.cron, &err), 0);
        break;
    default:
        r.kind = RECURRENCE_RRULE;
        CHECK_EQ(rrule_parse(str_from(rules[rng_below(rng, 4)]), &r.rule, &err), 0);
        break;
    }
    return r;
}

static void mark_hours(struct brute *b, const struct opening_hours *hours, bool value)
{
    for (uint32_t i = 0; i < MINUTES_MAX; i++) {
        b->hours[i] = false;
    }
    for (uint32_t i = 0; i < hours->open_n; i++) {
        mark_recurrence(b, &hours->open[i], true);
    }
    for (uint32_t i = 0; i < hours->closed_n; i++) {
        mark_recurrence(b, &hours->closed[i], false);
    }
    for (uint32_t i = 0; i < MINUTES_MAX; i++) {
        b->open[i] = b->hours[i] ? value : b->open[i];
    }
}

PROPERTY(opening_hours_agree_with_every_minute)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct zone *zone = zones_load(zones_names[rng_below(rng, ARRAY_LEN(zones_names))], &a);
    struct recurrence items[9];
    for (uint32_t i = 0; i < ARRAY_LEN(items); i++) {
        items[i] = some_recurrence(rng, zone, i < 3);
    }
    const struct opening_hours first = { .open = &items[0],
                                         .open_n = 1 + rng_below(rng, 2),
                                         .closed = &items[3],
                                         .closed_n = rng_below(rng, 3) };
    const struct opening_hours second = { .open = &items[2], .open_n = rng_below(rng, 2) };
    const struct opening_hours freeze = { .open = &items[7], .open_n = rng_below(rng, 2) };
    const struct opening_hours *const freezes[] = { &freeze };
    struct opening_plan p = PLAN(&first, &second);
    p.freezes = freezes;
    p.freeze_n = 1;
    struct brute *b = ARENA_NEW(&a, struct brute);
    b->from = at(2026, rng_below(rng, 2) == 0 ? 3 : 10, 1, 0, 0); /* clocks change in these */
    mark_hours(b, &first, true);
    mark_hours(b, &second, true);
    mark_hours(b, &freeze, false);
    usec_t end = b->from + MINUTES(MINUTES_MAX);
    usec_t cursor = b->from;
    struct interval found = { .start = cursor, .end = cursor };
    while (cursor < end && next_of(&p, cursor, &found) == OPENING_FOUND) {
        for (usec_t t = cursor; t < MIN(found.end, end); t += MINUTES(1)) {
            CHECK_EQ(b->open[(t - b->from) / MINUTES(1)], t >= found.start);
        }
        CHECK(found.end == USEC_NEVER || !opening_at(&p, found.end).open);
        cursor = MIN(found.end, end);
    }
    for (usec_t t = cursor; t < end; t += MINUTES(1)) {
        CHECK(!b->open[(t - b->from) / MINUTES(1)]);
    }
}

/* Ten years in one plan, each minute of them. */
TEST(opening_hours_agree_with_every_minute_of_ten_years)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct recurrence open[] = { weekly(0x1e, 22, 4), weekly(1, 2, 6) };
    struct recurrence closed = { .kind = RECURRENCE_DATES };
    open[0].zone = zones_load("Berlin", &a);
    open[1].zone = open[0].zone;
    closed.zone = open[0].zone;
    CHECK_EQ(recurrence_parse_dates(STR("--12-20/--01-06"), &closed.dates, &err), 0);
    const struct opening_hours hours = {
        .open = open, .open_n = 2, .closed = &closed, .closed_n = 1
    };
    const struct opening_plan p = PLAN(&hours);
    usec_t cursor = at(2026, 1, 1, 0, 0);
    usec_t end = at(2036, 1, 1, 0, 0);
    struct interval found = { .start = cursor, .end = cursor };
    int64_t shown = INT64_MIN;
    int intervals = 0;
    for (usec_t t = cursor; t < end; t += MINUTES(1)) {
        if (t >= found.end) {
            CHECK_EQ(next_of(&p, t, &found), OPENING_FOUND);
            intervals++;
        }
        /* The clock as people see it, which does not count an hour twice. */
        shown = MAX(shown, t / SECONDS(1) + zone_at(open[0].zone, t / SECONDS(1)).offset);
        struct civil c = civil_from_sec(shown);
        struct civil evening =
            civil_from_sec(shown - INT64_C(4) * 3600); /* to which a night belongs */
        bool night = (c.hour >= 22 || c.hour < 4) && evening.weekday >= 1 && evening.weekday <= 4;
        bool sunday = c.weekday == 0 && c.hour >= 2 && c.hour < 6;
        bool holiday = (c.month == 12 && c.day >= 20) || (c.month == 1 && c.day <= 6);
        CHECK_EQ(t >= found.start && t < found.end, (night || sunday) && !holiday);
    }
    CHECK(intervals > 2400);
}
