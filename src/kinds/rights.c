#include "kinds/rights.h"

#include "kinds/keys.h"

#define CORE ""
#define APPS "apps"
#define COORDINATION "coordination.k8s.io"
#define EVENTS "events.k8s.io"
#define POLICY "policy"
#define RBAC "rbac.authorization.k8s.io"
#define STORAGE "storage.k8s.io"
#define CRDS "apiextensions.k8s.io"
#define METAL3 "metal3.io"
#define RIGHT_RESOURCES_MAX 4u          /* of one row */
#define BRIDGE_ACCOUNT "drydock-bridge" /* bridge/workload_token.h */

/* The order in which rules name them. */
static const char *const rights_verbs[] = {
    "get", "list", "watch", "create", "update", "patch", "delete", "override",
};

const struct right_role right_roles[] = {
    { "controller", "`drydock controller`: profiles, requests and limits" },
    { "operations", "`drydock controller` where it also serves NodeMaintenances" },
    { "bridge", "`drydock bridge`, in the management cluster" },
    { "bridge-workload",
      "the user of the kubeconfig by which a bridge reaches a workload cluster" },
    { "actor", "whoever asks for nodes: `drydock request`, `drydock run`, libdrydock" },
    { "override", "whoever may change the requests of others, under the policy of requests" },
    { "viewer", "whoever asks with `drydock status`, `explain` and `limits`" },
};
const uint32_t right_roles_count = ARRAY_LEN(right_roles);

const struct right_use right_uses[] = {
    { "controller", "drains", "profiles or limits drain nodes", "controller.uses.drains" },
    { "controller", "forced-drains",
      "a drain may delete pods past their budgets: `forceEviction` of a profile, `onTimeout: "
      "Force` of a limit",
      "controller.uses.forcedDrains" },
    { "controller", "drain-rules",
      "Cluster API's MachineDrainRules with a `namespaceSelector` are to count",
      "controller.uses.drainRules" },
    { "controller", "affinity", "a profile has the check `affinity`", "controller.uses.affinity" },
    { "controller", "hypervisors",
      "a profile has the plugins `checkHypervisor`, `hypervisorCondition` or `alterHypervisor`",
      "controller.uses.hypervisors" },
    { "controller", "shuffles", "the metrics `maintenance_controller_pod_shuffle…` are wanted",
      "controller.uses.shuffles" },
    { "controller", "leases", "a profile has `stagger` checks or `slackThread` notifications",
      "controller.uses.leases, controller.leaseNamespaces" },
    { "controller", "requests", "MaintenanceRequests and MaintenanceLimits are served",
      "controller.uses.requests" },
    { "controller", "workloads",
      "requests or limits are of type deployment, daemonset or statefulset",
      "controller.uses.workloads" },
    { "controller", "volumes", "a limit waits for volumes (`infraDrain`)",
      "controller.uses.volumes" },
    { "controller", "install-crds", "the controller installs the CRDs itself (`--install-crds`)",
      "crds.byController" },
    { "controller", "watch-crds", "CRDs may come after the controller and are to be served at once",
      "controller.uses.watchCrds" },
    { "controller", "auth",
      "`--auth=cluster`: who asks for metrics and dashboard is asked who they are", "auth" },
    { "bridge", "metal3", "`--enable-metal3-maintenance`", "bridge.metal3.enabled" },
    { "bridge", "auth", "`--auth=cluster`", "auth" },
    { "bridge-workload", "workload-requests", "`--workload-approval=requests`", "" },
    { "bridge-workload", "workload-drained", "`--metal3-require-drained`", "" },
    { "bridge-workload", "workload-account", "`--workload-rbac=manage`", "" },
};
const uint32_t right_uses_count = ARRAY_LEN(right_uses);

#define REQUESTS "maintenancerequests"
#define LIMITS "maintenancelimits"
#define SELECTORS "maintenanceselectors"
#define WORKLOADS "deployments,daemonsets,statefulsets"

