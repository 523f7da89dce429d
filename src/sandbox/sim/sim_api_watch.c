/* sim_api_watch: the watches of sim_api.h. Lines travel in order, and may be cut, stall or break.
 */
#include "sandbox/sim/sim_api_internal.h"

/* The server's side of TCP sends again after a second, then ever more slowly. */
#define SIM_RESEND_MIN SECONDS(1)
#define SIM_RESEND_MAX MINUTES(1)
#define SIM_CUT_LINES 30u /* a cut by lines comes within as many, so often in the initial list */

/* Something on its way to the client. */
struct sim_api_line {
    struct list link;
    usec_t at; /* in the view's time */
    enum api_watch_kind kind;
    int status;
    struct str text;
    usec_t retry_after;
    struct sim_failure failure;
    struct arena memory; /* of `text` */
};

struct api_watch {
    struct list link; /* in the client's watches */
    struct sim_api *sim;
    struct arena memory; /* of `path` and `accept` */
    struct str path;
    struct str accept;
    usec_t silence_max;
    api_on_event on_event;
    void *ctx;
    struct apiserver_watch *stream; /* NULL before it is open and when it is over */
    struct loop_timer transit;      /* on the net: the request arrives, later: the cut comes */
    struct loop_timer resend;       /* on the net: lines held back by a partition are sent again */
    struct loop_timer delivered;    /* on the view: the first of `lines` arrives */
    struct loop_timer silence;      /* on the view */
    usec_t resend_wait;
    usec_t heard;      /* the last byte, in the view's time */
    usec_t tail_at;    /* nothing overtakes the line before it */
    struct list lines; /* of struct sim_api_line */
    uint32_t lines_left;
    bool cut_silent; /* the client notices the cut only by silence */
    bool ended;      /* the end is among `lines`, or nothing will ever come */
    bool delivering;
    bool stopped; /* by the client, from inside its callback */
};

struct api_watch *sim_api_watch_from(struct list *link)
{
    return CONTAINER_OF(link, struct api_watch, link);
}

static void sim_api_watch_close(struct api_watch *w)
{
    if (w->stream != NULL) {
        apiserver_watch_close(STEAL(w->stream));
    }
    loop_timer_stop(&w->transit);
    loop_timer_stop(&w->resend);
}

static void sim_api_line_free(struct sim_api_line *line)
{
    list_del(&line->link);
    arena_done(&line->memory);
    alloc_free(line);
}

/* Everything but the memory, which a callback under way still needs. */
static void sim_api_watch_detach(struct api_watch *w)
{
    sim_api_watch_close(w);
    loop_timer_done(&w->transit);
    loop_timer_done(&w->resend);
    loop_timer_done(&w->delivered);
    loop_timer_done(&w->silence);
    list_del(&w->link);
    LIST_EACH (&w->lines, item) {
        sim_api_line_free(CONTAINER_OF(item, struct sim_api_line, link));
    }
}

static void sim_api_watch_free(struct api_watch *w)
{
    sim_api_watch_detach(w);
    arena_done(&w->memory);
    alloc_free(w);
}

static void sim_api_watch_queue(struct api_watch *w, struct sim_api_line *line, usec_t after)
{
    line->at = MAX(w->tail_at, loop_now(w->sim->client.view) + after);
    w->tail_at = line->at;
    list_add(&w->lines, &line->link);
    if (!w->delivered.armed && !w->delivering) {
        loop_timer_set(&w->delivered, line->at);
    }
}

static void sim_api_watch_end(struct api_watch *w, struct sim_failure failure)
{
    struct sim_api_line *line = ALLOC_NEW(struct sim_api_line);
    line->kind = API_WATCH_END;
    line->failure = failure;
    line->status = failure.code == 0 ? 200 : 0;
    w->ended = true;
    sim_api_watch_close(w);
    sim_api_watch_queue(w, line, faults_latency(w->sim->client.faults));
}

void sim_api_watch_disconnect(struct api_watch *w)
{
    if (w->ended) {
        return;
    }
    if (w->cut_silent) {
        w->ended = true;
        sim_api_watch_close(w);
    } else {
        sim_api_watch_end(w, sim_connection_reset);
    }
}

static void sim_api_watch_on_cut(void *ctx)
{
    sim_api_watch_disconnect(ctx);
}

