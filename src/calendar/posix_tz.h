/*
 * posix_tz: the rule by which a time zone continues after its table, "CET-1CEST,M3.5.0,M10.5.0/3".
 *
 * It is the footer of a TZif file, in the form of POSIX' TZ variable with the wider range of hours
 * of RFC 8536 section 3.3.1.
 */
#pragma once

#include "base/str.h"

/* One way to set the clocks. */
struct posix_tz_kind {
    int32_t offset; /* seconds east of UTC */
    bool dst;
    struct str name;
};

/* When clocks change, in a year: "M3.5.0/2", "J60", "59". */
struct posix_tz_edge {
    enum { EDGE_WEEKDAY, EDGE_JULIAN, EDGE_DAY } form;
    int month;
    int week;
    int day;      /* weekday, or day of the year */
    int32_t time; /* seconds after that day's midnight, on the clock before the change */
};

struct posix_tz {
    struct posix_tz_kind standard;
    bool changes; /* the rest is used */
    struct posix_tz_kind saving;
    struct posix_tz_edge start; /* of daylight saving time */
    struct posix_tz_edge end;
};

struct posix_tz_span {
    int64_t from;  /* INT64_MIN when clocks never change */
    int64_t until; /* INT64_MAX likewise */
    int32_t before;
    const struct posix_tz_kind *kind;
};

/* Names are slices of `text`. False when it is no rule. */
bool posix_tz_parse(struct str text, struct posix_tz *ret);
struct posix_tz_span posix_tz_at(const struct posix_tz *r, int64_t sec);
