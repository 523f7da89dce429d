#include "sandbox/apiserver/table_cells.h"

#include "base/timestamp.h"
#include "format/selector.h"
#include "sandbox/apiserver/table.h"

#define ROLES_MAX 16u

void cells_text(struct cells *c, struct str text)
{
    tree_add(c->row, tree_str(c->a, text));
}

void cells_age_since(struct cells *c, const struct tree *time)
{
    cells_text(c, table_age_since(c->a, time, c->wall));
}

void cells_count(struct cells *c, int64_t n)
{
    tree_add(c->row, tree_i64(c->a, n));
}

int64_t cells_number_at(const struct tree *object, const char *path)
{
    int64_t n = 0;
    (void)tree_number(tree_at(object, path), &n); /* Go leaves zeros out */
    return n;
}

void cells_number(struct cells *c, const struct tree *number)
{
    int64_t n = 0;
    (void)tree_number(number, &n); /* Go leaves zeros out */
    cells_count(c, n);
}

void cells_name(struct cells *c)
{
    cells_text(c, tree_text_at(c->object, "metadata.name"));
}

void cells_age(struct cells *c)
{
    cells_age_since(c, tree_at(c->object, "metadata.creationTimestamp"));
}

void cells_or(struct cells *c, struct str text, const char *fallback)
{
    cells_text(c, text.n > 0 ? text : str_from(fallback));
}

static const struct tree *condition_find(const struct tree *object, struct str type)
{
    TREE_EACH (tree_at(object, "status.conditions"), condition) {
        if (str_eq(tree_text_at(condition, "type"), type)) {
            return condition;
        }
    }
    return NULL;
}

static bool condition_true(const struct tree *object, struct str type)
{
    return str_eq(tree_text_at(condition_find(object, type), "status"), STR("True"));
}

static struct str node_roles(struct cells *c)
{
    struct str roles[ROLES_MAX];
    uint32_t n = 0;
    TREE_EACH (tree_at(c->object, "metadata.labels"), label) {
        struct str role;
        if (str_eq(label->key, STR("kubernetes.io/role"))) {
            role = tree_text(label);
        } else if (!str_cut_prefix(label->key, STR("node-role.kubernetes.io/"), &role)) {
            continue;
        }
        uint32_t at = 0;
        while (at < n && str_cmp(roles[at], role) < 0) {
            at++;
        }
        bool known = at < n && str_eq(roles[at], role);
        if (role.n == 0 || known || n == ROLES_MAX) {
            continue;
        }
        for (uint32_t i = n++; i > at; i--) {
            roles[i] = roles[i - 1];
        }
        roles[at] = role;
    }
    struct str text = STR("");
    for (uint32_t i = 0; i < n; i++) {
        text = arena_printf(c->a, STR_FMT "%s" STR_FMT, STR_ARG(text), i > 0 ? "," : "",
                            STR_ARG(roles[i]));
    }
    return text;
}

static struct str node_address(const struct tree *node, struct str type)
{
    TREE_EACH (tree_at(node, "status.addresses"), address) {
        if (str_eq(tree_text_at(address, "type"), type)) {
            return tree_text_at(address, "address");
        }
    }
    return STR("");
}

static void cells_node(struct cells *c)
{
    const struct tree *ready = condition_find(c->object, STR("Ready"));
    struct str status = STR("Unknown");
    if (ready != NULL) {
        status =
            str_eq(tree_text_at(ready, "status"), STR("True")) ? STR("Ready") : STR("NotReady");
    }
    if (tree_truth(tree_at(c->object, "spec.unschedulable"), false)) {
        status = arena_concat(c->a, status, STR(",SchedulingDisabled"));
    }
    cells_name(c);
    cells_text(c, status);
    cells_or(c, node_roles(c), "<none>");
    cells_age(c);
    cells_text(c, tree_text_at(c->object, "status.nodeInfo.kubeletVersion"));
    cells_or(c, node_address(c->object, STR("InternalIP")), "<none>");
    cells_or(c, node_address(c->object, STR("ExternalIP")), "<none>");
    cells_or(c, tree_text_at(c->object, "status.nodeInfo.osImage"), "<unknown>");
    cells_or(c, tree_text_at(c->object, "status.nodeInfo.kernelVersion"), "<unknown>");
    cells_or(c, tree_text_at(c->object, "status.nodeInfo.containerRuntimeVersion"), "<unknown>");
}

