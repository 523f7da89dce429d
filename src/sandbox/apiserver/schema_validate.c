/* schema_validate: what is wrong with an object by its schema, in the real server's words
 * (schema.h). */
#include "base/timestamp.h"
#include "base/utf8.h"
#include "sandbox/apiserver/go_quote.h"
#include "sandbox/apiserver/schema.h"

struct validation {
    struct types *types;
    struct arena *a;
    struct schema_causes *causes;
};

void schema_cause_add(struct schema_causes *causes, struct arena *a, const char *reason,
                      struct str field, struct str message)
{
    ARENA_GROW(a, causes->items, causes->n, causes->cap);
    causes->items[causes->n++] = (struct schema_cause){
        .reason = str_from(reason),
        .field = field,
        .message = message,
    };
}

#define INVALID(v, path, ...)                                                                      \
    schema_cause_add((v)->causes, (v)->a, "FieldValueInvalid", (path),                             \
                     arena_printf((v)->a, __VA_ARGS__))

static void type_wrong(struct validation *v, struct str path, const char *type, struct str found)
{
    struct str quoted = go_quote(v->a, found);
    schema_cause_add(v->causes, v->a, "FieldValueTypeInvalid", path,
                     arena_printf(v->a,
                                  "Invalid value: " STR_FMT ": " STR_FMT
                                  " in body must be of type %s: " STR_FMT,
                                  STR_ARG(quoted), STR_ARG(path), type, STR_ARG(quoted)));
}

static bool to_int(const struct tree *number, int64_t *ret)
{
    double f;
    if (tree_number(number, ret)) {
        return true;
    }
    if (!str_to_f64(number->text, &f) || f != (double)(int64_t)MAX(MIN(f, 9e18), -9e18)) {
        return false;
    }
    *ret = (int64_t)f;
    return true;
}

static struct str go_type_name(const struct tree *value)
{
    static const char *const names[] = { "null", "boolean", "number", "string", "array", "object" };
    int64_t n;
    return value->kind == JNUM && to_int(value, &n) ? STR("integer") : str_from(names[value->kind]);
}

/* False, with the cause, when the value has another type than the schema wants. */
static bool type_check(struct validation *v, const struct tree *schema, const struct tree *value,
                       struct str path)
{
    struct str wanted = tree_text(tree_get(schema, STR("type")));
    struct str found = go_type_name(value);
    if (value->kind == JNULL && tree_truth(tree_get(schema, STR("nullable")), false)) {
        return true;
    }
    if (tree_truth(tree_get(schema, STR("x-kubernetes-int-or-string")), false)) {
        if (str_eq(found, STR("integer")) || str_eq(found, STR("string"))) {
            return true;
        }
        type_wrong(v, path, "integer,string", found);
        return false;
    }
    if (wanted.n == 0 || str_eq(found, wanted) ||
        (str_eq(wanted, STR("number")) && value->kind == JNUM)) {
        return true;
    }
    type_wrong(v, path, arena_str(v->a, wanted).p, found);
    return false;
}

static void enum_check(struct validation *v, const struct tree *schema, const struct tree *value,
                       struct str path)
{
    const struct tree *allowed = tree_get(schema, STR("enum"));
    if (allowed == NULL) {
        return;
    }
    CLEANUP(buf_done)
    struct buf b = { 0 };
    TREE_EACH (allowed, one) {
        if (tree_eq(one, value)) {
            return;
        }
        struct str text = one->kind == JSTR ? one->text : tree_json(v->a, one);
        buf_add(&b, b.n > 0 ? STR(", ") : STR(""));
        buf_add(&b, go_quote(v->a, text));
    }
    schema_cause_add(v->causes, v->a, "FieldValueNotSupported", path,
                     arena_printf(v->a,
                                  "Unsupported value: " STR_FMT ": supported values: " STR_FMT,
                                  STR_ARG(go_quote_value(v->a, value)), STR_ARG(buf_str(&b))));
}

static void bound_check(struct validation *v, const struct tree *schema, const struct tree *value,
                        struct str path, bool upper)
{
    const struct tree *limit = tree_get(schema, upper ? STR("maximum") : STR("minimum"));
    bool open = tree_truth(
        tree_get(schema, upper ? STR("exclusiveMaximum") : STR("exclusiveMinimum")), false);
    double limit_f;
    double value_f;
    if (tree_kind(limit) != JNUM || !str_to_f64(limit->text, &limit_f) ||
        !str_to_f64(value->text, &value_f)) {
        return;
    }
    struct str shown = limit->text;
    int64_t n;
    if (tree_number(value, &n)) { /* integers are held against the whole part of the bound */
        limit_f = (double)(int64_t)limit_f;
        shown = arena_printf(v->a, "%lld", (long long)limit_f);
    }
    double over = upper ? value_f - limit_f : limit_f - value_f;
    if (over < 0 || (over == 0 && !open)) {
        return;
    }
    INVALID(v, path, "Invalid value: " STR_FMT ": " STR_FMT " in body should be %s than %s" STR_FMT,
            STR_ARG(value->text), STR_ARG(path), upper ? "less" : "greater",
            open ? "" : "or equal to ", STR_ARG(shown));
}

