#include "web/web.h"

#include "base/alloc.h"
#include "base/list.h"
#include "format/json_writer.h"
#include "web/http_reply.h"
#include "web/assets.h"
#include "web/metrics_text.h"
#include "web/limits_api.h"
#include "web/operations_api.h"
#include "web/query.h"
#include "web/leader_proxy.h"
#include "web/fleet_document.h"

struct web_stream {
    struct list link;
    struct web *web;
    struct inbound_exchange *x; /* borrowed: until on_close or inbound_end */
    struct arena memory;
    struct str node;    /* empty = of the whole fleet */
    uint64_t sent_hash; /* of the node's document as it was sent last */
    usec_t sent_at;     /* when it was looked at last */
};

/* What was sent last of a node. */
struct web_sent_node {
    uint64_t version;
    uint64_t hash;
    uint64_t round; /* in which it was met last */
};

struct web {
    struct loop *loop;
    const struct web_source *source;
    struct metrics *metrics;
    struct list streams;
    uint32_t stream_count;
    uint32_t fleet_stream_count; /* of them, those that are not about one node */
    uint64_t scrapes;
    struct map sent;
    uint64_t round;
    uint64_t status_hash;
    struct limits_api_sent limits;
    struct operations_api_sent operations;
    /* What the newest stream was sent first, for more of them while nothing has changed. */
    struct shared_bytes *snapshot;
    uint64_t snapshot_limits;     /* version of the limits in it, */
    uint64_t snapshot_operations; /* and of the NodeMaintenances */
    usec_t keepalive_at;          /* when all streams were last kept alive */
    struct loop_timer timer;
    struct fleet_documents documents;
    struct leader_proxy *proxy;
};

static void web_redirect(struct inbound_exchange *x, int status, struct str to)
{
    inbound_set_header(x, "Location", to);
    http_reply_text(x, status, STR_NONE);
}

/* ---- JSON of nodes ---- */

static void web_profile_json(struct json_writer *w, const struct web_profile *profile)
{
    jw_obj(w);
    jw_pair(w, "name", profile->name);
    jw_pair(w, "state", profile->state);
    jw_pair_time(w, "since", profile->since);
    jw_obj_end(w);
}

static void web_node_json(struct json_writer *w, const struct web_node *node)
{
    jw_obj(w);
    jw_pair(w, "name", node->name);
    jw_pair(w, "state", node->state);
    jw_pair_some(w, "error", node->error);
    jw_pair_bool(w, "ready", node->ready);
    jw_pair_bool(w, "cordoned", node->unschedulable);
    node_report_print_drain(&node->draining, w);
    jw_key(w, STR("profiles"));
    jw_arr(w);
    for (uint32_t i = 0; i < node->profile_count; i++) {
        web_profile_json(w, &node->profiles[i]);
    }
    jw_arr_end(w);
    jw_key(w, STR("labels"));
    jw_obj(w);
    for (uint32_t i = 0; i < node->label_count; i++) {
        jw_key(w, node->labels[i].key);
        jw_str(w, node->labels[i].value);
    }
    jw_obj_end(w);
    jw_obj_end(w);
}

/* ---- server-sent events ---- */

static void web_status_json(struct web *web, struct json_writer *w)
{
    struct web_status s = { 0 };
    web->source->status(web->source->ctx, &s);
    jw_obj(w);
    jw_pair(w, "version", STR(DRYDOCK_VERSION));
    jw_pair(w, "title", s.title);
    jw_pair(w, "identity", s.identity);
    jw_pair(w, "leader", s.leader);
    jw_pair_bool(w, "leading", s.leading);
    jw_pair_bool(w, "ready", s.ready);
    jw_pair(w, "why", s.ready ? STR_NONE : s.why);
    jw_pair_some(w, "paused", s.paused);
    jw_pair_some(w, "missingRight", s.denied);
    if (s.pause.n > 0) {
        jw_pair(w, "pause", s.pause);
    }
    jw_pair_i64(w, "writes", (int64_t)s.writes);
    jw_key(w, STR("config"));
    jw_obj(w);
    jw_pair(w, "file", s.config_file);
    jw_pair(w, "error", s.config_error);
    if (s.config_warnings.n > 0) {
        jw_pair(w, "warnings", s.config_warnings);
    }
    jw_pair_time(w, "loaded", s.config_loaded);
    jw_obj_end(w);
    activity_print_list(s.integrations, s.integration_count, w);
    jw_key(w, STR("profiles"));
    jw_strs(w, s.profiles, s.profile_count);
    jw_obj_end(w);
}

