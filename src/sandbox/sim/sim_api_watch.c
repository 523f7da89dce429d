#include "sandbox/sim/sim_api_internal.h"

/* The server's side of TCP sends again after a second, then ever more slowly. */
#define DOOR_RESEND_MIN SECONDS(1)
#define DOOR_RESEND_MAX MINUTES(1)
#define DOOR_CUT_LINES 30u /* a cut by lines comes within as many, so often in the initial list */

/* Something on its way to the client. */
struct door_line {
    struct list link;
    usec_t at; /* in the view's time */
    enum api_watch_kind kind;
    int status;
    struct str text;
    usec_t retry_after;
    struct door_failure failure;
    struct arena memory; /* of `text` */
};

struct api_watch {
    struct list link; /* in the door's watches */
    struct door *door;
    struct arena memory; /* of `path` and `accept` */
    struct str path;
    struct str accept;
    usec_t silence_max;
    api_on_event on_event;
    void *ctx;
    struct apiserver_watch *stream; /* NULL before it is open and when it is over */
    struct loop_timer transit;      /* on the net: the request arrives, later: the cut comes */
    struct loop_timer resend;    /* on the net: what a parted network holds back is tried again */
    struct loop_timer delivered; /* on the view: the first of `lines` arrives */
    struct loop_timer silence;   /* on the view */
    usec_t resend_wait;
    usec_t heard;      /* the last byte, in the view's time */
    usec_t tail_at;    /* nothing overtakes the line before it */
    struct list lines; /* of struct door_line */
    uint32_t lines_left;
    bool cut_silent; /* the cut is one that only silence tells */
    bool ended;      /* the end is among `lines`, or nothing will ever come */
    bool delivering;
    bool stopped; /* by the client, from inside its callback */
};

struct api_watch *door_watch_from(struct list *link)
{
    return CONTAINER_OF(link, struct api_watch, link);
}

static void door_watch_close(struct api_watch *w)
{
    if (w->stream != NULL) {
        apiserver_watch_close(STEAL(w->stream));
    }
    loop_timer_stop(&w->transit);
    loop_timer_stop(&w->resend);
}

static void door_line_free(struct door_line *line)
{
    list_del(&line->link);
    arena_done(&line->memory);
    alloc_free(line);
}

/* Everything but the memory, which a callback under way still needs. */
static void door_watch_detach(struct api_watch *w)
{
    door_watch_close(w);
    loop_timer_done(&w->transit);
    loop_timer_done(&w->resend);
    loop_timer_done(&w->delivered);
    loop_timer_done(&w->silence);
    list_del(&w->link);
    LIST_EACH (&w->lines, item) {
        door_line_free(CONTAINER_OF(item, struct door_line, link));
    }
}

static void door_watch_free(struct api_watch *w)
{
    door_watch_detach(w);
    arena_done(&w->memory);
    alloc_free(w);
}

static void door_watch_queue(struct api_watch *w, struct door_line *line, usec_t after)
{
    line->at = MAX(w->tail_at, loop_now(w->door->view) + after);
    w->tail_at = line->at;
    list_add(&w->lines, &line->link);
    if (!w->delivered.armed && !w->delivering) {
        loop_timer_set(&w->delivered, line->at);
    }
}

static void door_watch_end(struct api_watch *w, struct door_failure failure)
{
    struct door_line *line = ALLOC_NEW(struct door_line);
    line->kind = API_WATCH_END;
    line->failure = failure;
    line->status = failure.code == 0 ? 200 : 0;
    w->ended = true;
    door_watch_close(w);
    door_watch_queue(w, line, faults_latency(w->door->faults));
}

void door_watch_cut(struct api_watch *w)
{
    if (w->ended) {
        return;
    }
    if (w->cut_silent) {
        w->ended = true;
        door_watch_close(w);
    } else {
        door_watch_end(w, (struct door_failure){ ERR_IO, "connection reset by peer" });
    }
}

static void door_watch_cut_due(void *ctx)
{
    door_watch_cut(ctx);
}

/* Half of a line, as a broken proxy would send it. */
static void door_line_garble(struct door_line *line, struct rng *rng)
{
    if (line->text.n > 1) {
        line->text.n = 1 + rng_below(rng, (uint32_t)line->text.n - 1);
    }
}

