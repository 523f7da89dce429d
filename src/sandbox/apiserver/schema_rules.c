/* schema_rules: the rules in CEL of a custom kind's schema (x-kubernetes-validations), held against
 * an object in the real server's words. */
#include "format/cel.h"
#include "sandbox/apiserver/go_quote.h"
#include "sandbox/apiserver/schema.h"

struct rule_program {
    const struct cel_program *program; /* NULL: not an expression that we know */
};

struct rule_check {
    struct types *types;
    struct arena *a;
    struct schema_causes *causes;
};

/* Rules are compiled once: every write of an object asks. */
static const struct cel_program *rule_compile(struct types *types, struct str text)
{
    struct rule_program *known = map_find(&types->rules, text);
    if (known == NULL) {
        struct err ignored = { 0 };
        known = ARENA_NEW(types->arena, struct rule_program);
        if (cel_compile(text, types->arena, &known->program, &ignored) < 0) {
            known->program = NULL; /* it counts as fulfilled */
        }
        (void)map_put(&types->rules, text, known);
    }
    return known->program;
}

static void rule_broken(struct rule_check *c, const struct tree *rule, const struct tree *value,
                        struct str path)
{
    struct str reason = tree_text_at(rule, "reason");
    struct str message = tree_text_at(rule, "message");
    struct str field = path;
    if (message.n == 0) {
        message = arena_concat(c->a, STR("failed rule: "), str_trim(tree_text_at(rule, "rule")));
    }
    if (tree_text_at(rule, "fieldPath").n > 0) {
        field = arena_concat(c->a, path, tree_text_at(rule, "fieldPath"));
    }
    bool scalar = tree_kind(value) != JOBJ && tree_kind(value) != JARR;
    struct str shown = go_quote_value(c->a, value);
    if (str_eq(reason, STR("FieldValueRequired"))) {
        message = arena_concat(c->a, STR("Required value: "), message);
    } else if (str_eq(reason, STR("FieldValueForbidden"))) {
        message = arena_concat(c->a, STR("Forbidden: "), message);
    } else if (str_eq(reason, STR("FieldValueDuplicate"))) {
        message = arena_concat(c->a, STR("Duplicate value: "), shown);
    } else {
        reason = STR("FieldValueInvalid");
        message =
            arena_printf(c->a, "Invalid value: " STR_FMT "%s" STR_FMT,
                         STR_ARG(scalar ? shown : STR("")), scalar ? ": " : "", STR_ARG(message));
    }
    schema_cause_add(c->causes, c->a, arena_str(c->a, reason).p, field.n > 0 ? field : STR("<nil>"),
                     message);
}

static void rule_failed(struct rule_check *c, const struct tree *rule, const struct tree *schema,
                        struct str path, const char *why)
{
    struct str message = tree_text_at(rule, "message");
    if (message.n == 0) {
        message = str_trim(tree_text_at(rule, "rule"));
    }
    schema_cause_add(
        c->causes, c->a, "FieldValueInvalid", path.n > 0 ? path : STR("<nil>"),
        arena_printf(c->a, "Invalid value: \"" STR_FMT "\": %s evaluating rule: " STR_FMT,
                     STR_ARG(tree_text(tree_get(schema, STR("type")))), why, STR_ARG(message)));
}

static void rules_check(struct rule_check *c, const struct tree *schema, const struct tree *value,
                        const struct tree *old, struct str path)
{
    TREE_EACH (tree_get(schema, STR("x-kubernetes-validations")), rule) {
        CLEANUP(arena_done)
        struct arena tmp = { .first = 1024 };
        struct err err = { 0 };
        const struct cel_program *program = rule_compile(c->types, tree_text_at(rule, "rule"));
        bool optional = tree_truth(tree_get(rule, STR("optionalOldSelf")), false);
        if (program == NULL || optional || (old == NULL && cel_uses_old_self(program))) {
            continue; /* a rule about changes has nothing to say about what is new */
        }
        struct cel_input input = { .self = value, .old_self = old, .schema = schema };
        bool holds = false;
        if (cel_evaluate(program, &input, &tmp, &holds, &err) < 0) {
            rule_failed(c, rule, schema, path, err.msg);
        } else if (!holds) {
            rule_broken(c, rule, value, path);
        }
    }
}

static void rules_walk(struct rule_check *c, const struct tree *schema, const struct tree *value,
                       const struct tree *old, struct str path)
{
    if (schema == NULL || types_resolve(c->types, schema) != schema || tree_kind(value) == JNULL ||
        (old != NULL && tree_eq(old, value))) {
        return;
    }
    rules_check(c, schema, value, old, path);
    uint32_t i = 0;
    TREE_EACH (tree_kind(value) == JARR ? value : NULL, item) {
        rules_walk(c, types_item(c->types, schema), item,
                   schema_old_element(c->a, schema, item, old),
                   arena_printf(c->a, STR_FMT "[%u]", STR_ARG(path), i++));
    }
    TREE_EACH (tree_kind(value) == JOBJ ? value : NULL, member) {
        rules_walk(c, types_member(c->types, schema, member->key), member,
                   tree_get(old, member->key), arena_path(c->a, path, member->key));
    }
}

void schema_check_rules(struct types *types, const struct tree *schema, struct arena *a,
                        const struct tree *object, const struct tree *old,
                        struct schema_causes *ret)
{
    struct rule_check c = { .types = types, .a = a, .causes = ret };
    rules_walk(&c, schema, object, old, STR(""));
}