static uint64_t web_hash(const struct buf *bytes)
{
    static const uint64_t key[2] = { 0, 0 }; /* compared with itself over time, by nobody else */
    return map_hash(key, buf_str(bytes));
}

struct web_walk {
    struct web *web;
    struct json_writer *w; /* an open array that takes what changed; NULL = only note */
    struct buf one;        /* one node's JSON, to compare */
    uint32_t changed;
    bool all; /* write all, changed or not */
};

/* A node whose version has not changed was sent already. */
static bool web_walk_wants(void *ctx, struct str name, uint64_t version)
{
    struct web_walk *walk = ctx;
    struct web_sent_node *sent = walk->all ? NULL : map_find(&walk->web->sent, name);
    if (sent == NULL || sent->version != version) {
        return true;
    }
    sent->round = walk->web->round;
    return false;
}

static void web_walk_node(void *ctx, const struct web_node *node)
{
    struct web_walk *walk = ctx;
    struct web *web = walk->web;
    buf_reset(&walk->one);
    struct json_writer w = json_writer_on(&walk->one);
    web_node_json(&w, node);
    uint64_t hash = web_hash(&walk->one);
    struct web_sent_node *sent = map_find(&web->sent, node->name);
    if (sent == NULL) {
        sent = ALLOC_NEW(struct web_sent_node);
        (void)map_put(&web->sent, node->name, sent); /* it was not there */
        sent->hash = ~hash;
    }
    sent->round = web->round;
    sent->version = node->version;
    if (sent->hash != hash || walk->all) {
        sent->hash = hash;
        walk->changed++;
        jw_raw(walk->w, buf_str(&walk->one));
    }
}

static void web_walk_all(struct web_walk *walk)
{
    const struct web_source *source = walk->web->source;
    source->each_node(source->ctx, &(struct web_visit){
                                       .wants = web_walk_wants, .fn = web_walk_node, .ctx = walk });
    buf_done(&walk->one);
}

/* Nodes that the last walk did not meet are gone. */
static uint32_t web_remove_gone(struct web *web, struct json_writer *w)
{
    uint32_t gone = 0;
    MAP_EACH (&web->sent, item) {
        struct web_sent_node *sent = map_item_value(item);
        if (sent->round != web->round) {
            jw_str(w, map_item_name(item));
            alloc_free(sent);
            (void)map_del(&web->sent, map_item_name(item));
            gone++;
        }
    }
    return gone;
}

/* An event's data is one line: JSON has no line breaks of its own. */
static void web_event(struct buf *out, const char *name, const struct buf *json)
{
    buf_printf(out, "event: %s\ndata: ", name);
    buf_add(out, buf_str(json));
    buf_add(out, STR("\n\n"));
    out->full = out->full || json->full;
}

/* What changed since the last time, as events; whether there is anything to send. */
static bool web_changes(struct web *web, struct buf *out)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    web_status_json(web, &w);
    uint64_t hash = web_hash(&json);
    if (hash != web->status_hash) {
        web->status_hash = hash;
        web_event(out, "status", &json);
    }
    buf_reset(&json);
    web->round++;
    w = json_writer_on(&json);
    jw_obj(&w);
    jw_key(&w, STR("set"));
    jw_arr(&w);
    struct web_walk walk = { .web = web, .w = &w };
    web_walk_all(&walk);
    jw_arr_end(&w);
    jw_key(&w, STR("del"));
    jw_arr(&w);
    uint32_t gone = web_remove_gone(web, &w);
    jw_arr_end(&w);
    jw_obj_end(&w);
    if (walk.changed + gone > 0) {
        web_event(out, "delta", &json);
    }
    buf_reset(&json);
    if (limits_api_print_changes(&web->limits, web->source, web->loop, &json)) {
        web_event(out, "board", &json);
    }
    buf_reset(&json);
    if (operations_api_print_changes(&web->operations, web->source, web->loop, &json)) {
        web_event(out, "operations", &json);
    }
    return out->n > 0 || out->full;
}

