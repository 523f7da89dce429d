/*
 * review: questions that are answered and not stored: may I (SelfSubjectAccessReview), what may I
 * (SelfSubjectRulesReview), who am I (SelfSubjectReview), may they (SubjectAccessReview), and whose
 * is this token (TokenReview).
 */
#include "sandbox/apiserver/apiserver_internal.h"
#include "sandbox/apiserver/auth.h"
#include "sandbox/apiserver/token.h"

#define ADMINISTRATOR "kubernetes-admin" /* as in the client certificate of --tls */

/* A review asks about a resource or about a path. The real server forgets the kind in this answer.
 */
static struct status *review_refuse(struct request_ctx *c, const struct tree *path)
{
    static const struct kind nameless = { .group = STR_INIT("authorization.k8s.io"),
                                          .group_kind = STR_INIT(".authorization.k8s.io") };
    struct status *list = NULL;
    if (path == NULL) {
        cause_add(&list, c->a, CAUSE_INVALID, STR("spec.resourceAttributes"),
                  STR("Invalid value: null: exactly one of nonResourceAttributes or "
                      "resourceAttributes must be specified"));
    } else {
        struct tree *shown = tree_obj(c->a);
        tree_set(c->a, shown, STR("Path"), tree_str(c->a, tree_text_at(path, "path")));
        tree_set(c->a, shown, STR("Verb"), tree_str(c->a, tree_text_at(path, "verb")));
        cause_add(&list, c->a, CAUSE_INVALID, STR("spec.nonResourceAttributes"),
                  arena_printf(c->a,
                               "Invalid value: " STR_FMT
                               ": cannot be specified in combination with resourceAttributes",
                               STR_ARG(tree_json(c->a, shown))));
    }
    return status_invalid(list, &nameless, STR(""));
}

static struct status *review_access(struct request_ctx *c, struct tree *review, struct str user,
                                    const struct tree *groups)
{
    const struct tree *resource = tree_at(review, "spec.resourceAttributes");
    const struct tree *path = tree_at(review, "spec.nonResourceAttributes");
    if ((resource == NULL) == (path == NULL)) {
        return review_refuse(c, path);
    }
    const struct tree *from = resource != NULL ? resource : path;
    struct auth_attributes asked = { .user = user,
                                     .groups = groups,
                                     .verb = tree_text_at(from, "verb"),
                                     .group = tree_text_at(from, "group"),
                                     .resource = tree_text_at(from, "resource"),
                                     .subresource = tree_text_at(from, "subresource"),
                                     .namespace = tree_text_at(from, "namespace"),
                                     .name = tree_text_at(from, "name"),
                                     .path = tree_text_at(from, "path") };
    struct str reason;
    bool allowed = auth_allows(c->s, &asked, c->a, &reason);
    struct tree *status = tree_obj(c->a);
    tree_set(c->a, status, STR("allowed"), tree_bool(c->a, allowed));
    if (reason.n > 0) {
        tree_set(c->a, status, STR("reason"), tree_str(c->a, reason));
    }
    tree_set(c->a, review, STR("status"), status);
    return NULL;
}

static bool review_lists(const struct tree *list, struct str text)
{
    TREE_EACH (list, t) {
        if (str_eq(tree_text(t), text)) {
            return true;
        }
    }
    return false;
}

/* Whether somebody else may; a member of system:masters may everything. */
static struct status *review_others_access(struct request_ctx *c, struct tree *review)
{
    const struct tree *groups = tree_at(review, "spec.groups");
    struct str user = tree_text_at(review, "spec.user");
    if (user.n == 0 && (groups == NULL || groups->n == 0)) {
        struct status *list = NULL;
        static const struct kind nameless = { .group = STR_INIT("authorization.k8s.io"),
                                              .group_kind = STR_INIT(".authorization.k8s.io") };
        cause_add(&list, c->a, CAUSE_INVALID, STR("spec.user"),
                  STR("Invalid value: \"\": at least one of user or group must be specified"));
        return status_invalid(list, &nameless, STR(""));
    }
    if (review_lists(groups, STR("system:masters"))) {
        user = STR("");
    } else if (user.n == 0) {
        user = AUTH_ANONYMOUS; /* nobody by name: the groups alone count */
    }
    return review_access(c, review, user, groups);
}

