/* All MaintenanceRequests: their watch, what nodes and the arbiter mean for them, and the turn. */
#include "base/alloc.h"
#include "request/requests_internal.h"

#define REJECTIONS_MAX 10000u  /* remembered; far more than any cluster has in a day */
#define REJECTION_KEPT DAYS(1) /* the longest back-off there is */

/* When a client was last refused a target. A new request of that client for that target queues
 * behind the others, too. */
struct rejection {
    usec_t at; /* wall */
};

usec_t requests_wall(const struct requests *r)
{
    return r->config.wall(r->config.ctx);
}

void requests_schedule(struct requests *r)
{
    loop_timer_pull(&r->turn, loop_now(r->loop));
}

const struct node *requests_node(const struct requests *r, struct str name)
{
    const struct store_item *item = store_find(r->config.nodes, name);
    return item == NULL ? NULL : item->object;
}

/* ── rejections ────────────────────────────────────────────────────────────────────────────── */

static struct str rejection_key(struct requests *r, const struct maintenance_request *m)
{
    return arena_printf(&r->tmp, STR_FMT "\n%d\n" STR_FMT "\n" STR_FMT, STR_ARG(m->client),
                        m->type_known ? (int)m->type : -1, STR_ARG(m->namespace),
                        STR_ARG(m->target));
}

usec_t requests_last_rejection(struct requests *r, const struct maintenance_request *m)
{
    const struct rejection *found = map_find(&r->rejected, rejection_key(r, m));
    return found == NULL ? 0 : found->at;
}

static void rejections_drop_before(struct requests *r, usec_t before)
{
    MAP_EACH (&r->rejected, item) {
        struct rejection *old = map_item_value(item);
        if (old->at < before) {
            (void)map_del(&r->rejected, map_item_name(item)); /* it is there */
            alloc_free(old);
        }
    }
}

static void rejection_remember(struct requests *r, const struct maintenance_request *m)
{
    if (m->status.rejection_time == 0) {
        return;
    }
    struct str key = rejection_key(r, m);
    struct rejection *known = map_find(&r->rejected, key);
    if (known == NULL) {
        if (map_count(&r->rejected) >= REJECTIONS_MAX) {
            rejections_drop_before(r, requests_wall(r) - REJECTION_KEPT);
        }
        if (map_count(&r->rejected) >= REJECTIONS_MAX) {
            return; /* forgotten: its next request does not queue last */
        }
        known = ALLOC_NEW(struct rejection);
        (void)map_put(&r->rejected, key, known); /* it was not there */
    }
    known->at = MAX(known->at, m->status.rejection_time);
}

/* ── observing ─────────────────────────────────────────────────────────────────────────────── */

static void requests_on_gone(void *ctx, struct store_item *item)
{
    struct requests *r = ctx;
    struct tracked_request *c = item->extra;
    if (c == NULL) {
        return;
    }
    item->extra = NULL;
    request_cleanup_begin(c);
    requests_schedule(r);
}

static void requests_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct requests *r = ctx;
    const struct maintenance_request *m = item->object;
    struct tracked_request *c = item->extra;
    rejection_remember(r, m);
    if (c != NULL && !str_eq(c->uid, m->uid)) {
        /* Deleted and created again before the watch showed it: the old request is gone. */
        item->extra = NULL;
        request_cleanup_begin(c);
        c = NULL;
        before = NULL;
    }
    if (c == NULL) {
        c = tracked_new(r, item);
        item->extra = c;
    }
    tracked_on_change(c, before);
    if (before != NULL) {
        requests_metrics_note(r, before, m);
    }
    tracked_mark_dirty(c);
}

static void requests_report_synced(struct requests *r, bool synced)
{
    if (r->reported_synced != synced) {
        r->reported_synced = synced;
        arbiter_owner_synced(r->config.arbiter, ASK_OF_REQUEST, synced);
    }
}

static void requests_on_list(void *ctx)
{
    struct requests *r = ctx;
    r->listed = false;
    requests_report_synced(r, false);
}

static void requests_on_update(void *ctx)
{
    requests_schedule(ctx);
}

static void requests_on_synced(void *ctx)
{
    struct requests *r = ctx;
    r->listed = true;
    r->crd_absent = false;
    r->unknown_mark_seen = true;
    requests_schedule(r);
}

/* A failing watch stops nothing, so there is nothing to do when the watch works again. */
static void requests_on_recovered(void *ctx UNUSED)
{
}

static void requests_on_error(void *ctx, const struct err *err)
{
    struct requests *r = ctx;
    if (err->code == ERR_NOTFOUND) {
        if (!r->crd_absent) {
            log_info(r->config.log, "MaintenanceRequests are not installed in this cluster");
        }
        r->crd_absent = true;
        return;
    }
    log_warn(r->config.log, "Failed to watch MaintenanceRequests", KV_ERR(err),
             KV_BOOL("unreadable", r->objects.unreadable));
}

