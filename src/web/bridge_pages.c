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
static void gatehouse_unknown(struct gatehouse *g, struct inbound_exchange *x, struct str machine)
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
    answer_error(x, ready ? 404 : 503, buf_str(&text));
}

static void gatehouse_explain(struct gatehouse *g, struct inbound_exchange *x, struct str query)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct bridge_report report = { 0 };
    struct passage passage;
    struct str machine = query_param(query, STR("machine"), &tmp);
    struct str space;
    struct str name;
    if (!str_cut(machine, STR("/"), &space, &name) || space.n == 0 || name.n == 0) {
        answer_error(x, 400, STR("want ?machine=NAMESPACE/NAME"));
        return;
    }
    if (!g->source.explain(g->source.ctx, space, name, &tmp, &report)) {
        gatehouse_unknown(g, x, machine);
        return;
    }
    passage_from(&report, loop_now(g->loop), &passage);
    passage.leading = g->source.leading(g->source.ctx);
    passage.leader = g->source.leader(g->source.ctx);
    struct json_writer w = json_writer_on(&out);
    passage_print_json(&passage, &w);
    answer_document(x, &out);
}

/* ── links ─────────────────────────────────────────────────────────────────────────────────── */

struct gatehouse_roll {
    struct gatehouse *gatehouse;
    struct json_writer json;
    struct textwrap page;
    struct arena tmp;
    uint32_t troubles;
};

static void roll_time(struct gatehouse_roll *roll, const char *key, usec_t at)
{
    struct loop *loop = roll->gatehouse->loop;
    jw_pair_time(&roll->json, key, loop_wall(loop) + (at - loop_now(loop)));
}

static void roll_link(void *ctx, const struct link_view *v)
{
    struct gatehouse_roll *roll = ctx;
    struct json_writer *w = &roll->json;
    jw_obj(w);
    jw_pair(w, "namespace", v->space);
    jw_pair(w, "cluster", v->cluster);
    jw_pair(w, "uid", v->uid);
    jw_pair(w, "state", str_from(link_state_name(v->state)));
    roll_time(roll, "since", v->since);
    if (v->state == LINK_BACKOFF) {
        roll_time(roll, "retryAt", v->retry_at);
    }
    jw_pair_some(w, "trouble", v->trouble);
    jw_pair_some(w, "tokenOverdue", v->overdue);
    jw_pair_i64(w, "nodes", v->nodes);
    jw_pair_i64(w, "connects", (int64_t)v->connects);
    jw_pair_i64(w, "failures", (int64_t)v->failures);
    jw_obj_end(w);
}

static void gatehouse_links(struct gatehouse *g, struct inbound_exchange *x)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct gatehouse_roll roll = { .gatehouse = g, .json = json_writer_on(&out) };
    struct str leader = g->source.leader(g->source.ctx);
    jw_obj(&roll.json);
    roll_time(&roll, "now", loop_now(g->loop));
    jw_pair_bool(&roll.json, "leading", g->source.leading(g->source.ctx));
    jw_pair(&roll.json, "leader", leader);
    jw_key(&roll.json, STR("links"));
    jw_arr(&roll.json);
    g->source.each_link(g->source.ctx, roll_link, &roll);
    jw_arr_end(&roll.json);
    jw_obj_end(&roll.json);
    answer_document(x, &out);
}

/* ── the first page ────────────────────────────────────────────────────────────────────────── */

static void roll_trouble(void *ctx, const struct link_view *v)
{
    struct gatehouse_roll *roll = ctx;
    if (v->state == LINK_WATCHING || v->state == LINK_IDLE) {
        return;
    }
    roll->troubles++;
    if (roll->troubles > GATEHOUSE_TROUBLES_MAX) {
        return;
    }
    struct str length =
        humantime_span(MAX(0, loop_now(roll->gatehouse->loop) - v->since), &roll->tmp);
    if (roll->troubles == 1) {
        textwrap_add(&roll->page, STR("\nclusters out of sight\n"));
    }
    roll->page.hang = 4;
    textwrap_printf(&roll->page, "  " STR_FMT "/" STR_FMT ": %s for " STR_FMT, STR_ARG(v->space),
                    STR_ARG(v->cluster), link_state_name(v->state), STR_ARG(length));
    if (v->trouble.n > 0) {
        textwrap_printf(&roll->page, ": " STR_FMT, STR_ARG(v->trouble));
    }
    textwrap_end(&roll->page);
}

static void gatehouse_page(struct gatehouse *g, struct inbound_exchange *x)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct gatehouse_source *s = &g->source;
    struct gatehouse_roll roll = { .gatehouse = g, .page = { .out = &out, .columns = 80 } };
    struct bridge_stats stats = { 0 };
    struct str why = STR_NONE;
    struct str leader = s->leader(s->ctx);
    bool leading = s->leading(s->ctx);
    bool ready = s->ready(s->ctx, &why);
    s->stats(s->ctx, &stats);
    textwrap_printf(&roll.page, "drydock bridge: %s%s" STR_FMT "\n",
                    leading ? "leads" : "does not lead", leader.n > 0 && !leading ? ", but " : "",
                    STR_ARG(leading ? STR_NONE : leader));
    if (!ready) {
        textwrap_printf(&roll.page, "not ready: " STR_FMT "\n", STR_ARG(why));
    }
    textwrap_printf(&roll.page, "Machines: %u, enabled: %u; Clusters: %u\n", stats.machines,
                    stats.enabled, stats.clusters);
    textwrap_printf(&roll.page, "links: %u, fresh: %u; Nodes: %u\n", stats.links, stats.fresh,
                    stats.nodes);
    s->each_link(s->ctx, roll_trouble, &roll);
    if (roll.troubles > GATEHOUSE_TROUBLES_MAX) {
        textwrap_printf(&roll.page, "  and %u more\n", roll.troubles - GATEHOUSE_TROUBLES_MAX);
    }
    textwrap_add(&roll.page,
                 STR("\n/api/v1/explain?machine=NAMESPACE/NAME  what a Machine waits for\n"
                     "/api/v1/links                           all links\n"
                     "/metrics                                numbers for Prometheus\n"));
    arena_done(&roll.tmp);
    answer_text(x, 200, buf_str(&out));
}

/* ── routes ────────────────────────────────────────────────────────────────────────────────── */

static void gatehouse_metrics(struct gatehouse *g, struct inbound_exchange *x)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    if (g->metrics != NULL) {
        metrics_print(g->metrics, &out);
    }
    inbound_reply(x, out.full ? 500 : 200, METRICS_CONTENT_TYPE, buf_str(&out));
}

void gatehouse_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req)
{
    struct gatehouse *g = ctx;
    if (!str_eq(req->method, STR("GET")) && !str_eq(req->method, STR("HEAD"))) {
        inbound_set_header(x, "Allow", STR("GET, HEAD"));
        answer_text(x, 405, STR("405 method not allowed\n"));
    } else if (str_eq(req->path, STR("/metrics"))) {
        gatehouse_metrics(g, x);
    } else if (str_eq(req->path, STR("/api/v1/explain"))) {
        gatehouse_explain(g, x, req->query);
    } else if (str_eq(req->path, STR("/api/v1/links"))) {
        gatehouse_links(g, x);
    } else if (str_eq(req->path, STR("/"))) {
        gatehouse_page(g, x);
    } else {
        answer_text(x, 404, STR("404 page not found\n"));
    }
}
