/*
 * Which objects are counted under which limit, and which of them are unavailable. The counts are
 * kept up to date object by object: one that changes is taken out as it was and put in as it is.
 * Only when a limit, a selector or a namespace changes is everything counted again, once a turn.
 */
#include "ledger/arbiter_internal.h"

#define IN_MAINTENANCE_VALUE STR("in-maintenance")

/* ── workloads and namespaces ──────────────────────────────────────────────────────────────── */

static int64_t workload_number(const struct jval *object, const char *path, int64_t otherwise)
{
    int64_t n = otherwise;
    (void)jval_i64(jval_at(object, path), &n); /* absent: `otherwise` */
    return n;
}

static bool workload_is_available(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "status.conditions"), c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), STR("Available"))) {
            return str_eq(jval_str(jval_get(c, STR("status"))), STR("True"));
        }
    }
    return false;
}

/* An absent count of replicas is one, as the API server would have filled it in. */
static uint32_t workload_traits(enum target_type type, const struct jval *object)
{
    int64_t wanted = workload_number(object, "spec.replicas", 1);
    uint32_t traits = 0;
    if (type == TARGET_DEPLOYMENT) {
        traits |= !workload_is_available(object) ||
                          workload_number(object, "status.availableReplicas", 0) < wanted
                      ? TRAIT_UNAVAILABLE
                      : 0;
    } else if (type == TARGET_STATEFULSET) {
        traits |=
            workload_number(object, "status.readyReplicas", 0) < wanted ? TRAIT_UNAVAILABLE : 0;
    } else {
        wanted = workload_number(object, "status.desiredNumberScheduled", 0);
        traits |= workload_number(object, "status.numberUnavailable", 0) > 0 ||
                          workload_number(object, "status.numberReady", 0) < wanted
                      ? TRAIT_UNAVAILABLE
                      : 0;
    }
    const char *updated =
        type == TARGET_DAEMONSET ? "status.updatedNumberScheduled" : "status.updatedReplicas";
    if (workload_number(object, "status.observedGeneration", 0) <
            workload_number(object, "metadata.generation", 0) ||
        workload_number(object, updated, 0) < wanted) {
        traits |= TRAIT_PROGRESSING;
    }
    return traits;
}

static int64_t workload_spare(enum target_type type, const struct jval *object)
{
    switch (type) {
    case TARGET_DEPLOYMENT:
        return workload_number(object, "status.availableReplicas", 0) -
               workload_number(object, "spec.replicas", 1);
    case TARGET_STATEFULSET:
        return workload_number(object, "status.readyReplicas", 0) -
               workload_number(object, "spec.replicas", 1);
    case TARGET_DAEMONSET:
        return workload_number(object, "status.numberReady", 0) -
               workload_number(object, "status.desiredNumberScheduled", 0);
    case TARGET_NODE:
        break;
    }
    return 0;
}

static int workload_project(void *ctx, const struct jval *object, struct arena *out, void **ret,
                            struct err *err UNUSED)
{
    const struct workload_watch *c = ctx;
    const struct jval *labels = jval_at(object, "metadata.labels");
    struct workload *t = ARENA_NEW(out, struct workload);
    if (jval_kind(labels) == JOBJ && labels->n > 0) {
        t->labels = ARENA_ARRAY(out, struct workload_label, labels->n);
        JVAL_EACH (labels, value) {
            t->labels[t->label_n++] = (struct workload_label){ arena_str(out, jval_key(value)),
                                                               arena_str(out, jval_str(value)) };
        }
    }
    t->traits = c->namespaces ? 0 : workload_traits(c->type, object);
    t->spare_pods = c->namespaces ? 0 : workload_spare(c->type, object);
    *ret = t;
    return 0;
}

static bool workload_same(const void *left, const void *right)
{
    const struct workload *a = left;
    const struct workload *b = right;
    if (a->traits != b->traits || a->spare_pods != b->spare_pods || a->label_n != b->label_n) {
        return false;
    }
    for (uint32_t i = 0; i < a->label_n; i++) {
        if (!str_eq(a->labels[i].key, b->labels[i].key) ||
            !str_eq(a->labels[i].value, b->labels[i].value)) {
            return false;
        }
    }
    return true;
}