static void number_check(struct validation *v, const struct tree *schema, const struct tree *value,
                         struct str path)
{
    const struct tree *step = tree_get(schema, STR("multipleOf"));
    double step_f;
    double value_f;
    if (tree_kind(step) == JNUM && str_to_f64(step->text, &step_f) && step_f > 0 &&
        str_to_f64(value->text, &value_f)) {
        double times = value_f / step_f;
        if (times < 9e18 && times > -9e18 && times != (double)(int64_t)times) {
            INVALID(v, path,
                    "Invalid value: " STR_FMT ": " STR_FMT
                    " in body should be a multiple of " STR_FMT,
                    STR_ARG(value->text), STR_ARG(path), STR_ARG(step->text));
        }
    }
    bound_check(v, schema, value, path, /* upper= */ true);
    bound_check(v, schema, value, path, /* upper= */ false);
}

static int64_t schema_limit(const struct tree *schema, struct str name, int64_t otherwise)
{
    int64_t n;
    return tree_number(tree_get(schema, name), &n) ? n : otherwise;
}

static int64_t utf8_length(struct str text)
{
    int64_t n = 0;
    while (text.n > 0) {
        uint32_t point;
        size_t bytes = MAX(utf8_decode(text, &point), (size_t)1);
        text = str_sub(text, bytes, text.n - bytes);
        n++;
    }
    return n;
}

static void string_check(struct validation *v, const struct tree *schema, const struct tree *value,
                         struct str path)
{
    int64_t n = utf8_length(value->text);
    int64_t most = schema_limit(schema, STR("maxLength"), INT64_MAX);
    int64_t least = schema_limit(schema, STR("minLength"), 0);
    struct str quoted = go_quote(v->a, value->text);
    if (n > most) {
        schema_cause_add(
            v->causes, v->a, "FieldValueTooLong", path,
            arena_printf(v->a, "Too long: may not be more than %lld bytes", (long long)most));
    }
    if (n < least) {
        INVALID(v, path,
                "Invalid value: " STR_FMT ": " STR_FMT
                " in body should be at least %lld chars long",
                STR_ARG(quoted), STR_ARG(path), (long long)least);
    }
    struct str pattern = tree_text(tree_get(schema, STR("pattern")));
    if (pattern.n > 0 && !schema_pattern_matches(pattern, value->text)) {
        INVALID(v, path,
                "Invalid value: " STR_FMT ": " STR_FMT " in body should match '" STR_FMT "'",
                STR_ARG(quoted), STR_ARG(path), STR_ARG(pattern));
    }
    struct str format = tree_text(tree_get(schema, STR("format")));
    if (format.n > 0 && !schema_format_matches(format, value->text)) {
        type_wrong(v, path, arena_str(v->a, format).p, value->text);
    }
}

static void too_many(struct validation *v, struct str path, int64_t n, int64_t most)
{
    schema_cause_add(v->causes, v->a, "FieldValueTooMany", path,
                     arena_printf(v->a, "Too many: %lld: must have at most %lld item%s",
                                  (long long)n, (long long)most, most == 1 ? "" : "s"));
}

static void too_few(struct validation *v, struct str path, int64_t n, int64_t least,
                    const char *what)
{
    INVALID(v, path, "Invalid value: %lld: " STR_FMT " in body should have at least %lld %s",
            (long long)n, STR_ARG(path), (long long)least, what);
}

static void validate_value(struct validation *v, const struct tree *schema,
                           const struct tree *value, const struct tree *old, struct str path);

/* The value by which an element of a set or map list is told from others. */
static struct tree *element_key(struct arena *a, const struct tree *schema, const struct tree *item)
{
    const struct tree *keys = tree_get(schema, STR("x-kubernetes-list-map-keys"));
    if (keys == NULL) {
        return tree_clone(a, item);
    }
    struct tree *key = tree_obj(a);
    TREE_EACH (keys, name) {
        const struct tree *part = tree_get(item, tree_text(name));
        if (part != NULL) {
            tree_set(a, key, tree_text(name), tree_clone(a, part));
        }
    }
    return key;
}

