#include "calendar/ics.h"

#include "base/buf.h"

#define LINE_BYTES_MAX ((size_t)64 * 1024) /* a thousand dates to leave out fit */

struct ics_file {
    const struct ics_reader *reader;
    struct arena *out;
    struct str rest;
    uint32_t line; /* of the first physical line of the logical one */
    uint32_t next_line;
    struct recurrence *events;
    uint32_t event_n;
    uint32_t event_cap;
};

/* One event while its lines are read. */
struct ics_event {
    struct rrule_time start;
    const struct zone *zone;
    struct rrule_time end;
    const struct zone *end_zone;
    usec_t duration; /* -1: none given */
    struct str rule;
    int64_t *skips;
    uint32_t skip_n;
    uint32_t skip_cap;
    bool cancelled;
    uint32_t line;
};

/* "DTSTART;TZID=Europe/Berlin:20261224T180000" in its pieces. */
struct ics_property {
    struct str name;
    struct str parameters;
    struct str value;
};

static struct str physical_line(struct ics_file *f)
{
    struct str line;
    struct str rest;
    (void)str_cut(f->rest, STR("\n"), &line, &rest);
    f->rest = rest;
    f->next_line++;
    (void)str_cut_suffix(line, STR("\r"), &line);
    return line;
}

/* The next logical line: one that begins with white space goes on with the one before. */
static int next_line(struct ics_file *f, struct str *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf joined = { .max = LINE_BYTES_MAX };
    f->line = f->next_line;
    struct str line = physical_line(f);
    *ret = line;
    while (f->rest.n > 0 && (f->rest.p[0] == ' ' || f->rest.p[0] == '\t')) {
        struct str more = physical_line(f);
        if (joined.n == 0) {
            buf_add(&joined, line);
        }
        buf_add(&joined, str_sub(more, 1, more.n - 1));
    }
    if (joined.full) {
        return err_set(err, ERR_LIMIT, "found a line above %zu bytes", LINE_BYTES_MAX);
    }
    if (joined.n > 0) {
        *ret = arena_str(f->out, buf_str(&joined));
    }
    return 0;
}

/* Splits at the first colon outside of quotes. */
static struct ics_property split_property(struct str line)
{
    bool quoted = false;
    size_t colon = 0;
    while (colon < line.n && (line.p[colon] != ':' || quoted)) {
        quoted = line.p[colon] == '"' ? !quoted : quoted;
        colon++;
    }
    struct ics_property p = { 0 };
    struct str head = str_sub(line, 0, colon);
    p.value = colon < line.n ? str_sub(line, colon + 1, line.n - colon - 1) : STR("");
    (void)str_cut(head, STR(";"), &p.name, &p.parameters);
    return p;
}

/* The value of a parameter; empty when it is not there. */
static struct str parameter(struct str parameters, struct str name)
{
    struct str item;
    struct str key;
    struct str value;
    while (parameters.n > 0 && str_split_next(&parameters, ';', &item)) {
        (void)str_cut(item, STR("="), &key, &value);
        if (str_eq_fold(key, name)) {
            (void)str_cut_prefix(value, STR("\""), &value);
            (void)str_cut_suffix(value, STR("\""), &value);
            return value;
        }
    }
    return STR("");
}

static int property_zone(const struct ics_file *f, const struct ics_property *p,
                         const struct zone **ret, struct err *err)
{
    struct str name = parameter(p->parameters, STR("TZID"));
    *ret = f->reader->zone;
    if (name.n == 0) {
        return 0;
    }
    if (f->reader->find_zone == NULL) {
        return err_set(err, ERR_INVALID, "found TZID where no zones are known, want UTC times");
    }
    return f->reader->find_zone(f->reader->ctx, name, ret, err);
}

/* A time with Z becomes a civil time of UTC. */
static int read_time(const struct ics_file *f, const struct ics_property *p, struct rrule_time *ret,
                     const struct zone **ret_zone, struct err *err)
{
    int r = rrule_parse_time(str_trim(p->value), ret, err);
    if (r < 0) {
        return r;
    }
    if (ret->utc) {
        *ret_zone = NULL;
        return 0;
    }
    return property_zone(f, p, ret_zone, err);
}

