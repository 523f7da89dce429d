#include "sandbox/apiserver/storage.h"

#include "base/alloc.h"

void storage_init(struct storage *st, uint64_t rv, storage_on_change on_change, void *ctx)
{
    *st = (struct storage){ .rv = rv, .on_change = on_change, .ctx = ctx };
}

static void object_store_forget(struct object_store *s, uint64_t before)
{
    for (; s->first < before; s->first++) {
        struct storage_change *change = &s->ring[s->first & (s->ring_cap - 1)];
        s->compacted = change->now->rv;
        object_unref(change->old);
        object_unref(change->now);
        *change = (struct storage_change){ 0 };
    }
}

void storage_done(struct storage *st)
{
    for (uint32_t i = 0; i < STORAGE_STORES_MAX; i++) {
        struct object_store *s = st->stores[i];
        if (s == NULL) {
            continue;
        }
        ASSERT(list_empty(&s->watches));
        object_store_forget(s, s->end);
        for (uint32_t j = 0; j < s->n; j++) {
            object_unref(s->items[j]);
        }
        alloc_free(s->items);
        alloc_free(s->ring);
        alloc_free(s);
    }
    MAP_EACH (&st->owners, item) {
        struct map *places = map_item_value(item);
        map_done(places);
        alloc_free(places);
    }
    map_done(&st->owners);
    *st = (struct storage){ 0 };
}

struct object_store *storage_get_store(struct storage *st, uint32_t store)
{
    ASSERT(store < STORAGE_STORES_MAX);
    if (st->stores[store] == NULL) {
        struct object_store *s = ALLOC_NEW(struct object_store);
        s->compacted = st->rv;
        list_init(&s->watches);
        st->stores[store] = s;
    }
    return st->stores[store];
}