/* Half of a line, as a broken proxy would send it. */
static void sim_api_line_garble(struct sim_api_line *line, struct rng *rng)
{
    if (line->text.n > 1) {
        line->text.n = 1 + rng_below(rng, (uint32_t)line->text.n - 1);
    }
}

static bool sim_api_line_is_bookmark(const struct sim_api_line *line)
{
    return str_starts(line->text, STR("{\"type\":\"BOOKMARK\"")) &&
           !str_contains(line->text, STR("k8s.io/initial-events-end"));
}

/* One line has left the server. */
static void sim_api_watch_line_sent(struct api_watch *w, struct sim_api_line *line)
{
    struct faults *f = w->sim->client.faults;
    if (w->lines_left == 0) {
        sim_api_line_free(line);
        sim_api_watch_disconnect(w);
        return;
    }
    w->lines_left--;
    if (sim_api_line_is_bookmark(line) && faults_happens(f, f->bookmark_lost)) {
        sim_api_line_free(line);
        return;
    }
    usec_t after = faults_latency(f);
    if (faults_happens(f, f->watch_stall)) {
        after += rng_usec(&f->rng, 0, f->watch_stall_max);
    }
    bool garbled = faults_happens(f, f->watch_garbled);
    if (garbled) {
        sim_api_line_garble(line, &f->rng);
    }
    sim_api_watch_queue(w, line, after);
    if (garbled) {
        w->cut_silent = false;
        sim_api_watch_disconnect(w);
    }
}

static void sim_api_watch_read_lines(void *ctx)
{
    struct api_watch *w = ctx;
    if (w->sim->client.faults->partitioned && w->stream != NULL) {
        if (!w->resend.armed) {
            w->resend_wait = MIN(MAX(w->resend_wait * 2, SIM_RESEND_MIN), SIM_RESEND_MAX);
            loop_timer_set(&w->resend, loop_now(w->sim->client.net) + w->resend_wait);
        }
        return;
    }
    w->resend_wait = 0;
    while (w->stream != NULL) {
        bool ended = false;
        struct sim_api_line *line = ALLOC_NEW(struct sim_api_line);
        line->kind = API_WATCH_LINE;
        line->memory.first = 1024;
        if (apiserver_watch_next(w->stream, &line->memory, &line->text, &ended)) {
            sim_api_watch_line_sent(w, line);
            continue;
        }
        sim_api_line_free(line);
        if (ended) {
            bool broken = w->sim->client.faults->down;
            sim_api_watch_end(w, broken ? sim_connection_reset : (struct sim_failure){ 0 });
        }
        break;
    }
}

/* Draws when and how this stream will be cut, if it will. */
static void sim_api_watch_plan_cut(struct api_watch *w)
{
    struct faults *f = w->sim->client.faults;
    w->lines_left = UINT32_MAX;
    w->cut_silent = faults_happens(f, f->watch_dead);
    if (!w->cut_silent && !faults_happens(f, f->watch_cut)) {
        return;
    }
    if (rng_chance(&f->rng, 500)) {
        w->lines_left = rng_below(&f->rng, SIM_CUT_LINES);
    } else {
        loop_timer_init(&w->transit, w->sim->client.net, sim_api_watch_on_cut, w);
        loop_timer_set(&w->transit,
                       loop_now(w->sim->client.net) + rng_usec(&f->rng, 0, f->watch_life));
    }
}

/* The answer to the request: a stream that opens, or an error with a body. */
static void sim_api_watch_answered(struct api_watch *w, const struct apiserver_reply *reply)
{
    struct sim_api_line *line = ALLOC_NEW(struct sim_api_line);
    line->kind = reply->watch != NULL ? API_WATCH_OPEN : API_WATCH_END;
    line->status = reply->status;
    line->retry_after = reply->retry_after;
    w->stream = reply->watch;
    w->ended = reply->watch == NULL;
    if (w->ended) {
        line->text = arena_str(&line->memory, reply->body);
    }
    sim_api_watch_queue(w, line, faults_latency(w->sim->client.faults) + reply->delay);
    if (!w->ended) {
        sim_api_watch_plan_cut(w);
        apiserver_watch_notify(w->stream, sim_api_watch_read_lines, w);
        sim_api_watch_read_lines(w);
    }
}

