#include "operation/window_outlook.h"

#include "base/defs.h"

void window_outlook_begin(struct window_outlook *w, usec_t now)
{
    *w = (struct window_outlook){
        .begun = true,
        .from = now,
        .search = opening_search_from(now),
    };
}

/* The search goes on behind what was found, until there is enough. */
static void outlook_add(struct window_outlook *w, struct interval found)
{
    if (found.start <= w->from) {
        w->open = true;
        w->open_until = found.end;
    } else {
        w->next[w->next_n++] = found;
    }
    w->known = found.end == USEC_NEVER || w->next_n == WINDOW_OUTLOOK_MAX;
    w->search = opening_search_from(found.end);
}

bool window_outlook_search(struct window_outlook *w, const struct opening_plan *plan)
{
    ASSERT(w->begun);
    while (!w->known) {
        struct interval found = { 0 };
        switch (opening_next(plan, &w->search, &found)) {
        case OPENING_FOUND:
            outlook_add(w, found);
            break;
        case OPENING_AGAIN:
            return false;
        case OPENING_TOO_COMPLEX:
            w->given_up = true;
            w->known = true;
            break;
        case OPENING_NEVER:
            w->known = true;
            break;
        }
    }
    return true;
}

usec_t window_outlook_until(const struct window_outlook *w)
{
    return w->open ? w->open_until : w->next_n > 0 ? w->next[0].start : USEC_NEVER;
}
