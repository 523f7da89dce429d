#include "calendar/recurrence.h"

#define WEEKLY_DAYS_MAX 12 /* a week, yesterday, and days that a zone left out */

int recurrence_parse_clock(struct str text, bool end, uint32_t *ret, struct err *err)
{
    uint32_t hour;
    uint32_t minute;
    if (text.n == 5 && text.p[2] == ':' && str_to_u32(str_sub(text, 0, 2), &hour) &&
        str_to_u32(str_sub(text, 3, 2), &minute) && minute < 60 &&
        (hour < 24 || (end && hour == 24 && minute == 0))) {
        *ret = (hour * 60 + minute) * 60;
        return 0;
    }
    struct str shown = str_sub(text, 0, 32);
    return err_set(err, ERR_INVALID, "found '" STR_FMT "', want a time such as 22:00%s",
                   STR_ARG(shown), end ? ", at most 24:00" : ", at most 23:59");
}

/* "2026-12-24" or "--12-24". */
static bool read_date(struct str text, bool yearly, int64_t *ret_day, struct day_date *ret_date)
{
    struct civil c = { .year = 2000 }; /* a leap year: "--02-29" is a day */
    uint32_t year = 2000;
    uint32_t month;
    uint32_t day;
    size_t at = yearly ? 2 : 5;
    if (text.n != at + 5 || text.p[at - 1] != '-' || text.p[at + 2] != '-' ||
        (yearly ? text.p[0] != '-' : !str_to_u32(str_sub(text, 0, 4), &year)) ||
        !str_to_u32(str_sub(text, at, 2), &month) || !str_to_u32(str_sub(text, at + 3, 2), &day)) {
        return false;
    }
    c = (struct civil){ .year = year, .month = (int)month, .day = (int)day };
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31) {
        return false;
    }
    struct civil back = civil_from_sec(civil_to_sec(&c));
    *ret_day = day_of(civil_to_sec(&c));
    *ret_date = (struct day_date){ .month = (int)month, .day = (int)day };
    return back.month == c.month && back.day == c.day;
}

int recurrence_parse_dates(struct str text, struct recurrence_dates *ret, struct err *err)
{
    struct recurrence_dates dates = { .yearly = str_starts(text, STR("--")) };
    struct str first;
    struct str last;
    struct str shown = str_sub(text, 0, 48);
    bool ranged = str_cut(text, STR("/"), &first, &last);
    if (!read_date(first, dates.yearly, &dates.first, &dates.first_date) ||
        !read_date(ranged ? last : first, dates.yearly, &dates.last, &dates.last_date)) {
        return err_set(err, ERR_INVALID,
                       "found '" STR_FMT "', want days such as 2026-12-24, 2026-12-24/2027-01-02, "
                       "--12-25 or --12-20/--01-06",
                       STR_ARG(shown));
    }
    if (!dates.yearly && dates.last < dates.first) {
        return err_set(err, ERR_INVALID,
                       "found '" STR_FMT "', want the later day behind the earlier",
                       STR_ARG(shown));
    }
    *ret = dates;
    return 0;
}

/* The instant at which clocks show a civil time for the first time, or land behind it. */
static usec_t instant_of(const struct recurrence *r, int64_t local)
{
    return SECONDS(zone_instants(r->zone, local).first);
}

/* The civil day of an instant. */
static int64_t local_day(const struct recurrence *r, usec_t at)
{
    int64_t sec = timestamp_from_usec(at).sec;
    return day_of(sec + zone_at(r->zone, sec).offset);
}

static bool weekly_next(const struct recurrence *r, usec_t after, struct interval *ret)
{
    int64_t day = local_day(r, after) - 2;
    for (int i = 0; i < WEEKLY_DAYS_MAX; i++, day++) {
        if ((r->weekdays >> day_weekday(day) & 1) == 0) {
            continue;
        }
        int64_t end_day = r->to > r->from ? day : day + 1;
        struct interval found = { .start = instant_of(r, day * DAY_SEC + r->from),
                                  .end = instant_of(r, end_day * DAY_SEC + r->to) };
        if (found.end > after && found.end > found.start) {
            *ret = found;
            return true;
        }
    }
    return false;
}

static bool cron_interval_next(const struct recurrence *r, usec_t after, struct interval *ret)
{
    usec_t start = cron_next(&r->cron, r->zone, after - r->duration);
    if (start == USEC_NEVER) {
        return false;
    }
    *ret = (struct interval){ .start = start, .end = start + r->duration };
    return true;
}

static bool skipped(const struct recurrence *r, int64_t local)
{
    for (uint32_t i = 0; i < r->skip_n && r->skips[i] <= local; i++) {
        if (r->skips[i] == local) {
            return true;
        }
    }
    return false;
}

static bool rrule_interval_next(const struct recurrence *r, usec_t after, struct interval *ret)
{
    int64_t day = local_day(r, after - r->duration) - 2;
    while ((day = rrule_next(&r->rule, day)) != RRULE_DAYS_NONE) {
        int64_t local = day * DAY_SEC + r->from;
        usec_t start = instant_of(r, local);
        usec_t end =
            r->whole_days ? instant_of(r, local + r->duration / SECONDS(1)) : start + r->duration;
        if (rrule_over(&r->rule, local, start / SECONDS(1))) {
            return false;
        }
        if (end > after && end > start && !skipped(r, local)) {
            *ret = (struct interval){ .start = start, .end = end };
            return true;
        }
        day++;
    }
    return false;
}

static bool has_date(int64_t year, struct day_date date, int64_t *ret_day)
{
    struct civil c = { .year = year, .month = date.month, .day = date.day };
    *ret_day = day_of(civil_to_sec(&c));
    return civil_from_sec(*ret_day * DAY_SEC).day == date.day;
}

/* The days of a yearly span that begins in `year`; the 29th of February of other years is no day as
 * a whole span, and the 28th or the 1st of March as the end or beginning of one. */
static bool yearly_days(const struct recurrence_dates *d, int64_t year, int64_t *ret_first,
                        int64_t *ret_last)
{
    bool wraps = d->last < d->first;
    bool first = has_date(year, d->first_date, ret_first);
    bool last = has_date(wraps ? year + 1 : year, d->last_date, ret_last);
    if (!last) {
        *ret_last -= 1; /* civil_to_sec counted on to the 1st of March */
    }
    return first || d->first != d->last;
}

static bool dates_next(const struct recurrence *r, usec_t after, struct interval *ret)
{
    int64_t year = civil_from_sec(local_day(r, after) * DAY_SEC).year - 1;
    int64_t first = r->dates.first;
    int64_t last = r->dates.last;
    for (int i = 0; i < RRULE_YEARS_MAX + 2; i++) {
        if (!r->dates.yearly || yearly_days(&r->dates, year + i, &first, &last)) {
            struct interval found = { .start = instant_of(r, first * DAY_SEC),
                                      .end = instant_of(r, (last + 1) * DAY_SEC) };
            if (found.end > after && found.end > found.start) {
                *ret = found;
                return true;
            }
        }
    }
    return false;
}

bool recurrence_next(const struct recurrence *r, usec_t after, struct interval *ret)
{
    switch (r->kind) {
    case RECURRENCE_WEEKLY:
        return weekly_next(r, after, ret);
    case RECURRENCE_CRON:
        return cron_interval_next(r, after, ret);
    case RECURRENCE_RRULE:
        return rrule_interval_next(r, after, ret);
    case RECURRENCE_DATES:
        return dates_next(r, after, ret);
    case RECURRENCE_ONCE:
        break;
    }
    *ret = r->once;
    return r->once.end > after;
}