static bool door_line_is_bookmark(const struct door_line *line)
{
    return str_starts(line->text, STR("{\"type\":\"BOOKMARK\"")) &&
           !str_contains(line->text, STR("k8s.io/initial-events-end"));
}

/* One line has left the server. */
static void door_watch_carry(struct api_watch *w, struct door_line *line)
{
    struct faults *f = w->door->faults;
    if (w->lines_left == 0) {
        door_line_free(line);
        door_watch_cut(w);
        return;
    }
    w->lines_left--;
    if (door_line_is_bookmark(line) && faults_strike(f, f->bookmark_lost)) {
        door_line_free(line);
        return;
    }
    usec_t after = faults_latency(f);
    if (faults_strike(f, f->watch_stall)) {
        after += rng_usec(&f->rng, 0, f->watch_stall_max);
    }
    bool garbled = faults_strike(f, f->watch_garbled);
    if (garbled) {
        door_line_garble(line, &f->rng);
    }
    door_watch_queue(w, line, after);
    if (garbled) {
        w->cut_silent = false;
        door_watch_cut(w);
    }
}

static void door_watch_pull(void *ctx)
{
    struct api_watch *w = ctx;
    if (w->door->faults->parted && w->stream != NULL) {
        if (!w->resend.armed) {
            w->resend_wait = MIN(MAX(w->resend_wait * 2, DOOR_RESEND_MIN), DOOR_RESEND_MAX);
            loop_timer_set(&w->resend, loop_now(w->door->net) + w->resend_wait);
        }
        return;
    }
    w->resend_wait = 0;
    while (w->stream != NULL) {
        bool ended = false;
        struct door_line *line = ALLOC_NEW(struct door_line);
        line->kind = API_WATCH_LINE;
        line->memory.first = 1024;
        if (apiserver_watch_next(w->stream, &line->memory, &line->text, &ended)) {
            door_watch_carry(w, line);
            continue;
        }
        door_line_free(line);
        if (ended) {
            bool broken = w->door->faults->down;
            door_watch_end(w, broken ? (struct door_failure){ ERR_IO, "connection reset by peer" }
                                     : (struct door_failure){ 0 });
        }
        break;
    }
}

/* Draws when and how this stream will be cut, if it will. */
static void door_watch_doom(struct api_watch *w)
{
    struct faults *f = w->door->faults;
    w->lines_left = UINT32_MAX;
    w->cut_silent = faults_strike(f, f->watch_dead);
    if (!w->cut_silent && !faults_strike(f, f->watch_cut)) {
        return;
    }
    if (rng_chance(&f->rng, 500)) {
        w->lines_left = rng_below(&f->rng, DOOR_CUT_LINES);
    } else {
        loop_timer_init(&w->transit, w->door->net, door_watch_cut_due, w);
        loop_timer_set(&w->transit, loop_now(w->door->net) + rng_usec(&f->rng, 0, f->watch_life));
    }
}

/* The answer to the request: a stream that opens, or an error with a body. */
static void door_watch_answered(struct api_watch *w, const struct apiserver_reply *reply)
{
    struct door_line *line = ALLOC_NEW(struct door_line);
    line->kind = reply->watch != NULL ? API_WATCH_OPEN : API_WATCH_END;
    line->status = reply->status;
    line->retry_after = reply->retry_after;
    w->stream = reply->watch;
    w->ended = reply->watch == NULL;
    if (w->ended) {
        line->text = arena_str(&line->memory, reply->body);
    }
    door_watch_queue(w, line, faults_latency(w->door->faults) + reply->delay);
    if (!w->ended) {
        door_watch_doom(w);
        apiserver_watch_notify(w->stream, door_watch_pull, w);
        door_watch_pull(w);
    }
}

