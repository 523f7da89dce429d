#include "web/fleet_document.h"

#include "base/alloc.h"
#include "format/json_writer.h"
#include "profile/fleet_report.h"
#include "web/http_reply.h"
#include "web/limits_api.h"
#include "web/operations_api.h"

/* A request for a document. */
struct fleet_reader {
    struct list link; /* of those that wait, or of the document's readers */
    struct fleet_documents *all;
    enum fleet_document_kind kind;
    struct query_form form;
    struct inbound_exchange *x; /* borrowed: until it is answered or closed */
};

struct fleet_document {
    struct fleet_documents *all;
    enum fleet_document_kind kind;
    struct query_form form;
    struct list readers;
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
    struct buf operations;
};

static void fleet_document_free(struct fleet_document *s)
{
    s->all->running = NULL;
    loop_timer_done(&s->timer);
    arena_done(&s->names);
    arena_done(&s->memory);
    buf_done(&s->out);
    buf_done(&s->board);
    buf_done(&s->operations);
    alloc_free(s);
}

/* Those that wait are not served from within: their requests may be just coming in. */
static void fleet_documents_schedule(struct fleet_documents *all)
{
    if (all->running == NULL && !list_empty(&all->waiting)) {
        loop_timer_set(&all->next, loop_now(all->loop));
    }
}

static void fleet_reader_free(struct fleet_reader *r)
{
    list_del(&r->link);
    alloc_free(r);
}

/* The peer has gone. A document that nobody waits for any more is not finished. */
static void fleet_reader_closed(void *ctx)
{
    struct fleet_reader *r = ctx;
    struct fleet_documents *all = r->all;
    fleet_reader_free(r);
    if (all->running != NULL && list_empty(&all->running->readers)) {
        fleet_document_free(all->running);
        fleet_documents_schedule(all);
    }
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
            .pause = arena_str(&s->memory, status.pause),
            .paused = arena_str(&s->memory, status.paused),
            .denied = arena_str(&s->memory, status.denied),
            .config_file = arena_str(&s->memory, status.config_file),
            .config_error = arena_str(&s->memory, status.config_error),
            .config_warnings = arena_str(&s->memory, status.config_warnings),
            .config_loaded = status.config_loaded,
            .now = web_source_wall(source, s->all->loop),
            .columns = s->form.columns,
        };
        s->report.activities = ARENA_ARRAY(&s->memory, struct activity, status.integration_count);
        for (uint32_t i = 0; i < status.integration_count; i++) {
            s->report.activities[s->report.activity_n++] =
                activity_copy(&status.integrations[i], &s->memory);
        }
        for (uint32_t i = 0; i < status.profile_count; i++) {
            (void)fleet_report_profile(&s->report, &s->memory, status.profiles[i]);
        }
    }
    source->each_node(source->ctx, &(struct web_visit){ .wants = fleet_document_name, .ctx = s });
}

static void fleet_document_print(struct fleet_document *s)
{
    if (s->form.format == QUERY_FORMAT_JSON) {
        s->report.board = buf_str(&s->board);
        s->report.operations = buf_str(&s->operations);
        fleet_report_print_json(&s->report, &s->writer);
    } else {
        fleet_report_print_text(
            &s->report, s->form.format == QUERY_FORMAT_WIDE ? NODE_REPORT_WIDE : NODE_REPORT_TEXT,
            &s->out);
        buf_add(&s->out, buf_str(&s->board));
        buf_add(&s->out, buf_str(&s->operations));
        s->out.full = s->out.full || s->board.full || s->operations.full;
    }
}

static void fleet_document_answer(struct fleet_document *s)
{
    if (s->kind == FLEET_DOCUMENT_INFO) {
        jw_arr_end(&s->writer);
    } else {
        fleet_report_sort(&s->report);
        if (s->kind == FLEET_DOCUMENT_STATUS) {
            limits_api_print(s->all->source, s->all->loop, s->form, &s->board);
            operations_api_print(s->all->source, s->form, &s->operations);
        }
        fleet_document_print(s);
    }
    struct list readers;
    list_move(&readers, &s->readers);
    bool good = !s->out.full;
    enum query_format format = s->form.format;
    CLEANUP(shared_bytes_unrefp)
    struct shared_bytes *bytes = good ? shared_bytes_take(&s->out) : NULL;
    struct fleet_documents *all = s->all;
    fleet_document_free(s);
    while (!list_empty(&readers)) {
        struct fleet_reader *r = CONTAINER_OF(readers.next, struct fleet_reader, link);
        struct inbound_exchange *x = r->x;
        fleet_reader_free(r);
        http_reply_report_shared(x, format, bytes);
    }
    fleet_documents_schedule(all);
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

/* Makes the document that the first one waits for, for all who wait for the same. */
static void fleet_documents_next(void *ctx)
{
    struct fleet_documents *all = ctx;
    if (all->running != NULL || list_empty(&all->waiting)) {
        return;
    }
    const struct fleet_reader *first = CONTAINER_OF(all->waiting.next, struct fleet_reader, link);
    struct fleet_document *s = ALLOC_NEW(struct fleet_document);
    s->all = all;
    s->kind = first->kind;
    s->form = first->form;
    list_init(&s->readers);
    loop_timer_init(&s->timer, all->loop, fleet_document_turn, s);
    LIST_EACH (&all->waiting, item) {
        const struct fleet_reader *r = CONTAINER_OF(item, struct fleet_reader, link);
        if (r->kind == s->kind && r->form.format == s->form.format &&
            r->form.columns == s->form.columns) {
            list_del(item);
            list_add(&s->readers, item);
        }
    }
    all->running = s;
    fleet_document_begin(s);
    fleet_document_turn(s);
}

void fleet_document_start(struct fleet_documents *all, enum fleet_document_kind kind,
                          struct query_form form, struct inbound_exchange *x)
{
    ASSERT(kind != FLEET_DOCUMENT_INFO || form.format == QUERY_FORMAT_JSON);
    struct fleet_reader *r = ALLOC_NEW(struct fleet_reader);
    *r = (struct fleet_reader){ .all = all, .kind = kind, .form = form, .x = x };
    list_add(&all->waiting, &r->link);
    x->on_close = fleet_reader_closed;
    x->on_close_ctx = r;
    fleet_documents_next(all);
}

void fleet_documents_init(struct fleet_documents *s, struct loop *loop,
                          const struct web_source *source)
{
    *s = (struct fleet_documents){ .loop = loop, .source = source };
    list_init(&s->waiting);
    loop_timer_init(&s->next, loop, fleet_documents_next, s);
}

static void fleet_readers_cancel(struct list *readers)
{
    LIST_EACH (readers, item) {
        struct fleet_reader *r = CONTAINER_OF(item, struct fleet_reader, link);
        r->x->on_close = NULL;
        fleet_reader_free(r);
    }
}

void fleet_documents_done(struct fleet_documents *s)
{
    if (s->running != NULL) {
        fleet_readers_cancel(&s->running->readers);
        fleet_document_free(s->running);
    }
    fleet_readers_cancel(&s->waiting);
    loop_timer_done(&s->next);
}