static uint64_t web_limits_version(const struct web *web)
{
    const struct web_source *source = web->source;
    return source->limits_report != NULL ? source->limits_report_version(source->ctx) : 0;
}

static uint64_t web_operations_version(const struct web *web)
{
    const struct web_source *source = web->source;
    return source->operations_report != NULL ? source->operations_version(source->ctx) : 0;
}

static void web_drop_snapshot(struct web *web)
{
    shared_bytes_unref(web->snapshot);
    web->snapshot = NULL;
}

/* With what a stream begins. All streams have been sent all changes. */
static struct shared_bytes *web_snapshot(struct web *web)
{
    if (web->snapshot != NULL && web->snapshot_limits == web_limits_version(web) &&
        web->snapshot_operations == web_operations_version(web)) {
        return web->snapshot;
    }
    struct buf out = { 0 };
    buf_add(&out, STR("retry: 1000\n\nevent: snapshot\ndata: "));
    struct json_writer w = json_writer_on(&out);
    jw_obj(&w);
    jw_key(&w, STR("status"));
    web_status_json(web, &w);
    jw_key(&w, STR("nodes"));
    jw_arr(&w);
    struct web_walk walk = { .web = web, .w = &w, .all = true };
    web_walk_all(&walk);
    jw_arr_end(&w);
    jw_key(&w, STR("board"));
    limits_api_print_brief(web->source, &w);
    jw_key(&w, STR("operations"));
    operations_api_print_brief(web->source, &w);
    jw_obj_end(&w);
    buf_add(&out, STR("\n\n"));
    web_drop_snapshot(web);
    if (out.full) {
        buf_done(&out); /* the reader gets changes alone */
    }
    web->snapshot = shared_bytes_take(&out);
    web->snapshot_limits = web_limits_version(web);
    web->snapshot_operations = web_operations_version(web);
    return web->snapshot;
}

/* The report about one node; false: there is no such node. */
static bool web_explain(struct web *web, struct str node, bool dated, struct query_form form,
                        struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct node_report report;
    if (!web->source->report(web->source->ctx, node, &tmp, &report)) {
        return false;
    }
    limits_api_claims(web->source, &tmp, &report);
    operations_api_of_node(web->source, &tmp, &report);
    report.now = dated ? web_source_wall(web->source, web->loop) : 0;
    report.columns = form.columns;
    if (form.format == QUERY_FORMAT_JSON) {
        struct json_writer w = json_writer_on(out);
        node_report_print_json(&report, &w);
    } else {
        node_report_print_text(
            &report, form.format == QUERY_FORMAT_WIDE ? NODE_REPORT_WIDE : NODE_REPORT_TEXT, out);
    }
    return true;
}

static void web_stream_closed(void *ctx)
{
    struct web_stream *stream = ctx;
    struct web *web = stream->web;
    list_del(&stream->link);
    web->stream_count--;
    web->fleet_stream_count -= stream->node.n == 0 ? 1 : 0;
    arena_done(&stream->memory);
    alloc_free(stream);
    if (web->stream_count == 0) {
        loop_timer_stop(&web->timer);
    }
}

static void web_stream_end(struct web_stream *stream)
{
    struct inbound_exchange *x = stream->x;
    web_stream_closed(stream);
    inbound_end(x);
}

/* False: the stream was ended, because its reader lags too far behind. Browsers connect again and
 * get a new snapshot. */
static bool web_stream_send(struct web_stream *stream, struct shared_bytes *bytes)
{
    if (inbound_backlog(stream->x) > WEB_BACKLOG_MAX) {
        web_stream_end(stream);
        return false;
    }
    inbound_chunk_shared(stream->x, bytes);
    return true;
}

