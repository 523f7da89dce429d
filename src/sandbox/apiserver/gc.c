#include "sandbox/apiserver/gc.h"

#include "sandbox/apiserver/apiserver_internal.h"

static void gc_run(void *ctx);
static void gc_run_namespaces(void *ctx);

void gc_init(struct gc *gc, struct apiserver *s, struct loop *loop)
{
    *gc = (struct gc){ .s = s };
    loop_timer_init(&gc->timer, loop, gc_run, gc);
    loop_timer_init(&gc->namespace_timer, loop, gc_run_namespaces, gc);
}

void gc_done(struct gc *gc)
{
    loop_timer_done(&gc->timer);
    loop_timer_done(&gc->namespace_timer);
    map_done(&gc->gone_owners);
    map_done(&gc->deleting);
    map_done(&gc->namespaces);
}

static void gc_queue(struct gc *gc, struct map *map, struct str key)
{
    map_put(map, key, gc);
}

static bool gc_has_finalizer(const struct object *o, const char *name)
{
    JVAL_EACH (jval_get(o->metadata, STR("finalizers")), finalizer) {
        if (str_eq(jval_str(finalizer), str_from(name))) {
            return true;
        }
    }
    return false;
}

void gc_on_change(struct gc *gc, const struct storage_change *change)
{
    const struct object *o = change->now;
    struct loop *loop = gc->s->loop;
    bool deleting = jval_get(o->metadata, STR("deletionTimestamp")) != NULL;
    if (change->deleted) {
        if (storage_dependents(&gc->s->storage, o->uid) != NULL) {
            gc_queue(gc, &gc->gone_owners, o->uid);
            loop_timer_pull(&gc->timer, loop_now(loop) + GC_DELAY);
        }
        /* An owner that deletes in the foreground may have waited for this one. */
        JVAL_EACH (jval_get(o->metadata, STR("ownerReferences")), owner) {
            const struct kind *kind =
                kinds_find_kind(&gc->s->kinds, jval_str(jval_get(owner, STR("apiVersion"))),
                                jval_str(jval_get(owner, STR("kind"))));
            const struct object *found =
                kind == NULL ? NULL
                             : storage_find(&gc->s->storage, kind->store,
                                            kind_is(kind, KIND_NAMESPACED) ? o->namespace : STR(""),
                                            jval_str(jval_get(owner, STR("name"))));
            if (found != NULL && gc_has_finalizer(found, "foregroundDeletion")) {
                CLEANUP(buf_done)
                struct buf location = { 0 };
                buf_printf(&location, "%u/" STR_FMT, found->store, STR_ARG(found->key));
                gc_queue(gc, &gc->deleting, buf_str(&location));
                loop_timer_pull(&gc->timer, loop_now(loop) + GC_DELAY);
            }
        }
        if (gc->s->namespaces != NULL && o->namespace.n > 0 &&
            map_find(&gc->namespaces, o->namespace) != NULL) {
            loop_timer_pull(&gc->namespace_timer, loop_now(loop) + GC_DELAY);
        }
        return;
    }
    if (deleting && (gc_has_finalizer(o, "foregroundDeletion") || gc_has_finalizer(o, "orphan"))) {
        CLEANUP(buf_done)
        struct buf location = { 0 };
        buf_printf(&location, "%u/" STR_FMT, o->store, STR_ARG(o->key));
        gc_queue(gc, &gc->deleting, buf_str(&location));
        loop_timer_pull(&gc->timer, loop_now(loop) + GC_DELAY);
    }
    if (deleting && o->store == gc->s->namespaces->store) {
        gc_queue(gc, &gc->namespaces, o->name);
        loop_timer_pull(&gc->namespace_timer, loop_now(loop) + GC_NAMESPACE_DELAY);
    }
}

/* The collector deletes through a request of its own, so every deletion takes the same path. */
static void gc_delete(struct gc *gc, struct object *o, const char *propagation, struct arena *tmp)
{
    const struct kind *kind = kinds_of_store(&gc->s->kinds, o->store);
    if (kind == NULL) {
        return;
    }
    struct apiserver_request request = { .user_agent = STR("garbage-collector") };
    struct apiserver_reply reply = { 0 };
    struct request_ctx call = {
        .s = gc->s, .request = &request, .reply = &reply, .a = tmp, .kind = kind
    };
    struct delete_options options = { .propagation = str_from(propagation), .uid = o->uid };
    struct object *now;
    bool gone;
    if (delete_object(&call, o, &options, &now, &gone) == NULL) {
        object_unref(now);
    }
}

