/*
 * gotime: Go's time.Time.Format: a layout is the reference time "Mon Jan 2 15:04:05 MST 2006"
 * written the way the reader wants it.
 *
 * A stamp knows its offset, not its zone: where Go would print a zone's name, an offset of 0 is
 * "UTC" and any other its digits, as Go does for times read from JSON.
 */
#pragma once

#include "base/buf.h"
#include "base/timestamp.h"

struct str gotime_month(int64_t month);     /* "January" for 1; empty where there is none */
struct str gotime_weekday(int64_t weekday); /* "Sunday" for 0; empty where there is none */
int gotime_year_day(struct timestamp time); /* 1 … 366 */
void gotime_format(struct buf *out, struct timestamp time, struct str layout);
