/*
 * Who is counted under which limit, and which of them is unavailable. Kept up to date object by
 * object: one that changes is taken out as it was and put in as it is. Only a limit or a selector
 * that changes has everything counted again, once a turn.
 */
#include "ledger/arbiter_internal.h"

#define RUNNING_LABEL STR("cloud.sap/maintenance-state")
#define RUNNING_VALUE STR("in-maintenance")

/* ── workloads and namespaces ──────────────────────────────────────────────────────────────── */

static int64_t thing_number(const struct jval *object, const char *path, int64_t otherwise)
{
    int64_t n = otherwise;
    (void)jval_i64(jval_at(object, path), &n); /* absent: as said */
    return n;
}

static bool thing_is_available(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "status.conditions"), c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), STR("Available"))) {
            return str_eq(jval_str(jval_get(c, STR("status"))), STR("True"));
        }
    }
    return false;
}

/* An absent count of replicas is one, as the API server would have filled it in. */
static uint32_t thing_traits(enum target_type type, const struct jval *object)
{
    int64_t wanted = thing_number(object, "spec.replicas", 1);
    uint32_t traits = 0;
    if (type == TARGET_DEPLOYMENT) {
        traits |= !thing_is_available(object) ||
                          thing_number(object, "status.availableReplicas", 0) < wanted
                      ? TRAIT_UNAVAILABLE
                      : 0;
    } else if (type == TARGET_STATEFULSET) {
        traits |= thing_number(object, "status.readyReplicas", 0) < wanted ? TRAIT_UNAVAILABLE : 0;
    } else {
        wanted = thing_number(object, "status.desiredNumberScheduled", 0);
        traits |= thing_number(object, "status.numberUnavailable", 0) > 0 ||
                          thing_number(object, "status.numberReady", 0) < wanted
                      ? TRAIT_UNAVAILABLE
                      : 0;
    }
    const char *updated =
        type == TARGET_DAEMONSET ? "status.updatedNumberScheduled" : "status.updatedReplicas";
    if (thing_number(object, "status.observedGeneration", 0) <
            thing_number(object, "metadata.generation", 0) ||
        thing_number(object, updated, 0) < wanted) {
        traits |= TRAIT_PROGRESSING;
    }
    return traits;
}

static int64_t thing_spare(enum target_type type, const struct jval *object)
{
    switch (type) {
    case TARGET_DEPLOYMENT:
        return thing_number(object, "status.availableReplicas", 0) -
               thing_number(object, "spec.replicas", 1);
    case TARGET_STATEFULSET:
        return thing_number(object, "status.readyReplicas", 0) -
               thing_number(object, "spec.replicas", 1);
    case TARGET_DAEMONSET:
        return thing_number(object, "status.numberReady", 0) -
               thing_number(object, "status.desiredNumberScheduled", 0);
    case TARGET_NODE:
        break;
    }
    return 0;
}

static int thing_project(void *ctx, const struct jval *object, struct arena *out, void **ret,
                         struct err *err UNUSED)
{
    const struct crowd *c = ctx;
    const struct jval *labels = jval_at(object, "metadata.labels");
    struct thing *t = ARENA_NEW(out, struct thing);
    if (jval_kind(labels) == JOBJ && labels->n > 0) {
        t->labels = ARENA_ARRAY(out, struct thing_label, labels->n);
        JVAL_EACH (labels, value) {
            t->labels[t->label_n++] = (struct thing_label){ arena_str(out, jval_key(value)),
                                                            arena_str(out, jval_str(value)) };
        }
    }
    t->traits = c->spaces ? 0 : thing_traits(c->type, object);
    t->spare = c->spaces ? 0 : thing_spare(c->type, object);
    *ret = t;
    return 0;
}

static bool thing_same(const void *left, const void *right)
{
    const struct thing *a = left;
    const struct thing *b = right;
    if (a->traits != b->traits || a->spare != b->spare || a->label_n != b->label_n) {
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
    .spaced = true,
    .project = thing_project,
    .same = thing_same,
};

static const struct store_kind space_kind = {
    .name = "namespace",
    .project = thing_project,
    .same = thing_same,
};

static bool lookup_thing(void *ctx, struct str key, struct str *ret_value)
{
    const struct thing *t = ctx;
    for (uint32_t i = 0; i < t->label_n; i++) {
        if (str_eq(t->labels[i].key, key)) {
            *ret_value = t->labels[i].value;
            return true;
        }
    }
    return false;
}

/* ── members ───────────────────────────────────────────────────────────────────────────────── */

static bool lookup_node(void *ctx, struct str key, struct str *ret_value)
{
    struct str value = node_label(ctx, key);
    if (value.p == NULL) {
        return false;
    }
    *ret_value = value;
    return true;
}

bool member_lookup_jval(void *ctx, struct str key, struct str *ret_value)
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
    /* The original did not see an unreachable node; a missing condition never counted. */
    traits |= str_eq(ready, STR("Unknown")) && !a->config.legacy_notready ? TRAIT_UNKNOWN : 0;
    traits |= n->unschedulable ? TRAIT_UNSCHEDULABLE : 0;
    traits |= n->deleting ? TRAIT_DELETING : 0;
    traits |= str_eq(node_label(n, RUNNING_LABEL), RUNNING_VALUE) ? TRAIT_RUNNING : 0;
    return traits;
}

