#include "base/timestamp.h"

#define DAY_SEC 86400
#define USEC_SEC 1000000

const struct timestamp timestamp_zero = { .sec = -62135596800 };

struct timestamp timestamp_from_usec(usec_t wall)
{
    int64_t sec = wall / USEC_SEC;
    int64_t rest = wall % USEC_SEC;
    if (rest < 0) {
        rest += USEC_SEC;
        sec--;
    }
    return (struct timestamp){ .sec = sec, .nsec = (int32_t)(rest * 1000) };
}

usec_t timestamp_to_usec(struct timestamp s)
{
    usec_t wall;
    if (__builtin_mul_overflow(s.sec, (int64_t)USEC_SEC, &wall) ||
        __builtin_add_overflow(wall, (int64_t)(s.nsec / 1000), &wall)) {
        return s.sec < 0 ? INT64_MIN : INT64_MAX; /* far beyond year 9999 either way */
    }
    return wall;
}

bool timestamp_is_zero(struct timestamp s)
{
    return s.sec == timestamp_zero.sec && s.nsec == 0;
}

static bool is_digit(struct str s, size_t at)
{
    return at < s.n && s.p[at] >= '0' && s.p[at] <= '9';
}

/* The text that is left to read, and the first error. */
struct timestamp_reader {
    struct str text;
    struct str rest;
    struct err *err;
};

static int timestamp_fail(struct timestamp_reader *r, const char *what)
{
    struct str shown = str_sub(r->text, 0, 64);
    return err_set(r->err, ERR_INVALID, "time '" STR_FMT "': %s", STR_ARG(shown), what);
}

static void timestamp_skip(struct timestamp_reader *r, size_t n)
{
    r->rest = str_sub(r->rest, n, r->rest.n - n);
}

static bool timestamp_take(struct timestamp_reader *r, char c)
{
    if (r->rest.n == 0 || r->rest.p[0] != c) {
        return false;
    }
    timestamp_skip(r, 1);
    return true;
}

/* `least` to `most` digits; false when there are fewer. */
static bool timestamp_digits(struct timestamp_reader *r, size_t least, size_t most, int *ret)
{
    int value = 0;
    size_t n = 0;
    while (n < most && is_digit(r->rest, n)) {
        value = value * 10 + (r->rest.p[n] - '0');
        n++;
    }
    if (n < least) {
        return false;
    }
    timestamp_skip(r, n);
    *ret = value;
    return true;
}

