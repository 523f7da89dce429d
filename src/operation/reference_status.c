#include "operation/reference_status.h"

#include "base/alloc.h"
#include "base/timestamp.h"
#include "format/mergepatch.h"

#define CONDITION_TEXT_MAX 512u /* the schema's */

/* After a conflict the watch brings the newer object. The status is for people, and can wait. */
static const struct writer_rules reference_rules = {
    .conflict = { SECONDS(1), MINUTES(1) },
    .absent = { SECONDS(1), MINUTES(1) },
    .refused = { SECONDS(10), MINUTES(5) },
    .failed = { SECONDS(1), MINUTES(1) },
};

void reference_set_time(struct tree *status, const char *key, usec_t at, struct arena *tmp)
{
    char text[TIMESTAMP_TEXT_MAX];
    if (at <= 0 || at == USEC_NEVER) {
        (void)tree_del(status, str_from(key)); /* may not be there */
    } else {
        tree_set(tmp, status, str_from(key), tree_str(tmp, timestamp_print_seconds(at, text)));
    }
}

void reference_set_condition(struct reference *r, struct tree *status,
                             const struct status_condition *condition, struct arena *tmp)
{
    struct tree *list = tree_get(status, STR("conditions"));
    struct status_condition cut = *condition;
    cut.message = str_sub(cut.message, 0, MIN(cut.message.n, (size_t)CONDITION_TEXT_MAX));
    if (tree_kind(list) != JARR) {
        list = tree_arr(tmp);
        tree_set(tmp, status, STR("conditions"), list);
    }
    status_condition_set(list, &cut, r->kind->meta(r->item->object)->generation, r->o->now, tmp);
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void reference_on_written(void *ctx, const struct api_reply *reply)
{
    struct reference *r = ctx;
    struct operations *o = r->o;
    CLEANUP(writer_reply_done)
    struct writer_reply got;
    o->in_flight--;
    enum retry_verdict verdict = writer_on_reply(&r->writer, reply, r->store, r->item->name, &got);
    if (verdict != RETRY_DONE) {
        r->composed = NULL;
    }
    if (verdict != RETRY_DONE && verdict != RETRY_OBSERVE && verdict != RETRY_ABSENT) {
        log_warn(o->log, "the status of an object could not be written",
                 KV_TEXT("kind", r->store->kind->name), KV_STR("name", r->item->name),
                 KV_ERR(&got.err));
    }
    operations_schedule(o);
    core_written(o->core);
}

static void reference_send(struct reference *r, const struct tree *patch)
{
    struct operations *o = r->o;
    buf_reset(&o->path);
    buf_add(&o->path, str_from(r->kind->path));
    buf_add_char(&o->path, '/');
    client_add_segment(&o->path, r->item->name);
    buf_add(&o->path, STR("/status"));
    buf_reset(&o->body);
    struct json_writer w = json_writer_on(&o->body);
    jw_obj(&w);
    writer_add_version(&w, r->item->version);
    jw_key(&w, STR("status"));
    tree_write(patch, &w);
    jw_obj_end(&w);
    o->in_flight++;
    writer_send(&r->writer,
                &(struct api_request){
                    .verb = API_PATCH, .path = buf_str(&o->path), .body = buf_str(&o->body) },
                r->item->version, reference_on_written, r);
}

/* True when it may be composed and written now; otherwise a turn comes when it may. */
static bool reference_may_send(struct reference *r)
{
    struct operations *o = r->o;
    usec_t at = MAX(writer_ready_at(&r->writer, r->item->version), r->composed_at + STATUS_EVERY);
    if (r->writer.call != NULL || !operations_may_send(o)) {
        return false; /* an answer brings the next turn */
    }
    if (at > loop_now(o->loop)) {
        loop_timer_pull(&o->turn, at);
        return false;
    }
    return true;
}

static void reference_write(struct reference *r)
{
    struct operations *o = r->o;
    struct arena *tmp = &o->tmp;
    struct err err = { 0 };
    struct tree *old = NULL;
    struct tree *patch = NULL;
    uint64_t sources = r->kind->sources(o);
    bool same = r->composed == r->item->object && r->sources == sources;
    operations_wake_at(o, r->until > o->now ? r->until : USEC_NEVER);
    if ((same && o->now < r->until) || !reference_may_send(r) ||
        tree_parse(r->kind->status(r->item->object), tmp, &old, &err) < 0) {
        return;
    }
    struct tree *status = tree_clone(tmp, old);
    r->until = USEC_NEVER;
    if (!r->kind->compose(r, status, &r->until, tmp)) {
        r->composed = NULL;
        return;
    }
    r->composed = r->item->object;
    r->composed_at = loop_now(o->loop);
    r->sources = sources;
    operations_wake_at(o, r->until);
    tree_set(tmp, status, STR("observedGeneration"),
             tree_i64(tmp, r->kind->meta(r->item->object)->generation));
    if (mergepatch_create(old, status, tmp, &patch, &err) == 0 && patch->n > 0) {
        reference_send(r, patch);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static struct reference *reference_of(struct operations *o, struct store *store,
                                      struct store_item *item, const struct reference_kind *kind)
{
    struct reference *r = item->extra;
    if (r == NULL) {
        r = ALLOC_NEW(struct reference);
        r->o = o;
        r->store = store;
        r->item = item;
        r->kind = kind;
        r->composed_at = -STATUS_EVERY;
        r->until = USEC_NEVER;
        writer_init(&r->writer, &o->core->client, &reference_rules);
        item->extra = r;
    }
    return r;
}

static void references_write_all(struct operations *o, struct store *store,
                                 const struct reference_kind *kind)
{
    MAP_EACH (&store->items, entry) {
        reference_write(reference_of(o, store, map_item_value(entry), kind));
    }
}

void references_write(struct operations *o)
{
    references_write_all(o, &o->windows.store, &window_reference);
    references_write_all(o, &o->series.store, &series_reference);
    references_write_all(o, &o->templates.store, &template_reference);
}

void reference_on_gone(void *ctx, struct store_item *item)
{
    struct operations *o = ctx;
    struct reference *r = STEAL(item->extra);
    if (r == NULL) {
        return;
    }
    o->in_flight -= r->writer.call != NULL ? 1 : 0;
    writer_cancel(&r->writer);
    alloc_free(r);
}

void references_free(struct operations *o)
{
    struct store *const all[] = { &o->windows.store, &o->series.store, &o->templates.store };
    for (uint32_t i = 0; i < ARRAY_LEN(all); i++) {
        MAP_EACH (&all[i]->items, entry) {
            reference_on_gone(o, map_item_value(entry));
        }
    }
}
