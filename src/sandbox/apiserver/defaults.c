#include "sandbox/apiserver/defaults.h"

#include "base/base64.h"

/* A default as a row: which kind, where, and the JSON that stands there when nothing does. A path
 * below a member that is absent is only made when it ends in '!' in front of the JSON. */
struct defaults_row {
    const char *kind;
    const char *path;
    const char *json;
};

static const struct defaults_row defaults_rows[] = {
    { "Node", "spec", "{}" },
    { "Node", "status", "{}" },
    { "Node", "status.daemonEndpoints", "{\"kubeletEndpoint\":{\"Port\":0}}" },
    { "Node", "status.nodeInfo", "{}" },
    { "Node", "status.nodeInfo.machineID", "\"\"" },
    { "Node", "status.nodeInfo.systemUUID", "\"\"" },
    { "Node", "status.nodeInfo.bootID", "\"\"" },
    { "Node", "status.nodeInfo.kernelVersion", "\"\"" },
    { "Node", "status.nodeInfo.osImage", "\"\"" },
    { "Node", "status.nodeInfo.containerRuntimeVersion", "\"\"" },
    { "Node", "status.nodeInfo.kubeletVersion", "\"\"" },
    { "Node", "status.nodeInfo.kubeProxyVersion", "\"\"" },
    { "Node", "status.nodeInfo.operatingSystem", "\"\"" },
    { "Node", "status.nodeInfo.architecture", "\"\"" },
    { "Namespace", "spec", "{}" },
    { "Namespace", "status", "{}" },
    { "Event", "involvedObject", "{}" },
    { "Event", "source", "{}" },
    { "Event", "firstTimestamp", "null" },
    { "Event", "lastTimestamp", "null" },
    { "Event", "eventTime", "null" },
    { "Event", "reportingComponent", "\"\"" },
    { "Event", "reportingInstance", "\"\"" },
    { "Secret", "type", "\"Opaque\"" },
    { "PriorityClass", "value", "0" },
    { "PriorityClass", "preemptionPolicy", "\"PreemptLowerPriority\"" },
    { "Lease", "spec", "{}" },
    { "PodDisruptionBudget", "spec", "{}" },
    { "PodDisruptionBudget", "status", "{}" },
    { "PodDisruptionBudget", "status.disruptionsAllowed", "0" },
    { "PodDisruptionBudget", "status.currentHealthy", "0" },
    { "PodDisruptionBudget", "status.desiredHealthy", "0" },
    { "PodDisruptionBudget", "status.expectedPods", "0" },
    { "Deployment", "spec.replicas", "1" },
    { "Deployment", "spec.revisionHistoryLimit", "10" },
    { "Deployment", "spec.progressDeadlineSeconds", "600" },
    { "Deployment", "spec.strategy", "{\"type\":\"RollingUpdate\"}" },
    { "Deployment", "status", "{}" },
    { "ReplicaSet", "spec.replicas", "1" },
    { "ReplicaSet", "status", "{\"replicas\":0}" },
    { "StatefulSet", "spec.replicas", "1" },
    { "StatefulSet", "spec.revisionHistoryLimit", "10" },
    { "StatefulSet", "spec.podManagementPolicy", "\"OrderedReady\"" },
    { "StatefulSet", "spec.serviceName", "\"\"" },
    { "StatefulSet", "spec.updateStrategy",
      "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":0}}" },
    { "StatefulSet", "spec.persistentVolumeClaimRetentionPolicy",
      "{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Retain\"}" },
    { "StatefulSet", "status", "{\"replicas\":0,\"availableReplicas\":0}" },
    { "DaemonSet", "spec.revisionHistoryLimit", "10" },
    { "DaemonSet", "spec.updateStrategy",
      "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":1,\"maxSurge\":0}}" },
    { "DaemonSet", "status",
      "{\"currentNumberScheduled\":0,\"numberMisscheduled\":0,\"desiredNumberScheduled\":0,"
      "\"numberReady\":0}" },
    { "Job", "spec.parallelism", "1" },
    { "Job", "spec.completions", "1" },
    { "Job", "spec.backoffLimit", "6" },
    { "Job", "spec.completionMode", "\"NonIndexed\"" },
    { "Job", "spec.suspend", "false" },
    { "Job", "spec.podReplacementPolicy", "\"TerminatingOrFailed\"" },
    { "Job", "status", "{}" },
    { "CronJob", "spec.concurrencyPolicy", "\"Allow\"" },
    { "CronJob", "spec.suspend", "false" },
    { "CronJob", "spec.successfulJobsHistoryLimit", "3" },
    { "CronJob", "spec.failedJobsHistoryLimit", "1" },
    { "CronJob", "status", "{}" },
    { "VolumeAttachment", "spec", "{}" },
    { "VolumeAttachment", "status", "{\"attached\":false}" },
    { "CustomResourceDefinition", "spec.conversion", "{\"strategy\":\"None\"}" },
};

