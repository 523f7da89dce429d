#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* What glibc's clock shows, in civil seconds. It is the oracle here; elsewhere base/banned.h keeps
 * its one zone a process out. */
static int64_t glibc_local(int64_t sec)
{
    time_t t = (time_t)sec;
    struct tm tm;
    return localtime_r(&t, &tm) == NULL ? INT64_MIN : sec + tm.tm_gmtoff;
}

#include "base/buf.h"
#include "calendar/recurrence.h"
#include "tests/unit/calendar/zone_fixture.h"

static usec_t at(int year, int month, int day, int hour, int minute)
{
    return SECONDS(zones_civil_seconds(year, month, day, hour, minute));
}

static struct recurrence weekly(const char *from, const char *to, uint8_t weekdays)
{
    struct err err = { 0 };
    struct recurrence r = { .kind = RECURRENCE_WEEKLY, .weekdays = weekdays };
    CHECK_EQ(recurrence_parse_clock(str_from(from), false, &r.from, &err), 0);
    CHECK_EQ(recurrence_parse_clock(str_from(to), true, &r.to, &err), 0);
    return r;
}

static void check_next(const struct recurrence *r, usec_t after, usec_t start, usec_t end)
{
    struct interval found = { 0 };
    CHECK(recurrence_next(r, after, &found));
    CHECK_EQ(found.start, start);
    CHECK_EQ(found.end, end);
}

enum { SUN = 1, MON = 2, FRI = 32 };

/* kured and those who use its package test the weekday first, and are open on the wrong morning. */
TEST(recurrence_over_midnight_belongs_to_the_day_it_starts)
{
    struct recurrence r = weekly("22:00", "02:00", FRI);
    usec_t start = at(2026, 5, 1, 22, 0); /* a Friday */
    usec_t end = at(2026, 5, 2, 2, 0);
    check_next(&r, at(2026, 5, 1, 1, 0), start, end);
    check_next(&r, at(2026, 5, 2, 1, 59), start, end);
    check_next(&r, end, start + DAYS(7), end + DAYS(7));
    r = weekly("12:00", "24:00", FRI);
    check_next(&r, at(2026, 5, 1, 0, 0), at(2026, 5, 1, 12, 0), at(2026, 5, 2, 0, 0));
}

TEST(recurrence_meets_clocks_that_change)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct recurrence r = weekly("02:30", "04:00", SUN);
    r.zone = zones_load("Berlin", &a);
    /* Spring: 02:30 is not shown, and 03:00 is where clocks land; autumn: the first 02:30. */
    check_next(&r, at(2026, 3, 28, 0, 0), at(2026, 3, 29, 1, 0), at(2026, 3, 29, 2, 0));
    check_next(&r, at(2026, 10, 24, 0, 0), at(2026, 10, 25, 0, 30), at(2026, 10, 25, 3, 0));
    /* What lies in the gap altogether does not come in that week. */
    r = weekly("02:10", "02:50", SUN);
    r.zone = zones_load("Berlin", &a);
    check_next(&r, at(2026, 3, 28, 0, 0), at(2026, 4, 5, 0, 10), at(2026, 4, 5, 0, 50));
    /* A duration is time that passes. */
    struct err err = { 0 };
    struct recurrence c = { .kind = RECURRENCE_CRON, .zone = r.zone, .duration = HOURS(4) };
    CHECK_EQ(cron_parse(STR("0 1 * * 0"), &c.cron, &err), 0);
    check_next(&c, at(2026, 3, 29, 0, 0), at(2026, 3, 29, 0, 0), at(2026, 3, 29, 4, 0));
    check_next(&c, at(2026, 10, 24, 23, 0), at(2026, 10, 24, 23, 0), at(2026, 10, 25, 3, 0));
    struct recurrence rule = {
        .kind = RECURRENCE_RRULE, .zone = r.zone, .duration = HOURS(4), .from = 3600
    };
    CHECK_EQ(rrule_parse(STR("FREQ=WEEKLY;BYDAY=SU"), &rule.rule, &err), 0);
    check_next(&rule, at(2026, 3, 29, 0, 0), at(2026, 3, 29, 0, 0), at(2026, 3, 29, 4, 0));
    /* Samoa left the 30th of December 2011 out: the day has no length. */
    r = weekly("00:00", "24:00", FRI);
    r.zone = zones_load("Apia", &a);
    check_next(&r, at(2011, 12, 29, 12, 0), at(2012, 1, 5, 10, 0), at(2012, 1, 6, 10, 0));
}