static void duplicates_check(struct validation *v, const struct tree *schema,
                             const struct tree *list, struct str path)
{
    struct str type = tree_text(tree_get(schema, STR("x-kubernetes-list-type")));
    if (!str_eq(type, STR("set")) && !str_eq(type, STR("map"))) {
        return;
    }
    struct tree **keys = ARENA_ARRAY(v->a, struct tree *, list->n + 1u);
    uint32_t n = 0;
    TREE_EACH (list, item) {
        keys[n] = element_key(v->a, schema, item);
        for (uint32_t i = 0; i < n; i++) {
            if (tree_eq(keys[i], keys[n])) {
                schema_cause_add(
                    v->causes, v->a, "FieldValueDuplicate",
                    arena_printf(v->a, STR_FMT "[%u]", STR_ARG(path), n),
                    arena_concat(v->a, STR("Duplicate value: "), go_quote_value(v->a, keys[n])));
                break;
            }
        }
        n++;
    }
}

const struct tree *schema_old_element(struct arena *a, const struct tree *schema,
                                      const struct tree *item, const struct tree *old)
{
    const struct tree *keys = tree_get(schema, STR("x-kubernetes-list-map-keys"));
    TREE_EACH (keys != NULL ? old : NULL, candidate) {
        if (tree_eq(element_key(a, schema, item), element_key(a, schema, candidate))) {
            return candidate;
        }
    }
    return NULL;
}

static void array_check(struct validation *v, const struct tree *schema, const struct tree *value,
                        const struct tree *old, struct str path)
{
    int64_t most = schema_limit(schema, STR("maxItems"), INT64_MAX);
    int64_t least = schema_limit(schema, STR("minItems"), 0);
    uint32_t i = 0;
    TREE_EACH (value, item) {
        validate_value(v, types_item(v->types, schema), item,
                       schema_old_element(v->a, schema, item, old),
                       arena_printf(v->a, STR_FMT "[%u]", STR_ARG(path), i++));
    }
    if (value->n < least) {
        too_few(v, path, value->n, least, "items");
    }
    if (value->n > most) {
        too_many(v, path, value->n, most);
    }
    duplicates_check(v, schema, value, path);
}

static void required_check(struct validation *v, const struct tree *names, const struct tree *value,
                           struct str path)
{
    TREE_EACH (names, name) {
        if (tree_get(value, tree_text(name)) == NULL) {
            schema_cause_add(v->causes, v->a, "FieldValueRequired",
                             arena_path(v->a, path, tree_text(name)), STR("Required value"));
        }
    }
}

static void object_check(struct validation *v, const struct tree *schema, const struct tree *value,
                         const struct tree *old, struct str path)
{
    int64_t most = schema_limit(schema, STR("maxProperties"), INT64_MAX);
    int64_t least = schema_limit(schema, STR("minProperties"), 0);
    if (value->n < least) {
        too_few(v, path, value->n, least, "properties");
    }
    if (value->n > most) {
        too_many(v, path, value->n, most);
    }
    required_check(v, tree_get(schema, STR("required")), value, path);
    if (tree_truth(tree_get(schema, STR("x-kubernetes-embedded-resource")), false)) {
        static const char *const names[] = { "apiVersion", "kind" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            if (tree_text(tree_get(value, str_from(names[i]))).n == 0) {
                schema_cause_add(v->causes, v->a, "FieldValueRequired",
                                 arena_path(v->a, path, str_from(names[i])), STR("Required value"));
            }
        }
    }
    TREE_EACH (value, member) {
        validate_value(v, types_member(v->types, schema, member->key), member,
                       tree_get(old, member->key), arena_path(v->a, path, member->key));
    }
}

/* What one alternative of a logical schema complains about. */
static struct schema_causes alternative(struct validation *v, const struct tree *schema,
                                        const struct tree *value, struct str path)
{
    struct schema_causes own = { 0 };
    struct validation inner = { .types = v->types, .a = v->a, .causes = &own };
    validate_value(&inner, schema, value, NULL, path);
    return own;
}

static void causes_append(struct validation *v, const struct schema_causes *more)
{
    for (uint32_t i = 0; i < more->n; i++) {
        schema_cause_add(v->causes, v->a, more->items[i].reason.p, more->items[i].field,
                         more->items[i].message);
    }
}

static void logic_fail(struct validation *v, struct str path, const char *text)
{
    INVALID(v, STR("<nil>"), "Invalid value: \"\": \"" STR_FMT "\" %s", STR_ARG(path), text);
}

