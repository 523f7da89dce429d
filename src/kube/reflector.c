#include "kube/reflector.h"

#include "base/limits.h"
#include "format/json_items.h"
#include "kube/store.h"

#define BACKOFF_BASE MSECONDS(200)
#define BACKOFF_MAX SECONDS(30)
#define TIMEOUT_LOW 290u /* client-go: five to ten minutes, so that servers shed old watches */
#define TIMEOUT_SPAN 290u
#define LIVED_WELL SECONDS(5)         /* a stream that ends sooner is answered by a wait */
#define SHORT_ENDS_MAX 2u             /* then the list is asked for in pages */
#define RESUMES_MAX 5u                /* refusals to resume before a new list; 410 needs only one */
#define STATUS_MAX 999                /* an ERROR event's code beyond it is no HTTP status */
#define LINE_KEPT ((size_t)64 * 1024) /* larger working memory is given back after the line */

static void reflector_list(struct reflector *r);
static void reflector_open(struct reflector *r, enum reflector_state state);
static void reflector_page(struct reflector *r);
static void reflector_on_timer(void *ctx);

void reflector_init(struct reflector *r, struct client *client,
                    const struct reflector_config *config)
{
    *r = (struct reflector){
        .client = client,
        .config = *config,
        .backoff = { .base = BACKOFF_BASE, .max = BACKOFF_MAX },
    };
    loop_timer_init(&r->timer, client->loop, reflector_on_timer, r);
}

void reflector_done(struct reflector *r)
{
    if (r->client == NULL) {
        return;
    }
    loop_timer_done(&r->timer);
    if (r->watch != NULL) {
        api_watch_stop(r->client->api, STEAL(r->watch));
    }
    if (r->call != NULL) {
        api_cancel(r->client->api, STEAL(r->call));
    }
    arena_done(&r->line);
    buf_done(&r->path);
    buf_done(&r->token);
    r->client = NULL;
}

void reflector_start(struct reflector *r)
{
    ASSERT(r->state == REFLECTOR_IDLE);
    reflector_list(r);
}

/* An open stream is not stopped here, where its own line may be at hand, but by the timer. */
static void reflector_wait(struct reflector *r, enum reflector_state after, usec_t wait)
{
    usec_t now = loop_now(r->client->loop);
    r->state = REFLECTOR_WAIT;
    r->after = after;
    r->wait_until = MAX(now + wait, client_open_at(r->client));
    loop_timer_set(&r->timer, r->watch != NULL ? now : r->wait_until);
}

static void reflector_back_off(struct reflector *r, enum reflector_state after)
{
    reflector_wait(r, after, backoff_next(&r->backoff, loop_random(r->client->loop)));
}

/* A failure that is the server's, with the status it gave, or the network's, with 0. */
static void reflector_fail(struct reflector *r, enum reflector_state after, int status,
                           const struct err *err)
{
    r->failing = true;
    r->status = status;
    r->config.on_error(r->config.ctx, err, /* bad= */ false);
    reflector_back_off(r, after);
}

/* What came could not be read. Only a new list can tell what was missed. */
static void reflector_reject(struct reflector *r, const struct err *err)
{
    r->bad++;
    r->failing = true;
    r->status = 0;
    r->config.on_error(r->config.ctx, err, /* bad= */ true);
    reflector_back_off(r, REFLECTOR_STREAM);
}

static void reflector_recover(struct reflector *r)
{
    bool failing = r->failing;
    r->failing = false;
    if (failing && r->config.on_well != NULL) {
        r->config.on_well(r->config.ctx);
    }
}

static void reflector_on_timer(void *ctx)
{
    struct reflector *r = ctx;
    usec_t now = loop_now(r->client->loop);
    if (r->state == REFLECTOR_STREAM) {
        if (now < r->line_at + REFLECTOR_STREAM_PATIENCE) {
            loop_timer_set(&r->timer, r->line_at + REFLECTOR_STREAM_PATIENCE);
            return;
        }
        struct err err = { 0 };
        (void)err_set(&err, ERR_TIMEOUT, "the streamed list of " STR_FMT " does not end",
                      STR_ARG(r->config.path));
        r->short_ends++;
        reflector_fail(r, REFLECTOR_STREAM, 0, &err);
        return;
    }
    ASSERT(r->state == REFLECTOR_WAIT);
    if (r->watch != NULL) {
        api_watch_stop(r->client->api, STEAL(r->watch));
    }
    r->wait_until = MAX(r->wait_until, client_open_at(r->client));
    if (now < r->wait_until) {
        loop_timer_set(&r->timer, r->wait_until);
        return;
    }
    if (r->after == REFLECTOR_WATCH) {
        reflector_open(r, REFLECTOR_WATCH);
    } else {
        reflector_list(r);
    }
}