/* "P1W", "P2DT3H", "PT90M"; RFC 5545 section 3.3.6. */
static int read_duration(struct str text, usec_t *ret, struct err *err)
{
    static const struct {
        char letter;
        bool timed;
        usec_t unit;
    } units[] = { { 'W', false, DAYS(7) },
                  { 'D', false, DAYS(1) },
                  { 'H', true, HOURS(1) },
                  { 'M', true, MINUTES(1) },
                  { 'S', true, SECONDS(1) } };
    struct str rest;
    struct str shown = str_sub(text, 0, 32);
    bool timed = false;
    size_t unit = 0; /* large units come before small ones, each once */
    usec_t sum = 0;
    bool good = str_cut_prefix(text, STR("P"), &rest) && rest.n > 0;
    while (good && rest.n > 0) {
        size_t n = 0;
        uint32_t number;
        timed = str_cut_prefix(rest, STR("T"), &rest) || timed;
        while (n < rest.n && rest.p[n] >= '0' && rest.p[n] <= '9') {
            n++;
        }
        while (n < rest.n && unit < ARRAY_LEN(units) &&
               (units[unit].letter != rest.p[n] || units[unit].timed != timed)) {
            unit++;
        }
        good = n < rest.n && unit < ARRAY_LEN(units) && n < 7 &&
               str_to_u32(str_sub(rest, 0, n), &number);
        if (good) {
            sum += (usec_t)number * units[unit++].unit;
            rest = str_sub(rest, n + 1, rest.n - n - 1);
        }
    }
    if (!good || sum <= 0) {
        return err_set(err, ERR_INVALID,
                       "DURATION: found '" STR_FMT "', want one such as PT2H or P1D",
                       STR_ARG(shown));
    }
    *ret = sum;
    return 0;
}

static int read_skips(struct ics_file *f, struct ics_event *event, const struct ics_property *p,
                      struct err *err)
{
    struct str value = p->value;
    struct str item;
    while (str_split_next(&value, ',', &item)) {
        struct rrule_time at;
        const struct zone *zone;
        struct ics_property one = { .parameters = p->parameters, .value = item };
        if (event->skip_n == RECURRENCE_SKIPS_MAX) {
            return err_set(err, ERR_LIMIT, "EXDATE: found more than %u dates, want fewer",
                           RECURRENCE_SKIPS_MAX);
        }
        int r = read_time(f, &one, &at, &zone, err);
        if (r < 0) {
            return r;
        }
        /* Compared as civil times of the event: instants first, where the zones may differ. */
        int64_t instant = zone_instants(zone, at.sec).first;
        int64_t local = at.timed ? instant + zone_at(event->zone, instant).offset : at.sec;
        ARENA_GROW(f->out, event->skips, event->skip_n, event->skip_cap);
        event->skips[event->skip_n++] = local;
    }
    return 0;
}

static int read_property(struct ics_file *f, struct ics_event *event, const struct ics_property *p,
                         struct err *err)
{
    if (str_eq_fold(p->name, STR("DTSTART"))) {
        return read_time(f, p, &event->start, &event->zone, err);
    }
    if (str_eq_fold(p->name, STR("DTEND"))) {
        return read_time(f, p, &event->end, &event->end_zone, err);
    }
    if (str_eq_fold(p->name, STR("DURATION"))) {
        return read_duration(str_trim(p->value), &event->duration, err);
    }
    if (str_eq_fold(p->name, STR("RRULE"))) {
        if (event->rule.n > 0) {
            return err_set(err, ERR_INVALID, "found a second RRULE, want one an event");
        }
        event->rule = str_trim(p->value);
    } else if (str_eq_fold(p->name, STR("EXDATE"))) {
        if (!event->start.given) {
            return err_set(err, ERR_INVALID, "found EXDATE before DTSTART, want it behind");
        }
        return read_skips(f, event, p, err);
    } else if (str_eq_fold(p->name, STR("STATUS"))) {
        event->cancelled = str_eq_fold(str_trim(p->value), STR("CANCELLED"));
    }
    return 0;
}

static void sort_skips(struct ics_event *event)
{
    for (uint32_t i = 1; i < event->skip_n; i++) {
        int64_t skip = event->skips[i];
        uint32_t at = i;
        for (; at > 0 && event->skips[at - 1] > skip; at--) {
            event->skips[at] = event->skips[at - 1];
        }
        event->skips[at] = skip;
    }
}