static void door_watch_arrives(void *ctx)
{
    struct api_watch *w = ctx;
    struct door_verdict verdict;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct apiserver_reply reply = { 0 };
    door_judge(w->door->faults, &verdict);
    switch (verdict.fate) {
    case DOOR_SERVE:
        apiserver_handle(w->door->server,
                         &(struct apiserver_request){
                             .method = STR("GET"),
                             .path = w->path,
                             .accept = w->accept,
                             .authorization = w->door->authorization,
                             .user_agent = w->door->agent,
                         },
                         &tmp, &reply);
        door_watch_answered(w, &reply);
        break;
    case DOOR_ANSWER:
        door_watch_answered(w, &verdict.answer);
        break;
    case DOOR_FAIL:
        door_watch_end(w, verdict.failure);
        break;
    case DOOR_SILENCE:
        w->ended = true;
        break;
    }
}

static void door_watch_tell(struct api_watch *w, struct door_line *line)
{
    struct err err;
    struct api_watch_event event = {
        .kind = line->kind,
        .status = line->status,
        .line = line->text,
        .retry_after = line->retry_after,
    };
    if (line->failure.code != 0) {
        err = door_err(line->failure);
        event.err = &err;
    }
    w->on_event(w->ctx, &event);
}

/* The handle ends with this event; the callback may free the door. */
static void door_watch_last(struct api_watch *w, struct door_line *line)
{
    door_watch_detach(w);
    door_watch_tell(w, line);
    door_line_free(line);
    arena_done(&w->memory);
    alloc_free(w);
}

static void door_watch_deliver(void *ctx)
{
    struct api_watch *w = ctx;
    usec_t now = loop_now(w->door->view);
    w->heard = now;
    w->delivering = true;
    while (!list_empty(&w->lines)) {
        struct door_line *line = CONTAINER_OF(w->lines.next, struct door_line, link);
        if (line->at > now) {
            loop_timer_set(&w->delivered, line->at);
            break;
        }
        list_del(&line->link);
        if (line->kind == API_WATCH_END) {
            door_watch_last(w, line);
            return;
        }
        door_watch_tell(w, line);
        door_line_free(line);
        if (w->stopped) {
            arena_done(&w->memory);
            alloc_free(w);
            return;
        }
    }
    w->delivering = false;
}

static void door_watch_silence(void *ctx)
{
    struct api_watch *w = ctx;
    usec_t now = loop_now(w->door->view);
    /* Before anything was heard, a client that waits for ever on a stream still has its patience
     * with the connection. */
    usec_t wait = w->silence_max != 0 ? w->silence_max : API_TIMEOUT;
    if (w->heard + wait > now) {
        loop_timer_set(&w->silence, w->heard + wait);
        return;
    }
    if (w->silence_max == 0 && w->stream != NULL) {
        return; /* it is open: now it may be silent for ever */
    }
    struct door_line *line = ALLOC_NEW(struct door_line);
    line->kind = API_WATCH_END;
    line->failure = (struct door_failure){ ERR_TIMEOUT, "the server has fallen silent" };
    door_watch_last(w, line);
}

struct api_watch *door_watch(struct api *api, const struct api_watch_spec *spec,
                             api_on_event on_event, void *ctx)
{
    struct door *d = door_of(api);
    struct api_watch *w = ALLOC_NEW(struct api_watch);
    w->door = d;
    w->memory.first = 512;
    w->path = arena_str(&w->memory, spec->path);
    w->accept = arena_str(&w->memory, spec->accept);
    w->silence_max = spec->silence_max;
    w->on_event = on_event;
    w->ctx = ctx;
    w->heard = loop_now(d->view);
    list_init(&w->lines);
    loop_timer_init(&w->transit, d->net, door_watch_arrives, w);
    loop_timer_init(&w->resend, d->net, door_watch_pull, w);
    loop_timer_init(&w->delivered, d->view, door_watch_deliver, w);
    loop_timer_init(&w->silence, d->view, door_watch_silence, w);
    loop_timer_set(&w->transit, loop_now(d->net) + faults_latency(d->faults));
    loop_timer_set(&w->silence, w->heard + (w->silence_max != 0 ? w->silence_max : API_TIMEOUT));
    list_add(&d->watches, &w->link);
    door_count(d, spec->path, DOOR_WATCH);
    return w;
}

void door_watch_stop(struct api *api UNUSED, struct api_watch *w)
{
    if (w->delivering) {
        w->stopped = true;
        door_watch_detach(w);
    } else {
        door_watch_free(w);
    }
}
