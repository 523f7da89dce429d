/*
 * recurrence: intervals that come again: weekly, by a cron pattern, by a recurrence rule, on days
 * of the calendar, or once.
 *
 * An interval has its start and not its end. A start that clocks jump over is where they land, one
 * that they show twice is the first of the two; the same holds for an end that is a time of the
 * day. A duration is time that passes, whatever clocks show.
 */
#pragma once

#include "calendar/cron.h"
#include "calendar/rrule.h"

#define RECURRENCE_SKIPS_MAX 1000u /* dates that an event leaves out */

struct interval {
    usec_t start;
    usec_t end; /* the first instant that is no longer part of it */
};

enum recurrence_kind {
    RECURRENCE_WEEKLY,
    RECURRENCE_CRON,
    RECURRENCE_RRULE,
    RECURRENCE_DATES,
    RECURRENCE_ONCE,
};

/* "2026-12-24/2027-01-02", "2026-07-04", "--12-25", "--12-20/--01-06": whole days. */
struct recurrence_dates {
    bool yearly;   /* the years of both do not count */
    int64_t first; /* days since 1970-01-01 */
    int64_t last;
    struct day_date first_date;
    struct day_date last_date;
};

struct recurrence {
    enum recurrence_kind kind;
    const struct zone *zone; /* borrowed: from whoever made this; NULL for UTC */
    usec_t duration;         /* CRON and RRULE; > 0 */
    uint8_t weekdays;        /* WEEKLY: the days it starts on; bit 0 = Sunday */
    uint32_t from;           /* WEEKLY, RRULE: second of the day */
    uint32_t to;             /* WEEKLY: second of the day, 86400 for its end; the next day's when it
                                is not after `from` */
    struct cron cron;
    struct rrule rule;
    bool whole_days;      /* RRULE: `duration` counts days of the calendar */
    const int64_t *skips; /* RRULE: civil seconds of starts that are left out, sorted */
    uint32_t skip_n;
    struct recurrence_dates dates;
    struct interval once;
};

NODISCARD
int recurrence_parse_dates(struct str text, struct recurrence_dates *ret, struct err *err);
/* "22:00"; as an end also "24:00". */
NODISCARD
int recurrence_parse_clock(struct str text, bool end, uint32_t *ret, struct err *err);

/* The first interval that ends after `after`; false when none comes for RRULE_YEARS_MAX years. */
bool recurrence_next(const struct recurrence *r, usec_t after, struct interval *ret);
