/* The watch of VolumeAttachments, the reads of PersistentVolumeClaims, and what is left to wait
 * for. */
#include "request/volume_detach.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/list.h"
#include "kube/informer.h"

#define ERROR_REFRESH SECONDS(10)
#define PVC_WINDOW 8u /* PersistentVolumeClaims that are read at a time, for one node */
/* PersistentVolumeClaims are not watched but read again while somebody waits. A claim that is bound
 * rarely changes; a missing one may be created, an unbound one be bound. */
#define PVC_REFRESH MINUTES(5)
#define PVC_MISSING_BASE SECONDS(5)
#define PVC_MISSING_MAX MINUTES(1)
#define PVC_FAILED_BASE SECONDS(1)
#define PVC_FAILED_MAX SECONDS(30)
#define PVC_REFUSED_BASE SECONDS(30)
#define PVC_REFUSED_MAX MINUTES(5)

struct detaches {
    struct client *client;
    struct list waits;
    struct loop_timer restart; /* the watch begins, begins anew, or ends */
    bool watching;
    struct informer attachments; /* of nodes that are waited for */
    struct buf path;
};

struct detach_pvc {
    struct detach *detach;
    struct arena memory;
    struct str namespace;
    struct str name;
    uint32_t pvc_round; /* the last in which a pod that stays had it */
    struct str volume;  /* empty: none, or not known yet */
    struct arena text;  /* of `volume` */
    struct api_call *call;
    usec_t retry_at;
    struct backoff backoff;
};

struct detach {
    struct detaches *detaches;
    struct list link;
    struct arena memory;
    struct str node;
    struct str *ignore;
    uint32_t ignore_n;
    void (*on_change)(void *ctx);
    void *ctx;
    struct loop_timer turn;
    struct map pvcs; /* "namespace/name" → struct detach_pvc */
    uint32_t pvc_round;
    uint32_t reading; /* PersistentVolumeClaims that are being read */
    uint32_t volumes; /* status.volumesAttached */
    bool synced;
    bool reported_synced;
    uint32_t left;
    uint32_t ignored;
    struct err last_error; /* of reading PersistentVolumeClaims */
    bool reported_failing; /* as last reported */
};

/* ── attachments ───────────────────────────────────────────────────────────────────────────── */

struct volume_attachment {
    struct str node;
    struct str driver;
    struct str volume; /* empty: an inline one */
    bool attached;
};

static int volume_attachment_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                                     void **ret, struct err *err UNUSED)
{
    struct volume_attachment *a = ARENA_NEW(out, struct volume_attachment);
    a->node = arena_str(out, jval_str(jval_at(object, "spec.nodeName")));
    a->driver = arena_str(out, jval_str(jval_at(object, "spec.attacher")));
    a->volume = arena_str(out, jval_str(jval_at(object, "spec.source.persistentVolumeName")));
    a->attached = jval_bool(jval_at(object, "status.attached"), false);
    *ret = a;
    return 0;
}

/* The spec of an attachment never changes; with another one it is another object of that name. */
static bool volume_attachment_same(const void *left, const void *right)
{
    const struct volume_attachment *a = left;
    const struct volume_attachment *b = right;
    return a->attached == b->attached && str_eq(a->node, b->node) && str_eq(a->driver, b->driver) &&
           str_eq(a->volume, b->volume);
}

static const struct store_kind volume_attachment_kind = {
    .name = "volumeattachment",
    .project = volume_attachment_project,
    .same = volume_attachment_same,
};

static void detach_schedule(struct detach *d)
{
    loop_timer_pull(&d->turn, loop_now(d->detaches->client->loop));
}

static void detaches_schedule_node(struct detaches *ds, struct str node)
{
    LIST_EACH (&ds->waits, link) {
        struct detach *d = CONTAINER_OF(link, struct detach, link);
        if (str_eq(d->node, node)) {
            detach_schedule(d);
        }
    }
}

static void volume_attachments_on_change(void *ctx, struct store_item *item,
                                         const void *before UNUSED)
{
    detaches_schedule_node(ctx, ((const struct volume_attachment *)item->object)->node);
}

static void volume_attachments_on_gone(void *ctx, struct store_item *item)
{
    detaches_schedule_node(ctx, ((const struct volume_attachment *)item->object)->node);
}

static bool detaches_have_node(const struct detaches *ds, struct str node)
{
    LIST_EACH (&ds->waits, link) {
        if (str_eq(CONTAINER_OF(link, struct detach, link)->node, node)) {
            return true;
        }
    }
    return false;
}

