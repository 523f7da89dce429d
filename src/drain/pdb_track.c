/*
 * The watch of PodDisruptionBudgets, shared by all drains: which budget covers which pod, and
 * whether it allows another eviction, those included that its status does not show yet.
 */
#include "base/alloc.h"
#include "drain/drain_internal.h"

/* After a refusal the budget's next version is waited for; an eviction is tried again without one
 * after so long. */
#define REFUSED_BASE SECONDS(10)
#define REFUSED_MAX MINUTES(2)

/* ── budgets ───────────────────────────────────────────────────────────────────────────────── */

static struct pdb_state *pdb_state_get(struct drains *ds, struct store_item *item)
{
    struct pdb_state *w = item->extra;
    if (w == NULL) {
        w = ALLOC_NEW(struct pdb_state);
        w->drains = ds;
        w->item = item;
        w->evicted_at = -1;
        w->backoff = (struct backoff){ .base = REFUSED_BASE, .max = REFUSED_MAX };
        list_init(&w->pod_states);
        list_init(&w->unsettled);
        item->extra = w;
    }
    return w;
}

void pdb_state_mark(const struct pdb_state *w)
{
    LIST_EACH (&w->pod_states, link) {
        drain_mark(CONTAINER_OF(link, struct drain_pod_state, pdb_link)->drain);
    }
}

bool pdb_state_allows(const struct pdb_state *w, usec_t now)
{
    const struct pdb *b = pdb_of(w);
    bool refused = w->refused_version >= w->item->version && now < w->retry_at;
    return b->status_current && !refused && b->allowed > (int64_t)w->unsettled_n;
}

void pdb_state_add_unsettled(struct pdb_state *w, struct eviction *f)
{
    ASSERT(!list_linked(&f->unsettled_link) && f->pdb == w);
    list_add(&w->unsettled, &f->unsettled_link);
    w->unsettled_n++;
}

void eviction_settle(struct eviction *f)
{
    if (list_linked(&f->unsettled_link)) {
        list_del(&f->unsettled_link);
        f->pdb->unsettled_n--;
        pdb_state_mark(f->pdb);
    }
    if (f->call == NULL) {
        drain_mark(f->drain);
        eviction_free(f);
    }
}

/* Settles the evictions that the present status shows: it names the pod, or it was made after the
 * pod's deletion. */
static void pdb_state_settle_seen(struct pdb_state *w)
{
    const struct pdb *b = pdb_of(w);
    LIST_EACH (&w->unsettled, link) {
        struct eviction *f = CONTAINER_OF(link, struct eviction, unsettled_link);
        bool later = f->seen_version > 0 && w->item->version > f->seen_version;
        if (later || pdb_has_disrupted(b, f->name)) {
            eviction_settle(f);
        }
    }
}

static void drains_on_pdb(void *ctx, struct store_item *item, const void *before)
{
    struct drains *ds = ctx;
    const struct pdb *was = before;
    struct pdb_state *w = item->extra;
    if (was == NULL || !pdb_same_selector(was, item->object)) {
        ds->pdb_changes++;
        drains_mark_all(ds);
    }
    if (w != NULL) {
        if (was != NULL && pdb_of(w)->allowed > was->allowed) {
            backoff_reset(&w->backoff);
        }
        pdb_state_settle_seen(w);
        pdb_state_mark(w);
    }
}

static void drains_on_pdb_gone(void *ctx, struct store_item *item)
{
    struct drains *ds = ctx;
    struct pdb_state *w = item->extra;
    ds->pdb_changes++;
    if (w == NULL) {
        return;
    }
    pdb_state_mark(w);
    LIST_EACH (&w->unsettled, link) {
        eviction_settle(CONTAINER_OF(link, struct eviction, unsettled_link));
    }
    LIST_EACH (&ds->drains, one) {
        struct drain *d = CONTAINER_OF(one, struct drain, link);
        LIST_EACH (&d->evictions, link) {
            struct eviction *f = CONTAINER_OF(link, struct eviction, link);
            f->pdb = f->pdb == w ? NULL : f->pdb;
        }
    }
    LIST_EACH (&w->pod_states, link) {
        drain_pod_forget_pdb(CONTAINER_OF(link, struct drain_pod_state, pdb_link));
    }
    item->extra = NULL;
    alloc_free(w);
}