static void reflector_list(struct reflector *r)
{
    r->lists++;
    r->config.on_list(r->config.ctx);
    if (r->short_ends >= SHORT_ENDS_MAX) {
        r->refused = true;
    }
    if (r->refused) {
        buf_reset(&r->token);
        reflector_page(r);
    } else {
        reflector_open(r, REFLECTOR_STREAM);
    }
}

static void reflector_synced(struct reflector *r, uint64_t version)
{
    r->version = version;
    reflector_recover(r);
    r->short_ends = 0;
    r->resumes = 0;
    backoff_reset(&r->backoff);
    if (!r->config.on_synced(r->config.ctx, version)) {
        reflector_back_off(r, REFLECTOR_STREAM);
        return;
    }
    r->synced = true;
    if (r->state == REFLECTOR_PAGES) {
        reflector_open(r, REFLECTOR_WATCH);
    } else {
        /* The stream that brought the list goes on with the changes. */
        r->state = REFLECTOR_WATCH;
        loop_timer_stop(&r->timer);
    }
}

/* ── streams ───────────────────────────────────────────────────────────────────────────────── */

static void reflector_on_status(struct reflector *r, const struct jval *status)
{
    int64_t code = 0;
    (void)jval_i64(jval_get(status, STR("code")), &code); /* absent: 0, some error */
    code = code > 0 && code <= STATUS_MAX ? code : 0;
    struct str message = str_sub(jval_str(jval_get(status, STR("message"))), 0, 300);
    struct err err = { 0 };
    (void)err_set(&err, code == 410 ? ERR_GONE : ERR_BUSY,
                  "watch of " STR_FMT ": the server says %d: " STR_FMT, STR_ARG(r->config.path),
                  (int)code, STR_ARG(message));
    bool gone = code == 410 && !mutated(r->client->mutations, MUTATION_IGNORE_410);
    reflector_fail(r, gone || r->state == REFLECTOR_STREAM ? REFLECTOR_STREAM : REFLECTOR_WATCH,
                   (int)code, &err);
}

static void reflector_on_bookmark(struct reflector *r, const struct jval *object)
{
    uint64_t version = store_version(object);
    if (version == 0) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_PROTO, "watch of " STR_FMT ": a bookmark without resourceVersion",
                      STR_ARG(r->config.path));
        reflector_reject(r, &err);
        return;
    }
    if (r->state == REFLECTOR_WATCH) {
        r->version = version;
        return;
    }
    const struct jval *annotations = jval_at(object, "metadata.annotations");
    struct str end = jval_str(jval_get(annotations, STR("k8s.io/initial-events-end")));
    if (str_eq(end, STR("true"))) {
        reflector_synced(r, version);
    }
}

static void reflector_on_change(struct reflector *r, const struct jval *object, bool deleted)
{
    struct err err = { 0 };
    if (r->config.on_object(r->config.ctx, object, deleted, &err) < 0) {
        (void)err_wrap(&err, "watch of " STR_FMT, STR_ARG(r->config.path));
        reflector_reject(r, &err);
        return;
    }
    /* The initial objects come in no order of versions; only the end mark's counts then. */
    if (r->state == REFLECTOR_WATCH) {
        r->version = store_version(object);
    }
}

static void reflector_on_line(struct reflector *r, struct str line)
{
    struct err err = { 0 };
    const struct jval *event = NULL;
    if (client_take_traffic(r->client, line.n, &err) < 0) {
        (void)err_wrap(&err, "watch of " STR_FMT, STR_ARG(r->config.path));
        reflector_reject(r, &err);
        return;
    }
    if (line.n > OBJECT_BYTES_MAX) {
        (void)err_set(&err, ERR_LIMIT, "watch of " STR_FMT ": a line of %zu bytes, at most %zu",
                      STR_ARG(r->config.path), line.n, OBJECT_BYTES_MAX);
        reflector_reject(r, &err);
        return;
    }
    if (json_parse(line, 0, &r->line, &event, &err) < 0) {
        (void)err_wrap(&err, "watch of " STR_FMT ": malformed line", STR_ARG(r->config.path));
        reflector_reject(r, &err);
        return;
    }
    reflector_recover(r);
    struct str type = jval_str(jval_get(event, STR("type")));
    const struct jval *object = jval_get(event, STR("object"));
    if (str_eq(type, STR("ADDED")) || str_eq(type, STR("MODIFIED"))) {
        reflector_on_change(r, object, /* deleted= */ false);
    } else if (str_eq(type, STR("DELETED"))) {
        reflector_on_change(r, object, /* deleted= */ true);
    } else if (str_eq(type, STR("BOOKMARK"))) {
        reflector_on_bookmark(r, object);
    } else if (str_eq(type, STR("ERROR"))) {
        reflector_on_status(r, object);
    } else {
        (void)err_set(&err, ERR_PROTO, "watch of " STR_FMT ": an event of type '" STR_FMT "'",
                      STR_ARG(r->config.path), STR_ARG(str_sub(type, 0, 40)));
        reflector_reject(r, &err);
    }
}