static void cells_containers(struct cells *c, const struct tree *list)
{
    static const char *const members[] = { "name", "image" };
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        CLEANUP(buf_done)
        struct buf b = { 0 };
        TREE_EACH (list, container) {
            buf_add(&b, b.n > 0 ? STR(",") : STR(""));
            buf_add(&b, tree_text_at(container, members[i]));
        }
        cells_text(c, buf_str(&b));
    }
}

static void cells_selector(struct cells *c, const struct tree *object)
{
    struct selector selector;
    struct err err;
    CLEANUP(buf_done)
    struct buf b = { 0 };
    if (object != NULL && selector_from_tree(object, c->a, &selector, &err) == 0) {
        selector_print(&selector, &b);
    }
    cells_or(c, buf_str(&b), "<none>");
}

static void cells_labels(struct cells *c, const struct tree *labels)
{
    struct tree *object = tree_obj(c->a);
    if (labels != NULL) {
        tree_set(c->a, object, STR("matchLabels"), tree_clone(c->a, labels));
    }
    cells_selector(c, object);
}

static void cells_ratio(struct cells *c, int64_t part, int64_t all)
{
    cells_text(c, arena_printf(c->a, "%lld/%lld", (long long)part, (long long)all));
}

static void cells_template(struct cells *c, bool selector)
{
    cells_containers(c, tree_at(c->object, "spec.template.spec.containers"));
    if (selector) {
        cells_selector(c, tree_at(c->object, "spec.selector"));
    }
}

static void cells_deployment(struct cells *c)
{
    cells_name(c);
    cells_ratio(c, cells_number_at(c->object, "status.readyReplicas"),
                cells_number_at(c->object, "spec.replicas"));
    cells_number(c, tree_at(c->object, "status.updatedReplicas"));
    cells_number(c, tree_at(c->object, "status.availableReplicas"));
    cells_age(c);
    cells_template(c, /* selector= */ true);
}

static void cells_replicaset(struct cells *c)
{
    cells_name(c);
    cells_number(c, tree_at(c->object, "spec.replicas"));
    cells_number(c, tree_at(c->object, "status.replicas"));
    cells_number(c, tree_at(c->object, "status.readyReplicas"));
    cells_age(c);
    cells_template(c, /* selector= */ true);
}

static void cells_statefulset(struct cells *c)
{
    cells_name(c);
    cells_ratio(c, cells_number_at(c->object, "status.readyReplicas"),
                cells_number_at(c->object, "spec.replicas"));
    cells_age(c);
    cells_template(c, /* selector= */ false);
}

static void cells_daemonset(struct cells *c)
{
    cells_name(c);
    cells_number(c, tree_at(c->object, "status.desiredNumberScheduled"));
    cells_number(c, tree_at(c->object, "status.currentNumberScheduled"));
    cells_number(c, tree_at(c->object, "status.numberReady"));
    cells_number(c, tree_at(c->object, "status.updatedNumberScheduled"));
    cells_number(c, tree_at(c->object, "status.numberAvailable"));
    cells_labels(c, tree_at(c->object, "spec.template.spec.nodeSelector"));
    cells_age(c);
    cells_template(c, /* selector= */ true);
}

static struct str job_status(const struct tree *job)
{
    static const struct {
        const char *condition;
        const char *status;
    } table[] = { { "Complete", "Complete" },
                  { "Failed", "Failed" },
                  { NULL, "Terminating" },
                  { "Suspended", "Suspended" },
                  { "FailureTarget", "FailureTarget" },
                  { "SuccessCriteriaMet", "SuccessCriteriaMet" } };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].condition == NULL ? tree_at(job, "metadata.deletionTimestamp") != NULL
                                       : condition_true(job, str_from(table[i].condition))) {
            return str_from(table[i].status);
        }
    }
    return STR("Running");
}

static void cells_job(struct cells *c)
{
    long long succeeded = (long long)cells_number_at(c->object, "status.succeeded");
    int64_t parallelism = cells_number_at(c->object, "spec.parallelism");
    const struct tree *completions = tree_at(c->object, "spec.completions");
    int64_t wanted = 1;
    cells_name(c);
    cells_text(c, job_status(c->object));
    if (completions != NULL && tree_number(completions, &wanted)) {
        cells_ratio(c, succeeded, wanted);
    } else if (parallelism > 1) {
        cells_text(c, arena_printf(c->a, "%lld/1 of %lld", succeeded, (long long)parallelism));
    } else {
        cells_ratio(c, succeeded, 1);
    }
    const struct tree *start = tree_at(c->object, "status.startTime");
    const struct tree *end = tree_at(c->object, "status.completionTime");
    struct timestamp stamp;
    struct err err;
    if (tree_text(start).n == 0) {
        cells_text(c, STR(""));
    } else if (tree_text(end).n > 0 && timestamp_parse(tree_text(end), &stamp, &err) == 0) {
        cells_text(c, table_age_since(c->a, start, timestamp_to_usec(stamp)));
    } else {
        cells_age_since(c, start);
    }
    cells_age(c);
    cells_template(c, /* selector= */ true);
}

