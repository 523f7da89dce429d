#include "sandbox/apiserver/kind.h"

#include "base/alloc.h"
#include "sandbox/apiserver/builtin_types.h"

#define NS KIND_NAMESPACED
#define GEN KIND_GENERATION

struct kind_row {
    const char *group;
    const char *version;
    const char *plural;
    const char *singular;
    const char *kind;
    const char *short_names; /* separated by commas */
    const char *categories;
    unsigned flags;
    unsigned subresources;
    const char *storage_hash; /* of group/version/Kind as the real server hashes it */
};

static const struct kind_row kind_table[] = {
    { "", "v1", "namespaces", "namespace", "Namespace", "ns", "", KIND_NO_DELETECOLLECTION,
      SUBRESOURCE_STATUS | SUBRESOURCE_FINALIZE, "Q3oi5N2YM8M=" },
    { "", "v1", "nodes", "node", "Node", "no", "", KIND_NO_STATUS_WIPE, SUBRESOURCE_STATUS,
      "XwShjMxG9Fs=" },
    { "", "v1", "pods", "pod", "Pod", "po", "all", NS | GEN,
      SUBRESOURCE_STATUS | SUBRESOURCE_EVICTION | SUBRESOURCE_BINDING | SUBRESOURCE_LOG,
      "xPOwRZ+Yhw8=" },
    { "", "v1", "events", "event", "Event", "ev", "", NS, 0, "r2yiGXH7wu8=" },
    { "", "v1", "configmaps", "configmap", "ConfigMap", "cm", "", NS, 0, "qFsyl6wFWjQ=" },
    { "", "v1", "secrets", "secret", "Secret", "", "", NS, 0, "S6u1pOWzb84=" },
    { "", "v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", "pvc",
      "", NS, SUBRESOURCE_STATUS, "QWTyNDq0dC4=" },
    { "", "v1", "serviceaccounts", "serviceaccount", "ServiceAccount", "sa", "", NS,
      SUBRESOURCE_TOKEN, "pbx9ZvyFpBE=" },
    { "apps", "v1", "deployments", "deployment", "Deployment", "deploy", "all", NS | GEN,
      SUBRESOURCE_STATUS | SUBRESOURCE_SCALE, "8aSe+NMegvE=" },
    { "apps", "v1", "replicasets", "replicaset", "ReplicaSet", "rs", "all", NS | GEN,
      SUBRESOURCE_STATUS | SUBRESOURCE_SCALE, "P1RzHs8/mWQ=" },
    { "apps", "v1", "statefulsets", "statefulset", "StatefulSet", "sts", "all", NS | GEN,
      SUBRESOURCE_STATUS | SUBRESOURCE_SCALE, "H+vl74LkKdo=" },
    { "apps", "v1", "daemonsets", "daemonset", "DaemonSet", "ds", "all", NS | GEN,
      SUBRESOURCE_STATUS, "dd7pWHUlMKQ=" },
    { "batch", "v1", "jobs", "job", "Job", "", "all", NS | GEN, SUBRESOURCE_STATUS,
      "mudhfqk/qZY=" },
    { "batch", "v1", "cronjobs", "cronjob", "CronJob", "cj", "all", NS | GEN, SUBRESOURCE_STATUS,
      "sd5LIXh4Fjs=" },
    { "policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", "pdb",
      "", NS | GEN, SUBRESOURCE_STATUS, "EVWiDmWqyJw=" },
    { "coordination.k8s.io", "v1", "leases", "lease", "Lease", "", "", NS, 0, "gqkMMb/YqFM=" },
    { "storage.k8s.io", "v1", "volumeattachments", "volumeattachment", "VolumeAttachment", "", "",
      0, SUBRESOURCE_STATUS, "tJx/ezt6UDU=" },
    { "apiextensions.k8s.io", "v1", "customresourcedefinitions", "customresourcedefinition",
      "CustomResourceDefinition", "crd,crds", "api-extensions", GEN, SUBRESOURCE_STATUS,
      "jfWCUB31mvA=" },
    { "events.k8s.io", "v1", "events", "event", "Event", "ev", "", NS | KIND_EVENTS_V1, 0,
      "r2yiGXH7wu8=" },
    { "rbac.authorization.k8s.io", "v1", "clusterroles", "clusterrole", "ClusterRole", "", "", 0, 0,
      "bYE5ZWDrJ44=" },
    { "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "clusterrolebinding",
      "ClusterRoleBinding", "", "", 0, 0, "48tpQ8gZHFc=" },
    { "rbac.authorization.k8s.io", "v1", "roles", "role", "Role", "", "", NS, 0, "7FuwZcIIItM=" },
    { "rbac.authorization.k8s.io", "v1", "rolebindings", "rolebinding", "RoleBinding", "", "", NS,
      0, "eGsCzGH6b1g=" },
    { "scheduling.k8s.io", "v1", "priorityclasses", "priorityclass", "PriorityClass", "pc", "", GEN,
      0, "1QwjyaZjj3Y=" },
    { "authentication.k8s.io", "v1", "selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview",
      "", "", KIND_REVIEW, 0, "" },
    { "authentication.k8s.io", "v1", "tokenreviews", "tokenreview", "TokenReview", "", "",
      KIND_REVIEW, 0, "" },
    { "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "selfsubjectaccessreview",
      "SelfSubjectAccessReview", "", "", KIND_REVIEW, 0, "" },
    { "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "selfsubjectrulesreview",
      "SelfSubjectRulesReview", "", "", KIND_REVIEW, 0, "" },
    { "authorization.k8s.io", "v1", "subjectaccessreviews", "subjectaccessreview",
      "SubjectAccessReview", "", "", KIND_REVIEW, 0, "" },
};

