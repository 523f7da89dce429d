#include "sandbox/apiserver/builtin_validate.h"

#include "format/label_syntax.h"

static void cause_add_invalid(struct status **list, struct arena *a, const char *field,
                              struct str value, const struct buf *why)
{
    cause_add(list, a, CAUSE_INVALID, str_from(field),
              arena_printf(a, "Invalid value: \"" STR_FMT "\": " STR_FMT, STR_ARG(value),
                           STR_ARG(buf_str(why))));
}

static void validate_name(struct status **list, const struct tree *obj, struct arena *a)
{
    struct str name = tree_text_at(obj, "metadata.name");
    CLEANUP(buf_done)
    struct buf why = { 0 };
    if (name.n == 0) {
        cause_add(list, a, CAUSE_REQUIRED, STR("metadata.name"),
                  STR("Required value: name or generateName is required"));
    } else if (!label_subdomain_check(name, &why)) {
        cause_add_invalid(list, a, "metadata.name", name, &why);
    }
}

static void validate_labels(struct status **list, const struct tree *obj, struct arena *a)
{
    TREE_EACH (tree_at(obj, "metadata.labels"), label) {
        CLEANUP(buf_done)
        struct buf why = { 0 };
        if (!label_key_check(label->key, &why)) {
            cause_add_invalid(list, a, "metadata.labels", label->key, &why);
        }
        buf_reset(&why);
        if (!label_value_check(tree_text(label), &why)) {
            cause_add_invalid(list, a, "metadata.labels", tree_text(label), &why);
        }
    }
    TREE_EACH (tree_at(obj, "metadata.annotations"), annotation) {
        CLEANUP(buf_done)
        struct buf why = { 0 };
        if (!label_key_check(annotation->key, &why)) {
            cause_add_invalid(list, a, "metadata.annotations", annotation->key, &why);
        }
    }
}

static void validate_required(struct status **list, const struct tree *obj, const char *member,
                              struct arena *a)
{
    if (tree_text_at(obj, member).n == 0) {
        cause_add(list, a, CAUSE_REQUIRED, str_from(member), STR("Required value"));
    }
}

/* Rules of events written through events.k8s.io. Fields are read under their stored (core) names,
 * messages use the names of events.k8s.io. */
static void validate_event(struct status **list, const struct kind *kind, const struct tree *obj,
                           struct arena *a)
{
    if (!kind_is(kind, KIND_EVENTS_V1)) {
        return;
    }
    if (tree_text_at(obj, "eventTime").n == 0) {
        cause_add(list, a, CAUSE_REQUIRED, STR("eventTime"), STR("Required value"));
    } else {
        if (tree_text_at(obj, "reportingComponent").n == 0) {
            cause_add(list, a, CAUSE_REQUIRED, STR("reportingController"), STR("Required value"));
        }
        validate_required(list, obj, "reportingInstance", a);
        validate_required(list, obj, "action", a);
        validate_required(list, obj, "reason", a);
    }
    struct str type = tree_text_at(obj, "type");
    if (!str_eq(type, STR("Normal")) && !str_eq(type, STR("Warning"))) {
        cause_add(
            list, a, CAUSE_INVALID, STR("type"),
            arena_printf(a, "Invalid value: \"\": has invalid value: " STR_FMT, STR_ARG(type)));
    }
    if (tree_text_at(obj, "message").n > 1024) {
        cause_add(list, a, CAUSE_INVALID, STR("message"),
                  STR("Invalid value: \"\": can have at most 1024 characters"));
    }
}

static void validate_pod(struct status **list, const struct tree *obj, struct arena *a)
{
    const struct tree *containers = tree_at(obj, "spec.containers");
    if (tree_first(containers) == NULL) {
        cause_add(list, a, CAUSE_REQUIRED, STR("spec.containers"), STR("Required value"));
    }
    uint32_t i = 0;
    TREE_EACH (containers, container) {
        if (tree_text_at(container, "name").n == 0) {
            cause_add(list, a, CAUSE_REQUIRED, arena_printf(a, "spec.containers[%u].name", i),
                      STR("Required value"));
        }
        i++;
    }
}

