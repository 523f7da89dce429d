/*
 * rrule: days that come again by a rule of RFC 5545 section 3.3.10, "FREQ=MONTHLY;BYDAY=2TU".
 *
 * A rule here chooses days; the time of the day is its user's. So each BY part is a condition that
 * a day fulfils or not, and the two roles that the RFC gives them, to expand and to limit, are one.
 * Read are FREQ from DAILY to YEARLY, INTERVAL, COUNT, UNTIL, BYDAY, BYMONTHDAY, BYMONTH, BYSETPOS
 * and WKST. A rule needs the day it starts on (DTSTART) where its meaning depends on it: with
 * INTERVAL above 1, with COUNT, and where no BY part names the day.
 *
 * No call does more work than looking at each day of RRULE_YEARS_MAX years once.
 */
#pragma once

#include "calendar/day.h"

#define RRULE_TEXT_MAX 1024u  /* a rule is a line or two that people read */
#define RRULE_YEARS_MAX 9     /* the longest a date can stay away: 29 February 2096 to 2104 */
#define RRULE_COUNT_MAX 1000u /* the last of them is looked up when the rule is read */
#define RRULE_NTH_MAX 32u     /* entries of BYDAY with a number, and of BYSETPOS */
#define RRULE_DAYS_NONE INT64_MAX

enum rrule_freq { RRULE_DAILY, RRULE_WEEKLY, RRULE_MONTHLY, RRULE_YEARLY };

/* DTSTART or UNTIL: "20261224", "20261224T180000", "20261224T180000Z". */
struct rrule_time {
    bool given;
    bool timed; /* with a time of the day */
    bool utc;
    int64_t sec; /* civil seconds; midnight without a time */
};

struct rrule {
    enum rrule_freq freq;
    uint32_t interval;
    uint16_t months;         /* bit 1 … 12; 0 for all */
    uint32_t monthdays;      /* bit 1 … 31 */
    uint32_t monthdays_back; /* bit 1 is the last day of the month */
    uint8_t weekdays;        /* bit 0 = Sunday */
    uint8_t week_start;      /* 0 = Sunday */
    uint32_t nth_n;
    struct rrule_nth {
        int number; /* 2: the second, -1: the last; in the month, or in the year */
        int weekday;
    } nth[RRULE_NTH_MAX];
    uint32_t position_n;
    int position[RRULE_NTH_MAX]; /* BYSETPOS */
    struct rrule_time start;
    struct rrule_time until;
    int64_t last; /* the last day by COUNT, or by UNTIL and a day of slack; RRULE_DAYS_NONE: none */
};

NODISCARD
int rrule_parse_time(struct str text, struct rrule_time *ret, struct err *err);

/* A rule, "RRULE:" before it or not, and perhaps a line "DTSTART:20260105" above it. */
NODISCARD
int rrule_parse(struct str text, struct rrule *ret, struct err *err);
/* A rule whose start stands elsewhere. */
NODISCARD
int rrule_parse_from(struct str text, struct rrule_time start, struct rrule *ret, struct err *err);

/* The first day of the rule from `day` on, in days since 1970-01-01; RRULE_DAYS_NONE when none
 * comes in RRULE_YEARS_MAX years. UNTIL with a time of the day is not looked at: see rrule_over. */
int64_t rrule_next(const struct rrule *r, int64_t day);

/* Is an occurrence behind UNTIL? `local` is its civil time, `instant` the same in UTC. */
bool rrule_over(const struct rrule *r, int64_t local, int64_t instant);