static struct recurrence dates(const char *text)
{
    struct err err = { 0 };
    struct recurrence r = { .kind = RECURRENCE_DATES };
    if (recurrence_parse_dates(str_from(text), &r.dates, &err) < 0) {
        check_fail(__FILE__, __LINE__, "%s", err.msg);
    }
    return r;
}

TEST(recurrence_dates_are_whole_local_days)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct interval none;
    struct recurrence r = dates("2026-12-24/2027-01-02");
    r.zone = zones_load("Berlin", &a);
    check_next(&r, at(2026, 1, 1, 0, 0), at(2026, 12, 23, 23, 0), at(2027, 1, 2, 23, 0));
    CHECK(!recurrence_next(&r, at(2027, 1, 2, 23, 0), &none));
    r = dates("2026-07-04");
    check_next(&r, at(2026, 7, 4, 12, 0), at(2026, 7, 4, 0, 0), at(2026, 7, 5, 0, 0));
    r = dates("--12-25");
    check_next(&r, at(2026, 12, 26, 0, 0), at(2027, 12, 25, 0, 0), at(2027, 12, 26, 0, 0));
    r = dates("--12-20/--01-06"); /* over the end of the year */
    check_next(&r, at(2027, 1, 5, 0, 0), at(2026, 12, 20, 0, 0), at(2027, 1, 7, 0, 0));
    check_next(&r, at(2027, 1, 7, 0, 0), at(2027, 12, 20, 0, 0), at(2028, 1, 7, 0, 0));
    r = dates("--02-29");
    check_next(&r, at(2096, 3, 1, 0, 0), at(2104, 2, 29, 0, 0), at(2104, 3, 1, 0, 0));
    r = dates("--02-20/--02-29");
    check_next(&r, at(2026, 1, 1, 0, 0), at(2026, 2, 20, 0, 0), at(2026, 3, 1, 0, 0));
    r = dates("--02-29/--03-03");
    check_next(&r, at(2026, 1, 1, 0, 0), at(2026, 3, 1, 0, 0), at(2026, 3, 4, 0, 0));
}