static const struct defaults_row pod_rows[] = {
    { "", "restartPolicy", "\"Always\"" },
    { "", "terminationGracePeriodSeconds", "30" },
    { "", "dnsPolicy", "\"ClusterFirst\"" },
    { "", "securityContext", "{}" },
    { "", "schedulerName", "\"default-scheduler\"" },
};

/* What admission adds to a pod itself, not to the templates of pods. */
static const struct defaults_row pod_admission_rows[] = {
    { "", "serviceAccountName", "\"default\"" },
    { "", "serviceAccount", "\"default\"" },
    { "", "priority", "0" },
    { "", "enableServiceLinks", "true" },
    { "", "preemptionPolicy", "\"PreemptLowerPriority\"" },
};

static const struct defaults_row container_rows[] = {
    { "", "resources", "{}" },
    { "", "terminationMessagePath", "\"/dev/termination-log\"" },
    { "", "terminationMessagePolicy", "\"File\"" },
};

static struct tree *defaults_json(struct arena *a, const char *json)
{
    struct tree *t;
    struct err err = { 0 };
    int r = tree_parse(str_from(json), a, &t, &err);
    ASSERT(r == 0); /* our own table */
    return t;
}

static void defaults_row_apply(const struct defaults_row *row, struct tree *t, struct arena *a)
{
    if (tree_at(t, row->path) == NULL) {
        tree_set_at(a, t, row->path, defaults_json(a, row->json));
    }
}

static void defaults_container(struct tree *container, struct arena *a)
{
    if (tree_kind(container) != JOBJ) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(container_rows); i++) {
        defaults_row_apply(&container_rows[i], container, a);
    }
    struct str image = tree_text_at(container, "image");
    size_t slash = str_rfind_char(image, '/');
    struct str last = slash == SIZE_MAX ? image : str_sub(image, slash + 1, image.n);
    bool latest = str_find_char(last, ':') == SIZE_MAX || str_ends(last, STR(":latest"));
    if (tree_get(container, STR("imagePullPolicy")) == NULL) {
        tree_set(a, container, STR("imagePullPolicy"),
                 tree_str(a, latest ? STR("Always") : STR("IfNotPresent")));
    }
    TREE_EACH (tree_get(container, STR("ports")), port) {
        if (tree_kind(port) == JOBJ && tree_get(port, STR("protocol")) == NULL) {
            tree_set(a, port, STR("protocol"), tree_str(a, STR("TCP")));
        }
    }
}

static void defaults_pod_spec(struct tree *spec, struct arena *a)
{
    for (size_t i = 0; i < ARRAY_LEN(pod_rows); i++) {
        defaults_row_apply(&pod_rows[i], spec, a);
    }
    TREE_EACH (tree_get(spec, STR("containers")), container) {
        defaults_container(container, a);
    }
    TREE_EACH (tree_get(spec, STR("initContainers")), container) {
        defaults_container(container, a);
    }
}

static void defaults_toleration(struct tree *spec, const char *key, struct arena *a)
{
    struct tree *list = tree_get(spec, STR("tolerations"));
    if (tree_kind(list) != JARR) {
        list = tree_arr(a);
        tree_set(a, spec, STR("tolerations"), list);
    }
    TREE_EACH (list, toleration) {
        struct str have = tree_text_at(toleration, "key");
        struct str effect = tree_text_at(toleration, "effect");
        bool any_key = have.n == 0 && str_eq(tree_text_at(toleration, "operator"), STR("Exists"));
        if ((any_key || str_eq(have, str_from(key))) &&
            (effect.n == 0 || str_eq(effect, STR("NoExecute")))) {
            return;
        }
    }
    struct tree *toleration = tree_obj(a);
    tree_set(a, toleration, STR("key"), tree_str(a, str_from(key)));
    tree_set(a, toleration, STR("operator"), tree_str(a, STR("Exists")));
    tree_set(a, toleration, STR("effect"), tree_str(a, STR("NoExecute")));
    tree_set(a, toleration, STR("tolerationSeconds"), tree_i64(a, 300));
    tree_add(list, toleration);
}

/* A condition without times has them as null. */
static void defaults_conditions(struct tree *t, const char *const *times, size_t n, struct arena *a)
{
    TREE_EACH (tree_at(t, "status.conditions"), condition) {
        for (size_t i = 0; i < n && tree_kind(condition) == JOBJ; i++) {
            if (tree_get(condition, str_from(times[i])) == NULL) {
                tree_set(a, condition, str_from(times[i]), tree_null(a));
            }
        }
    }
}