/* Attachments that are kept are wanted even when nobody waits for their node any more: their end
 * has to be seen. */
static bool volume_attachments_wants(void *ctx, const struct jval *object)
{
    const struct detaches *ds = ctx;
    struct str name = jval_str(jval_at(object, "metadata.name"));
    return store_find(&ds->attachments.store, name) != NULL ||
           detaches_have_node(ds, jval_str(jval_at(object, "spec.nodeName")));
}

static void detaches_set_synced(struct detaches *ds, bool synced)
{
    LIST_EACH (&ds->waits, link) {
        struct detach *d = CONTAINER_OF(link, struct detach, link);
        d->synced = synced;
        detach_schedule(d);
    }
}

static void volume_attachments_on_synced(void *ctx)
{
    detaches_set_synced(ctx, true);
}

static void volume_attachments_on_reset(void *ctx, uint64_t version UNUSED)
{
    detaches_set_synced(ctx, false);
}

static void volume_attachments_on_error(void *ctx, const struct err *err UNUSED)
{
    struct detaches *ds = ctx;
    LIST_EACH (&ds->waits, link) {
        detach_schedule(CONTAINER_OF(link, struct detach, link));
    }
}

static void detaches_unwatch(struct detaches *ds)
{
    informer_done(&ds->attachments);
    ds->watching = false;
}

static void detaches_restart(void *ctx)
{
    struct detaches *ds = ctx;
    if (list_empty(&ds->waits)) {
        detaches_unwatch(ds);
        return;
    }
    if (!ds->watching) {
        informer_init(&ds->attachments, &(struct informer_config){
                                            .client = ds->client,
                                            .kind = &volume_attachment_kind,
                                            .wants = volume_attachments_wants,
                                            .on_change = volume_attachments_on_change,
                                            .on_gone = volume_attachments_on_gone,
                                            .on_synced = volume_attachments_on_synced,
                                            .on_reset = volume_attachments_on_reset,
                                            .on_error = volume_attachments_on_error,
                                            .ctx = ds,
                                        });
        ds->watching = true;
    }
    informer_start(&ds->attachments, STR("/apis/storage.k8s.io/v1/volumeattachments"));
}

/* ── PersistentVolumeClaims ────────────────────────────────────────────────────────────────── */

static void pvc_free(struct detach_pvc *k)
{
    if (k->call != NULL) {
        api_cancel(k->detach->detaches->client->api, STEAL(k->call));
        k->detach->reading--;
    }
    arena_done(&k->text);
    arena_done(&k->memory);
    alloc_free(k);
}

static void pvc_retry(struct detach_pvc *k, usec_t base, usec_t max)
{
    struct loop *loop = k->detach->detaches->client->loop;
    if (k->backoff.base != base) {
        k->backoff = (struct backoff){ .base = base, .max = max };
    }
    k->retry_at = loop_now(loop) + backoff_next(&k->backoff, loop_random(loop));
}

static void pvc_read_reply(struct detach_pvc *k, struct str body)
{
    struct detach *d = k->detach;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *pvc = NULL;
    if (json_parse(body, JSON_GO, &tmp, &pvc, &d->last_error) < 0) {
        pvc_retry(k, PVC_FAILED_BASE, PVC_FAILED_MAX);
        return;
    }
    struct str volume = jval_str(jval_at(pvc, "spec.volumeName"));
    arena_reset(&k->text);
    k->volume = arena_str(&k->text, volume);
    if (volume.n > 0) {
        k->retry_at = loop_now(d->detaches->client->loop) + PVC_REFRESH;
        backoff_reset(&k->backoff);
    } else {
        pvc_retry(k, PVC_MISSING_BASE, PVC_MISSING_MAX);
    }
    d->last_error = (struct err){ 0 };
}

static void pvc_on_reply(void *ctx, const struct api_reply *reply)
{
    struct detach_pvc *k = ctx;
    struct detach *d = k->detach;
    k->call = NULL;
    d->reading--;
    enum retry_verdict verdict = client_note(d->detaches->client, API_GET, reply);
    if (verdict == RETRY_DONE) {
        pvc_read_reply(k, reply->body);
    } else if (verdict == RETRY_ABSENT) {
        k->volume = STR_NONE;
        pvc_retry(k, PVC_MISSING_BASE, PVC_MISSING_MAX);
    } else {
        client_explain(reply->status, reply->body, reply->err, &d->last_error);
        bool refused = verdict == RETRY_REFUSED;
        pvc_retry(k, refused ? PVC_REFUSED_BASE : PVC_FAILED_BASE,
                  refused ? PVC_REFUSED_MAX : PVC_FAILED_MAX);
    }
    detach_schedule(d);
}