/* Sends the document of a stream about one node, if it has changed. */
static void web_stream_explain(struct web_stream *stream, bool now)
{
    struct web *web = stream->web;
    if (!now && loop_now(web->loop) - stream->sent_at < WEB_EXPLAIN_EVERY) {
        return;
    }
    CLEANUP(buf_done)
    struct buf json = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    stream->sent_at = loop_now(web->loop);
    bool there =
        web_explain(web, stream->node, /* dated= */ false, (struct query_form){ 0 }, &json);
    uint64_t hash = there ? web_hash(&json) : 1;
    if (hash == stream->sent_hash) {
        return;
    }
    stream->sent_hash = hash;
    buf_reset(&json);
    if (there &&
        web_explain(web, stream->node, /* dated= */ true, (struct query_form){ 0 }, &json)) {
        web_event(&out, "explain", &json);
    } else {
        buf_add(&json, STR("{}"));
        web_event(&out, "gone", &json);
    }
    if (out.full) {
        web_stream_end(stream);
        return;
    }
    CLEANUP(shared_bytes_unrefp)
    struct shared_bytes *bytes = shared_bytes_take(&out);
    (void)web_stream_send(stream, bytes); /* nothing follows for this one */
}

/* Takes the bytes. What is too long for a document ends the streams: browsers connect again and get
 * a snapshot. */
static void web_send_all(struct web *web, struct buf *out, bool fleet_only)
{
    CLEANUP(shared_bytes_unrefp)
    struct shared_bytes *bytes = out->full ? NULL : shared_bytes_take(out);
    LIST_EACH (&web->streams, item) {
        struct web_stream *stream = CONTAINER_OF(item, struct web_stream, link);
        if (stream->node.n > 0 && fleet_only) {
            continue;
        }
        if (bytes == NULL) {
            web_stream_end(stream);
        } else {
            (void)web_stream_send(stream, bytes); /* nothing follows for this one */
        }
    }
}

static void web_send_changes(struct web *web)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    if (web_changes(web, &out)) {
        web_drop_snapshot(web);
        web_send_all(web, &out, /* fleet_only= */ true);
    }
}

static void web_tick(void *ctx)
{
    struct web *web = ctx;
    if (web->fleet_stream_count > 0) {
        web_send_changes(web);
    }
    LIST_EACH (&web->streams, item) {
        struct web_stream *stream = CONTAINER_OF(item, struct web_stream, link);
        if (stream->node.n > 0) {
            web_stream_explain(stream, /* now= */ false);
        }
    }
    if (loop_now(web->loop) - web->keepalive_at >= WEB_KEEPALIVE) {
        web->keepalive_at = loop_now(web->loop);
        struct buf out = { 0 };
        buf_add(&out, STR(": still here\n\n"));
        web_send_all(web, &out, /* fleet_only= */ false);
    }
    if (web->snapshot != NULL && web->snapshot->refs == 1) {
        web_drop_snapshot(web); /* all who were sent it have it */
    }
    if (web->stream_count > 0) {
        loop_timer_set(&web->timer, loop_now(web->loop) + WEB_INTERVAL);
    }
}

static void web_stream_begin(struct web *web, struct inbound_exchange *x, struct str node)
{
    if (web->stream_count >= WEB_STREAMS_MAX) {
        inbound_set_header(x, "Retry-After", STR("5"));
        http_reply_text(x, 503, STR("too many event streams are open\n"));
        return;
    }
    if (node.n == 0) {
        web_send_changes(web); /* so that all open streams have been sent the same */
    }
    struct web_stream *stream = ALLOC_NEW(struct web_stream);
    stream->web = web;
    stream->x = x;
    stream->node = arena_str(&stream->memory, node);
    list_add(&web->streams, &stream->link);
    if (web->stream_count++ == 0) {
        web->keepalive_at = loop_now(web->loop);
    }
    web->fleet_stream_count += node.n == 0 ? 1 : 0;
    x->on_close = web_stream_closed;
    x->on_close_ctx = stream;
    inbound_set_header(x, "Cache-Control", STR("no-store"));
    inbound_set_header(x, "X-Accel-Buffering", STR("no"));
    inbound_start(x, 200, STR("text/event-stream"));
    if (node.n == 0) {
        inbound_chunk_shared(x, web_snapshot(web));
    } else {
        inbound_chunk(x, STR("retry: 1000\n\n"));
    }
    loop_timer_pull(&web->timer, loop_now(web->loop) + WEB_INTERVAL);
    if (node.n > 0) {
        web_stream_explain(stream, /* now= */ true);
    }
}

