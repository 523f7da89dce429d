#include "calendar/day.h"
#include "tests/vectors.h"

TEST(day_reads_weekdays_as_recorded)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *all = jval_get(vectors_load("vectors/schedule.json", &a), STR("cases"));
    int cases = 0;
    JVAL_EACH (all, one) {
        if (!vectors_kind(one, "weekday")) {
            continue;
        }
        vectors_enter(one);
        cases++;
        struct err err = { 0 };
        int weekday = -1;
        int r = day_parse_weekday(vectors_text(one, "in", &a), &weekday, &err);
        CHECK_EQ(r == 0, vectors_ok(one));
        if (r == 0) {
            CHECK_EQ(weekday, vectors_i64(one, "weekday"));
        } else {
            CHECK_EQ(weekday, -1);
            CHECK(str_starts(str_from(err.msg), jval_str(jval_get(one, STR("error")))));
        }
    }
    check_case(-1);
    CHECK_EQ(cases, 26);
}

TEST(day_names_the_bad_weekday_and_what_it_wants)
{
    struct err err = { 0 };
    int weekday;
    CHECK_EQ(day_parse_weekday(STR("moo"), &weekday, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "'moo' is not a known weekday: want 'mon' … 'sun' or a full name");
}

TEST(day_reads_times_of_the_day)
{
    static const struct {
        const char *text;
        int64_t sec; /* -1: refused */
    } cases[] = {
        { "0:00", 0 },   { "00:00", 0 },   { "8:05", 29100 }, { "23:59", 86340 }, { "24:00", -1 },
        { "12:60", -1 }, { "12:5", -1 },   { "12:005", -1 },  { "12", -1 },       { ":30", -1 },
        { "", -1 },      { "123:00", -1 }, { " 8:00", -1 },   { "8:00 ", -1 },    { "8.00", -1 },
        { "12:3x", -1 }, { "-1:00", -1 },  { "8:", -1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct err err = { 0 };
        uint32_t sec = 77;
        int r = day_parse_clock(str_from(cases[i].text), &sec, &err);
        CHECK_EQ(r, cases[i].sec < 0 ? -ERR_INVALID : 0);
        CHECK_EQ(sec, cases[i].sec < 0 ? 77 : cases[i].sec);
    }
    check_case(-1);
    struct err err = { 0 };
    uint32_t sec;
    CHECK_EQ(day_parse_clock(STR("24:00"), &sec, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "time '24:00': want hours and minutes from '0:00' to '23:59'");
}

TEST(day_reads_dates_of_every_year)
{
    static const struct {
        const char *text;
        int month; /* 0: refused */
        int day;
    } cases[] = {
        { "Jan 2", 1, 2 },    { "feb 29", 2, 29 }, { "MAR 02", 3, 2 }, { "Apr   30", 4, 30 },
        { "Dec 31", 12, 31 }, { "Feb 30", 0, 0 },  { "Apr 31", 0, 0 }, { "Mar 32", 0, 0 },
        { "Mar 0", 0, 0 },    { "Mar2", 0, 0 },    { "Mar 2 ", 0, 0 }, { "Mar", 0, 0 },
        { "Mar ", 0, 0 },     { "March 2", 0, 0 }, { "", 0, 0 },       { "Foo 2", 0, 0 },
        { "Mar 002", 0, 0 },  { "2 Mar", 0, 0 },   { "Ma", 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct err err = { 0 };
        struct day_date date = { 0 };
        int r = day_parse_date(str_from(cases[i].text), &date, &err);
        CHECK_EQ(r, cases[i].month == 0 ? -ERR_INVALID : 0);
        CHECK_EQ(date.month, cases[i].month);
        CHECK_EQ(date.day, cases[i].day);
    }
    check_case(-1);
    struct err err = { 0 };
    struct day_date date;
    CHECK_EQ(day_parse_date(STR("Feb 30"), &date, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "date 'Feb 30': want a day from 1 to 29");
    CHECK_EQ(day_parse_date(STR("2 Mar"), &date, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "date '2 Mar': want a month's first three letters and a day, as in 'Jan 2'");
}

/* Before 1970, too: everything rounds down. */
PROPERTY(day_agrees_with_civil_time)
{
    int64_t sec = (int64_t)(rng_next(rng) % 20000000000u) - 10000000000;
    struct civil c = civil_from_sec(sec);
    CHECK_EQ(day_weekday(day_of(sec)), c.weekday);
    CHECK_EQ(day_clock(sec), c.hour * 3600 + c.minute * 60 + c.second);
    CHECK_EQ(day_of(sec) * DAY_SEC + day_clock(sec), sec);
    CHECK(c.day <= day_month_max(c.month));
}