void requests_on_node(struct requests *r, const struct store_item *item, const void *before,
                      bool gone)
{
    preparer_on_node(r->preparer, item, gone);
    const struct node *now = item->object;
    const struct node *old = before;
    struct str mark = node_annotation(now, KEY_REQUEST_CORDON);
    struct str old_mark = old == NULL ? STR_NONE : node_annotation(old, KEY_REQUEST_CORDON);
    struct tracked_request *c = mark.n > 0 ? map_find(&r->by_uid, mark) : NULL;
    if (c != NULL) {
        tracked_mark_dirty(c);
    } else if (mark.n > 0 && !gone) {
        r->unknown_mark_seen = true;
        requests_schedule(r);
    }
    c = old_mark.n > 0 ? map_find(&r->by_uid, old_mark) : NULL;
    if (c != NULL) {
        tracked_mark_dirty(c);
    }
    if (gone || old == NULL || !str_eq(old->uid, now->uid)) {
        /* The node came, went or was replaced: requests for it are decided again. */
        LIST_EACH (&r->tracked, link) {
            c = CONTAINER_OF(link, struct tracked_request, link);
            if (c->type == TARGET_NODE && str_eq(c->target, item->name)) {
                tracked_mark_dirty(c);
            }
        }
    }
}

void requests_on_arbiter_turn(struct requests *r)
{
    usec_t now = loop_now(r->loop);
    LIST_EACH (&r->paused, link) {
        struct tracked_request *c = CONTAINER_OF(link, struct tracked_request, pause_link);
        tracked_wake_at(c, MAX(now, c->pause_checked_at + PAUSE_CHECK_EVERY));
    }
}

bool requests_node_has_mark(const struct requests *r, struct str uid)
{
    MAP_EACH (&r->config.nodes->items, entry) {
        const struct store_item *item = map_item_value(entry);
        if (cordon_is_ours(node_annotation(item->object, KEY_REQUEST_CORDON), uid)) {
            return true;
        }
    }
    return false;
}

/* ── the turn ──────────────────────────────────────────────────────────────────────────────── */

static void requests_mark_all(struct requests *r)
{
    LIST_EACH (&r->tracked, link) {
        tracked_mark_dirty(CONTAINER_OF(link, struct tracked_request, link));
    }
}

/* Somebody else may lead from now on: nothing is kept that would go on by itself. */
static void requests_stop_acting(struct requests *r)
{
    requests_report_synced(r, false);
    LIST_EACH (&r->tracked, link) {
        tracked_reset(CONTAINER_OF(link, struct tracked_request, link));
    }
    LIST_EACH (&r->deleted, link) {
        tracked_free(CONTAINER_OF(link, struct tracked_request, link));
    }
    unknown_marks_done(r);
}

static void requests_mark_due(struct requests *r)
{
    usec_t now = loop_now(r->loop);
    for (;;) {
        struct prioqueue_item *first = prioqueue_first(&r->wake_queue);
        if (first == NULL) {
            return;
        }
        struct tracked_request *c = CONTAINER_OF(first, struct tracked_request, wake);
        if (c->wake_at > now) {
            loop_timer_set(&r->wake, c->wake_at);
            return;
        }
        prioqueue_take(&r->wake_queue, first);
        tracked_mark_dirty(c);
    }
}

static void requests_on_wake(void *ctx)
{
    struct requests *r = ctx;
    requests_mark_due(r);
}

static void requests_start_writes(struct requests *r)
{
    struct list *write_queues[] = { &r->write_queue, &r->info_write_queue };
    const uint32_t write_limits[] = { REQUESTS_WRITES_MAX, REQUESTS_INFO_WRITES_MAX };
    uint32_t expected = r->in_flight;
    for (uint32_t i = 0; i < ARRAY_LEN(write_queues); i++) {
        while (!list_empty(write_queues[i]) && expected < write_limits[i]) {
            struct tracked_request *c =
                CONTAINER_OF(write_queues[i]->next, struct tracked_request, write_link);
            list_del(&c->write_link);
            tracked_mark_dirty(c);
            expected++;
        }
    }
}

static void requests_start_checks(struct requests *r)
{
    uint32_t expected = r->checks_running;
    while (!list_empty(&r->check_queue) && expected < REQUESTS_CHECKS_MAX) {
        struct tracked_request *c =
            CONTAINER_OF(r->check_queue.next, struct tracked_request, check_link);
        list_del(&c->check_link);
        tracked_mark_dirty(c);
        expected++;
    }
}

