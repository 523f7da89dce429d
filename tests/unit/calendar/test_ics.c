#include "base/buf.h"
#include "calendar/ics.h"
#include "calendar/opening_hours.h"
#include "tests/unit/calendar/zone_fixture.h"

static usec_t at(int year, int month, int day, int hour, int minute)
{
    return SECONDS(zones_civil_seconds(year, month, day, hour, minute));
}

static int find_zone(void *ctx, struct str name, const struct zone **ret, struct err *err)
{
    if (!str_eq(name, STR("Europe/Berlin"))) {
        return err_set(err, ERR_NOTFOUND, "found zone '" STR_FMT "', want one of tzdata",
                       STR_ARG(name));
    }
    *ret = zones_load("Berlin", ctx);
    return 0;
}

static int parse(const char *text, struct arena *a, struct opening_hours *ret, struct err *err)
{
    struct ics_reader reader = { .zone = zones_load("Kolkata", a),
                                 .find_zone = find_zone,
                                 .ctx = a };
    struct recurrence *events = NULL;
    int r = ics_parse(str_from(text), &reader, a, &events, &ret->open_n, err);
    ret->open = events;
    return r;
}

#define EVENT(lines) "BEGIN:VEVENT\r\n" lines "END:VEVENT\r\n"
#define CALENDAR(events) "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" events "END:VCALENDAR\r\n"

static void check_events(const char *text, usec_t after, usec_t start, usec_t end)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct opening_hours hours = { 0 };
    const struct opening_hours *const all[] = { &hours };
    const struct opening_plan p = { .hours = all, .hours_n = 1 };
    struct err err = { 0 };
    struct interval found = { 0 };
    if (parse(text, &a, &hours, &err) < 0) {
        check_fail(__FILE__, __LINE__, "%s", err.msg);
    }
    struct opening_search search = opening_search_from(after);
    if (start < 0) {
        CHECK_EQ(opening_next(&p, &search, &found), OPENING_NEVER);
        return;
    }
    CHECK_EQ(opening_next(&p, &search, &found), OPENING_FOUND);
    CHECK_EQ(found.start, start);
    CHECK_EQ(found.end, end);
}

TEST(ics_reads_events_in_all_their_forms)
{
    usec_t new_year = at(2026, 1, 1, 0, 0);
    /* Whole days are the reader's: Kolkata is 5 h 30 min ahead. DTEND is the day after the last. */
    check_events(CALENDAR(EVENT("SUMMARY:Holidays\r\nDTSTART;VALUE=DATE:20261224\r\n"
                                "DTEND;VALUE=DATE:20270103\r\n")),
                 new_year, at(2026, 12, 23, 18, 30), at(2027, 1, 2, 18, 30));
    check_events(CALENDAR(EVENT("DTSTART;VALUE=DATE:20260704\r\n")), new_year,
                 at(2026, 7, 3, 18, 30), at(2026, 7, 4, 18, 30));
    check_events(CALENDAR(EVENT("DTSTART:20260704T100000Z\r\nDTEND:20260704T120000Z\r\n")),
                 new_year, at(2026, 7, 4, 10, 0), at(2026, 7, 4, 12, 0));
    check_events(CALENDAR(EVENT("DTSTART:20260704T100000\r\nDURATION:P1DT1H30M\r\n")), new_year,
                 at(2026, 7, 4, 4, 30), at(2026, 7, 5, 6, 0));
    check_events(CALENDAR(EVENT("DTSTART;TZID=Europe/Berlin:20260704T100000\r\nDTEND;TZID=\"Europe/"
                                "Berlin\":20260704T120000\r\n")),
                 new_year, at(2026, 7, 4, 8, 0), at(2026, 7, 4, 10, 0));
    /* Without carriage returns, lines folded, an alarm inside. */
    check_events("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:2026\n 0704T1\n\t00000Z\nBEGIN:VALARM\n"
                 "DURATION:PT5M\nEND:VALARM\nDTEND:20260704T120000Z\nEND:VEVENT\nEND:VCALENDAR",
                 new_year, at(2026, 7, 4, 10, 0), at(2026, 7, 4, 12, 0));
    /* A moment and what was called off are nothing. */
    check_events(CALENDAR(EVENT("DTSTART:20260704T100000Z\r\n")), new_year, -1, -1);
    check_events(CALENDAR(EVENT("DTSTART;VALUE=DATE:20260704\r\nSTATUS:CANCELLED\r\n")), new_year,
                 -1, -1);
}