/* stringData is only ever written: its entries become, and replace, entries of data. */
static void defaults_secret(struct tree *t, struct arena *a)
{
    TREE_EACH (tree_get(t, STR("stringData")), entry) {
        struct tree *data = tree_make_at(a, t, "data");
        tree_set(a, data, entry->key, tree_str(a, base64_encode(a, tree_text(entry))));
    }
    (void)tree_del(t, STR("stringData")); /* absent is as good */
}

void defaults_apply(const struct kind *kind, struct tree *t, struct arena *a)
{
    static const char *const node_times[] = { "lastHeartbeatTime", "lastTransitionTime" };
    static const char *const pod_times[] = { "lastProbeTime", "lastTransitionTime" };
    if (kind_is(kind, KIND_CUSTOM)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(defaults_rows); i++) {
        if (str_eq(kind->kind, str_from(defaults_rows[i].kind))) {
            defaults_row_apply(&defaults_rows[i], t, a);
        }
    }
    struct tree *pod_template = tree_at(t, "spec.template.spec");
    struct tree *job_template = tree_at(t, "spec.jobTemplate.spec.template.spec");
    if (tree_kind(pod_template) == JOBJ) {
        defaults_pod_spec(pod_template, a);
    }
    if (tree_kind(job_template) == JOBJ) {
        defaults_pod_spec(job_template, a);
    }
    if (str_eq(kind->kind, STR("Node"))) {
        defaults_conditions(t, node_times, ARRAY_LEN(node_times), a);
    } else if (str_eq(kind->kind, STR("Pod"))) {
        defaults_pod_spec(tree_make_at(a, t, "spec"), a);
        defaults_conditions(t, pod_times, ARRAY_LEN(pod_times), a);
    } else if (str_eq(kind->kind, STR("Secret"))) {
        defaults_secret(t, a);
    } else if (str_eq(kind->kind, STR("Namespace"))) {
        tree_set(a, tree_make_at(a, t, "metadata.labels"), STR("kubernetes.io/metadata.name"),
                 tree_str(a, tree_text_at(t, "metadata.name")));
        if (tree_at(t, "status.phase") == NULL) {
            tree_set_at(a, t, "status.phase", tree_str(a, STR("Active")));
        }
    }
}

/* Guaranteed, Burstable or BestEffort, from what the containers ask for. */
static const char *defaults_qos(const struct tree *spec)
{
    bool any = false;
    bool all = true;
    TREE_EACH (tree_get(spec, STR("containers")), container) {
        const struct tree *requests = tree_at(container, "resources.requests");
        const struct tree *limits = tree_at(container, "resources.limits");
        any = any || tree_first(requests) != NULL || tree_first(limits) != NULL;
        static const char *const names[] = { "cpu", "memory" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            const struct tree *limit = tree_get(limits, str_from(names[i]));
            const struct tree *request = tree_get(requests, str_from(names[i]));
            all = all && limit != NULL && (request == NULL || tree_eq(request, limit));
        }
    }
    if (!any) {
        return "BestEffort";
    }
    return all ? "Guaranteed" : "Burstable";
}

static void defaults_create_pod(struct tree *t, struct arena *a)
{
    struct tree *spec = tree_make_at(a, t, "spec");
    for (size_t i = 0; i < ARRAY_LEN(pod_admission_rows); i++) {
        defaults_row_apply(&pod_admission_rows[i], spec, a);
    }
    defaults_toleration(spec, "node.kubernetes.io/not-ready", a);
    defaults_toleration(spec, "node.kubernetes.io/unreachable", a);
    struct tree *status = tree_obj(a);
    tree_set(a, status, STR("phase"), tree_str(a, STR("Pending")));
    tree_set(a, status, STR("qosClass"), tree_str(a, str_from(defaults_qos(spec))));
    tree_set(a, t, STR("status"), status);
}

static void defaults_create_node(struct tree *t, struct arena *a)
{
    struct tree *spec = tree_make_at(a, t, "spec");
    struct tree *taints = tree_get(spec, STR("taints"));
    if (tree_kind(taints) != JARR) {
        taints = tree_arr(a);
        tree_set(a, spec, STR("taints"), taints);
    }
    TREE_EACH (taints, taint) {
        if (str_eq(tree_text_at(taint, "key"), STR("node.kubernetes.io/not-ready")) &&
            str_eq(tree_text_at(taint, "effect"), STR("NoSchedule"))) {
            return;
        }
    }
    struct tree *taint = tree_obj(a);
    tree_set(a, taint, STR("key"), tree_str(a, STR("node.kubernetes.io/not-ready")));
    tree_set(a, taint, STR("effect"), tree_str(a, STR("NoSchedule")));
    tree_add(taints, taint);
}

