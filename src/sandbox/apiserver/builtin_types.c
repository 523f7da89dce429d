#include "sandbox/apiserver/builtin_types.h"

#include "sandbox/apiserver/builtin_types_table.h"

#define REF_PREFIX "#/components/schemas/"
#define OBJECT_META "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

static const struct {
    struct str brief;
    struct str full;
} prefixes[] = {
    { STR_INIT("meta."), STR_INIT("io.k8s.apimachinery.pkg.apis.meta.") },
    { STR_INIT("apiextensions."),
      STR_INIT("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.") },
    { STR_INIT(""), STR_INIT("io.k8s.api.") },
};

static struct str type_full_name(struct arena *out, struct str brief)
{
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        struct str rest;
        if (str_cut_prefix(brief, prefixes[i].brief, &rest) || prefixes[i].brief.n == 0) {
            return arena_concat(out, prefixes[i].full, rest);
        }
    }
    return brief;
}

void types_init(struct types *t, struct arena *a)
{
    *t = (struct types){ .arena = a };
}

void types_done(struct types *t)
{
    map_done(&t->made);
    map_done(&t->rules);
}

static struct tree *schema_of_type(struct arena *a, const char *type, const char *format)
{
    struct tree *s = tree_obj(a);
    tree_set(a, s, STR("type"), tree_str(a, str_from(type)));
    if (format != NULL) {
        tree_set(a, s, STR("format"), tree_str(a, str_from(format)));
    }
    return s;
}

static struct tree *schema_ref(struct arena *a, struct str full)
{
    struct tree *target = tree_obj(a);
    tree_set(a, target, STR("$ref"), tree_str(a, arena_concat(a, STR(REF_PREFIX), full)));
    struct tree *all = tree_arr(a);
    tree_add(all, target);
    struct tree *s = tree_obj(a);
    tree_set(a, s, STR("allOf"), all);
    return s;
}

static struct tree *schema_with_flag(struct arena *a, const char *flag)
{
    struct tree *s = tree_obj(a);
    tree_set(a, s, str_from(flag), tree_bool(a, true));
    return s;
}

static struct tree *schema_scalar(struct arena *a, char letter)
{
    switch (letter) {
    case 's':
        return schema_of_type(a, "string", NULL);
    case 't':
    case 'u':
        return schema_of_type(a, "string", "date-time");
    case 'q':
        return schema_of_type(a, "string", "quantity");
    case 'y':
        return schema_of_type(a, "string", "byte");
    case 'w':
        return schema_of_type(a, "integer", "int32");
    case 'i':
        return schema_of_type(a, "integer", "int64");
    case 'n':
        return schema_of_type(a, "number", "double");
    case 'b':
        return schema_of_type(a, "boolean", NULL);
    case 'x':
        return schema_with_flag(a, "x-kubernetes-int-or-string");
    default:
        ASSERT(strchr("aABS", letter) != NULL);
        return schema_with_flag(a, "x-kubernetes-preserve-unknown-fields");
    }
}

/* Takes the characters up to one of `stops` from `*rest`. */
static struct str take(struct str *rest, const char *stops)
{
    size_t n = 0;
    while (n < rest->n && strchr(stops, rest->p[n]) == NULL) {
        n++;
    }
    struct str taken = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n, rest->n - n);
    return taken;
}

static bool take_char(struct str *rest, char c)
{
    if (rest->n == 0 || rest->p[0] != c) {
        return false;
    }
    *rest = str_sub(*rest, 1, rest->n - 1);
    return true;
}

static struct tree *text_list(struct arena *a, struct str joined)
{
    struct tree *list = tree_arr(a);
    struct str piece;
    while (str_split_next(&joined, ',', &piece)) {
        tree_add(list, tree_str(a, piece));
    }
    return list;
}

static struct tree *parse_type(struct arena *a, struct str *rest)
{
    if (take_char(rest, '@')) {
        return schema_ref(a, type_full_name(a, take(rest, "]}+~ ")));
    }
    if (take_char(rest, '[')) {
        struct tree *s = schema_of_type(a, "array", NULL);
        tree_set(a, s, STR("items"), parse_type(a, rest));
        (void)take_char(rest, ']');
        if (take_char(rest, '=')) {
            tree_set(a, s, STR("x-kubernetes-list-type"), tree_str(a, take(rest, "(]}+~ ")));
        }
        if (take_char(rest, '(')) {
            tree_set(a, s, STR("x-kubernetes-list-map-keys"), text_list(a, take(rest, ")")));
            (void)take_char(rest, ')');
        }
        return s;
    }
    if (take_char(rest, '{')) {
        struct tree *s = schema_of_type(a, "object", NULL);
        tree_set(a, s, STR("additionalProperties"), parse_type(a, rest));
        (void)take_char(rest, '}');
        if (take_char(rest, '=')) {
            tree_set(a, s, STR("x-kubernetes-map-type"), tree_str(a, take(rest, "]}+~ ")));
        }
        return s;
    }
    char letter = rest->p[0];
    *rest = str_sub(*rest, 1, rest->n - 1);
    return schema_scalar(a, letter);
}

