/*
 * ics: the events of an iCalendar file (RFC 5545), as recurrences.
 *
 * Read of each VEVENT are DTSTART, DTEND or DURATION, RRULE, EXDATE and STATUS (a cancelled one
 * does not count); all else is passed over. An event without a time of the day is whole days in the
 * reader's zone, one with TZID is in that IANA zone, one with neither Z nor TZID in the reader's.
 * An event that replaces one instance of another (RECURRENCE-ID) is added, and the instance stays:
 * what files like this are for is to say when nothing must happen, and there more is safer than
 * less.
 */
#pragma once

#include "base/arena.h"
#include "calendar/recurrence.h"

#define ICS_BYTES_MAX ((size_t)256 * 1024)
#define ICS_EVENTS_MAX 1000u

/* Finds a zone by its IANA name; `ctx` is the caller's. */
typedef int (*ics_zone_fn)(void *ctx, struct str name, const struct zone **ret, struct err *err);

struct ics_reader {
    const struct zone *zone; /* of times that name none; NULL for UTC */
    ics_zone_fn find_zone;   /* NULL: TZID is refused */
    void *ctx;
};

/* Errors name the line. The result lives in `out` and borrows the zones. */
NODISCARD
int ics_parse(struct str text, const struct ics_reader *reader, struct arena *out,
              struct recurrence **ret, uint32_t *ret_n, struct err *err);
