#include "calendar/rrule.h"

#define YEAR_DAYS_MAX INT64_C(366)
#define SEARCH_DAYS_MAX (RRULE_YEARS_MAX * YEAR_DAYS_MAX)
#define INTERVAL_MAX 1000u /* more than anybody waits; keeps the arithmetic small */

static const char *const rrule_freqs[] = { "DAILY", "WEEKLY", "MONTHLY", "YEARLY" };
static const char *const rrule_weekdays[] = { "SU", "MO", "TU", "WE", "TH", "FR", "SA" };

static int rrule_refuse(const char *part, struct str found, const char *want, struct err *err)
{
    struct str shown = str_sub(found, 0, 64);
    return err_set(err, ERR_INVALID, "%s: found '" STR_FMT "', want %s", part, STR_ARG(shown),
                   want);
}

static bool digits_read(struct str text, size_t from, size_t n, int *ret)
{
    uint32_t value;
    if (!str_to_u32(str_sub(text, from, n), &value)) {
        return false;
    }
    *ret = (int)value;
    return true;
}

int rrule_parse_time(struct str text, struct rrule_time *ret, struct err *err)
{
    static const char want[] = "a date such as 20261224, 20261224T180000 or 20261224T180000Z";
    int year;
    struct civil c = { 0 };
    struct str rest = text;
    bool utc = str_cut_suffix(rest, STR("Z"), &rest);
    bool timed = rest.n == 15 && rest.p[8] == 'T';
    bool read = (timed || (rest.n == 8 && !utc)) && digits_read(rest, 0, 4, &year) &&
                digits_read(rest, 4, 2, &c.month) && digits_read(rest, 6, 2, &c.day);
    if (read && timed) {
        read = digits_read(rest, 9, 2, &c.hour) && digits_read(rest, 11, 2, &c.minute) &&
               digits_read(rest, 13, 2, &c.second);
    }
    if (!read || year < 1970 || c.hour > 23 || c.minute > 59 || c.second > 59) {
        return rrule_refuse("time", text, want, err);
    }
    c.year = year;
    int64_t sec = civil_to_sec(&c);
    struct civil back = civil_from_sec(sec);
    if (back.month != c.month || back.day != c.day) {
        return rrule_refuse("time", text, "a day that the month has", err);
    }
    *ret = (struct rrule_time){ .given = true, .timed = timed, .utc = utc, .sec = sec };
    return 0;
}

/* "5", "+2", "-1": not 0, up to `most` either way. */
static bool signed_read(struct str text, int most, int *ret)
{
    int64_t value;
    struct str digits;
    (void)str_cut_prefix(text, STR("+"), &digits);
    if (!str_to_i64(digits, &value) || value == 0 || value > most || value < -most) {
        return false;
    }
    *ret = (int)value;
    return true;
}

/* "TU", "2TU", "-1FR". */
static int read_byday(struct rrule *r, struct str item, struct err *err)
{
    static const char want[] = "MO to SU, with a number such as 2TU or -1FR where months or years "
                               "repeat";
    size_t n = item.n < 2 ? 0 : item.n - 2;
    int weekday = day_find_name(str_sub(item, n, item.n - n), rrule_weekdays, 7);
    int number = 0;
    if (weekday < 0 || (n > 0 && !signed_read(str_sub(item, 0, n), 53, &number))) {
        return rrule_refuse("BYDAY", item, want, err);
    }
    if (n == 0) {
        r->weekdays |= (uint8_t)(1u << weekday);
        return 0;
    }
    if (r->nth_n == RRULE_NTH_MAX) {
        return err_set(err, ERR_LIMIT, "BYDAY: found more than %u numbered days, want fewer",
                       RRULE_NTH_MAX);
    }
    r->nth[r->nth_n++] = (struct rrule_nth){ .number = number, .weekday = weekday };
    return 0;
}

