#include "base/alloc.h"
#include "request/requests_internal.h"

#define STRAY_PAGE 500
#define STRAY_AGAIN SECONDS(10) /* between two looks: what is unknown may just be new */

/* ── requests that are gone (E20) ──────────────────────────────────────────────────────────── */

void orphan_take(struct claim *c)
{
    struct requests *r = c->r;
    ASSERT(c->item != NULL);
    letter_cancel(c);
    prepare_free(STEAL(c->prepare));
    arena_reset(&c->prepare_memory);
    claim_end_safety(c);
    c->check = PHASE_CHECK_NONE;
    c->item = NULL;
    list_del(&c->writer);
    list_del(&c->link);
    list_add(&r->orphans, &c->link);
    if (prioqueue_inside(&c->wake)) {
        prioqueue_take(&r->waking, &c->wake);
    }
    claim_mark(c);
}

void orphan_step(struct claim *c)
{
    claim_tidy_undo(c);
    if (claim_marked(c)) {
        claim_undo(c, c->lift);
        return;
    }
    if (claim_end_ask(c)) {
        claim_free(c);
    }
}

/* ── marks of requests that nobody knows ───────────────────────────────────────────────────── */

static bool stray_known(const struct requests *r, struct str uid)
{
    if (map_find(&r->by_uid, uid) != NULL) {
        return true;
    }
    LIST_EACH (&r->strays, link) {
        if (str_eq(CONTAINER_OF(link, struct stray, link)->uid, uid)) {
            return true;
        }
    }
    return false;
}

static bool stray_any(const struct requests *r)
{
    MAP_EACH (&r->config.nodes->items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct str mark = node_annotation(item->object, PREPARE_MARK);
        if (mark.n > 0 && !stray_known(r, mark)) {
            return true;
        }
    }
    return false;
}

static void stray_free(struct stray *s)
{
    undo_free(s->undo);
    list_del(&s->link);
    alloc_free(s);
}

static void stray_on_done(void *ctx)
{
    struct stray *s = ctx;
    s->done = true;
    requests_soon(s->r);
}

static void stray_begin(struct requests *r, struct str uid, struct str node)
{
    struct stray *s = alloc_bytes(sizeof(*s) + uid.n + node.n);
    memcpy(s->bytes, uid.p, uid.n);
    memcpy(s->bytes + uid.n, node.p, node.n);
    s->r = r;
    s->uid = (struct str){ .p = s->bytes, .n = uid.n };
    s->node = (struct str){ .p = s->bytes + uid.n, .n = node.n };
    list_add(&r->strays, &s->link);
    log_info(r->config.log, "Undoing the cordon of a request that is gone", KV_STR("node", node),
             KV_STR("uid", uid));
    s->undo = prepare_undo(r->preparer, s->uid, s->node, /* lift= */ true, stray_on_done, s);
}

/* All requests have been read from the server: what it does not have is gone. */
static void stray_judge(struct requests *r)
{
    bool unsure = false;
    MAP_EACH (&r->config.nodes->items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct str mark = node_annotation(item->object, PREPARE_MARK);
        if (mark.n == 0 || stray_known(r, mark)) {
            continue;
        }
        if (map_find(&r->stray_live, mark) != NULL) {
            unsure = true; /* our watch is behind */
        } else {
            stray_begin(r, mark, item->name);
        }
    }
    map_done(&r->stray_live);
    r->stray_wanted = unsure;
}

static int stray_read(struct requests *r, struct str body, struct err *err)
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
            (void)map_put(&r->stray_live, uid, r); /* only whether it is there matters */
        }
    }
    buf_reset(&r->stray_page);
    buf_add(&r->stray_page, jval_str(jval_at(list, "metadata.continue")));
    return 0;
}

static void stray_ask(struct requests *r);

static void stray_on_reply(void *ctx, const struct api_reply *reply)
{
    struct requests *r = ctx;
    r->stray_call = NULL;
    r->in_flight--;
    enum retry_verdict verdict = client_note(r->config.client, API_GET, reply);
    struct err err = { 0 };
    if (verdict == RETRY_DONE && stray_read(r, reply->body, &err) == 0) {
        if (r->stray_page.n > 0) {
            stray_ask(r);
        } else {
            stray_judge(r);
            requests_soon(r);
        }
        return;
    }
    map_done(&r->stray_live);
    buf_reset(&r->stray_page);
    r->stray_wanted = true;
    requests_soon(r);
}

static void stray_ask(struct requests *r)
{
    buf_reset(&r->path);
    buf_add(&r->path, STR(MAINTENANCE_REQUESTS_PATH));
    buf_printf(&r->path, "?limit=%d", STRAY_PAGE);
    if (r->stray_page.n > 0) {
        buf_add(&r->path, STR("&continue="));
        client_add_segment(&r->path, buf_str(&r->stray_page));
    }
    r->in_flight++;
    r->stray_call = api_send(r->config.client->api,
                             &(struct api_request){ .verb = API_GET, .path = buf_str(&r->path) },
                             stray_on_reply, r);
}

void stray_look(struct requests *r)
{
    LIST_EACH (&r->strays, link) {
        struct stray *s = CONTAINER_OF(link, struct stray, link);
        if (s->done) {
            stray_free(s);
        }
    }
    if (!r->stray_wanted || r->stray_call != NULL) {
        return;
    }
    if (!stray_any(r)) {
        r->stray_wanted = false;
        return;
    }
    usec_t now = loop_now(r->loop);
    usec_t may =
        MAX(r->stray_at, client_open(r->config.client) ? 0 : client_open_at(r->config.client));
    if (now < may) {
        loop_timer_pull(&r->turn, may);
        return;
    }
    r->stray_at = now + STRAY_AGAIN;
    stray_ask(r);
}

void stray_done(struct requests *r)
{
    LIST_EACH (&r->strays, link) {
        stray_free(CONTAINER_OF(link, struct stray, link));
    }
    if (r->stray_call != NULL) {
        api_cancel(r->config.client->api, STEAL(r->stray_call));
        r->in_flight--;
    }
    map_done(&r->stray_live);
    buf_reset(&r->stray_page);
}