static void validate_taints(struct status **list, const struct tree *obj, struct arena *a)
{
    uint32_t i = 0;
    TREE_EACH (tree_at(obj, "spec.taints"), taint) {
        struct str effect = tree_text_at(taint, "effect");
        struct str field = arena_printf(a, "metadata.taints[%u].effect", i++);
        if (effect.n == 0) {
            cause_add(list, a, CAUSE_REQUIRED, field, STR("Required value"));
        } else if (!str_eq(effect, STR("NoSchedule")) && !str_eq(effect, STR("NoExecute")) &&
                   !str_eq(effect, STR("PreferNoSchedule"))) {
            cause_add(list, a, CAUSE_NOT_SUPPORTED, field,
                      arena_printf(a,
                                   "Unsupported value: \"" STR_FMT
                                   "\": supported values: \"NoSchedule\", \"PreferNoSchedule\", "
                                   "\"NoExecute\"",
                                   STR_ARG(effect)));
        }
    }
}

/* The selector must match the labels of the pod template. */
static void validate_workload(struct status **list, const struct tree *obj, struct arena *a)
{
    const struct tree *selector = tree_at(obj, "spec.selector.matchLabels");
    const struct tree *labels = tree_at(obj, "spec.template.metadata.labels");
    if (tree_at(obj, "spec.selector") == NULL) {
        cause_add(list, a, CAUSE_REQUIRED, STR("spec.selector"), STR("Required value"));
        return;
    }
    TREE_EACH (selector, want) {
        if (!str_eq(tree_text(tree_get(labels, want->key)), tree_text(want))) {
            cause_add(list, a, CAUSE_INVALID, STR("spec.template.metadata.labels"),
                      arena_printf(a,
                                   "Invalid value: " STR_FMT
                                   ": `selector` does not match template `labels`",
                                   STR_ARG(labels == NULL ? STR("null") : tree_json(a, labels))));
            return;
        }
    }
}

static bool kind_is_workload(const struct kind *kind)
{
    return str_eq(kind->group, STR("apps"));
}

static void validate_crd(struct status **list, const struct tree *obj, struct arena *a)
{
    struct str name = tree_text_at(obj, "metadata.name");
    struct str want =
        arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(tree_text_at(obj, "spec.names.plural")),
                     STR_ARG(tree_text_at(obj, "spec.group")));
    if (!str_eq(name, want)) {
        cause_add(list, a, CAUSE_INVALID, STR("metadata.name"),
                  arena_printf(a,
                               "Invalid value: \"" STR_FMT
                               "\": must be spec.names.plural+\".\"+spec.group",
                               STR_ARG(name)));
    }
    if (tree_text_at(obj, "spec.names.kind").n == 0) {
        cause_add(list, a, CAUSE_REQUIRED, STR("spec.names.kind"), STR("Required value"));
    }
    struct str scope = tree_text_at(obj, "spec.scope");
    if (!str_eq(scope, STR("Cluster")) && !str_eq(scope, STR("Namespaced"))) {
        cause_add(list, a, CAUSE_NOT_SUPPORTED, STR("spec.scope"),
                  arena_printf(a,
                               "Unsupported value: \"" STR_FMT
                               "\": supported values: \"Cluster\", \"Namespaced\"",
                               STR_ARG(scope)));
    }
    uint32_t stored = 0;
    TREE_EACH (tree_at(obj, "spec.versions"), version) {
        stored += tree_truth(tree_get(version, STR("storage")), false);
    }
    if (stored != 1) {
        cause_add(list, a, CAUSE_INVALID, STR("spec.versions"),
                  STR("Invalid value: must have exactly one version marked as storage version"));
    }
}

static bool kind_holds_data(const struct kind *kind)
{
    return str_eq(kind->kind, STR("ConfigMap")) || str_eq(kind->kind, STR("Secret"));
}