static int read_bymonthday(struct rrule *r, struct str item, struct err *err)
{
    int day;
    if (!signed_read(item, 31, &day)) {
        return rrule_refuse("BYMONTHDAY", item, "1 to 31 or -31 to -1", err);
    }
    uint32_t *days = day > 0 ? &r->monthdays : &r->monthdays_back;
    *days |= UINT32_C(1) << (day > 0 ? day : -day);
    return 0;
}

static int read_bymonth(struct rrule *r, struct str item, struct err *err)
{
    uint32_t month;
    if (!str_to_u32(item, &month) || month < 1 || month > 12) {
        return rrule_refuse("BYMONTH", item, "1 to 12", err);
    }
    r->months |= (uint16_t)(1u << month);
    return 0;
}

static int read_bysetpos(struct rrule *r, struct str item, struct err *err)
{
    int position;
    if (!signed_read(item, (int)YEAR_DAYS_MAX, &position)) {
        return rrule_refuse("BYSETPOS", item, "1 to 366 or -366 to -1", err);
    }
    if (r->position_n == RRULE_NTH_MAX) {
        return err_set(err, ERR_LIMIT, "BYSETPOS: found more than %u values, want fewer",
                       RRULE_NTH_MAX);
    }
    r->position[r->position_n++] = position;
    return 0;
}

/* What a rule says besides its fields here. */
struct rrule_read {
    struct rrule rule;
    bool has_freq;
    uint32_t count;
};

static int read_freq(struct rrule_read *read, struct str value, struct err *err)
{
    int freq = day_find_name(value, rrule_freqs, ARRAY_LEN(rrule_freqs));
    if (freq < 0) {
        return rrule_refuse("FREQ", value, "DAILY, WEEKLY, MONTHLY or YEARLY", err);
    }
    read->rule.freq = (enum rrule_freq)freq;
    read->has_freq = true;
    return 0;
}

static int read_interval(struct rrule_read *read, struct str value, struct err *err)
{
    uint32_t interval;
    if (!str_to_u32(value, &interval) || interval < 1 || interval > INTERVAL_MAX) {
        return rrule_refuse("INTERVAL", value, "1 to 1000", err);
    }
    read->rule.interval = interval;
    return 0;
}

static int read_count(struct rrule_read *read, struct str value, struct err *err)
{
    if (!str_to_u32(value, &read->count) || read->count < 1 || read->count > RRULE_COUNT_MAX) {
        return rrule_refuse("COUNT", value, "1 to 1000", err);
    }
    return 0;
}

static int read_until(struct rrule_read *read, struct str value, struct err *err)
{
    int r = rrule_parse_time(value, &read->rule.until, err);
    return r < 0 ? err_wrap(err, "UNTIL") : 0;
}

static int read_wkst(struct rrule_read *read, struct str value, struct err *err)
{
    int weekday = day_find_name(value, rrule_weekdays, 7);
    if (weekday < 0) {
        return rrule_refuse("WKST", value, "MO to SU", err);
    }
    read->rule.week_start = (uint8_t)weekday;
    return 0;
}

static const struct {
    const char *name;
    int (*one)(struct rrule_read *read, struct str value, struct err *err);
    int (*item)(struct rrule *r, struct str item, struct err *err); /* of a list */
} rrule_parts[] = {
    { .name = "FREQ", .one = read_freq },
    { .name = "INTERVAL", .one = read_interval },
    { .name = "COUNT", .one = read_count },
    { .name = "UNTIL", .one = read_until },
    { .name = "WKST", .one = read_wkst },
    { .name = "BYDAY", .item = read_byday },
    { .name = "BYMONTHDAY", .item = read_bymonthday },
    { .name = "BYMONTH", .item = read_bymonth },
    { .name = "BYSETPOS", .item = read_bysetpos },
};

