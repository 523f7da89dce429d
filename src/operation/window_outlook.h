/*
 * window_outlook: whether a window is open, until when, and the openings that come next.
 *
 * Pure. Rules of other people may take many steps to search: what one turn does is bounded, and the
 * next one goes on. What is found stays true until window_outlook_until.
 */
#pragma once

#include "calendar/opening_hours.h"

#define WINDOW_OUTLOOK_MAX 10u /* openings that are looked for; the schema's */

struct window_outlook {
    bool begun;
    bool known;    /* all is, as of `from` */
    bool given_up; /* the rules are too complex to be searched */
    usec_t from;   /* wall */
    bool open;
    usec_t open_until;                        /* USEC_NEVER: it does not close */
    struct interval next[WINDOW_OUTLOOK_MAX]; /* that begin after `from`, in order */
    uint32_t next_n;
    struct opening_search search;
};

void window_outlook_begin(struct window_outlook *w, usec_t now);
/* Searches; false: this is enough for one turn, and the next has to go on. */
bool window_outlook_search(struct window_outlook *w, const struct opening_plan *plan);
/* When what is known changes: the window closes or opens. USEC_NEVER: it does not. */
usec_t window_outlook_until(const struct window_outlook *w);