static struct tree *builtin_type_schema(struct arena *a, const struct builtin_type *type)
{
    struct tree *s = schema_of_type(a, "object", NULL);
    struct tree *properties = tree_make_at(a, s, "properties");
    struct tree *required = tree_arr(a);
    struct str rest = str_from(type->fields);
    while (rest.n > 0) {
        struct str name = take(&rest, "!#:");
        if (take_char(&rest, '!')) {
            tree_add(required, tree_str(a, name));
        }
        (void)take(&rest, ":"); /* the number is for protobuf_body.c */
        (void)take_char(&rest, ':');
        struct tree *field = parse_type(a, &rest);
        if (take_char(&rest, '+')) {
            tree_set(a, field, STR("x-kubernetes-patch-strategy"), tree_str(a, take(&rest, "/~ ")));
        }
        if (take_char(&rest, '/')) {
            tree_set(a, field, STR("x-kubernetes-patch-merge-key"), tree_str(a, take(&rest, "~ ")));
        }
        if (take_char(&rest, '~')) {
            tree_set(a, field, STR("default"), tree_str(a, take(&rest, " ")));
        }
        (void)take_char(&rest, ' ');
        tree_set(a, properties, name, field);
    }
    if (required->n > 0) {
        tree_set(a, s, STR("required"), required);
    }
    if (type->atomic) {
        tree_set(a, s, STR("x-kubernetes-map-type"), tree_str(a, STR("atomic")));
    }
    return s;
}

static const struct builtin_type *builtin_type_find(struct str full)
{
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        struct str rest;
        if (!str_cut_prefix(full, prefixes[i].full, &rest)) {
            continue;
        }
        for (uint32_t j = 0; j < builtin_types_n; j++) {
            struct str tail;
            if (str_cut_prefix(str_from(builtin_types[j].name), prefixes[i].brief, &tail) &&
                str_eq(tail, rest)) {
                return &builtin_types[j];
            }
        }
    }
    return NULL;
}

/* Names of one length differ near their ends. */
static const struct tree **types_cache_slot(struct types *t, struct str name)
{
    size_t n = name.n;
    size_t mixed = n;
    for (size_t i = 1; i <= MIN(n, (size_t)6); i++) {
        mixed = mixed * 31 + (unsigned char)name.p[n - i];
    }
    return &t->cache[mixed % TYPES_RECENT];
}

const struct tree *types_named(struct types *t, struct str name)
{
    const struct tree **recent = types_cache_slot(t, name);
    if (*recent != NULL && str_eq((*recent)->key, name)) {
        return *recent;
    }
    struct tree *made = map_find(&t->made, name);
    if (made == NULL) {
        const struct builtin_type *type = builtin_type_find(name);
        if (type == NULL) {
            return NULL;
        }
        made = builtin_type_schema(t->arena, type);
        made->key = arena_str(t->arena, name);
        (void)map_put(&t->made, name, made);
    }
    *recent = made;
    return made;
}

struct str types_kind_name(struct arena *out, struct str group, struct str kind)
{
    for (uint32_t i = 0; i < builtin_kind_types_n; i++) {
        if (str_eq(group, str_from(builtin_kind_types[i].group)) &&
            str_eq(kind, str_from(builtin_kind_types[i].kind))) {
            return type_full_name(out, str_from(builtin_kind_types[i].type));
        }
    }
    return STR_NONE;
}

const struct tree *types_builtin_kind(struct types *t, struct str group, struct str kind)
{
    CLEANUP(arena_done)
    struct arena tmp = { .first = 256 };
    struct str name = types_kind_name(&tmp, group, kind);
    return name.n > 0 ? types_named(t, name) : NULL;
}

static void schema_add_object_meta(struct arena *a, struct tree *schema)
{
    struct tree *properties = tree_make_at(a, schema, "properties");
    tree_set(a, properties, STR("apiVersion"), schema_of_type(a, "string", NULL));
    tree_set(a, properties, STR("kind"), schema_of_type(a, "string", NULL));
    tree_set(a, properties, STR("metadata"), schema_ref(a, STR(OBJECT_META)));
}

