#include "sandbox/auth.h"

static const char *auth_verb(const struct call *c)
{
    struct str method = c->request->method;
    bool one = c->route.target == ROUTE_OBJECT;
    bool watch = false;
    if (str_eq(method, STR("GET"))) {
        if (route_bool(c->route.params.watch, &watch) && watch) {
            return "watch";
        }
        return one ? "get" : "list";
    }
    if (str_eq(method, STR("POST"))) {
        return "create";
    }
    if (str_eq(method, STR("PUT"))) {
        return "update";
    }
    if (str_eq(method, STR("PATCH"))) {
        return "patch";
    }
    return one ? "delete" : "deletecollection";
}

static struct status *auth_forbid(struct call *c, struct str user)
{
    struct arena *a = c->a;
    if (c->kind == NULL) {
        struct str path = c->route.path;
        struct status *s = status_generic(
            a, 403, "Forbidden",
            arena_printf(a, "forbidden: User \"" STR_FMT "\" cannot get path \"" STR_FMT "\"",
                         STR_ARG(user), STR_ARG(path)));
        return s;
    }
    struct str resource = c->kind->plural;
    if (c->route.subresource.n > 0) {
        resource =
            arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(resource), STR_ARG(c->route.subresource));
    }
    struct str where =
        c->route.namespace.n == 0
            ? STR("at the cluster scope")
            : arena_printf(a, "in the namespace \"" STR_FMT "\"", STR_ARG(c->route.namespace));
    return status_forbidden(a, c->kind, c->route.name,
                            arena_printf(a,
                                         "User \"" STR_FMT "\" cannot %s resource \"" STR_FMT
                                         "\" in API group \"" STR_FMT "\" " STR_FMT,
                                         STR_ARG(user), auth_verb(c), STR_ARG(resource),
                                         STR_ARG(c->kind->group), STR_ARG(where)));
}

struct status *auth_check(struct call *c)
{
    const struct apiserver_request *request = c->request;
    struct str token;
    if (request->authorization.n > 0 &&
        (c->s->token.n == 0 || !str_cut_prefix(request->authorization, STR("Bearer "), &token) ||
         !str_eq(token, c->s->token))) {
        return status_new(c->a, 401, "Unauthorized", STR("Unauthorized"));
    }
    struct str user = request->impersonate_user;
    if (user.n == 0 && request->anonymous) {
        user = STR("system:anonymous");
    }
    if (user.n == 0) {
        return NULL;
    }
    enum route_target target = c->route.target;
    bool open = target == ROUTE_VERSION || target == ROUTE_HEALTH;
    bool discovery = target == ROUTE_API || target == ROUTE_APIS || target == ROUTE_GROUP ||
                     target == ROUTE_RESOURCES || target == ROUTE_OPENAPI;
    return open || (discovery && !request->anonymous) ? NULL : auth_forbid(c, user);
}