const struct right rights[] = {
    { "controller", NULL, RIGHT_CLUSTER, CORE, "nodes", NULL, "get,list,watch,patch",
      "follows nodes, writes their state and cordons them" },
    { "controller", NULL, RIGHT_CLUSTER, EVENTS, "events", NULL, "create,patch",
      "tells what it does, at nodes, pods and requests" },
    { "controller", NULL, RIGHT_HOME, COORDINATION, "leases", NULL, "get,create,update",
      "elects a leader and records its grants" },
    { "controller", NULL, RIGHT_HOME, CORE, "pods", NULL, "get",
      "finds the pod that leads, for the dashboard of the others" },
    { "controller", "drains", RIGHT_CLUSTER, CORE, "pods", NULL, "list,watch",
      "sees which pods a drain has to wait for" },
    { "controller", "drains", RIGHT_CLUSTER, CORE, "pods/eviction", NULL, "create", "evicts pods" },
    { "controller", "drains", RIGHT_CLUSTER, POLICY, "poddisruptionbudgets", NULL, "list,watch",
      "sees when a budget lets a pod go" },
    { "controller", "forced-drains", RIGHT_CLUSTER, CORE, "pods", NULL, "delete",
      "deletes pods past their budgets" },
    { "controller", "drain-rules", RIGHT_CLUSTER, CORE, "namespaces", NULL, "list,watch",
      "knows the labels that rules select by" },
    { "controller", "affinity", RIGHT_CLUSTER, CORE, "pods", NULL, "list,watch",
      "sees whether pods want the node" },
    { "controller", "hypervisors", RIGHT_CLUSTER, HYPERVISORS_GROUP, "hypervisors", NULL,
      "list,watch,patch", "follows the hypervisors of nodes and changes them" },
    { "controller", "shuffles", RIGHT_CLUSTER, CORE, "pods", NULL, "list",
      "counts the pods of a node" },
    { "controller", "shuffles", RIGHT_CLUSTER, APPS, WORKLOADS ",replicasets", NULL, "get",
      "knows the owners of pods and their replicas" },
    { "controller", "leases", RIGHT_NAMED, COORDINATION, "leases", NULL, "get,create,patch",
      "keeps what `stagger` and `slackThread` remember" },
    { "controller", "requests", RIGHT_CLUSTER, MAINTENANCE_GROUP, REQUESTS, NULL,
      "get,list,watch,patch,delete", "answers requests and deletes finished ones" },
    { "controller", "requests", RIGHT_CLUSTER, MAINTENANCE_GROUP, LIMITS, NULL, "get,list,watch",
      "follows limits" },
    { "controller", "requests", RIGHT_CLUSTER, MAINTENANCE_GROUP, SELECTORS, NULL, "list,watch",
      "follows selectors" },
    { "controller", "requests", RIGHT_CLUSTER, OPERATION_GROUP, "nodemaintenances", NULL,
      "list,watch", "sees whether there are NodeMaintenances to serve" },
    { "controller", "requests", RIGHT_CLUSTER, MAINTENANCE_GROUP,
      REQUESTS "/status," LIMITS "/status," SELECTORS "/status", NULL, "patch",
      "says how each stands, and counts reservations" },
    { "controller", "requests", RIGHT_CLUSTER, POLICY, "poddisruptionbudgets", NULL, "list,watch",
      "makes the safety check of budgets" },
    { "controller", "requests", RIGHT_HOME, COORDINATION, "leases", NULL,
      "get,list,watch,create,update,delete", "locks targets" },
    { "controller", "workloads", RIGHT_CLUSTER, APPS, WORKLOADS, NULL, "get,list,watch",
      "counts what limits select" },
    { "controller", "workloads", RIGHT_CLUSTER, CORE, "namespaces", NULL, "list,watch",
      "knows the labels that a `namespaceSelector` asks for" },
    { "controller", "volumes", RIGHT_CLUSTER, STORAGE, "volumeattachments", NULL, "list,watch",
      "waits until volumes are detached" },
    { "controller", "volumes", RIGHT_CLUSTER, CORE, "persistentvolumeclaims", NULL, "get",
      "knows the volumes of pods that stay" },
    { "controller", "install-crds", RIGHT_CLUSTER, CRDS, "customresourcedefinitions", NULL,
      "get,create,patch", "installs its kinds" },
    { "controller", "watch-crds", RIGHT_CLUSTER, CRDS, "customresourcedefinitions", NULL,
      "list,watch", "notices that its kinds are installed" },
    { "controller", "auth", RIGHT_CLUSTER, "authentication.k8s.io", "tokenreviews", NULL, "create",
      "asks who somebody is that asks for metrics or the dashboard" },
    { "controller", "auth", RIGHT_CLUSTER, "authorization.k8s.io", "subjectaccessreviews", NULL,
      "create", "asks whether they may" },

    { "operations", NULL, RIGHT_CLUSTER, OPERATION_GROUP, "nodemaintenances", NULL,
      "list,watch,patch", "follows NodeMaintenances and keeps its finalizer" },
    { "operations", NULL, RIGHT_CLUSTER, OPERATION_GROUP, "nodemaintenances/status", NULL, "patch",
      "says how each stands" },
    { "operations", NULL, RIGHT_CLUSTER, OPERATION_GROUP,
      "nodeoperationtemplates,maintenancewindows,nodeseries", NULL, "list,watch",
      "follows what they refer to" },
    { "operations", NULL, RIGHT_CLUSTER, OPERATION_GROUP,
      "nodeoperationtemplates/status,maintenancewindows/status,nodeseries/status", NULL, "patch",
      "says how those stand" },
    { "operations", NULL, RIGHT_CLUSTER, MAINTENANCE_GROUP, REQUESTS, NULL,
      "list,watch,create,patch", "asks for the nodes that it visits" },
    { "operations", NULL, RIGHT_HOME, OPERATION_GROUP, "nodestates", NULL,
      "list,watch,create,delete", "keeps the visit of each node" },
    { "operations", NULL, RIGHT_HOME, OPERATION_GROUP, "nodestates/status", NULL, "patch",
      "says how a visit stands" },
    { "operations", NULL, RIGHT_HOME, CORE, "configmaps", NULL, "get,create,patch",
      "keeps what was done on each node, for `drydock history`" },
    { "operations", NULL, RIGHT_JOBS, "batch", "jobs", NULL, "list,watch,create,delete",
      "runs payloads" },
    { "operations", NULL, RIGHT_JOBS, CORE, "pods", NULL, "list", "reads how a failed one ended" },
    { "operations", NULL, RIGHT_JOBS, CORE, "configmaps,secrets", NULL, "list,watch",
      "notices that something has changed that payloads refer to, and reads calendars; keeps no "
      "value of a Secret" },
    { "operations", NULL, RIGHT_JOBS, CORE, "secrets", NULL, "get",
      "reads the tokens of gates that ask Prometheus or Alertmanager" },

    { "bridge", NULL, RIGHT_CLUSTER, CAPI_GROUP, "machines", NULL, "list,watch,patch",
      "follows Machines, keeps the hook and answers" },
    { "bridge", NULL, RIGHT_CLUSTER, CAPI_GROUP, "clusters,machinedrainrules", NULL, "list,watch",
      "follows Clusters and the rules for drains" },
    { "bridge", NULL, RIGHT_CLUSTER, CORE, "secrets", NULL, "get,list,watch",
      "reads the kubeconfigs of workload clusters; lists and watches metadata only" },
    { "bridge", NULL, RIGHT_CLUSTER, EVENTS, "events", NULL, "create,patch",
      "tells what it does, at Machines" },
    { "bridge", NULL, RIGHT_HOME, COORDINATION, "leases", NULL, "get,create,update",
      "elects a leader" },
    { "bridge", "metal3", RIGHT_CLUSTER, METAL3, "baremetalhosts", NULL, "list,watch,patch",
      "switches hosts off and on" },
    { "bridge", "auth", RIGHT_CLUSTER, "authentication.k8s.io", "tokenreviews", NULL, "create",
      "asks who somebody is that asks for metrics or the dashboard" },
    { "bridge", "auth", RIGHT_CLUSTER, "authorization.k8s.io", "subjectaccessreviews", NULL,
      "create", "asks whether they may" },

    { "bridge-workload", NULL, RIGHT_CLUSTER, CORE, "nodes", NULL, "get,list,watch,patch",
      "asks at Nodes and reads the answers" },
    { "bridge-workload", "workload-requests", RIGHT_CLUSTER, MAINTENANCE_GROUP, REQUESTS, NULL,
      "list,watch,create,patch", "asks with MaintenanceRequests" },
    { "bridge-workload", "workload-drained", RIGHT_CLUSTER, CORE, "pods,namespaces", NULL, "list",
      "sees whether a Node is drained" },
    { "bridge-workload", "workload-account", RIGHT_CLUSTER, RBAC,
      "clusterroles,clusterrolebindings", NULL, "create",
      "makes the role of the bridge's account" },
    { "bridge-workload", "workload-account", RIGHT_CLUSTER, RBAC, "clusterroles", BRIDGE_ACCOUNT,
      "get,patch", "keeps that role narrow" },
    { "bridge-workload", "workload-account", RIGHT_CLUSTER, RBAC, "clusterrolebindings",
      BRIDGE_ACCOUNT, "get,patch,delete", "keeps its binding right" },
    { "bridge-workload", "workload-account", RIGHT_SYSTEM, CORE, "serviceaccounts", NULL, "create",
      "makes the account" },
    { "bridge-workload", "workload-account", RIGHT_SYSTEM, CORE, "serviceaccounts", BRIDGE_ACCOUNT,
      "get", "sees whether the account is there" },
    { "bridge-workload", "workload-account", RIGHT_SYSTEM, CORE, "serviceaccounts/token",
      BRIDGE_ACCOUNT, "create", "gets the account's tokens" },

    { "actor", NULL, RIGHT_CLUSTER, MAINTENANCE_GROUP, REQUESTS, NULL,
      "get,list,watch,create,patch", "asks, waits and says when it is done" },
    { "actor", NULL, RIGHT_CLUSTER, CORE, "nodes", NULL, "get,list",
      "sees whether the node is there" },

    { "override", NULL, RIGHT_CLUSTER, MAINTENANCE_GROUP, REQUESTS, NULL, "override",
      "passes by the policy" },

    { "viewer", NULL, RIGHT_HOME, COORDINATION, "leases", NULL, "list", "finds the leader" },
    { "viewer", NULL, RIGHT_HOME, CORE, "pods/proxy", NULL, "get",
      "asks it through the API server" },
};
const uint32_t rights_count = ARRAY_LEN(rights);