static void pvc_read(struct detach_pvc *k)
{
    struct detach *d = k->detach;
    struct buf *path = &d->detaches->path;
    buf_reset(path);
    buf_add(path, STR("/api/v1/namespaces/"));
    client_add_segment(path, k->namespace);
    buf_add(path, STR("/persistentvolumeclaims/"));
    client_add_segment(path, k->name);
    const struct api_request request = { .verb = API_GET, .path = buf_str(path) };
    k->call = api_send(d->detaches->client->api, &request, pvc_on_reply, k);
    d->reading++;
}

/* Answers when the next is due. */
static usec_t detach_read_pvcs(struct detach *d, usec_t now)
{
    struct client *client = d->detaches->client;
    usec_t next = USEC_NEVER;
    MAP_EACH (&d->pvcs, entry) {
        struct detach_pvc *k = map_item_value(entry);
        if (k->call != NULL || k->pvc_round != d->pvc_round) {
            continue;
        }
        usec_t at = MAX(k->retry_at, client_open_at(client));
        if (now < at) {
            next = MIN(next, at);
        } else if (d->reading < PVC_WINDOW) {
            pvc_read(k); /* its answer starts the next */
        }
    }
    return next;
}

void detach_pvcs_begin(struct detach *d)
{
    d->pvc_round++;
}

void detach_add_pvc(struct detach *d, struct str namespace, struct str pvc)
{
    CLEANUP(buf_done)
    struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(pvc));
    struct detach_pvc *k = map_find(&d->pvcs, buf_str(&key));
    if (k == NULL) {
        k = ALLOC_NEW(struct detach_pvc);
        k->detach = d;
        k->memory.first = 128;
        k->text.first = 64;
        k->namespace = arena_str(&k->memory, namespace);
        k->name = arena_str(&k->memory, pvc);
        (void)map_put(&d->pvcs, buf_str(&key), k); /* it replaces nothing */
    }
    k->pvc_round = d->pvc_round;
}

void detach_pvcs_end(struct detach *d)
{
    detach_schedule(d);
}

/* What is wrong now: the watch, or else the last read of a PersistentVolumeClaim. */
static const struct err *detach_error(const struct detach *d)
{
    const struct informer *attachments = &d->detaches->attachments;
    return d->detaches->watching && attachments->failing ? &attachments->trouble : &d->last_error;
}

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

static bool detach_ignores(const struct detach *d, const struct volume_attachment *a)
{
    for (uint32_t i = 0; i < d->ignore_n; i++) {
        if (str_eq(d->ignore[i], a->driver)) {
            return true;
        }
    }
    MAP_EACH (&d->pvcs, entry) {
        const struct detach_pvc *k = map_item_value(entry);
        if (k->pvc_round == d->pvc_round && k->volume.n > 0 && str_eq(k->volume, a->volume)) {
            return true;
        }
    }
    return false;
}

static void detach_turn(void *ctx)
{
    struct detach *d = ctx;
    struct detaches *ds = d->detaches;
    usec_t now = loop_now(ds->client->loop);
    uint32_t left = 0;
    uint32_t ignored = 0;
    uint32_t ignored_attached = 0; /* entries of volumesAttached that nobody waits for */
    if (!ds->watching) {
        return; /* the watch is about to begin */
    }
    MAP_EACH (&ds->attachments.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct volume_attachment *a = item->object;
        if (!str_eq(a->node, d->node)) {
            continue;
        }
        bool ignore_this = detach_ignores(d, a);
        left += ignore_this ? 0 : 1;
        ignored += ignore_this ? 1 : 0;
        ignored_attached += ignore_this && a->attached ? 1 : 0;
    }
    usec_t next = left > 0 ? detach_read_pvcs(d, now) : USEC_NEVER;
    uint32_t listed = d->volumes > ignored_attached ? d->volumes - ignored_attached : 0;
    left = MAX(left, listed);
    bool reported_failing = detach_error(d)->code != 0;
    if (reported_failing) {
        next = MIN(next, now + ERROR_REFRESH); /* no event says that it works again */
    }
    bool changed = d->synced != d->reported_synced || left != d->left || ignored != d->ignored ||
                   reported_failing != d->reported_failing;
    d->reported_synced = d->synced;
    d->left = left;
    d->ignored = ignored;
    d->reported_failing = reported_failing;
    if (next != USEC_NEVER) {
        loop_timer_set(&d->turn, next);
    }
    if (changed) {
        d->on_change(d->ctx);
    }
}

