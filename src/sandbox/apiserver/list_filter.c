#include "sandbox/apiserver/list_filter.h"

struct list_filter_field {
    const char *plural;
    const char *label;  /* as the selector names it */
    const char *path;   /* where the stored object has it */
    const char *absent; /* what an object without it has */
};

static const struct list_filter_field list_filter_fields[] = {
    { "pods", "spec.nodeName", "spec.nodeName", "" },
    { "pods", "spec.restartPolicy", "spec.restartPolicy", "" },
    { "pods", "spec.schedulerName", "spec.schedulerName", "" },
    { "pods", "spec.serviceAccountName", "spec.serviceAccountName", "" },
    { "pods", "spec.hostNetwork", "spec.hostNetwork", "false" },
    { "pods", "status.phase", "status.phase", "" },
    { "pods", "status.podIP", "status.podIP", "" },
    { "pods", "status.podIPs", "status.podIP", "" },
    { "pods", "status.nominatedNodeName", "status.nominatedNodeName", "" },
    { "nodes", "spec.unschedulable", "spec.unschedulable", "false" },
    { "namespaces", "status.phase", "status.phase", "" },
    { "secrets", "type", "type", "" },
    { "replicasets", "status.replicas", "status.replicas", "0" },
    { "jobs", "status.successful", "status.succeeded", "0" },
    { "events", "involvedObject.kind", "involvedObject.kind", "" },
    { "events", "involvedObject.namespace", "involvedObject.namespace", "" },
    { "events", "involvedObject.name", "involvedObject.name", "" },
    { "events", "involvedObject.uid", "involvedObject.uid", "" },
    { "events", "involvedObject.apiVersion", "involvedObject.apiVersion", "" },
    { "events", "involvedObject.resourceVersion", "involvedObject.resourceVersion", "" },
    { "events", "involvedObject.fieldPath", "involvedObject.fieldPath", "" },
    { "events", "regarding.kind", "involvedObject.kind", "" },
    { "events", "regarding.namespace", "involvedObject.namespace", "" },
    { "events", "regarding.name", "involvedObject.name", "" },
    { "events", "regarding.uid", "involvedObject.uid", "" },
    { "events", "regarding.apiVersion", "involvedObject.apiVersion", "" },
    { "events", "reason", "reason", "" },
    { "events", "reportingComponent", "reportingComponent", "" },
    { "events", "reportingController", "reportingComponent", "" },
    { "events", "source", "source.component", "" },
    { "events", "type", "type", "" },
};

static const struct list_filter_field *list_filter_builtin(const struct kind *kind,
                                                           struct str label)
{
    for (size_t i = 0; i < ARRAY_LEN(list_filter_fields); i++) {
        if (str_eq(kind->plural, str_from(list_filter_fields[i].plural)) &&
            str_eq(label, str_from(list_filter_fields[i].label))) {
            return &list_filter_fields[i];
        }
    }
    return NULL;
}

/* Custom kinds name their fields in selectableFields: ".spec.color". */
static bool list_filter_custom(const struct kind *kind, struct str label)
{
    TREE_EACH (tree_get(kind->version_spec, STR("selectableFields")), field) {
        struct str path = tree_text_at(field, "jsonPath");
        if (path.n > 0 && str_eq(str_sub(path, 1, path.n - 1), label)) {
            return true;
        }
    }
    return false;
}

static bool list_filter_has_field(const struct kind *kind, struct str label)
{
    if (str_eq(label, STR("metadata.name"))) {
        return true;
    }
    if (str_eq(label, STR("metadata.namespace"))) {
        return kind_is(kind, KIND_NAMESPACED) || !kind_is(kind, KIND_CUSTOM);
    }
    return kind_is(kind, KIND_CUSTOM) ? list_filter_custom(kind, label)
                                      : list_filter_builtin(kind, label) != NULL;
}

struct status *list_filter_init(struct list_filter *filter, const struct kind *kind,
                                const struct url_route *route, struct arena *a)
{
    *filter = (struct list_filter){ .kind = kind, .namespace = route->namespace };
    struct err err = { 0 };
    if (selector_parse(route->params.label_selector, a, &filter->labels, &err) < 0) {
        return status_bad_request(a, "%s", err.msg);
    }
    if (selector_parse_fields(route->params.field_selector, a, &filter->fields, &err) < 0) {
        return status_bad_request(a, "%s", err.msg);
    }
    for (uint32_t i = 0; i < filter->fields.n; i++) {
        const struct selector_term *term = &filter->fields.terms[i];
        if (!list_filter_has_field(kind, term->key)) {
            return status_bad_request(a, "field label not supported: " STR_FMT, STR_ARG(term->key));
        }
        bool equals = term->op == SELECTOR_EQUALS || term->op == SELECTOR_DOUBLE_EQUALS;
        if (equals && term->n > 0 && str_eq(term->key, STR("metadata.name"))) {
            filter->name = term->values[0];
        }
    }
    return NULL;
}

struct list_filter_object {
    const struct kind *kind;
    const struct object *object;
};

static bool list_filter_lookup(void *ctx, struct str key, struct str *ret_value)
{
    const struct list_filter_object *subject = ctx;
    const struct object *o = subject->object;
    if (str_eq(key, STR("metadata.name"))) {
        *ret_value = o->name;
        return true;
    }
    if (str_eq(key, STR("metadata.namespace"))) {
        *ret_value = o->namespace;
        return true;
    }
    const struct list_filter_field *field = list_filter_builtin(subject->kind, key);
    const struct jval *v = o->root;
    struct str rest = field != NULL ? str_from(field->path) : key;
    struct str part;
    while (str_split_next(&rest, '.', &part)) {
        v = jval_get(v, part);
    }
    switch (jval_kind(v)) {
    case JSTR:
    case JNUM:
        *ret_value = (struct str){ .p = v->p, .n = v->n };
        return true;
    case JBOOL:
        *ret_value = jval_bool(v, false) ? STR("true") : STR("false");
        return true;
    case JNULL:
    case JARR:
    case JOBJ:
        break;
    }
    *ret_value = field != NULL ? str_from(field->absent) : STR("");
    return true;
}

bool list_filter_match(const struct list_filter *filter, const struct object *o)
{
    if (filter->namespace.n > 0 && !str_eq(filter->namespace, o->namespace)) {
        return false;
    }
    if (filter->name.n > 0 && !str_eq(filter->name, o->name)) {
        return false;
    }
    if (filter->fields.n > 0) {
        struct list_filter_object subject = { .kind = filter->kind, .object = o };
        if (!selector_match(&filter->fields, list_filter_lookup, &subject)) {
            return false;
        }
    }
    return filter->labels.n == 0 ||
           selector_match_jval(&filter->labels, jval_get(o->metadata, STR("labels")));
}