static struct member member_node(const struct arbiter *a, struct str name, const struct node *n)
{
    return (struct member){
        .type = TARGET_NODE,
        .name = name,
        .plain = name,
        .traits = node_traits(a, n),
        .lookup = lookup_node,
        .ctx = (void *)(uintptr_t)n,
    };
}

static struct member member_thing(enum target_type type, struct str name, const struct thing *t)
{
    struct member m = {
        .type = type,
        .name = name,
        .traits = t->traits,
        .lookup = lookup_thing,
        .ctx = (void *)(uintptr_t)t,
    };
    (void)str_cut(name, STR("/"), &m.space, &m.plain); /* the store named it so */
    return m;
}

bool population_find(const struct arbiter *a, enum target_type type, struct str name,
                     struct member *ret)
{
    const struct store *s = type == TARGET_NODE ? a->config.nodes : &a->crowds[type].store;
    if (type != TARGET_NODE && !a->crowds[type].running) {
        return false;
    }
    const struct store_item *item = store_find(s, name);
    if (item == NULL) {
        return false;
    }
    *ret = type == TARGET_NODE ? member_node(a, item->name, item->object)
                               : member_thing(type, item->name, item->object);
    return true;
}

void population_each(const struct arbiter *a, enum target_type type,
                     void (*fn)(void *ctx, const struct member *m), void *ctx)
{
    const struct store *s = type == TARGET_NODE ? a->config.nodes : &a->crowds[type].store;
    if (type != TARGET_NODE && !a->crowds[type].running) {
        return;
    }
    MAP_EACH (&s->items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct member m = type == TARGET_NODE ? member_node(a, item->name, item->object)
                                              : member_thing(type, item->name, item->object);
        fn(ctx, &m);
    }
}

bool population_space_matches(const struct arbiter *a, struct str space, const struct selector *s)
{
    const struct store_item *item = a->spaces.running ? store_find(&a->spaces.store, space) : NULL;
    return item != NULL && selector_match(s, lookup_thing, item->object);
}

/* ── counting ──────────────────────────────────────────────────────────────────────────────── */

static bool picker_selects(const struct arbiter *a, const struct picker *p, const struct member *m)
{
    if (p->spaced && !population_space_matches(a, m->space, &p->spaces)) {
        return false;
    }
    return (p->selects && selector_match(&p->selector, m->lookup, m->ctx)) ||
           picker_names(p, m->name, m->plain);
}

static bool book_selects(const struct arbiter *a, const struct book *b, const struct member *m)
{
    const struct limit *l = book_limit(b);
    if (l->spaced && !population_space_matches(a, m->space, &l->spaces)) {
        return false;
    }
    if (l->refers) {
        const struct picker *p = sights_find(a, l->reference);
        return p != NULL && picker_selects(a, p, m);
    }
    return !l->selects || selector_match(&l->selector, m->lookup, m->ctx);
}

/* A limit whose population cannot be told may concern anybody: it is among those that apply, and
 * grants nothing. */
