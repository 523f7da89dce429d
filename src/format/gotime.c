#include "format/gotime.h"

#define DAY_SEC 86400

static const struct str months[] = {
    STR_INIT("January"),   STR_INIT("February"), STR_INIT("March"),    STR_INIT("April"),
    STR_INIT("May"),       STR_INIT("June"),     STR_INIT("July"),     STR_INIT("August"),
    STR_INIT("September"), STR_INIT("October"),  STR_INIT("November"), STR_INIT("December"),
};
static const struct str weekdays[] = {
    STR_INIT("Sunday"),   STR_INIT("Monday"), STR_INIT("Tuesday"),  STR_INIT("Wednesday"),
    STR_INIT("Thursday"), STR_INIT("Friday"), STR_INIT("Saturday"),
};

struct str gotime_month(int64_t month)
{
    return month >= 1 && month <= 12 ? months[month - 1] : STR_NONE;
}

struct str gotime_weekday(int64_t weekday)
{
    return weekday >= 0 && weekday < 7 ? weekdays[weekday] : STR_NONE;
}

int gotime_year_day(struct timestamp time)
{
    struct civil c = civil_from_sec(time.sec + time.offset);
    struct civil first = { .year = c.year, .month = 1, .day = 1 };
    return (int)((time.sec + time.offset - civil_to_sec(&first)) / DAY_SEC) + 1;
}

enum piece {
    MONTH_LONG,
    MONTH_SHORT,
    MONTH_NUMBER,
    DAY_LONG,
    DAY_SHORT,
    DAY_NUMBER,
    DAY_OF_YEAR,
    HOUR,
    HOUR_12,
    MINUTE,
    SECOND,
    YEAR,
    YEAR_SHORT,
    NOON_UPPER,
    NOON_LOWER,
    ZONE_NAME,
    ZONE, /* `width` of hour, minute and second, `fill` between them */
    ZONE_Z,
};

/* Longer forms stand before those they begin with. `width` pads numbers, `fill` is with what. */
static const struct form {
    struct str text;
    enum piece piece;
    int width;
    char fill;
} forms[] = {
    { STR_INIT("January"), MONTH_LONG, 0, 0 }, { STR_INIT("Monday"), DAY_LONG, 0, 0 },
    { STR_INIT("MST"), ZONE_NAME, 0, 0 },      { STR_INIT("2006"), YEAR, 4, '0' },
    { STR_INIT("__2"), DAY_OF_YEAR, 3, ' ' },  { STR_INIT("002"), DAY_OF_YEAR, 3, '0' },
    { STR_INIT("_2"), DAY_NUMBER, 2, ' ' },    { STR_INIT("01"), MONTH_NUMBER, 2, '0' },
    { STR_INIT("02"), DAY_NUMBER, 2, '0' },    { STR_INIT("03"), HOUR_12, 2, '0' },
    { STR_INIT("04"), MINUTE, 2, '0' },        { STR_INIT("05"), SECOND, 2, '0' },
    { STR_INIT("06"), YEAR_SHORT, 2, '0' },    { STR_INIT("15"), HOUR, 2, '0' },
    { STR_INIT("PM"), NOON_UPPER, 0, 0 },      { STR_INIT("pm"), NOON_LOWER, 0, 0 },
    { STR_INIT("-07:00:00"), ZONE, 3, ':' },   { STR_INIT("-070000"), ZONE, 3, 0 },
    { STR_INIT("-07:00"), ZONE, 2, ':' },      { STR_INIT("-0700"), ZONE, 2, 0 },
    { STR_INIT("-07"), ZONE, 1, 0 },           { STR_INIT("Z07:00:00"), ZONE_Z, 3, ':' },
    { STR_INIT("Z070000"), ZONE_Z, 3, 0 },     { STR_INIT("Z07:00"), ZONE_Z, 2, ':' },
    { STR_INIT("Z0700"), ZONE_Z, 2, 0 },       { STR_INIT("Z07"), ZONE_Z, 1, 0 },
    { STR_INIT("1"), MONTH_NUMBER, 1, '0' },   { STR_INIT("2"), DAY_NUMBER, 1, '0' },
    { STR_INIT("3"), HOUR_12, 1, '0' },        { STR_INIT("4"), MINUTE, 1, '0' },
    { STR_INIT("5"), SECOND, 1, '0' },         { STR_INIT("Jan"), MONTH_SHORT, 0, 0 },
    { STR_INIT("Mon"), DAY_SHORT, 0, 0 },
};

static bool is_lower_at(struct str s, size_t at)
{
    return at < s.n && s.p[at] >= 'a' && s.p[at] <= 'z';
}

static bool is_digit_at(struct str s, size_t at)
{
    return at < s.n && s.p[at] >= '0' && s.p[at] <= '9';
}

