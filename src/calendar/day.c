#include "calendar/day.h"

#define SHOWN_MAX 64 /* of a text that is wrong, in its message */

const char *const day_weekdays[7] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };
const char *const day_months[12] = { "jan", "feb", "mar", "apr", "may", "jun",
                                     "jul", "aug", "sep", "oct", "nov", "dec" };

int64_t day_of(int64_t sec)
{
    return sec / DAY_SEC - (sec % DAY_SEC < 0 ? 1 : 0);
}

uint32_t day_clock(int64_t sec)
{
    return (uint32_t)(sec - day_of(sec) * DAY_SEC);
}

int day_weekday(int64_t day)
{
    int weekday = (int)((day + 4) % 7); /* the first day of 1970 was a Thursday */
    return weekday < 0 ? weekday + 7 : weekday;
}

int day_month_max(int month)
{
    static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    ASSERT(month >= 1 && month <= 12);
    return days[month - 1];
}

int day_find_name(struct str text, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        if (str_eq_fold(text, str_from(names[i]))) {
            return i;
        }
    }
    return -1;
}

int day_parse_weekday(struct str text, int *ret, struct err *err)
{
    static const char *const full[7] = { "sunday",   "monday", "tuesday", "wednesday",
                                         "thursday", "friday", "saturday" };
    int weekday = day_find_name(text, day_weekdays, 7);
    if (weekday < 0) {
        weekday = day_find_name(text, full, 7);
    }
    if (weekday < 0) {
        struct str shown = str_sub(text, 0, SHOWN_MAX);
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT "' is not a known weekday: want 'mon' … 'sun' or a full name",
                       STR_ARG(shown));
    }
    *ret = weekday;
    return 0;
}

/* How many digits `text` begins with, up to `most`, and their value. */
static size_t day_digits(struct str text, size_t most, uint32_t *ret)
{
    uint32_t value = 0;
    size_t n = 0;
    while (n < text.n && n < most && text.p[n] >= '0' && text.p[n] <= '9') {
        value = value * 10 + (uint32_t)(text.p[n] - '0');
        n++;
    }
    *ret = value;
    return n;
}

int day_parse_clock(struct str text, uint32_t *ret, struct err *err)
{
    uint32_t hour = 0;
    uint32_t minute = 0;
    size_t n = day_digits(text, 2, &hour);
    struct str rest = str_sub(text, n, text.n - n);
    bool form = n > 0 && str_cut_prefix(rest, STR(":"), &rest) && rest.n == 2 &&
                day_digits(rest, 2, &minute) == 2;
    if (!form || hour > 23 || minute > 59) {
        struct str shown = str_sub(text, 0, SHOWN_MAX);
        return err_set(err, ERR_INVALID,
                       "time '" STR_FMT "': want hours and minutes from '0:00' to '23:59'",
                       STR_ARG(shown));
    }
    *ret = hour * 3600 + minute * 60;
    return 0;
}

int day_parse_date(struct str text, struct day_date *ret, struct err *err)
{
    struct str shown = str_sub(text, 0, SHOWN_MAX);
    int month = day_find_name(str_sub(text, 0, 3), day_months, 12);
    struct str rest = text.n > 3 ? str_sub(text, 3, text.n - 3) : STR_NONE;
    bool spaced = false;
    while (str_cut_prefix(rest, STR(" "), &rest)) {
        spaced = true;
    }
    uint32_t day = 0;
    size_t n = day_digits(rest, 2, &day);
    if (month < 0 || !spaced || n == 0 || n != rest.n) {
        return err_set(err, ERR_INVALID,
                       "date '" STR_FMT "': want a month's first three letters and a day, as in "
                       "'Jan 2'",
                       STR_ARG(shown));
    }
    if (day < 1 || day > (uint32_t)day_month_max(month + 1)) {
        return err_set(err, ERR_INVALID, "date '" STR_FMT "': want a day from 1 to %d",
                       STR_ARG(shown), day_month_max(month + 1));
    }
    *ret = (struct day_date){ .month = month + 1, .day = (int)day };
    return 0;
}