static void review_add_groups(struct arena *a, struct tree *groups, struct str list)
{
    struct str word;
    while (list.n > 0 && str_split_next(&list, ' ', &word)) {
        tree_add(groups, tree_str(a, word));
    }
}

/* The audiences of the review that the token is for, or NULL for a token that is not good. */
static struct tree *review_token_audiences(struct request_ctx *c, const struct tree *wanted,
                                           struct str token, struct str *ret_user)
{
    bool admin = c->s->token.n > 0 && str_eq(token, c->s->token);
    struct tree *found = tree_arr(c->a);
    struct tree *own = tree_arr(c->a);
    tree_add(own, tree_str(c->a, TOKEN_AUDIENCE));
    if (wanted == NULL || wanted->n == 0) {
        wanted = own;
    }
    TREE_EACH (wanted, t) {
        struct str user = STR("");
        bool good = admin ? str_eq(tree_text(t), TOKEN_AUDIENCE)
                          : token_verify(c->s, token, tree_text(t), c->a, &user);
        if (good) {
            *ret_user = user;
            tree_add(found, tree_str(c->a, tree_text(t)));
        }
    }
    return found->n > 0 ? found : NULL;
}

static struct status *review_token(struct request_ctx *c, struct tree *review)
{
    struct arena *a = c->a;
    struct str token = tree_text_at(review, "spec.token");
    struct str user = STR("");
    if (token.n == 0) {
        return status_bad_request(a, "token is required for TokenReview in authentication");
    }
    struct tree *audiences =
        review_token_audiences(c, tree_at(review, "spec.audiences"), token, &user);
    struct tree *status = tree_obj(a);
    struct tree *who = tree_obj(a);
    tree_set(a, review, STR("status"), status);
    if (audiences == NULL) {
        tree_set(a, status, STR("user"), who);
        tree_set(a, status, STR("error"), tree_str(a, STR("invalid bearer token")));
        return NULL;
    }
    struct tree *groups = tree_arr(a);
    review_add_groups(
        a, groups, user.n == 0 ? STR("system:masters system:authenticated") : auth_groups(a, user));
    tree_set(a, who, STR("username"), tree_str(a, user.n == 0 ? STR(ADMINISTRATOR) : user));
    tree_set(a, who, STR("groups"), groups);
    tree_set(a, status, STR("authenticated"), tree_bool(a, true));
    tree_set(a, status, STR("user"), who);
    tree_set(a, status, STR("audiences"), audiences);
    return NULL;
}

static struct tree *review_text_list(struct arena *a, const struct jval *texts)
{
    struct tree *list = tree_arr(a);
    JVAL_EACH (texts, text) {
        tree_add(list, tree_str(a, jval_str(text)));
    }
    return list;
}

struct review_rules {
    struct arena *a;
    struct tree *resources;
    struct tree *paths;
};

static void review_add_rule(void *ctx, const struct jval *rule)
{
    struct review_rules *rules = ctx;
    static const char *const members[] = { "verbs", "apiGroups", "resources", "resourceNames",
                                           "nonResourceURLs" };
    bool paths = jval_get(rule, STR("nonResourceURLs")) != NULL;
    struct tree *shown = tree_obj(rules->a);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct jval *texts = jval_get(rule, str_from(members[i]));
        if (texts != NULL) {
            tree_set(rules->a, shown, str_from(members[i]), review_text_list(rules->a, texts));
        }
    }
    tree_add(paths ? rules->paths : rules->resources, shown);
}

