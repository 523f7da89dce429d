#include "sandbox/apiserver/encode.h"

#include "sandbox/apiserver/table.h"

static struct tree *encode_to_tree(const struct encoder *encoder, const struct object *o,
                                   uint64_t rv, struct arena *out)
{
    struct tree *t = object_tree(o, out);
    if (rv > 0) {
        tree_set_at(out, t, "metadata.resourceVersion",
                    tree_str(out, arena_printf(out, "%llu", (unsigned long long)rv)));
    }
    convert_from_stored(encoder->kind, &encoder->server->kinds, t, out);
    return t;
}

static struct str encode_as_stored(const struct encoder *encoder, const struct object *o,
                                   uint64_t rv, struct arena *out)
{
    if (kinds_of_store(&encoder->server->kinds, o->store) != encoder->kind) {
        return tree_json(out, encode_to_tree(encoder, o, rv, out));
    }
    if (rv == 0) {
        return o->json;
    }
    return arena_printf(out, STR_FMT "%llu" STR_FMT, (int)o->rv_at, o->json.p,
                        (unsigned long long)rv,
                        STR_ARG(str_sub(o->json, o->rv_at + o->rv_n, o->json.n)));
}

static struct table_spec encode_table_spec(const struct encoder *encoder)
{
    struct table_spec spec = { .kind = encoder->kind,
                               .wall = loop_wall(encoder->server->loop),
                               .no_columns = encoder->no_columns };
    (void)table_include_parse(encoder->include_object, &spec.include); /* else with metadata */
    return spec;
}

static struct tree *encode_version_metadata(struct arena *out, struct str rv)
{
    struct tree *metadata = tree_obj(out);
    tree_set(out, metadata, STR("resourceVersion"), tree_str(out, rv));
    return metadata;
}

static struct str encode_as_form(const struct encoder *encoder, struct tree *t, bool row,
                                 struct arena *out)
{
    if (encoder->form == FORM_METADATA) {
        return tree_json(out, table_metadata(out, t));
    }
    struct table_spec spec = encode_table_spec(encoder);
    struct tree *table = table_new(
        out, &spec, encode_version_metadata(out, tree_text_at(t, "metadata.resourceVersion")));
    if (row) {
        table_add(out, &spec, table, t);
    }
    return tree_json(out, table);
}

struct str encode_event(const struct encoder *encoder, const struct object *o, uint64_t rv,
                        struct arena *out)
{
    if (encoder->form != FORM_OBJECT) {
        return encode_as_form(encoder, encode_to_tree(encoder, o, rv, out), /* row= */ true, out);
    }
    return encode_as_stored(encoder, o, rv, out);
}

struct str encode_bookmark(const struct encoder *encoder, struct tree *object, struct arena *out)
{
    return encode_as_form(encoder, object, /* row= */ true, out);
}

struct str encode_tree(const struct encoder *encoder, struct tree *object, struct arena *out)
{
    convert_from_stored(encoder->kind, &encoder->server->kinds, object, out);
    if (encoder->form != FORM_OBJECT) {
        return encode_as_form(encoder, object, /* row= */ true, out);
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    object_write(object, &text);
    return arena_str(out, buf_str(&text));
}

static void encode_list_items(const struct encoder *encoder, const struct encode_list *list,
                              struct buf *text, struct arena *out)
{
    /* Typed items do not repeat their kind; custom ones do. */
    bool whole = kind_is(encoder->kind, KIND_CUSTOM);
    bool shared = kinds_of_store(&encoder->server->kinds, encoder->kind->store) == encoder->kind;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct object *o = list->items[i];
        if (i > 0) {
            buf_add_char(text, ',');
        }
        if (!shared) {
            buf_add(text, encode_as_stored(encoder, o, 0, out));
        } else if (whole) {
            buf_add(text, o->json);
        } else {
            buf_add_char(text, '{');
            buf_add(text, str_sub(o->json, o->head, o->json.n));
        }
    }
}

static struct tree *encode_list_metadata(const struct encode_list *list, struct arena *out)
{
    struct tree *metadata =
        encode_version_metadata(out, arena_printf(out, "%llu", (unsigned long long)list->rv));
    if (list->continue_token.n > 0) {
        tree_set(out, metadata, STR("continue"), tree_str(out, list->continue_token));
    }
    if (list->remaining_known) {
        tree_set(out, metadata, STR("remainingItemCount"), tree_i64(out, list->remaining));
    }
    return metadata;
}

static struct str encode_list_as_form(const struct encoder *encoder, const struct encode_list *list,
                                      struct arena *out)
{
    if (encoder->form == FORM_TABLE) {
        struct table_spec spec = encode_table_spec(encoder);
        struct tree *table = table_new(out, &spec, encode_list_metadata(list, out));
        for (uint32_t i = 0; i < list->n; i++) {
            table_add(out, &spec, table, encode_to_tree(encoder, list->items[i], 0, out));
        }
        return tree_json(out, table);
    }
    struct tree *t = tree_obj(out);
    tree_set(out, t, STR("kind"), tree_str(out, STR("PartialObjectMetadataList")));
    tree_set(out, t, STR("apiVersion"), tree_str(out, STR("meta.k8s.io/v1")));
    tree_set(out, t, STR("metadata"), encode_list_metadata(list, out));
    struct tree *items = tree_arr(out);
    for (uint32_t i = 0; i < list->n; i++) {
        tree_add(items, table_metadata(out, encode_to_tree(encoder, list->items[i], 0, out)));
    }
    tree_set(out, t, STR("items"), list->n > 0 ? items : tree_null(out)); /* as the real one */
    return tree_json(out, t);
}

struct str encode_list(const struct encoder *encoder, const struct encode_list *list,
                       struct arena *out)
{
    if (encoder->form != FORM_OBJECT) {
        return encode_list_as_form(encoder, list, out);
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    jw_pair(&w, "kind", encoder->kind->list_kind);
    jw_pair(&w, "apiVersion", encoder->kind->api_version);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "resourceVersion", arena_printf(out, "%llu", (unsigned long long)list->rv));
    if (list->continue_token.n > 0 || kind_is(encoder->kind, KIND_CUSTOM)) {
        jw_pair(&w, "continue", list->continue_token);
    }
    if (list->remaining_known) {
        jw_pair_i64(&w, "remainingItemCount", list->remaining);
    }
    jw_obj_end(&w);
    buf_add(&text, STR(",\"items\":["));
    encode_list_items(encoder, list, &text, out);
    buf_add(&text, STR("]}"));
    return arena_str(out, buf_str(&text));
}
