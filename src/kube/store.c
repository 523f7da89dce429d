#include "kube/store.h"

#include "base/alloc.h"
#include "base/limits.h"

#define STORE_MAP_BYTES 104u /* what the map takes for an item, apart from its copy of the name */

void store_init(struct store *s, const struct store_kind *kind, void *ctx, uint64_t hash_key)
{
    *s = (struct store){ .kind = kind, .ctx = ctx };
    map_init(&s->items, hash_key, ~hash_key);
    map_init(&s->by_uid, hash_key, ~hash_key);
    list_init(&s->dirty);
    list_init(&s->later);
}

static void store_unmark(struct store *s, struct store_item *item)
{
    if (list_linked(&item->dirty)) {
        list_del(&item->dirty);
        s->dirty_count--;
    }
}

static size_t store_item_bytes(const struct store_item *item)
{
    return sizeof(*item) + STORE_MAP_BYTES + 2 * (item->name.n + 1) + item->memory.total;
}

static void store_forget(struct store *s, struct store_item *item)
{
    s->revision++;
    s->bytes -= store_item_bytes(item);
    if (s->on_gone != NULL) {
        s->on_gone(s->ctx, item);
    }
    store_unmark(s, item);
    (void)map_del(&s->items, item->name); /* it is there: the map gave it to us */
    if (s->kind->uid != NULL) {
        (void)map_del(&s->by_uid, s->kind->uid(item->object)); /* it is there, likewise */
    }
    if (s->kind->drop != NULL) {
        s->kind->drop(s->ctx, item->object);
    }
    arena_done(&item->memory);
    alloc_free(item);
}

static void store_clear(struct store *s)
{
    MAP_EACH (&s->items, entry) {
        store_forget(s, map_item_value(entry));
    }
    s->version_max = 0;
}

void store_done(struct store *s)
{
    if (s->kind == NULL) {
        return;
    }
    store_clear(s);
    map_done(&s->items);
    map_done(&s->by_uid);
    buf_done(&s->key);
    s->kind = NULL;
}

void store_list_begin(struct store *s)
{
    s->list++;
    s->list_floor = s->version_max;
}

bool store_list_end(struct store *s, uint64_t version)
{
    /* A list is at least as new as anything known when it was asked for. */
    if (version < s->list_floor && !mutated(s->mutations, MUTATION_LINK_STALE)) {
        store_clear(s);
        return false;
    }
    if (mutated(s->mutations, MUTATION_LOSE_DELETIONS)) {
        return true;
    }
    MAP_EACH (&s->items, entry) {
        struct store_item *item = map_item_value(entry);
        /* What a reply made newer than the list will be deleted by the watch, if at all. */
        if (item->seen != s->list && item->version <= version) {
            store_forget(s, item);
        }
    }
    s->version_max = MAX(s->version_max, version);
    return true;
}

uint64_t store_version(const struct jval *object)
{
    uint64_t version = 0;
    struct str text = jval_str(jval_at(object, "metadata.resourceVersion"));
    return str_to_u64(text, &version) ? version : 0;
}

static int store_too_long(const struct store *s, const char *what, size_t n, struct err *err)
{
    return err_set(err, ERR_LIMIT, "a %s with a %s of %zu bytes, at most %u", s->kind->name, what,
                   n, OBJECT_NAME_MAX);
}

/* What may stand in a path, as the API server has it. */
static bool is_path_segment(struct str name)
{
    return name.n > 0 && !str_eq(name, STR(".")) && !str_eq(name, STR("..")) &&
           !str_contains(name, STR("/")) && !str_contains(name, STR("%"));
}

