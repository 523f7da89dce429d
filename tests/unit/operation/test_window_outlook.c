#include "operation/window_outlook.h"

#include "format/yaml.h"
#include "kinds/maintenance_window.h"
#include "tests/check.h"

#define MONDAY SECONDS(1767571200) /* 2026-01-05T00:00:00Z */

struct outlook_fixture {
    struct arena memory;
    struct maintenance_window window;
    const struct opening_hours *hours[1];
    struct opening_plan plan;
};

static void outlook_of(struct outlook_fixture *x, const char *spec)
{
    struct ydoc doc = { 0 };
    struct err err = { 0 };
    *x = (struct outlook_fixture){ 0 };
    CHECK_EQ(ydoc_parse(arena_printf(&x->memory, "metadata: {name: w}\nspec: %s", spec), &x->memory,
                        &doc, &err),
             0);
    const struct window_sources sources = { .now = MONDAY };
    maintenance_window_read(doc.root, &sources, &x->memory, &x->window);
    CHECK_STR(x->window.problem.field, "");
    x->hours[0] = &x->window.window.hours;
    x->plan = (struct opening_plan){ .hours = x->hours, .hours_n = 1 };
}

TEST(window_outlook_lists_the_openings_behind_the_one_that_is_open)
{
    struct outlook_fixture x;
    struct window_outlook w = { 0 };
    outlook_of(&x, "{days: [Mon], from: '02:00', to: '04:00'}");
    window_outlook_begin(&w, MONDAY + HOURS(3));
    CHECK(window_outlook_search(&w, &x.plan));
    CHECK(w.open);
    CHECK_EQ(w.open_until, MONDAY + HOURS(4));
    CHECK_EQ(window_outlook_until(&w), MONDAY + HOURS(4));
    CHECK_EQ(w.next_n, WINDOW_OUTLOOK_MAX);
    for (uint32_t i = 0; i < w.next_n; i++) {
        CHECK_EQ(w.next[i].start, MONDAY + HOURS(2) + DAYS(7) * (i + 1));
        CHECK_EQ(w.next[i].end, w.next[i].start + HOURS(2));
    }
    arena_done(&x.memory);
}

TEST(window_outlook_changes_at_the_next_opening_while_shut)
{
    struct outlook_fixture x;
    struct window_outlook w = { 0 };
    outlook_of(&x, "{days: [Mon], from: '02:00', to: '04:00'}");
    window_outlook_begin(&w, MONDAY + HOURS(4)); /* shut at its very end */
    CHECK(window_outlook_search(&w, &x.plan));
    CHECK(!w.open);
    CHECK_EQ(w.next[0].start, MONDAY + DAYS(7) + HOURS(2));
    CHECK_EQ(window_outlook_until(&w), w.next[0].start);
    arena_done(&x.memory);
}

TEST(window_outlook_of_one_opening_ends_with_it)
{
    static const struct {
        usec_t at;
        bool open;
        uint32_t next_n;
    } cases[] = {
        { MONDAY, false, 1 },
        { MONDAY + DAYS(1), true, 0 },
        { MONDAY + DAYS(1) + HOURS(1), false, 0 },
    };
    struct outlook_fixture x;
    outlook_of(&x,
               "{recurrences: [{at: {from: '2026-01-06T00:00:00Z', to: '2026-01-06T01:00:00Z'}}]}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct window_outlook w = { 0 };
        check_case((int)i);
        window_outlook_begin(&w, cases[i].at);
        CHECK(window_outlook_search(&w, &x.plan));
        CHECK_EQ(w.open, cases[i].open);
        CHECK_EQ(w.next_n, cases[i].next_n);
    }
    check_case(-1);
    struct window_outlook over = { 0 };
    window_outlook_begin(&over, MONDAY + DAYS(2));
    CHECK(window_outlook_search(&over, &x.plan));
    CHECK_EQ(window_outlook_until(&over), USEC_NEVER);
    arena_done(&x.memory);
}

TEST(window_outlook_goes_on_where_one_turn_stopped)
{
    struct outlook_fixture x;
    struct window_outlook w = { 0 };
    /* The 31st of a month that has 30 days, except that it never is a Monday: long to search. */
    outlook_of(&x, "{recurrences: [{cron: '0 0 * * *', duration: 5m}],"
                   " exclude: [{weekly: {days: [Mon, Tue, Wed, Thu, Fri, Sat], from: '00:00', to: "
                   "'24:00'}}]}");
    window_outlook_begin(&w, MONDAY);
    uint32_t turns = 1;
    while (!window_outlook_search(&w, &x.plan)) {
        turns++;
        CHECK(turns < 1000);
    }
    CHECK_EQ(w.next_n, WINDOW_OUTLOOK_MAX);
    CHECK_EQ(w.next[0].start, MONDAY + DAYS(6)); /* Sundays are left */
    CHECK_EQ(w.next[9].start, MONDAY + DAYS(6 + 63));
    arena_done(&x.memory);
}
