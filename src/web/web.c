#include "web/web.h"

#include "base/heap.h"
#include "base/list.h"
#include "base/stamp.h"
#include "format/jwriter.h"
#include "web/assets.h"
#include "web/metrics.h"

#define WEB_JSON STR("application/json")
#define WEB_TEXT STR("text/plain; charset=utf-8")

struct web_stream {
    struct list link;
    struct web *web;
    struct serve_exchange *x; /* borrowed: until on_close or serve_end */
};

/* What was sent last of a node. */
struct web_seen {
    uint64_t hash;
    uint64_t round; /* in which it was met last */
};

struct web {
    struct loop *loop;
    const struct web_source *source;
    struct metrics *metrics;
    struct list streams;
    uint32_t stream_count;
    uint64_t scrapes;
    struct map seen;
    uint64_t round;
    uint64_t status_hash;
    usec_t spoken; /* when something was sent last */
    struct loop_timer timer;
};

static void web_refuse(struct serve_exchange *x, int status, struct str text)
{
    serve_reply(x, status, WEB_TEXT, text);
}

static void web_redirect(struct serve_exchange *x, int status, struct str to)
{
    serve_set_header(x, "Location", to);
    serve_reply(x, status, WEB_TEXT, STR_NONE);
}

/* ---- JSON of nodes ---- */

/* All labels, or with `only` those that it exports. */
static void web_labels(struct jwriter *w, const struct web_node *node,
                       const struct web_source *only)
{
    jw_obj(w);
    for (uint32_t i = 0; i < node->label_count; i++) {
        if (only != NULL &&
            (only->exports == NULL || !only->exports(only->ctx, node->labels[i].key))) {
            continue;
        }
        jw_key(w, node->labels[i].key);
        jw_str(w, node->labels[i].value);
    }
    jw_obj_end(w);
}

static void web_flag(struct jwriter *w, const char *key, bool truth)
{
    jw_key(w, str_from(key));
    jw_bool(w, truth);
}

static void web_node_json(struct jwriter *w, const struct web_node *node)
{
    jw_obj(w);
    jw_pair(w, "name", node->name);
    jw_pair(w, "state", node->state);
    if (node->error.n > 0) {
        jw_pair(w, "error", node->error);
    }
    web_flag(w, "ready", node->ready);
    web_flag(w, "cordoned", node->unschedulable);
    jw_key(w, STR("labels"));
    web_labels(w, node, NULL);
    jw_obj_end(w);
}

struct web_info_walk {
    struct jwriter w;
    usec_t wall;
    const struct web_source *source;
};

static void web_info_node(void *ctx, const struct web_node *node)
{
    struct web_info_walk *walk = ctx;
    struct jwriter *w = &walk->w;
    if (node->state.n == 0 && node->error.n == 0) {
        return; /* as the original: a node is listed once it has been evaluated */
    }
    struct str state = node->state.n > 0 ? node->state : STR("operational");
    char text[STAMP_TEXT_MAX];
    struct str updated;
    struct err err = { 0 };
    usec_t when = node->updated != 0 ? node->updated : walk->wall;
    if (stamp_print(stamp_from_usec(when), text, &updated, &err) < 0) {
        updated = STR("0001-01-01T00:00:00Z"); /* Go's zero time, for a clock beyond all years */
    }
    jw_obj(w);
    jw_pair(w, "node", node->name);
    jw_key(w, STR("profiles"));
    jw_arr(w);
    jw_obj(w);
    jw_key(w, STR("applied"));
    jw_obj(w);
    jw_pair(w, "next", state);
    jw_key(w, STR("transitions"));
    jw_arr(w);
    jw_arr_end(w);
    jw_pair(w, "error", node->error);
    jw_obj_end(w);
    jw_pair(w, "name", STR("default"));
    jw_pair(w, "state", state);
    jw_obj_end(w);
    jw_arr_end(w);
    jw_key(w, STR("labels"));
    web_labels(w, node, walk->source);
    jw_pair(w, "updated", updated);
    jw_obj_end(w);
}

void web_info(const struct web_source *source, usec_t wall, struct buf *out)
{
    struct web_info_walk walk = { .w = jwriter_on(out), .wall = wall, .source = source };
    jw_arr(&walk.w);
    source->each_node(source->ctx, web_info_node, &walk);
    jw_arr_end(&walk.w);
}

/* ---- server-sent events ---- */

static void web_status_json(struct web *web, struct jwriter *w)
{
    struct web_status s = { 0 };
    web->source->status(web->source->ctx, &s);
    jw_obj(w);
    jw_pair(w, "version", STR(DRYDOCK_VERSION));
    jw_pair(w, "title", s.title);
    jw_pair(w, "identity", s.identity);
    jw_pair(w, "leader", s.leader);
    web_flag(w, "leading", s.leading);
    web_flag(w, "ready", s.ready);
    jw_pair(w, "why", s.ready ? STR_NONE : s.why);
    jw_key(w, STR("writes"));
    jw_i64(w, (int64_t)s.writes);
    jw_obj_end(w);
}