/* Name and version, or what is wrong with the object. */
static int store_identify(struct store *s, const struct jval *object, struct str *ret_name,
                          uint64_t *ret_version, struct err *err)
{
    struct str name = jval_str(jval_at(object, "metadata.name"));
    struct str namespace = jval_str(jval_at(object, "metadata.namespace"));
    if (name.n == 0) {
        return err_set(err, ERR_PROTO, "a %s without a name", s->kind->name);
    }
    if (name.n > OBJECT_NAME_MAX) {
        return store_too_long(s, "name", name.n, err);
    }
    if (!is_path_segment(name)) {
        return err_set(err, ERR_PROTO, "a %s with a name that none can have: '" STR_FMT "'",
                       s->kind->name, STR_ARG(str_sub(name, 0, 64)));
    }
    if (s->kind->namespaced && !is_path_segment(namespace)) {
        return err_set(err, ERR_PROTO, "%s '" STR_FMT "': namespace '" STR_FMT "', want a name",
                       s->kind->name, STR_ARG(str_sub(name, 0, 64)),
                       STR_ARG(str_sub(namespace, 0, 64)));
    }
    uint64_t version = store_version(object);
    if (version == 0) {
        struct str text = jval_str(jval_at(object, "metadata.resourceVersion"));
        return err_set(err, ERR_PROTO,
                       "%s '" STR_FMT "': resourceVersion '" STR_FMT "', want a number",
                       s->kind->name, STR_ARG(str_sub(name, 0, 64)), STR_ARG(str_sub(text, 0, 64)));
    }
    if (s->kind->namespaced) {
        if (namespace.n > OBJECT_NAME_MAX) {
            return store_too_long(s, "namespace", namespace.n, err);
        }
        buf_reset(&s->key);
        buf_add(&s->key, namespace);
        buf_add_char(&s->key, '/');
        buf_add(&s->key, name);
        name = buf_str(&s->key);
    }
    *ret_name = name;
    *ret_version = version;
    return 0;
}

void store_mark(struct store *s, struct store_item *item)
{
    if (item->later) {
        store_unmark(s, item);
        item->later = false;
    }
    if (!list_linked(&item->dirty)) {
        list_add(&s->dirty, &item->dirty);
        s->dirty_count++;
    }
}

void store_postpone(struct store *s, struct store_item *item)
{
    ASSERT(!list_linked(&item->dirty));
    item->later = true;
    list_add(&s->later, &item->dirty);
    s->dirty_count++;
}

void store_await(struct store_item *item)
{
    item->watched = true;
}

struct store_item *store_take(struct store *s)
{
    struct list *from = list_empty(&s->dirty) ? &s->later : &s->dirty;
    if (list_empty(from)) {
        return NULL;
    }
    struct store_item *item = CONTAINER_OF(from->next, struct store_item, dirty);
    store_unmark(s, item);
    return item;
}

/* What decisions are kept by has to be there, and to be the item's own. */
static int store_check_uid(const struct store *s, const struct store_item *item,
                           const void *projection, struct err *err)
{
    if (s->kind->uid == NULL) {
        return 0;
    }
    struct str uid = s->kind->uid(projection);
    const struct store_item *other = map_find(&s->by_uid, uid);
    if (uid.n == 0) {
        return err_set(err, ERR_PROTO, "%s '" STR_FMT "' has no uid", s->kind->name,
                       STR_ARG(str_sub(item->name, 0, 64)));
    }
    if (other != NULL && other != item) {
        return err_set(err, ERR_PROTO, "%s '" STR_FMT "' has the uid of '" STR_FMT "'",
                       s->kind->name, STR_ARG(str_sub(item->name, 0, 64)),
                       STR_ARG(str_sub(other->name, 0, 64)));
    }
    return 0;
}

static void store_index_uid(struct store *s, struct store_item *item, const void *old)
{
    if (s->kind->uid != NULL) {
        if (old != NULL) {
            (void)map_del(&s->by_uid, s->kind->uid(old)); /* it was put there */
        }
        (void)map_put(&s->by_uid, s->kind->uid(item->object), item); /* nobody else has it */
    }
}