#define DATA_KEY_MAX 253u
#define DATA_BYTES_MAX ((size_t)1024 * 1024) /* of all values of a ConfigMap or Secret */
#define PRIORITY_MAX 1000000000

static bool data_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/* What is wrong with a key; empty when it may be a file's name. */
static struct str data_key_problem(struct arena *a, struct str key)
{
    bool plain = key.n > 0;
    for (size_t i = 0; i < key.n; i++) {
        plain = plain && data_key_char(key.p[i]);
    }
    if (key.n > DATA_KEY_MAX) {
        return arena_printf(a, "must be no more than %u characters", DATA_KEY_MAX);
    }
    if (!plain) {
        return STR("a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
                   "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                   "'[-._a-zA-Z0-9]+')");
    }
    if (str_eq(key, STR(".")) || str_eq(key, STR(".."))) {
        return arena_printf(a, "must not be '" STR_FMT "'", STR_ARG(key));
    }
    return str_starts(key, STR("..")) ? STR("must not start with '..'") : STR("");
}

/* ConfigMaps and Secrets: their keys become names of files. */
static void validate_data(struct status **list, const struct tree *obj, struct arena *a)
{
    static const char *const members[] = { "data", "binaryData" };
    size_t bytes = 0;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        TREE_EACH (tree_get(obj, str_from(members[i])), entry) {
            struct str field = arena_printf(a, "%s[" STR_FMT "]", members[i], STR_ARG(entry->key));
            struct str why = data_key_problem(a, entry->key);
            if (why.n == 0 && i == 0 && tree_get(tree_get(obj, STR("binaryData")), entry->key)) {
                why = STR("duplicate of key present in binaryData");
            }
            if (why.n > 0) {
                cause_add(list, a, CAUSE_INVALID, field,
                          arena_printf(a, "Invalid value: \"" STR_FMT "\": " STR_FMT,
                                       STR_ARG(entry->key), STR_ARG(why)));
            }
            bool base64 = i == 1 || str_eq(tree_text_at(obj, "kind"), STR("Secret"));
            bytes += base64 ? tree_text(entry).n / 4 * 3 : tree_text(entry).n;
        }
    }
    if (bytes > DATA_BYTES_MAX) {
        bool secret = str_eq(tree_text_at(obj, "kind"), STR("Secret"));
        cause_add(list, a, CAUSE_TOO_LONG, secret ? STR("data") : STR("[]"),
                  arena_printf(a, "Too long: may not be more than %zu bytes", DATA_BYTES_MAX));
    }
}

/* What is marked as immutable stays as it is, the mark included. */
static void validate_data_update(struct status **list, const struct tree *old,
                                 const struct tree *obj, struct arena *a)
{
    static const char *const members[] = { "data", "binaryData" };
    const char *why = "Forbidden: field is immutable when `immutable` is set";
    if (!tree_truth(tree_get(old, STR("immutable")), false)) {
        return;
    }
    if (!tree_truth(tree_get(obj, STR("immutable")), false)) {
        cause_add(list, a, CAUSE_FORBIDDEN, STR("immutable"), str_from(why));
    }
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct tree *before = tree_get(old, str_from(members[i]));
        const struct tree *after = tree_get(obj, str_from(members[i]));
        bool same = before == NULL || after == NULL ? before == after : tree_eq(before, after);
        if (!same) {
            cause_add(list, a, CAUSE_FORBIDDEN, str_from(members[i]), str_from(why));
        }
    }
}

static void validate_priority_class(struct status **list, const struct tree *obj, struct arena *a)
{
    int64_t value = 0;
    (void)tree_number(tree_get(obj, STR("value")), &value); /* else 0 */
    if (value > PRIORITY_MAX) {
        cause_add(list, a, CAUSE_FORBIDDEN, STR("value"),
                  arena_printf(a,
                               "Forbidden: maximum allowed value of a user defined priority is %d",
                               PRIORITY_MAX));
    }
}

static bool kind_is_rbac(const struct kind *kind)
{
    return str_eq(kind->group, STR("rbac.authorization.k8s.io"));
}