static void kind_split_names(struct arena *a, struct str list, struct str words[KIND_NAMES_MAX])
{
    uint32_t n = 0;
    struct str word;
    while (list.n > 0 && n + 1 < KIND_NAMES_MAX && str_split_next(&list, ',', &word)) {
        words[n++] = arena_str(a, word);
    }
}

/* The names that follow from group, version, plural and kind. */
static void kind_fill_names(struct kind *kind)
{
    struct arena *a = &kind->arena;
    if (kind->group.n == 0) {
        kind->api_version = kind->version;
        kind->resource = kind->plural;
        kind->group_kind = kind->kind;
        return;
    }
    kind->api_version =
        arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(kind->group), STR_ARG(kind->version));
    kind->resource =
        arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(kind->plural), STR_ARG(kind->group));
    kind->group_kind =
        arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(kind->kind), STR_ARG(kind->group));
}

static struct kind *kinds_add(struct kinds *k)
{
    ASSERT(k->n < KINDS_MAX);
    struct kind *kind = ALLOC_NEW(struct kind);
    kind->arena.first = 1024;
    k->items[k->n++] = kind;
    return kind;
}

void kinds_init(struct kinds *k)
{
    *k = (struct kinds){ 0 };
    for (size_t i = 0; i < ARRAY_LEN(kind_table); i++) {
        const struct kind_row *row = &kind_table[i];
        struct kind *kind = kinds_add(k);
        kind->group = str_from(row->group);
        kind->version = str_from(row->version);
        kind->plural = str_from(row->plural);
        kind->singular = str_from(row->singular);
        kind->kind = str_from(row->kind);
        kind->list_kind = arena_printf(&kind->arena, "%sList", row->kind);
        kind->storage_hash = str_from(row->storage_hash);
        kind->flags = row->flags;
        kind->subresources = row->subresources;
        kind_split_names(&kind->arena, str_from(row->short_names), kind->short_names);
        kind_split_names(&kind->arena, str_from(row->categories), kind->categories);
        kind_fill_names(kind);
        if (kind_is(kind, KIND_EVENTS_V1)) {
            kind->store = kinds_find(k, STR(""), STR("v1"), STR("events"))->store;
        } else {
            kind->store = k->stores++;
        }
    }
}

static void kind_free(struct kind *kind)
{
    arena_done(&kind->arena);
    alloc_free(kind);
}

void kinds_done(struct kinds *k)
{
    for (uint32_t i = 0; i < k->n; i++) {
        kind_free(k->items[i]);
    }
    *k = (struct kinds){ 0 };
}

const struct kind *kinds_find(const struct kinds *k, struct str group, struct str version,
                              struct str plural)
{
    for (uint32_t i = 0; i < k->n; i++) {
        const struct kind *kind = k->items[i];
        if (str_eq(kind->plural, plural) && str_eq(kind->group, group) &&
            str_eq(kind->version, version)) {
            return kind;
        }
    }
    return NULL;
}

const struct kind *kinds_find_kind(const struct kinds *k, struct str api_version, struct str name)
{
    for (uint32_t i = 0; i < k->n; i++) {
        const struct kind *kind = k->items[i];
        if (str_eq(kind->kind, name) && str_eq(kind->api_version, api_version)) {
            return kind;
        }
    }
    return NULL;
}

const struct kind *kinds_of_store(const struct kinds *k, uint32_t store)
{
    for (uint32_t i = 0; i < k->n; i++) {
        if (k->items[i]->store == store) {
            return k->items[i];
        }
    }
    return NULL;
}

