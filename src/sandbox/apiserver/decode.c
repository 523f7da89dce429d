#include "sandbox/apiserver/schema.h"
#include "sandbox/apiserver/apiserver_internal.h"

static struct status *content_bad(struct call *c, struct str why)
{
    return status_bad_request(
        c->a, STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT ": " STR_FMT,
        STR_ARG(c->kind->kind), STR_ARG(c->kind->version), STR_ARG(c->kind->kind), STR_ARG(why));
}

/* Fields the kind does not have: refused, warned about or dropped in silence, as the client likes.
 */
static struct status *content_unknown(struct call *c, const struct schema_paths *unknown)
{
    struct str mode = c->route.params.field_validation;
    if (unknown->n == 0 || str_eq(mode, STR("Ignore"))) {
        return NULL;
    }
    if (str_eq(mode, STR("Strict"))) {
        return content_bad(c, arena_concat(c->a, STR("strict decoding error: "),
                                           schema_unknown_text(c->a, unknown)));
    }
    for (uint32_t i = 0; i < unknown->n; i++) {
        call_warn(c,
                  arena_printf(c->a, "unknown field \"" STR_FMT "\"", STR_ARG(unknown->items[i])));
    }
    return NULL;
}

struct status *content_decode_known(struct call *c, struct tree *obj)
{
    struct schema_paths unknown = { 0 };
    struct err err = { 0 };
    if (kind_is(c->kind, KIND_CUSTOM)) {
        schema_prune(&c->s->types, c->kind->schema, SCHEMA_CUSTOM, c->a, obj, &unknown);
        return content_unknown(c, &unknown);
    }
    const struct tree *schema = types_builtin(&c->s->types, c->kind->group, c->kind->kind);
    if (types_check(&c->s->types, schema, obj, &err) < 0) {
        return content_bad(c, str_from(err.msg));
    }
    schema_prune(&c->s->types, schema, 0, c->a, obj, &unknown);
    return content_unknown(c, &unknown);
}

struct status *content_decode(struct call *c, struct tree *obj)
{
    struct status *status = content_decode_known(c, obj);
    if (status == NULL && kind_is(c->kind, KIND_CUSTOM)) {
        schema_default(&c->s->types, c->kind->schema, c->a, obj);
    }
    return status;
}

void content_validate(struct call *c, const struct tree *old, struct tree *obj,
                      struct status **list)
{
    if (!kind_is(c->kind, KIND_CUSTOM)) {
        return;
    }
    struct schema_causes causes = { 0 };
    schema_validate(&c->s->types, c->kind->schema, c->a, obj, old, &causes);
    for (uint32_t i = 0; i < causes.n; i++) {
        struct str reason = arena_str(c->a, causes.items[i].reason);
        status_cause(list, c->a, reason.p, causes.items[i].field, causes.items[i].message);
    }
}