static bool kind_is_role_binding(const struct kind *kind)
{
    return kind_is_rbac(kind) && str_ends(kind->kind, STR("Binding"));
}

static void validate_role_binding(struct status **list, const struct tree *obj, struct arena *a)
{
    if (tree_text_at(obj, "roleRef.name").n == 0) {
        cause_add(list, a, CAUSE_REQUIRED, STR("roleRef.name"), STR("Required value"));
    }
    uint32_t i = 0;
    TREE_EACH (tree_get(obj, STR("subjects")), subject) {
        if (tree_text_at(subject, "namespace").n == 0 &&
            str_eq(tree_text_at(subject, "kind"), STR("ServiceAccount"))) {
            cause_add(list, a, CAUSE_REQUIRED, arena_printf(a, "subjects[%u].namespace", i),
                      STR("Required value"));
        }
        i++;
    }
}

static void validate_role(struct status **list, const struct tree *obj, struct arena *a)
{
    uint32_t i = 0;
    TREE_EACH (tree_get(obj, STR("rules")), rule) {
        const struct tree *verbs = tree_get(rule, STR("verbs"));
        if (verbs == NULL || verbs->n == 0) {
            cause_add(list, a, CAUSE_REQUIRED, arena_printf(a, "rules[%u].verbs", i),
                      STR("Required value: verbs must contain at least one value"));
        }
        i++;
    }
}

/* The role of a binding cannot change: who may edit a binding could otherwise grant any role. */
static void validate_role_binding_update(struct status **list, const struct tree *old,
                                         const struct tree *obj, struct arena *a)
{
    if (tree_eq(tree_get(old, STR("roleRef")), tree_get(obj, STR("roleRef")))) {
        return;
    }
    struct str group = tree_text_at(obj, "roleRef.apiGroup");
    struct str kind = tree_text_at(obj, "roleRef.kind");
    struct str name = tree_text_at(obj, "roleRef.name");
    cause_add(list, a, CAUSE_INVALID, STR("roleRef"),
              arena_printf(a,
                           "Invalid value: {\"APIGroup\":\"" STR_FMT "\",\"Kind\":\"" STR_FMT
                           "\",\"Name\":\"" STR_FMT "\"}: cannot change roleRef",
                           STR_ARG(group), STR_ARG(kind), STR_ARG(name)));
}

static void validate_kind(struct status **list, const struct kind *kind, const struct tree *obj,
                          struct arena *a)
{
    if (kind_is(kind, KIND_CUSTOM)) {
        return;
    }
    if (str_eq(kind->kind, STR("Event"))) {
        validate_event(list, kind, obj, a);
    } else if (str_eq(kind->kind, STR("Pod"))) {
        validate_pod(list, obj, a);
    } else if (str_eq(kind->kind, STR("Node"))) {
        validate_taints(list, obj, a);
    } else if (kind_is_workload(kind)) {
        validate_workload(list, obj, a);
    } else if (str_eq(kind->kind, STR("CustomResourceDefinition"))) {
        validate_crd(list, obj, a);
    } else if (kind_holds_data(kind)) {
        validate_data(list, obj, a);
    } else if (str_eq(kind->kind, STR("PriorityClass"))) {
        validate_priority_class(list, obj, a);
    } else if (kind_is_role_binding(kind)) {
        validate_role_binding(list, obj, a);
    } else if (kind_is_rbac(kind)) {
        validate_role(list, obj, a);
    }
}

void builtin_validate_create(struct status **list, const struct kind *kind, const struct tree *obj,
                             struct arena *a)
{
    if (!kind_is_rbac(kind)) { /* their names may be any path segment: "system:node" */
        validate_name(list, obj, a);
    }
    validate_labels(list, obj, a);
    validate_kind(list, kind, obj, a);
}

static struct str validate_value(const struct tree *t, struct arena *a)
{
    return t == NULL ? STR("null") : tree_json(a, t);
}