static void requests_on_turn(void *ctx)
{
    struct requests *r = ctx;
    r->turns++;
    bool acting = r->config.may_act(r->config.ctx);
    if (acting != r->acting) {
        r->acting = acting;
        if (acting) {
            requests_mark_all(r);
            r->unknown_mark_seen = true;
        } else {
            requests_stop_acting(r);
        }
    }
    for (;;) {
        struct store_item *item = store_take(&r->objects.store);
        if (item == NULL) {
            break;
        }
        tracked_mark_dirty(item->extra);
    }
    if (!r->acting || !r->listed) {
        return;
    }
    requests_start_writes(r);
    requests_start_checks(r);
    while (!list_empty(&r->dirty)) {
        struct tracked_request *c = CONTAINER_OF(r->dirty.next, struct tracked_request, dirty);
        list_del(&c->dirty);
        arena_reset(&r->tmp);
        if (c->item == NULL) {
            request_cleanup_step(c);
        } else {
            tracked_step(c);
        }
    }
    if (!list_empty(&r->check_queue) && r->checks_running < REQUESTS_CHECKS_MAX) {
        requests_schedule(r); /* whose turn had come did not want a check any more */
    }
    requests_report_synced(r, true);
    unknown_marks_check(r);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct requests *requests_new(const struct requests_config *config)
{
    struct requests *r = ALLOC_NEW(struct requests);
    r->config = *config;
    r->loop = config->client->loop;
    list_init(&r->tracked);
    list_init(&r->deleted);
    list_init(&r->dirty);
    list_init(&r->write_queue);
    list_init(&r->info_write_queue);
    list_init(&r->check_queue);
    list_init(&r->unknown_marks);
    list_init(&r->paused);
    map_init(&r->by_uid, loop_random(r->loop), loop_random(r->loop));
    map_init(&r->rejected, loop_random(r->loop), loop_random(r->loop));
    map_init(&r->live_uids, loop_random(r->loop), loop_random(r->loop));
    prioqueue_init(&r->wake_queue, tracked_wakes_before);
    loop_timer_init(&r->turn, r->loop, requests_on_turn, r);
    loop_timer_init(&r->wake, r->loop, requests_on_wake, r);
    informer_init(&r->objects, &(struct informer_config){
                                   .client = config->client,
                                   .kind = &mrequest_kind,
                                   .on_change = requests_on_change,
                                   .on_gone = requests_on_gone,
                                   .on_update = requests_on_update,
                                   .on_list = requests_on_list,
                                   .on_synced = requests_on_synced,
                                   .on_recovered = requests_on_recovered,
                                   .on_error = requests_on_error,
                                   .ctx = r,
                               });
    r->preparer = preparer_new(&(struct preparer_config){
        .client = config->client,
        .recorder = config->recorder,
        .log = config->log,
        .drains = config->drains,
        .nodes = config->nodes,
        .may_act = config->may_act,
        .wall = config->wall,
        .ctx = config->ctx,
        .skew_tolerance = config->skew_tolerance,
    });
    requests_metrics_init(r);
    informer_start(&r->objects, STR(MAINTENANCE_REQUESTS_PATH));
    return r;
}

void requests_free(struct requests *r)
{
    if (r == NULL) {
        return;
    }
    requests_metrics_done(r);
    unknown_marks_done(r);
    LIST_EACH (&r->tracked, link) {
        tracked_free(CONTAINER_OF(link, struct tracked_request, link));
    }
    LIST_EACH (&r->deleted, link) {
        tracked_free(CONTAINER_OF(link, struct tracked_request, link));
    }
    ASSERT(r->in_flight == 0 && r->wake_queue.n == 0);
    informer_done(&r->objects);
    preparer_free(r->preparer);
    rejections_drop_before(r, USEC_NEVER);
    map_done(&r->rejected);
    map_done(&r->by_uid);
    map_done(&r->live_uids);
    prioqueue_done(&r->wake_queue);
    loop_timer_done(&r->turn);
    loop_timer_done(&r->wake);
    arena_done(&r->tmp);
    buf_done(&r->path);
    buf_done(&r->body);
    buf_done(&r->live_uids_page);
    alloc_free(r);
}

void requests_wake(struct requests *r)
{
    requests_schedule(r);
}

bool requests_synced(const struct requests *r)
{
    return r->objects.reflector.synced || r->crd_absent;
}

void requests_check(const struct requests *r)
{
    store_check(&r->objects.store);
    prioqueue_check(&r->wake_queue);
    uint32_t calls = r->live_uids_call != NULL ? 1 : 0;
    uint32_t checks = 0;
    uint32_t n = 0;
    LIST_EACH (&r->tracked, link) {
        const struct tracked_request *c = CONTAINER_OF(link, struct tracked_request, link);
        checks += c->check == PHASE_CHECK_RUNNING ? 1 : 0;
        ASSERT(c->item != NULL && c->item->extra == c);
        ASSERT(map_find(&r->by_uid, c->uid) == c);
        ASSERT(c->prepare == NULL || c->undo == NULL); /* never prepared and undone at once */
        ASSERT(!list_linked(&c->pause_link) || c->safety != NULL);
        calls += c->writer.call != NULL ? 1 : 0;
        n++;
    }
    LIST_EACH (&r->deleted, link) {
        const struct tracked_request *c = CONTAINER_OF(link, struct tracked_request, link);
        ASSERT(c->item == NULL && c->writer.call == NULL && c->prepare == NULL);
        ASSERT(c->check != PHASE_CHECK_RUNNING && !list_linked(&c->check_link));
    }
    ASSERT(checks == r->checks_running && checks <= REQUESTS_CHECKS_MAX);
    ASSERT(n == store_count(&r->objects.store));
    ASSERT(calls == r->in_flight);
}