static uint64_t web_hash(const struct buf *bytes)
{
    static const uint64_t key[2] = { 0, 0 }; /* compared with itself over time, by nobody else */
    return map_hash(key, buf_str(bytes));
}

struct web_walk {
    struct web *web;
    struct jwriter *w; /* an open array that takes what changed; NULL = only note */
    struct buf one;    /* one node's JSON, to compare */
    uint32_t changed;
    bool all; /* write all, changed or not */
};

static void web_walk_node(void *ctx, const struct web_node *node)
{
    struct web_walk *walk = ctx;
    struct web *web = walk->web;
    buf_reset(&walk->one);
    struct jwriter w = jwriter_on(&walk->one);
    web_node_json(&w, node);
    uint64_t hash = web_hash(&walk->one);
    struct web_seen *seen = map_find(&web->seen, node->name);
    if (seen == NULL) {
        seen = HEAP_NEW(struct web_seen);
        (void)map_put(&web->seen, node->name, seen); /* it was not there */
        seen->hash = ~hash;
    }
    seen->round = web->round;
    if (seen->hash != hash || walk->all) {
        seen->hash = hash;
        walk->changed++;
        jw_raw(walk->w, buf_str(&walk->one));
    }
}

/* Nodes that the last walk did not meet are gone. */
static uint32_t web_sweep(struct web *web, struct jwriter *w)
{
    uint32_t gone = 0;
    MAP_EACH (&web->seen, item) {
        struct web_seen *seen = map_item_value(item);
        if (seen->round != web->round) {
            jw_str(w, map_item_name(item));
            heap_free(seen);
            (void)map_del(&web->seen, map_item_name(item));
            gone++;
        }
    }
    return gone;
}

/* An event's data is one line: JSON has no line breaks of its own. */
static void web_event(struct buf *out, const char *name, struct str json)
{
    buf_printf(out, "event: %s\ndata: ", name);
    buf_add(out, json);
    buf_add(out, STR("\n\n"));
}

/* What changed since the last time, as events; whether there is anything to send. */
static bool web_changes(struct web *web, struct buf *out)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct jwriter w = jwriter_on(&json);
    web_status_json(web, &w);
    uint64_t hash = web_hash(&json);
    if (hash != web->status_hash) {
        web->status_hash = hash;
        web_event(out, "status", buf_str(&json));
    }
    buf_reset(&json);
    web->round++;
    w = jwriter_on(&json);
    jw_obj(&w);
    jw_key(&w, STR("set"));
    jw_arr(&w);
    struct web_walk walk = { .web = web, .w = &w };
    web->source->each_node(web->source->ctx, web_walk_node, &walk);
    buf_done(&walk.one);
    jw_arr_end(&w);
    jw_key(&w, STR("del"));
    jw_arr(&w);
    uint32_t gone = web_sweep(web, &w);
    jw_arr_end(&w);
    jw_obj_end(&w);
    if (walk.changed + gone > 0) {
        web_event(out, "delta", buf_str(&json));
    }
    return out->n > 0;
}

static void web_snapshot(struct web *web, struct buf *out)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct jwriter w = jwriter_on(&json);
    jw_obj(&w);
    jw_key(&w, STR("status"));
    web_status_json(web, &w);
    jw_key(&w, STR("nodes"));
    jw_arr(&w);
    struct web_walk walk = { .web = web, .w = &w, .all = true };
    web->source->each_node(web->source->ctx, web_walk_node, &walk);
    buf_done(&walk.one);
    jw_arr_end(&w);
    jw_obj_end(&w);
    web_event(out, "snapshot", buf_str(&json));
}

static void web_stream_closed(void *ctx)
{
    struct web_stream *stream = ctx;
    struct web *web = stream->web;
    list_del(&stream->link);
    web->stream_count--;
    heap_free(stream);
    if (web->stream_count == 0) {
        loop_timer_stop(&web->timer);
    }
}

static void web_stream_end(struct web_stream *stream)
{
    struct serve_exchange *x = stream->x;
    web_stream_closed(stream);
    serve_end(x);
}

static void web_send_all(struct web *web, struct str bytes)
{
    web->spoken = loop_now(web->loop);
    LIST_EACH (&web->streams, item) {
        struct web_stream *stream = CONTAINER_OF(item, struct web_stream, link);
        if (serve_backlog(stream->x) > WEB_BACKLOG_MAX) {
            web_stream_end(stream); /* it comes back and begins with a fresh snapshot */
        } else {
            serve_chunk(stream->x, bytes);
        }
    }
}

static void web_tick(void *ctx)
{
    struct web *web = ctx;
    CLEANUP(buf_done)
    struct buf out = { 0 };
    if (web_changes(web, &out)) {
        web_send_all(web, buf_str(&out));
    } else if (loop_now(web->loop) - web->spoken >= WEB_KEEPALIVE) {
        web_send_all(web, STR(": still here\n\n"));
    }
    if (web->stream_count > 0) {
        loop_timer_set(&web->timer, loop_now(web->loop) + WEB_INTERVAL);
    }
}

