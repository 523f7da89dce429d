#include "web/limits_api.h"

#include "base/map.h"
#include "format/json_writer.h"
#include "web/http_reply.h"

static bool panel_board(const struct web_source *source, bool ended, struct arena *out,
                        struct board *ret)
{
    return source->board != NULL && source->board(source->ctx, ended, out, ret);
}

void panel_print(const struct web_source *source, struct loop *loop, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct board board;
    if (panel_board(source, /* ended= */ false, &tmp, &board)) {
        struct json_writer w = json_writer_on(out);
        board.now = web_source_wall(source, loop);
        board_print_json(&board, /* most= */ 0, &w);
    }
}

void panel_print_brief(const struct web_source *source, struct json_writer *w)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct board board;
    if (panel_board(source, /* ended= */ false, &tmp, &board)) {
        board_print_json(&board, PANEL_SHOWN, w);
    } else {
        jw_null(w);
    }
}

bool panel_news(struct panel *p, const struct web_source *source, struct loop *loop,
                struct buf *out)
{
    static const uint64_t key[2] = { 0, 0 }; /* compared with itself over time, by nobody else */
    uint64_t version = source->board != NULL ? source->board_version(source->ctx) : 0;
    if (version == p->version || loop_now(loop) - p->told < PANEL_EVERY) {
        return false;
    }
    struct json_writer w = json_writer_on(out);
    panel_print_brief(source, &w);
    uint64_t hash = map_hash(key, buf_str(out));
    bool news = hash != p->hash;
    *p = (struct panel){ .version = version, .hash = hash, .told = loop_now(loop) };
    return news;
}

/* ── a node's claims ───────────────────────────────────────────────────────────────────────── */

static struct str claim_limits(const struct board_claim *c, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < c->limit_n; i++) {
        buf_printf(&text, "%s" STR_FMT, i > 0 ? ", " : "", STR_ARG(c->limits[i]));
    }
    return arena_str(out, buf_str(&text));
}

static void claim_report(const struct board_claim *c, struct arena *out, struct report_claim *ret)
{
    bool profile = board_is_profile(c->name);
    struct str who = board_who(c->name, c->client, out);
    struct str words = c->waits ? c->message : c->phase;
    *ret = (struct report_claim){
        .who = profile ? who : arena_concat(out, STR("request "), who),
        .holds = !c->waits,
        /* What the node's profile waits for is said there already. */
        .words = profile && c->waits ? STR_NONE : arena_str(out, words),
        .until = arena_str(out, c->until),
        .limits = claim_limits(c, out),
        .since = c->since,
        .deadline = c->deadline,
    };
}

void panel_claims(const struct web_source *source, struct arena *out, struct report *report)
{
    struct board board;
    if (!panel_board(source, /* ended= */ false, out, &board)) {
        return;
    }
    report->claims = ARENA_ARRAY(out, struct report_claim, board.claim_n + 1);
    for (int waits = 0; waits <= 1; waits++) {
        for (uint32_t i = 0; i < board.claim_n; i++) {
            const struct board_claim *c = &board.claims[i];
            if (c->waits == (waits == 1) && str_eq(c->target, report->node) &&
                str_eq(c->type, target_type_name(TARGET_NODE)) &&
                report->claim_n < REPORT_PARTS_MAX) {
                claim_report(c, out, &report->claims[report->claim_n++]);
            }
        }
    }
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static bool panel_narrow(struct board *board, struct panel_query query, struct arena *tmp)
{
    switch (query.about) {
    case BOARD_ALL:
        break;
    case BOARD_REQUEST:
        return board_narrow_to_request(board, query.name, tmp);
    case BOARD_LIMIT:
        return board_narrow_to_limit(board, query.name);
    }
    return true;
}

void panel_reply(const struct web_source *source, struct loop *loop, struct panel_query query,
                 struct inbound_exchange *x)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct board board;
    if (!panel_board(source, query.about == BOARD_REQUEST, &tmp, &board)) {
        answer_error(x, 404,
                     STR("this cluster knows no limits: 'drydock crds | kubectl apply -f -'"));
        return;
    }
    if (!panel_narrow(&board, query, &tmp)) {
        answer_error(x, 404,
                     arena_printf(&tmp, "there is no %s '" STR_FMT "'",
                                  query.about == BOARD_LIMIT ? "limit" : "request",
                                  STR_ARG(query.name)));
        return;
    }
    struct json_writer w = json_writer_on(&out);
    board.now = web_source_wall(source, loop);
    board_print_json(&board, /* most= */ 0, &w);
    answer_document(x, &out);
}
