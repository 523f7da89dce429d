/*
 * day: weekdays, times of the day and days of the year, as people write them into configuration.
 *
 * The texts are those that the original maintenance-controller accepts: nothing more, so that a
 * configuration means the same in both.
 */
#pragma once

#include "base/timestamp.h"

#define DAY_SEC INT64_C(86400)
#define DAY_WEEK 0x7fu /* every weekday; bit 0 is Sunday */

struct day_date {
    int month; /* 1 … 12 */
    int day;   /* 1 … 31 */
};

/* "mon", "Monday": any case, three letters or all; 0 is Sunday. */
NODISCARD
int day_parse_weekday(struct str text, int *ret, struct err *err);
/* "8:00", "23:59": the second of the day. */
NODISCARD
int day_parse_clock(struct str text, uint32_t *ret, struct err *err);
/* "Jan 2", "feb 29": every year's. */
NODISCARD
int day_parse_date(struct str text, struct day_date *ret, struct err *err);

/* Days since 1970-01-01 of a civil second, and what is left of it; both round down. */
int64_t day_of(int64_t sec);
uint32_t day_clock(int64_t sec);
/* The weekday of a day since 1970-01-01. */
int day_weekday(int64_t day);
/* How many days a month has at most: 29 in February. */
int day_month_max(int month);

/* The offset of a lower-case word among three-letter names, in any case; -1 when it is none. */
int day_find_name(struct str text, const char *const *names, int n);

extern const char *const day_weekdays[7]; /* "sun" … "sat" */
extern const char *const day_months[12];  /* "jan" … "dec" */
