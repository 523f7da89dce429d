/* verb_scale: the scale subresource. */
#include "sandbox/apiserver/apiserver_internal.h"

/* The autoscaling/v1 view of an object that has replicas. */
static struct tree *verb_scale_tree(struct request_ctx *c, const struct object *o)
{
    struct arena *a = c->a;
    struct tree *t = tree_obj(a);
    int64_t want = 0;
    int64_t have = 0;
    (void)jval_i64(jval_at(o->root, "spec.replicas"), &want);   /* else 0 */
    (void)jval_i64(jval_at(o->root, "status.replicas"), &have); /* else 0 */
    tree_set(a, t, STR("kind"), tree_str(a, STR("Scale")));
    tree_set(a, t, STR("apiVersion"), tree_str(a, STR("autoscaling/v1")));
    static const char *const members[] = { "name", "namespace", "uid", "resourceVersion",
                                           "creationTimestamp" };
    struct tree *metadata = tree_make_at(a, t, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct jval *value = jval_get(o->metadata, str_from(members[i]));
        if (value != NULL) {
            tree_set(a, metadata, str_from(members[i]), tree_from(a, value));
        }
    }
    tree_set_at(a, t, "spec.replicas", tree_i64(a, want));
    tree_set_at(a, t, "status.replicas", tree_i64(a, have));
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct selector selector;
    struct err err = { 0 };
    if (selector_from_jval(jval_at(o->root, "spec.selector"), a, &selector, &err) == 0) {
        selector_print(&selector, &text);
        tree_set_at(a, t, "status.selector", tree_str(a, buf_str(&text)));
    }
    return t;
}

/* PUT brings a Scale, PATCH a merge patch of one. */
static struct status *verb_scale_read(struct request_ctx *c, struct tree **ret,
                                      int64_t *ret_replicas)
{
    struct err err = { 0 };
    bool patch = str_eq(c->request->method, STR("PATCH"));
    if (patch && tree_parse(c->request->body, c->a, ret, &err) < 0) {
        return status_bad_request(c->a, "%s", err.msg);
    }
    struct status *status = patch ? NULL : decode_body(c, STR("Scale"), ret);
    if (status != NULL) {
        return status;
    }
    const struct tree *wanted = tree_at(*ret, "spec.replicas");
    *ret_replicas = 0; /* a Scale leaves its zero out */
    bool read = wanted == NULL ? !patch : tree_number(wanted, ret_replicas);
    return read && *ret_replicas >= 0
               ? NULL
               : status_bad_request(c->a, "spec.replicas: a number of replicas is needed");
}

struct status *verb_scale(struct request_ctx *c)
{
    struct object *o = request_find_object(c);
    if (o == NULL) {
        return status_not_found(c->a, c->kind, c->route.name);
    }
    if (str_eq(c->request->method, STR("GET"))) {
        reply_tree(c, 200, verb_scale_tree(c, o));
        return NULL;
    }
    struct tree *body;
    int64_t replicas;
    struct status *status = verb_scale_read(c, &body, &replicas);
    if (status != NULL) {
        return status;
    }
    struct str rv = tree_text_at(body, "metadata.resourceVersion");
    if (rv.n > 0 && !str_eq(rv, str_sub(o->json, o->rv_at, o->rv_n))) {
        return status_modified(c->a, c->kind, o->name);
    }
    struct tree *obj = object_tree(o, c->a);
    tree_set_at(c->a, obj, "spec.replicas", tree_i64(c->a, replicas));
    c->subresource = 0;
    status = write_update(c, o, obj);
    o = request_find_object(c);
    if (status == NULL && o != NULL) {
        reply_tree(c, 200, verb_scale_tree(c, o));
    }
    return status;
}