static const struct form *form_find(struct str rest)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const struct form *f = &forms[i];
        bool word = f->piece == MONTH_SHORT || f->piece == DAY_SHORT;
        /* "Monthly" and "Janitor" are words, and "_2006" is a blank and a year. */
        if (str_starts(rest, f->text) && !(word && is_lower_at(rest, 3)) &&
            !(f->fill == ' ' && f->width == 2 && str_starts(rest, STR("_2006")))) {
            return f;
        }
    }
    return NULL;
}

static void put_number(struct buf *out, int64_t n, const struct form *f)
{
    if (n < 0) {
        buf_add_char(out, '-');
        n = -n;
    }
    buf_printf(out, f->fill == ' ' ? "%*lld" : "%0*lld", f->width, (long long)n);
}

static void put_zone(struct buf *out, int32_t offset, const struct form *f)
{
    if (f->piece == ZONE_Z && offset == 0) {
        buf_add_char(out, 'Z');
        return;
    }
    int32_t size = offset < 0 ? -offset : offset;
    int32_t parts[] = { size / 3600, size / 60 % 60, size % 60 };
    buf_add_char(out, offset < 0 ? '-' : '+');
    for (int i = 0; i < MIN(f->width, (int)ARRAY_LEN(parts)); i++) {
        if (i > 0 && f->fill != 0) {
            buf_add_char(out, f->fill);
        }
        buf_printf(out, "%02d", parts[i]);
    }
}

static void put_zone_name(struct buf *out, int32_t offset)
{
    static const struct form digits = { STR_INIT("-0700"), ZONE, 2, 0 };
    if (offset == 0) {
        buf_add(out, STR("UTC"));
    } else {
        put_zone(out, offset, &digits);
    }
}

static void put_piece(struct buf *out, struct timestamp time, const struct form *f)
{
    struct civil c = civil_from_sec(time.sec + time.offset);
    int noon = c.hour % 12 == 0 ? 12 : c.hour % 12;
    const int64_t numbers[] = {
        [MONTH_NUMBER] = c.month,
        [DAY_NUMBER] = c.day,
        [DAY_OF_YEAR] = gotime_year_day(time),
        [HOUR] = c.hour,
        [HOUR_12] = noon,
        [MINUTE] = c.minute,
        [SECOND] = c.second,
        [YEAR] = c.year,
        [YEAR_SHORT] = (c.year < 0 ? -c.year : c.year) % 100,
    };
    switch (f->piece) {
    case MONTH_LONG:
        buf_add(out, gotime_month(c.month));
        break;
    case MONTH_SHORT:
        buf_add(out, str_sub(gotime_month(c.month), 0, 3));
        break;
    case DAY_LONG:
        buf_add(out, gotime_weekday(c.weekday));
        break;
    case DAY_SHORT:
        buf_add(out, str_sub(gotime_weekday(c.weekday), 0, 3));
        break;
    case NOON_UPPER:
        buf_add(out, c.hour >= 12 ? STR("PM") : STR("AM"));
        break;
    case NOON_LOWER:
        buf_add(out, c.hour >= 12 ? STR("pm") : STR("am"));
        break;
    case ZONE_NAME:
        put_zone_name(out, time.offset);
        break;
    case ZONE:
    case ZONE_Z:
        put_zone(out, time.offset, f);
        break;
    default:
        put_number(out, numbers[f->piece], f);
    }
}

/* ".000" and ",999": so many digits of the second, with nines without the zeros at the end. The
 * bytes it took, or 0. */
static size_t put_fraction(struct buf *out, struct timestamp time, struct str rest)
{
    if (rest.n < 2 || (rest.p[0] != '.' && rest.p[0] != ',') ||
        (rest.p[1] != '0' && rest.p[1] != '9')) {
        return 0;
    }
    size_t end = 1;
    while (end < rest.n && rest.p[end] == rest.p[1]) {
        end++;
    }
    if (is_digit_at(rest, end)) {
        return 0;
    }
    char digits[16];
    (void)snprintf(digits, sizeof(digits), "%09d", time.nsec);
    struct str shown = { digits, MIN(end - 1, (size_t)9) };
    while (rest.p[1] == '9' && shown.n > 0 && shown.p[shown.n - 1] == '0') {
        shown.n--;
    }
    if (shown.n > 0) {
        buf_add_char(out, rest.p[0]);
        buf_add(out, shown);
    }
    return end;
}

void gotime_format(struct buf *out, struct timestamp time, struct str layout)
{
    size_t at = 0;
    while (at < layout.n) {
        struct str rest = str_sub(layout, at, layout.n - at);
        const struct form *f = form_find(rest);
        size_t n = f != NULL ? f->text.n : put_fraction(out, time, rest);
        if (f != NULL) {
            put_piece(out, time, f);
        } else if (n == 0) {
            buf_add_char(out, rest.p[0]);
            n = 1;
        }
        at += n;
    }
}