uint32_t population_books(const struct arbiter *a, const struct member *m, struct book **ret,
                          uint32_t max)
{
    struct book *best = NULL;
    uint32_t n = 0;
    LIST_EACH (&a->books, link) {
        struct book *b = CONTAINER_OF(link, struct book, link);
        const struct limit *l = book_limit(b);
        if (!l->governs || l->type != m->type || (b->usable && !book_selects(a, b, m))) {
            continue;
        }
        if (b->usable && l->exclusive &&
            (best == NULL || l->priority > book_limit(best)->priority)) {
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

#define BOOKS_MAX 256u /* of one target: more limits than that on one object are a mistake */

/* Takes the object in or out of every count. */
static void population_count(struct arbiter *a, const struct member *m, bool in)
{
    struct book *books[BOOKS_MAX];
    uint32_t n = population_books(a, m, books, BOOKS_MAX);
    struct book *fallback = a->fallback[m->type];
    for (uint32_t i = 0; i < n; i++) {
        struct book *b = books[i];
        if (!b->usable) {
            continue;
        }
        const struct limit_policy *hit = limit_hit(book_limit(b), m->traits);
        ASSERT(in || b->population > 0);
        b->population += in ? 1 : UINT32_MAX;
        if (hit != NULL && in) {
            (void)map_put(&b->hits, m->name, (void *)(uintptr_t)hit); /* it was not there */
        } else if (hit != NULL) {
            (void)map_del(&b->hits, m->name); /* it was there, and that is all there is to it */
        }
    }
    if (fallback != NULL) {
        ASSERT(in || fallback->population > 0);
        fallback->population += in ? 1 : UINT32_MAX;
    }
}

static void count_in(void *ctx, const struct member *m)
{
    population_count(ctx, m, /* in= */ true);
}

static void book_forget_count(struct book *b)
{
    MAP_EACH (&b->hits, entry) {
        (void)map_del(&b->hits, map_item_name(entry)); /* the value is a table's */
    }
    b->population = 0;
}

void population_recount(struct arbiter *a)
{
    for (uint32_t type = 0; type < TARGET_TYPES; type++) {
        if (!a->recount[type]) {
            continue;
        }
        LIST_EACH (&a->books, link) {
            struct book *b = CONTAINER_OF(link, struct book, link);
            if (book_limit(b)->governs && book_limit(b)->type == type) {
                book_judge(b);
                book_forget_count(b);
            }
        }
        if (a->fallback[type] != NULL) {
            book_forget_count(a->fallback[type]);
        }
        a->recount[type] = false;
        population_each(a, (enum target_type)type, count_in, a);
    }
}

static void target_changed(struct arbiter *a, const struct member *m)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(target_type_name(m->type)),
               STR_ARG(m->space), STR_ARG(m->plain));
    struct lock *l = map_find(&a->targets, buf_str(&text));
    if (l == NULL) {
        return;
    }
    LIST_EACH (&l->asks, link) {
        CONTAINER_OF(link, struct ask, at)->shape = 0;
    }
}

/* Either may be NULL: one that is new, one that goes. */
static void population_move(struct arbiter *a, const struct member *before,
                            const struct member *now)
{
    const struct member *any = now != NULL ? now : before;
    if (!a->recount[any->type]) {
        if (before != NULL) {
            population_count(a, before, /* in= */ false);
        }
        if (now != NULL) {
            population_count(a, now, /* in= */ true);
        }
    }
    target_changed(a, any);
    sights_mark(a, any->type);
    arbiter_soon(a);
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
    struct member now = member_node(a, item->name, item->object);
    if (map_count(&a->orphans) > 0) {
        arbiter_soon(a); /* the mark of one of them may have gone */
    }
    if (gone) {
        population_move(a, &now, NULL);
        return;
    }
    if (before == NULL) {
        population_move(a, NULL, &now);
        return;
    }
    struct member old = member_node(a, item->name, before);
    if (old.traits != now.traits || !same_labels(before, item->object)) {
        population_move(a, &old, &now);
    }
}

/* ── watches ───────────────────────────────────────────────────────────────────────────────── */

static void crowd_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct crowd *c = ctx;
    if (c->spaces) {
        for (uint32_t type = 1; type < TARGET_TYPES; type++) {
            arbiter_reshape(c->arbiter, (enum target_type)type);
        }
        return;
    }
    struct member now = member_thing(c->type, item->name, item->object);
    if (before == NULL) {
        population_move(c->arbiter, NULL, &now);
    } else {
        struct member old = member_thing(c->type, item->name, before);
        population_move(c->arbiter, &old, &now);
    }
}

static void crowd_on_gone(void *ctx, struct store_item *item)
{
    struct crowd *c = ctx;
    if (c->spaces) {
        for (uint32_t type = 1; type < TARGET_TYPES; type++) {
            arbiter_reshape(c->arbiter, (enum target_type)type);
        }
        return;
    }
    struct member old = member_thing(c->type, item->name, item->object);
    population_move(c->arbiter, &old, NULL);
}

static void crowd_on_list(void *ctx)
{
    struct crowd *c = ctx;
    store_list_begin(&c->store);
}

static int crowd_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct crowd *c = ctx;
    int r = store_observe(&c->store, object, deleted, err);
    while (store_take(&c->store) != NULL) {
        /* on_change has seen it; nobody else asks what is dirty */
    }
    return r;
}

static bool crowd_on_synced(void *ctx, uint64_t version)
{
    struct crowd *c = ctx;
    c->synced = store_list_end(&c->store, version);
    arbiter_soon(c->arbiter);
    return c->synced;
}