static void sim_api_watch_arrives(void *ctx)
{
    struct api_watch *w = ctx;
    struct sim_outcome outcome;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct apiserver_reply reply = { 0 };
    sim_outcome_draw(w->sim->client.faults, &outcome);
    switch (outcome.action) {
    case SIM_ACTION_SERVE:
        apiserver_handle(w->sim->server,
                         &(struct apiserver_request){
                             .method = STR("GET"),
                             .path = w->path,
                             .accept = w->accept,
                             .authorization = w->sim->authorization,
                             .user_agent = w->sim->agent,
                         },
                         &tmp, &reply);
        sim_api_watch_answered(w, &reply);
        break;
    case SIM_ACTION_REPLY:
        sim_api_watch_answered(w, &outcome.answer);
        break;
    case SIM_ACTION_FAIL:
        sim_api_watch_end(w, outcome.failure);
        break;
    case SIM_ACTION_DROP:
        w->ended = true;
        break;
    }
}

static void sim_api_watch_emit(struct api_watch *w, struct sim_api_line *line)
{
    struct err err;
    struct api_watch_event event = {
        .kind = line->kind,
        .status = line->status,
        .line = line->text,
        .retry_after = line->retry_after,
    };
    if (line->failure.code != 0) {
        err = sim_failure_err(line->failure);
        event.err = &err;
    }
    w->on_event(w->ctx, &event);
}

/* The handle ends with this event; the callback may free the client. */
static void sim_api_watch_emit_end(struct api_watch *w, struct sim_api_line *line)
{
    sim_api_watch_detach(w);
    sim_api_watch_emit(w, line);
    sim_api_line_free(line);
    arena_done(&w->memory);
    alloc_free(w);
}

static void sim_api_watch_deliver(void *ctx)
{
    struct api_watch *w = ctx;
    usec_t now = loop_now(w->sim->client.view);
    w->heard = now;
    w->delivering = true;
    while (!list_empty(&w->lines)) {
        struct sim_api_line *line = CONTAINER_OF(w->lines.next, struct sim_api_line, link);
        if (line->at > now) {
            loop_timer_set(&w->delivered, line->at);
            break;
        }
        list_del(&line->link);
        if (line->kind == API_WATCH_END) {
            sim_api_watch_emit_end(w, line);
            return;
        }
        sim_api_watch_emit(w, line);
        sim_api_line_free(line);
        if (w->stopped) {
            arena_done(&w->memory);
            alloc_free(w);
            return;
        }
    }
    w->delivering = false;
}

static void sim_api_watch_on_silence(void *ctx)
{
    struct api_watch *w = ctx;
    usec_t now = loop_now(w->sim->client.view);
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
    struct sim_api_line *line = ALLOC_NEW(struct sim_api_line);
    line->kind = API_WATCH_END;
    line->failure = (struct sim_failure){ ERR_TIMEOUT, "the server has fallen silent" };
    sim_api_watch_emit_end(w, line);
}

struct api_watch *sim_api_watch(struct api *api, const struct api_watch_spec *spec,
                                api_on_event on_event, void *ctx)
{
    struct sim_api *d = sim_api_of(api);
    struct api_watch *w = ALLOC_NEW(struct api_watch);
    w->sim = d;
    w->memory.first = 512;
    w->path = arena_str(&w->memory, spec->path);
    w->accept = arena_str(&w->memory, spec->accept);
    w->silence_max = spec->silence_max;
    w->on_event = on_event;
    w->ctx = ctx;
    w->heard = loop_now(d->client.view);
    list_init(&w->lines);
    loop_timer_init(&w->transit, d->client.net, sim_api_watch_arrives, w);
    loop_timer_init(&w->resend, d->client.net, sim_api_watch_read_lines, w);
    loop_timer_init(&w->delivered, d->client.view, sim_api_watch_deliver, w);
    loop_timer_init(&w->silence, d->client.view, sim_api_watch_on_silence, w);
    loop_timer_set(&w->transit, loop_now(d->client.net) + faults_latency(d->client.faults));
    loop_timer_set(&w->silence, w->heard + (w->silence_max != 0 ? w->silence_max : API_TIMEOUT));
    list_add(&d->watches, &w->link);
    sim_api_count_request(d, spec->path, SIM_WATCH);
    return w;
}

void sim_api_watch_stop(struct api *api UNUSED, struct api_watch *w)
{
    if (w->delivering) {
        w->stopped = true;
        sim_api_watch_detach(w);
    } else {
        sim_api_watch_free(w);
    }
}
