/*
 * What deleted MaintenanceRequests leave behind: the cordon of a request whose deletion was seen,
 * and marks on nodes of requests that nobody knows, for which the server is asked first.
 */
#include "base/alloc.h"
#include "request/requests_internal.h"

#define LIVE_UIDS_PAGE 500
#define LIVE_UIDS_EVERY                                                                            \
    SECONDS(10) /* between two lists: the watch may not have shown a new request yet */

/* ── requests that are gone (E20) ──────────────────────────────────────────────────────────── */

void request_cleanup_begin(struct tracked_request *c)
{
    ASSERT(c->item != NULL);
    tracked_stop_work(c);
    c->item = NULL;
    list_del(&c->link);
    list_add(&c->r->deleted, &c->link);
    tracked_mark_dirty(c);
}

void request_cleanup_step(struct tracked_request *c)
{
    tracked_finish_undo(c);
    if (tracked_node_marked(c)) {
        tracked_undo(c, c->uncordon);
        return;
    }
    if (tracked_end_ask(c)) {
        tracked_free(c);
    }
}

/* ── marks of requests that nobody knows ───────────────────────────────────────────────────── */

static bool mark_is_known(const struct requests *r, struct str uid)
{
    if (map_find(&r->by_uid, uid) != NULL) {
        return true;
    }
    LIST_EACH (&r->unknown_marks, link) {
        if (str_eq(CONTAINER_OF(link, struct unknown_mark, link)->uid, uid)) {
            return true;
        }
    }
    return false;
}

static bool unknown_mark_exists(const struct requests *r)
{
    MAP_EACH (&r->config.nodes->items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct str mark = node_annotation(item->object, KEY_REQUEST_CORDON);
        if (mark.n > 0 && !mark_is_known(r, mark)) {
            return true;
        }
    }
    return false;
}

static void unknown_mark_free(struct unknown_mark *s)
{
    prepare_undo_free(s->undo);
    list_del(&s->link);
    alloc_free(s);
}

static void unknown_mark_on_undone(void *ctx)
{
    requests_schedule(ctx);
}

static void unknown_mark_undo(struct requests *r, struct str uid, struct str node)
{
    struct unknown_mark *s = alloc_bytes(sizeof(*s) + uid.n + node.n);
    memcpy(s->bytes, uid.p, uid.n);
    memcpy(s->bytes + uid.n, node.p, node.n);
    s->uid = (struct str){ .p = s->bytes, .n = uid.n };
    s->node = (struct str){ .p = s->bytes + uid.n, .n = node.n };
    list_add(&r->unknown_marks, &s->link);
    log_info(r->config.log, "Undoing the cordon of a request that is gone", KV_STR("node", node),
             KV_STR("uid", uid));
    s->undo =
        prepare_undo(r->preparer, s->uid, s->node, /* uncordon= */ true, unknown_mark_on_undone, r);
}

/* All requests have been read from the server: a mark of any other is removed. */
static void unknown_marks_undo_all(struct requests *r)
{
    bool unsure = false;
    MAP_EACH (&r->config.nodes->items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct str mark = node_annotation(item->object, KEY_REQUEST_CORDON);
        if (mark.n == 0 || mark_is_known(r, mark)) {
            continue;
        }
        if (map_find(&r->live_uids, mark) != NULL) {
            unsure = true; /* it exists: our watch is behind */
        } else {
            unknown_mark_undo(r, mark, item->name);
        }
    }
    map_done(&r->live_uids);
    r->unknown_mark_seen = unsure;
}

static int live_uids_read(struct requests *r, struct str body, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *list = NULL;
    int result = json_parse(body, 0, &tmp, &list, err);
    if (result < 0) {
        return result;
    }
    const struct jval *items = jval_get(list, STR("items"));
    if (jval_kind(items) != JARR) {
        return err_set(err, ERR_PROTO, "a list without items");
    }
    JVAL_EACH (items, item) {
        struct str uid = jval_str(jval_at(item, "metadata.uid"));
        if (uid.n > 0) {
            (void)map_put(&r->live_uids, uid, r); /* only whether it is there matters */
        }
    }
    buf_reset(&r->live_uids_page);
    buf_add(&r->live_uids_page, jval_str(jval_at(list, "metadata.continue")));
    return 0;
}

static void live_uids_list(struct requests *r);

static void live_uids_on_reply(void *ctx, const struct api_reply *reply)
{
    struct requests *r = ctx;
    r->live_uids_call = NULL;
    r->in_flight--;
    enum retry_verdict verdict = client_note(r->config.client, API_GET, reply);
    struct err err = { 0 };
    if (verdict == RETRY_DONE && live_uids_read(r, reply->body, &err) == 0) {
        if (r->live_uids_page.n > 0) {
            live_uids_list(r);
        } else {
            unknown_marks_undo_all(r);
            requests_schedule(r);
        }
        return;
    }
    map_done(&r->live_uids);
    buf_reset(&r->live_uids_page);
    r->unknown_mark_seen = true;
    requests_schedule(r);
}

static void live_uids_list(struct requests *r)
{
    buf_reset(&r->path);
    buf_add(&r->path, STR(MAINTENANCE_REQUESTS_PATH));
    buf_printf(&r->path, "?limit=%d", LIVE_UIDS_PAGE);
    if (r->live_uids_page.n > 0) {
        buf_add(&r->path, STR("&continue="));
        client_add_segment(&r->path, buf_str(&r->live_uids_page));
    }
    r->in_flight++;
    r->live_uids_call = api_send(
        r->config.client->api, &(struct api_request){ .verb = API_GET, .path = buf_str(&r->path) },
        live_uids_on_reply, r);
}

void unknown_marks_check(struct requests *r)
{
    LIST_EACH (&r->unknown_marks, link) {
        struct unknown_mark *s = CONTAINER_OF(link, struct unknown_mark, link);
        if (prepare_undo_is_done(s->undo)) {
            unknown_mark_free(s);
        }
    }
    if (!r->unknown_mark_seen || r->live_uids_call != NULL) {
        return;
    }
    if (!unknown_mark_exists(r)) {
        r->unknown_mark_seen = false;
        return;
    }
    usec_t now = loop_now(r->loop);
    usec_t may =
        MAX(r->live_uids_at, client_open(r->config.client) ? 0 : client_open_at(r->config.client));
    if (now < may) {
        loop_timer_pull(&r->turn, may);
        return;
    }
    r->live_uids_at = now + LIVE_UIDS_EVERY;
    live_uids_list(r);
}

void unknown_marks_done(struct requests *r)
{
    LIST_EACH (&r->unknown_marks, link) {
        unknown_mark_free(CONTAINER_OF(link, struct unknown_mark, link));
    }
    if (r->live_uids_call != NULL) {
        api_cancel(r->config.client->api, STEAL(r->live_uids_call));
        r->in_flight--;
    }
    map_done(&r->live_uids);
    buf_reset(&r->live_uids_page);
}
