#include "kube/retry.h"

#define GATE_BASE MSECONDS(100)
#define GATE_MAX SECONDS(10)
#define RETRY_AFTER_MAX SECONDS(30) /* one header must not silence a leader for minutes */

static const struct {
    int low;
    int high;
    enum retry_verdict verdict;
} retry_table[] = {
    { 200, 299, RETRY_DONE },
    { 404, 404, RETRY_ABSENT },
    { 408, 408, RETRY_LATER },
    { 409, 409, RETRY_OBSERVE },
    { 410, 410, RETRY_RELIST },
    { 429, 429, RETRY_QUIET },
    { 502, 503, RETRY_QUIET }, /* a load balancer without servers, a server that starts */
    { 500, 599, RETRY_LATER }, /* 500 and 504 may concern one object: a webhook, a slow quorum */
    /* 401 and 403 too: a rotated token or a new role mends them, only not soon. */
    { 100, 499, RETRY_REFUSED },
};

enum retry_verdict retry_judge(const struct api_reply *reply)
{
    if (reply->status == 0) {
        return RETRY_QUIET;
    }
    for (size_t i = 0; i < ARRAY_LEN(retry_table); i++) {
        if (reply->status >= retry_table[i].low && reply->status <= retry_table[i].high) {
            return retry_table[i].verdict;
        }
    }
    return RETRY_LATER;
}

usec_t backoff_next(struct backoff *b, uint64_t random)
{
    ASSERT(b->base > 1 && b->max >= b->base);
    usec_t wait = b->base;
    for (uint32_t i = 0; i < b->failures && wait < b->max; i++) {
        wait *= 2;
    }
    wait = MIN(wait, b->max);
    b->failures += b->failures < UINT32_MAX ? 1 : 0;
    return wait / 2 + (usec_t)(random % (uint64_t)(wait / 2 + 1));
}

void backoff_reset(struct backoff *b)
{
    b->failures = 0;
}

void retry_gate_init(struct retry_gate *g)
{
    *g = (struct retry_gate){ .backoff = { .base = GATE_BASE, .max = GATE_MAX } };
}

bool retry_gate_open(const struct retry_gate *g, usec_t now)
{
    return now >= g->until;
}

void retry_gate_note(struct retry_gate *g, enum retry_verdict verdict, usec_t retry_after,
                     usec_t now, uint64_t random)
{
    if (verdict != RETRY_QUIET) {
        backoff_reset(&g->backoff);
        return;
    }
    /* Answers to requests that were under way together count once. */
    if (!retry_gate_open(g, now) && retry_after == 0) {
        return;
    }
    usec_t wait = backoff_next(&g->backoff, random);
    if (retry_after > 0) {
        /* A little more than asked for, so that not all come back in the same instant. */
        wait = MIN(retry_after, RETRY_AFTER_MAX) + wait / 4;
    }
    g->until = MAX(g->until, now + wait);
}
