#include "calendar/cron.h"

#include "calendar/day.h"

#define HOURS_ALL ((UINT32_C(1) << 24) - 1)
#define CRON_YEARS_MAX 9  /* the longest a date can stay away: 29 February 2096 to 2104 */
#define CRON_SPANS_MAX 64 /* transitions in these years: places with most have four a year */
#define CRON_MERGE_MAX 64 /* windows that touch, before the answer may be early */

struct cron_field {
    const char *name;
    int low;
    int high; /* of "*" and of "8/2" */
    int most; /* of a value: 7 is Sunday, too */
    int names_n;
    const char *const *names;
    int first;   /* the value of the first name */
    bool is_day; /* "?" may stand for "*" */
};

static const struct cron_field cron_fields[5] = {
    { .name = "minute", .high = 59, .most = 59 },
    { .name = "hour", .high = 23, .most = 23 },
    { .name = "day of the month", .low = 1, .high = 31, .most = 31, .is_day = true },
    { .name = "month",
      .low = 1,
      .high = 12,
      .most = 12,
      .names_n = 12,
      .names = day_months,
      .first = 1 },
    { .name = "weekday",
      .high = 6,
      .most = 7,
      .names_n = 7,
      .names = day_weekdays,
      .is_day = true },
};

static int cron_refuse(const struct cron_field *f, struct str found, struct err *err)
{
    struct str shown = str_sub(found, 0, 32);
    if (f->names_n > 0) {
        return err_set(err, ERR_INVALID, "%s: found '" STR_FMT "', want %d to %d or %s to %s",
                       f->name, STR_ARG(shown), f->low, f->most, f->names[0],
                       f->names[f->names_n - 1]);
    }
    return err_set(err, ERR_INVALID, "%s: found '" STR_FMT "', want %d to %d", f->name,
                   STR_ARG(shown), f->low, f->most);
}

static int cron_value(const struct cron_field *f, struct str text, int *ret, struct err *err)
{
    uint32_t value;
    int name = day_find_name(text, f->names, f->names_n);
    if (name >= 0) {
        *ret = f->first + name;
        return 0;
    }
    if (!str_to_u32(text, &value) || value < (uint32_t)f->low || value > (uint32_t)f->most) {
        return cron_refuse(f, text, err);
    }
    *ret = (int)value;
    return 0;
}

struct cron_range {
    int from;
    int to;
};

/* "*", "5", "1-5"; one value with a step goes on to the end. */
static int cron_range(const struct cron_field *f, struct str text, bool stepped,
                      struct cron_range *ret, struct err *err)
{
    struct str from;
    struct str to;
    if (str_eq(text, STR("*")) || (f->is_day && str_eq(text, STR("?")))) {
        *ret = (struct cron_range){ .from = f->low, .to = f->high };
        return 0;
    }
    bool ranged = str_cut(text, STR("-"), &from, &to);
    int r = cron_value(f, from, &ret->from, err);
    if (r < 0) {
        return r;
    }
    ret->to = stepped ? MAX(f->high, ret->from) : ret->from;
    if (!ranged) {
        return 0;
    }
    r = cron_value(f, to, &ret->to, err);
    if (r < 0) {
        return r;
    }
    if (ret->to == 0 && ret->from > 0 && f->most == 7) {
        ret->to = 7; /* a week may end in Sunday */
    }
    if (ret->to < ret->from) {
        struct str shown = str_sub(text, 0, 32);
        return err_set(err, ERR_INVALID, "%s: found '" STR_FMT "', want a range that goes up",
                       f->name, STR_ARG(shown));
    }
    return 0;
}

/* One piece of a list; `*any` when it is the whole field. */
static int cron_item(const struct cron_field *f, struct str text, uint64_t *bits, bool *any,
                     struct err *err)
{
    struct str step_text;
    struct cron_range range = { 0 };
    uint32_t step = 1;
    bool stepped = str_cut(text, STR("/"), &text, &step_text);
    if (stepped && (!str_to_u32(step_text, &step) || step < 1 || step > 59)) {
        struct str shown = str_sub(step_text, 0, 32);
        return err_set(err, ERR_INVALID, "%s: found step '" STR_FMT "', want 1 to 59", f->name,
                       STR_ARG(shown));
    }
    int r = cron_range(f, text, stepped, &range, err);
    if (r < 0) {
        return r;
    }
    for (int value = range.from; value <= range.to; value += (int)step) {
        *bits |= UINT64_C(1) << (f->most == 7 ? value % 7 : value);
    }
    *any = *any || (step == 1 && (text.p[0] == '*' || text.p[0] == '?'));
    return 0;
}