/* The real server runs these twice, so the causes stand twice and the message once. */
static void validate_immutable(struct status **list, const struct tree *old, const struct tree *obj,
                               const char *member, struct arena *a)
{
    const struct tree *before = tree_at(old, member);
    const struct tree *after = tree_at(obj, member);
    bool same = before == NULL ? after == NULL : after != NULL && tree_eq(before, after);
    for (int i = 0; i < 2 && !same; i++) {
        cause_add(list, a, CAUSE_INVALID, str_from(member),
                  arena_printf(a, "Invalid value: " STR_FMT ": field is immutable",
                               STR_ARG(validate_value(after, a))));
    }
}

static bool validate_list_has(const struct tree *list, struct str text)
{
    TREE_EACH (list, item) {
        if (str_eq(tree_text(item), text)) {
            return true;
        }
    }
    return false;
}

static void validate_finalizers(struct status **list, const struct tree *old,
                                const struct tree *obj, struct arena *a)
{
    if (tree_at(old, "metadata.deletionTimestamp") == NULL) {
        return;
    }
    CLEANUP(buf_done)
    struct buf added = { 0 };
    TREE_EACH (tree_at(obj, "metadata.finalizers"), finalizer) {
        if (!validate_list_has(tree_at(old, "metadata.finalizers"), tree_text(finalizer))) {
            buf_printf(&added, "%s\"" STR_FMT "\"", added.n > 0 ? ", " : "",
                       STR_ARG(tree_text(finalizer)));
        }
    }
    for (int i = 0; i < 2 && added.n > 0; i++) {
        cause_add(list, a, CAUSE_FORBIDDEN, STR("metadata.finalizers"),
                  arena_printf(a,
                               "Forbidden: no new finalizers can be added if the object is "
                               "being deleted, found new finalizers []string{" STR_FMT "}",
                               STR_ARG(buf_str(&added))));
    }
}

/* A pod's spec cannot change, except for images, deadlines and added tolerations. */
static void validate_pod_update(struct status **list, const struct tree *old,
                                const struct tree *obj, struct arena *a)
{
    struct tree *before = tree_clone(a, tree_get(old, STR("spec")));
    struct tree *after = tree_clone(a, tree_get(obj, STR("spec")));
    static const char *const free_members[] = { "activeDeadlineSeconds", "tolerations",
                                                "terminationGracePeriodSeconds",
                                                "schedulingGates" };
    struct tree *specs[] = { before, after };
    for (size_t s = 0; s < ARRAY_LEN(specs); s++) {
        for (size_t i = 0; i < ARRAY_LEN(free_members); i++) {
            (void)tree_del(specs[s], str_from(free_members[i]));
        }
        TREE_EACH (tree_get(specs[s], STR("containers")), container) {
            (void)tree_del(container, STR("image"));
        }
    }
    if (!tree_eq(before, after)) {
        cause_add(list, a, CAUSE_FORBIDDEN, STR("spec"),
                  STR("Forbidden: pod updates may not change fields other than "
                      "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                      "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
                      "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
                      "be set to 1 if it was previously negative)"));
    }
}

void builtin_validate_update(struct status **list, const struct kind *kind, const struct tree *old,
                             const struct tree *obj, struct arena *a)
{
    validate_immutable(list, old, obj, "metadata.uid", a);
    validate_finalizers(list, old, obj, a);
    validate_labels(list, obj, a);
    validate_kind(list, kind, obj, a);
    if (kind_is(kind, KIND_CUSTOM)) {
        return;
    }
    if (kind_is(kind, KIND_EVENTS_V1)) {
        static const char *const fixed[] = { "action", "reason", "type", "eventTime",
                                             "reportingInstance" };
        for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
            validate_immutable(list, old, obj, fixed[i], a);
        }
    } else if (str_eq(kind->kind, STR("Pod"))) {
        validate_pod_update(list, old, obj, a);
    } else if (kind_is_workload(kind)) {
        validate_immutable(list, old, obj, "spec.selector", a);
    } else if (kind_holds_data(kind)) {
        validate_data_update(list, old, obj, a);
    } else if (kind_is_role_binding(kind)) {
        validate_role_binding_update(list, old, obj, a);
    }
}
