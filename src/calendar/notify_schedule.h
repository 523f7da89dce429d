/*
 * notify_schedule: is a notification due? The schedules periodic, scheduled and oneshot.
 *
 * They are the original's, which compares days by their number in the month alone: `scheduled` is
 * silent on the second of March when it last spoke on the second of February, and on the first of a
 * month when it never spoke, for that is the day of Go's zero time.
 */
#pragma once

#include "base/timestamp.h"

#define NOTIFY_SCHEDULE_INTERVAL_NS                                                                \
    INT64_C(3600000000000)                            /* periodic, when nothing is configured */
#define NOTIFY_SCHEDULE_DELAY_NS INT64_C(60000000000) /* oneshot, likewise */

enum notify_schedule_kind {
    NOTIFY_SCHEDULE_PERIODIC,
    NOTIFY_SCHEDULE_SCHEDULED,
    NOTIFY_SCHEDULE_ONESHOT,
};

struct notify_schedule {
    enum notify_schedule_kind kind;
    int64_t span_ns;  /* periodic: interval; oneshot: delay, may be negative */
    uint32_t instant; /* scheduled: second of the day, UTC */
    uint8_t weekdays; /* scheduled: bit 0 = Sunday */
};

struct notify_schedule_facts {
    bool moved;           /* the current state is not the previous one */
    bool was_operational; /* the previous state was operational */
    struct timestamp transition;
    struct timestamp last; /* when this notification was last sent; timestamp_zero for never */
    struct timestamp now;
};

struct notify_schedule_answer {
    bool due;
    const char *reason; /* the original's words when not due; NULL where it has none */
    const char *note;   /* what it says before, due or not; NULL mostly */
    bool loud;          /* it gives the reason without log-details as well */
    usec_t next;        /* when `due` could change by itself; USEC_NEVER when it stays */
};

/* Any case; -ERR_INVALID names what is known. */
NODISCARD
int notify_schedule_parse_kind(struct str text, enum notify_schedule_kind *ret, struct err *err);

struct notify_schedule_answer notify_schedule_at(const struct notify_schedule *n,
                                                 const struct notify_schedule_facts *facts);