static int cron_field_read(const struct cron_field *f, struct str text, uint64_t *bits, bool *any,
                           struct err *err)
{
    struct str item;
    *bits = 0;
    *any = false;
    while (str_split_next(&text, ',', &item)) {
        int r = cron_item(f, item, bits, any, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* The next word, without the white space around it; empty at the end. */
static struct str cron_word(struct str *rest)
{
    *rest = str_trim(*rest);
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t') {
        n++;
    }
    struct str word = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n, rest->n - n);
    return word;
}

static int cron_read(struct str text, struct cron *ret, struct err *err)
{
    uint64_t bits[5];
    bool any[5];
    for (int i = 0; i < 5; i++) {
        struct str word = cron_word(&text);
        if (word.n == 0) {
            return err_set(err, ERR_INVALID,
                           "found %d fields, want minute, hour, day of the "
                           "month, month and weekday",
                           i);
        }
        int r = cron_field_read(&cron_fields[i], word, &bits[i], &any[i], err);
        if (r < 0) {
            return r;
        }
    }
    text = str_trim(text);
    if (text.n > 0) {
        struct str shown = str_sub(text, 0, 32);
        return err_set(err, ERR_INVALID, "found '" STR_FMT "' behind the fifth field, want nothing",
                       STR_ARG(shown));
    }
    *ret = (struct cron){ .minutes = bits[0],
                          .hours = (uint32_t)bits[1],
                          .days = (uint32_t)bits[2],
                          .months = (uint16_t)bits[3],
                          .weekdays = (uint8_t)bits[4],
                          .any_day = any[2],
                          .any_weekday = any[4] };
    return 0;
}

static bool cron_comes(const struct cron *c)
{
    if (c->any_day || !c->any_weekday) {
        return true; /* some weekday is in every month */
    }
    for (int month = 1; month <= 12; month++) {
        uint64_t days = (UINT64_C(1) << (day_month_max(month) + 1)) - 1;
        if ((c->months >> month & 1) != 0 && (c->days & days) != 0) {
            return true;
        }
    }
    return false;
}

static const struct {
    const char *name;
    const char *pattern;
} cron_names[] = {
    { "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },   { "@midnight", "0 0 * * *" },
    { "@weekly", "0 0 * * 0" },   { "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
    { "@annually", "0 0 1 1 *" },
};

int cron_parse(struct str text, struct cron *ret, struct err *err)
{
    struct str shown = str_sub(text, 0, 64);
    struct str pattern = str_trim(text);
    struct cron c = { 0 };
    if (text.n > CRON_TEXT_MAX) {
        return err_set(err, ERR_LIMIT, "cron: found %zu bytes, want %u at most", text.n,
                       CRON_TEXT_MAX);
    }
    for (size_t i = 0; i < ARRAY_LEN(cron_names); i++) {
        if (str_eq(pattern, str_from(cron_names[i].name))) {
            pattern = str_from(cron_names[i].pattern);
        }
    }
    if (str_starts(pattern, STR("@"))) {
        return err_set(err, ERR_INVALID,
                       "cron '" STR_FMT "': want @hourly, @daily, @midnight, @weekly, @monthly, "
                       "@yearly, @annually or five fields",
                       STR_ARG(shown));
    }
    int r = cron_read(pattern, &c, err);
    if (r < 0) {
        return err_wrap(err, "cron '" STR_FMT "'", STR_ARG(shown));
    }
    if (!cron_comes(&c)) {
        return err_set(err, ERR_INVALID,
                       "cron '" STR_FMT "': found days that no such month has, want one that comes",
                       STR_ARG(shown));
    }
    *ret = c;
    return 0;
}

static bool cron_takes_day(const struct cron *c, const struct civil *date)
{
    bool day = (c->days >> date->day & 1) != 0;
    bool weekday = (c->weekdays >> date->weekday & 1) != 0;
    return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

/* The first minute of a day from `start` on; -1 when none is left. */
static int cron_minute(const struct cron *c, int start)
{
    int hour = start / 60;
    uint64_t rest = c->minutes >> (start % 60);
    if ((c->hours >> hour & 1) != 0 && rest != 0) {
        return start + __builtin_ctzll(rest);
    }
    uint32_t later = c->hours >> (hour + 1);
    return later == 0 ? -1 : (hour + 1 + __builtin_ctz(later)) * 60 + __builtin_ctzll(c->minutes);
}

/* The first civil time of the pattern from `local` on; INT64_MAX when there is none for years. */
static int64_t cron_find(const struct cron *c, int64_t local)
{
    int64_t day = day_of(local + 59);
    int start = (int)(day_clock(local + 59) / 60);
    struct civil date = civil_from_sec(day * DAY_SEC);
    int64_t last = date.year + CRON_YEARS_MAX;
    while (date.year <= last) {
        if ((c->months >> date.month & 1) == 0) {
            date.day = 1;
            date.year += date.month == 12 ? 1 : 0;
            date.month = date.month % 12 + 1;
            day = day_of(civil_to_sec(&date));
        } else {
            int minute = cron_takes_day(c, &date) ? cron_minute(c, start) : -1;
            if (minute >= 0) {
                return day * DAY_SEC + INT64_C(60) * minute;
            }
            day++;
        }
        date = civil_from_sec(day * DAY_SEC);
        start = 0;
    }
    return INT64_MAX;
}

usec_t cron_next(const struct cron *c, const struct zone *zone, usec_t after)
{
    bool every_hour = c->hours == HOURS_ALL;
    int64_t sec = timestamp_from_usec(after).sec + 1;
    for (int i = 0; i < CRON_SPANS_MAX && sec < USEC_NEVER / 2000000; i++) {
        struct zone_span span = zone_at(zone, sec);
        int64_t local = sec + span.offset;
        if (!every_hour && span.from != INT64_MIN) {
            int64_t shown = span.from + span.before; /* clocks have shown every time up to here */
            if (sec == span.from && shown < local && cron_find(c, shown) < local) {
                return SECONDS(sec);
            }
            local = MAX(local, shown);
        }
        int64_t found = cron_find(c, local);
        if (found == INT64_MAX) {
            break;
        }
        if (found - span.offset < span.until) {
            return SECONDS(found - span.offset);
        }
        sec = span.until;
    }
    return USEC_NEVER;
}

struct cron_answer cron_window_at(const struct cron_window *w, usec_t now)
{
    ASSERT(w->duration > 0);
    usec_t at = cron_next(&w->cron, w->zone, now - w->duration);
    struct cron_answer answer = { .open = at <= now, .next = at };
    if (!answer.open) {
        return answer;
    }
    for (int i = 0; i < CRON_MERGE_MAX && at <= answer.next; i++) {
        answer.next = at + w->duration;
        at = cron_next(&w->cron, w->zone, at);
    }
    return answer;
}
