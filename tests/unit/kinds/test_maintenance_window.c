#include "kinds/maintenance_window.h"

#include "tests/check.h"

/* 2026-01-02T03:04:05Z, a Friday. */
#define NOW SECONDS(1767323045)

static int find_zone(void *ctx UNUSED, struct str name, const struct zone **ret, struct err *err)
{
    if (!str_eq(name, STR("Europe/Berlin"))) {
        return err_set(err, ERR_NOTFOUND, "no such zone");
    }
    *ret = NULL; /* UTC will do */
    return 0;
}

static int find_calendar(void *ctx UNUSED, struct str config_map, struct str key, struct str *ret,
                         struct err *err)
{
    if (!str_eq(config_map, STR("company"))) {
        return err_set(err, ERR_NOTFOUND, "no ConfigMap '" STR_FMT "'", STR_ARG(config_map));
    }
    *ret = str_eq(key, STR("good")) ? STR("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\n"
                                          "DTSTART:20260103T000000Z\r\nDTEND:20260104T000000Z\r\n"
                                          "END:VEVENT\r\nEND:VCALENDAR\r\n")
                                    : STR("nothing");
    return 0;
}

static const struct window_sources sources = { .find_zone = find_zone,
                                               .find_calendar = find_calendar,
                                               .now = NOW };

static const struct maintenance_window *read(struct arena *a, const char *spec)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    struct maintenance_window *w = ARENA_NEW(a, struct maintenance_window);
    CHECK_EQ(json_parse(
                 arena_printf(a, "{\"metadata\":{\"name\":\"w\",\"uid\":\"u\"},\"spec\":%s}", spec),
                 0, a, &object, &err),
             0);
    maintenance_window_read(object, &sources, a, w);
    return w;
}

/* The first interval after NOW, in seconds from then. */
static struct interval first(const struct maintenance_window *w)
{
    const struct opening_hours *hours = &w->window.hours;
    const struct opening_plan plan = { .hours = &hours, .hours_n = 1 };
    struct opening_search search = opening_search_from(NOW);
    struct interval next = { 0 };
    CHECK_EQ(opening_next(&plan, &search, &next), OPENING_FOUND);
    return (struct interval){ (next.start - NOW) / SECONDS(1), (next.end - NOW) / SECONDS(1) };
}

TEST(maintenance_window_reads_both_forms_alike)
{
    static const char *const forms[] = {
        "{\"days\":[\"Sat\"],\"from\":\"00:00\",\"to\":\"06:00\",\"timeZone\":\"Europe/Berlin\"}",
        "{\"timeZone\":\"Europe/Berlin\",\"recurrences\":[{\"weekly\":{\"days\":[\"sat\"],"
        "\"from\":\"00:00\",\"to\":\"06:00\"}}]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        const struct maintenance_window *w = read(&a, forms[i]);
        CHECK_STR(w->problem.reason, "");
        CHECK(w->window.given);
        CHECK_EQ(w->window.hours.open_n, 1);
        CHECK_EQ(first(w).start, 75355);
        CHECK_EQ(first(w).end, 75355 + 6 * 3600);
        CHECK_STR(w->window.zone_name, "Europe/Berlin");
        CHECK_EQ(w->window.min_remaining, MINUTES(15));
        CHECK_EQ(w->window.at_close, WINDOW_FINISH);
        CHECK_EQ(w->effect, WINDOW_OPEN);
        arena_done(&a);
    }
    check_case(-1);
}

TEST(maintenance_window_reads_all_that_opens_and_closes)
{
    struct arena a = { 0 };
    const struct maintenance_window *w =
        read(&a, "{\"effect\":\"Freeze\",\"recurrences\":["
                 "{\"weekly\":{\"days\":[\"Mon\",\"Tue\"],\"from\":\"22:00\",\"to\":\"04:00\"}},"
                 "{\"cron\":\"0 2 * * 0\",\"duration\":\"4h\"},"
                 "{\"rrule\":\"FREQ=MONTHLY;BYDAY=2TU\",\"start\":\"02:00\",\"duration\":\"3h\"},"
                 "{\"at\":{\"from\":\"2026-01-02T04:00:00Z\",\"to\":\"2026-01-02T05:00:00Z\"}},"
                 "{\"dates\":[\"2026-12-24\",\"--12-20/--01-06\"]}],"
                 "\"exclude\":[{\"dates\":[\"--12-25\"]},"
                 "{\"weekly\":{\"days\":[\"Fri\"],\"from\":\"12:00\",\"to\":\"24:00\"}},"
                 "{\"rrule\":\"FREQ=MONTHLY;BYMONTHDAY=-1\",\"duration\":\"24h\"},"
                 "{\"ics\":{\"configMap\":\"company\",\"key\":\"good\"}}],"
                 "\"minRemaining\":\"1h30m\",\"atClose\":\"Stop\"}");
    CHECK_STR(w->problem.reason, "");
    CHECK_EQ(w->effect, WINDOW_FREEZE);
    CHECK_EQ(w->window.hours.open_n, 6);
    CHECK_EQ(w->window.hours.closed_n, 4);
    CHECK_EQ(w->window.min_remaining, MINUTES(90));
    CHECK_EQ(w->window.at_close, WINDOW_STOP);
    CHECK_EQ(w->window.hours.open[3].once.end - w->window.hours.open[3].once.start, HOURS(1));
    CHECK_STR(w->window.zone_name, "UTC");
    arena_done(&a);
}

