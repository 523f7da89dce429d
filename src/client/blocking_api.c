#include "client/blocking_api.h"

#include "kube/retry.h"

#define PAUSE_BASE MSECONDS(200)
#define PAUSE_MAX SECONDS(5)
#define SILENCE_MAX SECONDS(150) /* bookmarks come every minute; a dead peer sends none */
#define LEAVE_LOOK SECONDS(1)    /* a signal ends a turn by itself; this is for the others */

static bool talk_leaving(const struct talk *t)
{
    return t->leaving != NULL && t->leaving(t->ctx);
}

static int talk_left(struct err *err)
{
    return err_set(err, ERR_CANCELLED, "interrupted");
}

static void talk_turn(struct talk *t, usec_t until)
{
    t->turn(t->ctx, MIN(until, loop_now(t->loop) + LEAVE_LOOK));
}

/* ── waiting ───────────────────────────────────────────────────────────────────────────────── */

static void talk_on_timer(void *ctx)
{
    bool *over = ctx;
    *over = true;
}

int talk_pause(struct talk *t, usec_t wait, usec_t until, struct err *err)
{
    bool over = false;
    struct loop_timer timer;
    usec_t end = MIN(loop_now(t->loop) + wait, until);
    loop_timer_init(&timer, t->loop, talk_on_timer, &over);
    loop_timer_set(&timer, end);
    while (!over && !talk_leaving(t)) {
        talk_turn(t, end);
    }
    loop_timer_done(&timer);
    return over ? 0 : talk_left(err);
}

/* ── one question ──────────────────────────────────────────────────────────────────────────── */

struct talk_exchange {
    struct arena *out;
    bool over;
    enum retry_verdict verdict;
    usec_t retry_after;
    struct talk_answer answer;
    struct err err; /* when there was no answer */
};

static void talk_on_reply(void *ctx, const struct api_reply *reply)
{
    struct talk_exchange *x = ctx;
    x->over = true;
    x->verdict = retry_judge(reply);
    x->retry_after = reply->retry_after;
    x->answer.status = reply->status;
    x->answer.body = arena_str(x->out, reply->body);
    if (reply->err != NULL) {
        x->err = *reply->err;
    }
}

static int talk_once(struct talk *t, const struct api_request *request, struct talk_exchange *x,
                     struct err *err)
{
    struct api_call *call = api_send(t->api, request, talk_on_reply, x);
    while (!x->over && !talk_leaving(t)) {
        talk_turn(t, USEC_NEVER);
    }
    if (!x->over) {
        api_cancel(t->api, call);
        return talk_left(err);
    }
    return 0;
}

int talk_send(struct talk *t, const struct api_request *request, struct arena *out,
              struct talk_answer *ret, struct err *err)
{
    usec_t end = loop_now(t->loop) + (t->patience > 0 ? t->patience : TALK_PATIENCE);
    struct backoff backoff = { .base = PAUSE_BASE, .max = PAUSE_MAX };
    for (;;) {
        struct talk_exchange x = { .out = out };
        int r = talk_once(t, request, &x, err);
        if (r < 0) {
            return r;
        }
        bool passing = x.verdict == RETRY_LATER || x.verdict == RETRY_QUIET;
        usec_t wait = MAX(backoff_next(&backoff, loop_random(t->loop)), x.retry_after);
        if (!passing || loop_now(t->loop) + wait >= end) {
            if (x.answer.status == 0) {
                /* Whatever it was: time limits and interruptions are the caller's words. */
                *err = x.err;
                err->code = ERR_IO;
                return -ERR_IO;
            }
            *ret = x.answer;
            return 0;
        }
        r = talk_pause(t, wait, USEC_NEVER, err);
        if (r < 0) {
            return r;
        }
    }
}

/* ── following ─────────────────────────────────────────────────────────────────────────────── */

struct talk_stream {
    talk_on_line on_line;
    void *ctx;
    bool over;  /* a line ended it */
    bool ended; /* the stream did, and the handle is gone */
};

static void talk_on_event(void *ctx, const struct api_watch_event *event)
{
    struct talk_stream *s = ctx;
    if (event->kind == API_WATCH_LINE && !s->over) {
        s->over = s->on_line(s->ctx, event->line);
    } else if (event->kind == API_WATCH_END) {
        s->ended = true;
    }
}

int talk_watch(struct talk *t, struct str path, usec_t until, talk_on_line on_line, void *ctx,
               struct err *err)
{
    bool late = false;
    struct loop_timer timer;
    struct talk_stream s = { .on_line = on_line, .ctx = ctx };
    struct api_watch *watch =
        api_watch(t->api, &(struct api_watch_spec){ .path = path, .silence_max = SILENCE_MAX },
                  talk_on_event, &s);
    loop_timer_init(&timer, t->loop, talk_on_timer, &late);
    if (until != USEC_NEVER) {
        loop_timer_set(&timer, until);
    }
    while (!s.over && !s.ended && !late && !talk_leaving(t)) {
        talk_turn(t, until);
    }
    loop_timer_done(&timer);
    if (!s.ended) {
        api_watch_stop(t->api, watch);
    }
    if (s.over || s.ended) {
        return 0;
    }
    return late ? err_set(err, ERR_TIMEOUT, "the time is over") : talk_left(err);
}