static void gc_drop_owner(struct gc *gc, struct object *o, struct str uid, struct arena *tmp)
{
    struct tree *obj = object_tree(o, tmp);
    struct tree *owners = tree_at(obj, "metadata.ownerReferences");
    TREE_EACH (owners, owner) {
        if (str_eq(tree_text_at(owner, "uid"), uid)) {
            tree_remove(owners, owner);
        }
    }
    if (tree_first(owners) == NULL) {
        (void)tree_del_at(obj, "metadata.ownerReferences"); /* it is there */
    }
    apiserver_store_object(gc->s, o->store, obj, STR("garbage-collector"), tmp);
}

static bool gc_owner_exists(struct gc *gc, const struct object *o, const struct jval *owner)
{
    const struct kind *kind =
        kinds_find_kind(&gc->s->kinds, jval_str(jval_get(owner, STR("apiVersion"))),
                        jval_str(jval_get(owner, STR("kind"))));
    if (kind == NULL) {
        return true; /* an owner of a kind that is not served counts as alive */
    }
    const struct object *found = storage_find(
        &gc->s->storage, kind->store, kind_is(kind, KIND_NAMESPACED) ? o->namespace : STR(""),
        jval_str(jval_get(owner, STR("name"))));
    return found != NULL && str_eq(found->uid, jval_str(jval_get(owner, STR("uid"))));
}

/* Locations of the dependents of an owner: they stay valid while the dependents change. */
static struct str *gc_dependents(struct gc *gc, struct str uid, struct arena *tmp, uint32_t *ret_n)
{
    const struct map *map = storage_dependents(&gc->s->storage, uid);
    *ret_n = 0;
    if (map == NULL) {
        return NULL;
    }
    struct str *places = ARENA_ARRAY(tmp, struct str, map_count(map));
    MAP_EACH (map, item) {
        places[(*ret_n)++] = arena_str(tmp, map_item_name(item));
    }
    return places;
}

/* The owner is gone: dependents without another owner are deleted. */
static void gc_owner_gone(struct gc *gc, struct str uid, struct arena *tmp)
{
    uint32_t n;
    struct str *places = gc_dependents(gc, uid, tmp, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct object *o = storage_at_location(&gc->s->storage, places[i]);
        bool owned = false;
        JVAL_EACH (o == NULL ? NULL : jval_get(o->metadata, STR("ownerReferences")), owner) {
            owned = owned || gc_owner_exists(gc, o, owner);
        }
        if (o == NULL) {
            continue;
        }
        if (owned) {
            gc_drop_owner(gc, o, uid, tmp);
        } else {
            gc_delete(gc, o, "Background", tmp);
        }
    }
}

static void gc_drop_finalizer(struct gc *gc, struct object *o, const char *name, struct arena *tmp)
{
    struct tree *obj = object_tree(o, tmp);
    struct tree *list = tree_at(obj, "metadata.finalizers");
    TREE_EACH (list, finalizer) {
        if (str_eq(tree_text(finalizer), str_from(name))) {
            tree_remove(list, finalizer);
        }
    }
    int64_t grace = 0;
    (void)tree_number(tree_at(obj, "metadata.deletionGracePeriodSeconds"), &grace); /* else 0 */
    if (tree_first(list) != NULL || grace > 0) {
        apiserver_store_object(gc->s, o->store, obj, STR("garbage-collector"), tmp);
    } else {
        (void)tree_del_at(obj, "metadata.finalizers"); /* it is there, and empty */
        apiserver_remove_object(gc->s, o, obj, tmp);
    }
}

