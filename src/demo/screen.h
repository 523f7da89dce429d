/*
 * screen: draws the demo in a terminal of 80 columns and 24 rows.
 *
 * Pure: a script in, text out. Every part has a fixed place, so that only what changes moves.
 * Colours are ANSI and optional; without them letters and signs say the same.
 */
#pragma once

#include "demo/script.h"

#define SCREEN_COLUMNS 80u
#define SCREEN_ROWS 24u
#define SCREEN_LINES_MAX 8u /* milestones kept; the newest that fit are shown */

struct screen_line {
    usec_t wall;
    char text[400];
};

struct screen {
    struct screen_line lines[SCREEN_LINES_MAX];
    uint32_t n;
    bool colour;
    double speed;
    struct str url; /* of the dashboard; borrowed */
};

void screen_add(struct screen *p, usec_t wall, struct str text);

/* One frame: begins at the top of the screen and clears what was below. */
void screen_draw(const struct screen *p, struct script *script, struct buf *out);

/* "22:00:13" of a day, UTC. */
void screen_clock(struct buf *out, usec_t wall);
/* "04:13", minutes and seconds of a length of time. */
void screen_length(struct buf *out, usec_t length);