TEST(recurrence_says_what_is_wrong)
{
    static const char *const cases[] = { "2026-13-40",
                                         "2026-02-30",
                                         "26-01-01",
                                         "--02-30",
                                         "--1-1",
                                         "2026-1-01",
                                         "",
                                         "--12-20/2027-01-06",
                                         "2026-01-01/--02-02",
                                         "2026-01-01/",
                                         "1969-01-01" };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct recurrence_dates d;
        struct err err = { 0 };
        CHECK_EQ(recurrence_parse_dates(str_from(cases[i]), &d, &err), -ERR_INVALID);
        CHECK(str_contains(str_from(err.msg), STR("want days such as 2026-12-24")));
    }
    check_case(-1);
    struct recurrence_dates d;
    struct err err = { 0 };
    CHECK_EQ(recurrence_parse_dates(STR("2027-01-06/2026-12-20"), &d, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "found '2027-01-06/2026-12-20', want the later day behind the earlier");
    uint32_t clock;
    CHECK_EQ(recurrence_parse_clock(STR("24:00"), false, &clock, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "found '24:00', want a time such as 22:00, at most 23:59");
    CHECK_EQ(recurrence_parse_clock(STR("24:01"), true, &clock, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "found '24:01', want a time such as 22:00, at most 24:00");
    CHECK_EQ(recurrence_parse_clock(STR("9:00"), true, &clock, &err), -ERR_INVALID);
}

TEST(recurrence_leaves_out_what_it_is_told_to)
{
    struct err err = { 0 };
    int64_t skips[] = { zones_civil_seconds(2026, 5, 1, 2, 0),
                        zones_civil_seconds(2026, 5, 3, 2, 0) };
    struct recurrence r = { .kind = RECURRENCE_RRULE,
                            .duration = HOURS(1),
                            .from = 7200,
                            .skips = skips,
                            .skip_n = ARRAY_LEN(skips) };
    CHECK_EQ(rrule_parse(STR("FREQ=DAILY;UNTIL=20260504T020000Z"), &r.rule, &err), 0);
    check_next(&r, at(2026, 5, 1, 0, 0), at(2026, 5, 2, 2, 0), at(2026, 5, 2, 3, 0));
    check_next(&r, at(2026, 5, 2, 3, 0), at(2026, 5, 4, 2, 0), at(2026, 5, 4, 3, 0));
    struct interval none;
    CHECK(!recurrence_next(&r, at(2026, 5, 4, 3, 0), &none));
    r = (struct recurrence){ .kind = RECURRENCE_ONCE, .once = { .start = 5, .end = 9 } };
    check_next(&r, 8, 5, 9);
    CHECK(!recurrence_next(&r, 9, &none));
}

/* Around one change of the clocks: a start every quarter of an hour of the local day is the first
 * instant at which glibc's clock has reached it. */
static void check_around(const struct zone *z, const char *name, int64_t change)
{
    struct err err = { 0 };
    struct recurrence r = { .kind = RECURRENCE_RRULE, .zone = z, .duration = SECONDS(1) };
    CHECK_EQ(rrule_parse(STR("FREQ=DAILY"), &r.rule, &err), 0);
    int64_t from =
        change / 60 * 60 - INT64_C(6) * 3600; /* tables may end in the middle of a minute */
    int64_t local = (glibc_local(from) / 900 + 1) * 900;
    for (int64_t sec = from; sec < change + INT64_C(6) * 3600; sec += 60) {
        for (int64_t shown = glibc_local(sec); local <= shown; local += 900) {
            r.from = day_clock(local);
            struct interval found;
            if (!recurrence_next(&r, SECONDS(sec), &found) || found.start != SECONDS(sec)) {
                check_fail(__FILE__, __LINE__, "%s at %lld: %lld starts at %lld, glibc says %lld",
                           name, (long long)change, (long long)local,
                           (long long)(found.start / SECONDS(1)), (long long)sec);
            }
        }
    }
}

static struct str read_whole(FILE *file, struct buf *bytes)
{
    char piece[4096];
    size_t n;
    buf_reset(bytes);
    while ((n = fread(piece, 1, sizeof(piece), file)) > 0) {
        buf_add(bytes, (struct str){ .p = piece, .n = n });
    }
    return buf_str(bytes);
}

/* Every zone of tzdata, half a century: what comes from tables and what from the rule behind them.
 */
TEST(recurrence_agrees_with_glibc_in_every_zone)
{
    CLEANUP(buf_done)
    struct buf list = { 0 };
    CLEANUP(buf_done)
    struct buf bytes = { 0 };
    FILE *index = fopen("/usr/share/zoneinfo/tzdata.zi", "re");
    CHECK(index != NULL);
    struct str rest = read_whole(index, &list);
    struct str line;
    uint32_t zones = 0;
    uint32_t changes = 0;
    CHECK_EQ(fclose(index), 0);
    while (str_split_next(&rest, '\n', &line)) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct str name;
        struct str tail;
        if (!str_cut_prefix(line, STR("Z "), &name)) {
            continue; /* links are other names of these */
        }
        (void)str_cut(name, STR(" "), &name, &tail);
        FILE *file = fopen(arena_printf(&a, "/usr/share/zoneinfo/" STR_FMT, STR_ARG(name)).p, "re");
        const struct zone *z = NULL;
        struct err err = { 0 };
        CHECK(file != NULL);
        CHECK_EQ(zone_parse(read_whole(file, &bytes), &a, &z, &err), 0);
        CHECK_EQ(fclose(file), 0);
        CHECK_EQ(setenv("TZ", arena_str(&a, name).p, 1), 0);
        tzset();
        int64_t end = zones_civil_seconds(2045, 1, 1, 0, 0);
        int64_t sec = zones_civil_seconds(1995, 1, 1, 0, 0);
        for (sec = zone_at(z, sec).until; sec < end; sec = zone_at(z, sec).until) {
            check_around(z, arena_str(&a, name).p, sec);
            changes++;
        }
        zones++;
    }
    CHECK(zones > 300);
    CHECK(changes > 5000);
    CHECK_EQ(unsetenv("TZ"), 0);
    tzset();
}