static void any_of_check(struct validation *v, const struct tree *alternatives,
                         const struct tree *value, struct str path, bool only_one)
{
    struct schema_causes first = { 0 };
    uint32_t valid = 0;
    TREE_EACH (alternatives, one) {
        struct schema_causes own = alternative(v, one, value, path);
        valid += own.n == 0;
        first = first.n == 0 ? own : first;
    }
    if (alternatives == NULL || valid == 1 || (valid > 1 && !only_one)) {
        return;
    }
    if (!only_one) {
        logic_fail(v, path, "must validate at least one schema (anyOf)");
    } else if (valid == 0) {
        logic_fail(v, path, "must validate one and only one schema (oneOf). Found none valid");
    } else {
        logic_fail(v, path,
                   arena_printf(v->a,
                                "must validate one and only one schema (oneOf). Found %u valid "
                                "alternatives",
                                valid)
                       .p);
        return;
    }
    causes_append(v, &first);
}

static void logic_check(struct validation *v, const struct tree *schema, const struct tree *value,
                        struct str path)
{
    bool all = true;
    if (!tree_truth(tree_get(schema, STR("x-kubernetes-int-or-string")), false)) {
        any_of_check(v, tree_get(schema, STR("anyOf")), value, path, /* only_one= */ false);
    }
    any_of_check(v, tree_get(schema, STR("oneOf")), value, path, /* only_one= */ true);
    TREE_EACH (tree_get(schema, STR("allOf")), one) {
        struct schema_causes own = alternative(v, one, value, path);
        all = all && own.n == 0;
        causes_append(v, &own);
    }
    if (!all) {
        logic_fail(v, path, "must validate all the schemas (allOf)");
    }
    const struct tree *not = tree_get(schema, STR("not"));
    if (not != NULL && alternative(v, not, value, path).n == 0) {
        logic_fail(v, path, "must not validate the schema (not)");
    }
}

static void validate_value(struct validation *v, const struct tree *schema,
                           const struct tree *value, const struct tree *old, struct str path)
{
    if (schema == NULL || types_resolve(v->types, schema) != schema ||
        (old != NULL && tree_eq(old, value))) {
        return; /* object metadata is checked by whoever stores the object */
    }
    if (!type_check(v, schema, value, path)) {
        return;
    }
    enum_check(v, schema, value, path);
    switch (value->kind) {
    case JNUM:
        number_check(v, schema, value, path);
        break;
    case JSTR:
        string_check(v, schema, value, path);
        break;
    case JARR:
        array_check(v, schema, value, old, path);
        break;
    case JOBJ:
        object_check(v, schema, value, old, path);
        break;
    case JNULL:
    case JBOOL:
        break;
    }
    logic_check(v, schema, value, path);
}

static bool schema_has_cel(const struct tree *schema)
{
    if (tree_kind(schema) != JOBJ) {
        return false;
    }
    const struct tree *rules = tree_get(schema, STR("x-kubernetes-validations"));
    if (rules != NULL && rules->n > 0) {
        return true;
    }
    TREE_EACH (tree_get(schema, STR("properties")), property) {
        if (schema_has_cel(property)) {
            return true;
        }
    }
    return schema_has_cel(tree_get(schema, STR("items"))) ||
           schema_has_cel(tree_get(schema, STR("additionalProperties")));
}

/* Errors of these kinds keep the real server from looking at the rules, and it says so. */
static bool cause_blocks_cel(const struct schema_cause *cause)
{
    static const char *const reasons[] = { "FieldValueNotSupported", "FieldValueRequired",
                                           "FieldValueTooLong", "FieldValueTooMany",
                                           "FieldValueTypeInvalid" };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (str_eq(cause->reason, str_from(reasons[i]))) {
            return true;
        }
    }
    return false;
}

void schema_validate(struct types *types, const struct tree *schema, struct arena *a,
                     const struct tree *object, const struct tree *old, struct schema_causes *ret)
{
    struct validation v = { .types = types, .a = a, .causes = ret };
    uint32_t before = ret->n;
    validate_value(&v, schema, object, old, STR(""));
    for (uint32_t i = before; i < ret->n; i++) {
        if (cause_blocks_cel(&ret->items[i]) && schema_has_cel(schema)) {
            schema_cause_add(ret, a, "FieldValueInvalid", STR("<nil>"),
                             STR("Invalid value: null: some validation rules were not checked "
                                 "because the object was invalid; correct the existing errors to "
                                 "complete validation"));
            return;
        }
    }
    schema_check_rules(types, schema, a, object, old, ret);
}