/* ---- routes ---- */

static void web_asset(struct inbound_exchange *x, struct str name)
{
    for (size_t i = 0; i < assets_count; i++) {
        if (str_eq(str_from(assets[i].name), name)) {
            inbound_set_header(x, "Cache-Control", STR("no-cache"));
            inbound_set_header(x, "X-Content-Type-Options", STR("nosniff"));
            inbound_set_header(x, "Referrer-Policy", STR("no-referrer"));
            inbound_set_header(x, "Content-Security-Policy",
                               STR("default-src 'self'; img-src 'self' data:; "
                                   "frame-ancestors 'self'; base-uri 'none'"));
            struct str body = { .p = (const char *)assets[i].bytes, .n = assets[i].n };
            inbound_reply(x, 200, str_from(assets[i].type), body);
            return;
        }
    }
    http_reply_text(x, 404, STR("404 page not found\n"));
}

static void web_metrics(struct web *web, struct inbound_exchange *x)
{
    web->scrapes++;
    CLEANUP(buf_done)
    struct buf out = { 0 };
    if (web->metrics != NULL) {
        metrics_text_print(web->metrics, &out);
    }
    inbound_reply(x, out.full ? 500 : 200, METRICS_TEXT_CONTENT_TYPE, buf_str(&out));
}

static bool web_is_leader(struct web *web)
{
    struct web_status s = { 0 };
    web->source->status(web->source->ctx, &s);
    return s.leading;
}

static void web_explain_reply(struct web *web, struct inbound_exchange *x, struct str node,
                              struct query_form form)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    if (node.n == 0) {
        http_reply_error(
            x, 400, STR("want ?node=NAME, ?request=NAME, ?limit=NAME or ?nodemaintenance=NAME"));
    } else if (!web_explain(web, node, /* dated= */ true, form, &out)) {
        buf_printf(&out, "there is no node '" STR_FMT "'", STR_ARG(node));
        http_reply_error(x, 404, buf_str(&out));
    } else {
        http_reply_report(x, form.format, &out);
    }
}

/* Whether the request is about limits and requests, and about which of them. */
static bool web_limits_query(const struct inbound_request *req, struct arena *tmp,
                             struct limits_api_query *ret)
{
    *ret = (struct limits_api_query){ .about = LIMITS_REPORT_ALL };
    if (!str_eq(req->path, STR("/api/v1/explain"))) {
        return str_eq(req->path, STR("/api/v1/limits"));
    }
    struct str request = query_param(req->query, STR("request"), tmp);
    struct str limit = query_param(req->query, STR("limit"), tmp);
    if (request.n > 0) {
        *ret = (struct limits_api_query){ .about = LIMITS_REPORT_REQUEST, .name = request };
    } else if (limit.n > 0) {
        *ret = (struct limits_api_query){ .about = LIMITS_REPORT_LIMIT, .name = limit };
    }
    return request.n > 0 || limit.n > 0;
}