/* The stream is over; `r->watch` is gone. */
static void reflector_on_end(struct reflector *r, const struct api_watch_event *event)
{
    enum retry_verdict verdict = client_note_watch(r->client, event, r->opened);
    bool in_order = r->opened && event->err == NULL;
    usec_t lived = loop_now(r->client->loop) - r->opened_at;
    if (r->opened && lived >= LIVED_WELL) {
        backoff_reset(&r->backoff); /* cuts that are far apart are not failures in a row */
    }
    if (mutated(r->client->mutations, MUTATION_NO_RESYNC_AFTER_CUT) && event->err != NULL &&
        r->opened) {
        r->state = REFLECTOR_IDLE;
        loop_timer_stop(&r->timer);
        return;
    }
    bool refused = !r->opened && (event->status == 400 || event->status == 422);
    if (r->state == REFLECTOR_STREAM && refused) {
        r->refused = true;
        reflector_wait(r, REFLECTOR_STREAM, 0);
        return;
    }
    if (r->state == REFLECTOR_WATCH && in_order && lived >= LIVED_WELL) {
        reflector_wait(r, REFLECTOR_WATCH, 0);
        return;
    }
    struct err err = { 0 };
    if (in_order) {
        (void)err_set(&err, ERR_IO, "the stream ended after %lld ms", (long long)(lived / 1000));
        r->short_ends += r->state == REFLECTOR_STREAM ? 1 : 0;
    } else {
        client_explain(event->status, event->line, event->err, &err);
    }
    (void)err_wrap(&err, "watch of " STR_FMT, STR_ARG(r->config.path));
    bool gone = verdict == RETRY_RELIST && !mutated(r->client->mutations, MUTATION_IGNORE_410);
    if (r->state == REFLECTOR_WATCH && !r->opened && event->err == NULL &&
        !mutated(r->client->mutations, MUTATION_IGNORE_410)) {
        r->resumes++;
        gone = gone || r->resumes >= RESUMES_MAX;
    }
    int status = r->opened || event->err != NULL ? 0 : event->status; /* an open one broke off */
    reflector_fail(r, gone || r->state == REFLECTOR_STREAM ? REFLECTOR_STREAM : REFLECTOR_WATCH,
                   status, &err);
}

static void reflector_on_event(void *ctx, const struct api_watch_event *event)
{
    struct reflector *r = ctx;
    if (event->kind == API_WATCH_END) {
        r->watch = NULL;
    }
    if (r->state != REFLECTOR_STREAM && r->state != REFLECTOR_WATCH) {
        return; /* given up already; the timer stops the stream */
    }
    r->line_at = loop_now(r->client->loop);
    switch (event->kind) {
    case API_WATCH_OPEN:
        (void)client_note_watch(r->client, event,
                                /* opened= */ false); /* it is open: all is well */
        r->opened = true;
        r->resumes = 0;
        if (r->state == REFLECTOR_WATCH) { /* a list must also be complete */
            reflector_recover(r);
        }
        r->opened_at = r->line_at;
        break;
    case API_WATCH_LINE:
        reflector_on_line(r, event->line);
        if (r->line.total > LINE_KEPT) {
            arena_done(&r->line);
        } else {
            arena_reset(&r->line);
        }
        break;
    case API_WATCH_END:
        reflector_on_end(r, event);
        break;
    }
}

