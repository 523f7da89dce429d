/*
 * The labels of namespaces, which some drain rules ask for: one watch for all drains, which runs
 * only while the rules of a drain need it.
 */
#include "drain/drain_internal.h"
#include "format/label_pack.h"

static int namespace_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                             void **ret, struct err *err UNUSED)
{
    struct str *labels = ARENA_NEW(out, struct str);
    *labels = label_pack_keep(jval_at(object, "metadata.labels"), out);
    *ret = labels;
    return 0;
}

static bool namespace_same(const void *left, const void *right)
{
    const struct str *a = left;
    const struct str *b = right;
    return str_eq(*a, *b);
}

static const struct store_kind namespace_kind = {
    .name = "namespace",
    .project = namespace_project,
    .same = namespace_same,
};

/* ── the watch ─────────────────────────────────────────────────────────────────────────────── */

static void namespaces_mark(void *ctx)
{
    struct drains *ds = ctx;
    LIST_EACH (&ds->drains, link) {
        struct drain *d = CONTAINER_OF(link, struct drain, link);
        if (d->drain_rules.rules.by_namespace) {
            d->volumes_changed = true;
            drain_mark(d);
        }
    }
}

static void namespaces_on_change(void *ctx, struct store_item *item UNUSED,
                                 const void *before UNUSED)
{
    namespaces_mark(ctx);
}

static void namespaces_on_gone(void *ctx, struct store_item *item UNUSED)
{
    namespaces_mark(ctx);
}

static void namespaces_on_reset(void *ctx, uint64_t version UNUSED)
{
    namespaces_mark(ctx);
}

/* Labels that we may not read any more count as unknown. Other failures are the network's, and
 * after a first list the last known labels are good enough: they hardly ever change. */
static void namespaces_on_error(void *ctx, const struct err *err)
{
    struct drains *ds = ctx;
    ds->namespaces.denied = ds->namespaces.denied || err->code == ERR_DENIED;
    namespaces_mark(ds);
}

static void namespaces_on_recovered(void *ctx)
{
    struct drains *ds = ctx;
    ds->namespaces.denied = false;
    namespaces_mark(ds);
}

void drains_watch_namespaces(struct drains *ds)
{
    struct drain_namespaces *s = &ds->namespaces;
    if (s->readers++ > 0) {
        return;
    }
    s->denied = false;
    s->deadline = loop_now(ds->loop) + DRAIN_NAMESPACES_TIMEOUT;
    const struct informer_config config = {
        .client = ds->config.client,
        .kind = &namespace_kind,
        .metadata_only = true,
        .on_change = namespaces_on_change,
        .on_gone = namespaces_on_gone,
        .on_synced = namespaces_mark,
        .on_reset = namespaces_on_reset,
        .on_error = namespaces_on_error,
        .on_recovered = namespaces_on_recovered,
        .ctx = ds,
    };
    informer_init(&s->informer, &config);
    informer_start(&s->informer, STR("/api/v1/namespaces"));
}

void drains_unwatch_namespaces(struct drains *ds)
{
    ASSERT(ds->namespaces.readers > 0);
    if (--ds->namespaces.readers == 0) {
        ds->namespaces.informer.store.on_gone = NULL;
        informer_done(&ds->namespaces.informer);
    }
}

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

const struct str *drains_find_namespace(const struct drains *ds, struct str name)
{
    if (!ds->namespaces.informer.synced || ds->namespaces.denied) {
        return NULL;
    }
    const struct store_item *item = store_find(&ds->namespaces.informer.store, name);
    return item != NULL ? item->object : NULL;
}

bool drains_await_namespaces(const struct drains *ds, usec_t now)
{
    return !ds->namespaces.informer.synced && !ds->namespaces.denied &&
           now < ds->namespaces.deadline;
}