bool kinds_has_group(const struct kinds *k, struct str group, struct str version)
{
    for (uint32_t i = 0; i < k->n; i++) {
        if (str_eq(k->items[i]->group, group) &&
            (version.n == 0 || str_eq(k->items[i]->version, version))) {
            return true;
        }
    }
    return false;
}

static void kind_names(struct arena *a, const struct tree *list, struct str words[KIND_NAMES_MAX])
{
    uint32_t n = 0;
    TREE_EACH (list, word) {
        if (n + 1 < KIND_NAMES_MAX) {
            words[n++] = arena_str(a, tree_text(word));
        }
    }
}

static void kind_from_crd_version(struct kind *kind, const struct tree *spec,
                                  const struct tree *version)
{
    struct arena *a = &kind->arena;
    const struct tree *names = tree_get(spec, STR("names"));
    kind->group = arena_str(a, tree_text_at(spec, "group"));
    kind->version = arena_str(a, tree_text_at(version, "name"));
    kind->plural = arena_str(a, tree_text_at(names, "plural"));
    kind->kind = arena_str(a, tree_text_at(names, "kind"));
    kind->singular = arena_str(a, tree_text_at(names, "singular"));
    kind->list_kind = arena_str(a, tree_text_at(names, "listKind"));
    kind_names(a, tree_get(names, STR("shortNames")), kind->short_names);
    kind_names(a, tree_get(names, STR("categories")), kind->categories);
    kind->flags = KIND_CUSTOM | KIND_GENERATION;
    if (str_eq(tree_text_at(spec, "scope"), STR("Namespaced"))) {
        kind->flags |= KIND_NAMESPACED;
    }
    kind->version_spec = tree_clone(a, version);
    kind->schema = types_custom_schema(a, tree_at(kind->version_spec, "schema.openAPIV3Schema"));
    if (tree_at(version, "subresources.status") != NULL) {
        kind->subresources |= SUBRESOURCE_STATUS;
    }
    if (tree_at(version, "subresources.scale") != NULL) {
        kind->subresources |= SUBRESOURCE_SCALE;
    }
    kind_fill_names(kind);
}

int kinds_define_crd(struct kinds *k, const struct tree *definition, uint32_t *ret_store,
                     struct err *err)
{
    struct str name = tree_text_at(definition, "metadata.name");
    const struct tree *spec = tree_get(definition, STR("spec"));
    const struct tree *versions = tree_get(spec, STR("versions"));
    uint32_t store = UINT32_MAX;
    for (uint32_t i = 0; i < k->n; i++) {
        if (str_eq(k->items[i]->definition, name)) {
            store = k->items[i]->store;
        }
    }
    if (k->n + (versions == NULL ? 0 : versions->n) > KINDS_MAX) {
        return err_set(err, ERR_LIMIT, "more than %u kinds", KINDS_MAX);
    }
    if (store == UINT32_MAX) {
        store = k->stores++;
    }
    kinds_remove_crd(k, name);
    /* The storage version first: objects are written as what kinds_of_store answers. */
    for (int pass = 0; pass < 2; pass++) {
        TREE_EACH (versions, version) {
            bool stored = tree_truth(tree_get(version, STR("storage")), false);
            if (stored == (pass == 0) &&
                (stored || tree_truth(tree_get(version, STR("served")), false))) {
                struct kind *kind = kinds_add(k);
                kind_from_crd_version(kind, spec, version);
                kind->definition = arena_str(&kind->arena, name);
                kind->store = store;
            }
        }
    }
    *ret_store = store;
    return 0;
}

void kinds_remove_crd(struct kinds *k, struct str definition)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        struct kind *kind = k->items[i];
        if (definition.n > 0 && str_eq(kind->definition, definition)) {
            kind_free(kind);
        } else {
            k->items[kept++] = kind;
        }
    }
    k->n = kept;
}

unsigned kind_subresource(struct str name)
{
    static const struct {
        const char *name;
        unsigned flag;
    } table[] = {
        { "status", SUBRESOURCE_STATUS },     { "scale", SUBRESOURCE_SCALE },
        { "eviction", SUBRESOURCE_EVICTION }, { "binding", SUBRESOURCE_BINDING },
        { "finalize", SUBRESOURCE_FINALIZE }, { "log", SUBRESOURCE_LOG },
        { "token", SUBRESOURCE_TOKEN },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (str_eq(name, str_from(table[i].name))) {
            return table[i].flag;
        }
    }
    return 0;
}
