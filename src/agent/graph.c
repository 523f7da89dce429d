#include "agent/graph.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/prioqueue.h"

#define CYCLE_NAMES_MAX 8u /* of a longer cycle the rest is counted */

/* A growing list of vertices in an arena. */
struct vertex_list {
    uint32_t *items;
    uint32_t n;
    uint32_t cap;
};

struct builder {
    struct resource_list *resources;
    struct arena *out;
    struct map by_name;
    struct map by_provides;
    struct vertex_list *requires;
    struct vertex_list *notifies;
    struct vertex_list *notified;
};

static bool list_has(const struct vertex_list *list, uint32_t v)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->items[i] == v) {
            return true;
        }
    }
    return false;
}

static void list_put(struct builder *b, struct vertex_list *list, uint32_t v)
{
    if (!list_has(list, v)) {
        ARENA_GROW(b->out, list->items, list->n, list->cap);
        list->items[list->n++] = v;
    }
}

/* Names of the document are its values: index + 1, as a map has no NULL. */
static void *index_value(uint32_t i)
{
    return (void *)(uintptr_t)(i + 1); /* NOLINT(performance-no-int-to-ptr) */
}

static bool index_find(const struct map *m, struct str name, uint32_t *ret)
{
    uintptr_t value = (uintptr_t)map_find(m, name);
    *ret = (uint32_t)value - 1;
    return value != 0;
}

static void note_problem(struct builder *b, struct resource *r, const char *field, struct str name)
{
    if (r->problem.n == 0) {
        r->problem = arena_printf(b->out, "field '%s': there is no resource '" STR_FMT "'", field,
                                  STR_ARG(str_sub(name, 0, RESOURCE_NAME_MAX)));
    }
}

static void add_written(struct builder *b, uint32_t i)
{
    struct resource *r = &b->resources->items[i];
    uint32_t other;
    for (uint32_t k = 0; k < r->requires_n; k++) {
        if (index_find(&b->by_name, r->requires_names[k], &other)) {
            list_put(b, &b->requires[i], other);
        } else {
            note_problem(b, r, "requires", r->requires_names[k]);
        }
    }
    for (uint32_t k = 0; k < r->notifies_n; k++) {
        if (index_find(&b->by_name, r->notifies_names[k], &other)) {
            list_put(b, &b->notifies[i], other);
            list_put(b, &b->notified[other], i);
        } else {
            note_problem(b, r, "notifies", r->notifies_names[k]);
        }
    }
}

/* Who provides it; of a path also the nearest folder above, because that comes first, too. */
static bool find_provider(const struct builder *b, struct str what, uint32_t *ret)
{
    while (!index_find(&b->by_provides, what, ret)) {
        size_t slash = str_rfind_char(what, '/');
        if (!str_starts(what, STR("path:/")) || slash == SIZE_MAX || slash <= strlen("path:")) {
            return false;
        }
        what = str_sub(what, 0, slash);
    }
    return true;
}

static void add_implied_edge(struct builder *b, uint32_t i, uint32_t other)
{
    /* Whoever writes the opposite means it. */
    if (other != i && !list_has(&b->requires[other], i) && !list_has(&b->notifies[i], other)) {
        list_put(b, &b->requires[i], other);
    }
}

/* Everybody who provides something in this folder. */
static void add_below(struct builder *b, uint32_t i, struct str folder)
{
    struct str rest;
    for (uint32_t other = 0; other < b->resources->n; other++) {
        if (str_cut_prefix(b->resources->items[other].provides, STR("path:"), &rest) &&
            str_cut_prefix(rest, folder, &rest) && str_starts(rest, STR("/"))) {
            add_implied_edge(b, i, other);
        }
    }
}

static void add_implied(struct builder *b, uint32_t i)
{
    const struct resource *r = &b->resources->items[i];
    for (uint32_t k = 0; k < r->uses_n; k++) {
        uint32_t other;
        struct str folder;
        if (str_cut_prefix(r->uses[k], STR("below:"), &folder)) {
            add_below(b, i, folder);
        } else if (find_provider(b, r->uses[k], &other)) {
            add_implied_edge(b, i, other);
        }
    }
}

static struct graph_edges edges_of(const struct vertex_list *list)
{
    return (struct graph_edges){ .items = list->items, .n = list->n };
}

/* ── order ─────────────────────────────────────────────────────────────────────────────────── */

/* Any vertex before `i` that is not placed: there is one, as `i` is not placed either. */
static uint32_t vertex_before(const struct builder *b, const bool *placed, uint32_t i)
{
    for (uint32_t j = 0; j < b->requires[i].n; j++) {
        if (!placed[b->requires[i].items[j]]) {
            return b->requires[i].items[j];
        }
    }
    for (uint32_t j = 0; j < b->notified[i].n; j++) {
        if (!placed[b->notified[i].items[j]]) {
            return b->notified[i].items[j];
        }
    }
    assert_fail("a vertex that is not placed waits for another", __FILE__, __LINE__);
}

