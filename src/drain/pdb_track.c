#include "base/alloc.h"
#include "drain/drain_internal.h"

/* After a refusal the budget's next version is waited for; these are for one that never comes. */
#define REFUSED_BASE SECONDS(10)
#define REFUSED_MAX MINUTES(2)

/* ── budgets ───────────────────────────────────────────────────────────────────────────────── */

static struct drain_warden *warden_of(struct drains *ds, struct store_item *item)
{
    struct drain_warden *w = item->extra;
    if (w == NULL) {
        w = ALLOC_NEW(struct drain_warden);
        w->drains = ds;
        w->item = item;
        w->moved_at = -1;
        w->backoff = (struct backoff){ .base = REFUSED_BASE, .max = REFUSED_MAX };
        list_init(&w->patients);
        list_init(&w->charges);
        item->extra = w;
    }
    return w;
}

void drain_warden_mark(const struct drain_warden *w)
{
    LIST_EACH (&w->patients, link) {
        drain_mark(CONTAINER_OF(link, struct drain_patient, cover)->drain);
    }
}

bool drain_warden_open(const struct drain_warden *w, usec_t now)
{
    const struct drain_budget *b = drain_warden_budget(w);
    bool refused = w->refused_version >= w->item->version && now < w->retry_at;
    return b->counted && !refused && b->allowed > (int64_t)w->charged;
}

void drain_warden_charge(struct drain_warden *w, struct drain_flight *f)
{
    ASSERT(!list_linked(&f->charge) && f->warden == w);
    list_add(&w->charges, &f->charge);
    w->charged++;
}

void drain_warden_settle(struct drain_flight *f)
{
    if (list_linked(&f->charge)) {
        list_del(&f->charge);
        f->warden->charged--;
        drain_warden_mark(f->warden);
    }
    if (f->call == NULL) {
        drain_mark(f->drain);
        drain_flight_free(f);
    }
}

/* Charges end that the present status shows: the server names the pod, or the status was made after
 * the pod's deletion. */
static void warden_settle(struct drain_warden *w)
{
    const struct drain_budget *b = drain_warden_budget(w);
    LIST_EACH (&w->charges, link) {
        struct drain_flight *f = CONTAINER_OF(link, struct drain_flight, charge);
        bool later = f->seen_version > 0 && w->item->version > f->seen_version;
        if (later || drain_budget_has_spent(b, f->name)) {
            drain_warden_settle(f);
        }
    }
}

static void drains_on_budget(void *ctx, struct store_item *item, const void *before)
{
    struct drains *ds = ctx;
    const struct drain_budget *was = before;
    struct drain_warden *w = item->extra;
    if (was == NULL || !drain_budget_same_cover(was, item->object)) {
        ds->shape++;
        drains_mark_all(ds);
    }
    if (w != NULL) {
        if (was != NULL && drain_warden_budget(w)->allowed > was->allowed) {
            backoff_reset(&w->backoff);
        }
        warden_settle(w);
        drain_warden_mark(w);
    }
}

static void drains_on_budget_gone(void *ctx, struct store_item *item)
{
    struct drains *ds = ctx;
    struct drain_warden *w = item->extra;
    ds->shape++;
    if (w == NULL) {
        return;
    }
    drain_warden_mark(w);
    LIST_EACH (&w->charges, link) {
        drain_warden_settle(CONTAINER_OF(link, struct drain_flight, charge));
    }
    LIST_EACH (&ds->drains, one) {
        struct drain *d = CONTAINER_OF(one, struct drain, link);
        LIST_EACH (&d->flights, link) {
            struct drain_flight *f = CONTAINER_OF(link, struct drain_flight, link);
            f->warden = f->warden == w ? NULL : f->warden;
        }
    }
    LIST_EACH (&w->patients, link) {
        drain_patient_uncover(CONTAINER_OF(link, struct drain_patient, cover));
    }
    item->extra = NULL;
    alloc_free(w);
}

/* ── the watch ─────────────────────────────────────────────────────────────────────────────── */

static void budgets_on_list(void *ctx)
{
    struct drains *ds = ctx;
    store_list_begin(&ds->budgets);
}

static int budgets_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct drains *ds = ctx;
    return store_observe(&ds->budgets, object, deleted, err);
}

static bool budgets_on_synced(void *ctx, uint64_t version)
{
    struct drains *ds = ctx;
    ds->synced = store_list_end(&ds->budgets, version);
    ds->blind = ds->blind && !ds->synced;
    ds->shape++;
    drains_mark_all(ds);
    return ds->synced;
}

static void budgets_on_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct drains *ds = ctx;
    ds->trouble = *err;
    /* What is not allowed will not come by waiting. Other failures are the network's, and after a
     * first list the last known state is good enough: the server has the last word anyway. */
    if (err->code == ERR_DENIED && !ds->blind) {
        ds->blind = true;
        ds->shape++;
        drains_mark_all(ds);
    }
}

void drains_watch_budgets(struct drains *ds)
{
    if (ds->watching) {
        return;
    }
    ds->watching = true;
    ds->synced = false;
    ds->blind = false;
    ds->blind_at = loop_now(ds->loop) + DRAIN_BUDGETS_PATIENCE;
    ds->trouble = (struct err){ 0 };
    store_init(&ds->budgets, &drain_budget_kind, ds, loop_random(ds->loop));
    ds->budgets.mutations = ds->config.mutations;
    ds->budgets.on_change = drains_on_budget;
    ds->budgets.on_gone = drains_on_budget_gone;
    const struct reflector_config config = {
        .path = STR("/apis/policy/v1/poddisruptionbudgets"),
        .on_list = budgets_on_list,
        .on_object = budgets_on_object,
        .on_synced = budgets_on_synced,
        .on_error = budgets_on_error,
        .ctx = ds,
    };
    reflector_init(&ds->reflector, ds->config.client, &config);
    reflector_start(&ds->reflector);
}

void drains_unwatch_budgets(struct drains *ds)
{
    if (ds->watching) {
        reflector_done(&ds->reflector);
        store_done(&ds->budgets);
        ds->watching = false;
        ds->synced = false;
        ds->blind = false;
    }
}

bool drains_ready(const struct drains *ds)
{
    return ds->synced || ds->blind;
}

/* ── who covers whom ───────────────────────────────────────────────────────────────────────── */

void drain_patient_uncover(struct drain_patient *p)
{
    list_del(&p->cover);
    p->warden = NULL;
    p->many = false;
    p->shape = 0;
}

void drain_patient_match(struct drain_patient *p)
{
    struct drains *ds = p->drain->drains;
    struct drain_warden *before = p->warden;
    bool many = p->many;
    if (p->shape == ds->shape) {
        return;
    }
    drain_patient_uncover(p);
    p->shape = ds->shape;
    struct str space = drain_space(p->item);
    MAP_EACH (&ds->budgets.items, entry) {
        struct store_item *item = map_item_value(entry);
        if (ds->blind || !drain_budget_covers(item->object, space, drain_patient_pod(p))) {
            continue;
        }
        if (p->warden != NULL) {
            p->many = true;
            break;
        }
        p->warden = warden_of(ds, item);
        list_add(&p->warden->patients, &p->cover);
    }
    /* What an earlier budget, or a stranger's, refused says nothing about this one. */
    if (p->warden != before || p->many != many) {
        p->retry_at = 0;
    }
}
