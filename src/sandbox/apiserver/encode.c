#include "sandbox/apiserver/encode.h"

#include "sandbox/apiserver/table.h"

static struct tree *show_as_tree(const struct show *show, const struct object *o, uint64_t rv,
                                 struct arena *out)
{
    struct tree *t = object_tree(o, out);
    if (rv > 0) {
        tree_set_at(out, t, "metadata.resourceVersion",
                    tree_str(out, arena_printf(out, "%llu", (unsigned long long)rv)));
    }
    view_show(show->kind, &show->server->kinds, t, out);
    return t;
}

static struct str show_plain(const struct show *show, const struct object *o, uint64_t rv,
                             struct arena *out)
{
    if (kinds_of_store(&show->server->kinds, o->store) != show->kind) {
        return tree_json(out, show_as_tree(show, o, rv, out));
    }
    if (rv == 0) {
        return o->json;
    }
    return arena_printf(out, STR_FMT "%llu" STR_FMT, (int)o->rv_at, o->json.p,
                        (unsigned long long)rv,
                        STR_ARG(str_sub(o->json, o->rv_at + o->rv_n, o->json.n)));
}

static struct table_spec show_spec(const struct show *show)
{
    struct table_spec spec = { .kind = show->kind,
                               .wall = loop_wall(show->server->loop),
                               .bare = show->no_columns };
    (void)table_include_parse(show->include_object, &spec.include); /* else with metadata */
    return spec;
}

static struct tree *show_version(struct arena *out, struct str rv)
{
    struct tree *metadata = tree_obj(out);
    tree_set(out, metadata, STR("resourceVersion"), tree_str(out, rv));
    return metadata;
}

static struct str show_other(const struct show *show, struct tree *t, bool row, struct arena *out)
{
    if (show->output == OUTPUT_METADATA) {
        return tree_json(out, table_partial(out, t));
    }
    struct table_spec spec = show_spec(show);
    struct tree *table =
        table_new(out, &spec, show_version(out, tree_text_at(t, "metadata.resourceVersion")));
    if (row) {
        table_add(out, &spec, table, t);
    }
    return tree_json(out, table);
}

struct str show_event(const struct show *show, const struct object *o, uint64_t rv,
                      struct arena *out)
{
    if (show->output != OUTPUT_OBJECT) {
        return show_other(show, show_as_tree(show, o, rv, out), /* row= */ true, out);
    }
    return show_plain(show, o, rv, out);
}

struct str show_bookmark(const struct show *show, struct tree *object, struct arena *out)
{
    return show_other(show, object, /* row= */ true, out);
}

struct str show_tree(const struct show *show, struct tree *object, struct arena *out)
{
    view_show(show->kind, &show->server->kinds, object, out);
    if (show->output != OUTPUT_OBJECT) {
        return show_other(show, object, /* row= */ true, out);
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    object_write(object, &text);
    return arena_str(out, buf_str(&text));
}

static void show_list_items(const struct show *show, const struct show_list *list, struct buf *text,
                            struct arena *out)
{
    /* Typed items do not repeat their kind; custom ones do. */
    bool whole = kind_is(show->kind, KIND_CUSTOM);
    bool shared = kinds_of_store(&show->server->kinds, show->kind->store) == show->kind;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct object *o = list->items[i];
        if (i > 0) {
            buf_add_char(text, ',');
        }
        if (!shared) {
            buf_add(text, show_plain(show, o, 0, out));
        } else if (whole) {
            buf_add(text, o->json);
        } else {
            buf_add_char(text, '{');
            buf_add(text, str_sub(o->json, o->head, o->json.n));
        }
    }
}

static struct tree *show_list_metadata(const struct show_list *list, struct arena *out)
{
    struct tree *metadata =
        show_version(out, arena_printf(out, "%llu", (unsigned long long)list->rv));
    if (list->continue_token.n > 0) {
        tree_set(out, metadata, STR("continue"), tree_str(out, list->continue_token));
    }
    if (list->remaining_known) {
        tree_set(out, metadata, STR("remainingItemCount"), tree_i64(out, list->remaining));
    }
    return metadata;
}

static struct str show_list_other(const struct show *show, const struct show_list *list,
                                  struct arena *out)
{
    if (show->output == OUTPUT_TABLE) {
        struct table_spec spec = show_spec(show);
        struct tree *table = table_new(out, &spec, show_list_metadata(list, out));
        for (uint32_t i = 0; i < list->n; i++) {
            table_add(out, &spec, table, show_as_tree(show, list->items[i], 0, out));
        }
        return tree_json(out, table);
    }
    struct tree *t = tree_obj(out);
    tree_set(out, t, STR("kind"), tree_str(out, STR("PartialObjectMetadataList")));
    tree_set(out, t, STR("apiVersion"), tree_str(out, STR("meta.k8s.io/v1")));
    tree_set(out, t, STR("metadata"), show_list_metadata(list, out));
    struct tree *items = tree_arr(out);
    for (uint32_t i = 0; i < list->n; i++) {
        tree_add(items, table_partial(out, show_as_tree(show, list->items[i], 0, out)));
    }
    tree_set(out, t, STR("items"), list->n > 0 ? items : tree_null(out)); /* as the real one */
    return tree_json(out, t);
}

struct str show_list(const struct show *show, const struct show_list *list, struct arena *out)
{
    if (show->output != OUTPUT_OBJECT) {
        return show_list_other(show, list, out);
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    jw_pair(&w, "kind", show->kind->list_kind);
    jw_pair(&w, "apiVersion", show->kind->api_version);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "resourceVersion", arena_printf(out, "%llu", (unsigned long long)list->rv));
    if (list->continue_token.n > 0 || kind_is(show->kind, KIND_CUSTOM)) {
        jw_pair(&w, "continue", list->continue_token);
    }
    if (list->remaining_known) {
        jw_pair_i64(&w, "remainingItemCount", list->remaining);
    }
    jw_obj_end(&w);
    buf_add(&text, STR(",\"items\":["));
    show_list_items(show, list, &text, out);
    buf_add(&text, STR("]}"));
    return arena_str(out, buf_str(&text));
}
