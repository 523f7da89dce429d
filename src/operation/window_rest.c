#include "operation/window_rest.h"

#include <stdlib.h>

void window_rest_add(struct window_rest_durations *d, usec_t duration)
{
    d->items[d->next] = duration;
    d->next = (d->next + 1) % WINDOW_REST_KEPT;
    d->n = MIN(d->n + 1, WINDOW_REST_KEPT);
}

static int duration_cmp(const void *a, const void *b)
{
    const usec_t *x = a;
    const usec_t *y = b;
    return (*x > *y) - (*x < *y);
}

usec_t window_rest_estimate(const struct window_rest_durations *d)
{
    usec_t sorted[WINDOW_REST_KEPT] = { 0 };
    if (d->n == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        sorted[i] = d->items[i];
    }
    qsort(sorted, d->n, sizeof(sorted[0]), duration_cmp);
    return sorted[(d->n * 9 + 9) / 10 - 1];
}

struct window_rest_answer window_rest_decide(struct interval open, usec_t now, usec_t min_remaining,
                                             usec_t estimate)
{
    struct window_rest_answer a = { .verdict = WINDOW_REST_ENOUGH, .until = USEC_NEVER };
    if (open.end == USEC_NEVER) {
        return a;
    }
    usec_t length = open.end - open.start;
    a.wanted = MIN(MAX(min_remaining, estimate), length / 2);
    a.wanted = MAX(a.wanted, MIN(min_remaining, length));
    a.until = open.end - a.wanted + 1; /* exactly that much may be left */
    if (length < min_remaining) {
        a.verdict = WINDOW_REST_NEVER;
        a.until = open.start;
    } else if (now >= a.until) {
        a.verdict = WINDOW_REST_TOO_LITTLE;
    }
    return a;
}