static int days_in(int64_t year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

static int timestamp_read_date(struct timestamp_reader *r, struct civil *c)
{
    int year;
    if (!timestamp_digits(r, 4, 4, &year)) {
        return timestamp_fail(r, "want a year of four digits");
    }
    c->year = year;
    if (!timestamp_take(r, '-') || !timestamp_digits(r, 2, 2, &c->month)) {
        return timestamp_fail(r, "want '-' and a month of two digits behind the year");
    }
    if (c->month < 1 || c->month > 12) {
        return timestamp_fail(r, "month out of range");
    }
    if (!timestamp_take(r, '-') || !timestamp_digits(r, 2, 2, &c->day)) {
        return timestamp_fail(r, "want '-' and a day of two digits behind the month");
    }
    if (c->day < 1 || c->day > days_in(c->year, c->month)) {
        return timestamp_fail(r, "day out of range");
    }
    return 0;
}

/* Go takes an hour of one digit, too. */
static int timestamp_read_clock(struct timestamp_reader *r, struct civil *c)
{
    if (!timestamp_take(r, 'T') || !timestamp_digits(r, 1, 2, &c->hour)) {
        return timestamp_fail(r, "want 'T' and an hour behind the date");
    }
    if (c->hour > 23) {
        return timestamp_fail(r, "hour out of range");
    }
    if (!timestamp_take(r, ':') || !timestamp_digits(r, 2, 2, &c->minute)) {
        return timestamp_fail(r, "want ':' and a minute of two digits behind the hour");
    }
    if (c->minute > 59) {
        return timestamp_fail(r, "minute out of range");
    }
    if (!timestamp_take(r, ':') || !timestamp_digits(r, 2, 2, &c->second)) {
        return timestamp_fail(r, "want ':' and a second of two digits behind the minute");
    }
    if (c->second > 59) {
        return timestamp_fail(r, "second out of range");
    }
    return 0;
}

/* The digits behind '.' or ','; from the tenth on they are dropped. */
static int32_t timestamp_read_fraction(struct timestamp_reader *r)
{
    int32_t nsec = 0;
    int32_t unit = 100000000;
    timestamp_skip(r, 1);
    while (is_digit(r->rest, 0)) {
        nsec += (r->rest.p[0] - '0') * unit;
        unit /= 10;
        timestamp_skip(r, 1);
    }
    return nsec;
}

static int timestamp_read_offset(struct timestamp_reader *r, int32_t *ret)
{
    *ret = 0;
    if (timestamp_take(r, 'Z')) {
        return 0;
    }
    bool west = r->rest.n > 0 && r->rest.p[0] == '-';
    int hours;
    int minutes;
    if ((!timestamp_take(r, '+') && !timestamp_take(r, '-')) ||
        !timestamp_digits(r, 2, 2, &hours) || !timestamp_take(r, ':') ||
        !timestamp_digits(r, 2, 2, &minutes)) {
        return timestamp_fail(r, "want 'Z' or an offset such as +02:00 behind the second");
    }
    if (hours > 24) {
        return timestamp_fail(r, "time zone offset hour out of range");
    }
    if (minutes > 60) {
        return timestamp_fail(r, "time zone offset minute out of range");
    }
    int32_t offset = (hours * 60 + minutes) * 60;
    *ret = west ? -offset : offset;
    return 0;
}

static int timestamp_read(struct str text, bool micro, struct timestamp *ret, struct err *err)
{
    struct timestamp_reader r = { .text = text, .rest = text, .err = err };
    struct civil c = { 0 };
    struct timestamp s = { 0 };
    int result = timestamp_read_date(&r, &c);
    if (result == 0) {
        result = timestamp_read_clock(&r, &c);
    }
    if (result < 0) {
        return result;
    }
    bool point = r.rest.n > 1 && (r.rest.p[0] == '.' || r.rest.p[0] == ',') && is_digit(r.rest, 1);
    size_t before = r.rest.n;
    if (point) {
        s.nsec = timestamp_read_fraction(&r);
    }
    if (micro && before - r.rest.n != 7) {
        return timestamp_fail(&r, "want exactly six digits behind the second");
    }
    result = timestamp_read_offset(&r, &s.offset);
    if (result < 0) {
        return result;
    }
    if (r.rest.n > 0) {
        return timestamp_fail(&r, "extra text behind the time");
    }
    s.sec = civil_to_sec(&c) - s.offset;
    *ret = s;
    return 0;
}

int timestamp_parse(struct str text, struct timestamp *ret, struct err *err)
{
    return timestamp_read(text, /* micro= */ false, ret, err);
}

int timestamp_parse_micro(struct str text, struct timestamp *ret, struct err *err)
{
    return timestamp_read(text, /* micro= */ true, ret, err);
}

/* Date and clock with `between` them, in the stamp's own offset. */
static size_t timestamp_put(struct timestamp s, char between, char out[TIMESTAMP_TEXT_MAX])
{
    struct civil c = civil_from_sec(s.sec + s.offset);
    int64_t year = c.year < 0 ? -c.year : c.year;
    return (size_t)snprintf(out, TIMESTAMP_TEXT_MAX, "%s%04lld-%02d-%02d%c%02d:%02d:%02d",
                            c.year < 0 ? "-" : "", (long long)year, c.month, c.day, between, c.hour,
                            c.minute, c.second);
}

/* Without trailing zeros, and nothing at all for a whole second. */
static size_t timestamp_put_fraction(struct timestamp s, char *out, size_t at)
{
    if (s.nsec == 0) {
        return at;
    }
    at += (size_t)snprintf(out + at, TIMESTAMP_TEXT_MAX - at, ".%09d", s.nsec);
    while (out[at - 1] == '0') {
        at--;
    }
    return at;
}

int timestamp_print(struct timestamp s, char out[TIMESTAMP_TEXT_MAX], struct str *ret,
                    struct err *err)
{
    int64_t year = civil_from_sec(s.sec + s.offset).year;
    int zone = s.offset / 60;
    int minutes = zone < 0 ? -zone : zone;
    if (year < 0 || year > 9999) {
        return err_set(err, ERR_INVALID, "year outside of range [0,9999]");
    }
    if (minutes / 60 > 23) {
        return err_set(err, ERR_INVALID, "timezone hour outside of range [0,23]");
    }
    size_t n = timestamp_put_fraction(s, out, timestamp_put(s, 'T', out));
    if (s.offset == 0) {
        n += (size_t)snprintf(out + n, TIMESTAMP_TEXT_MAX - n, "Z");
    } else {
        n += (size_t)snprintf(out + n, TIMESTAMP_TEXT_MAX - n, "%c%02d:%02d", zone < 0 ? '-' : '+',
                              minutes / 60, minutes % 60);
    }
    *ret = (struct str){ .p = out, .n = n };
    return 0;
}

struct str timestamp_print_seconds(usec_t wall, char out[TIMESTAMP_TEXT_MAX])
{
    size_t n = timestamp_put(timestamp_from_usec(wall), 'T', out);
    n += (size_t)snprintf(out + n, TIMESTAMP_TEXT_MAX - n, "Z");
    return (struct str){ .p = out, .n = n };
}

struct str timestamp_print_micro(usec_t wall, char out[TIMESTAMP_TEXT_MAX])
{
    struct timestamp s = timestamp_from_usec(wall);
    size_t n = timestamp_put(s, 'T', out);
    n += (size_t)snprintf(out + n, TIMESTAMP_TEXT_MAX - n, ".%06dZ", s.nsec / 1000);
    return (struct str){ .p = out, .n = n };
}

struct str timestamp_print_go(struct timestamp s, char out[TIMESTAMP_TEXT_MAX])
{
    int zone = s.offset / 60;
    int minutes = zone < 0 ? -zone : zone;
    char sign = zone < 0 ? '-' : '+';
    size_t n = timestamp_put_fraction(s, out, timestamp_put(s, ' ', out));
    n += (size_t)snprintf(out + n, TIMESTAMP_TEXT_MAX - n, " %c%02d%02d ", sign, minutes / 60,
                          minutes % 60);
    if (s.offset == 0) {
        n += (size_t)snprintf(out + n, TIMESTAMP_TEXT_MAX - n, "UTC");
    } else {
        n += (size_t)snprintf(out + n, TIMESTAMP_TEXT_MAX - n, "%c%02d%02d", sign, minutes / 60,
                              minutes % 60);
    }
    return (struct str){ .p = out, .n = n };
}

/* Years are counted from March, so that the leap day is the last one, in eras of 400 years, which
 * all have the same 146,097 days. */
struct civil civil_from_sec(int64_t sec)
{
    int64_t days = sec / DAY_SEC;
    int64_t rest = sec % DAY_SEC;
    if (rest < 0) {
        rest += DAY_SEC;
        days--;
    }
    int64_t shifted = days + 719468; /* from 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int month = (int)((5 * day_of_year + 2) / 153); /* 0 = March */
    int64_t weekday = (days + 4) % 7;               /* 1970-01-01 was a Thursday */
    return (struct civil){
        .year = year_of_era + era * 400 + (month >= 10 ? 1 : 0),
        .month = month < 10 ? month + 3 : month - 9,
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
        .hour = (int)(rest / 3600),
        .minute = (int)(rest / 60 % 60),
        .second = (int)(rest % 60),
        .weekday = (int)(weekday < 0 ? weekday + 7 : weekday),
    };
}

int64_t civil_to_sec(const struct civil *c)
{
    int64_t year = c->month <= 2 ? c->year - 1 : c->year;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t month = c->month > 2 ? c->month - 3 : c->month + 9;
    int64_t day_of_year = (153 * month + 2) / 5 + c->day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    int64_t days = era * 146097 + day_of_era - 719468;
    return days * DAY_SEC + (int64_t)c->hour * 3600 + (int64_t)c->minute * 60 + c->second;
}
