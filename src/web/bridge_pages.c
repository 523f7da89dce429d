#include "web/bridge_pages.h"

#include "base/humantime.h"
#include "base/timestamp.h"
#include "base/textwrap.h"
#include "bridge/machine_report.h"
#include "web/http_reply.h"
#include "web/metrics_text.h"
#include "web/query.h"

/* ── one Machine ───────────────────────────────────────────────────────────────────────────── */

/* A replica that has not seen all Machines must not say that there is none of that name. */
static void bridge_pages_no_machine(struct bridge_pages *g, struct inbound_exchange *x,
                                    struct str machine)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct str why = STR_NONE;
    bool ready = g->source.ready(g->source.ctx, &why);
    if (ready) {
        buf_printf(&text, "there is no Machine '" STR_FMT "'", STR_ARG(machine));
    } else {
        buf_printf(&text, "Machine '" STR_FMT "' is not known yet: " STR_FMT, STR_ARG(machine),
                   STR_ARG(why));
    }
    http_reply_error(x, ready ? 404 : 503, buf_str(&text));
}

static void bridge_pages_explain(struct bridge_pages *g, struct inbound_exchange *x,
                                 struct str query)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct bridge_machine_view report = { 0 };
    struct machine_report machine_report;
    struct str machine = query_param(query, STR("machine"), &tmp);
    struct str namespace;
    struct str name;
    enum query_format format;
    if (!query_format(query, &format)) {
        http_reply_error(x, 400, QUERY_FORMAT_ERROR);
        return;
    }
    if (!str_cut(machine, STR("/"), &namespace, &name) || namespace.n == 0 || name.n == 0) {
        http_reply_error(x, 400, STR("want ?machine=NAMESPACE/NAME"));
        return;
    }
    if (!g->source.explain(g->source.ctx, namespace, name, &tmp, &report)) {
        bridge_pages_no_machine(g, x, machine);
        return;
    }
    if (!report.ours && str_eq(query_param(query, STR("shard"), &tmp), STR("own"))) {
        http_reply_error(x, 404, STR("another shard looks after its Cluster"));
        return;
    }
    machine_report_from(&report, loop_now(g->loop), &machine_report);
    machine_report.now -= machine_report.now % SECONDS(1); /* as JSON has it */
    machine_report.leading = g->source.leading(g->source.ctx);
    machine_report.leader = g->source.leader(g->source.ctx);
    machine_report.columns = query_columns(query);
    if (format == QUERY_FORMAT_JSON) {
        struct json_writer w = json_writer_on(&out);
        machine_report_print_json(&machine_report, &w);
    } else {
        machine_report_print_text(&machine_report, format == QUERY_FORMAT_WIDE, &out);
    }
    http_reply_report(x, format, &out);
}

/* ── links ─────────────────────────────────────────────────────────────────────────────────── */

struct bridge_pages_links {
    struct bridge_pages *pages;
    struct json_writer json;
    struct textwrap page;
    struct arena tmp;
    uint32_t unhealthy;
};

static void links_time(struct bridge_pages_links *links, const char *key, usec_t at)
{
    struct loop *loop = links->pages->loop;
    jw_pair_time(&links->json, key, loop_wall(loop) + (at - loop_now(loop)));
}

static void links_print_json(void *ctx, const struct link_view *v)
{
    struct bridge_pages_links *links = ctx;
    struct json_writer *w = &links->json;
    jw_obj(w);
    jw_pair(w, "namespace", v->namespace);
    jw_pair(w, "cluster", v->cluster);
    jw_pair(w, "uid", v->uid);
    jw_pair(w, "state", str_from(link_state_name(v->state)));
    links_time(links, "since", v->since);
    if (v->state == LINK_BACKOFF) {
        links_time(links, "retryAt", v->retry_at);
    }
    if (v->pause_end > 0) {
        links_time(links, "pausedUntil", v->pause_end);
        jw_pair_i64(w, "pausedBy", v->pause_status);
    }
    jw_pair_some(w, "trouble", v->trouble);
    jw_pair_some(w, "tokenOverdue", v->overdue);
    jw_pair_i64(w, "nodes", v->nodes);
    jw_pair_i64(w, "connects", (int64_t)v->connects);
    jw_pair_i64(w, "failures", (int64_t)v->failures);
    jw_obj_end(w);
}

static void bridge_pages_links(struct bridge_pages *g, struct inbound_exchange *x)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct bridge_pages_links links = { .pages = g, .json = json_writer_on(&out) };
    struct str leader = g->source.leader(g->source.ctx);
    struct str why = STR_NONE;
    jw_obj(&links.json);
    links_time(&links, "now", loop_now(g->loop));
    if (g->source.ready(g->source.ctx, &why)) {
        jw_pair_some(&links.json, "pause", why);
    }
    jw_pair_bool(&links.json, "leading", g->source.leading(g->source.ctx));
    jw_pair(&links.json, "leader", leader);
    jw_key(&links.json, STR("links"));
    jw_arr(&links.json);
    g->source.each_link(g->source.ctx, links_print_json, &links);
    jw_arr_end(&links.json);
    jw_obj_end(&links.json);
    http_reply_report(x, QUERY_FORMAT_JSON, &out);
}

