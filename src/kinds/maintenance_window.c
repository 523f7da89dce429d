#include "kinds/maintenance_window.h"

#include "calendar/day.h"

#define DURATION_MIN MINUTES(5)
#define DURATION_MAX HOURS(168)
#define RECURRENCES_MAX 16u /* the schema's, as the next two */
#define EXCLUDES_MAX 64u
#define DATES_MAX 64u
#define DAYS_MAX 7u

struct hours_list {
    struct recurrence *items;
    uint32_t n;
    uint32_t cap;
};

struct hours_reader {
    const struct window_sources *sources;
    const struct zone *zone;
    struct arena *out;
    struct hours_list open;
    struct hours_list closed;
    uint32_t events;
};

static struct recurrence *hours_add(struct hours_reader *h, struct hours_list *list,
                                    const struct spec_node *at)
{
    if (list->n == WINDOW_RECURRENCES_MAX + (list == &h->closed ? h->events : 0)) {
        spec_wrong(at, "TooComplex", "at most %u recurrences and dates", WINDOW_RECURRENCES_MAX);
        return NULL;
    }
    ARENA_GROW(h->out, list->items, list->n, list->cap);
    struct recurrence *r = &list->items[list->n++];
    *r = (struct recurrence){ .zone = h->zone };
    return r;
}

static uint8_t days_read(const struct spec_node *at)
{
    struct spec_node list = spec_member(at, "days");
    uint8_t days = 0;
    if (spec_count(&list) == 0) {
        spec_wrong(&list, "Invalid", "weekdays such as Mon");
    }
    SPEC_EACH(&list, DAYS_MAX, item)
    {
        int day = 0;
        struct err err = { 0 };
        struct str text = jval_str(item.value);
        if (text.n != 3 || day_parse_weekday(text, &day, &err) < 0) {
            spec_wrong(&item, "Invalid", "one of Mon, Tue, Wed, Thu, Fri, Sat, Sun");
            continue;
        }
        days |= (uint8_t)(1u << (unsigned)day);
    }
    return days;
}

static uint32_t clock_read(const struct spec_node *at, const char *key, bool end)
{
    struct spec_node m = spec_member(at, key);
    uint32_t sec = 0;
    struct err err = { 0 };
    if (m.value == NULL || recurrence_parse_clock(jval_str(m.value), end, &sec, &err) < 0) {
        spec_wrong(&m, "Invalid", "a time of the day such as 22:00, up to %s",
                   end ? "24:00" : "23:59");
    }
    return sec;
}

static void weekly_read(struct hours_reader *h, const struct spec_node *at, struct hours_list *list)
{
    struct recurrence *r = hours_add(h, list, at);
    if (r == NULL) {
        return;
    }
    r->kind = RECURRENCE_WEEKLY;
    r->weekdays = days_read(at);
    r->from = clock_read(at, "from", /* end= */ false);
    r->to = clock_read(at, "to", /* end= */ true);
    if (r->from == r->to) {
        spec_wrong(at, "Invalid", "from and to that differ; 00:00 to 24:00 for whole days");
    }
}

static void dates_read(struct hours_reader *h, const struct spec_node *at, struct hours_list *list)
{
    SPEC_EACH(at, DATES_MAX, item)
    {
        struct err err = { 0 };
        struct recurrence *r = hours_add(h, list, &item);
        if (r == NULL) {
            return;
        }
        r->kind = RECURRENCE_DATES;
        if (recurrence_parse_dates(jval_str(item.value), &r->dates, &err) < 0) {
            spec_wrong(&item, "Invalid", "a date such as 2026-12-24, --12-25, --12-20/--01-06 (%s)",
                       err.msg);
        }
    }
}

static usec_t hours_duration(const struct spec_node *at)
{
    struct spec_node m = spec_member(at, "duration");
    usec_t d = spec_duration(at, "duration", 0);
    if (d < DURATION_MIN || d > DURATION_MAX) {
        spec_wrong(&m, "Invalid", "a duration of 5m to 168h");
        return DURATION_MIN;
    }
    return d;
}

static void rule_read(struct hours_reader *h, const struct spec_node *at, struct hours_list *list)
{
    struct spec_node m = spec_member(at, "rrule");
    struct err err = { 0 };
    struct recurrence *r = hours_add(h, list, at);
    if (r == NULL) {
        return;
    }
    r->kind = RECURRENCE_RRULE;
    r->duration = hours_duration(at);
    r->from = spec_has(at, "start") ? clock_read(at, "start", /* end= */ false) : 0;
    if (rrule_parse(jval_str(m.value), &r->rule, &err) < 0) {
        spec_wrong(&m, "UnsupportedRule", "a rule such as FREQ=MONTHLY;BYDAY=2TU (%s)", err.msg);
    }
}