static void schema_prepare_embedded(struct arena *a, struct tree *schema)
{
    if (tree_kind(schema) != JOBJ) {
        return;
    }
    TREE_EACH (tree_get(schema, STR("properties")), property) {
        schema_prepare_embedded(a, property);
    }
    schema_prepare_embedded(a, tree_get(schema, STR("items")));
    schema_prepare_embedded(a, tree_get(schema, STR("additionalProperties")));
    if (tree_truth(tree_get(schema, STR("x-kubernetes-embedded-resource")), false)) {
        schema_add_object_meta(a, schema);
    }
}

struct tree *types_custom_schema(struct arena *a, const struct tree *schema)
{
    struct tree *own = schema != NULL ? tree_clone(a, schema)
                                      : schema_with_flag(a, "x-kubernetes-preserve-unknown-fields");
    schema_prepare_embedded(a, own);
    schema_add_object_meta(a, own);
    return own;
}

const struct tree *types_resolve(struct types *t, const struct tree *schema)
{
    struct tree *all = tree_get(schema, STR("allOf"));
    struct str target = tree_text(tree_get(tree_index(all, 0), STR("$ref")));
    struct str name;
    if (target.n == 0 || !str_cut_prefix(target, STR(REF_PREFIX), &name)) {
        return schema;
    }
    return types_named(t, name);
}

const struct tree *types_member(struct types *t, const struct tree *schema, struct str key)
{
    const struct tree *own = types_resolve(t, schema);
    const struct tree *member = tree_get(tree_get(own, STR("properties")), key);
    if (member != NULL) {
        return member;
    }
    const struct tree *more = tree_get(own, STR("additionalProperties"));
    return tree_kind(more) == JOBJ ? more : NULL;
}

const struct tree *types_item(struct types *t, const struct tree *schema)
{
    return tree_get(types_resolve(t, schema), STR("items"));
}

bool types_keeps_unknown(struct types *t, const struct tree *schema)
{
    const struct tree *own = types_resolve(t, schema);
    return own == NULL ||
           tree_truth(tree_get(own, STR("x-kubernetes-preserve-unknown-fields")), false) ||
           tree_kind(tree_get(own, STR("additionalProperties"))) == JOBJ ||
           tree_truth(tree_get(own, STR("additionalProperties")), false);
}

void types_referenced(struct types *t, struct str name, struct map *ret)
{
    if (map_find(ret, name) != NULL) {
        return;
    }
    const struct tree *schema = types_named(t, name);
    if (schema == NULL) {
        return;
    }
    (void)map_put(ret, name, map_find(&t->made, name));
    TREE_EACH (tree_get(schema, STR("properties")), property) {
        const struct tree *at = property;
        while (tree_get(at, STR("allOf")) == NULL) {
            const struct tree *below = tree_get(at, STR("items"));
            below = below != NULL ? below : tree_get(at, STR("additionalProperties"));
            if (below == NULL) {
                break;
            }
            at = below;
        }
        struct str target =
            tree_text(tree_get(tree_index(tree_get(at, STR("allOf")), 0), STR("$ref")));
        struct str below;
        if (target.n > 0 && str_cut_prefix(target, STR(REF_PREFIX), &below)) {
            types_referenced(t, below, ret);
        }
    }
}

/* Where the check is, as a chain on the stack: it is printed only when something is wrong. */
struct type_check_path {
    const struct type_check_path *up;
    struct str key;
};

struct type_check {
    struct types *types;
    struct arena tmp;
    struct str struct_name; /* the Go struct that holds the field */
    struct err *err;
};

static struct str schema_ref_name(const struct tree *schema)
{
    struct tree *all = tree_get(schema, STR("allOf"));
    struct str target = tree_text(tree_get(tree_index(all, 0), STR("$ref")));
    size_t dot = str_rfind_char(target, '.');
    return dot == SIZE_MAX ? STR_NONE : str_sub(target, dot + 1, target.n - dot - 1);
}