TEST(ics_events_come_again_and_leave_out)
{
    static const char weekly[] =
        CALENDAR(EVENT("DTSTART;TZID=Europe/Berlin:20260306T220000\r\n"
                       "DTEND;TZID=Europe/Berlin:20260307T020000\r\n"
                       "RRULE:FREQ=WEEKLY;UNTIL=20260417T200000Z\r\n"
                       "EXDATE;TZID=Europe/Berlin:20260320T220000,20260313T220000\r\n"
                       "EXDATE:20260403T200000Z\r\n"));
    check_events(weekly, at(2026, 3, 1, 0, 0), at(2026, 3, 6, 21, 0), at(2026, 3, 7, 1, 0));
    check_events(weekly, at(2026, 3, 8, 0, 0), at(2026, 3, 27, 21, 0), at(2026, 3, 28, 1, 0));
    check_events(weekly, at(2026, 3, 29, 0, 0), at(2026, 4, 10, 20, 0), at(2026, 4, 11, 0, 0));
    check_events(weekly, at(2026, 4, 11, 0, 0), at(2026, 4, 17, 20, 0), at(2026, 4, 18, 0, 0));
    check_events(weekly, at(2026, 4, 18, 0, 0), -1, -1);
    static const char yearly[] = CALENDAR(EVENT(
        "DTSTART;VALUE=DATE:20261225\r\nRRULE:FREQ=YEARLY\r\nEXDATE;VALUE=DATE:20271225\r\n"));
    check_events(yearly, at(2027, 1, 1, 0, 0), at(2028, 12, 24, 18, 30), at(2028, 12, 25, 18, 30));
}

TEST(ics_names_the_line_that_is_wrong)
{
    static const char *const cases[][2] = {
        { "", "ics: line 1: found no BEGIN:VCALENDAR" },
        { "hello\nworld", "ics: line 2: found no BEGIN:VCALENDAR" },
        { CALENDAR(EVENT("SUMMARY:x\r\n")), "ics: line 3: found an event without DTSTART" },
        { CALENDAR(EVENT("SUMMARY:x\r\nDTSTART:2026-01-01\r\n")),
          "ics: line 5: time: found '2026-01-01', want a date such as 20261224, 20261224T180000 or "
          "20261224T180000Z" },
        { CALENDAR(EVENT("DTSTART;TZID=Mars/Olympus:20260101T000000\r\n")),
          "ics: line 4: found zone 'Mars/Olympus', want one of tzdata" },
        { CALENDAR(EVENT("DTSTART:20260102T000000Z\r\nDTEND:20260101T000000Z\r\n")),
          "ics: line 3: found DTEND before DTSTART, want it behind" },
        { CALENDAR(EVENT("DTSTART:20260102T000000Z\r\nDTEND;VALUE=DATE:20260103\r\n")),
          "ics: line 3: found DTEND and DTSTART in two forms, want one" },
        { CALENDAR(EVENT("DTSTART:20260102T000000Z\r\nDURATION:1h\r\n")),
          "ics: line 5: DURATION: found '1h', want one such as PT2H or P1D" },
        { CALENDAR(EVENT("DTSTART:20260102T000000Z\r\nDURATION:PT1H1H\r\n")),
          "ics: line 5: DURATION: found 'PT1H1H', want one such as PT2H or P1D" },
        { CALENDAR(EVENT("DTSTART:20260102T000000Z\r\nDURATION:PT1H\r\nRRULE:FREQ=HOURLY\r\n")),
          "ics: line 3: rrule 'FREQ=HOURLY': FREQ: found 'HOURLY', want DAILY, WEEKLY, MONTHLY or "
          "YEARLY" },
        { "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260102\n",
          "ics: line 2: found no END:VEVENT for this event" },
        { CALENDAR(EVENT("EXDATE:20260102T000000Z\r\n")),
          "ics: line 4: found EXDATE before DTSTART, want it behind" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct opening_hours hours = { 0 };
        struct err err = { 0 };
        check_case((int64_t)i);
        CHECK(parse(cases[i][0], &a, &hours, &err) < 0);
        CHECK_STR(err.msg, cases[i][1]);
    }
    check_case(-1);
}

TEST(ics_has_limits)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct opening_hours hours = { 0 };
    struct err err = { 0 };
    buf_add(&text, STR("BEGIN:VCALENDAR\n"));
    for (uint32_t i = 0; i <= ICS_EVENTS_MAX; i++) {
        buf_add(&text, STR("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20260704\nEND:VEVENT\n"));
    }
    buf_add_char(&text, '\0');
    CHECK_EQ(parse(text.p, &a, &hours, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "ics: line 3002: found more than 1000 events, want fewer");
    buf_reset(&text);
    while (text.n <= ICS_BYTES_MAX) {
        buf_add(&text, STR("X-COMMENT:0123456789\n"));
    }
    buf_add_char(&text, '\0');
    CHECK_EQ(parse(text.p, &a, &hours, &err), -ERR_LIMIT);
}