static void reflector_open(struct reflector *r, enum reflector_state state)
{
    ASSERT(r->watch == NULL);
    buf_reset(&r->path);
    buf_printf(&r->path, STR_FMT "?allowWatchBookmarks=true", STR_ARG(r->config.path));
    if (state == REFLECTOR_STREAM) {
        buf_add(&r->path, STR("&resourceVersionMatch=NotOlderThan&sendInitialEvents=true"));
    } else {
        buf_printf(&r->path, "&resourceVersion=%llu", (unsigned long long)r->version);
    }
    uint64_t seconds = TIMEOUT_LOW + loop_random(r->client->loop) % (TIMEOUT_SPAN + 1);
    buf_printf(&r->path, "&timeoutSeconds=%llu&watch=1" STR_FMT, (unsigned long long)seconds,
               STR_ARG(r->config.query));
    r->state = state;
    r->opened = false;
    r->line_at = loop_now(r->client->loop);
    r->opened_at = r->line_at;
    if (state == REFLECTOR_STREAM) {
        loop_timer_set(&r->timer, r->line_at + REFLECTOR_STREAM_PATIENCE);
    } else {
        loop_timer_stop(&r->timer);
    }
    const struct reflector_config *config = &r->config;
    const struct api_watch_spec spec = {
        .path = buf_str(&r->path),
        .accept = config->metadata_only ? API_METADATA : STR_NONE,
        .silence_max = config->silence_max > 0 ? config->silence_max : REFLECTOR_SILENCE_MAX,
    };
    r->watch = api_watch(r->client->api, &spec, reflector_on_event, r);
}

/* ── pages ─────────────────────────────────────────────────────────────────────────────────── */

/* All items of one page, and where the next begins. */
static int reflector_read_page(struct reflector *r, struct str body, uint64_t *ret_version,
                               struct err *err)
{
    struct json_items split;
    struct str item;
    int more;
    json_items_init(&split, body);
    while ((more = json_items_next(&split, &item, err)) > 0) {
        const struct jval *object = NULL;
        int paid = client_take_traffic(r->client, item.n, err);
        if (paid < 0) {
            return paid;
        }
        arena_reset(&r->line);
        if (item.n > OBJECT_BYTES_MAX) {
            return err_set(err, ERR_LIMIT, "an item of %zu bytes, at most %zu", item.n,
                           OBJECT_BYTES_MAX);
        }
        int result = json_parse(item, 0, &r->line, &object, err);
        if (result == 0) {
            result = r->config.on_object(r->config.ctx, object, /* deleted= */ false, err);
        }
        if (result < 0) {
            return result;
        }
    }
    if (more < 0) {
        return more;
    }
    const struct jval *metadata = NULL;
    arena_reset(&r->line);
    int result = json_parse(split.metadata, 0, &r->line, &metadata, err);
    if (result < 0) {
        return err_wrap(err, "the list's metadata");
    }
    struct str text = jval_str(jval_get(metadata, STR("resourceVersion")));
    if (!str_to_u64(text, ret_version)) {
        return err_set(err, ERR_PROTO, "the list's resourceVersion '" STR_FMT "', want a number",
                       STR_ARG(str_sub(text, 0, 64)));
    }
    buf_reset(&r->token);
    client_add_segment(&r->token, jval_str(jval_get(metadata, STR("continue"))));
    return 0;
}

static void reflector_on_page(void *ctx, const struct api_reply *reply)
{
    struct reflector *r = ctx;
    ASSERT(r->state == REFLECTOR_PAGES);
    r->call = NULL;
    struct err err = { 0 };
    if (client_note(r->client, API_GET, reply) != RETRY_DONE) {
        /* Also a 410 for the token: the list took longer than the server remembers. */
        client_explain(reply->status, reply->body, reply->err, &err);
        (void)err_wrap(&err, "list " STR_FMT, STR_ARG(r->config.path));
        reflector_fail(r, REFLECTOR_PAGES, reply->status, &err);
        return;
    }
    uint64_t version = 0;
    int result = client_take_traffic(r->client, 0, &err); /* its items are counted one by one */
    result = result < 0 ? result : reflector_read_page(r, reply->body, &version, &err);
    arena_done(&r->line);
    if (result < 0) {
        (void)err_wrap(&err, "list " STR_FMT, STR_ARG(r->config.path));
        reflector_reject(r, &err);
    } else if (r->token.n > 0) {
        reflector_page(r);
    } else {
        reflector_synced(r, version);
    }
}

static void reflector_page(struct reflector *r)
{
    ASSERT(r->call == NULL);
    r->state = REFLECTOR_PAGES;
    buf_reset(&r->path);
    uint32_t limit = r->config.page > 0 ? r->config.page : REFLECTOR_PAGE;
    buf_printf(&r->path, STR_FMT "?limit=%u" STR_FMT, STR_ARG(r->config.path), limit,
               STR_ARG(r->config.query));
    if (r->token.n > 0) {
        buf_printf(&r->path, "&continue=" STR_FMT, STR_ARG(buf_str(&r->token)));
    }
    const struct api_request request = {
        .verb = API_GET,
        .path = buf_str(&r->path),
        .accept = r->config.metadata_only ? API_METADATA_LIST : STR_NONE,
    };
    r->call = api_send(r->client->api, &request, reflector_on_page, r);
}