void detach_set_volumes(struct detach *d, uint32_t volumes)
{
    if (d->volumes != volumes) {
        d->volumes = volumes;
        detach_schedule(d);
    }
}

bool detach_is_done(const struct detach *d)
{
    return d->reported_synced && d->left == 0;
}

void detach_status(const struct detach *d, struct detach_status *ret)
{
    const struct err *last_error = detach_error(d);
    *ret = (struct detach_status){
        .synced = d->reported_synced,
        .left = d->left,
        .ignored = d->ignored,
        .last_error = last_error->code != 0 ? str_from(last_error->msg) : STR_NONE,
    };
}

static int detach_name_order(const void *left, const void *right)
{
    const struct store_item *const *a = left;
    const struct store_item *const *b = right;
    return str_cmp((*a)->name, (*b)->name);
}

uint32_t detach_waiting_names(const struct detach *d, struct arena *out, struct str *ret,
                              uint32_t max)
{
    const struct store *store = &d->detaches->attachments.store;
    uint32_t n = 0;
    if (!d->detaches->watching || store_count(store) == 0) {
        return 0;
    }
    const struct store_item **items =
        ARENA_ARRAY(out, const struct store_item *, store_count(store));
    MAP_EACH (&store->items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct volume_attachment *a = item->object;
        if (str_eq(a->node, d->node) && !detach_ignores(d, a)) {
            items[n++] = item;
        }
    }
    qsort(items, n, sizeof(items[0]), detach_name_order);
    n = MIN(n, max);
    for (uint32_t i = 0; i < n; i++) {
        const struct volume_attachment *a = items[i]->object;
        ret[i] =
            arena_printf(out, "volume " STR_FMT " (" STR_FMT ")",
                         STR_ARG(a->volume.n > 0 ? a->volume : items[i]->name), STR_ARG(a->driver));
    }
    return n;
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct detaches *detaches_new(struct client *client)
{
    struct detaches *ds = ALLOC_NEW(struct detaches);
    ds->client = client;
    list_init(&ds->waits);
    loop_timer_init(&ds->restart, client->loop, detaches_restart, ds);
    return ds;
}

void detaches_free(struct detaches *ds)
{
    if (ds == NULL) {
        return;
    }
    while (!list_empty(&ds->waits)) {
        detach_stop(CONTAINER_OF(ds->waits.next, struct detach, link));
    }
    detaches_unwatch(ds);
    loop_timer_done(&ds->restart);
    buf_done(&ds->path);
    alloc_free(ds);
}

struct detach *detach_start(struct detaches *ds, struct str node, const struct str *ignore,
                            uint32_t ignore_n, void (*on_change)(void *ctx), void *ctx)
{
    struct loop *loop = ds->client->loop;
    struct detach *d = ALLOC_NEW(struct detach);
    *d = (struct detach){
        .detaches = ds,
        .memory = { .first = 256 },
        .ignore_n = ignore_n,
        .on_change = on_change,
        .ctx = ctx,
    };
    d->node = arena_str(&d->memory, node);
    d->ignore = ARENA_ARRAY(&d->memory, struct str, ignore_n);
    for (uint32_t i = 0; i < ignore_n; i++) {
        d->ignore[i] = arena_str(&d->memory, ignore[i]);
    }
    map_init(&d->pvcs, loop_random(loop), loop_random(loop));
    loop_timer_init(&d->turn, loop, detach_turn, d);
    list_add(&ds->waits, &d->link);
    loop_timer_pull(&ds->restart, loop_now(loop));
    return d;
}

void detach_stop(struct detach *d)
{
    if (d == NULL) {
        return;
    }
    struct detaches *ds = d->detaches;
    MAP_EACH (&d->pvcs, entry) {
        pvc_free(map_item_value(entry));
    }
    map_done(&d->pvcs);
    loop_timer_done(&d->turn);
    list_del(&d->link);
    arena_done(&d->memory);
    alloc_free(d);
    if (list_empty(&ds->waits)) {
        /* Not at once: this may be called from what the watch has brought. */
        loop_timer_pull(&ds->restart, loop_now(ds->client->loop));
    }
}
