#include "profile/node_edit.h"

static struct edit *subject_find(const struct subject *s, enum edit_kind kind, struct str key)
{
    for (uint32_t i = 0; i < s->edit_n; i++) {
        if (s->edits[i].kind == kind && str_eq(s->edits[i].key, key)) {
            return &s->edits[i];
        }
    }
    return NULL;
}

struct str subject_label(const struct subject *s, struct str key)
{
    const struct edit *e = subject_find(s, EDIT_LABEL, key);
    if (e == NULL) {
        return node_label(s->node, key);
    }
    return e->remove ? STR_NONE : e->value;
}

struct str subject_annotation(const struct subject *s, struct str key)
{
    const struct edit *e = subject_find(s, EDIT_ANNOTATION, key);
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

bool subject_has_finalizer(const struct subject *s, struct str key)
{
    const struct edit *e = subject_find(s, EDIT_FINALIZER, key);
    return e == NULL ? node_has_finalizer(s->node, key) : !e->remove;
}

bool subject_unschedulable(const struct subject *s)
{
    const struct edit *e = subject_find(s, EDIT_UNSCHEDULABLE, STR(""));
    return e == NULL ? s->node->unschedulable : !e->remove;
}

/* True when the edit would leave the observed node as it is. */
static bool edit_is_idle(const struct subject *s, const struct edit *e)
{
    if (e->kind == EDIT_FINALIZER) {
        return node_has_finalizer(s->node, e->key) != e->remove;
    }
    if (e->kind == EDIT_UNSCHEDULABLE) {
        return s->node->unschedulable != e->remove;
    }
    struct str was =
        e->kind == EDIT_LABEL ? node_label(s->node, e->key) : node_annotation(s->node, e->key);
    return e->remove ? was.p == NULL : was.p != NULL && str_eq(was, e->value);
}

static void subject_edit(struct subject *s, struct edit e)
{
    struct edit *old = subject_find(s, e.kind, e.key);
    if (edit_is_idle(s, &e)) {
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

void subject_set_label(struct subject *s, struct str key, struct str value)
{
    subject_edit(s, (struct edit){ .kind = EDIT_LABEL, .key = key, .value = value });
}

void subject_remove_label(struct subject *s, struct str key)
{
    subject_edit(s, (struct edit){ .kind = EDIT_LABEL, .key = key, .remove = true });
}

void subject_set_annotation(struct subject *s, struct str key, struct str value)
{
    subject_edit(s, (struct edit){ .kind = EDIT_ANNOTATION, .key = key, .value = value });
}

void subject_remove_annotation(struct subject *s, struct str key)
{
    subject_edit(s, (struct edit){ .kind = EDIT_ANNOTATION, .key = key, .remove = true });
}

void subject_add_finalizer(struct subject *s, struct str key)
{
    subject_edit(s, (struct edit){ .kind = EDIT_FINALIZER, .key = key });
}

void subject_remove_finalizer(struct subject *s, struct str key)
{
    subject_edit(s, (struct edit){ .kind = EDIT_FINALIZER, .key = key, .remove = true });
}

void subject_set_unschedulable(struct subject *s, bool unschedulable)
{
    subject_edit(
        s, (struct edit){ .kind = EDIT_UNSCHEDULABLE, .key = STR(""), .remove = !unschedulable });
}

static void print_map(const struct subject *s, enum edit_kind kind, const char *name,
                      struct json_writer *w)
{
    bool any = false;
    for (uint32_t i = 0; i < s->edit_n; i++) {
        const struct edit *e = &s->edits[i];
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

static void print_finalizers(const struct subject *s, struct json_writer *w)
{
    bool any = false;
    for (uint32_t i = 0; i < s->edit_n; i++) {
        any = any || s->edits[i].kind == EDIT_FINALIZER;
    }
    if (!any) {
        return;
    }
    jw_key(w, STR("finalizers"));
    jw_arr(w);
    for (uint32_t i = 0; i < s->node->finalizer_count; i++) {
        struct str key = intern_str(s->node->finalizers[i]);
        if (subject_has_finalizer(s, key)) {
            jw_str(w, key);
        }
    }
    for (uint32_t i = 0; i < s->edit_n; i++) {
        if (s->edits[i].kind == EDIT_FINALIZER && !s->edits[i].remove) {
            jw_str(w, s->edits[i].key);
        }
    }
    jw_arr_end(w);
}

void subject_print_patch(const struct subject *s, uint64_t version, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    print_map(s, EDIT_ANNOTATION, "annotations", &w);
    print_finalizers(s, &w);
    print_map(s, EDIT_LABEL, "labels", &w);
    if (version > 0) {
        char text[24];
        int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
        ASSERT(n > 0);
        jw_pair(&w, "resourceVersion", (struct str){ .p = text, .n = (size_t)n });
    }
    jw_obj_end(&w);
    const struct edit *e = subject_find(s, EDIT_UNSCHEDULABLE, STR(""));
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
