/*
 * window: may it be done now? The check timeWindow: weekdays, a time of the day, days of the year
 * that are excluded.
 *
 * As in the original both ends are open: at 22:00:00 sharp a window from 22:00 is still closed, one
 * nanosecond later it is not; a window to 23:59 ends before the day's last minute. Beyond the
 * original, if asked for: a time zone, and windows over midnight, whose weekday and date are those
 * of the evening on which they open.
 *
 * In a time zone an end that clocks jump over is where they land, one that they show twice is the
 * first of the two (zone_pace): a window opens at most once a day.
 */
#pragma once

#include "calendar/day.h"
#include "calendar/zone.h"

struct window {
    uint8_t weekdays;        /* bit 0 = Sunday */
    bool overnight;          /* `close` may be before `open`: then it is the next day's */
    uint32_t open;           /* second of the day */
    uint32_t close;          /* second of the day */
    uint32_t exclude[13];    /* by month; bit = day of the month */
    const struct zone *zone; /* borrowed: from the configuration; NULL for UTC */
};

struct window_answer {
    bool passed;
    const char *reason; /* the original's words when the day is refused; NULL otherwise */
    usec_t next;        /* when `passed` could change; USEC_NEVER when it stays */
};

void window_exclude(struct window *w, struct day_date date);
/* What a configuration must fulfil: weekdays, and the ends in order. */
NODISCARD
int window_check(const struct window *w, struct err *err);

/* A window that does not open within a year is looked at again after one. */
struct window_answer window_at(const struct window *w, struct timestamp now);