static void cells_cronjob(struct cells *c)
{
    const struct tree *active = tree_at(c->object, "status.active");
    const struct tree *last = tree_at(c->object, "status.lastScheduleTime");
    bool suspended = tree_truth(tree_at(c->object, "spec.suspend"), false);
    cells_name(c);
    cells_text(c, tree_text_at(c->object, "spec.schedule"));
    cells_or(c, tree_text_at(c->object, "spec.timeZone"), "<none>");
    cells_text(c, suspended ? STR("True") : STR("False"));
    cells_count(c, active != NULL ? active->n : 0);
    cells_text(c, tree_text(last).n > 0 ? table_age_since(c->a, last, c->wall) : STR("<none>"));
    cells_age(c);
    cells_containers(c, tree_at(c->object, "spec.jobTemplate.spec.template.spec.containers"));
    cells_selector(c, tree_at(c->object, "spec.jobTemplate.spec.selector"));
}

static void cells_pdb(struct cells *c)
{
    static const char *const bounds[] = { "spec.minAvailable", "spec.maxUnavailable" };
    cells_name(c);
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        const struct tree *bound = tree_at(c->object, bounds[i]);
        bool given = tree_kind(bound) == JSTR || tree_kind(bound) == JNUM;
        cells_text(c, given ? bound->text : STR("N/A"));
    }
    cells_number(c, tree_at(c->object, "status.disruptionsAllowed"));
    cells_age(c);
}

static void cells_lease(struct cells *c)
{
    cells_name(c);
    cells_text(c, tree_text_at(c->object, "spec.holderIdentity"));
    cells_age(c);
}

static struct str lowercase(struct arena *a, struct str text)
{
    char *out = arena_alloc(a, text.n + 1);
    for (size_t i = 0; i < text.n; i++) {
        char ch = text.p[i];
        out[i] = ch >= 'A' && ch <= 'Z' ? (char)(ch + ('a' - 'A')) : ch;
    }
    return (struct str){ .p = out, .n = text.n };
}

/* core/v1 and events.k8s.io/v1 give the same fields different names. */
static const struct tree *event_field(const struct tree *object, const char *core,
                                      const char *events)
{
    const struct tree *value = tree_at(object, core);
    return value != NULL ? value : tree_at(object, events);
}

static struct str event_source(struct cells *c)
{
    const struct tree *source = event_field(c->object, "source", "deprecatedSource");
    struct str component = tree_text_at(source, "component");
    struct str instance = tree_text_at(source, "host");
    if (component.n == 0) {
        component = tree_text(event_field(c->object, "reportingComponent", "reportingController"));
    }
    if (instance.n == 0) {
        instance = tree_text_at(c->object, "reportingInstance");
    }
    return instance.n == 0
               ? component
               : arena_printf(c->a, STR_FMT ", " STR_FMT, STR_ARG(component), STR_ARG(instance));
}

static void cells_event(struct cells *c)
{
    const struct tree *about = event_field(c->object, "involvedObject", "regarding");
    const struct tree *first = event_field(c->object, "firstTimestamp", "deprecatedFirstTimestamp");
    const struct tree *last = event_field(c->object, "lastTimestamp", "deprecatedLastTimestamp");
    const struct tree *series = tree_at(c->object, "series");
    int64_t count = 0;
    (void)tree_number(event_field(c->object, "count", "deprecatedCount"), &count); /* absent is 0 */
    first = tree_text(first).n > 0 ? first : tree_at(c->object, "eventTime");
    last = tree_text(last).n > 0 ? last : first;
    if (tree_kind(series) == JOBJ) {
        last = tree_at(series, "lastObservedTime");
        count = cells_number_at(series, "count");
    } else if (count == 0) {
        count = 1;
    }
    struct str target = lowercase(c->a, tree_text_at(about, "kind"));
    struct str name = tree_text_at(about, "name");
    if (name.n > 0) {
        target = arena_printf(c->a, STR_FMT "/" STR_FMT, STR_ARG(target), STR_ARG(name));
    }
    cells_age_since(c, last);
    cells_text(c, tree_text_at(c->object, "type"));
    cells_text(c, tree_text_at(c->object, "reason"));
    cells_text(c, target);
    cells_text(c, tree_text_at(about, "fieldPath"));
    cells_text(c, event_source(c));
    cells_text(c, str_trim(tree_text(event_field(c->object, "message", "note"))));
    cells_age_since(c, first);
    cells_count(c, count);
    cells_name(c);
}