/* How long an event is: from DTEND, DURATION, or the day that it is; -1 when it ends too early. */
static usec_t event_length(const struct ics_event *event)
{
    if (event->duration >= 0) {
        return event->duration;
    }
    if (!event->end.given) {
        return event->start.timed ? 0 : DAYS(1);
    }
    if (!event->start.timed) {
        return SECONDS(event->end.sec - event->start.sec);
    }
    return SECONDS(zone_instants(event->end_zone, event->end.sec).first -
                   zone_instants(event->zone, event->start.sec).first);
}

static int add_event(struct ics_file *f, struct ics_event *event, struct err *err)
{
    usec_t length = event_length(event);
    struct recurrence found = { .kind = RECURRENCE_RRULE,
                                .zone = event->zone,
                                .duration = length,
                                .from = day_clock(event->start.sec),
                                .whole_days = !event->start.timed,
                                .skips = event->skips };
    if (!event->start.given) {
        return err_set(err, ERR_INVALID, "found an event without DTSTART");
    }
    if (event->end.given && event->end.timed != event->start.timed) {
        return err_set(err, ERR_INVALID, "found DTEND and DTSTART in two forms, want one");
    }
    if (length < 0) {
        return err_set(err, ERR_INVALID, "found DTEND before DTSTART, want it behind");
    }
    if (length == 0 || event->cancelled) {
        return 0; /* a moment, or nothing */
    }
    if (f->event_n == ICS_EVENTS_MAX) {
        return err_set(err, ERR_LIMIT, "found more than %u events, want fewer", ICS_EVENTS_MAX);
    }
    struct rrule_time start = event->start;
    start.utc = false; /* its zone says so */
    struct str rule = event->rule.n > 0 ? event->rule : STR("FREQ=DAILY;COUNT=1");
    int r = rrule_parse_from(rule, start, &found.rule, err);
    if (r < 0) {
        return r;
    }
    sort_skips(event);
    found.skip_n = event->skip_n;
    ARENA_GROW(f->out, f->events, f->event_n, f->event_cap);
    f->events[f->event_n++] = found;
    return 0;
}

/* Lines inside of an event; those of what it contains (alarms) are not its own. */
static int read_event(struct ics_file *f, struct err *err)
{
    struct ics_event event = { .duration = -1, .line = f->line };
    uint32_t depth = 0;
    while (f->rest.n > 0) {
        struct str line;
        int r = next_line(f, &line, err);
        if (r < 0) {
            return r;
        }
        struct ics_property p = split_property(line);
        bool begins = str_eq_fold(p.name, STR("BEGIN"));
        bool ends = str_eq_fold(p.name, STR("END"));
        if (ends && depth == 0) {
            f->line = event.line;
            return add_event(f, &event, err);
        }
        depth += begins ? 1 : 0;
        depth -= ends ? 1 : 0;
        r = depth > 0 || ends ? 0 : read_property(f, &event, &p, err);
        if (r < 0) {
            return r;
        }
    }
    f->line = event.line;
    return err_set(err, ERR_INVALID, "found no END:VEVENT for this event");
}

static int read_file(struct ics_file *f, struct err *err)
{
    bool calendar = false;
    while (f->rest.n > 0) {
        struct str line;
        int r = next_line(f, &line, err);
        if (r < 0) {
            return r;
        }
        struct ics_property p = split_property(line);
        bool begins = str_eq_fold(p.name, STR("BEGIN"));
        calendar = calendar || (begins && str_eq_fold(str_trim(p.value), STR("VCALENDAR")));
        if (begins && str_eq_fold(str_trim(p.value), STR("VEVENT"))) {
            r = calendar ? read_event(f, err) : 0;
        }
        if (r < 0) {
            return r;
        }
    }
    return calendar ? 0 : err_set(err, ERR_INVALID, "found no BEGIN:VCALENDAR");
}

int ics_parse(struct str text, const struct ics_reader *reader, struct arena *out,
              struct recurrence **ret, uint32_t *ret_n, struct err *err)
{
    struct ics_file f = { .reader = reader, .out = out, .rest = text, .line = 1, .next_line = 1 };
    if (text.n > ICS_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "ics: found %zu bytes, want %zu at most", text.n,
                       ICS_BYTES_MAX);
    }
    int r = read_file(&f, err);
    if (r < 0) {
        return err_wrap(err, "ics: line %u", f.line);
    }
    *ret = f.events;
    *ret_n = f.event_n;
    return 0;
}
