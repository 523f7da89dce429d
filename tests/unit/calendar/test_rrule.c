#include <libical/ical.h>

#include "base/arena.h"
#include "calendar/rrule.h"
#include "tests/check.h"

static int64_t day_from(int year, int month, int day)
{
    struct civil c = { .year = year, .month = month, .day = day };
    return day_of(civil_to_sec(&c));
}

static struct rrule rule_of(const char *text)
{
    struct rrule r = { 0 };
    struct err err = { 0 };
    if (rrule_parse(str_from(text), &r, &err) < 0) {
        check_fail(__FILE__, __LINE__, "%s", err.msg);
    }
    return r;
}

TEST(rrule_finds_the_days_that_people_mean)
{
    static const struct {
        const char *rule;
        int from[3];
        int days[4][3]; /* the next ones; zeros: none */
    } cases[] = {
        { "FREQ=MONTHLY;BYDAY=2TU",
          { 2026, 1, 1 },
          { { 2026, 1, 13 }, { 2026, 2, 10 }, { 2026, 3, 10 }, { 2026, 4, 14 } } },
        { "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", /* the last working day */
          { 2026, 1, 1 },
          { { 2026, 1, 30 }, { 2026, 2, 27 }, { 2026, 3, 31 }, { 2026, 4, 30 } } },
        { "FREQ=MONTHLY;BYMONTHDAY=-1",
          { 2028, 1, 31 },
          { { 2028, 1, 31 }, { 2028, 2, 29 }, { 2028, 3, 31 }, { 2028, 4, 30 } } },
        { "DTSTART:20260105\nRRULE:FREQ=WEEKLY;INTERVAL=2",
          { 2026, 1, 6 },
          { { 2026, 1, 19 }, { 2026, 2, 2 }, { 2026, 2, 16 }, { 2026, 3, 2 } } },
        { "DTSTART:20260105T020000\r\nFREQ=DAILY;COUNT=3",
          { 2026, 1, 1 },
          { { 2026, 1, 5 }, { 2026, 1, 6 }, { 2026, 1, 7 }, { 0 } } },
        { "freq=weekly;byday=sa,su;until=20260111",
          { 2026, 1, 4 },
          { { 2026, 1, 4 }, { 2026, 1, 10 }, { 2026, 1, 11 }, { 0 } } },
        { "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
          { 2096, 3, 1 },
          { { 2104, 2, 29 }, { 2108, 2, 29 }, { 2112, 2, 29 }, { 2116, 2, 29 } } },
        { "FREQ=YEARLY;BYDAY=20MO",
          { 1997, 1, 1 },
          { { 1997, 5, 19 }, { 1998, 5, 18 }, { 1999, 5, 17 }, { 2000, 5, 15 } } },
        { "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
          { 2026, 1, 1 },
          { { 2026, 2, 13 }, { 2026, 3, 13 }, { 2026, 11, 13 }, { 2027, 8, 13 } } },
        { "DTSTART:20270810\nFREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU",
          { 2027, 8, 1 },
          { { 2027, 8, 10 }, { 2027, 8, 22 }, { 2027, 8, 24 }, { 2027, 9, 5 } } },
        { "DTSTART:20270810\nFREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=MO",
          { 2027, 8, 1 },
          { { 2027, 8, 10 }, { 2027, 8, 15 }, { 2027, 8, 24 }, { 2027, 8, 29 } } },
        { "DTSTART:20260131\nFREQ=MONTHLY", /* months without a 31st are left out */
          { 2026, 2, 1 },
          { { 2026, 3, 31 }, { 2026, 5, 31 }, { 2026, 7, 31 }, { 2026, 8, 31 } } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct rrule r = rule_of(cases[i].rule);
        int64_t day = day_from(cases[i].from[0], cases[i].from[1], cases[i].from[2]);
        for (int k = 0; k < 4; k++) {
            const int *want = cases[i].days[k];
            int64_t found = rrule_next(&r, day);
            CHECK_EQ(found, want[0] == 0 ? RRULE_DAYS_NONE : day_from(want[0], want[1], want[2]));
            if (found == RRULE_DAYS_NONE) {
                break;
            }
            day = found + 1;
        }
    }
    check_case(-1);
}

TEST(rrule_says_what_is_wrong)
{
    static const char *const cases[][2] = {
        { "", "rrule '': rule: found '', want FREQ, INTERVAL, COUNT, UNTIL, BYDAY, BYMONTHDAY, "
              "BYMONTH, BYSETPOS or WKST" },
        { "BYDAY=MO", "rrule 'BYDAY=MO': found no FREQ, want DAILY, WEEKLY, MONTHLY or YEARLY" },
        { "FREQ=HOURLY",
          "rrule 'FREQ=HOURLY': FREQ: found 'HOURLY', want DAILY, WEEKLY, MONTHLY or YEARLY" },
        { "FREQ=DAILY;BYHOUR=3",
          "rrule 'FREQ=DAILY;BYHOUR=3': rule: found 'BYHOUR=3', want FREQ, INTERVAL, COUNT, UNTIL, "
          "BYDAY, BYMONTHDAY, BYMONTH, BYSETPOS or WKST" },
        { "FREQ=DAILY;FREQ=DAILY", "rrule 'FREQ=DAILY;FREQ=DAILY': FREQ: found 'DAILY', want it "
                                   "once" },
        { "FREQ=WEEKLY;BYDAY=2MO", "rrule 'FREQ=WEEKLY;BYDAY=2MO': BYDAY: found a numbered day "
                                   "with FREQ=WEEKLY, want MONTHLY or YEARLY" },
        { "FREQ=MONTHLY;BYDAY=6MO",
          "rrule 'FREQ=MONTHLY;BYDAY=6MO': BYDAY: found number 6, want 1 to 5 in a month" },
        { "FREQ=MONTHLY;BYDAY=0MO",
          "rrule 'FREQ=MONTHLY;BYDAY=0MO': BYDAY: found '0MO', want MO to SU, with a number such "
          "as 2TU or -1FR where months or years repeat" },
        { "FREQ=WEEKLY", "rrule 'FREQ=WEEKLY': found no start, want a line such as "
                         "DTSTART:20260105 above: no BY part names the day" },
        { "FREQ=DAILY;INTERVAL=2", "rrule 'FREQ=DAILY;INTERVAL=2': found no start, want a line "
                                   "such as DTSTART:20260105 above: INTERVAL counts from it" },
        { "FREQ=DAILY;COUNT=2", "rrule 'FREQ=DAILY;COUNT=2': found no start, want a line such as "
                                "DTSTART:20260105 above: COUNT counts from it" },
        { "FREQ=DAILY;COUNT=5000",
          "rrule 'FREQ=DAILY;COUNT=5000': COUNT: found '5000', want 1 to 1000" },
        { "FREQ=DAILY;UNTIL=20261301",
          "rrule 'FREQ=DAILY;UNTIL=20261301': UNTIL: time: found '20261301', want a day that the "
          "month has" },
        { "FREQ=WEEKLY;BYDAY=MO;BYMONTHDAY=3", "rrule 'FREQ=WEEKLY;BYDAY=MO;BYMONTHDAY=3': found "
                                               "BYMONTHDAY with FREQ=WEEKLY, want BYDAY" },
        { "DTSTART:20260105\nFREQ=DAILY;COUNT=2;UNTIL=20270101",
          "rrule 'FREQ=DAILY;COUNT=2;UNTIL=20270101': found COUNT and UNTIL, want one of them" },
        { "DTSTART:2026-01-05\nFREQ=DAILY",
          "rrule: DTSTART: time: found '2026-01-05', want a date such as 20261224, "
          "20261224T180000 or 20261224T180000Z" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct rrule r = { .interval = 77 };
        struct err err = { 0 };
        CHECK_EQ(rrule_parse(str_from(cases[i][0]), &r, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i][1]);
        CHECK_EQ(r.interval, 77);
    }
    check_case(-1);
    struct rrule r;
    struct err err = { 0 };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_EQ(rrule_parse(arena_printf(&a, "FREQ=DAILY;%1100s", "BYDAY=MO"), &r, &err), -ERR_LIMIT);
}

TEST(rrule_that_never_comes_ends_its_search)
{
    struct rrule r = rule_of("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30");
    CHECK_EQ(rrule_next(&r, day_from(2026, 1, 1)), RRULE_DAYS_NONE);
    r = rule_of("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6");
    CHECK_EQ(rrule_next(&r, day_from(2026, 1, 1)), RRULE_DAYS_NONE);
    r = rule_of("FREQ=DAILY;BYMONTH=4");
    CHECK_EQ(rrule_next(&r, day_from(2026, 5, 1)), day_from(2027, 4, 1));
}

TEST(rrule_until_with_a_time_is_judged_by_that_time)
{
    struct rrule r = rule_of("FREQ=DAILY;UNTIL=20260110T120000Z");
    int64_t noon = day_from(2026, 1, 10) * DAY_SEC + 43200;
    CHECK(!rrule_over(&r, noon + 3600, noon));
    CHECK(rrule_over(&r, noon, noon + 1));
    r = rule_of("FREQ=DAILY;UNTIL=20260110T120000");
    CHECK(rrule_over(&r, noon + 3600, noon));
    CHECK(!rrule_over(&r, noon, noon + 3600));
    CHECK_EQ(rrule_next(&r, day_from(2026, 1, 12)), RRULE_DAYS_NONE);
}

/* A list of numbers of BY parts, as text. */
static struct str some_numbers(struct rng *rng, struct arena *a, int most, bool back)
{
    struct str list = STR_NONE;
    uint32_t n = 1 + rng_below(rng, 3);
    for (uint32_t i = 0; i < n; i++) {
        int number = 1 + (int)rng_below(rng, (uint32_t)most);
        number = back && rng_below(rng, 3) == 0 ? -number : number;
        list = arena_printf(a, STR_FMT "%s%d", STR_ARG(list), i == 0 ? "" : ",", number);
    }
    return list;
}

static struct str some_weekdays(struct rng *rng, struct arena *a, bool numbered)
{
    static const char *const names[] = { "MO", "TU", "WE", "TH", "FR", "SA", "SU" };
    struct str list = STR_NONE;
    uint32_t n = 1 + rng_below(rng, 3);
    uint32_t first = rng_below(rng, 7); /* each day once: libical stumbles over repeated ones */
    for (uint32_t i = 0; i < n; i++) {
        int number = numbered ? 1 + (int)rng_below(rng, 4) : 0;
        number = rng_below(rng, 3) == 0 ? -number : number;
        struct str text = number == 0 ? STR_NONE : arena_printf(a, "%d", number);
        list = arena_printf(a, STR_FMT "%s" STR_FMT "%s", STR_ARG(list), i == 0 ? "" : ",",
                            STR_ARG(text), names[(first + 2 * i) % 7]);
    }
    return list;
}

static struct str some_rule(struct rng *rng, struct arena *a)
{
    static const char *const freqs[] = { "DAILY", "WEEKLY", "MONTHLY", "YEARLY" };
    uint32_t freq = rng_below(rng, 4);
    bool numbered = freq >= 2 && rng_below(rng, 2) == 0;
    struct str rule = arena_printf(a, "FREQ=%s", freqs[freq]);
    if (rng_below(rng, 2) == 0) {
        rule = arena_printf(a, STR_FMT ";INTERVAL=%u", STR_ARG(rule),
                            1 + rng_below(rng, freq == 3 ? 3 : 9));
    }
    bool weekdays = rng_below(rng, 2) == 0;
    bool months = rng_below(rng, 3) == 0;
    if (weekdays) {
        struct str days = some_weekdays(rng, a, numbered);
        rule = arena_printf(a, STR_FMT ";BYDAY=" STR_FMT, STR_ARG(rule), STR_ARG(days));
    } else if (freq != 1 && rng_below(rng, 2) == 0) {
        /* with DAILY libical does not count back from the end of the month */
        struct str days = some_numbers(rng, a, 28, freq >= 2);
        rule = arena_printf(a, STR_FMT ";BYMONTHDAY=" STR_FMT, STR_ARG(rule), STR_ARG(days));
        months = months || freq == 3; /* without, libical keeps to the start's month alone */
    }
    if (months) {
        struct str list = some_numbers(rng, a, 12, false);
        rule = arena_printf(a, STR_FMT ";BYMONTH=" STR_FMT, STR_ARG(rule), STR_ARG(list));
    }
    if (freq == 1) { /* said in full: without, libical's weeks begin on Sunday */
        rule = arena_printf(a, STR_FMT ";WKST=%s", STR_ARG(rule),
                            rng_below(rng, 2) == 0 ? "MO" : "SU");
    }
    if (weekdays && freq >= 2 && rng_below(rng, 3) == 0) {
        rule =
            arena_printf(a, STR_FMT ";BYSETPOS=%d", STR_ARG(rule), rng_below(rng, 2) == 0 ? 1 : -1);
    }
    return rule;
}

/* libical says the same, from the start of the rule through its first occurrences. It searches for
 * centuries where nothing comes, so those rules are left out. */
PROPERTY(rrule_agrees_with_libical)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct rrule r;
    struct str rule = some_rule(rng, &a);
    int64_t start = day_from(1990, 1, 1) + rng_below(rng, 20000);
    struct civil c = civil_from_sec(start * DAY_SEC);
    struct str text = arena_printf(&a, "DTSTART:%04d%02d%02d\n" STR_FMT, (int)c.year, c.month,
                                   c.day, STR_ARG(rule));
    if (rrule_parse(text, &r, &err) < 0) {
        check_fail(__FILE__, __LINE__, "%s", err.msg);
    }
    int64_t day = rrule_next(&r, 0);
    struct icalrecurrencetype theirs = icalrecurrencetype_from_string(rule.p);
    struct icaltimetype from = { .year = (int)c.year, .month = c.month, .day = c.day, .hour = 12 };
    if (day == RRULE_DAYS_NONE) {
        return;
    }
    icalrecur_iterator *iterator = icalrecur_iterator_new(theirs, from);
    CHECK(iterator != NULL);
    struct icaltimetype next = { 0 };
    for (int i = 0; i < 30 && day != RRULE_DAYS_NONE; i++) {
        struct icaltimetype before = next;
        do {
            next = icalrecur_iterator_next(iterator); /* a day named twice comes twice there */
        } while (!icaltime_is_null_time(next) && icaltime_compare(next, before) == 0);
        if (icaltime_is_null_time(next) || day != day_from(next.year, next.month, next.day)) {
            struct civil ours = civil_from_sec(day * DAY_SEC);
            check_fail(__FILE__, __LINE__, STR_FMT ", number %d: %04d-%02d-%02d, libical %s",
                       STR_ARG(text), i, (int)ours.year, ours.month, ours.day,
                       icaltime_as_ical_string(next));
        }
        day = rrule_next(&r, day + 1);
    }
    icalrecur_iterator_free(iterator);
}
