#include "kube/client.h"

#include "base/percent.h"
#include "base/timestamp.h"
#include "format/json.h"

void client_init(struct client *c, struct loop *loop, struct api *api)
{
    *c = (struct client){ .loop = loop, .api = api };
    retry_gate_init(&c->gate);
    server_clock_init(&c->clock, loop);
}

bool client_open(const struct client *c)
{
    return retry_gate_open(&c->gate, loop_now(c->loop));
}

usec_t client_open_at(const struct client *c)
{
    return c->gate.until;
}

bool client_pause(const struct client *c, struct client_pause *ret)
{
    usec_t now = loop_now(c->loop);
    *ret = (struct client_pause){ 0 };
    if (client_open(c)) {
        return false;
    }
    *ret = (struct client_pause){
        .since = server_clock_wall(&c->clock) - (now - c->gate.since),
        .until = server_clock_wall(&c->clock) + (c->gate.until - now),
        .status = c->gate.status,
        .asked = c->gate.asked,
    };
    return true;
}

struct str client_pause_text(const struct client *c, struct str server, struct arena *out)
{
    struct client_pause pause;
    char since[TIMESTAMP_TEXT_MAX];
    char until[TIMESTAMP_TEXT_MAX];
    if (!client_pause(c, &pause)) {
        return STR_NONE;
    }
    struct str why =
        pause.status == 0 ? STR("did not answer") : arena_printf(out, "answered %d", pause.status);
    if (pause.asked > 0) {
        why = arena_printf(out, STR_FMT " with Retry-After (%lld s are waited)", STR_ARG(why),
                           (long long)(pause.asked / SECONDS(1)));
    }
    return arena_printf(out,
                        "no requests to the API server since " STR_FMT " and until " STR_FMT
                        ": %s" STR_FMT " " STR_FMT,
                        STR_ARG(timestamp_print_seconds(pause.since, since)),
                        STR_ARG(timestamp_print_seconds(pause.until, until)),
                        server.n > 0 ? "" : "it", STR_ARG(server), STR_ARG(why));
}

void client_note_as(struct client *c, enum api_verb verb, const struct api_reply *reply,
                    enum retry_verdict verdict)
{
    if (c->on_reply != NULL) {
        c->on_reply(c->ctx, verb, reply->status);
    }
    server_clock_note(&c->clock, reply->date, reply->took);
    retry_gate_note(&c->gate, verdict, reply, loop_now(c->loop), loop_random(c->loop));
}

enum retry_verdict client_note(struct client *c, enum api_verb verb, const struct api_reply *reply)
{
    enum retry_verdict verdict = retry_judge(reply);
    client_note_as(c, verb, reply, verdict);
    return verdict;
}

enum retry_verdict client_note_watch(struct client *c, const struct api_watch_event *event,
                                     bool opened)
{
    const struct api_reply reply = {
        .status = event->kind == API_WATCH_OPEN ? 200
                  : event->err != NULL          ? 0
                                                : event->status,
        .body = event->kind == API_WATCH_END ? event->line : STR_NONE,
        .retry_after = event->retry_after,
        .err = event->err,
    };
    /* A stream that breaks has been counted when it opened, and is no reason to quiet the others:
     * their own connections may be well. */
    return opened ? retry_judge(&reply) : client_note(c, API_GET, &reply);
}

/* Enough of a Status message to act on; a body may be a whole HTML page. */
#define EXPLAIN_MAX 300

int client_take_traffic(struct client *c, size_t bytes, struct err *err)
{
    usec_t now = loop_now(c->loop);
    if (c->traffic == NULL) {
        return 0;
    }
    if (ratelimit_ready_at(c->traffic, now) > now) {
        return err_set(err, ERR_LIMIT, "the server sends more than %u KiB and then %u KiB a second",
                       c->traffic->burst, c->traffic->rate);
    }
    size_t units = bytes / 1024 + 1;
    ratelimit_take_many(c->traffic, (uint32_t)MIN(units, (size_t)UINT32_MAX), now);
    return 0;
}

void client_explain(int status, struct str body, const struct err *cause, struct err *ret)
{
    if (cause != NULL) {
        *ret = *cause;
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *root = NULL;
    struct str message = body;
    if (json_parse(body, JSON_GO, &tmp, &root, &ignored) == 0) {
        struct str text = jval_str(jval_get(root, STR("message")));
        message = text.n > 0 ? text : body;
    }
    enum err_code code = status == 404   ? ERR_NOTFOUND
                         : status == 409 ? ERR_CONFLICT
                         : status == 410 ? ERR_GONE
                         : status == 429 ? ERR_BUSY
                         : status == 401 || status == 403
                             ? ERR_DENIED
                             : (status >= 500 ? ERR_BUSY : ERR_INVALID);
    message = str_sub(str_trim(message), 0, EXPLAIN_MAX);
    (void)err_set(ret, code, "the server answered %d%s" STR_FMT, status, message.n > 0 ? ": " : "",
                  STR_ARG(message));
}

void client_add_segment(struct buf *path, struct str name)
{
    percent_add_segment(path, name);
}
