/*
 * picture: the demo's story as it looks in a terminal, at most 80 columns wide.
 *
 * Pure: a story in, text out. Colours are ANSI and optional; without them the same things are told
 * by different letters.
 */
#pragma once

#include "cmd/story.h"

#define PICTURE_COLUMNS 80u
#define PICTURE_LINES_MAX 8u /* milestones shown; older ones scroll away */

struct picture_line {
    usec_t at;
    char text[400];
};

struct picture {
    struct picture_line lines[PICTURE_LINES_MAX];
    uint32_t n;
    bool colour;
    double speed;
    struct str url; /* of the dashboard; borrowed */
};

void picture_add(struct picture *p, usec_t at, struct str text);

/* One frame: begins at the top of the screen and clears what was below. */
void picture_draw(const struct picture *p, struct story *story, struct buf *out);

/* "02:13", minutes and seconds of world time. */
void picture_time(struct buf *out, usec_t time);