/* What everybody whom the server knows may do, and what the administrator may. */
#define RULES_OF_ALL                                                                               \
    "{\"verbs\":[\"create\"],\"apiGroups\":[\"authorization.k8s.io\"],"                            \
    "\"resources\":[\"selfsubjectaccessreviews\",\"selfsubjectrulesreviews\"]},"                   \
    "{\"verbs\":[\"create\"],\"apiGroups\":[\"authentication.k8s.io\"],"                           \
    "\"resources\":[\"selfsubjectreviews\"]},"                                                     \
    "{\"verbs\":[\"get\"],\"nonResourceURLs\":[\"/api\",\"/api/*\",\"/apis\",\"/apis/*\","         \
    "\"/healthz\",\"/livez\",\"/openapi\",\"/openapi/*\",\"/readyz\",\"/version\",\"/version/\"]}"
#define RULES_OF_ADMINISTRATOR                                                                     \
    ",{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]},"                            \
    "{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}"

static void review_add_rules(struct review_rules *rules, const char *text)
{
    const struct jval *list;
    struct err err = { 0 };
    int r = json_parse(str_from(text), 0, rules->a, &list, &err);
    ASSERT(r == 0); /* the texts are ours */
    JVAL_EACH (list, rule) {
        review_add_rule(rules, rule);
    }
}

static struct status *review_rules(struct request_ctx *c, struct tree *review, struct str user)
{
    struct str namespace = tree_text_at(review, "spec.namespace");
    if (namespace.n == 0) {
        return status_bad_request(c->a, "no namespace on request");
    }
    struct review_rules rules = { .a = c->a, .resources = tree_arr(c->a), .paths = tree_arr(c->a) };
    review_add_rules(&rules, user.n == 0 ? "[" RULES_OF_ALL RULES_OF_ADMINISTRATOR "]"
                                         : "[" RULES_OF_ALL "]");
    struct auth_attributes asked = { .user = user, .namespace = namespace };
    auth_each_rule(c->s, &asked, review_add_rule, &rules);
    struct tree *status = tree_obj(c->a);
    tree_set(c->a, status, STR("resourceRules"), rules.resources);
    tree_set(c->a, status, STR("nonResourceRules"), rules.paths);
    tree_set(c->a, status, STR("incomplete"), tree_bool(c->a, false));
    tree_set(c->a, review, STR("spec"), tree_obj(c->a)); /* the real server does not repeat it */
    tree_set(c->a, review, STR("status"), status);
    return NULL;
}

static void review_self(struct request_ctx *c, struct tree *review, struct str user)
{
    struct tree *groups = tree_arr(c->a);
    review_add_groups(c->a, groups,
                      user.n == 0 ? STR("system:masters system:authenticated")
                                  : auth_groups(c->a, user));
    tree_set_at(c->a, review, "status.userInfo.username",
                tree_str(c->a, user.n == 0 ? STR(ADMINISTRATOR) : user));
    tree_set_at(c->a, review, "status.userInfo.groups", groups);
}

struct status *verb_review(struct request_ctx *c)
{
    struct tree *review;
    struct str user;
    bool known = auth_user(c, &user);
    struct status *status = decode_request_body(c, &review);
    ASSERT(known); /* nobody else comes so far */
    if (status == NULL) {
        status = decode_object(c, review);
    }
    if (status != NULL) {
        return status;
    }
    struct tree *metadata = tree_obj(c->a);
    tree_set(c->a, review, STR("metadata"), metadata);
    if (str_eq(c->kind->kind, STR("SelfSubjectAccessReview"))) {
        status = review_access(c, review, user, NULL);
    } else if (str_eq(c->kind->kind, STR("SubjectAccessReview"))) {
        status = review_others_access(c, review);
    } else if (str_eq(c->kind->kind, STR("TokenReview"))) {
        status = review_token(c, review);
    } else if (str_eq(c->kind->kind, STR("SelfSubjectRulesReview"))) {
        status = review_rules(c, review, user);
    } else {
        tree_set(c->a, metadata, STR("creationTimestamp"),
                 tree_str(c->a, apiserver_time(c->s, c->a)));
        review_self(c, review, user);
    }
    if (status == NULL) {
        reply_unstored(c, 201, review);
    }
    return status;
}