#define OPEN "\"recurrences\":[{\"cron\":\"@daily\",\"duration\":\"1h\"}]"

static const struct {
    const char *spec;
    const char *reason;
    const char *text;
} wrong[] = {
    { "{}", "Invalid", "spec: found {}, want days, from and to, or recurrences" },
    { "{\"recurrences\":[]}", "Invalid",
      "spec.recurrences: found [], want at least one recurrence" },
    { "{\"recurrences\":7}", "Invalid", "spec.recurrences: found 7, want at least one recurrence" },
    { "{\"timeZone\":\"Europe/Berln\"," OPEN "}", "UnknownZone",
      "spec.timeZone: found \"Europe/Berln\", want a zone such as Europe/Berlin (no such "
      "zone)" },
    { "{\"days\":[\"Mo\"],\"from\":\"00:00\",\"to\":\"06:00\"}", "Invalid",
      "spec.days[0]: found \"Mo\", want one of Mon, Tue, Wed, Thu, Fri, Sat, Sun" },
    { "{\"from\":\"00:00\",\"to\":\"06:00\"}", "Invalid",
      "spec.days: found nothing, want weekdays such as Mon" },
    { "{\"days\":[\"Mon\"],\"from\":\"00:00\"}", "Invalid",
      "spec.to: found nothing, want a time of the day such as 22:00, up to 24:00" },
    { "{\"days\":[\"Mon\"],\"from\":\"24:00\",\"to\":\"06:00\"}", "Invalid",
      "spec.from: found \"24:00\", want a time of the day such as 22:00, up to 23:59" },
    { "{\"days\":[\"Mon\"],\"from\":\"06:00\",\"to\":\"06:00\"}", "Invalid",
      "spec: found {\"days\":[\"Mon\"],\"from\":\"06:00\",\"to\":\"06:00\"}, want from and to "
      "that differ; 00:00 to 24:00 for whole days" },
    { "{\"days\":[\"Mon\"],\"from\":\"00:00\",\"to\":\"06:00\",\"recurrences\":[]}", "Invalid",
      NULL },
    { "{\"recurrences\":[{}]}", "Invalid",
      "spec.recurrences[0]: found {}, want exactly one of weekly, cron, rrule, at, dates" },
    { "{\"recurrences\":[{\"cron\":\"0 0 30 2 *\",\"duration\":\"1h\"}]}", "Invalid", NULL },
    { "{\"recurrences\":[{\"cron\":\"@daily\"}]}", "Invalid",
      "spec.recurrences[0].duration: found nothing, want a duration of 5m to 168h" },
    { "{\"recurrences\":[{\"cron\":\"@daily\",\"duration\":\"1d\"}]}", "Invalid",
      "spec.recurrences[0].duration: found \"1d\", want a duration such as 90s, 30m, 1h30m; "
      "24h "
      "for a day" },
    { "{\"recurrences\":[{\"rrule\":\"FREQ=HOURLY\",\"duration\":\"1h\"}]}", "UnsupportedRule",
      NULL },
    { "{\"recurrences\":[{\"dates\":[\"2026-13-40\"]}]}", "Invalid", NULL },
    { "{\"recurrences\":[{\"at\":{\"from\":\"2026-01-02T05:00:00Z\",\"to\":\"now\"}}]}", "Invalid",
      "spec.recurrences[0].at.to: found \"now\", want a time such as 2026-11-15T22:00:00Z" },
    { "{\"recurrences\":[{\"at\":{\"from\":\"2025-01-02T04:00:00Z\",\"to\":\"2025-01-02T05:00:"
      "00Z"
      "\"}}]}",
      "NeverOpens", NULL },
    { "{\"recurrences\":[{\"dates\":[\"--12-25\"]}],\"exclude\":[{\"dates\":[\"--12-20/"
      "--01-06\"]}]}",
      "NeverOpens", NULL },
    { "{" OPEN ",\"exclude\":[{\"ics\":{\"configMap\":\"x\",\"key\":\"y\"}}]}", "CalendarNotFound",
      "spec.exclude[0].ics: found {\"configMap\":\"x\",\"key\":\"y\"}, want a ConfigMap with "
      "this key (no ConfigMap 'x')" },
    { "{" OPEN ",\"exclude\":[{\"ics\":{\"configMap\":\"company\",\"key\":\"y\"}}]}",
      "CalendarInvalid", NULL },
    { "{" OPEN ",\"atClose\":\"Halt\"}", "Invalid",
      "spec.atClose: found \"Halt\", want one of Finish, Stop" },
    { "{" OPEN ",\"effect\":true}", "Invalid",
      "spec.effect: found true, want one of Open, Freeze" },
};

TEST(maintenance_window_says_what_is_wrong_where)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        const struct maintenance_window *w = read(&a, wrong[i].spec);
        CHECK_STR(w->problem.reason, wrong[i].reason);
        CHECK(w->problem.field.n > 0 && w->problem.wanted.n > 0);
        if (wrong[i].text != NULL) {
            CHECK_STR(spec_problem_text(&w->problem, &a), wrong[i].text);
        }
        /* Hours that are half of what was written must not open anything. */
        CHECK(w->window.hours.open_n == 0 || str_eq(w->problem.reason, STR("NeverOpens")) ||
              str_eq(w->problem.field, STR("spec.effect")));
        arena_done(&a);
    }
    check_case(-1);
}
