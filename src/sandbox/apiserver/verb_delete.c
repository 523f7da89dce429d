/* verb_delete: DELETE of one object or a collection: preconditions, grace periods, finalizers. */
#include "base/timestamp.h"
#include "sandbox/apiserver/apiserver_internal.h"
#include "sandbox/apiserver/encode.h"

struct status *delete_options_read(struct request_ctx *c, const struct tree *body,
                                   struct delete_options *ret)
{
    const struct url_params *p = &c->route.params;
    *ret = (struct delete_options){ .dry_run = c->dry_run };
    if (str_to_i64(p->grace_period_seconds, &ret->grace_seconds)) {
        ret->grace_given = true;
    }
    ret->propagation = p->propagation_policy;
    bool orphan;
    if (url_parse_bool(p->orphan_dependents, &orphan) && orphan) {
        ret->propagation = STR("Orphan");
    }
    if (body == NULL) {
        return NULL;
    }
    if (tree_number(tree_get(body, STR("gracePeriodSeconds")), &ret->grace_seconds)) {
        ret->grace_given = true;
    }
    ret->uid = tree_text_at(body, "preconditions.uid");
    ret->resource_version = tree_text_at(body, "preconditions.resourceVersion");
    struct str propagation = tree_text_at(body, "propagationPolicy");
    if (propagation.n > 0) {
        ret->propagation = propagation;
    }
    if (tree_truth(tree_get(body, STR("orphanDependents")), false)) {
        ret->propagation = STR("Orphan");
    }
    ret->dry_run = ret->dry_run || tree_first(tree_get(body, STR("dryRun"))) != NULL;
    return NULL;
}

struct status *delete_preconditions(struct request_ctx *c, const struct object *o,
                                    const struct delete_options *options)
{
    struct arena *a = c->a;
    if (options->uid.n > 0 && !str_eq(options->uid, o->uid)) {
        return status_precondition(
            a, c->kind, o->name,
            arena_printf(a,
                         "the UID in the precondition (" STR_FMT
                         ") does not match the UID in record (" STR_FMT
                         "). The object might have been deleted and then recreated",
                         STR_ARG(options->uid), STR_ARG(o->uid)));
    }
    struct str rv = str_sub(o->json, o->rv_at, o->rv_n);
    if (options->resource_version.n > 0 && !str_eq(options->resource_version, rv)) {
        return status_precondition(
            a, c->kind, o->name,
            arena_printf(a,
                         "the ResourceVersion in the precondition (" STR_FMT
                         ") does not match the ResourceVersion in record (" STR_FMT
                         "). The object might have been modified",
                         STR_ARG(options->resource_version), STR_ARG(rv)));
    }
    return NULL;
}

/* The grace period in seconds; only pods have one. */
static int64_t delete_grace(const struct request_ctx *c, const struct object *o,
                            const struct delete_options *options)
{
    if (c->kind != c->s->pods) {
        return 0;
    }
    struct str phase = jval_str(jval_at(o->root, "status.phase"));
    if (jval_str(jval_at(o->root, "spec.nodeName")).n == 0 || str_eq(phase, STR("Succeeded")) ||
        str_eq(phase, STR("Failed"))) {
        return 0;
    }
    int64_t grace = 30;
    (void)jval_i64(jval_at(o->root, "spec.terminationGracePeriodSeconds"), &grace); /* else 30 */
    if (options->grace_given && options->grace_seconds >= 0) {
        grace = options->grace_seconds;
    }
    return grace < 0 ? 1 : grace;
}

/* The finalizer that makes the garbage collector handle the dependents first. */
static void delete_add_finalizer(struct tree *obj, const struct delete_options *options,
                                 struct arena *a)
{
    const char *name = NULL;
    if (str_eq(options->propagation, STR("Foreground"))) {
        name = "foregroundDeletion";
    } else if (str_eq(options->propagation, STR("Orphan"))) {
        name = "orphan";
    }
    if (name == NULL) {
        return;
    }
    struct tree *list = tree_at(obj, "metadata.finalizers");
    if (tree_kind(list) != JARR) {
        list = tree_arr(a);
        tree_set_at(a, obj, "metadata.finalizers", list);
    }
    TREE_EACH (list, finalizer) {
        if (str_eq(tree_text(finalizer), str_from(name))) {
            return;
        }
    }
    tree_add(list, tree_str(a, str_from(name)));
}

static void delete_mark_object(struct request_ctx *c, struct tree *obj, int64_t grace)
{
    struct arena *a = c->a;
    bool first = tree_at(obj, "metadata.deletionTimestamp") == NULL;
    char text[TIMESTAMP_TEXT_MAX];
    tree_set_at(a, obj, "metadata.deletionTimestamp",
                tree_str(a, timestamp_print_seconds(loop_wall(c->s->loop) + SECONDS(grace), text)));
    if (c->kind == c->s->namespaces) {
        tree_set_at(a, obj, "status.phase", tree_str(a, STR("Terminating")));
    } else {
        tree_set_at(a, obj, "metadata.deletionGracePeriodSeconds", tree_i64(a, grace));
    }
    int64_t generation;
    if (first && tree_number(tree_at(obj, "metadata.generation"), &generation)) {
        tree_set_at(a, obj, "metadata.generation", tree_i64(a, generation + 1));
    }
}