static void cron_read(struct hours_reader *h, const struct spec_node *at)
{
    struct spec_node m = spec_member(at, "cron");
    struct err err = { 0 };
    struct recurrence *r = hours_add(h, &h->open, at);
    if (r == NULL) {
        return;
    }
    r->kind = RECURRENCE_CRON;
    r->duration = hours_duration(at);
    if (cron_parse(jval_str(m.value), &r->cron, &err) < 0) {
        spec_wrong(&m, "Invalid", "five fields such as '0 2 * * 2' (%s)", err.msg);
    }
}

static void once_read(struct hours_reader *h, const struct spec_node *at)
{
    struct recurrence *r = hours_add(h, &h->open, at);
    if (r == NULL) {
        return;
    }
    r->kind = RECURRENCE_ONCE;
    r->once = (struct interval){ .start = spec_time(at, "from"), .end = spec_time(at, "to") };
    if (r->once.start >= r->once.end) {
        spec_wrong(at, "Invalid", "from and to, a later time");
    }
}

/* Exactly one of `keys` is there: which; `n` and a note otherwise. */
static uint32_t one_of(const struct spec_node *at, const char *const *keys, uint32_t n,
                       const char *words)
{
    uint32_t found = n;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (spec_has(at, keys[i])) {
            found = i;
            count++;
        }
    }
    if (count != 1) {
        spec_wrong(at, "Invalid", "exactly one of %s", words);
        return n;
    }
    return found;
}

static void recurrence_read(struct hours_reader *h, const struct spec_node *at)
{
    static const char *const keys[] = { "weekly", "cron", "rrule", "at", "dates" };
    uint32_t which = one_of(at, keys, ARRAY_LEN(keys), "weekly, cron, rrule, at, dates");
    if (which == ARRAY_LEN(keys)) {
        return;
    }
    struct spec_node m = spec_member(at, keys[which]);
    switch (which) {
    case 0:
        weekly_read(h, &m, &h->open);
        break;
    case 1:
        cron_read(h, at);
        break;
    case 2:
        rule_read(h, at, &h->open);
        break;
    case 3:
        once_read(h, &m);
        break;
    default:
        dates_read(h, &m, &h->open);
        break;
    }
}

static void calendar_read(struct hours_reader *h, const struct spec_node *at)
{
    struct str config_map = spec_text(at, "configMap");
    struct str key = spec_text(at, "key");
    struct str text = STR_NONE;
    struct recurrence *events = NULL;
    uint32_t n = 0;
    struct err err = { 0 };
    const struct window_sources *s = h->sources;
    const struct ics_reader reader = { .zone = h->zone, .find_zone = s->find_zone, .ctx = s->ctx };
    if (s->find_calendar == NULL || s->find_calendar(s->ctx, config_map, key, &text, &err) < 0) {
        spec_wrong(at, "CalendarNotFound", "a ConfigMap with this key (%s)",
                   s->find_calendar == NULL ? "there are none" : err.msg);
    } else if (ics_parse(text, &reader, h->out, &events, &n, &err) < 0) {
        spec_wrong(at, "CalendarInvalid", "an iCalendar file (%s)", err.msg);
    } else if (n > WINDOW_EVENTS_MAX - h->events) {
        spec_wrong(at, "TooComplex", "calendar files of at most %u events together",
                   WINDOW_EVENTS_MAX);
    } else {
        for (uint32_t i = 0; i < n; i++) {
            h->events++;
            struct recurrence *r = hours_add(h, &h->closed, at);
            if (r != NULL) {
                *r = events[i];
            }
        }
    }
}

static void exclude_read(struct hours_reader *h, const struct spec_node *at)
{
    static const char *const keys[] = { "dates", "weekly", "rrule", "ics" };
    uint32_t which = one_of(at, keys, ARRAY_LEN(keys), "dates, weekly, rrule, ics");
    if (which == ARRAY_LEN(keys)) {
        return;
    }
    struct spec_node m = spec_member(at, keys[which]);
    if (which == 0) {
        dates_read(h, &m, &h->closed);
    } else if (which == 1) {
        weekly_read(h, &m, &h->closed);
    } else if (which == 2) {
        rule_read(h, at, &h->closed);
    } else {
        calendar_read(h, &m);
    }
}

