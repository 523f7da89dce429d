#include "web/fleet_document.h"

#include "base/alloc.h"
#include "format/json_writer.h"
#include "profile/fleet_report.h"
#include "web/http_reply.h"
#include "web/limits_api.h"

struct fleet_document {
    struct list link;
    struct fleet_documents *all;
    enum fleet_document_kind kind;
    enum query_format format;
    struct inbound_exchange *x; /* borrowed: until it is answered or closed */
    struct loop_timer timer;
    struct arena names;
    struct str *items;
    uint32_t n;
    uint32_t cap;
    uint32_t at;
    struct buf out;
    struct json_writer writer;
    struct arena memory; /* of `report` */
    struct fleet_report report;
    struct buf board;
};

static void fleet_document_free(void *ctx)
{
    struct fleet_document *s = ctx;
    list_del(&s->link);
    loop_timer_done(&s->timer);
    arena_done(&s->names);
    arena_done(&s->memory);
    buf_done(&s->out);
    buf_done(&s->board);
    alloc_free(s);
}

/* Notes the names first; the nodes are explained slice by slice. */
static bool fleet_document_name(void *ctx, struct str name, uint64_t version)
{
    (void)version; /* every node is explained */
    struct fleet_document *s = ctx;
    if (s->n == s->cap) {
        ARENA_GROW(&s->names, s->items, s->n, s->cap);
    }
    s->items[s->n++] = arena_str(&s->names, name);
    return false;
}

static void fleet_document_begin(struct fleet_document *s)
{
    const struct web_source *source = s->all->source;
    s->writer = json_writer_on(&s->out);
    if (s->kind == FLEET_DOCUMENT_INFO) {
        jw_arr(&s->writer);
    } else {
        struct web_status status = { 0 };
        source->status(source->ctx, &status);
        s->report = (struct fleet_report){
            .version = STR(DRYDOCK_VERSION),
            .title = arena_str(&s->memory, status.title),
            .leader = arena_str(&s->memory, status.leader),
            .why = status.ready ? STR_NONE : arena_str(&s->memory, status.why),
            .config_file = arena_str(&s->memory, status.config_file),
            .config_error = arena_str(&s->memory, status.config_error),
            .config_loaded = status.config_loaded,
            .now = web_source_wall(source, s->all->loop),
        };
        for (uint32_t i = 0; i < status.profile_count; i++) {
            (void)fleet_report_profile(&s->report, &s->memory, status.profiles[i]);
        }
    }
    source->each_node(source->ctx, &(struct web_visit){ .wants = fleet_document_name, .ctx = s });
}

static void fleet_document_print(struct fleet_document *s)
{
    if (s->format == QUERY_FORMAT_JSON) {
        s->report.board = buf_str(&s->board);
        fleet_report_print_json(&s->report, &s->writer);
    } else {
        fleet_report_print_text(
            &s->report, s->format == QUERY_FORMAT_WIDE ? NODE_REPORT_WIDE : NODE_REPORT_TEXT,
            &s->out);
        buf_add(&s->out, buf_str(&s->board));
        s->out.full = s->out.full || s->board.full;
    }
}

static void fleet_document_answer(struct fleet_document *s)
{
    if (s->kind == FLEET_DOCUMENT_INFO) {
        jw_arr_end(&s->writer);
    } else {
        fleet_report_sort(&s->report);
        if (s->kind == FLEET_DOCUMENT_STATUS) {
            limits_api_print(s->all->source, s->all->loop, s->format, &s->board);
        }
        fleet_document_print(s);
    }
    http_reply_report(s->x, s->format, &s->out);
    fleet_document_free(s);
}

static void fleet_document_turn(void *ctx)
{
    struct fleet_document *s = ctx;
    const struct web_source *source = s->all->source;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    uint32_t end = MIN(s->n, s->at + FLEET_DOCUMENT_SLICE);
    for (; s->at < end; s->at++) {
        struct node_report report;
        arena_reset(&tmp);
        if (!source->report(source->ctx, s->items[s->at], &tmp, &report)) {
            continue;
        }
        if (s->kind != FLEET_DOCUMENT_INFO) {
            fleet_report_add(&s->report, &report, &s->memory);
        } else if (report.updated != 0 || report.error.n > 0) {
            /* As the original: a node is listed once it has been looked at. */
            node_report_print_info(&report, &s->writer);
        }
    }
    if (s->at < s->n) {
        loop_timer_set(&s->timer, loop_now(s->all->loop));
    } else {
        fleet_document_answer(s);
    }
}

void fleet_document_start(struct fleet_documents *all, enum fleet_document_kind kind,
                          enum query_format format, struct inbound_exchange *x)
{
    ASSERT(kind != FLEET_DOCUMENT_INFO || format == QUERY_FORMAT_JSON);
    struct fleet_document *s = ALLOC_NEW(struct fleet_document);
    s->all = all;
    s->kind = kind;
    s->format = format;
    s->x = x;
    list_add(&all->running, &s->link);
    loop_timer_init(&s->timer, all->loop, fleet_document_turn, s);
    x->on_close = fleet_document_free;
    x->on_close_ctx = s;
    fleet_document_begin(s);
    fleet_document_turn(s);
}

void fleet_documents_init(struct fleet_documents *s, struct loop *loop,
                          const struct web_source *source)
{
    *s = (struct fleet_documents){ .loop = loop, .source = source };
    list_init(&s->running);
}

void fleet_documents_done(struct fleet_documents *s)
{
    LIST_EACH (&s->running, item) {
        struct fleet_document *one = CONTAINER_OF(item, struct fleet_document, link);
        one->x->on_close = NULL;
        fleet_document_free(one);
    }
}