/* The paths that only the leader can answer; false: this path is none of them. */
static bool web_handle_report(struct web *web, struct inbound_exchange *x,
                              const struct inbound_request *req)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str node = query_param(req->query, STR("node"), &tmp);
    struct limits_api_query query;
    bool info = str_eq(req->path, STR("/api/v1/info"));
    bool status = str_eq(req->path, STR("/api/v1/status"));
    bool stream = str_eq(req->path, STR("/api/v1/events")) && node.n > 0;
    bool limits = web_limits_query(req, &tmp, &query);
    struct str maintenance = query_param(req->query, STR("nodemaintenance"), &tmp);
    bool explain = str_eq(req->path, STR("/api/v1/explain"));
    bool operations =
        str_eq(req->path, STR("/api/v1/operations")) || (explain && maintenance.n > 0);
    bool not_leader = web->proxy != NULL && !web_is_leader(web);
    struct query_form form = { .columns = query_columns(req->query) };
    if (!info && !status && !stream && !limits && !operations && !explain) {
        return false;
    }
    if (!info && !stream && !query_format(req->query, &form.format)) {
        http_reply_error(x, 400, QUERY_FORMAT_ERROR);
    } else if (stream && not_leader) {
        http_reply_error(x, 503, STR("this replica does not lead: ask /api/v1/explain"));
    } else if (not_leader) {
        leader_proxy_start(web->proxy, x, req, form.format);
    } else if (stream) {
        web_stream_begin(web, x, node);
    } else if (limits) {
        query.form = form;
        limits_api_reply(web->source, web->loop, query, x);
    } else if (operations) {
        operations_api_reply(web->source, explain ? maintenance : STR_NONE, form, x);
    } else if (info || status) {
        bool brief = str_eq(query_param(req->query, STR("board"), &tmp), STR("0"));
        fleet_document_start(&web->documents,
                             info    ? FLEET_DOCUMENT_INFO
                             : brief ? FLEET_DOCUMENT_NODES
                                     : FLEET_DOCUMENT_STATUS,
                             form, x);
    } else {
        web_explain_reply(web, x, node, form);
    }
    return true;
}

void web_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req)
{
    struct web *web = ctx;
    struct str file;
    bool any = str_eq(req->path, STR("/api/v1/info")); /* any method, as the original */
    if (!any && !str_eq(req->method, STR("GET")) && !str_eq(req->method, STR("HEAD"))) {
        inbound_set_header(x, "Allow", STR("GET, HEAD"));
        http_reply_text(x, 405, STR("405 method not allowed\n"));
    } else if (web_handle_report(web, x, req)) {
        return;
    } else if (str_eq(req->path, STR("/metrics"))) {
        web_metrics(web, x);
    } else if (str_eq(req->path, STR("/api/v1/events")) && str_eq(req->method, STR("GET"))) {
        web_stream_begin(web, x, STR_NONE);
    } else if (str_eq(req->path, STR("/")) || str_eq(req->path, STR("/static/"))) {
        web_asset(x, STR("index.html"));
    } else if (str_eq(req->path, STR("/static"))) {
        web_redirect(x, 307, STR("/static/"));
    } else if (str_eq(req->path, STR("/static/index.html"))) {
        web_redirect(x, 301, STR("./"));
    } else if (str_cut_prefix(req->path, STR("/static/"), &file)) {
        web_asset(x, file);
    } else if (str_starts(req->path, STR("/api/"))) {
        http_reply_text(x, 404, STR("404 page not found\n"));
    } else {
        web_redirect(x, 301, STR("/static")); /* old bookmarks end at the dashboard */
    }
}

struct web *web_new(struct loop *loop, const struct web_source *source, struct metrics *metrics)
{
    struct web *web = ALLOC_NEW(struct web);
    *web = (struct web){ .loop = loop, .source = source, .metrics = metrics };
    list_init(&web->streams);
    map_init(&web->sent, loop_random(loop), loop_random(loop));
    loop_timer_init(&web->timer, loop, web_tick, web);
    fleet_documents_init(&web->documents, loop, source);
    return web;
}

void web_set_leader_proxy(struct web *web, struct leader_proxy *proxy)
{
    web->proxy = proxy;
}

void web_free(struct web *web)
{
    if (web == NULL) {
        return;
    }
    fleet_documents_done(&web->documents);
    LIST_EACH (&web->streams, item) {
        web_stream_end(CONTAINER_OF(item, struct web_stream, link));
    }
    MAP_EACH (&web->sent, item) {
        alloc_free(map_item_value(item));
    }
    map_done(&web->sent);
    web_drop_snapshot(web);
    loop_timer_done(&web->timer);
    alloc_free(web);
}

uint32_t web_streams(const struct web *web)
{
    return web->stream_count;
}

uint64_t web_scrapes(const struct web *web)
{
    return web->scrapes;
}
