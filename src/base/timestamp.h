/*
 * timestamp: an instant with its offset, as RFC 3339 writes it and as Go's time.Time keeps it.
 *
 * Civil arithmetic is the proleptic Gregorian calendar in UTC; no time zones, no clock. Go's zero
 * time, year 1, is a stamp like any other.
 */
#pragma once

#include "base/err.h"

#define TIMESTAMP_TEXT_MAX 64 /* also the largest year that fits 64 bits */

struct timestamp {
    int64_t sec;    /* since 1970-01-01T00:00:00Z */
    int32_t nsec;   /* 0 … 999,999,999 */
    int32_t offset; /* seconds east of UTC */
};

struct civil {
    int64_t year;
    int month; /* 1 … 12 */
    int day;   /* 1 … 31 */
    int hour;
    int minute;
    int second;
    int weekday; /* 0 = Sunday */
};

extern const struct timestamp timestamp_zero; /* 0001-01-01T00:00:00Z */

struct timestamp timestamp_from_usec(usec_t wall); /* UTC */
usec_t timestamp_to_usec(struct timestamp s);
bool timestamp_is_zero(struct timestamp s);

/* RFC 3339 as Go's time.Time reads it from JSON (the text between the quotes). */
NODISCARD
int timestamp_parse(struct str text, struct timestamp *ret, struct err *err);

/* metav1.MicroTime as Kubernetes reads it: the same with exactly six digits behind the point. */
NODISCARD
int timestamp_parse_micro(struct str text, struct timestamp *ret, struct err *err);

/* RFC 3339 with up to nine digits, trailing zeros removed; -ERR_INVALID where Go refuses (year,
 * offset). */
NODISCARD
int timestamp_print(struct timestamp s, char out[TIMESTAMP_TEXT_MAX], struct str *ret,
                    struct err *err);

/* Kubernetes' forms: metav1.Time (whole seconds, UTC) and metav1.MicroTime (exactly six digits,
 * UTC). */
struct str timestamp_print_seconds(usec_t wall, char out[TIMESTAMP_TEXT_MAX]);
struct str timestamp_print_micro(usec_t wall, char out[TIMESTAMP_TEXT_MAX]);

/* Go's time.Time.String(): "2026-01-02 03:04:05.25 +0530 +0530"; an offset of 0 is "+0000 UTC". */
struct str timestamp_print_go(struct timestamp s, char out[TIMESTAMP_TEXT_MAX]);

struct civil civil_from_sec(int64_t sec); /* UTC */
int64_t civil_to_sec(const struct civil *c);
