/* A node with edits applied to it, and the merge patch of those edits. */
#include "profile/node_edit.h"

static struct node_edit_item *node_edit_find(const struct node_edit *s, enum node_edit_kind kind,
                                             struct str key)
{
    for (uint32_t i = 0; i < s->edit_n; i++) {
        if (s->edits[i].kind == kind && str_eq(s->edits[i].key, key)) {
            return &s->edits[i];
        }
    }
    return NULL;
}

struct str node_edit_label(const struct node_edit *s, struct str key)
{
    const struct node_edit_item *e = node_edit_find(s, NODE_EDIT_LABEL, key);
    if (e == NULL) {
        return node_label(s->node, key);
    }
    return e->remove ? STR_NONE : e->value;
}

struct str node_edit_annotation(const struct node_edit *s, struct str key)
{
    const struct node_edit_item *e = node_edit_find(s, NODE_EDIT_ANNOTATION, key);
    if (e == NULL) {
        return node_annotation(s->node, key);
    }
    return e->remove ? STR_NONE : e->value;
}

static bool node_has_finalizer(const struct node *n, struct str key)
{
    for (uint32_t i = 0; i < n->finalizer_count; i++) {
        if (str_eq(intern_str(n->finalizers[i]), key)) {
            return true;
        }
    }
    return false;
}

bool node_edit_has_finalizer(const struct node_edit *s, struct str key)
{
    const struct node_edit_item *e = node_edit_find(s, NODE_EDIT_FINALIZER, key);
    return e == NULL ? node_has_finalizer(s->node, key) : !e->remove;
}

bool node_edit_unschedulable(const struct node_edit *s)
{
    const struct node_edit_item *e = node_edit_find(s, NODE_EDIT_UNSCHEDULABLE, STR(""));
    return e == NULL ? s->node->unschedulable : !e->remove;
}

/* True when the edit would leave the observed node as it is. */
static bool node_edit_changes_nothing(const struct node_edit *s, const struct node_edit_item *e)
{
    if (e->kind == NODE_EDIT_FINALIZER) {
        return node_has_finalizer(s->node, e->key) != e->remove;
    }
    if (e->kind == NODE_EDIT_UNSCHEDULABLE) {
        return s->node->unschedulable != e->remove;
    }
    struct str was =
        e->kind == NODE_EDIT_LABEL ? node_label(s->node, e->key) : node_annotation(s->node, e->key);
    return e->remove ? was.p == NULL : was.p != NULL && str_eq(was, e->value);
}

static void node_edit_edit(struct node_edit *s, struct node_edit_item e)
{
    struct node_edit_item *old = node_edit_find(s, e.kind, e.key);
    if (node_edit_changes_nothing(s, &e)) {
        if (old != NULL) {
            *old = s->edits[--s->edit_n];
        }
        return;
    }
    if (old != NULL) {
        *old = e;
        return;
    }
    ARENA_GROW(s->out, s->edits, s->edit_n, s->edit_cap);
    s->edits[s->edit_n++] = e;
}

void node_edit_set_label(struct node_edit *s, struct str key, struct str value)
{
    node_edit_edit(s,
                   (struct node_edit_item){ .kind = NODE_EDIT_LABEL, .key = key, .value = value });
}

void node_edit_remove_label(struct node_edit *s, struct str key)
{
    node_edit_edit(s,
                   (struct node_edit_item){ .kind = NODE_EDIT_LABEL, .key = key, .remove = true });
}

void node_edit_set_annotation(struct node_edit *s, struct str key, struct str value)
{
    node_edit_edit(
        s, (struct node_edit_item){ .kind = NODE_EDIT_ANNOTATION, .key = key, .value = value });
}

void node_edit_remove_annotation(struct node_edit *s, struct str key)
{
    node_edit_edit(
        s, (struct node_edit_item){ .kind = NODE_EDIT_ANNOTATION, .key = key, .remove = true });
}

void node_edit_add_finalizer(struct node_edit *s, struct str key)
{
    node_edit_edit(s, (struct node_edit_item){ .kind = NODE_EDIT_FINALIZER, .key = key });
}

void node_edit_remove_finalizer(struct node_edit *s, struct str key)
{
    node_edit_edit(
        s, (struct node_edit_item){ .kind = NODE_EDIT_FINALIZER, .key = key, .remove = true });
}

void node_edit_set_unschedulable(struct node_edit *s, bool unschedulable)
{
    node_edit_edit(s, (struct node_edit_item){ .kind = NODE_EDIT_UNSCHEDULABLE,
                                               .key = STR(""),
                                               .remove = !unschedulable });
}

static void print_map(const struct node_edit *s, enum node_edit_kind kind, const char *name,
                      struct json_writer *w)
{
    bool any = false;
    for (uint32_t i = 0; i < s->edit_n; i++) {
        const struct node_edit_item *e = &s->edits[i];
        if (e->kind != kind) {
            continue;
        }
        if (!any) {
            jw_key(w, str_from(name));
            jw_obj(w);
            any = true;
        }
        jw_key(w, e->key);
        if (e->remove) {
            jw_null(w);
        } else {
            jw_str(w, e->value);
        }
    }
    if (any) {
        jw_obj_end(w);
    }
}

static void print_finalizers(const struct node_edit *s, struct json_writer *w)
{
    bool any = false;
    for (uint32_t i = 0; i < s->edit_n; i++) {
        any = any || s->edits[i].kind == NODE_EDIT_FINALIZER;
    }
    if (!any) {
        return;
    }
    jw_key(w, STR("finalizers"));
    jw_arr(w);
    for (uint32_t i = 0; i < s->node->finalizer_count; i++) {
        struct str key = intern_str(s->node->finalizers[i]);
        if (node_edit_has_finalizer(s, key)) {
            jw_str(w, key);
        }
    }
    for (uint32_t i = 0; i < s->edit_n; i++) {
        if (s->edits[i].kind == NODE_EDIT_FINALIZER && !s->edits[i].remove) {
            jw_str(w, s->edits[i].key);
        }
    }
    jw_arr_end(w);
}

void node_edit_print_patch(const struct node_edit *s, uint64_t version, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    print_map(s, NODE_EDIT_ANNOTATION, "annotations", &w);
    print_finalizers(s, &w);
    print_map(s, NODE_EDIT_LABEL, "labels", &w);
    if (version > 0) {
        char text[24];
        int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
        ASSERT(n > 0);
        jw_pair(&w, "resourceVersion", (struct str){ .p = text, .n = (size_t)n });
    }
    jw_obj_end(&w);
    const struct node_edit_item *e = node_edit_find(s, NODE_EDIT_UNSCHEDULABLE, STR(""));
    if (e != NULL) {
        jw_key(&w, STR("spec"));
        jw_obj(&w);
        jw_key(&w, STR("unschedulable"));
        if (e->remove) {
            jw_null(&w); /* as the original, and as the API server leaves the field out */
        } else {
            jw_bool(&w, true);
        }
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
}