static void crowd_on_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct crowd *c = ctx;
    if (c->arbiter->config.log != NULL) {
        log_debug(c->arbiter->config.log, "watch failed", KV_STR("path", c->reflector.config.path),
                  KV_TEXT("error", err->msg));
    }
    arbiter_soon(c->arbiter);
}

static void crowd_run(struct crowd *c, struct arbiter *a, struct str path)
{
    c->arbiter = a;
    c->running = true;
    store_init(&c->store, c->spaces ? &space_kind : &workload_kind, c, loop_random(a->loop));
    c->store.on_change = crowd_on_change;
    c->store.on_gone = crowd_on_gone;
    reflector_init(&c->reflector, a->client,
                   &(struct reflector_config){
                       .path = path,
                       .on_list = crowd_on_list,
                       .on_object = crowd_on_object,
                       .on_synced = crowd_on_synced,
                       .on_error = crowd_on_error,
                       .ctx = c,
                   });
    reflector_start(&c->reflector);
}

static void crowd_halt(struct crowd *c)
{
    if (!c->running) {
        return;
    }
    reflector_done(&c->reflector);
    c->store.on_gone = NULL;
    store_done(&c->store);
    *c = (struct crowd){ .spaces = c->spaces, .type = c->type };
}

static struct str crowd_path(enum target_type type)
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

struct need {
    bool type[TARGET_TYPES];
    bool spaces;
};

static void need_of_pickers(const struct arbiter *a, struct need *need)
{
    MAP_EACH (&a->pickers.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct picker *p = item->object;
        need->type[p->type] = need->type[p->type] || p->reason.n == 0;
        need->spaces = need->spaces || p->spaced;
    }
}

void population_need(struct arbiter *a)
{
    struct need need = { 0 };
    need_of_pickers(a, &need);
    LIST_EACH (&a->books, link) {
        const struct limit *l = book_limit(CONTAINER_OF(link, struct book, link));
        if (l->governs) {
            need.type[l->type] = true;
            need.spaces = need.spaces || l->spaced;
        }
    }
    for (uint32_t i = 0; i < TARGET_TYPES; i++) {
        struct crowd *c = &a->crowds[i];
        need.type[i] = need.type[i] || a->asking[i] > 0;
        if (i == TARGET_NODE || need.type[i] == c->running) {
            continue;
        }
        c->type = (enum target_type)i;
        if (need.type[i]) {
            crowd_run(c, a, crowd_path(c->type));
        } else {
            crowd_halt(c);
        }
        arbiter_reshape(a, c->type);
    }
    if (need.spaces != a->spaces.running) {
        a->spaces.spaces = true;
        if (need.spaces) {
            crowd_run(&a->spaces, a, STR("/api/v1/namespaces"));
        } else {
            crowd_halt(&a->spaces);
        }
    }
}

static bool crowd_knows(const struct crowd *c)
{
    return c->running && c->synced && !c->reflector.failing;
}

bool population_known(const struct arbiter *a, enum target_type type)
{
    if (type == TARGET_NODE) {
        return a->may; /* may_act vouches for the nodes */
    }
    return crowd_knows(&a->crowds[type]) && (!a->spaces.running || crowd_knows(&a->spaces));
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
        crowd_halt(&a->crowds[type]);
    }
    crowd_halt(&a->spaces);
}

/* ── checks ────────────────────────────────────────────────────────────────────────────────── */

struct recheck {
    const struct arbiter *arbiter;
    const struct book *book;
    uint32_t population;
    uint32_t hits;
};

static void recheck_visit(void *ctx, const struct member *m)
{
    struct recheck *r = ctx;
    struct book *books[BOOKS_MAX];
    uint32_t n = population_books(r->arbiter, m, books, BOOKS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (books[i] == r->book && r->book->usable) {
            const struct limit_policy *hit = limit_hit(book_limit(r->book), m->traits);
            r->population++;
            r->hits += hit != NULL ? 1 : 0;
            ASSERT(map_find(&r->book->hits, m->name) == hit);
        }
    }
}

/* What was counted step by step is what counting all of it gives. */
void population_check(const struct arbiter *a)
{
    LIST_EACH (&a->books, link) {
        const struct book *b = CONTAINER_OF(link, struct book, link);
        const struct limit *l = book_limit(b);
        if (!l->governs || a->recount[l->type]) {
            continue;
        }
        struct recheck r = { .arbiter = a, .book = b };
        population_each(a, l->type, recheck_visit, &r);
        ASSERT(r.population == b->population);
        ASSERT(r.hits == map_count(&b->hits));
    }
}