static const struct store_kind workload_kind = {
    .name = "workload",
    .namespaced = true,
    .project = workload_project,
    .same = workload_same,
};

static const struct store_kind namespace_kind = {
    .name = "namespace",
    .project = workload_project,
    .same = workload_same,
};

static bool workload_lookup(void *ctx, struct str key, struct str *ret_value)
{
    const struct workload *t = ctx;
    for (uint32_t i = 0; i < t->label_n; i++) {
        if (str_eq(t->labels[i].key, key)) {
            *ret_value = t->labels[i].value;
            return true;
        }
    }
    return false;
}

/* ── objects ───────────────────────────────────────────────────────────────────────────────── */

static bool lookup_node(void *ctx, struct str key, struct str *ret_value)
{
    struct str value = node_label(ctx, key);
    if (value.p == NULL) {
        return false;
    }
    *ret_value = value;
    return true;
}

bool counted_object_lookup_jval(void *ctx, struct str key, struct str *ret_value)
{
    const struct jval *value = jval_get(ctx, key);
    if (value == NULL) {
        return false;
    }
    *ret_value = jval_str(value);
    return true;
}

static uint32_t node_traits(const struct arbiter *a, const struct node *n)
{
    struct str ready = node_condition(n, STR("Ready"));
    uint32_t traits = 0;
    traits |= str_eq(ready, STR("False")) ? TRAIT_NOT_READY : 0;
    /* The original did not count unreachable nodes; a missing condition never counts. */
    traits |= str_eq(ready, STR("Unknown")) && !a->config.legacy_notready ? TRAIT_UNKNOWN : 0;
    traits |= n->unschedulable ? TRAIT_UNSCHEDULABLE : 0;
    traits |= n->deleting ? TRAIT_DELETING : 0;
    traits |= str_eq(node_label(n, KEY_STATE), IN_MAINTENANCE_VALUE) ? TRAIT_IN_MAINTENANCE : 0;
    return traits;
}

static struct counted_object counted_node(const struct arbiter *a, struct str name,
                                          const struct node *n)
{
    return (struct counted_object){
        .type = TARGET_NODE,
        .name = name,
        .bare_name = name,
        .traits = node_traits(a, n),
        .lookup = lookup_node,
        .ctx = (void *)(uintptr_t)n,
    };
}

static struct counted_object counted_workload(enum target_type type, struct str name,
                                              const struct workload *t)
{
    struct counted_object m = {
        .type = type,
        .name = name,
        .traits = t->traits,
        .lookup = workload_lookup,
        .ctx = (void *)(uintptr_t)t,
    };
    (void)str_cut(name, STR("/"), &m.namespace, &m.bare_name); /* the store named it so */
    return m;
}

bool population_find(const struct arbiter *a, enum target_type type, struct str name,
                     struct counted_object *ret)
{
    const struct store *s =
        type == TARGET_NODE ? a->config.nodes : &a->workload_watches[type].objects.store;
    if (type != TARGET_NODE && !a->workload_watches[type].running) {
        return false;
    }
    const struct store_item *item = store_find(s, name);
    if (item == NULL) {
        return false;
    }
    *ret = type == TARGET_NODE ? counted_node(a, item->name, item->object)
                               : counted_workload(type, item->name, item->object);
    return true;
}

void population_each(const struct arbiter *a, enum target_type type,
                     void (*fn)(void *ctx, const struct counted_object *m), void *ctx)
{
    const struct store *s =
        type == TARGET_NODE ? a->config.nodes : &a->workload_watches[type].objects.store;
    if (type != TARGET_NODE && !a->workload_watches[type].running) {
        return;
    }
    MAP_EACH (&s->items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct counted_object m = type == TARGET_NODE
                                      ? counted_node(a, item->name, item->object)
                                      : counted_workload(type, item->name, item->object);
        fn(ctx, &m);
    }
}

static bool namespace_matches(const struct arbiter *a, struct str namespace,
                              const struct selector *s)
{
    const struct store_item *item =
        a->namespaces.running ? store_find(&a->namespaces.objects.store, namespace) : NULL;
    return item != NULL && selector_match(s, workload_lookup, item->object);
}

/* ── counting ──────────────────────────────────────────────────────────────────────────────── */

