#include "web/limits_api.h"

#include "base/map.h"
#include "format/json_writer.h"
#include "web/http_reply.h"

static bool limits_api_report(const struct web_source *source, bool ended, struct arena *out,
                              struct limits_report *ret)
{
    return source->limits_report != NULL && source->limits_report(source->ctx, ended, out, ret);
}

static void limits_api_print_report(struct limits_report *report, struct query_form form,
                                    struct buf *out)
{
    report->columns = form.columns;
    if (form.format == QUERY_FORMAT_JSON) {
        struct json_writer w = json_writer_on(out);
        limits_report_print_json(report, /* most= */ 0, &w);
    } else {
        limits_report_print_text(report, form.format == QUERY_FORMAT_WIDE, out);
    }
}

void limits_api_print(const struct web_source *source, struct loop *loop, struct query_form form,
                      struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct limits_report report;
    if (!limits_api_report(source, /* ended= */ false, &tmp, &report)) {
        return;
    }
    report.now = web_source_wall(source, loop);
    if (form.format != QUERY_FORMAT_JSON) {
        if (report.limit_n == 0 && report.claim_n == 0) {
            return;
        }
        buf_add(out, STR("\n"));
    }
    limits_api_print_report(&report, form, out);
}

void limits_api_print_brief(const struct web_source *source, struct json_writer *w)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct limits_report limits_report;
    if (limits_api_report(source, /* ended= */ false, &tmp, &limits_report)) {
        limits_report_print_json(&limits_report, LIMITS_API_SHOWN, w);
    } else {
        jw_null(w);
    }
}

bool limits_api_print_changes(struct limits_api_sent *p, const struct web_source *source,
                              struct loop *loop, struct buf *out)
{
    static const uint64_t key[2] = { 0, 0 }; /* compared with itself over time, by nobody else */
    uint64_t version =
        source->limits_report != NULL ? source->limits_report_version(source->ctx) : 0;
    if (version == p->version || loop_now(loop) - p->sent_at < LIMITS_API_EVERY) {
        return false;
    }
    struct json_writer w = json_writer_on(out);
    limits_api_print_brief(source, &w);
    uint64_t hash = map_hash(key, buf_str(out));
    bool changed = hash != p->hash;
    *p = (struct limits_api_sent){ .version = version, .hash = hash, .sent_at = loop_now(loop) };
    return changed;
}

/* ── a node's claims ───────────────────────────────────────────────────────────────────────── */

static struct str claim_limits_text(const struct limits_report_claim *c, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < c->limit_n; i++) {
        buf_printf(&text, "%s" STR_FMT, i > 0 ? ", " : "", STR_ARG(c->limits[i]));
    }
    return arena_str(out, buf_str(&text));
}

static void claim_report(const struct limits_report_claim *c, struct arena *out,
                         struct node_report_claim *ret)
{
    bool profile = limits_report_is_profile(c->name);
    struct str who = limits_report_owner_text(c->name, c->client, out);
    struct str words = c->waits ? c->message : c->phase;
    if (!c->waits && str_eq(c->phase, STR("Preparing")) && c->message.n > 0) {
        /* What the preparation waits for, such as the pod that does not go. */
        words = arena_printf(out, STR_FMT ": " STR_FMT, STR_ARG(c->phase), STR_ARG(c->message));
    }
    *ret = (struct node_report_claim){
        .who = profile ? who : arena_concat(out, STR("request "), who),
        .holds = !c->waits,
        /* The report of the node's profile says what it waits for. */
        .words = profile && c->waits ? STR_NONE : arena_str(out, words),
        .until = arena_str(out, c->until),
        .limits = claim_limits_text(c, out),
        .since = c->since,
        .deadline = c->deadline,
        .at_deadline = c->at_deadline,
    };
}

void limits_api_claims(const struct web_source *source, struct arena *out,
                       struct node_report *report)
{
    struct limits_report limits_report;
    if (!limits_api_report(source, /* ended= */ false, out, &limits_report)) {
        return;
    }
    report->claims = ARENA_ARRAY(out, struct node_report_claim, limits_report.claim_n + 1);
    for (int waits = 0; waits <= 1; waits++) {
        for (uint32_t i = 0; i < limits_report.claim_n; i++) {
            const struct limits_report_claim *c = &limits_report.claims[i];
            if (c->waits == (waits == 1) && str_eq(c->target, report->node) &&
                str_eq(c->type, target_type_name(TARGET_NODE)) &&
                report->claim_n < NODE_REPORT_ITEMS_MAX) {
                claim_report(c, out, &report->claims[report->claim_n++]);
            }
        }
    }
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static bool limits_api_apply_query(struct limits_report *limits_report,
                                   struct limits_api_query query, struct arena *tmp)
{
    switch (query.about) {
    case LIMITS_REPORT_ALL:
        break;
    case LIMITS_REPORT_REQUEST:
        return limits_report_only_request(limits_report, query.name, tmp);
    case LIMITS_REPORT_LIMIT:
        return limits_report_only_limit(limits_report, query.name);
    }
    return true;
}

void limits_api_reply(const struct web_source *source, struct loop *loop,
                      struct limits_api_query query, struct inbound_exchange *x)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct limits_report limits_report;
    if (!limits_api_report(source, query.about == LIMITS_REPORT_REQUEST, &tmp, &limits_report)) {
        http_reply_error(x, 404,
                         STR("this cluster knows no limits: 'drydock crds | kubectl apply -f -'"));
        return;
    }
    if (!limits_api_apply_query(&limits_report, query, &tmp)) {
        http_reply_error(x, 404,
                         arena_printf(&tmp, "there is no %s '" STR_FMT "'",
                                      query.about == LIMITS_REPORT_LIMIT ? "limit" : "request",
                                      STR_ARG(query.name)));
        return;
    }
    limits_report.now = web_source_wall(source, loop);
    limits_api_print_report(&limits_report, query.form, &out);
    http_reply_report(x, query.form.format, &out);
}