/* ── the first page ────────────────────────────────────────────────────────────────────────── */

static void links_print_unhealthy(void *ctx, const struct link_view *v)
{
    struct bridge_pages_links *links = ctx;
    if ((v->state == LINK_WATCHING && v->pause_end == 0) || v->state == LINK_IDLE) {
        return;
    }
    links->unhealthy++;
    if (links->unhealthy > BRIDGE_PAGES_UNHEALTHY_MAX) {
        return;
    }
    struct str length =
        humantime_span(MAX(0, loop_now(links->pages->loop) - v->since), &links->tmp);
    if (links->unhealthy == 1) {
        textwrap_add(&links->page, STR("\nclusters out of sight, or that ask for quiet\n"));
    }
    links->page.hang = 4;
    textwrap_printf(&links->page, "  " STR_FMT "/" STR_FMT ": %s for " STR_FMT,
                    STR_ARG(v->namespace), STR_ARG(v->cluster), link_state_name(v->state),
                    STR_ARG(length));
    if (v->trouble.n > 0) {
        textwrap_printf(&links->page, ": " STR_FMT, STR_ARG(v->trouble));
    }
    if (v->pause_end > 0) {
        struct str left =
            humantime_span(MAX(0, v->pause_end - loop_now(links->pages->loop)), &links->tmp);
        textwrap_printf(&links->page, "; nothing is sent for " STR_FMT, STR_ARG(left));
        if (v->pause_status > 0) {
            textwrap_printf(&links->page, ", it answered %d", v->pause_status);
        }
    }
    textwrap_end(&links->page);
}

static void bridge_pages_index(struct bridge_pages *g, struct inbound_exchange *x)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct bridge_pages_source *s = &g->source;
    struct bridge_pages_links links = { .pages = g, .page = { .out = &out, .columns = 80 } };
    struct bridge_stats stats = { 0 };
    struct str why = STR_NONE;
    struct str leader = s->leader(s->ctx);
    bool leading = s->leading(s->ctx);
    bool ready = s->ready(s->ctx, &why);
    s->stats(s->ctx, &stats);
    textwrap_printf(&links.page, "drydock bridge: %s%s" STR_FMT "\n",
                    leading ? "leads" : "does not lead", leader.n > 0 && !leading ? ", but " : "",
                    STR_ARG(leading ? STR_NONE : leader));
    if (!ready) {
        textwrap_printf(&links.page, "not ready: " STR_FMT "\n", STR_ARG(why));
    } else if (why.n > 0) {
        textwrap_printf(&links.page, "paused: " STR_FMT "\n", STR_ARG(why));
    }
    textwrap_printf(&links.page, "Machines: %u, enabled: %u; Clusters: %u\n", stats.machines,
                    stats.enabled, stats.clusters);
    textwrap_printf(&links.page, "links: %u, fresh: %u; Nodes: %u\n", stats.links, stats.fresh,
                    stats.nodes);
    s->each_link(s->ctx, links_print_unhealthy, &links);
    if (links.unhealthy > BRIDGE_PAGES_UNHEALTHY_MAX) {
        textwrap_printf(&links.page, "  and %u more\n",
                        links.unhealthy - BRIDGE_PAGES_UNHEALTHY_MAX);
    }
    textwrap_add(&links.page,
                 STR("\n/api/v1/explain?machine=NAMESPACE/NAME  what a Machine waits for\n"
                     "/api/v1/links                           all links\n"
                     "/metrics                                numbers for Prometheus\n"));
    arena_done(&links.tmp);
    http_reply_text(x, 200, buf_str(&out));
}

/* ── routes ────────────────────────────────────────────────────────────────────────────────── */

static void bridge_pages_metrics(struct bridge_pages *g, struct inbound_exchange *x)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    if (g->metrics != NULL) {
        metrics_text_print(g->metrics, &out);
    }
    inbound_reply(x, out.full ? 500 : 200, METRICS_TEXT_CONTENT_TYPE, buf_str(&out));
}

void bridge_pages_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req)
{
    struct bridge_pages *g = ctx;
    if (!str_eq(req->method, STR("GET")) && !str_eq(req->method, STR("HEAD"))) {
        inbound_set_header(x, "Allow", STR("GET, HEAD"));
        http_reply_text(x, 405, STR("405 method not allowed\n"));
    } else if (str_eq(req->path, STR("/metrics"))) {
        bridge_pages_metrics(g, x);
    } else if (str_eq(req->path, STR("/api/v1/explain"))) {
        bridge_pages_explain(g, x, req->query);
    } else if (str_eq(req->path, STR("/api/v1/links"))) {
        bridge_pages_links(g, x);
    } else if (str_eq(req->path, STR("/"))) {
        bridge_pages_index(g, x);
    } else {
        http_reply_text(x, 404, STR("404 page not found\n"));
    }
}