static int read_part(struct rrule_read *read, struct str text, uint32_t *seen, struct err *err)
{
    struct str name;
    struct str value;
    struct str item;
    size_t part = 0;
    (void)str_cut(text, STR("="), &name, &value);
    while (part < ARRAY_LEN(rrule_parts) && !str_eq_fold(name, str_from(rrule_parts[part].name))) {
        part++;
    }
    if (part == ARRAY_LEN(rrule_parts)) {
        return rrule_refuse("rule", text,
                            "FREQ, INTERVAL, COUNT, UNTIL, BYDAY, BYMONTHDAY, BYMONTH, BYSETPOS or "
                            "WKST",
                            err);
    }
    if ((*seen >> part & 1) != 0) {
        return rrule_refuse(rrule_parts[part].name, value, "it once", err);
    }
    *seen |= UINT32_C(1) << part;
    if (rrule_parts[part].one != NULL) {
        return rrule_parts[part].one(read, value, err);
    }
    while (str_split_next(&value, ',', &item)) {
        int r = rrule_parts[part].item(&read->rule, item, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* What follows from the start where the rule itself is silent. */
static void take_day_of_start(struct rrule *r)
{
    struct civil start = civil_from_sec(r->start.sec);
    bool named = r->weekdays != 0 || r->nth_n > 0 || r->monthdays != 0 || r->monthdays_back != 0;
    if (named || r->freq == RRULE_DAILY) {
        return;
    }
    if (r->freq == RRULE_WEEKLY) {
        r->weekdays = (uint8_t)(1u << start.weekday);
        return;
    }
    r->monthdays = UINT32_C(1) << start.day;
    if (r->freq == RRULE_YEARLY && r->months == 0) {
        r->months = (uint16_t)(1u << start.month);
    }
}

static int check_rule(const struct rrule_read *read, struct err *err)
{
    const struct rrule *r = &read->rule;
    bool named = r->weekdays != 0 || r->nth_n > 0 || r->monthdays != 0 || r->monthdays_back != 0;
    bool by_month = r->freq == RRULE_MONTHLY || (r->freq == RRULE_YEARLY && r->months != 0);
    if (!read->has_freq) {
        return err_set(err, ERR_INVALID, "found no FREQ, want DAILY, WEEKLY, MONTHLY or YEARLY");
    }
    if (r->nth_n > 0 && r->freq != RRULE_MONTHLY && r->freq != RRULE_YEARLY) {
        return err_set(err, ERR_INVALID,
                       "BYDAY: found a numbered day with FREQ=%s, want MONTHLY or YEARLY",
                       rrule_freqs[r->freq]);
    }
    for (uint32_t i = 0; i < r->nth_n; i++) {
        if (by_month && (r->nth[i].number > 5 || r->nth[i].number < -5)) {
            return err_set(err, ERR_INVALID, "BYDAY: found number %d, want 1 to 5 in a month",
                           r->nth[i].number);
        }
    }
    if (r->freq == RRULE_WEEKLY && (r->monthdays != 0 || r->monthdays_back != 0)) {
        return err_set(err, ERR_INVALID, "found BYMONTHDAY with FREQ=WEEKLY, want BYDAY");
    }
    if (read->count > 0 && r->until.given) {
        return err_set(err, ERR_INVALID, "found COUNT and UNTIL, want one of them");
    }
    if (!r->start.given &&
        (r->interval > 1 || read->count > 0 || (!named && r->freq != RRULE_DAILY))) {
        return err_set(err, ERR_INVALID,
                       "found no start, want a line such as DTSTART:20260105 above: %s",
                       r->interval > 1   ? "INTERVAL counts from it"
                       : read->count > 0 ? "COUNT counts from it"
                                         : "no BY part names the day");
    }
    return 0;
}

/* The last day of all; UNTIL leaves a day of slack for the time of the day and the zone. */
static int64_t last_day(const struct rrule_read *read)
{
    const struct rrule *r = &read->rule;
    if (r->until.given) {
        return day_of(r->until.sec) + (r->until.timed ? 1 : 0);
    }
    int64_t day = RRULE_DAYS_NONE;
    int64_t from = day_of(r->start.sec);
    for (uint32_t i = 0; i < read->count; i++) {
        int64_t next = rrule_next(r, from);
        if (next == RRULE_DAYS_NONE) {
            return day == RRULE_DAYS_NONE ? from : day;
        }
        day = next;
        from = next + 1;
    }
    return day;
}

static int parse_parts(struct str text, struct rrule_time start, struct rrule *ret, struct err *err)
{
    uint32_t seen = 0;
    struct str part;
    struct rrule_read read = {
        .rule = { .interval = 1, .week_start = 1, .start = start, .last = RRULE_DAYS_NONE }
    };
    (void)str_cut_prefix(text, STR("RRULE:"), &text);
    while (str_split_next(&text, ';', &part)) {
        int r = read_part(&read, part, &seen, err);
        if (r < 0) {
            return r;
        }
    }
    int r = check_rule(&read, err);
    if (r < 0) {
        return r;
    }
    take_day_of_start(&read.rule);
    read.rule.last = last_day(&read);
    *ret = read.rule;
    return 0;
}

int rrule_parse_from(struct str text, struct rrule_time start, struct rrule *ret, struct err *err)
{
    struct str shown = str_sub(text, 0, 96);
    if (text.n > RRULE_TEXT_MAX) {
        return err_set(err, ERR_LIMIT, "rrule: found %zu bytes, want %u at most", text.n,
                       RRULE_TEXT_MAX);
    }
    int r = parse_parts(str_trim(text), start, ret, err);
    return r < 0 ? err_wrap(err, "rrule '" STR_FMT "'", STR_ARG(shown)) : 0;
}

int rrule_parse(struct str text, struct rrule *ret, struct err *err)
{
    struct str first;
    struct str rest;
    struct str value;
    struct rrule_time start = { 0 };
    text = str_trim(text);
    bool two = str_cut(text, STR("\n"), &first, &rest);
    if (two && str_cut_prefix(str_trim(first), STR("DTSTART:"), &value)) {
        int r = rrule_parse_time(value, &start, err);
        if (r < 0) {
            return err_wrap(err, "rrule: DTSTART");
        }
        if (start.utc) {
            return rrule_refuse("rrule: DTSTART", value, "local time, without Z", err);
        }
        text = rest;
    }
    return rrule_parse_from(text, start, ret, err);
}

/* A period of the rule: a day, a week, a month or a year. */
struct rrule_period {
    int64_t first;
    int64_t end; /* the day after its last */
};

static int64_t month_first(int64_t month)
{
    struct civil c = { .year = month / 12, .month = (int)(month % 12) + 1, .day = 1 };
    return day_of(civil_to_sec(&c));
}

/* Periods are numbered; `day` is not before 1970. */
static int64_t period_number(const struct rrule *r, int64_t day)
{
    struct civil c = civil_from_sec(day * DAY_SEC);
    switch (r->freq) {
    case RRULE_DAILY:
        return day;
    case RRULE_WEEKLY:
        return (day + 4 + 7 - r->week_start) / 7; /* 1970-01-01 was a Thursday */
    case RRULE_MONTHLY:
        return c.year * 12 + c.month - 1;
    case RRULE_YEARLY:
        break;
    }
    return c.year;
}

static struct rrule_period period_at(const struct rrule *r, int64_t number)
{
    switch (r->freq) {
    case RRULE_DAILY:
        return (struct rrule_period){ .first = number, .end = number + 1 };
    case RRULE_WEEKLY: {
        int64_t first = number * 7 - 4 - 7 + r->week_start;
        return (struct rrule_period){ .first = first, .end = first + 7 };
    }
    case RRULE_MONTHLY:
        return (struct rrule_period){ .first = month_first(number),
                                      .end = month_first(number + 1) };
    case RRULE_YEARLY:
        break;
    }
    return (struct rrule_period){ .first = month_first(number * 12),
                                  .end = month_first((number + 1) * 12) };
}

/* A day with all that conditions ask for. */
struct rrule_day {
    int64_t day;
    struct civil civil;
    struct rrule_period around; /* in which numbered weekdays are counted */
};

static bool takes_weekday(const struct rrule *r, const struct rrule_day *d)
{
    if (r->weekdays == 0 && r->nth_n == 0) {
        return true;
    }
    if ((r->weekdays >> d->civil.weekday & 1) != 0) {
        return true;
    }
    int64_t forth = (d->day - d->around.first) / 7 + 1;
    int64_t back = (d->around.end - 1 - d->day) / 7 + 1;
    for (uint32_t i = 0; i < r->nth_n; i++) {
        int number = r->nth[i].number;
        if (r->nth[i].weekday == d->civil.weekday && (number == forth || -number == back)) {
            return true;
        }
    }
    return false;
}

static bool takes_day(const struct rrule *r, int64_t day)
{
    struct rrule_day d = { .day = day, .civil = civil_from_sec(day * DAY_SEC) };
    int64_t month = d.civil.year * 12 + d.civil.month - 1;
    struct rrule_period of_month = { .first = month_first(month), .end = month_first(month + 1) };
    if (r->months != 0 && (r->months >> d.civil.month & 1) == 0) {
        return false;
    }
    if (r->monthdays != 0 || r->monthdays_back != 0) {
        int64_t back = of_month.end - day;
        if ((r->monthdays >> d.civil.day & 1) == 0 && (r->monthdays_back >> back & 1) == 0) {
            return false;
        }
    }
    bool in_year = r->freq == RRULE_YEARLY && r->months == 0;
    d.around = in_year ? period_at(r, d.civil.year) : of_month;
    return takes_weekday(r, &d);
}

static bool takes_position(const struct rrule *r, int64_t at, int64_t n)
{
    for (uint32_t i = 0; i < r->position_n; i++) {
        if (r->position[i] == at + 1 || r->position[i] == at - n) {
            return true;
        }
    }
    return r->position_n == 0;
}

/* The first of the period's days from `day` on. */
static int64_t first_in_period(const struct rrule *r, struct rrule_period period, int64_t day)
{
    int64_t days[YEAR_DAYS_MAX] = { 0 };
    int64_t n = 0;
    int64_t from = r->position_n > 0 ? period.first : MAX(period.first, day);
    for (int64_t d = from; d < period.end; d++) {
        if (!takes_day(r, d)) {
            continue;
        }
        if (r->position_n == 0) {
            return d;
        }
        days[n++] = d;
    }
    for (int64_t i = 0; i < n; i++) {
        if (days[i] >= day && takes_position(r, i, n)) {
            return days[i];
        }
    }
    return RRULE_DAYS_NONE;
}

int64_t rrule_next(const struct rrule *r, int64_t day)
{
    int64_t start = day_of(r->start.sec); /* 1970 where the rule has none */
    day = MAX(day, start);
    int64_t end = day + SEARCH_DAYS_MAX;
    int64_t number = period_number(r, day);
    int64_t behind = (number - period_number(r, start)) % r->interval;
    number += behind == 0 ? 0 : (int64_t)r->interval - behind;
    while (true) {
        struct rrule_period period = period_at(r, number);
        if (period.first >= end || period.first > r->last) {
            return RRULE_DAYS_NONE;
        }
        int64_t found = first_in_period(r, period, day);
        if (found != RRULE_DAYS_NONE) {
            return found <= r->last ? found : RRULE_DAYS_NONE;
        }
        number += r->interval;
    }
}

bool rrule_over(const struct rrule *r, int64_t local, int64_t instant)
{
    const struct rrule_time *until = &r->until;
    if (!until->given) {
        return false;
    }
    if (!until->timed) {
        return day_of(local) > day_of(until->sec);
    }
    return (until->utc ? instant : local) > until->sec;
}
