/* Whatever a MaintenanceWindow holds, it is read, and it has hours or a problem that says where,
 * what and why. */
#include "kinds/maintenance_window.h"
#include "tests/fuzz/target.h"

static int find_zone(void *ctx UNUSED, struct str name, const struct zone **ret, struct err *err)
{
    if (name.n % 2 == 0) {
        return err_set(err, ERR_NOTFOUND, "no such zone");
    }
    *ret = NULL;
    return 0;
}

/* The name of the ConfigMap is the file. */
static int find_calendar(void *ctx UNUSED, struct str config_map, struct str key UNUSED,
                         struct str *ret, struct err *err UNUSED)
{
    *ret = config_map;
    return 0;
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct maintenance_window w;
    const struct window_sources sources = { .find_zone = find_zone,
                                            .find_calendar = find_calendar,
                                            .now = SECONDS(1767323045) };
    if (json_parse(text, JSON_GO, &a, &object, &err) < 0) {
        return;
    }
    maintenance_window_read(object, &sources, &a, &w);
    const struct spec_problem *p = &w.problem;
    ASSERT(p->reason.n > 0 || (w.window.given && w.window.hours.open_n > 0));
    ASSERT((p->reason.n > 0) == (p->field.n > 0) && (p->reason.n > 0) == (p->wanted.n > 0));
    ASSERT(p->found.n <= SPEC_FOUND_MAX + 3);
    ASSERT(w.window.hours.open_n <= WINDOW_RECURRENCES_MAX);
    ASSERT(w.window.hours.closed_n <= WINDOW_RECURRENCES_MAX + WINDOW_EVENTS_MAX);
    for (uint32_t i = 0; i < w.window.hours.open_n; i++) {
        const struct recurrence *r = &w.window.hours.open[i];
        struct interval next;
        if (recurrence_next(r, sources.now, &next)) {
            ASSERT(next.end > sources.now && next.start < next.end);
        }
    }
}