/* Job pods are found by labels that carry the job's uid; users do not write the selector. */
static void defaults_create_job(struct tree *t, struct arena *a)
{
    if (tree_at(t, "spec.selector") != NULL) {
        return;
    }
    struct str uid = tree_text_at(t, "metadata.uid");
    struct str name = tree_text_at(t, "metadata.name");
    tree_set(a, tree_make_at(a, t, "spec.selector.matchLabels"),
             STR("batch.kubernetes.io/controller-uid"), tree_str(a, uid));
    struct tree *labels = tree_make_at(a, t, "spec.template.metadata.labels");
    tree_set(a, labels, STR("batch.kubernetes.io/controller-uid"), tree_str(a, uid));
    tree_set(a, labels, STR("controller-uid"), tree_str(a, uid));
    tree_set(a, labels, STR("batch.kubernetes.io/job-name"), tree_str(a, name));
    tree_set(a, labels, STR("job-name"), tree_str(a, name));
}

static void defaults_condition(struct tree *list, const char *type, const char *reason,
                               const char *message, struct str now, struct arena *a)
{
    struct tree *condition = tree_obj(a);
    tree_set(a, condition, STR("type"), tree_str(a, str_from(type)));
    tree_set(a, condition, STR("status"), tree_str(a, STR("True")));
    tree_set(a, condition, STR("lastTransitionTime"), tree_str(a, now));
    tree_set(a, condition, STR("reason"), tree_str(a, str_from(reason)));
    tree_set(a, condition, STR("message"), tree_str(a, str_from(message)));
    tree_add(list, condition);
}

/* Here a CustomResourceDefinition is Established at once; on a real server it takes a moment. */
static void defaults_create_crd(struct tree *t, struct arena *a)
{
    struct tree *names = tree_make_at(a, t, "spec.names");
    struct str kind = tree_text_at(names, "kind");
    if (tree_get(names, STR("singular")) == NULL) {
        char *lower = arena_alloc(a, kind.n + 1);
        for (size_t i = 0; i < kind.n; i++) {
            char c = kind.p[i];
            lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        }
        tree_set(a, names, STR("singular"), tree_str(a, (struct str){ .p = lower, .n = kind.n }));
    }
    if (tree_get(names, STR("listKind")) == NULL) {
        tree_set(a, names, STR("listKind"), tree_str(a, arena_concat(a, kind, STR("List"))));
    }
    struct tree *status = tree_obj(a);
    struct tree *conditions = tree_arr(a);
    struct str now = tree_text_at(t, "metadata.creationTimestamp");
    defaults_condition(conditions, "NamesAccepted", "NoConflicts", "no conflicts found", now, a);
    defaults_condition(conditions, "Established", "InitialNamesAccepted",
                       "the initial names have been accepted", now, a);
    tree_set(a, status, STR("conditions"), conditions);
    tree_set(a, status, STR("acceptedNames"), tree_clone(a, names));
    struct tree *stored = tree_arr(a);
    TREE_EACH (tree_at(t, "spec.versions"), version) {
        if (tree_truth(tree_get(version, STR("storage")), false)) {
            tree_add(stored, tree_str(a, tree_text_at(version, "name")));
        }
    }
    tree_set(a, status, STR("storedVersions"), stored);
    tree_set(a, t, STR("status"), status);
}

void defaults_create(const struct kind *kind, struct tree *t, struct arena *a)
{
    if ((kind->subresources & SUBRESOURCE_STATUS) != 0 && !kind_is(kind, KIND_NO_STATUS_WIPE)) {
        (void)tree_del(t, STR("status")); /* absent is as good */
    }
    if (kind_is(kind, KIND_CUSTOM)) {
        return;
    }
    if (str_eq(kind->kind, STR("Pod"))) {
        defaults_create_pod(t, a);
    } else if (str_eq(kind->kind, STR("Node"))) {
        defaults_create_node(t, a);
    } else if (str_eq(kind->kind, STR("Job"))) {
        defaults_create_job(t, a);
    } else if (str_eq(kind->kind, STR("Namespace"))) {
        tree_set_at(a, t, "spec.finalizers", defaults_json(a, "[\"kubernetes\"]"));
    } else if (str_eq(kind->kind, STR("CustomResourceDefinition"))) {
        defaults_create_crd(t, a);
    }
}

void defaults_zero_values(const struct kind *kind, struct tree *t, struct arena *a)
{
    if (str_eq(kind->kind, STR("Node"))) {
        defaults_apply(kind, t, a);
    } else if (str_eq(kind->kind, STR("Pod"))) {
        tree_set(a, t, STR("spec"), defaults_json(a, "{\"containers\":null}"));
        tree_set(a, t, STR("status"), tree_obj(a));
    }
}