static void gc_run_foreground(struct gc *gc, struct object *o, struct arena *tmp)
{
    uint32_t n;
    uint32_t blocking = 0;
    struct str *places = gc_dependents(gc, o->uid, tmp, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct object *dependent = storage_at_location(&gc->s->storage, places[i]);
        bool blocks = false;
        JVAL_EACH (dependent == NULL ? NULL : jval_get(dependent->metadata, STR("ownerReferences")),
                   owner) {
            blocks = blocks || (str_eq(jval_str(jval_get(owner, STR("uid"))), o->uid) &&
                                jval_bool(jval_get(owner, STR("blockOwnerDeletion")), false));
        }
        blocking += blocks;
        if (dependent != NULL && jval_get(dependent->metadata, STR("deletionTimestamp")) == NULL) {
            gc_delete(gc, dependent, "Foreground", tmp);
        }
    }
    o = storage_find(&gc->s->storage, o->store, o->namespace, o->name);
    if (blocking == 0 && o != NULL) {
        gc_drop_finalizer(gc, o, "foregroundDeletion", tmp);
    }
}

static void gc_run_orphan(struct gc *gc, struct object *o, struct arena *tmp)
{
    uint32_t n;
    struct str *places = gc_dependents(gc, o->uid, tmp, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct object *dependent = storage_at_location(&gc->s->storage, places[i]);
        if (dependent != NULL) {
            gc_drop_owner(gc, dependent, o->uid, tmp);
        }
    }
    gc_drop_finalizer(gc, o, "orphan", tmp);
}

static struct str gc_queue_pop(struct map *map, struct arena *tmp)
{
    struct str key = arena_str(tmp, map_item_name(map_next(map, NULL)));
    map_del(map, key);
    return key;
}

static void gc_run(void *ctx)
{
    struct gc *gc = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (uint32_t n = map_count(&gc->gone_owners); n > 0; n--) {
        gc_owner_gone(gc, gc_queue_pop(&gc->gone_owners, &tmp), &tmp);
    }
    for (uint32_t n = map_count(&gc->deleting); n > 0; n--) {
        struct object *o = storage_at_location(&gc->s->storage, gc_queue_pop(&gc->deleting, &tmp));
        if (o == NULL || jval_get(o->metadata, STR("deletionTimestamp")) == NULL) {
            continue;
        }
        object_ref(o);
        if (gc_has_finalizer(o, "orphan")) {
            gc_run_orphan(gc, o, &tmp);
        } else if (gc_has_finalizer(o, "foregroundDeletion")) {
            gc_run_foreground(gc, o, &tmp);
        }
        object_unref(o);
    }
}

/* Deletes what is in a namespace; answers how much is still there. */
static uint32_t gc_empty_namespace(struct gc *gc, struct str namespace, struct arena *tmp)
{
    uint32_t left = 0;
    for (uint32_t s = 0; s < STORAGE_STORES_MAX; s++) {
        struct object_store *store = gc->s->storage.stores[s];
        uint32_t n = 0;
        struct object **contents =
            store == NULL ? NULL : ARENA_ARRAY(tmp, struct object *, store->n);
        for (uint32_t i = 0; store != NULL && i < store->n; i++) {
            if (str_eq(store->items[i]->namespace, namespace)) {
                contents[n++] = object_ref(store->items[i]);
            }
        }
        for (uint32_t i = 0; i < n; i++) {
            gc_delete(gc, contents[i], "Background", tmp);
            left += storage_find(&gc->s->storage, s, namespace, contents[i]->name) != NULL;
            object_unref(contents[i]);
        }
    }
    return left;
}

static void gc_run_namespaces(void *ctx)
{
    struct gc *gc = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (uint32_t n = map_count(&gc->namespaces); n > 0; n--) {
        struct str name = gc_queue_pop(&gc->namespaces, &tmp);
        struct object *ns = storage_find(&gc->s->storage, gc->s->namespaces->store, STR(""), name);
        if (ns == NULL) {
            continue;
        }
        if (gc_empty_namespace(gc, name, &tmp) > 0) {
            gc_queue(gc, &gc->namespaces, name); /* again when an object is gone */
            continue;
        }
        struct tree *obj = object_tree(ns, &tmp);
        (void)tree_del_at(obj, "spec.finalizers"); /* ours, and it is there */
        if (tree_first(tree_at(obj, "metadata.finalizers")) == NULL) {
            apiserver_remove_object(gc->s, ns, obj, &tmp);
        } else {
            apiserver_store_object(gc->s, ns->store, obj, STR("namespace-controller"), &tmp);
        }
    }
}
