/*
 * cron: times by pattern, "30 22 * * mon-fri", and windows that open at them for a while.
 *
 * Five fields: minute, hour, day of the month, month, weekday; each a list of values, ranges and
 * steps ("5", "1-5", "10-50/20", "8/2" from 8 on, "*", "jan", "fri-sun"); 7 is Sunday, too. Or one
 * of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. When both days are
 * restricted, one of them suffices; a field with "*" (or "?") restricts nothing unless it has a
 * step. That is how Kubernetes reads its CronJobs.
 *
 * In a time zone, a time that the clocks skip is moved to the first time after the gap, and a time
 * that they show twice counts the first time. A pattern whose hour field is "*" follows the clocks
 * instead: every quarter of an hour stays every quarter of an hour in such a night.
 */
#pragma once

#include "calendar/zone.h"

#define CRON_TEXT_MAX 256u /* a pattern is a line that people read */

struct cron {
    uint64_t minutes;
    uint32_t hours;
    uint32_t days; /* bit 1 … 31 */
    uint16_t months;
    uint8_t weekdays;
    bool any_day;
    bool any_weekday;
};

struct cron_window {
    struct cron cron;
    usec_t duration;         /* time that passes, whatever clocks show; > 0 */
    const struct zone *zone; /* borrowed: from the configuration; NULL for UTC */
};

struct cron_answer {
    bool open;
    usec_t next; /* when `open` could change */
};

/* A pattern that never comes, such as the 30th of February, is refused. */
NODISCARD
int cron_parse(struct str text, struct cron *ret, struct err *err);

/* The first time after `after`; USEC_NEVER only where clocks end. */
usec_t cron_next(const struct cron *c, const struct zone *zone, usec_t after);

/* A window is open from a time of the pattern (included) until its duration is over (excluded).
 * Windows that touch are one; when very many touch, `next` may come before their end. */
struct cron_answer cron_window_at(const struct cron_window *w, usec_t now);
