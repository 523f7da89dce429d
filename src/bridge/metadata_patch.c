#include "bridge/metadata_patch.h"

#include "format/json_writer.h"

const struct meta_patch_key *meta_patch_find(const struct meta_patch *e, bool label, struct str key)
{
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->keys[i].label == label && str_eq(e->keys[i].key, key)) {
            return &e->keys[i];
        }
    }
    return NULL;
}

static void meta_patch_put(struct meta_patch *e, struct meta_patch_key wanted)
{
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->keys[i].label == wanted.label && str_eq(e->keys[i].key, wanted.key)) {
            e->keys[i] = wanted;
            return;
        }
    }
    ASSERT(e->n < META_PATCH_MAX);
    e->keys[e->n++] = wanted;
}

void meta_patch_set(struct meta_patch *e, bool label, struct str key, struct str value)
{
    meta_patch_put(e, (struct meta_patch_key){ .key = key, .value = value, .label = label });
}

void meta_patch_remove(struct meta_patch *e, bool label, struct str key)
{
    meta_patch_put(e, (struct meta_patch_key){ .key = key, .label = label, .remove = true });
}

static void meta_patch_print_map(const struct meta_patch *e, bool label, struct json_writer *w)
{
    bool any = false;
    for (uint32_t i = 0; i < e->n; i++) {
        const struct meta_patch_key *k = &e->keys[i];
        if (k->label != label) {
            continue;
        }
        if (!any) {
            jw_key(w, label ? STR("labels") : STR("annotations"));
            jw_obj(w);
            any = true;
        }
        jw_key(w, k->key);
        if (k->remove) {
            jw_null(w);
        } else {
            jw_str(w, k->value);
        }
    }
    if (any) {
        jw_obj_end(w);
    }
}

void meta_patch_print(const struct meta_patch *e, uint64_t version, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    if (version > 0) {
        char text[24];
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
        jw_pair(&w, "resourceVersion", str_from(text));
    }
    meta_patch_print_map(e, /* label= */ true, &w);
    meta_patch_print_map(e, /* label= */ false, &w);
    jw_obj_end(&w);
    jw_obj_end(&w);
}
