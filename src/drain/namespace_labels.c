/*
 * The labels of namespaces, which some rules ask for: watched only while a drain has such a rule,
 * by all of them together.
 */
#include "drain/drain_internal.h"
#include "format/label_pack.h"

static int space_project(void *ctx UNUSED, const struct jval *object, struct arena *out, void **ret,
                         struct err *err UNUSED)
{
    struct str *labels = ARENA_NEW(out, struct str);
    *labels = label_pack_keep(jval_at(object, "metadata.labels"), out);
    *ret = labels;
    return 0;
}

static bool space_same(const void *left, const void *right)
{
    const struct str *a = left;
    const struct str *b = right;
    return str_eq(*a, *b);
}

static const struct store_kind space_kind = {
    .name = "namespace",
    .project = space_project,
    .same = space_same,
};

/* ── the watch ─────────────────────────────────────────────────────────────────────────────── */

static void spaces_mark(struct drains *ds)
{
    LIST_EACH (&ds->drains, link) {
        struct drain *d = CONTAINER_OF(link, struct drain, link);
        if (d->drain_rules.rules.by_space) {
            d->volumes_changed = true;
            drain_mark(d);
        }
    }
}

static void spaces_on_change(void *ctx, struct store_item *item UNUSED, const void *before UNUSED)
{
    spaces_mark(ctx);
}

static void spaces_on_gone(void *ctx, struct store_item *item UNUSED)
{
    spaces_mark(ctx);
}

static void spaces_on_list(void *ctx)
{
    struct drains *ds = ctx;
    store_list_begin(&ds->spaces.store);
}

static int spaces_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct drains *ds = ctx;
    return store_observe(&ds->spaces.store, object, deleted, err);
}

static bool spaces_on_synced(void *ctx, uint64_t version)
{
    struct drains *ds = ctx;
    ds->spaces.synced = store_list_end(&ds->spaces.store, version);
    spaces_mark(ds);
    return ds->spaces.synced;
}

/* What is not allowed any more is not known any more. Other failures are the network's, and after a
 * first list the last known labels are good enough: they hardly ever change. */
static void spaces_on_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct drains *ds = ctx;
    ds->spaces.failure = *err;
    ds->spaces.denied = ds->spaces.denied || err->code == ERR_DENIED;
    spaces_mark(ds);
}

static void spaces_on_well(void *ctx)
{
    struct drains *ds = ctx;
    ds->spaces.failure = (struct err){ 0 };
    ds->spaces.denied = false;
    spaces_mark(ds);
}

void drains_watch_spaces(struct drains *ds)
{
    struct drain_spaces *s = &ds->spaces;
    if (s->readers++ > 0) {
        return;
    }
    s->synced = false;
    s->denied = false;
    s->failure = (struct err){ 0 };
    s->deadline = loop_now(ds->loop) + DRAIN_SPACES_TIMEOUT;
    store_init(&s->store, &space_kind, ds, loop_random(ds->loop));
    s->store.mutations = ds->config.mutations;
    s->store.on_change = spaces_on_change;
    s->store.on_gone = spaces_on_gone;
    const struct reflector_config config = {
        .path = STR("/api/v1/namespaces"),
        .metadata_only = true,
        .on_list = spaces_on_list,
        .on_object = spaces_on_object,
        .on_synced = spaces_on_synced,
        .on_error = spaces_on_error,
        .on_well = spaces_on_well,
        .ctx = ds,
    };
    reflector_init(&s->reflector, ds->config.client, &config);
    reflector_start(&s->reflector);
}

void drains_unwatch_spaces(struct drains *ds)
{
    ASSERT(ds->spaces.readers > 0);
    if (--ds->spaces.readers == 0) {
        reflector_done(&ds->spaces.reflector);
        ds->spaces.store.on_gone = NULL;
        store_done(&ds->spaces.store);
        ds->spaces.synced = false;
    }
}

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

struct str *drains_find_space(const struct drains *ds, struct str name)
{
    if (!ds->spaces.synced || ds->spaces.denied) {
        return NULL;
    }
    const struct store_item *item = store_find(&ds->spaces.store, name);
    return item != NULL ? item->object : NULL;
}

bool drains_await_spaces(const struct drains *ds, usec_t now)
{
    return !ds->spaces.synced && !ds->spaces.denied && now < ds->spaces.deadline;
}
