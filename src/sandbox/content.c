#include "sandbox/server.h"

static struct status *content_bad(struct call *c, const char *why)
{
    return status_bad_request(
        c->a, STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT ": %s",
        STR_ARG(c->kind->kind), STR_ARG(c->kind->version), STR_ARG(c->kind->kind), why);
}

struct status *content_decode(struct call *c, struct tree *obj)
{
    if (kind_is(c->kind, KIND_CUSTOM)) {
        return NULL;
    }
    struct err err = { 0 };
    const struct tree *schema = types_builtin(&c->s->types, c->kind->group, c->kind->kind);
    if (types_check(&c->s->types, schema, obj, &err) < 0) {
        return content_bad(c, err.msg);
    }
    return NULL;
}

void content_validate(struct call *c, const struct tree *old, struct tree *obj,
                      struct status **list)
{
    (void)c;
    (void)old;
    (void)obj;
    (void)list;
}
