/* Turns the loop until an answer, a line of a watch or a time has come. */
#include "client/blocking_api.h"

#include "kube/retry.h"

#include <errno.h>

#define RETRY_WAIT_BASE MSECONDS(200)
#define RETRY_WAIT_MAX SECONDS(5)
#define SILENCE_MAX SECONDS(150) /* bookmarks come every minute; a dead peer sends none */
#define LEAVING_CHECK_EVERY                                                                        \
    SECONDS(1) /* a signal ends a turn by itself; this is for the others                           \
                */

static bool blocking_api_leaving(const struct blocking_api *t)
{
    return t->leaving != NULL && t->leaving(t->ctx);
}

static int blocking_api_cancelled(struct err *err)
{
    return err_set(err, ERR_CANCELLED, "interrupted");
}

static void blocking_api_run_loop(struct blocking_api *t, usec_t until)
{
    t->turn(t->ctx, MIN(until, loop_now(t->loop) + LEAVING_CHECK_EVERY));
}

/* ── waiting ───────────────────────────────────────────────────────────────────────────────── */

static void blocking_api_on_timer(void *ctx)
{
    bool *over = ctx;
    *over = true;
}

int blocking_api_sleep(struct blocking_api *t, usec_t wait, usec_t until, struct err *err)
{
    bool over = false;
    struct loop_timer timer;
    usec_t end = MIN(loop_now(t->loop) + wait, until);
    loop_timer_init(&timer, t->loop, blocking_api_on_timer, &over);
    loop_timer_set(&timer, end);
    while (!over && !blocking_api_leaving(t)) {
        blocking_api_run_loop(t, end);
    }
    loop_timer_done(&timer);
    return over ? 0 : blocking_api_cancelled(err);
}

/* ── one question ──────────────────────────────────────────────────────────────────────────── */

struct blocking_api_call {
    struct arena *out;
    bool over;
    enum retry_verdict verdict;
    usec_t retry_after;
    struct blocking_api_reply answer;
    struct err err; /* when there was no answer */
};

static void blocking_api_on_reply(void *ctx, const struct api_reply *reply)
{
    struct blocking_api_call *x = ctx;
    x->over = true;
    x->verdict = retry_judge(reply);
    x->retry_after = reply->retry_after;
    x->answer.status = reply->status;
    x->answer.body = arena_str(x->out, reply->body);
    if (reply->err != NULL) {
        x->err = *reply->err;
    }
}

static int blocking_api_send_once(struct blocking_api *t, const struct api_request *request,
                                  struct blocking_api_call *x, struct err *err)
{
    struct api_call *call = api_send(t->api, request, blocking_api_on_reply, x);
    while (!x->over && !blocking_api_leaving(t)) {
        blocking_api_run_loop(t, USEC_NEVER);
    }
    if (!x->over) {
        api_cancel(t->api, call);
        return blocking_api_cancelled(err);
    }
    return 0;
}

/* The same would happen again: a wrong address, a wrong file, nobody there. */
static bool blocking_api_is_permanent(const struct err *err)
{
    return err->code == ERR_NOTFOUND || err->code == ERR_DENIED || err->code == ERR_INVALID ||
           err->code == ERR_PROTO || err->os == ECONNREFUSED;
}

int blocking_api_send(struct blocking_api *t, const struct api_request *request, struct arena *out,
                      struct blocking_api_reply *ret, struct err *err)
{
    usec_t end = loop_now(t->loop) + (t->retry_time > 0 ? t->retry_time : BLOCKING_API_RETRY_TIME);
    struct backoff backoff = { .base = RETRY_WAIT_BASE, .max = RETRY_WAIT_MAX };
    for (;;) {
        struct blocking_api_call x = { .out = out };
        int r = blocking_api_send_once(t, request, &x, err);
        if (r < 0) {
            return r;
        }
        t->answered = t->answered || x.answer.status != 0;
        bool futile = t->fail_fast && !t->answered && blocking_api_is_permanent(&x.err);
        bool transient = !futile && (x.verdict == RETRY_LATER || x.verdict == RETRY_QUIET);
        usec_t wait = MAX(backoff_next(&backoff, loop_random(t->loop)), x.retry_after);
        if (!transient || loop_now(t->loop) + wait >= end) {
            if (x.answer.status == 0) {
                /* Whatever it was: time limits and interruptions are the caller's words. */
                *err = x.err;
                err->code = ERR_IO;
                return -ERR_IO;
            }
            *ret = x.answer;
            return 0;
        }
        r = blocking_api_sleep(t, wait, USEC_NEVER, err);
        if (r < 0) {
            return r;
        }
    }
}

/* ── following ─────────────────────────────────────────────────────────────────────────────── */

struct blocking_api_stream {
    blocking_api_on_line on_line;
    void *ctx;
    bool over;  /* a line ended it */
    bool ended; /* the stream did, and the handle is gone */
};

static void blocking_api_on_event(void *ctx, const struct api_watch_event *event)
{
    struct blocking_api_stream *s = ctx;
    if (event->kind == API_WATCH_LINE && !s->over) {
        s->over = s->on_line(s->ctx, event->line);
    } else if (event->kind == API_WATCH_END) {
        s->ended = true;
    }
}

int blocking_api_watch(struct blocking_api *t, struct str path, usec_t until,
                       blocking_api_on_line on_line, void *ctx, struct err *err)
{
    bool late = false;
    struct loop_timer timer;
    struct blocking_api_stream s = { .on_line = on_line, .ctx = ctx };
    struct api_watch *watch =
        api_watch(t->api, &(struct api_watch_spec){ .path = path, .silence_max = SILENCE_MAX },
                  blocking_api_on_event, &s);
    loop_timer_init(&timer, t->loop, blocking_api_on_timer, &late);
    if (until != USEC_NEVER) {
        loop_timer_set(&timer, until);
    }
    while (!s.over && !s.ended && !late && !blocking_api_leaving(t)) {
        blocking_api_run_loop(t, until);
    }
    loop_timer_done(&timer);
    if (!s.ended) {
        api_watch_stop(t->api, watch);
    }
    if (s.over || s.ended) {
        return 0;
    }
    return late ? err_set(err, ERR_TIMEOUT, "the time is over") : blocking_api_cancelled(err);
}