uint32_t object_store_lower(const struct object_store *s, struct str key)
{
    uint32_t low = 0;
    uint32_t high = s->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(s->items[middle]->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Compares an object's key with "namespace/name" without building it. */
static int object_key_cmp(const struct object *o, struct str namespace, struct str name)
{
    if (namespace.n == 0) {
        return str_cmp(o->key, name);
    }
    int r = str_cmp(str_sub(o->key, 0, namespace.n), namespace);
    if (r != 0) {
        return r;
    }
    if (o->key.n <= namespace.n) {
        return -1;
    }
    char separator = o->key.p[namespace.n];
    if (separator != '/') {
        return separator < '/' ? -1 : 1;
    }
    return str_cmp(str_sub(o->key, namespace.n + 1, o->key.n), name);
}

struct object *storage_find(struct storage *st, uint32_t store, struct str namespace,
                            struct str name)
{
    const struct object_store *s = storage_get_store(st, store);
    uint32_t low = 0;
    uint32_t high = s->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int r = object_key_cmp(s->items[middle], namespace, name);
        if (r == 0) {
            return s->items[middle];
        }
        if (r < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

static void object_store_remember(struct object_store *s, struct object *old, struct object *now,
                                  bool deleted)
{
    if (s->end - s->first == STORAGE_HISTORY_MAX) {
        object_store_forget(s, s->first + STORAGE_HISTORY_MAX / 8);
    }
    if (s->end - s->first == s->ring_cap) {
        uint32_t cap = s->ring_cap == 0 ? 16 : s->ring_cap * 2;
        struct storage_change *ring = alloc_bytes(cap * sizeof(*ring));
        for (uint64_t i = s->first; i < s->end; i++) {
            ring[i & (cap - 1)] = s->ring[i & (s->ring_cap - 1)];
        }
        alloc_free(s->ring);
        s->ring = ring;
        s->ring_cap = cap;
    }
    s->ring[s->end & (s->ring_cap - 1)] = (struct storage_change){
        .old = old == NULL ? NULL : object_ref(old),
        .now = object_ref(now),
        .deleted = deleted,
    };
    s->end++;
}

static void storage_index_owners(struct storage *st, const struct object *o, bool add)
{
    if (o == NULL) {
        return;
    }
    const struct jval *owners = jval_get(o->metadata, STR("ownerReferences"));
    if (jval_first(owners) == NULL) {
        return;
    }
    CLEANUP(buf_done)
    struct buf location = { 0 };
    buf_printf(&location, "%u/" STR_FMT, o->store, STR_ARG(o->key));
    JVAL_EACH (owners, owner) {
        struct str uid = jval_str(jval_get(owner, STR("uid")));
        struct map *places = map_find(&st->owners, uid);
        if (add) {
            if (places == NULL) {
                places = ALLOC_NEW(struct map);
                map_put(&st->owners, uid, places);
            }
            map_put(places, buf_str(&location), places);
        } else if (places != NULL) {
            map_del(places, buf_str(&location));
            if (map_count(places) == 0) {
                map_del(&st->owners, uid);
                map_done(places);
                alloc_free(places);
            }
        }
    }
}

static void storage_reindex(struct storage *st, const struct object *old, const struct object *now)
{
    const struct jval *before =
        old == NULL ? NULL : jval_get(old->metadata, STR("ownerReferences"));
    const struct jval *after = now == NULL ? NULL : jval_get(now->metadata, STR("ownerReferences"));
    if ((before == NULL && after == NULL) ||
        (before != NULL && after != NULL && jval_eq(before, after))) {
        return;
    }
    storage_index_owners(st, old, false);
    storage_index_owners(st, now, true);
}

uint64_t storage_next_rv(const struct storage *st)
{
    return st->rv + 1;
}

static void storage_notify(struct storage *st, struct object *old, struct object *now, bool deleted)
{
    struct storage_change change = { .old = old, .now = now, .deleted = deleted };
    if (st->on_change != NULL) {
        st->on_change(st->ctx, &change);
    }
}

void storage_put(struct storage *st, struct object *now)
{
    ASSERT(now->rv == storage_next_rv(st));
    struct object_store *s = storage_get_store(st, now->store);
    uint32_t i = object_store_lower(s, now->key);
    struct object *old = NULL;
    if (i < s->n && str_eq(s->items[i]->key, now->key)) {
        old = s->items[i];
        s->items[i] = now;
    } else {
        if (s->n == s->cap) {
            uint32_t cap = s->cap == 0 ? 16 : s->cap * 2;
            struct object **items = alloc_bytes(cap * sizeof(*items));
            if (s->n > 0) {
                memcpy(items, s->items, s->n * sizeof(*items));
            }
            alloc_free(s->items);
            s->items = items;
            s->cap = cap;
        }
        memmove(&s->items[i + 1], &s->items[i], (s->n - i) * sizeof(*s->items));
        s->items[i] = now;
        s->n++;
    }
    st->rv = now->rv;
    object_store_remember(s, old, now, false);
    storage_reindex(st, old, now);
    struct object *held = object_ref(now); /* a listener may delete it */
    storage_notify(st, old, now, false);
    object_unref(old);
    object_unref(held);
}

void storage_delete(struct storage *st, struct object *last)
{
    ASSERT(last->rv == storage_next_rv(st));
    struct object_store *s = storage_get_store(st, last->store);
    uint32_t i = object_store_lower(s, last->key);
    ASSERT(i < s->n && str_eq(s->items[i]->key, last->key));
    struct object *old = s->items[i];
    memmove(&s->items[i], &s->items[i + 1], (s->n - i - 1) * sizeof(*s->items));
    s->n--;
    st->rv = last->rv;
    object_store_remember(s, old, last, true);
    storage_reindex(st, old, NULL);
    storage_notify(st, old, last, true);
    object_unref(old);
    object_unref(last);
}

const struct storage_change *object_store_change(const struct object_store *s, uint64_t number)
{
    ASSERT(number >= s->first && number < s->end);
    return &s->ring[number & (s->ring_cap - 1)];
}

uint64_t object_store_first_after(const struct object_store *s, uint64_t rv)
{
    uint64_t low = s->first;
    uint64_t high = s->end;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (object_store_change(s, middle)->now->rv <= rv) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Puts `old` where the key is, adds it, or removes what is there. */
static void undo_change(struct object **items, uint32_t *n, const struct storage_change *change)
{
    struct object_store view = { .items = items, .n = *n };
    uint32_t i = object_store_lower(&view, change->now->key);
    bool there = i < *n && str_eq(items[i]->key, change->now->key);
    if (change->old == NULL) {
        ASSERT(there);
        memmove(&items[i], &items[i + 1], (*n - i - 1) * sizeof(struct object *));
        (*n)--;
        return;
    }
    if (!there) {
        memmove(&items[i + 1], &items[i], (*n - i) * sizeof(struct object *));
        (*n)++;
    }
    items[i] = change->old;
}

struct object **object_store_at(const struct object_store *s, uint64_t rv, struct arena *tmp,
                                uint32_t *ret_n)
{
    ASSERT(rv >= s->compacted);
    uint64_t after = object_store_first_after(s, rv);
    *ret_n = s->n;
    if (after == s->end) {
        return s->items;
    }
    struct object **items = ARENA_ARRAY(tmp, struct object *, s->n + (s->end - after));
    if (s->n > 0) {
        memcpy(items, s->items, s->n * sizeof(struct object *));
    }
    for (uint64_t i = s->end; i-- > after;) {
        undo_change(items, ret_n, object_store_change(s, i));
    }
    return items;
}

void storage_compact(struct storage *st)
{
    for (uint32_t i = 0; i < STORAGE_STORES_MAX; i++) {
        if (st->stores[i] != NULL) {
            object_store_forget(st->stores[i], st->stores[i]->end);
            st->stores[i]->compacted = st->rv;
        }
    }
}

const struct map *storage_dependents(const struct storage *st, struct str uid)
{
    return map_find(&st->owners, uid);
}

struct object *storage_at_location(struct storage *st, struct str location)
{
    struct str number;
    struct str key;
    uint32_t store;
    if (!str_cut(location, STR("/"), &number, &key) || !str_to_u32(number, &store)) {
        return NULL;
    }
    const struct object_store *s = storage_get_store(st, store);
    uint32_t i = object_store_lower(s, key);
    return i < s->n && str_eq(s->items[i]->key, key) ? s->items[i] : NULL;
}

void storage_check(const struct storage *st)
{
    for (uint32_t i = 0; i < STORAGE_STORES_MAX; i++) {
        const struct object_store *s = st->stores[i];
        for (uint32_t j = 0; s != NULL && j < s->n; j++) {
            ASSERT(s->items[j]->refs > 0);
            ASSERT(s->items[j]->rv <= st->rv);
            ASSERT(j == 0 || str_cmp(s->items[j - 1]->key, s->items[j]->key) < 0);
        }
        for (uint64_t c = s == NULL ? 0 : s->first; s != NULL && c < s->end; c++) {
            const struct storage_change *change = object_store_change(s, c);
            ASSERT(change->now->rv > s->compacted);
            ASSERT(c == s->first || change->now->rv > object_store_change(s, c - 1)->now->rv);
        }
    }
}
