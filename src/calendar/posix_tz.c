#include "calendar/posix_tz.h"

#include "calendar/day.h"

/* Edges of five years: an edge may be a week away from its own year, and all of them are kept. */
#define POSIX_TZ_EDGES 10

static bool posix_tz_take(struct str *rest, char c)
{
    return str_cut_prefix(*rest, (struct str){ .p = &c, .n = 1 }, rest);
}

static bool posix_tz_number(struct str *rest, int low, int high, int *ret)
{
    int value = 0;
    size_t n = 0;
    while (n < rest->n && n < 4 && rest->p[n] >= '0' && rest->p[n] <= '9') {
        value = value * 10 + (rest->p[n++] - '0');
    }
    *rest = str_sub(*rest, n, rest->n - n);
    *ret = value;
    return n > 0 && value >= low && value <= high;
}

/* "[+-]hh[:mm[:ss]]" in seconds. */
static bool posix_tz_time(struct str *rest, int hours_max, int32_t *ret)
{
    int sign = posix_tz_take(rest, '-') ? -1 : 1;
    int hours;
    int minutes = 0;
    int seconds = 0;
    if (sign > 0) {
        (void)posix_tz_take(rest, '+'); /* may be there */
    }
    if (!posix_tz_number(rest, 0, hours_max, &hours) ||
        (posix_tz_take(rest, ':') &&
         (!posix_tz_number(rest, 0, 59, &minutes) ||
          (posix_tz_take(rest, ':') && !posix_tz_number(rest, 0, 59, &seconds))))) {
        return false;
    }
    *ret = sign * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool posix_tz_name(struct str *rest, struct str *ret)
{
    bool quoted = posix_tz_take(rest, '<');
    size_t n = 0;
    while (n < rest->n) {
        char c = rest->p[n];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(quoted && ((c >= '0' && c <= '9') || c == '+' || c == '-'))) {
            break;
        }
        n++;
    }
    *ret = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n, rest->n - n);
    return n >= 3 && (!quoted || posix_tz_take(rest, '>'));
}

static bool posix_tz_read_edge(struct str *rest, struct posix_tz_edge *ret)
{
    bool good;
    *ret = (struct posix_tz_edge){ .time = 7200 };
    if (!posix_tz_take(rest, ',')) {
        return false;
    }
    if (posix_tz_take(rest, 'M')) {
        ret->form = EDGE_WEEKDAY;
        good = posix_tz_number(rest, 1, 12, &ret->month) && posix_tz_take(rest, '.') &&
               posix_tz_number(rest, 1, 5, &ret->week) && posix_tz_take(rest, '.') &&
               posix_tz_number(rest, 0, 6, &ret->day);
    } else if (posix_tz_take(rest, 'J')) {
        ret->form = EDGE_JULIAN;
        good = posix_tz_number(rest, 1, 365, &ret->day);
    } else {
        ret->form = EDGE_DAY;
        good = posix_tz_number(rest, 0, 365, &ret->day);
    }
    return good && (!posix_tz_take(rest, '/') || posix_tz_time(rest, 167, &ret->time));
}

bool posix_tz_parse(struct str text, struct posix_tz *ret)
{
    struct posix_tz r = { .saving = { .dst = true } };
    int32_t west;
    if (!posix_tz_name(&text, &r.standard.name) || !posix_tz_time(&text, 24, &west)) {
        return false;
    }
    r.standard.offset = -west;
    r.changes = text.n > 0;
    if (r.changes) {
        r.saving.offset = r.standard.offset + 3600;
        if (!posix_tz_name(&text, &r.saving.name)) {
            return false;
        }
        if (text.n > 0 && text.p[0] != ',') {
            if (!posix_tz_time(&text, 24, &west)) {
                return false;
            }
            r.saving.offset = -west;
        }
        if (!posix_tz_read_edge(&text, &r.start) || !posix_tz_read_edge(&text, &r.end)) {
            return false;
        }
    }
    if (text.n > 0) {
        return false;
    }
    *ret = r;
    return true;
}

/* The instant of an edge in a year; `offset` is that of the clock before it. */
static int64_t edge_instant(const struct posix_tz_edge *e, int64_t year, int32_t offset)
{
    struct civil first = { .year = year,
                           .month = e->form == EDGE_WEEKDAY ? e->month : 1,
                           .day = 1 };
    int64_t day = day_of(civil_to_sec(&first));
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (e->form == EDGE_WEEKDAY) {
        int length = day_month_max(e->month) - (e->month == 2 && !leap ? 1 : 0);
        int ahead = (e->day - day_weekday(day) + 7) % 7 + (e->week - 1) * 7;
        day += ahead < length ? ahead : ahead - 7; /* the fifth is the last */
    } else {
        /* "J60" is the first of March in every year. */
        day += e->form == EDGE_JULIAN ? e->day - 1 + (leap && e->day >= 60 ? 1 : 0) : e->day;
    }
    return day * DAY_SEC + e->time - offset;
}

struct posix_tz_turn {
    int64_t at;
    const struct posix_tz_kind *to;
};

struct posix_tz_span posix_tz_at(const struct posix_tz *r, int64_t sec)
{
    struct posix_tz_span span = {
        .from = INT64_MIN, .until = INT64_MAX, .before = r->standard.offset, .kind = &r->standard
    };
    if (!r->changes) {
        return span;
    }
    struct posix_tz_turn turns[POSIX_TZ_EDGES] = { 0 };
    int n = 0;
    int64_t year = civil_from_sec(sec + r->standard.offset).year;
    for (int i = 0; i < POSIX_TZ_EDGES; i++) {
        bool start = i % 2 == 0;
        struct posix_tz_turn turn = {
            .at = edge_instant(start ? &r->start : &r->end, year - 2 + i / 2,
                               start ? r->standard.offset : r->saving.offset),
            .to = start ? &r->saving : &r->standard,
        };
        int place = n++;
        for (; place > 0 && turns[place - 1].at > turn.at; place--) {
            turns[place] = turns[place - 1];
        }
        turns[place] = turn;
    }
    const struct posix_tz_kind *before = turns[0].to == &r->saving ? &r->standard : &r->saving;
    const struct posix_tz_kind *now = before;
    for (int i = 0; i < n; i++) {
        if (i + 1 < n && turns[i].at == turns[i + 1].at) {
            continue; /* an empty period: daylight saving all year is written that way */
        }
        if (turns[i].at > sec) {
            span.until = turns[i].at;
            break;
        }
        span.from = turns[i].at;
        before = now;
        now = turns[i].to;
    }
    span.before = before->offset;
    span.kind = now;
    return span;
}