static void zone_read(const struct spec_node *at, const struct window_sources *sources,
                      struct window_hours *w)
{
    struct spec_node m = spec_member(at, "timeZone");
    struct str name = spec_text(at, "timeZone");
    struct err err = { 0 };
    w->zone_name = STR("UTC");
    if (name.n == 0 || str_eq(name, STR("UTC"))) {
        return;
    }
    if (sources->find_zone == NULL) {
        spec_wrong(&m, "UnknownZone", "UTC: no zones are known here");
    } else if (sources->find_zone(sources->ctx, name, &w->zone, &err) < 0) {
        spec_wrong(&m, "UnknownZone", "a zone such as Europe/Berlin (%s)", err.msg);
    } else {
        w->zone_name = name;
    }
}

/* One turn's work is enough to see that it opens; what needs more has not been shown to be wrong.
 */
static void opens_check(const struct spec_node *at, const struct window_hours *w, usec_t now)
{
    const struct opening_hours *hours = &w->hours;
    const struct opening_plan plan = { .hours = &hours, .hours_n = 1 };
    struct opening_search search = opening_search_from(now);
    struct interval next;
    if (opening_next(&plan, &search, &next) == OPENING_NEVER) {
        spec_wrong(at, "NeverOpens", "a window that opens in the next %d years", RRULE_YEARS_MAX);
    }
}

void window_hours_read(const struct spec_node *at, const struct window_sources *sources,
                       struct window_hours *ret)
{
    static const char *const closes[] = { "Finish", "Stop" };
    struct hours_reader h = { .sources = sources, .out = at->reader->out };
    struct spec_node recurrences = spec_member(at, "recurrences");
    struct spec_node exclude = spec_member(at, "exclude");
    bool briefly = spec_has(at, "days") || spec_has(at, "from") || spec_has(at, "to");
    *ret = (struct window_hours){
        .given = briefly || recurrences.value != NULL,
        .min_remaining = spec_duration(at, "minRemaining", WINDOW_MIN_REMAINING),
        .at_close = (enum window_at_close)SPEC_ENUM(at, "atClose", closes, WINDOW_FINISH),
    };
    zone_read(at, sources, ret);
    h.zone = ret->zone;
    if (briefly && recurrences.value != NULL) {
        spec_wrong(at, "Invalid", "either days, from and to, or recurrences");
    } else if (briefly) {
        weekly_read(&h, at, &h.open);
    } else if (ret->given && spec_count(&recurrences) == 0) {
        spec_wrong(&recurrences, "Invalid", "at least one recurrence");
    }
    SPEC_EACH(&recurrences, RECURRENCES_MAX, item)
    {
        recurrence_read(&h, &item);
    }
    SPEC_EACH(&exclude, EXCLUDES_MAX, item)
    {
        exclude_read(&h, &item);
    }
    if (at->reader->problem.reason.n > 0 || !ret->given) {
        return; /* half of its rules would be other hours than were meant */
    }
    ret->hours = (struct opening_hours){
        .open = h.open.items, .open_n = h.open.n, .closed = h.closed.items, .closed_n = h.closed.n
    };
    opens_check(at, ret, sources->now);
}

void maintenance_window_read(const struct jval *object, const struct window_sources *sources,
                             struct arena *out, struct maintenance_window *ret)
{
    static const char *const effects[] = { "Open", "Freeze" };
    struct spec_reader reader = { .out = out };
    struct spec_node spec = spec_root(&reader, object, "spec");
    *ret = (struct maintenance_window){
        .meta = spec_read_meta(object, out),
        .effect = (enum window_effect)SPEC_ENUM(&spec, "effect", effects, WINDOW_OPEN),
        .status = spec_read_status(object, out),
    };
    window_hours_read(&spec, sources, &ret->window);
    if (!ret->window.given) {
        spec_wrong(&spec, "Invalid", "days, from and to, or recurrences");
    }
    ret->problem = reader.problem;
}

static int maintenance_window_project(void *ctx, const struct jval *object, struct arena *out,
                                      void **ret, struct err *err UNUSED)
{
    struct maintenance_window *w = ARENA_NEW(out, struct maintenance_window);
    maintenance_window_read(object, ctx, out, w);
    *ret = w;
    return 0;
}

/* Every version counts: the next write of its status is based on it. */
static bool maintenance_window_same(const void *a UNUSED, const void *b UNUSED)
{
    return false;
}

const struct store_kind maintenance_window_kind = {
    .name = "maintenance window",
    .project = maintenance_window_project,
    .same = maintenance_window_same,
};