bool rights_has_role(struct str name)
{
    for (uint32_t i = 0; i < right_roles_count; i++) {
        if (str_eq(name, str_from(right_roles[i].name))) {
            return true;
        }
    }
    return false;
}

bool rights_has_use(struct str name)
{
    for (uint32_t i = 0; i < right_uses_count; i++) {
        if (str_eq(name, str_from(right_uses[i].name))) {
            return true;
        }
    }
    return false;
}

/* ── rules ─────────────────────────────────────────────────────────────────────────────────── */

/* What one role may do with one resource: a row of a table that becomes rules. */
struct grant_row {
    struct str group, resource, names;
    unsigned verbs; /* bits of rights_verbs */
    bool used;      /* a rule has it */
};

static unsigned verb_bits(const char *verbs)
{
    struct str rest = str_from(verbs);
    struct str verb;
    unsigned bits = 0;
    while (str_split_next(&rest, ',', &verb)) {
        bool known = false;
        for (unsigned i = 0; i < ARRAY_LEN(rights_verbs); i++) {
            if (str_eq(verb, str_from(rights_verbs[i]))) {
                bits |= 1u << i;
                known = true;
            }
        }
        ASSERT(known);
    }
    return bits;
}

static bool right_is_asked(const struct right *right, const struct right_query *query)
{
    if (right->scope != query->scope || !str_eq(query->role, str_from(right->role))) {
        return false;
    }
    for (uint32_t i = 0; i < query->leave_out_n; i++) {
        if (right->use != NULL && str_eq(query->leave_out[i], str_from(right->use))) {
            return false;
        }
    }
    return true;
}

