#include "sandbox/apiserver/auth.h"

#include "sandbox/apiserver/token.h"

#define RBAC STR("rbac.authorization.k8s.io")
#define SERVICE_ACCOUNT_PREFIX STR("system:serviceaccount:")

static const char *auth_verb(const struct request_ctx *c)
{
    struct str method = c->request->method;
    bool one = c->route.target == URL_OBJECT;
    bool watch = false;
    if (str_eq(method, STR("GET"))) {
        if (url_parse_bool(c->route.params.watch, &watch) && watch) {
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

static struct status *auth_forbid(struct request_ctx *c, struct str user)
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

/* ── roles ─────────────────────────────────────────────────────────────────────────────────── */

struct rbac_query {
    struct request_ctx *call;
    struct str user;
    struct str verb;
    struct str resource;    /* "pods/eviction" */
    struct str subresource; /* the same with "*" for the resource */
    struct str namespace;   /* of the binding that is looked at; empty = a ClusterRoleBinding */
    bool allowed;
};

static bool rule_lists(const struct jval *list, struct str text)
{
    JVAL_EACH (list, item) {
        if (str_eq(jval_str(item), text)) {
            return true;
        }
    }
    return false;
}

static bool rule_covers(const struct jval *list, struct str text)
{
    return rule_lists(list, text) || rule_lists(list, STR("*"));
}

static bool rbac_rule_allows(const struct rbac_query *query, const struct jval *rule)
{
    const struct jval *resources = jval_get(rule, STR("resources"));
    const struct jval *names = jval_get(rule, STR("resourceNames"));
    bool named = jval_kind(names) == JARR && names->n > 0;
    return rule_covers(jval_get(rule, STR("verbs")), query->verb) &&
           rule_covers(jval_get(rule, STR("apiGroups")), query->call->kind->group) &&
           (rule_covers(resources, query->resource) || rule_lists(resources, query->subresource)) &&
           (!named || rule_lists(names, query->call->route.name));
}

static bool rbac_subject_is(const struct rbac_query *query, const struct jval *subject)
{
    struct str kind = jval_str(jval_get(subject, STR("kind")));
    struct str name = jval_str(jval_get(subject, STR("name")));
    struct str namespace = jval_str(jval_get(subject, STR("namespace")));
    if (str_eq(kind, STR("User"))) {
        return str_eq(name, query->user);
    }
    struct str rest;
    struct str own_namespace;
    struct str own_name;
    return str_eq(kind, STR("ServiceAccount")) &&
           str_cut_prefix(query->user, SERVICE_ACCOUNT_PREFIX, &rest) &&
           str_cut(rest, STR(":"), &own_namespace, &own_name) && str_eq(namespace, own_namespace) &&
           str_eq(name, own_name);
}

static void check_binding(void *ctx, const struct jval *binding)
{
    struct rbac_query *query = ctx;
    bool bound = false;
    JVAL_EACH (jval_get(binding, STR("subjects")), subject) {
        bound = bound || rbac_subject_is(query, subject);
    }
    if (!bound || query->allowed) {
        return;
    }
    bool everywhere = str_eq(jval_str(jval_at(binding, "roleRef.kind")), STR("ClusterRole"));
    const struct jval *role = apiserver_find(
        query->call->s, RBAC, everywhere ? STR("clusterroles") : STR("roles"),
        everywhere ? STR("") : query->namespace, jval_str(jval_at(binding, "roleRef.name")));
    JVAL_EACH (jval_get(role, STR("rules")), rule) {
        query->allowed = query->allowed || rbac_rule_allows(query, rule);
    }
}

static bool auth_rbac_allows(struct request_ctx *c, struct str user)
{
    struct str sub = c->route.subresource;
    struct rbac_query query = { .call = c,
                                .user = user,
                                .verb = str_from(auth_verb(c)),
                                .resource = c->kind->plural,
                                .subresource = c->kind->plural };
    if (sub.n > 0) {
        query.resource =
            arena_printf(c->a, STR_FMT "/" STR_FMT, STR_ARG(c->kind->plural), STR_ARG(sub));
        query.subresource = arena_printf(c->a, "*/" STR_FMT, STR_ARG(sub));
    }
    apiserver_each(c->s, RBAC, STR("clusterrolebindings"), STR(""), check_binding, &query);
    query.namespace = c->route.namespace;
    if (query.namespace.n > 0) {
        apiserver_each(c->s, RBAC, STR("rolebindings"), query.namespace, check_binding, &query);
    }
    return query.allowed;
}

/* False: the credentials are unknown. An empty `*ret_user` is the administrator. */
static bool auth_user(struct request_ctx *c, struct str *ret_user)
{
    const struct apiserver_request *request = c->request;
    struct str token;
    *ret_user = request->anonymous ? STR("system:anonymous") : STR("");
    if (request->authorization.n > 0) {
        if (!str_cut_prefix(request->authorization, STR("Bearer "), &token)) {
            return false;
        }
        bool admin = c->s->token.n > 0 && str_eq(token, c->s->token);
        if (!admin && !token_verify(c->s, token, c->a, ret_user)) {
            return false;
        }
    }
    /* Only the administrator may impersonate. */
    if (request->impersonate_user.n > 0 && ret_user->n == 0) {
        *ret_user = request->impersonate_user;
    }
    return true;
}

struct status *auth_check(struct request_ctx *c)
{
    struct str user;
    if (!auth_user(c, &user)) {
        return status_new(c->a, 401, "Unauthorized", STR("Unauthorized"));
    }
    enum url_target target = c->route.target;
    bool open = target == URL_VERSION || target == URL_HEALTH;
    bool discovery = target == URL_API || target == URL_APIS || target == URL_GROUP ||
                     target == URL_RESOURCES || target == URL_OPENAPI;
    bool may = user.n == 0 || open || (discovery && !str_eq(user, STR("system:anonymous"))) ||
               (c->kind != NULL && auth_rbac_allows(c, user));
    return may ? NULL : auth_forbid(c, user);
}