/* Puts the new projection in the old one's place. */
static int store_replace(struct store *s, struct store_item *item, const struct jval *object,
                         uint64_t version, struct err *err)
{
    struct arena memory = { .first = 64 };
    void *projection = NULL;
    int r = s->kind->project(s->ctx, object, &memory, &projection, err);
    int checked = r < 0 ? r : store_check_uid(s, item, projection, err);
    if (checked < 0) {
        if (r == 0 && s->kind->drop != NULL) {
            s->kind->drop(s->ctx, projection);
        }
        arena_done(&memory);
        return checked;
    }
    bool fresh = item->object == NULL;
    bool same = !fresh && s->kind->same(item->object, projection);
    bool stirred = same && s->kind->stirred != NULL && s->kind->stirred(item->object, projection);
    struct arena old_memory = item->memory;
    void *old = item->object;
    item->object = projection;
    item->memory = memory;
    s->bytes += memory.total - old_memory.total; /* unsigned, and right in the sum */
    item->version = version;
    item->shape = s->shape;
    store_index_uid(s, item, old);
    s->revision += same ? 0 : 1;
    s->version_max = MAX(s->version_max, version);
    if (!same || item->watched) {
        item->watched = false;
        store_mark(s, item);
    }
    if (s->on_change != NULL && (!same || stirred)) {
        s->on_change(s->ctx, item, old);
    }
    if (!fresh && s->kind->drop != NULL) {
        s->kind->drop(s->ctx, old);
    }
    arena_done(&old_memory);
    return 0;
}

static int store_add(struct store *s, struct str name, const struct jval *object, uint64_t version,
                     struct err *err)
{
    ASSERT(name.p != NULL);
    struct store_item *item = alloc_bytes(sizeof(*item) + name.n + 1);
    memcpy(item->name_bytes, name.p, name.n);
    item->name = (struct str){ .p = item->name_bytes, .n = name.n };
    int r = store_replace(s, item, object, version, err);
    if (r < 0) {
        alloc_free(item);
        return r;
    }
    (void)map_put(&s->items, name, item); /* it was not there */
    s->bytes += store_item_bytes(item) - item->memory.total;
    item->seen = s->list;
    return 0;
}

void store_reshape(struct store *s)
{
    s->shape++;
}

static int store_check_bytes(const struct store *s, struct err *err)
{
    if (s->bytes_max == 0 || s->bytes <= s->bytes_max) {
        return 0;
    }
    return err_set(err, ERR_LIMIT, "the objects of kind %s take more than %zu bytes of memory",
                   s->kind->name, s->bytes_max);
}

int store_observe(struct store *s, const struct jval *object, bool deleted, struct err *err)
{
    struct str name = STR_NONE;
    uint64_t version = 0;
    int r = store_identify(s, object, &name, &version, err);
    if (r < 0) {
        return r;
    }
    struct store_item *item = map_find(&s->items, name);
    if (item == NULL) {
        s->version_max = MAX(s->version_max, version);
        r = deleted ? 0 : store_add(s, name, object, version, err);
        return r < 0 ? r : store_check_bytes(s, err);
    }
    bool older = version < item->version && !mutated(s->mutations, MUTATION_STALE_OVERWRITE);
    if (deleted) {
        if (!older) {
            s->version_max = MAX(s->version_max, version);
            store_forget(s, item);
        }
        return 0;
    }
    item->seen = s->list;
    bool known = version == item->version && item->shape == s->shape;
    r = older || known ? 0 : store_replace(s, item, object, version, err);
    return r < 0 ? r : store_check_bytes(s, err);
}

int store_learn(struct store *s, const struct jval *object, struct err *err)
{
    struct str name = STR_NONE;
    uint64_t version = 0;
    int r = store_identify(s, object, &name, &version, err);
    if (r < 0) {
        return r;
    }
    struct store_item *item = map_find(&s->items, name);
    if (item == NULL || version <= item->version) {
        return 0;
    }
    r = store_replace(s, item, object, version, err);
    return r < 0 ? r : 1;
}

struct store_item *store_find(const struct store *s, struct str name)
{
    return map_find(&s->items, name);
}

uint32_t store_count(const struct store *s)
{
    return map_count(&s->items);
}

void store_check(const struct store *s)
{
    uint32_t dirty = 0;
    size_t bytes = 0;
    MAP_EACH (&s->items, entry) {
        const struct store_item *item = map_item_value(entry);
        ASSERT(str_eq(map_item_name(entry), item->name));
        ASSERT(item->object != NULL);
        ASSERT(item->version > 0 && item->version <= s->version_max);
        dirty += list_linked(&item->dirty) ? 1 : 0;
        bytes += store_item_bytes(item);
    }
    ASSERT(bytes == s->bytes);
    ASSERT(dirty == s->dirty_count);
    ASSERT(s->kind->uid == NULL || map_count(&s->by_uid) == map_count(&s->items));
}