static struct str go_type(struct type_check *c, const struct tree *schema)
{
    struct str name = schema_ref_name(schema);
    if (name.n > 0) {
        return arena_printf(&c->tmp, "v1." STR_FMT, STR_ARG(name));
    }
    struct str type = tree_text(tree_get(schema, STR("type")));
    if (str_eq(type, STR("array"))) {
        return arena_concat(&c->tmp, STR("[]"), go_type(c, tree_get(schema, STR("items"))));
    }
    if (str_eq(type, STR("object"))) {
        return arena_concat(&c->tmp, STR("map[string]"),
                            go_type(c, tree_get(schema, STR("additionalProperties"))));
    }
    if (str_eq(type, STR("integer"))) {
        return tree_text(tree_get(schema, STR("format")));
    }
    return str_eq(type, STR("boolean")) ? STR("bool") : type;
}

static struct str type_check_path_print(struct type_check *c, const struct type_check_path *path)
{
    if (path == NULL) {
        return STR("");
    }
    struct str above = type_check_path_print(c, path->up);
    return arena_printf(&c->tmp, STR_FMT "%s" STR_FMT, STR_ARG(above), above.n > 0 ? "." : "",
                        STR_ARG(path->key));
}

static int type_check_fail(struct type_check *c, const struct tree *schema,
                           const struct tree *value, const struct type_check_path *path)
{
    static const char *const found[] = { "null", "bool", "number", "string", "array", "object" };
    bool digits =
        value->kind == JNUM && str_eq(tree_text(tree_get(schema, STR("type"))), STR("integer"));
    struct str type = go_type(c, schema);
    return err_set(c->err, ERR_INVALID,
                   "json: cannot unmarshal %s%s" STR_FMT " into Go struct field " STR_FMT
                   "." STR_FMT " of type " STR_FMT,
                   found[value->kind], digits ? " " : "", STR_ARG(digits ? value->text : STR("")),
                   STR_ARG(c->struct_name), STR_ARG(type_check_path_print(c, path)), STR_ARG(type));
}

static bool scalar_fits(const struct tree *schema, const struct tree *value)
{
    struct str type = tree_text(tree_get(schema, STR("type")));
    struct str format = tree_text(tree_get(schema, STR("format")));
    if (str_eq(format, STR("quantity")) || str_eq(format, STR("date-time")) || type.n == 0) {
        return true; /* these have decoders of their own */
    }
    if (str_eq(type, STR("integer"))) {
        int64_t n;
        return value->kind == JNUM && str_to_i64(value->text, &n) &&
               (!str_eq(format, STR("int32")) || (n >= INT32_MIN && n <= INT32_MAX));
    }
    if (str_eq(type, STR("number"))) {
        return value->kind == JNUM;
    }
    return value->kind == (str_eq(type, STR("boolean")) ? JBOOL : JSTR);
}

static int type_check_value(struct type_check *c, const struct tree *schema,
                            const struct tree *value, const struct type_check_path *path);

static int type_check_members(struct type_check *c, const struct tree *schema,
                              const struct tree *value, const struct type_check_path *path)
{
    /* Go names fields, not the keys of a map. */
    bool named = tree_get(schema, STR("properties")) != NULL;
    TREE_EACH (value, member) {
        const struct tree *below = types_member(c->types, schema, member->key);
        if (below == NULL) {
            continue;
        }
        struct type_check_path at = { .up = path, .key = member->key };
        int r = type_check_value(c, below, member, named ? &at : path);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int type_check_value(struct type_check *c, const struct tree *schema,
                            const struct tree *value, const struct type_check_path *path)
{
    if (value->kind == JNULL) {
        return 0;
    }
    const struct tree *own = types_resolve(c->types, schema);
    struct str type = tree_text(tree_get(own, STR("type")));
    if (str_eq(type, STR("object"))) {
        if (value->kind != JOBJ) {
            return type_check_fail(c, schema, value, path);
        }
        struct str outer = c->struct_name;
        struct str name = schema_ref_name(schema);
        c->struct_name = name.n > 0 ? name : outer;
        int r = type_check_members(c, own, value, path);
        c->struct_name = outer;
        return r;
    }
    if (str_eq(type, STR("array"))) {
        if (value->kind != JARR) {
            return type_check_fail(c, schema, value, path);
        }
        TREE_EACH (value, item) {
            int r = type_check_value(c, tree_get(own, STR("items")), item, path);
            if (r < 0) {
                return r;
            }
        }
        return 0;
    }
    return scalar_fits(own, value) ? 0 : type_check_fail(c, schema, value, path);
}

int types_check(struct types *t, const struct tree *schema, const struct tree *object,
                struct err *err)
{
    struct type_check c = { .types = t, .struct_name = tree_text_at(object, "kind"), .err = err };
    int r = type_check_members(&c, schema, object, NULL);
    arena_done(&c.tmp);
    return r;
}