static void web_events(struct web *web, struct serve_exchange *x)
{
    if (web->stream_count >= WEB_STREAMS_MAX) {
        serve_set_header(x, "Retry-After", STR("5"));
        web_refuse(x, 503, STR("too many event streams are open\n"));
        return;
    }
    /* Those who are there already get what is new, so that all stand at the same point. */
    web_tick(web);
    struct web_stream *stream = HEAP_NEW(struct web_stream);
    stream->web = web;
    stream->x = x;
    list_add(&web->streams, &stream->link);
    web->stream_count++;
    x->on_close = web_stream_closed;
    x->on_close_ctx = stream;
    serve_set_header(x, "Cache-Control", STR("no-store"));
    serve_set_header(x, "X-Accel-Buffering", STR("no"));
    serve_start(x, 200, STR("text/event-stream"));
    CLEANUP(buf_done)
    struct buf out = { 0 };
    buf_add(&out, STR("retry: 1000\n\n"));
    web_snapshot(web, &out);
    serve_chunk(x, buf_str(&out));
    web->spoken = loop_now(web->loop);
    loop_timer_pull(&web->timer, loop_now(web->loop) + WEB_INTERVAL);
}

/* ---- routes ---- */

static void web_asset(struct serve_exchange *x, struct str name)
{
    for (size_t i = 0; i < assets_count; i++) {
        if (str_eq(str_from(assets[i].name), name)) {
            serve_set_header(x, "Cache-Control", STR("no-cache"));
            serve_set_header(x, "X-Content-Type-Options", STR("nosniff"));
            serve_set_header(x, "Referrer-Policy", STR("no-referrer"));
            serve_set_header(x, "Content-Security-Policy",
                             STR("default-src 'self'; img-src 'self' data:; "
                                 "frame-ancestors 'self'; base-uri 'none'"));
            struct str body = { .p = (const char *)assets[i].bytes, .n = assets[i].n };
            serve_reply(x, 200, str_from(assets[i].type), body);
            return;
        }
    }
    web_refuse(x, 404, STR("404 page not found\n"));
}

static void web_metrics(struct web *web, struct serve_exchange *x)
{
    web->scrapes++;
    CLEANUP(buf_done)
    struct buf out = { 0 };
    if (web->metrics != NULL) {
        metrics_print(web->metrics, &out);
    }
    serve_reply(x, out.full ? 500 : 200, METRICS_CONTENT_TYPE, buf_str(&out));
}

static void web_info_reply(struct web *web, struct serve_exchange *x)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    web_info(web->source, loop_wall(web->loop), &out);
    if (out.full) {
        web_refuse(x, 500, STR("{\"error\":\"the document is too large\"}"));
        return;
    }
    serve_reply(x, 200, WEB_JSON, buf_str(&out));
}

void web_handle(void *ctx, struct serve_exchange *x, const struct serve_request *req)
{
    struct web *web = ctx;
    struct str file;
    if (str_eq(req->path, STR("/api/v1/info"))) {
        web_info_reply(web, x); /* any method, as the original */
    } else if (!str_eq(req->method, STR("GET")) && !str_eq(req->method, STR("HEAD"))) {
        serve_set_header(x, "Allow", STR("GET, HEAD"));
        web_refuse(x, 405, STR("405 method not allowed\n"));
    } else if (str_eq(req->path, STR("/metrics"))) {
        web_metrics(web, x);
    } else if (str_eq(req->path, STR("/api/v1/events")) && str_eq(req->method, STR("GET"))) {
        web_events(web, x);
    } else if (str_eq(req->path, STR("/")) || str_eq(req->path, STR("/static/"))) {
        web_asset(x, STR("index.html"));
    } else if (str_eq(req->path, STR("/static"))) {
        web_redirect(x, 307, STR("/static/"));
    } else if (str_eq(req->path, STR("/static/index.html"))) {
        web_redirect(x, 301, STR("./"));
    } else if (str_cut_prefix(req->path, STR("/static/"), &file)) {
        web_asset(x, file);
    } else if (str_starts(req->path, STR("/api/"))) {
        web_refuse(x, 404, STR("404 page not found\n"));
    } else {
        web_redirect(x, 301, STR("/static")); /* old bookmarks end at the dashboard */
    }
}

struct web *web_new(struct loop *loop, const struct web_source *source, struct metrics *metrics)
{
    struct web *web = HEAP_NEW(struct web);
    *web = (struct web){ .loop = loop, .source = source, .metrics = metrics };
    list_init(&web->streams);
    map_init(&web->seen, loop_random(loop), loop_random(loop));
    loop_timer_init(&web->timer, loop, web_tick, web);
    return web;
}

void web_free(struct web *web)
{
    if (web == NULL) {
        return;
    }
    LIST_EACH (&web->streams, item) {
        web_stream_end(CONTAINER_OF(item, struct web_stream, link));
    }
    MAP_EACH (&web->seen, item) {
        heap_free(map_item_value(item));
    }
    map_done(&web->seen);
    loop_timer_done(&web->timer);
    heap_free(web);
}

uint32_t web_streams(const struct web *web)
{
    return web->stream_count;
}

uint64_t web_scrapes(const struct web *web)
{
    return web->scrapes;
}
