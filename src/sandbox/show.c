#include "sandbox/show.h"

static struct str show_plain(const struct show *show, const struct object *o, uint64_t rv,
                             struct arena *out)
{
    if (kinds_of_store(&show->server->kinds, o->store) != show->kind) {
        struct tree *t = object_tree(o, out);
        if (rv > 0) {
            tree_set_at(out, t, "metadata.resourceVersion",
                        tree_str(out, arena_printf(out, "%llu", (unsigned long long)rv)));
        }
        view_show(show->kind, &show->server->kinds, t, out);
        return tree_json(out, t);
    }
    if (rv == 0) {
        return o->json;
    }
    return arena_printf(out, STR_FMT "%llu" STR_FMT, (int)o->rv_at, o->json.p,
                        (unsigned long long)rv,
                        STR_ARG(str_sub(o->json, o->rv_at + o->rv_n, o->json.n)));
}

struct str show_event(const struct show *show, const struct object *o, uint64_t rv,
                      struct arena *out)
{
    return show_plain(show, o, rv, out);
}

struct str show_bookmark(const struct show *show, struct tree *object, struct arena *out)
{
    (void)show;
    return tree_json(out, object);
}

struct str show_tree(const struct show *show, struct tree *object, struct arena *out)
{
    view_show(show->kind, &show->server->kinds, object, out);
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

struct str show_list(const struct show *show, const struct show_list *list, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct jwriter w = jwriter_on(&text);
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
        jw_key(&w, STR("remainingItemCount"));
        jw_i64(&w, list->remaining);
    }
    jw_obj_end(&w);
    buf_add(&text, STR(",\"items\":["));
    show_list_items(show, list, &text, out);
    buf_add(&text, STR("]}"));
    return arena_str(out, buf_str(&text));
}
