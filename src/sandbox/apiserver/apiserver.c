#include "sandbox/apiserver/apiserver.h"

#include "base/alloc.h"
#include "base/timestamp.h"
#include "sandbox/apiserver/auth.h"
#include "sandbox/apiserver/defaults.h"
#include "sandbox/apiserver/apiserver_internal.h"
#include "sandbox/apiserver/watch.h"

#define APISERVER_FIRST_VERSION 100u /* resourceVersions 0 and 1 mean something else to clients */

static void apiserver_notify_commit(struct apiserver *s, const struct storage_change *change)
{
    const struct kind *kind = kinds_of_store(&s->kinds, change->now->store);
    if ((s->on_commit == NULL && s->on_commit_check == NULL) || kind == NULL) {
        return;
    }
    struct apiserver_commit commit = {
        .group = kind->group,
        .plural = kind->plural,
        .namespace = change->now->namespace,
        .name = change->now->name,
        .user_agent = s->agent,
        .version = change->now->rv,
        .old = change->old == NULL ? NULL : change->old->root,
        .now = change->deleted ? NULL : change->now->root,
    };
    if (s->on_commit != NULL) {
        s->on_commit(s->on_commit_ctx, &commit);
    }
    if (s->on_commit_check != NULL) {
        s->on_commit_check(s->on_commit_check_ctx, &commit);
    }
}

/* A CustomResourceDefinition was created, changed or deleted: so are its kinds. */
static void apiserver_update_crd(struct apiserver *s, const struct storage_change *change)
{
    struct str name = change->now->name;
    const struct jval *old = change->old == NULL ? NULL : jval_get(change->old->root, STR("spec"));
    const struct jval *now = jval_get(change->now->root, STR("spec"));
    if (!change->deleted && old != NULL && jval_eq(old, now)) {
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (uint32_t i = 0; i < s->kinds.n; i++) {
        if (str_eq(s->kinds.items[i]->definition, name)) {
            watches_end(s, s->kinds.items[i]->store, false);
        }
    }
    if (change->deleted) {
        kinds_remove_crd(&s->kinds, name);
        return;
    }
    uint32_t store;
    struct err err = { 0 };
    if (kinds_define_crd(&s->kinds, object_tree(change->now, &tmp), &store, &err) == 0) {
        (void)storage_get_store(&s->storage, store); /* its history begins now */
    }
}

static void apiserver_on_change(void *ctx, const struct storage_change *change)
{
    struct apiserver *s = ctx;
    watches_wake(s, change->now->store);
    gc_on_change(&s->gc, change);
    if (change->now->store == s->crds->store) {
        apiserver_update_crd(s, change);
    }
    apiserver_notify_commit(s, change);
}

static void apiserver_create_namespaces(struct apiserver *s)
{
    static const char *const names[] = { "default", "kube-node-lease", "kube-public",
                                         "kube-system" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct tree *t = tree_obj(&tmp);
        tree_set(&tmp, t, STR("kind"), tree_str(&tmp, STR("Namespace")));
        tree_set(&tmp, t, STR("apiVersion"), tree_str(&tmp, STR("v1")));
        tree_set_at(&tmp, t, "metadata.name", tree_str(&tmp, str_from(names[i])));
        tree_set_at(&tmp, t, "metadata.uid", tree_str(&tmp, apiserver_uid(s, &tmp)));
        tree_set_at(&tmp, t, "metadata.creationTimestamp", tree_str(&tmp, apiserver_time(s, &tmp)));
        defaults_apply(s->namespaces, t, &tmp);
        apiserver_store_object(s, s->namespaces->store, t, STR("kube-apiserver"), &tmp);
    }
}

static void apiserver_wake_watches(void *ctx);

struct apiserver *apiserver_new(struct loop *loop, uint64_t seed)
{
    struct apiserver *s = ALLOC_NEW(struct apiserver);
    s->loop = loop;
    rng_init(&s->rng, seed);
    kinds_init(&s->kinds);
    types_init(&s->types, &s->arena);
    s->namespaces = kinds_find(&s->kinds, STR(""), STR("v1"), STR("namespaces"));
    s->pods = kinds_find(&s->kinds, STR(""), STR("v1"), STR("pods"));
    s->pdbs = kinds_find(&s->kinds, STR("policy"), STR("v1"), STR("poddisruptionbudgets"));
    s->crds = kinds_find(&s->kinds, STR("apiextensions.k8s.io"), STR("v1"),
                         STR("customresourcedefinitions"));
    storage_init(&s->storage, APISERVER_FIRST_VERSION, apiserver_on_change, s);
    list_init(&s->ready);
    loop_timer_init(&s->watch_timer, loop, apiserver_wake_watches, s);
    gc_init(&s->gc, s, loop);
    apiserver_create_namespaces(s);
    for (uint32_t i = 0; i < s->kinds.stores; i++) {
        (void)storage_get_store(&s->storage, i);
    }
    storage_compact(&s->storage);
    return s;
}

void apiserver_free(struct apiserver *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < STORAGE_STORES_MAX; i++) {
        struct object_store *store = s->storage.stores[i];
        while (store != NULL && !list_empty(&store->watches)) {
            apiserver_watch_close(
                CONTAINER_OF(store->watches.next, struct apiserver_watch, in_store));
        }
    }
    gc_done(&s->gc);
    loop_timer_done(&s->watch_timer);
    storage_done(&s->storage);
    kinds_done(&s->kinds);
    types_done(&s->types);
    arena_done(&s->arena);
    alloc_free(s);
}

