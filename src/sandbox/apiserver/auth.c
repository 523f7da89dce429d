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
    struct apiserver *s;
    const struct auth_attributes *asked;
    struct str resource;      /* "pods/eviction" */
    struct str any_resource;  /* the same with any resource: "*" and "/eviction" */
    struct str namespace;     /* of the binding that is looked at; empty = a ClusterRoleBinding */
    const struct jval *found; /* the first binding that allows it */
    struct str subject;       /* whom it names, as reasons write it */
    auth_visit visit;         /* not NULL: every rule is shown instead */
    void *visit_ctx;
    struct arena *a;
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

/* "/healthz", or "/healthz*" for everything that begins so. */
static bool rule_covers_path(const struct jval *list, struct str path)
{
    JVAL_EACH (list, item) {
        struct str prefix;
        bool all = str_cut_suffix(jval_str(item), STR("*"), &prefix);
        if (str_eq(prefix, path) || (all && str_starts(path, prefix))) {
            return true;
        }
    }
    return false;
}

static bool rbac_rule_allows(const struct rbac_query *query, const struct jval *rule)
{
    const struct jval *resources = jval_get(rule, STR("resources"));
    const struct jval *names = jval_get(rule, STR("resourceNames"));
    bool named = jval_kind(names) == JARR && names->n > 0;
    const struct auth_attributes *asked = query->asked;
    if (asked->path.n > 0) {
        return rule_covers(jval_get(rule, STR("verbs")), asked->verb) &&
               rule_covers_path(jval_get(rule, STR("nonResourceURLs")), asked->path);
    }
    return rule_covers(jval_get(rule, STR("verbs")), asked->verb) &&
           rule_covers(jval_get(rule, STR("apiGroups")), asked->group) &&
           (rule_covers(resources, query->resource) ||
            rule_lists(resources, query->any_resource)) &&
           (!named || rule_lists(names, asked->name));
}

struct str auth_groups(struct arena *a, struct str user)
{
    struct str rest;
    struct str namespace;
    struct str name;
    if (str_eq(user, AUTH_ANONYMOUS)) {
        return STR("system:unauthenticated");
    }
    if (!str_cut_prefix(user, SERVICE_ACCOUNT_PREFIX, &rest) ||
        !str_cut(rest, STR(":"), &namespace, &name)) {
        return STR("system:authenticated");
    }
    return arena_printf(
        a, "system:serviceaccounts system:serviceaccounts:" STR_FMT " system:authenticated",
        STR_ARG(namespace));
}

static bool rbac_in_group(const struct rbac_query *query, struct str group)
{
    TREE_EACH (query->asked->groups, t) {
        if (str_eq(tree_text(t), group)) {
            return true;
        }
    }
    struct str list = auth_groups(query->a, query->asked->user);
    struct str word;
    while (list.n > 0 && str_split_next(&list, ' ', &word)) {
        if (str_eq(word, group)) {
            return true;
        }
    }
    return false;
}

static bool rbac_subject_is(const struct rbac_query *query, const struct jval *subject)
{
    struct str kind = jval_str(jval_get(subject, STR("kind")));
    struct str name = jval_str(jval_get(subject, STR("name")));
    struct str namespace = jval_str(jval_get(subject, STR("namespace")));
    struct str user = query->asked->user;
    if (str_eq(kind, STR("User"))) {
        return str_eq(name, user);
    }
    if (str_eq(kind, STR("Group"))) {
        return rbac_in_group(query, name);
    }
    struct str rest;
    struct str own_namespace;
    struct str own_name;
    return str_eq(kind, STR("ServiceAccount")) &&
           str_cut_prefix(user, SERVICE_ACCOUNT_PREFIX, &rest) &&
           str_cut(rest, STR(":"), &own_namespace, &own_name) && str_eq(namespace, own_namespace) &&
           str_eq(name, own_name);
}

/* A subject as the real server's reasons write it. */
static struct str rbac_subject_text(struct arena *a, const struct jval *subject)
{
    struct str kind = jval_str(jval_get(subject, STR("kind")));
    struct str namespace = jval_str(jval_get(subject, STR("namespace")));
    return arena_printf(a, STR_FMT " \"" STR_FMT "%s" STR_FMT "\"", STR_ARG(kind),
                        STR_ARG(jval_str(jval_get(subject, STR("name")))),
                        namespace.n > 0 ? "/" : "", STR_ARG(namespace));
}

static void check_binding(void *ctx, const struct jval *binding)
{
    struct rbac_query *query = ctx;
    const struct jval *bound = NULL;
    JVAL_EACH (jval_get(binding, STR("subjects")), subject) {
        bound = bound == NULL && rbac_subject_is(query, subject) ? subject : bound;
    }
    if (bound == NULL || query->found != NULL) {
        return;
    }
    bool everywhere = str_eq(jval_str(jval_at(binding, "roleRef.kind")), STR("ClusterRole"));
    const struct jval *role = apiserver_find(
        query->s, RBAC, everywhere ? STR("clusterroles") : STR("roles"),
        everywhere ? STR("") : query->namespace, jval_str(jval_at(binding, "roleRef.name")));
    JVAL_EACH (jval_get(role, STR("rules")), rule) {
        if (query->visit != NULL) {
            query->visit(query->visit_ctx, rule);
        } else if (query->found == NULL && rbac_rule_allows(query, rule)) {
            query->found = binding;
            query->subject = rbac_subject_text(query->a, bound);
        }
    }
}