static int tell_cycle(const struct builder *b, const bool *placed, uint32_t i, struct err *err)
{
    /* Going back from anywhere ends in a cycle after at most n steps. */
    for (uint32_t step = 0; step < b->resources->n; step++) {
        i = vertex_before(b, placed, i);
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    uint32_t first = i;
    uint32_t n = 0;
    do {
        if (n < CYCLE_NAMES_MAX) {
            buf_printf(&text, "'" STR_FMT "' waits for ",
                       STR_ARG(str_sub(b->resources->items[i].name, 0, 40)));
        }
        i = vertex_before(b, placed, i);
        n++;
    } while (i != first);
    if (n > CYCLE_NAMES_MAX) {
        buf_printf(&text, "%u more, which wait for ", n - CYCLE_NAMES_MAX);
    }
    err->pos = b->resources->items[first].pos;
    return err_set(err, ERR_INVALID, "resources go in a circle: " STR_FMT "'" STR_FMT "'",
                   STR_ARG(buf_str(&text)),
                   STR_ARG(str_sub(b->resources->items[first].name, 0, 40)));
}

/* Who comes after each, and how many it waits for itself: so that no document takes a square of its
 * length. */
struct waiting {
    struct vertex_list *after;
    uint32_t *before_n;
};

static void count_waiting(struct builder *b, struct waiting *w)
{
    uint32_t n = b->resources->n;
    w->after = ARENA_ARRAY(b->out, struct vertex_list, n);
    w->before_n = ARENA_ARRAY(b->out, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct vertex_list *before[] = { &b->requires[i], &b -> notified[i] };
        for (size_t k = 0; k < ARRAY_LEN(before); k++) {
            for (uint32_t j = 0; j < before[k]->n; j++) {
                struct vertex_list *list = &w->after[before[k]->items[j]];
                ARENA_GROW(b->out, list->items, list->n, list->cap);
                list->items[list->n++] = i; /* twice when it is notified by what it requires */
                w->before_n[i]++;
            }
        }
    }
}

/* Of those that wait for nobody the first of the document comes first. */
static bool ready_before(struct prioqueue_item *a, struct prioqueue_item *b)
{
    return a < b; /* elements of one array, in the order of the document */
}

static uint32_t place_all(struct builder *b, bool *placed, uint32_t *order)
{
    uint32_t n = b->resources->n;
    uint32_t done = 0;
    struct prioqueue_item *items = ARENA_ARRAY(b->out, struct prioqueue_item, n);
    CLEANUP(prioqueue_done)
    struct prioqueue ready;
    struct waiting w;
    prioqueue_init(&ready, ready_before);
    count_waiting(b, &w);
    for (uint32_t i = 0; i < n; i++) {
        if (w.before_n[i] == 0) {
            prioqueue_put(&ready, &items[i]);
        }
    }
    for (struct prioqueue_item *item; (item = prioqueue_first(&ready)) != NULL;) {
        uint32_t i = (uint32_t)(item - items);
        prioqueue_take(&ready, item);
        placed[i] = true;
        order[done++] = i;
        for (uint32_t k = 0; k < w.after[i].n; k++) {
            uint32_t other = w.after[i].items[k];
            if (--w.before_n[other] == 0) {
                prioqueue_put(&ready, &items[other]);
            }
        }
    }
    return done;
}

static int make_order(struct builder *b, uint32_t *order, struct err *err)
{
    bool *placed = ARENA_ARRAY(b->out, bool, b->resources->n);
    if (place_all(b, placed, order) == b->resources->n) {
        return 0;
    }
    uint32_t i = 0;
    while (placed[i]) {
        i++;
    }
    return tell_cycle(b, placed, i, err);
}

static int index_resources(struct builder *b, struct err *err)
{
    CLEANUP(map_done)
    struct map ids = { 0 };
    for (uint32_t i = 0; i < b->resources->n; i++) {
        struct resource *r = &b->resources->items[i];
        (void)map_put(&b->by_name, r->name, index_value(i)); /* names are unique */
        uint32_t other;
        if (index_find(&ids, r->id, &other)) {
            err->pos = r->pos;
            return err_set(err, ERR_CONFLICT,
                           "resources '" STR_FMT "' and '" STR_FMT
                           "' are for the same thing, " STR_FMT,
                           STR_ARG(b->resources->items[other].name), STR_ARG(r->name),
                           STR_ARG(str_sub(r->id, 0, 128)));
        }
        (void)map_put(&ids, r->id, index_value(i)); /* not there, as was just seen */
        if (r->provides.n > 0 && !index_find(&b->by_provides, r->provides, &other)) {
            (void)map_put(&b->by_provides, r->provides, index_value(i)); /* the first counts */
        }
    }
    return 0;
}

static int build(struct builder *b, struct graph *ret, struct err *err)
{
    uint32_t n = b->resources->n;
    b->requires = ARENA_ARRAY(b->out, struct vertex_list, n);
    b->notifies = ARENA_ARRAY(b->out, struct vertex_list, n);
    b->notified = ARENA_ARRAY(b->out, struct vertex_list, n);
    int r = index_resources(b, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < n; i++) {
        add_written(b, i);
    }
    for (uint32_t i = 0; i < n; i++) {
        add_implied(b, i);
    }
    uint32_t *order = ARENA_ARRAY(b->out, uint32_t, n);
    r = make_order(b, order, err);
    if (r < 0) {
        return r;
    }
    struct graph_vertex *vertices = ARENA_ARRAY(b->out, struct graph_vertex, n);
    for (uint32_t i = 0; i < n; i++) {
        vertices[i] = (struct graph_vertex){ .requires = edges_of(&b->requires[i]),
                                             .notifies = edges_of(&b->notifies[i]),
                                             .notified = edges_of(&b->notified[i]) };
    }
    *ret = (struct graph){ .resources = b->resources, .vertices = vertices, .order = order };
    return 0;
}

int graph_build(struct resource_list *resources, struct arena *out, struct graph *ret,
                struct err *err)
{
    struct builder b = { .resources = resources, .out = out };
    int r = build(&b, ret, err);
    map_done(&b.by_name);
    map_done(&b.by_provides);
    return r;
}