void apiserver_set_token(struct apiserver *s, struct str token)
{
    s->token = arena_str(&s->arena, token);
}

/* Watches with new changes are notified from the loop, in the order of the changes. */
static void apiserver_wake_watches(void *ctx)
{
    struct apiserver *s = ctx;
    struct list batch;
    list_move(&batch, &s->ready);
    while (!list_empty(&batch)) {
        struct list *item = batch.next;
        list_del(item);
        watch_notify_reader(CONTAINER_OF(item, struct apiserver_watch, in_ready));
    }
}

struct str apiserver_uid(struct apiserver *s, struct arena *a)
{
    uint64_t high = rng_next(&s->rng);
    uint64_t low = rng_next(&s->rng);
    return arena_printf(a, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(high >> 32),
                        (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff),
                        (unsigned)((low >> 48 & 0x3fff) | 0x8000),
                        (unsigned long long)(low & 0xffffffffffff));
}

struct str apiserver_time(struct apiserver *s, struct arena *a)
{
    char text[TIMESTAMP_TEXT_MAX];
    return arena_str(a, timestamp_print_seconds(loop_wall(s->loop), text));
}

struct str apiserver_name_suffix(struct apiserver *s, struct arena *a)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    char text[5];
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = letters[rng_below(&s->rng, sizeof(letters) - 1)];
    }
    return arena_str(a, (struct str){ .p = text, .n = sizeof(text) });
}

void apiserver_store_object(struct apiserver *s, uint32_t store, struct tree *obj,
                            struct str manager, struct arena *tmp)
{
    storage_put(&s->storage, object_new(store, obj, storage_next_rv(&s->storage), manager, tmp));
}

void apiserver_remove_object(struct apiserver *s, const struct object *o, struct tree *last,
                             struct arena *tmp)
{
    uint64_t rv = storage_next_rv(&s->storage);
    storage_delete(&s->storage, last == NULL ? object_with_rv(o, rv, tmp)
                                             : object_new(o->store, last, rv, o->manager, tmp));
}

void apiserver_restart(struct apiserver *s)
{
    for (uint32_t i = 0; i < s->kinds.stores; i++) {
        watches_end(s, i, true);
    }
    storage_compact(&s->storage);
}

void apiserver_compact(struct apiserver *s)
{
    storage_compact(&s->storage);
    for (uint32_t i = 0; i < s->kinds.stores; i++) {
        watches_wake(s, i);
    }
}

static const struct kind *apiserver_find_kind(const struct apiserver *s, struct str group,
                                              struct str plural)
{
    for (uint32_t i = 0; i < s->kinds.n; i++) {
        const struct kind *kind = s->kinds.items[i];
        if (str_eq(kind->plural, plural) && str_eq(kind->group, group)) {
            return kind;
        }
    }
    return NULL;
}

void apiserver_each(struct apiserver *s, struct str group, struct str plural, struct str namespace,
                    apiserver_visit visit, void *ctx)
{
    const struct kind *kind = apiserver_find_kind(s, group, plural);
    if (kind == NULL) {
        return;
    }
    uint64_t rv = s->storage.rv;
    const struct object_store *store = storage_get_store(&s->storage, kind->store);
    for (uint32_t i = namespace.n == 0 ? 0 : object_store_lower(store, namespace); i < store->n;
         i++) {
        const struct object *o = store->items[i];
        if (namespace.n > 0 && !str_eq(o->namespace, namespace)) {
            if (str_cmp(o->namespace, namespace) > 0 && !str_starts(o->namespace, namespace)) {
                break;
            }
            continue; /* "a-b/x" sorts between "a" and "a/x" */
        }
        visit(ctx, o->root);
        ASSERT(s->storage.rv == rv);
    }
}

const struct jval *apiserver_find(struct apiserver *s, struct str group, struct str plural,
                                  struct str namespace, struct str name)
{
    const struct kind *kind = apiserver_find_kind(s, group, plural);
    const struct object *o =
        kind == NULL ? NULL : storage_find(&s->storage, kind->store, namespace, name);
    return o == NULL ? NULL : o->root;
}

uint32_t apiserver_count(struct apiserver *s, struct str group, struct str plural)
{
    const struct kind *kind = apiserver_find_kind(s, group, plural);
    return kind == NULL ? 0 : storage_get_store(&s->storage, kind->store)->n;
}

uint64_t apiserver_resource_version(const struct apiserver *s)
{
    return s->storage.rv;
}

void apiserver_on_commit(struct apiserver *s, apiserver_on_commit_fn fn, void *ctx)
{
    s->on_commit = fn;
    s->on_commit_ctx = ctx;
}

void apiserver_on_commit_check(struct apiserver *s, apiserver_on_commit_fn fn, void *ctx)
{
    s->on_commit_check = fn;
    s->on_commit_check_ctx = ctx;
}

void apiserver_check(const struct apiserver *s)
{
    storage_check(&s->storage);
}
