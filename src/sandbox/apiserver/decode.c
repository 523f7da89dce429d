/* decode: unknown fields, defaults and schema validation of a body that was sent to be stored. */
#include "sandbox/apiserver/schema.h"
#include "sandbox/apiserver/apiserver_internal.h"

static struct status *decode_bad_request(struct request_ctx *c, struct str why)
{
    return status_bad_request(
        c->a, STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT ": " STR_FMT,
        STR_ARG(c->kind->kind), STR_ARG(c->kind->version), STR_ARG(c->kind->kind), STR_ARG(why));
}

/* Unknown fields are refused, warned about or ignored, as ?fieldValidation= says. */
static struct status *decode_unknown(struct request_ctx *c, const struct schema_paths *unknown)
{
    struct str mode = c->route.params.field_validation;
    if (unknown->n == 0 || str_eq(mode, STR("Ignore"))) {
        return NULL;
    }
    if (str_eq(mode, STR("Strict"))) {
        return decode_bad_request(c, arena_concat(c->a, STR("strict decoding error: "),
                                                  schema_unknown_text(c->a, unknown)));
    }
    for (uint32_t i = 0; i < unknown->n; i++) {
        reply_add_warning(
            c, arena_printf(c->a, "unknown field \"" STR_FMT "\"", STR_ARG(unknown->items[i])));
    }
    return NULL;
}

struct status *decode_known_fields(struct request_ctx *c, struct tree *obj)
{
    struct schema_paths unknown = { 0 };
    struct err err = { 0 };
    if (kind_is(c->kind, KIND_CUSTOM)) {
        schema_prune(&c->s->types, c->kind->schema, SCHEMA_CUSTOM, c->a, obj, &unknown);
        return decode_unknown(c, &unknown);
    }
    const struct tree *schema = types_builtin_kind(&c->s->types, c->kind->group, c->kind->kind);
    if (types_check(&c->s->types, schema, obj, &err) < 0) {
        return decode_bad_request(c, str_from(err.msg));
    }
    schema_prune(&c->s->types, schema, 0, c->a, obj, &unknown);
    return decode_unknown(c, &unknown);
}

struct status *decode_object(struct request_ctx *c, struct tree *obj)
{
    struct status *status = decode_known_fields(c, obj);
    if (status == NULL && kind_is(c->kind, KIND_CUSTOM)) {
        schema_default(&c->s->types, c->kind->schema, c->a, obj);
    }
    return status;
}

void decode_validate_custom(struct request_ctx *c, const struct tree *old, struct tree *obj,
                            struct status **list)
{
    if (!kind_is(c->kind, KIND_CUSTOM)) {
        return;
    }
    struct schema_causes causes = { 0 };
    schema_validate(&c->s->types, c->kind->schema, c->a, obj, old, &causes);
    for (uint32_t i = 0; i < causes.n; i++) {
        struct str reason = arena_str(c->a, causes.items[i].reason);
        cause_add(list, c->a, reason.p, causes.items[i].field, causes.items[i].message);
    }
}
