#include "core/node_write.h"

static const struct writer_rules node_write_rules = {
    .conflict = { MSECONDS(500), MINUTES(5) },
    .absent = { MSECONDS(500), MINUTES(5) },
    .refused = { SECONDS(8), MINUTES(5) },
    .failed = { MSECONDS(500), MINUTES(5) },
    .urgent = true,
};

void node_write_init(struct node_write *w, struct core *core, struct str node,
                     void (*on_change)(void *ctx), void *ctx)
{
    *w = (struct node_write){ .core = core, .on_change = on_change, .ctx = ctx };
    writer_init(&w->writer, &core->client, &node_write_rules);
    buf_add(&w->name, node);
}

void node_write_done(struct node_write *w)
{
    writer_cancel(&w->writer);
    buf_done(&w->name);
}

bool node_write_is_busy(const struct node_write *w)
{
    return w->writer.call != NULL;
}

static void node_write_add(struct node_write_wish *wish, const struct node_write_edit *edit)
{
    ASSERT(wish->n < NODE_WRITE_EDITS_MAX);
    wish->edits[wish->n++] = *edit;
}

void node_write_label(struct node_write_wish *wish, struct str key, struct str value)
{
    node_write_add(
        wish, &(struct node_write_edit){ .key = key, .value = value, .remove = value.p == NULL });
}

void node_write_annotation(struct node_write_wish *wish, struct str key, struct str value)
{
    node_write_add(wish,
                   &(struct node_write_edit){
                       .annotation = true, .key = key, .value = value, .remove = value.p == NULL });
}

/* ── what is missing ───────────────────────────────────────────────────────────────────────── */

static bool edit_is_done(const struct node *node, const struct node_write_edit *e)
{
    struct str is = e->annotation ? node_annotation(node, e->key) : node_label(node, e->key);
    return e->remove ? is.p == NULL : is.p != NULL && str_eq(is, e->value);
}

static bool cordon_is_done(const struct node *node, const struct node_write_wish *wish)
{
    return wish->cordon == NODE_WRITE_CORDON_KEEP ||
           node->unschedulable == (wish->cordon == NODE_WRITE_CORDON);
}

static bool wish_is_done(const struct node *node, const struct node_write_wish *wish)
{
    bool done = cordon_is_done(node, wish);
    for (uint32_t i = 0; i < wish->n; i++) {
        done = done && edit_is_done(node, &wish->edits[i]);
    }
    return done;
}

/* ── patch ─────────────────────────────────────────────────────────────────────────────────── */

static void print_edits(const struct node *node, const struct node_write_wish *wish,
                        bool annotations, struct json_writer *w)
{
    bool any = false;
    for (uint32_t i = 0; i < wish->n; i++) {
        const struct node_write_edit *e = &wish->edits[i];
        if (e->annotation != annotations || edit_is_done(node, e)) {
            continue;
        }
        if (!any) {
            jw_key(w, annotations ? STR("annotations") : STR("labels"));
            jw_obj(w);
            any = true;
        }
        jw_key(w, e->key);
        if (e->remove) {
            jw_null(w);
        } else {
            jw_str(w, e->value);
        }
    }
    if (any) {
        jw_obj_end(w);
    }
}

static void print_patch(const struct store_item *item, const struct node_write_wish *wish,
                        struct buf *out)
{
    const struct node *node = item->object;
    char text[24];
    int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)item->version);
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    print_edits(node, wish, /* annotations= */ true, &w);
    print_edits(node, wish, /* annotations= */ false, &w);
    jw_pair(&w, "resourceVersion", (struct str){ text, (size_t)n });
    jw_obj_end(&w);
    if (!cordon_is_done(node, wish)) {
        jw_key(&w, STR("spec"));
        jw_obj(&w);
        jw_key(&w, STR("unschedulable"));
        if (wish->cordon == NODE_WRITE_CORDON) {
            jw_bool(&w, true);
        } else {
            jw_null(&w); /* as the original, and as the API server leaves the field out */
        }
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
}

static void node_write_on_reply(void *ctx, const struct api_reply *reply)
{
    struct node_write *w = ctx;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    enum retry_verdict verdict =
        writer_on_reply(&w->writer, reply, &w->core->nodes.store, buf_str(&w->name), &r);
    w->err = (struct err){ 0 };
    if (verdict != RETRY_DONE) {
        w->err = r.err;
    }
    core_written(w->core);
    w->on_change(w->ctx);
}

static void node_write_send(struct node_write *w, enum api_verb verb, uint64_t version,
                            struct str body)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/nodes/"));
    client_add_segment(&path, buf_str(&w->name));
    w->sent += verb == API_PATCH ? 1 : 0;
    writer_send(&w->writer,
                &(struct api_request){ .verb = verb, .path = buf_str(&path), .body = body },
                version, node_write_on_reply, w);
}

enum node_write_result node_write_step(struct node_write *w, const struct store_item *item,
                                       const struct node_write_wish *wish)
{
    usec_t ready = writer_ready_at(&w->writer, item->version);
    if (w->writer.call != NULL) {
        return NODE_WRITE_PENDING;
    }
    if (wish_is_done(item->object, wish)) {
        w->err = (struct err){ 0 };
        return NODE_WRITE_DONE;
    }
    if (loop_now(w->core->loop) < ready) {
        w->retry_at = ready;
        return NODE_WRITE_WAITS;
    }
    if (writer_must_read(&w->writer, item->version)) {
        node_write_send(w, API_GET, item->version, STR_NONE);
        return NODE_WRITE_PENDING;
    }
    CLEANUP(buf_done)
    struct buf body = { 0 };
    print_patch(item, wish, &body);
    node_write_send(w, API_PATCH, item->version, buf_str(&body));
    return NODE_WRITE_PENDING;
}
