#include "sandbox/apiserver/openapi.h"

#define OBJECT_META STR("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")

struct openapi_doc {
    struct types *types;
    struct json_writer w;
    struct arena tmp;
    struct map schemas; /* name -> struct tree, each once */
};

/* "com.example.v1.Kind" of example.com/v1, as the real server names custom types. */
static struct str custom_type_name(struct arena *a, const struct kind *kind)
{
    struct str name = STR("");
    struct str rest = kind->group;
    struct str part;
    while (str_split_next(&rest, '.', &part)) {
        name = arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(part), name.n > 0 ? "." : "",
                            STR_ARG(name));
    }
    return arena_printf(a, STR_FMT "." STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(kind->version),
                        STR_ARG(kind->kind));
}

static struct tree *kind_reference(struct arena *a, const struct kind *kind)
{
    struct tree *gvk = tree_obj(a);
    tree_set(a, gvk, STR("group"), tree_str(a, kind->group));
    tree_set(a, gvk, STR("version"), tree_str(a, kind->version));
    tree_set(a, gvk, STR("kind"), tree_str(a, kind->kind));
    return gvk;
}

static void kind_schema_add(struct openapi_doc *d, const struct kind *kind)
{
    struct arena *a = &d->tmp;
    struct tree *schema;
    struct str name = types_kind_name(a, kind->group, kind->kind);
    if (kind_is(kind, KIND_CUSTOM)) {
        name = custom_type_name(a, kind);
        schema = types_custom_schema(a, tree_at(kind->version_spec, "schema.openAPIV3Schema"));
        types_referenced(d->types, OBJECT_META, &d->schemas);
    } else if (name.n > 0) {
        types_referenced(d->types, name, &d->schemas);
        schema = tree_clone(a, types_named(d->types, name));
    } else {
        return;
    }
    struct tree *list = tree_arr(a);
    tree_add(list, kind_reference(a, kind));
    tree_set(a, schema, STR("x-kubernetes-group-version-kind"), list);
    (void)map_put(&d->schemas, name, schema);
}

static void operation_write(struct openapi_doc *d, const struct kind *kind, const char *method,
                            const char *action)
{
    static const char *const parameters[] = { "dryRun", "fieldManager", "fieldValidation",
                                              "force" };
    struct json_writer *w = &d->w;
    jw_key(w, str_from(method));
    jw_obj(w);
    jw_key(w, STR("responses"));
    jw_obj(w);
    jw_key(w, STR("200"));
    jw_obj(w);
    jw_pair(w, "description", STR("OK"));
    jw_obj_end(w);
    jw_obj_end(w);
    if (strcmp(method, "get") != 0) {
        jw_key(w, STR("parameters"));
        jw_arr(w);
        for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
            jw_obj(w);
            jw_pair(w, "name", str_from(parameters[i]));
            jw_pair(w, "in", STR("query"));
            jw_key(w, STR("schema"));
            jw_obj(w);
            jw_pair(w, "type", i == 3 ? STR("boolean") : STR("string"));
            jw_obj_end(w);
            jw_obj_end(w);
        }
        jw_arr_end(w);
    }
    jw_pair(w, "x-kubernetes-action", str_from(action));
    jw_key(w, STR("x-kubernetes-group-version-kind"));
    tree_write(kind_reference(&d->tmp, kind), w);
    jw_obj_end(w);
}

static void paths_write(struct openapi_doc *d, const struct kind *kind)
{
    struct str base = arena_printf(&d->tmp, "/%s/" STR_FMT "/%s" STR_FMT,
                                   kind->group.n > 0 ? "apis" : "api", STR_ARG(kind->api_version),
                                   kind_is(kind, KIND_NAMESPACED) ? "namespaces/{namespace}/" : "",
                                   STR_ARG(kind->plural));
    jw_key(&d->w, base);
    jw_obj(&d->w);
    operation_write(d, kind, "get", "list");
    operation_write(d, kind, "post", "post");
    jw_obj_end(&d->w);
    jw_key(&d->w, arena_concat(&d->tmp, base, STR("/{name}")));
    jw_obj(&d->w);
    operation_write(d, kind, "get", "get");
    operation_write(d, kind, "put", "put");
    operation_write(d, kind, "patch", "patch");
    jw_obj_end(&d->w);
}

static void openapi_write(struct openapi_doc *d, const struct kinds *kinds, struct str api_version)
{
    struct json_writer *w = &d->w;
    jw_obj(w);
    jw_pair(w, "openapi", STR("3.0.0"));
    jw_key(w, STR("info"));
    jw_obj(w);
    jw_pair(w, "title", STR("Kubernetes"));
    jw_pair(w, "version", STR("1.35"));
    jw_obj_end(w);
    jw_key(w, STR("paths"));
    jw_obj(w);
    for (uint32_t i = 0; i < kinds->n; i++) {
        if (str_eq(kinds->items[i]->api_version, api_version)) {
            paths_write(d, kinds->items[i]);
        }
    }
    jw_obj_end(w);
    jw_key(w, STR("components"));
    jw_obj(w);
    jw_key(w, STR("schemas"));
    jw_obj(w);
    MAP_EACH (&d->schemas, item) {
        jw_key(w, map_item_name(item));
        tree_write(map_item_value(item), w);
    }
    jw_obj_end(w);
    jw_obj_end(w);
    jw_obj_end(w);
}

bool openapi_document(const struct kinds *kinds, struct types *types, struct str api_version,
                      struct buf *out)
{
    struct openapi_doc d = { .types = types, .w = json_writer_on(out) };
    bool found = false;
    for (uint32_t i = 0; i < kinds->n; i++) {
        if (str_eq(kinds->items[i]->api_version, api_version)) {
            kind_schema_add(&d, kinds->items[i]);
            found = true;
        }
    }
    if (found) {
        openapi_write(&d, kinds, api_version);
    }
    map_done(&d.schemas);
    arena_done(&d.tmp);
    return found;
}