bool population_selector_matches(const struct arbiter *a, const struct maintenance_selector *p,
                                 const struct counted_object *m)
{
    if (p->namespaced && !namespace_matches(a, m->namespace, &p->namespaces)) {
        return false;
    }
    return (p->has_selector && selector_match(&p->selector, m->lookup, m->ctx)) ||
           maintenance_selector_has_name(p, m->name, m->bare_name);
}

static bool limit_state_selects(const struct arbiter *a, const struct limit_state *b,
                                const struct counted_object *m)
{
    const struct limit *l = limit_of(b);
    if (l->namespaced && !namespace_matches(a, m->namespace, &l->namespaces)) {
        return false;
    }
    if (l->has_selector_ref) {
        const struct maintenance_selector *p = selectors_find(a, l->selector_ref);
        return p != NULL && population_selector_matches(a, p, m);
    }
    return !l->has_selector || selector_match(&l->selector, m->lookup, m->ctx);
}

/* A limit that is not usable may concern any object: it applies to all of its type, and grants
 * nothing. */
uint32_t population_limits(const struct arbiter *a, const struct counted_object *m,
                           struct limit_state **ret, uint32_t max)
{
    struct limit_state *best = NULL;
    uint32_t n = 0;
    LIST_EACH (&a->limit_states, link) {
        struct limit_state *b = CONTAINER_OF(link, struct limit_state, link);
        const struct limit *l = limit_of(b);
        if (!l->type_known || l->type != m->type || (b->usable && !limit_state_selects(a, b, m))) {
            continue;
        }
        if (b->usable && l->exclusive && (best == NULL || l->priority > limit_of(best)->priority)) {
            best = b;
        }
        if (n < max) {
            ret[n++] = b;
        }
    }
    if (best != NULL) {
        ret[0] = best;
        return 1;
    }
    return n;
}

#define POPULATION_LIMITS_MAX 256u /* that apply to one object: more are a mistake */

/* Adds the object to every count, or takes it out. */
static void population_count(struct arbiter *a, const struct counted_object *m, bool in)
{
    struct limit_state *limits[POPULATION_LIMITS_MAX];
    uint32_t n = population_limits(a, m, limits, POPULATION_LIMITS_MAX);
    struct limit_state *fallback = a->fallback[m->type];
    for (uint32_t i = 0; i < n; i++) {
        struct limit_state *b = limits[i];
        if (!b->usable) {
            continue;
        }
        const struct limit_policy *hit = limit_match_policy(limit_of(b), m->traits);
        ASSERT(in || b->population > 0);
        b->population += in ? 1 : UINT32_MAX;
        if (hit != NULL && in) {
            (void)map_put(&b->policy_hits, m->name, (void *)(uintptr_t)hit); /* it was not there */
        } else if (hit != NULL) {
            (void)map_del(&b->policy_hits, m->name); /* it was there */
        }
    }
    if (fallback != NULL) {
        ASSERT(in || fallback->population > 0);
        fallback->population += in ? 1 : UINT32_MAX;
    }
}

static void population_count_in(void *ctx, const struct counted_object *m)
{
    population_count(ctx, m, /* in= */ true);
}

static void limit_state_reset_count(struct limit_state *b)
{
    MAP_EACH (&b->policy_hits, entry) {
        (void)map_del(&b->policy_hits, map_item_name(entry)); /* the value is a table's */
    }
    b->population = 0;
}

void population_recount(struct arbiter *a)
{
    for (uint32_t type = 0; type < TARGET_TYPES; type++) {
        if (!a->recount[type]) {
            continue;
        }
        LIST_EACH (&a->limit_states, link) {
            struct limit_state *b = CONTAINER_OF(link, struct limit_state, link);
            if (limit_of(b)->type_known && limit_of(b)->type == type) {
                limit_state_check_usable(b);
                limit_state_reset_count(b);
            }
        }
        if (a->fallback[type] != NULL) {
            limit_state_reset_count(a->fallback[type]);
        }
        a->recount[type] = false;
        population_each(a, (enum target_type)type, population_count_in, a);
    }
}

static void target_changed(struct arbiter *a, const struct counted_object *m)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(target_type_name(m->type)),
               STR_ARG(m->namespace), STR_ARG(m->bare_name));
    struct target_lock *l = map_find(&a->targets, buf_str(&text));
    if (l == NULL) {
        return;
    }
    LIST_EACH (&l->asks, link) {
        CONTAINER_OF(link, struct ask, lock_link)->limits_version = 0;
    }
}