static void cells_namespace(struct cells *c)
{
    cells_name(c);
    cells_text(c, tree_text_at(c->object, "status.phase"));
    cells_age(c);
}

static int64_t size_at(const struct tree *object, const char *path)
{
    const struct tree *value = tree_at(object, path);
    return value != NULL ? value->n : 0;
}

static void cells_configmap(struct cells *c)
{
    cells_name(c);
    cells_count(c, size_at(c->object, "data") + size_at(c->object, "binaryData"));
    cells_age(c);
}

static void cells_secret(struct cells *c)
{
    cells_name(c);
    cells_text(c, tree_text_at(c->object, "type"));
    cells_count(c, size_at(c->object, "data"));
    cells_age(c);
}

static void cells_priority_class(struct cells *c)
{
    cells_name(c);
    cells_number(c, tree_get(c->object, STR("value")));
    tree_add(c->row, tree_bool(c->a, tree_truth(tree_get(c->object, STR("globalDefault")), false)));
    cells_age(c);
    cells_text(c, tree_text_at(c->object, "preemptionPolicy"));
}

static void cells_volume_attachment(struct cells *c)
{
    cells_name(c);
    cells_text(c, tree_text_at(c->object, "spec.attacher"));
    cells_text(c, tree_text_at(c->object, "spec.source.persistentVolumeName"));
    cells_text(c, tree_text_at(c->object, "spec.nodeName"));
    tree_add(c->row, tree_bool(c->a, tree_truth(tree_at(c->object, "status.attached"), false)));
    cells_age(c);
}

static void cells_crd(struct cells *c)
{
    cells_name(c);
    cells_text(c, tree_text_at(c->object, "metadata.creationTimestamp"));
}

/* The subjects of one kind in a binding; service accounts with their namespace. */
static void cells_subjects(struct cells *c, const char *kind)
{
    CLEANUP(buf_done)
    struct buf b = { 0 };
    TREE_EACH (tree_get(c->object, STR("subjects")), subject) {
        struct str namespace = tree_text_at(subject, "namespace");
        struct str name = tree_text_at(subject, "name");
        if (str_eq(tree_text_at(subject, "kind"), str_from(kind))) {
            buf_printf(&b, "%s" STR_FMT "%s" STR_FMT, b.n > 0 ? ", " : "", STR_ARG(namespace),
                       namespace.n > 0 ? "/" : "", STR_ARG(name));
        }
    }
    cells_text(c, buf_str(&b));
}

static void cells_role_binding(struct cells *c)
{
    struct str kind = tree_text_at(c->object, "roleRef.kind");
    struct str name = tree_text_at(c->object, "roleRef.name");
    cells_name(c);
    cells_text(c, arena_printf(c->a, STR_FMT "/" STR_FMT, STR_ARG(kind), STR_ARG(name)));
    cells_age(c);
    cells_subjects(c, "User");
    cells_subjects(c, "Group");
    cells_subjects(c, "ServiceAccount");
}

bool cells_add_kind(struct cells *c, const struct kind *kind)
{
    static const struct {
        const char *plural;
        void (*add)(struct cells *c);
    } printers[] = {
        { "nodes", cells_node },
        { "pods", cells_pod },
        { "deployments", cells_deployment },
        { "replicasets", cells_replicaset },
        { "statefulsets", cells_statefulset },
        { "daemonsets", cells_daemonset },
        { "jobs", cells_job },
        { "cronjobs", cells_cronjob },
        { "poddisruptionbudgets", cells_pdb },
        { "leases", cells_lease },
        { "events", cells_event },
        { "namespaces", cells_namespace },
        { "configmaps", cells_configmap },
        { "secrets", cells_secret },
        { "priorityclasses", cells_priority_class },
        { "volumeattachments", cells_volume_attachment },
        { "customresourcedefinitions", cells_crd },
        { "clusterroles", cells_crd },
        { "roles", cells_crd },
        { "clusterrolebindings", cells_role_binding },
        { "rolebindings", cells_role_binding },
    };
    for (size_t i = 0; i < ARRAY_LEN(printers); i++) {
        if (str_eq(kind->plural, str_from(printers[i].plural))) {
            printers[i].add(c);
            return true;
        }
    }
    return false;
}
