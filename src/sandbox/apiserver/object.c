#include "sandbox/apiserver/object.h"

#include "base/alloc.h"

void object_write(const struct tree *tree, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "kind", tree_text_at(tree, "kind"));
    jw_pair(&w, "apiVersion", tree_text_at(tree, "apiVersion"));
    TREE_EACH (tree, member) {
        if (!str_eq(member->key, STR("kind")) && !str_eq(member->key, STR("apiVersion"))) {
            jw_key(&w, member->key);
            tree_write(member, &w);
        }
    }
    jw_obj_end(&w);
}

/* Bytes of decoded strings, which live outside the text. */
static size_t object_extra(const struct jval *root, struct str text)
{
    size_t extra = 0;
    for (uint32_t i = 0; i < jval_span(root); i++) {
        const struct jval *v = root + i;
        if (v->p != NULL && (v->p < text.p || v->p > text.p + text.n)) {
            extra += v->n;
        }
    }
    return extra;
}

/* One block: the object, its tape, its text, then the key, the manager and decoded strings. */
static struct object *object_pack(uint32_t store, struct str text, const struct jval *root,
                                  struct str manager)
{
    struct str namespace = jval_str(jval_at(root, "metadata.namespace"));
    struct str name = jval_str(jval_at(root, "metadata.name"));
    size_t tape = jval_span(root) * sizeof(struct jval);
    size_t key = name.n + (namespace.n > 0 ? namespace.n + 1 : 0);
    struct object *o =
        alloc_bytes(sizeof(*o) + tape + text.n + key + manager.n + object_extra(root, text));
    struct jval *cells = (struct jval *)(void *)(o + 1);
    char *json = (char *)cells + tape;
    char *rest = json + text.n;
    memcpy(cells, root, tape);
    memcpy(json, text.p, text.n);
    o->refs = 1;
    o->store = store;
    o->json = (struct str){ .p = json, .n = text.n };
    o->key = (struct str){ .p = rest, .n = key };
    if (namespace.n > 0) {
        memcpy(rest, namespace.p, namespace.n);
        rest[namespace.n] = '/';
        rest += namespace.n + 1;
    }
    memcpy(rest, name.p, name.n);
    rest += name.n;
    o->manager = (struct str){ .p = rest, .n = manager.n };
    if (manager.n > 0) {
        memcpy(rest, manager.p, manager.n);
        rest += manager.n;
    }
    for (uint32_t i = 0; i < jval_span(root); i++) {
        struct jval *v = &cells[i];
        if (v->p == NULL) {
            continue;
        }
        if (v->p >= text.p && v->p <= text.p + text.n) {
            v->p = json + (v->p - text.p);
        } else {
            memcpy(rest, v->p, v->n);
            v->p = rest;
            rest += v->n;
        }
    }
    o->root = cells;
    return o;
}

static struct object *object_from_text(uint32_t store, struct str text, struct str manager,
                                       uint64_t rv, struct arena *tmp)
{
    const struct jval *root;
    struct err err = { 0 };
    int r = json_parse(text, JSON_GO, tmp, &root, &err);
    ASSERT(r == 0); /* it was written by our own writer */
    struct object *o = object_pack(store, text, root, manager);
    o->rv = rv;
    o->metadata = jval_get(o->root, STR("metadata"));
    o->namespace = jval_str(jval_get(o->metadata, STR("namespace")));
    o->name = jval_str(jval_get(o->metadata, STR("name")));
    o->uid = jval_str(jval_get(o->metadata, STR("uid")));
    const struct jval *version = jval_get(o->metadata, STR("resourceVersion"));
    if (version != NULL) {
        o->rv_at = (uint32_t)(version->p - o->json.p);
        o->rv_n = version->n;
    }
    /* The third member's key is where the rest begins. */
    const struct jval *member = jval_first(o->root);
    member = jval_next(o->root, member);
    ASSERT(member != NULL);
    o->head = (uint32_t)(member->p + member->n + 2 - o->json.p); /* closing quote and comma */
    return o;
}

struct object *object_new(uint32_t store, struct tree *tree, uint64_t rv, struct str manager,
                          struct arena *tmp)
{
    if (rv > 0) {
        tree_set_at(tmp, tree, "metadata.resourceVersion",
                    tree_str(tmp, arena_printf(tmp, "%llu", (unsigned long long)rv)));
    }
    CLEANUP(buf_done)
    struct buf out = { 0 };
    object_write(tree, &out);
    return object_from_text(store, buf_str(&out), manager, rv, tmp);
}

struct object *object_with_rv(const struct object *o, uint64_t rv, struct arena *tmp)
{
    struct str text =
        arena_printf(tmp, STR_FMT "%llu" STR_FMT, (int)o->rv_at, o->json.p, (unsigned long long)rv,
                     STR_ARG(str_sub(o->json, o->rv_at + o->rv_n, o->json.n)));
    return object_from_text(o->store, text, o->manager, rv, tmp);
}

struct object *object_ref(struct object *o)
{
    o->refs++;
    return o;
}

void object_unref(struct object *o)
{
    if (o != NULL && --o->refs == 0) {
        alloc_free(o);
    }
}

struct tree *object_tree(const struct object *o, struct arena *a)
{
    return tree_from(a, o->root);
}

struct tree *object_tree_borrowed(const struct object *o, struct arena *a)
{
    return tree_view(a, o->root, o->json);
}