struct status *delete_object(struct request_ctx *c, struct object *o,
                             const struct delete_options *options, struct object **ret,
                             bool *ret_gone)
{
    struct status *status = delete_preconditions(c, o, options);
    if (status != NULL) {
        return status;
    }
    struct tree *obj = object_tree(o, c->a);
    delete_add_finalizer(obj, options, c->a);
    int64_t grace = delete_grace(c, o, options);
    int64_t before = INT64_MAX;
    bool deleting = tree_at(obj, "metadata.deletionTimestamp") != NULL;
    (void)tree_number(tree_at(obj, "metadata.deletionGracePeriodSeconds"), &before);
    bool held = tree_first(tree_at(obj, "metadata.finalizers")) != NULL ||
                tree_first(tree_at(obj, "spec.finalizers")) != NULL;
    *ret_gone = grace == 0 && !held;
    /* A second deletion may only shorten the grace period. */
    bool shorter = before != INT64_MAX && grace < before;
    bool unchanged = deleting && !*ret_gone && !shorter;
    if (options->dry_run || unchanged) {
        *ret = object_ref(o);
        return NULL;
    }
    uint64_t rv = storage_next_rv(&c->s->storage);
    struct object *now;
    if (*ret_gone && c->kind != c->s->pods) {
        now = object_with_rv(o, rv,
                             c->a); /* only pods are marked as deleting in their last version */
    } else {
        delete_mark_object(c, obj, grace);
        now = object_new(o->store, obj, rv, o->manager, c->a);
    }
    *ret = object_ref(now);
    if (*ret_gone) {
        storage_delete(&c->s->storage, now);
    } else {
        storage_put(&c->s->storage, now);
    }
    return NULL;
}

static struct status *delete_options_body(struct request_ctx *c, struct tree **ret)
{
    struct status *status = NULL;
    *ret = NULL;
    if (str_trim(c->request->body).n > 0) {
        status = decode_body(c, STR("DeleteOptions"), ret);
    }
    struct str kind = tree_text_at(*ret, "kind");
    if (status == NULL && kind.n > 0 && !str_eq(kind, STR("DeleteOptions"))) {
        return status_bad_request(c->a,
                                  "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT
                                  "\" of DeleteOptions",
                                  STR_ARG(kind), STR_ARG(tree_text_at(*ret, "apiVersion")));
    }
    return status != NULL ? status : options_check_delete(c, *ret);
}

/* Kinds whose DELETE answers with the object instead of a Status. */
static bool delete_replies_object(const struct kind *kind)
{
    return str_eq(kind->kind, STR("Pod")) || str_eq(kind->kind, STR("ServiceAccount"));
}

struct status *verb_delete(struct request_ctx *c)
{
    struct tree *body;
    struct delete_options options;
    struct status *status = delete_options_body(c, &body);
    if (status == NULL) {
        status = delete_options_read(c, body, &options);
    }
    if (status != NULL) {
        return status;
    }
    struct object *o = request_find_object(c);
    if (o == NULL) {
        return status_not_found(c->a, c->kind, c->route.name);
    }
    struct object *now;
    bool gone;
    status = delete_object(c, o, &options, &now, &gone);
    if (status != NULL) {
        return status;
    }
    if (gone && !delete_replies_object(c->kind)) {
        reply_tree(c, 200, status_success(c->a, c->kind, now->name, now->uid));
    } else {
        reply_object(c, 200, now);
    }
    object_unref(now);
    return NULL;
}

struct status *verb_delete_collection(struct request_ctx *c)
{
    struct tree *body;
    struct delete_options options;
    struct list_filter filter;
    struct status *status = delete_options_body(c, &body);
    if (status == NULL) {
        status = delete_options_read(c, body, &options);
    }
    if (status == NULL) {
        status = list_filter_init(&filter, c->kind, &c->route, c->a);
    }
    if (status != NULL) {
        return status;
    }
    const struct object_store *store = storage_get_store(&c->s->storage, c->kind->store);
    struct encode_list list = { .rv = c->s->storage.rv };
    list.items = ARENA_ARRAY(c->a, struct object *, store->n);
    for (uint32_t i = 0; i < store->n; i++) {
        if (list_filter_match(&filter, store->items[i])) {
            list.items[list.n++] = object_ref(store->items[i]);
        }
    }
    for (uint32_t i = 0; i < list.n && status == NULL; i++) {
        struct object *now;
        bool gone;
        status = delete_object(c, list.items[i], &options, &now, &gone);
        if (status == NULL) {
            object_unref(now);
        }
    }
    if (status == NULL) {
        reply_list(c, &list);
    }
    for (uint32_t i = 0; i < list.n; i++) {
        object_unref(list.items[i]);
    }
    return status;
}
