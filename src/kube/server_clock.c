#include "kube/server_clock.h"

#define CLOCK_SMOOTH 16 /* a sample moves it by a sixteenth: dates are whole seconds */

void server_clock_init(struct server_clock *c, struct loop *loop)
{
    *c = (struct server_clock){ .loop = loop };
}

void server_clock_note(struct server_clock *c, usec_t date, usec_t took)
{
    ASSERT(took >= 0);
    if (date == 0) {
        return;
    }
    /* The fraction was cut off: half a second is its mean. */
    usec_t sample = date + MSECONDS(500) - loop_now(c->loop);
    usec_t late = sample + took; /* if it was given at once, and then was on its way */
    usec_t off = sample > c->offset ? sample - c->offset : MIN(late - c->offset, 0);
    if (!c->known || off > SERVER_CLOCK_JUMP || off < -SERVER_CLOCK_JUMP) {
        c->jumps += c->known ? 1 : 0;
        c->known = true;
        c->offset = sample;
        c->doubt = took;
    } else {
        c->offset += off / CLOCK_SMOOTH;
        c->doubt = MIN(c->doubt, took);
    }
}

usec_t server_clock_wall(const struct server_clock *c)
{
    return c->known ? loop_now(c->loop) + c->offset : loop_wall(c->loop);
}

usec_t server_clock_doubt(const struct server_clock *c)
{
    return c->doubt;
}
