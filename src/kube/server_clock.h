/*
 * server_clock: the API server's wall time, as its answers tell it.
 *
 * What is written into objects and compared by another leader later has to come from one clock, and
 * the server's is the only one that all share. Its answers carry whole seconds; between them the
 * monotonic clock goes on, so a local clock that is set back or forth changes nothing. Samples are
 * smoothed; one that is far off is a jump, and is believed. But an answer may have been long on its
 * way: when it was given, between request and arrival, nobody knows, so it contradicts only what no
 * moment between them explains. One that nothing better is known than is taken for one that was
 * given last: then the clock may be behind, by its doubt, and never far ahead. Whoever counts from
 * a time that was written waits too long rather than not long enough; whoever writes one that is
 * counted from adds the doubt (R7).
 */
#pragma once

#include "port/loop.h"

#define SERVER_CLOCK_JUMP SECONDS(2)

struct server_clock {
    struct loop *loop; /* borrowed */
    usec_t offset;     /* wall = monotonic + offset */
    usec_t doubt;      /* the server may be ahead of it by that */
    bool known;        /* otherwise it is the local wall clock */
    uint64_t jumps;
};

void server_clock_init(struct server_clock *c, struct loop *loop);
/* An answer came now, `took` after it was asked for, and its `date` says when it was given; 0 is
 * ignored. */
void server_clock_note(struct server_clock *c, usec_t date, usec_t took);
usec_t server_clock_wall(const struct server_clock *c);
usec_t server_clock_doubt(const struct server_clock *c);