static void rows_add(struct grant_row *rows, uint32_t *n, const struct right *right)
{
    struct str rest = str_from(right->resources);
    struct str resource;
    struct str group = str_from(right->group);
    struct str names = right->names != NULL ? str_from(right->names) : STR_NONE;
    while (str_split_next(&rest, ',', &resource)) {
        uint32_t at = 0;
        while (at < *n && !(str_eq(rows[at].group, group) && str_eq(rows[at].resource, resource) &&
                            str_eq(rows[at].names, names))) {
            at++;
        }
        if (at == *n) {
            ASSERT(*n < rights_count * RIGHT_RESOURCES_MAX);
            rows[(*n)++] =
                (struct grant_row){ .group = group, .resource = resource, .names = names };
        }
        rows[at].verbs |= verb_bits(right->verbs);
    }
}

static void rule_fill(struct right_rule *rule, struct grant_row *rows, uint32_t n, uint32_t first,
                      struct arena *out)
{
    const struct grant_row *like = &rows[first];
    *rule = (struct right_rule){
        .group = like->group,
        .names = like->names,
        .resources = ARENA_ARRAY(out, struct str, n),
        .verbs = ARENA_ARRAY(out, struct str, ARRAY_LEN(rights_verbs)),
    };
    for (unsigned i = 0; i < ARRAY_LEN(rights_verbs); i++) {
        if ((like->verbs & 1u << i) != 0) {
            rule->verbs[rule->verb_n++] = str_from(rights_verbs[i]);
        }
    }
    for (uint32_t i = first; i < n; i++) {
        struct grant_row *row = &rows[i];
        if (!row->used && row->verbs == like->verbs && str_eq(row->group, like->group) &&
            str_eq(row->names, like->names)) {
            row->used = true;
            rule->resources[rule->resource_n++] = row->resource;
        }
    }
}

uint32_t rights_rules(const struct right_query *query, struct arena *out, struct right_rule **ret)
{
    const uint32_t max = rights_count * RIGHT_RESOURCES_MAX;
    struct grant_row *rows = ARENA_ARRAY(out, struct grant_row, max);
    uint32_t n = 0;
    for (uint32_t i = 0; i < rights_count; i++) {
        if (right_is_asked(&rights[i], query)) {
            rows_add(rows, &n, &rights[i]);
        }
    }
    uint32_t rule_n = 0;
    *ret = ARENA_ARRAY(out, struct right_rule, n > 0 ? n : 1);
    for (uint32_t i = 0; i < n; i++) {
        if (!rows[i].used) {
            rule_fill(&(*ret)[rule_n++], rows, n, i, out);
        }
    }
    return rule_n;
}
