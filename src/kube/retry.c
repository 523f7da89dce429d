#include "kube/retry.h"

#include "format/json.h"

#define GATE_BASE MSECONDS(100)
#define GATE_MAX SECONDS(10)
#define RETRY_AFTER_MAX SECONDS(30)          /* one header must not silence a leader for minutes */
#define STATUS_BYTES_MAX ((size_t)64 * 1024) /* a Status has a few hundred */

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

/* The details of a Status name the object that it is about. What the server says of itself, such as
 * the text of its in-flight filter, names none. */
static bool retry_names_object(struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *root = NULL;
    return body.n > 0 && body.n <= STATUS_BYTES_MAX &&
           json_parse(body, JSON_GO, &tmp, &root, &ignored) == 0 &&
           str_eq(jval_str(jval_get(root, STR("kind"))), STR("Status")) &&
           jval_str(jval_at(root, "details.name")).n > 0;
}

enum retry_verdict retry_judge(const struct api_reply *reply)
{
    enum retry_verdict verdict = reply->status == 0 ? RETRY_QUIET : RETRY_LATER;
    for (size_t i = 0; reply->status != 0 && i < ARRAY_LEN(retry_table); i++) {
        if (reply->status >= retry_table[i].low && reply->status <= retry_table[i].high) {
            verdict = retry_table[i].verdict;
            break;
        }
    }
    return verdict == RETRY_QUIET && retry_names_object(reply->body) ? RETRY_LATER : verdict;
}

usec_t retry_after(const struct api_reply *reply)
{
    return MIN(reply->retry_after, RETRY_AFTER_MAX);
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

void retry_gate_note(struct retry_gate *g, enum retry_verdict verdict,
                     const struct api_reply *reply, usec_t now, uint64_t random)
{
    usec_t asked = retry_after(reply);
    if (verdict != RETRY_QUIET) {
        backoff_reset(&g->backoff);
        return;
    }
    /* Answers to requests that were under way together count once. */
    if (!retry_gate_open(g, now) && asked == 0) {
        return;
    }
    /* A little more than asked for, so that not all come back in the same instant. */
    usec_t wait = backoff_next(&g->backoff, random);
    wait = asked > 0 ? asked + wait / 4 : wait;
    if (retry_gate_open(g, now)) {
        g->since = now;
    }
    if (now + wait > g->until) {
        g->until = now + wait;
        g->status = reply->status;
        g->asked = asked;
    }
}
