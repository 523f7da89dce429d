/*
 * zone: the civil time of a place, from the bytes of a TZif file (RFC 8536, version 2 or later).
 *
 * libc has one zone for the whole process; here a zone is a value. The caller reads the file. After
 * the last transition in the table the footer's rule goes on for ever. Files that count leap
 * seconds ("right/…") are refused, for our seconds do not.
 *
 * Everywhere a zone may be NULL, which is UTC.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define ZONE_BYTES_MAX ((size_t)256 * 1024) /* the largest of tzdata has 4 KiB */
#define ZONE_SEC_MAX (INT64_C(1) << 53)     /* beyond what microseconds count */

struct zone;

/* A time with one offset. */
struct zone_span {
    int64_t from;   /* INT64_MIN when it has no beginning */
    int64_t until;  /* the next transition; INT64_MAX when none comes */
    int32_t offset; /* seconds east of UTC */
    int32_t before; /* the offset before `from`; the same when there is no beginning */
    bool dst;
    struct str name; /* "CET" */
};

enum zone_fit {
    ZONE_ONCE,
    ZONE_GAP,  /* clocks jump over it */
    ZONE_FOLD, /* clocks show it twice */
};

/* The instants at which clocks show a civil time. */
struct zone_instants {
    enum zone_fit fit;
    int64_t first; /* ZONE_GAP: the transition, the first instant after it */
    int64_t last;  /* ZONE_FOLD: the second time; otherwise the same */
};

/* The zone's civil time by a clock that stops instead of going back: while the clocks show an hour
 * for the second time, it stays at the last second of the first. So every civil time comes once and
 * in order, and a window that has closed does not open again when the clocks are put back. */
struct zone_pace {
    bool stands;
    int64_t local; /* what it shows at the second asked for */
    int64_t until; /* how long it goes on to run, or to stand */
};

/* Everything lives in `out`; `bytes` may go. */
NODISCARD
int zone_parse(struct str bytes, struct arena *out, const struct zone **ret, struct err *err);

/* -ZONE_SEC_MAX < sec < ZONE_SEC_MAX, here and below. */
struct zone_span zone_at(const struct zone *z, int64_t sec);
struct zone_instants zone_instants(const struct zone *z, int64_t local);
struct zone_pace zone_pace(const struct zone *z, int64_t sec);