static void rbac_run(struct rbac_query *query)
{
    apiserver_each(query->s, RBAC, STR("clusterrolebindings"), STR(""), check_binding, query);
    query->namespace = query->asked->namespace;
    if (query->namespace.n > 0) {
        apiserver_each(query->s, RBAC, STR("rolebindings"), query->namespace, check_binding, query);
    }
}

void auth_each_rule(struct apiserver *s, const struct auth_attributes *asked, auth_visit visit,
                    void *ctx)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct rbac_query query = {
        .s = s, .asked = asked, .visit = visit, .visit_ctx = ctx, .a = &tmp
    };
    rbac_run(&query);
}

/* What a real server lets everybody read who is known to it, and what really everybody, by the
 * roles that it makes at its start. The first one covers more than discovery: all of /api. */
static const char *auth_default_role(const struct auth_attributes *asked)
{
    static const struct str discovery[] = { STR_INIT("/api"), STR_INIT("/apis"),
                                            STR_INIT("/openapi") };
    static const struct str open[] = { STR_INIT("/healthz"), STR_INIT("/livez"),
                                       STR_INIT("/readyz"), STR_INIT("/version"),
                                       STR_INIT("/version/") };
    if (!str_eq(asked->verb, STR("get"))) {
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(open); i++) {
        if (str_eq(asked->path, open[i])) {
            return "system:public-info-viewer";
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(discovery); i++) {
        struct str rest;
        if (!str_eq(asked->user, AUTH_ANONYMOUS) &&
            str_cut_prefix(asked->path, discovery[i], &rest) && (rest.n == 0 || rest.p[0] == '/')) {
            return "system:discovery";
        }
    }
    return NULL;
}

bool auth_allows(struct apiserver *s, const struct auth_attributes *asked, struct arena *a,
                 struct str *ret_reason)
{
    struct rbac_query query = { .s = s, .asked = asked, .resource = asked->resource, .a = a };
    query.any_resource = asked->resource;
    *ret_reason = STR("");
    if (asked->user.n == 0) {
        return true;
    }
    const char *role = auth_default_role(asked);
    if (role != NULL) {
        *ret_reason = arena_printf(
            a,
            "RBAC: allowed by ClusterRoleBinding \"%s\" of ClusterRole \"%s\" to Group "
            "\"system:%s\"",
            role, role, str_eq(asked->user, AUTH_ANONYMOUS) ? "unauthenticated" : "authenticated");
        return true;
    }
    if (asked->subresource.n > 0) {
        query.resource = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(asked->resource),
                                      STR_ARG(asked->subresource));
        query.any_resource = arena_printf(a, "*/" STR_FMT, STR_ARG(asked->subresource));
    }
    rbac_run(&query);
    if (query.found == NULL) {
        return false;
    }
    struct str namespace = jval_str(jval_at(query.found, "metadata.namespace"));
    *ret_reason = arena_printf(
        a,
        "RBAC: allowed by %s \"" STR_FMT "%s" STR_FMT "\" of " STR_FMT " \"" STR_FMT
        "\" to " STR_FMT,
        namespace.n > 0 ? "RoleBinding" : "ClusterRoleBinding",
        STR_ARG(jval_str(jval_at(query.found, "metadata.name"))), namespace.n > 0 ? "/" : "",
        STR_ARG(namespace), STR_ARG(jval_str(jval_at(query.found, "roleRef.kind"))),
        STR_ARG(jval_str(jval_at(query.found, "roleRef.name"))), STR_ARG(query.subject));
    return true;
}

static bool auth_rbac_allows(struct request_ctx *c, struct str user)
{
    struct str reason;
    struct auth_attributes asked = { .user = user,
                                     .verb = str_from(auth_verb(c)),
                                     .group = c->kind->group,
                                     .resource = c->kind->plural,
                                     .subresource = c->route.subresource,
                                     .namespace = c->route.namespace,
                                     .name = c->route.name };
    /* Everybody whom the server knows may ask about themselves. */
    bool about_self = kind_is(c->kind, KIND_REVIEW) && str_starts(c->kind->plural, STR("self")) &&
                      !str_eq(user, AUTH_ANONYMOUS);
    return about_self || auth_allows(c->s, &asked, c->a, &reason);
}

bool auth_user(struct request_ctx *c, struct str *ret_user)
{
    const struct apiserver_request *request = c->request;
    struct str token;
    *ret_user = request->anonymous ? AUTH_ANONYMOUS : STR("");
    if (request->authorization.n > 0) {
        if (!str_cut_prefix(request->authorization, STR("Bearer "), &token)) {
            return false;
        }
        bool admin = c->s->token.n > 0 && str_eq(token, c->s->token);
        if (!admin && !token_verify(c->s, token, TOKEN_AUDIENCE, c->a, ret_user)) {
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
    bool may = user.n == 0 || open || (discovery && !str_eq(user, AUTH_ANONYMOUS)) ||
               (c->kind != NULL && auth_rbac_allows(c, user));
    return may ? NULL : auth_forbid(c, user);
}
