/*
 * request_options: which options of a request are allowed, as the real server judges them before
 * it looks at the object.
 */
#include "sandbox/apiserver/apiserver_internal.h"

#define FIELD_MANAGER_MAX 128u

static struct status *options_invalid(struct status *list, const char *kind)
{
    struct kind options = { .group = STR("meta.k8s.io"), .kind = str_from(kind) };
    if (list == NULL) {
        return NULL;
    }
    options.group_kind = arena_printf(list->arena, "%s.meta.k8s.io", kind);
    return status_invalid(list, &options, STR(""));
}

static void options_check_dry_run(struct request_ctx *c, const struct tree *values,
                                  struct status **list)
{
    bool known = true;
    TREE_EACH (values, value) {
        known = known && str_eq(tree_text(value), STR("All"));
    }
    if (!known) {
        cause_add(list, c->a, CAUSE_NOT_SUPPORTED, STR("dryRun"),
                  arena_printf(c->a, "Unsupported value: " STR_FMT ": supported values: \"All\"",
                               STR_ARG(tree_json(c->a, values))));
    }
}

/* The parameter as the list that it is in a body. */
static struct tree *options_dry_run(struct request_ctx *c)
{
    struct tree *values = tree_arr(c->a);
    if (c->route.params.dry_run.p != NULL) {
        tree_add(values, tree_str(c->a, c->route.params.dry_run));
    }
    return values;
}

static void options_check_validation(struct request_ctx *c, struct status **list)
{
    static const char *const known[] = { "", "Ignore", "Strict", "Warn" };
    struct str mode = c->route.params.field_validation;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_eq(mode, str_from(known[i]))) {
            return;
        }
    }
    cause_add(list, c->a, CAUSE_NOT_SUPPORTED, STR("fieldValidation"),
              arena_printf(c->a,
                           "Unsupported value: \"" STR_FMT
                           "\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
                           STR_ARG(mode)));
}

struct status *options_check_write(struct request_ctx *c)
{
    static const struct {
        const char *method;
        const char *kind;
    } rows[] = { { "POST", "CreateOptions" },
                 { "PUT", "UpdateOptions" },
                 { "PATCH", "PatchOptions" } };
    struct status *list = NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!str_eq(c->request->method, str_from(rows[i].method))) {
            continue;
        }
        if (c->route.params.field_manager.n > FIELD_MANAGER_MAX) {
            cause_add(
                &list, c->a, CAUSE_TOO_LONG, STR("fieldManager"),
                arena_printf(c->a, "Too long: may not be more than %u bytes", FIELD_MANAGER_MAX));
        }
        options_check_dry_run(c, options_dry_run(c), &list);
        options_check_validation(c, &list);
        return options_invalid(list, rows[i].kind);
    }
    return NULL;
}

struct status *options_check_delete(struct request_ctx *c, const struct tree *body)
{
    struct status *list = NULL;
    const struct url_params *p = &c->route.params;
    struct str policy =
        body != NULL ? tree_text_at(body, "propagationPolicy") : p->propagation_policy;
    bool orphan =
        body != NULL ? tree_get(body, STR("orphanDependents")) != NULL : p->orphan_dependents.n > 0;
    const struct tree *dry_run = tree_get(body, STR("dryRun"));
    if (orphan && policy.n > 0) {
        cause_add(&list, c->a, CAUSE_INVALID, STR("propagationPolicy"),
                  arena_printf(c->a,
                               "Invalid value: \"" STR_FMT
                               "\": orphanDependents and deletionPropagation cannot be both set",
                               STR_ARG(policy)));
    }
    if (policy.n > 0 && !str_eq(policy, STR("Foreground")) && !str_eq(policy, STR("Background")) &&
        !str_eq(policy, STR("Orphan"))) {
        cause_add(&list, c->a, CAUSE_NOT_SUPPORTED, STR("propagationPolicy"),
                  arena_printf(c->a,
                               "Unsupported value: \"" STR_FMT
                               "\": supported values: \"Foreground\", \"Background\", \"Orphan\", "
                               "\"nil\"",
                               STR_ARG(policy)));
    }
    options_check_dry_run(c, dry_run != NULL ? dry_run : options_dry_run(c), &list);
    return options_invalid(list, "DeleteOptions");
}

static void options_forbid(struct request_ctx *c, const char *field, const char *why,
                           struct status **list)
{
    cause_add(list, c->a, CAUSE_FORBIDDEN, str_from(field),
              arena_printf(c->a, "Forbidden: %s", why));
}

static void options_unsupported_match(struct request_ctx *c, const char *supported,
                                      struct status **list)
{
    cause_add(list, c->a, CAUSE_NOT_SUPPORTED, STR("resourceVersionMatch"),
              arena_printf(c->a, "Unsupported value: \"" STR_FMT "\": supported values: %s",
                           STR_ARG(c->route.params.resource_version_match), supported));
}

struct status *options_check_list(struct request_ctx *c)
{
    const struct url_params *p = &c->route.params;
    struct str match = p->resource_version_match;
    struct status *list = NULL;
    bool exact = str_eq(match, STR("Exact"));
    if (match.n > 0 && p->resource_version.n == 0) {
        options_forbid(c, "resourceVersionMatch",
                       "resourceVersionMatch is forbidden unless resourceVersion is provided",
                       &list);
    }
    if (match.n > 0 && p->continue_token.n > 0) {
        options_forbid(c, "resourceVersionMatch",
                       "resourceVersionMatch is forbidden when continue is provided", &list);
    }
    if (match.n > 0 && !exact && !str_eq(match, STR("NotOlderThan"))) {
        options_unsupported_match(c, "\"Exact\", \"NotOlderThan\", \"\"", &list);
    }
    if (exact && str_eq(p->resource_version, STR("0"))) {
        options_forbid(c, "resourceVersionMatch",
                       "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                       &list);
    }
    if (p->send_initial_events.p != NULL) {
        options_forbid(c, "sendInitialEvents", "sendInitialEvents is forbidden for list", &list);
    }
    return options_invalid(list, "ListOptions");
}

struct status *options_check_watch(struct request_ctx *c)
{
    const struct url_params *p = &c->route.params;
    struct str match = p->resource_version_match;
    struct status *list = NULL;
    bool initial = p->send_initial_events.p != NULL;
    bool newer = str_eq(match, STR("NotOlderThan"));
    if (initial && !newer) {
        options_forbid(c, "resourceVersionMatch",
                       "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                       &list);
    }
    if (match.n > 0 && !initial) {
        options_forbid(
            c, "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            &list);
    }
    if (match.n > 0 && !newer) {
        options_unsupported_match(c, "\"NotOlderThan\"", &list);
    }
    if (match.n > 0 && p->continue_token.n > 0) {
        options_forbid(c, "resourceVersionMatch",
                       "resourceVersionMatch is forbidden when continue is provided", &list);
    }
    return options_invalid(list, "ListOptions");
}