/* `before` is NULL for a new object, `now` for one that goes. */
static void population_update(struct arbiter *a, const struct counted_object *before,
                              const struct counted_object *now)
{
    const struct counted_object *any = now != NULL ? now : before;
    if (!a->recount[any->type]) {
        if (before != NULL) {
            population_count(a, before, /* in= */ false);
        }
        if (now != NULL) {
            population_count(a, now, /* in= */ true);
        }
    }
    target_changed(a, any);
    selectors_mark(a, any->type);
    arbiter_run_soon(a);
}

static bool same_labels(const struct node *a, const struct node *b)
{
    if (a->label_count != b->label_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->label_count; i++) {
        /* Interned: one text, one address. */
        if (a->labels[i].key != b->labels[i].key || a->labels[i].value != b->labels[i].value) {
            return false;
        }
    }
    return true;
}

void arbiter_on_node(struct arbiter *a, const struct store_item *item, const void *before,
                     bool gone)
{
    struct counted_object now = counted_node(a, item->name, item->object);
    if (map_count(&a->orphans) > 0) {
        arbiter_run_soon(a); /* the mark that keeps an orphan may be gone */
    }
    if (gone) {
        population_update(a, &now, NULL);
        return;
    }
    if (before == NULL) {
        population_update(a, NULL, &now);
        return;
    }
    struct counted_object old = counted_node(a, item->name, before);
    if (old.traits != now.traits || !same_labels(before, item->object)) {
        population_update(a, &old, &now);
    }
}

/* ── watches ───────────────────────────────────────────────────────────────────────────────── */

static void workload_watch_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct workload_watch *c = ctx;
    if (c->namespaces) {
        for (uint32_t type = 1; type < TARGET_TYPES; type++) {
            arbiter_limits_changed(c->arbiter, (enum target_type)type);
        }
        return;
    }
    struct counted_object now = counted_workload(c->type, item->name, item->object);
    if (before == NULL) {
        population_update(c->arbiter, NULL, &now);
    } else {
        struct counted_object old = counted_workload(c->type, item->name, before);
        population_update(c->arbiter, &old, &now);
    }
}

static void workload_watch_on_gone(void *ctx, struct store_item *item)
{
    struct workload_watch *c = ctx;
    if (c->namespaces) {
        for (uint32_t type = 1; type < TARGET_TYPES; type++) {
            arbiter_limits_changed(c->arbiter, (enum target_type)type);
        }
        return;
    }
    struct counted_object old = counted_workload(c->type, item->name, item->object);
    population_update(c->arbiter, &old, NULL);
}

static void workload_watch_on_synced(void *ctx)
{
    const struct workload_watch *c = ctx;
    arbiter_run_soon(c->arbiter);
}

static void workload_watch_on_error(void *ctx, const struct err *err)
{
    const struct workload_watch *c = ctx;
    if (c->arbiter->config.log != NULL) {
        log_debug(c->arbiter->config.log, "watch failed", KV_STR("path", buf_str(&c->objects.path)),
                  KV_TEXT("error", err->msg));
    }
    arbiter_run_soon(c->arbiter);
}

static void workload_watch_start(struct workload_watch *c, struct arbiter *a, struct str path)
{
    c->arbiter = a;
    c->running = true;
    informer_init(&c->objects, &(struct informer_config){
                                   .client = a->client,
                                   .kind = c->namespaces ? &namespace_kind : &workload_kind,
                                   .on_change = workload_watch_on_change,
                                   .on_gone = workload_watch_on_gone,
                                   .on_synced = workload_watch_on_synced,
                                   .on_error = workload_watch_on_error,
                                   .ctx = c,
                               });
    informer_start(&c->objects, path);
}

static void workload_watch_stop(struct workload_watch *c)
{
    if (!c->running) {
        return;
    }
    c->objects.store.on_gone = NULL;
    informer_done(&c->objects);
    *c = (struct workload_watch){ .namespaces = c->namespaces, .type = c->type };
}