/* ── the watch ─────────────────────────────────────────────────────────────────────────────── */

static void pdbs_on_synced(void *ctx)
{
    struct drains *ds = ctx;
    ds->pdbs_unwatched = ds->pdbs_unwatched && !ds->pdbs.synced;
    ds->pdb_changes++;
    drains_mark_all(ds);
}

static void pdbs_on_reset(void *ctx, uint64_t version UNUSED)
{
    pdbs_on_synced(ctx);
}

static void pdbs_on_error(void *ctx, const struct err *err)
{
    struct drains *ds = ctx;
    /* Waiting does not help who may not list budgets. Other failures are the network's, and after a
     * first list the last known state is good enough: the server has the last word anyway. */
    if (err->code == ERR_DENIED && !ds->pdbs_denied) {
        ds->pdbs_denied = true;
        if (ds->config.on_budgets_denied != NULL) {
            ds->config.on_budgets_denied(ds->config.ctx);
        }
    }
    if (err->code == ERR_DENIED && !ds->pdbs_unwatched) {
        ds->pdbs_unwatched = true;
        ds->pdb_changes++;
        drains_mark_all(ds);
    }
}

void drains_watch_pdbs(struct drains *ds)
{
    if (ds->watching) {
        return;
    }
    ds->watching = true;
    ds->pdbs_unwatched = false;
    ds->pdbs_deadline = loop_now(ds->loop) + DRAIN_PDBS_TIMEOUT;
    const struct informer_config config = {
        .client = ds->config.client,
        .kind = &pdb_kind,
        .on_change = drains_on_pdb,
        .on_gone = drains_on_pdb_gone,
        .on_synced = pdbs_on_synced,
        .on_reset = pdbs_on_reset,
        .on_error = pdbs_on_error,
        .ctx = ds,
    };
    informer_init(&ds->pdbs, &config);
    informer_start(&ds->pdbs, STR("/apis/policy/v1/poddisruptionbudgets"));
}

void drains_unwatch_pdbs(struct drains *ds)
{
    if (ds->watching) {
        informer_done(&ds->pdbs);
        ds->watching = false;
        ds->pdbs_unwatched = false;
    }
}

bool drains_pdbs_ready(const struct drains *ds)
{
    return (ds->watching && ds->pdbs.synced) || ds->pdbs_unwatched;
}

/* ── budgets and pods ──────────────────────────────────────────────────────────────────────── */

void drain_pod_forget_pdb(struct drain_pod_state *p)
{
    list_del(&p->pdb_link);
    p->pdb = NULL;
    p->many_pdbs = false;
    p->pdb_changes = 0;
}

void drain_pod_match_pdb(struct drain_pod_state *p)
{
    struct drains *ds = p->drain->drains;
    struct pdb_state *before = p->pdb;
    bool many_pdbs = p->many_pdbs;
    if (p->pdb_changes == ds->pdb_changes) {
        return;
    }
    drain_pod_forget_pdb(p);
    p->pdb_changes = ds->pdb_changes;
    struct str namespace = drain_namespace(p->item);
    MAP_EACH (&ds->pdbs.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        if (ds->pdbs_unwatched || !pdb_covers(item->object, namespace, drain_pod_of(p))) {
            continue;
        }
        if (p->pdb != NULL) {
            p->many_pdbs = true;
            break;
        }
        p->pdb = pdb_state_get(ds, item);
        list_add(&p->pdb->pod_states, &p->pdb_link);
    }
    /* What another budget refused says nothing about this one. */
    if (p->pdb != before || p->many_pdbs != many_pdbs) {
        p->retry_at = 0;
    }
}