static struct str workload_watch_path(enum target_type type)
{
    switch (type) {
    case TARGET_DEPLOYMENT:
        return STR("/apis/apps/v1/deployments");
    case TARGET_DAEMONSET:
        return STR("/apis/apps/v1/daemonsets");
    case TARGET_STATEFULSET:
        return STR("/apis/apps/v1/statefulsets");
    case TARGET_NODE:
        break;
    }
    return STR_NONE;
}

struct watch_needs {
    bool type[TARGET_TYPES];
    bool namespaces;
};

static void watch_needs_of_selectors(const struct arbiter *a, struct watch_needs *needs)
{
    MAP_EACH (&a->selectors.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct maintenance_selector *p = item->object;
        needs->type[p->type] = needs->type[p->type] || p->reason.n == 0;
        needs->namespaces = needs->namespaces || p->namespaced;
    }
}

void population_update_watches(struct arbiter *a)
{
    struct watch_needs needs = { 0 };
    watch_needs_of_selectors(a, &needs);
    LIST_EACH (&a->limit_states, link) {
        const struct limit *l = limit_of(CONTAINER_OF(link, struct limit_state, link));
        if (l->type_known) {
            needs.type[l->type] = true;
            needs.namespaces = needs.namespaces || l->namespaced;
        }
    }
    for (uint32_t i = 0; i < TARGET_TYPES; i++) {
        struct workload_watch *c = &a->workload_watches[i];
        needs.type[i] = needs.type[i] || a->ask_count[i] > 0;
        if (i == TARGET_NODE || needs.type[i] == c->running) {
            continue;
        }
        c->type = (enum target_type)i;
        if (needs.type[i]) {
            workload_watch_start(c, a, workload_watch_path(c->type));
        } else {
            workload_watch_stop(c);
        }
        arbiter_limits_changed(a, c->type);
    }
    if (needs.namespaces != a->namespaces.running) {
        a->namespaces.namespaces = true;
        if (needs.namespaces) {
            workload_watch_start(&a->namespaces, a, STR("/api/v1/namespaces"));
        } else {
            workload_watch_stop(&a->namespaces);
        }
    }
}

static bool workload_watch_is_current(const struct workload_watch *c)
{
    return c->running && informer_healthy(&c->objects);
}

bool population_known(const struct arbiter *a, enum target_type type)
{
    if (type == TARGET_NODE) {
        return a->may_act; /* may_act vouches for the nodes */
    }
    return workload_watch_is_current(&a->workload_watches[type]) &&
           (!a->namespaces.running || workload_watch_is_current(&a->namespaces));
}

void population_start(struct arbiter *a)
{
    for (uint32_t type = 0; type < TARGET_TYPES; type++) {
        a->recount[type] = true;
    }
}

void population_stop(struct arbiter *a)
{
    for (uint32_t type = 0; type < TARGET_TYPES; type++) {
        workload_watch_stop(&a->workload_watches[type]);
    }
    workload_watch_stop(&a->namespaces);
}

/* ── checks ────────────────────────────────────────────────────────────────────────────────── */

struct population_verify {
    const struct arbiter *arbiter;
    const struct limit_state *limit;
    uint32_t population;
    uint32_t policy_hits;
};

static void population_verify_visit(void *ctx, const struct counted_object *m)
{
    struct population_verify *r = ctx;
    struct limit_state *limits[POPULATION_LIMITS_MAX];
    uint32_t n = population_limits(r->arbiter, m, limits, POPULATION_LIMITS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (limits[i] == r->limit && r->limit->usable) {
            const struct limit_policy *hit = limit_match_policy(limit_of(r->limit), m->traits);
            r->population++;
            r->policy_hits += hit != NULL ? 1 : 0;
            ASSERT(map_find(&r->limit->policy_hits, m->name) == hit);
        }
    }
}

/* The counts that were kept object by object are those that counting everything gives. */
void population_check(const struct arbiter *a)
{
    LIST_EACH (&a->limit_states, link) {
        const struct limit_state *b = CONTAINER_OF(link, struct limit_state, link);
        const struct limit *l = limit_of(b);
        if (!l->type_known || a->recount[l->type]) {
            continue;
        }
        struct population_verify r = { .arbiter = a, .limit = b };
        population_each(a, l->type, population_verify_visit, &r);
        ASSERT(r.population == b->population);
        ASSERT(r.policy_hits == map_count(&b->policy_hits));
    }
}
