/*
 * keys: every label, annotation, Lease name and API path that drydock shares with other programs,
 * each on which object and who writes it.
 *
 * Those of the original systems stand as they are in their code. Our own have the domain
 * drydock.dev. A key that has a second form (_TEXT for a sentence, _QUERY for a URL) has it beside
 * it. tools/layers sees to it that no such text stands anywhere else.
 */
#pragma once

#include "base/str.h"

#define KEYS_LEGACY "runtime-extension-maintenance-controller.cloud.sap/"
#define KEYS_OWN "drydock.dev/"

#define KEYS_TRUE STR("true")

/* ── APIs ────────────────────────────────────────────────────────────────────────────────────── */

/* Of MaintenanceRequest, MaintenanceLimit and MaintenanceSelector. */
#define MAINTENANCE_GROUP "repairman.k8s.io"
#define MAINTENANCE_API_VERSION MAINTENANCE_GROUP "/v1"
#define MAINTENANCE_PATH "/apis/" MAINTENANCE_API_VERSION
#define MAINTENANCE_REQUESTS_PATH MAINTENANCE_PATH "/maintenancerequests"
#define MAINTENANCE_LIMITS_PATH MAINTENANCE_PATH "/maintenancelimits"
#define MAINTENANCE_SELECTORS_PATH MAINTENANCE_PATH "/maintenanceselectors"

/* Of NodeMaintenance, NodeOperationTemplate, MaintenanceWindow, NodeSeries and NodeState. */
#define OPERATION_GROUP "drydock.dev"
#define OPERATION_API_VERSION OPERATION_GROUP "/v1alpha1"
#define OPERATION_PATH "/apis/" OPERATION_API_VERSION
#define NODE_MAINTENANCES_PATH OPERATION_PATH "/nodemaintenances"
#define NODE_OPERATION_TEMPLATES_PATH OPERATION_PATH "/nodeoperationtemplates"
#define MAINTENANCE_WINDOWS_PATH OPERATION_PATH "/maintenancewindows"
#define NODE_SERIES_PATH OPERATION_PATH "/nodeseries"
#define NODE_STATES_PATH OPERATION_PATH "/nodestates" /* in all namespaces */

#define CAPI_GROUP "cluster.x-k8s.io"                      /* Cluster API: Machine, Cluster, … */
#define CAPI_SECRET_TYPE_QUERY "cluster.x-k8s.io%2Fsecret" /* of its Secrets with kubeconfigs */
#define METAL3_API_VERSION "metal3.io/v1alpha1"            /* BareMetalHost */

/* Hypervisor, of the operator of OpenStack's compute hosts; each has the name of its Node. */
#define HYPERVISORS_GROUP "kvm.cloud.sap"
#define HYPERVISORS_NAME "hypervisors." HYPERVISORS_GROUP
#define HYPERVISORS_PATH "/apis/" HYPERVISORS_GROUP "/v1/hypervisors"

/* Where the API of Kubernikus is: the region stands between the two. */
#define KUBERNIKUS_URL_BEFORE "https://kubernikus."
#define KUBERNIKUS_URL_BEHIND ".cloud.sap"

/* ── Lease ───────────────────────────────────────────────────────────────────────────────────── */

/* Names of the leaders' Leases: those of the originals, so that old and new never lead at once. */
#define CORE_LEASE_NAME STR("maintenance-controller-leader-election.cloud.sap")
#define BRIDGE_LEASE_NAME STR("runtime-extension-maintenance-controller")

/* Annotation of the controller's Lease: grants of profiles whose patches are under way. */
#define KEY_LEASE_GRANTS STR(KEYS_OWN "grants")

/* Annotation of the controller's Lease: messages about drains and requests that are not sent yet,
 * and which drains were told of; profile/alert_record.h. */
#define KEY_LEASE_ALERTS STR(KEYS_OWN "alerts")

/* Annotation of the controller's Lease; set by people (`drydock pause`), the value is the reason:
 * nothing new is granted, and no pod is evicted, until it is gone (`drydock resume`). */
#define KEY_ALL_PAUSED_TEXT KEYS_OWN "paused"
#define KEY_ALL_PAUSED STR(KEY_ALL_PAUSED_TEXT)

/* A Lease that locks one target. */
#define KEY_LOCK STR("repairman.k8s.io/lock") /* label; "target" */
#define KEY_LOCK_QUERY "repairman.k8s.io%2Flock"
#define KEY_LOCK_HOLDER STR("repairman.k8s.io/holder") /* annotation: the request's name */
#define KEY_LOCK_TARGET STR("repairman.k8s.io/target") /* annotation: "type/namespace/name" */
#define KEY_LOCK_GRANT STR("repairman.k8s.io/grant")   /* annotation: the grant's number */

/* ── Node ────────────────────────────────────────────────────────────────────────────────────── */

/* Of the profiles. */
#define KEY_PROFILE STR("cloud.sap/maintenance-profile") /* label; set by people */
#define KEY_STATE STR("cloud.sap/maintenance-state")     /* label; of all profiles together */
#define KEY_OPERATIONAL STR("operational")               /* its value */
#define KEY_DATA STR("cloud.sap/maintenance-data")       /* annotation; profile/node_data.h */
#define KEY_LOG_DETAILS STR("cloud.sap/maintenance-log-details") /* label; "true" */
#define KEY_FENCE STR(KEYS_OWN "fence") /* annotation: shuts out the patch of an earlier leader */

/* Labels of Kubernikus: whether the kubelet has another version than the API server; and, "true",
 * that the node is to be drained and its server deleted, which people or a profile ask for. */
#define KEY_KUBELET_NEEDS_UPDATE STR("cloud.sap/kubelet-needs-update")
#define KEY_DELETE_NODE STR("cloud.sap/delete-node")
#define KEY_DELETING_TEXT KEYS_OWN "deleting"
#define KEY_DELETING STR(KEY_DELETING_TEXT) /* annotation; "true": that has begun */

/* Annotation; set by people (`drydock abort`), any value: every profile of the node is given up.
 * The controller removes it when that is done. */
#define KEY_ABORT STR(KEYS_OWN "abort")

/* Annotations that say for whom the node was cordoned, so that nobody else's cordon is lifted. */
#define KEY_PROFILE_CORDON STR(KEYS_OWN "cordoned-by")         /* for a profile */
#define KEY_REQUEST_CORDON STR("repairman.k8s.io/cordoned-by") /* for a MaintenanceRequest */
#define KEY_VISIT_CORDON STR(KEYS_OWN "visit-cordon") /* for a visit of operations: its id */
/* The same for labels that a visit of operations has set: its id. */
#define KEY_VISIT_LABELS STR(KEYS_OWN "visit-labels")
/* Label of Kubernetes: cloud providers take the node out of their load balancers. */
#define KEY_NO_LOAD_BALANCER STR("node.kubernetes.io/exclude-from-external-load-balancers")
/* A visit failed, and left it: the UID of the NodeMaintenance. */
#define KEY_KEPT_CORDON STR(KEYS_OWN "kept-cordon")

/* Labels by which the bridge asks and the maintenance engine of the workload cluster answers. */
#define KEY_MACHINE_DELETED STR(KEYS_LEGACY "machine-deleted")
#define KEY_MACHINE_MAINTENANCE STR(KEYS_LEGACY "machine-maintenance")
#define KEY_APPROVE_DELETION STR(KEYS_LEGACY "approve-deletion")       /* the engine's */
#define KEY_APPROVE_MAINTENANCE STR(KEYS_LEGACY "approve-maintenance") /* the engine's */

/* Annotations of the bridge: which request the label beside it stands for. */
#define KEY_DELETION_REQUEST STR(KEYS_OWN "deletion-request")       /* the Machine's UID */
#define KEY_MAINTENANCE_REQUEST STR(KEYS_OWN "maintenance-request") /* the Machine's UID/number */
/* And of an engine that says which one it answers. */
#define KEY_DELETION_APPROVED_FOR STR(KEYS_OWN "deletion-approved-for")
#define KEY_MAINTENANCE_APPROVED_FOR STR(KEYS_OWN "maintenance-approved-for")
/* Beside a request: the MachineDrainRules that apply to the Machine, for whoever drains the Node;
 * drain/drain_rules.h. */
#define KEY_DRAIN_RULES_TEXT KEYS_OWN "drain-rules"
#define KEY_DRAIN_RULES STR(KEY_DRAIN_RULES_TEXT)

/* Of nodes that are virtual machines on ESX hosts. */
#define KEY_ESX_HOST STR("kubernetes.cloud.sap/host") /* label: the host's name */
#define KEY_ZONE                                                                                   \
    STR("failure-domain.beta.kubernetes.io/zone")        /* label; its last byte is the ESX zone */
#define KEY_ESX_MODE STR("cloud.sap/esx-in-maintenance") /* label; true, false, alarm, unknown */
#define KEY_ESX_REBOOT_OK STR("cloud.sap/esx-reboot-ok") /* label; "true": may be shut down */
#define KEY_ESX_VERSION STR("cloud.sap/esx-version")     /* label: of the host's product */
#define KEY_ESX_INITIATED_TEXT "cloud.sap/esx-reboot-initiated"
#define KEY_ESX_INITIATED STR(KEY_ESX_INITIATED_TEXT) /* annotation; "true": we shut it down */
#define KEY_ESX_SHUTDOWN_TEXT KEYS_OWN "esx-shutdown"
#define KEY_ESX_SHUTDOWN STR(KEY_ESX_SHUTDOWN_TEXT) /* annotation: since when it is told to end */
#define KEY_ESX_CORDON_TEXT KEYS_OWN "esx-cordon"
#define KEY_ESX_CORDON STR(KEY_ESX_CORDON_TEXT) /* annotation; "others": was cordoned before */

/* Annotations of Cluster API. */
#define KEY_NODE_MACHINE STR("cluster.x-k8s.io/machine")
#define KEY_NODE_NAMESPACE STR("cluster.x-k8s.io/cluster-namespace")

/* ── Pod ─────────────────────────────────────────────────────────────────────────────────────── */

#define KEY_POD_DRAIN STR("cluster.x-k8s.io/drain") /* label of Cluster API; "skip", … */

/* ── MaintenanceRequest ──────────────────────────────────────────────────────────────────────── */

#define KEY_CLIENT STR("maintenancerequests.repairman.k8s.io/clientname") /* label: who asks */
#define KEY_CLIENT_QUERY "maintenancerequests.repairman.k8s.io%2Fclientname"
#define KEY_BRIDGE_REQUEST STR(KEYS_OWN "bridge-request") /* annotation: which of a Machine's */
#define KEY_CREATED_BY STR(KEYS_OWN "created-by")         /* annotation: the user; for the policy */
#define KEY_RUN STR(KEYS_OWN "run") /* annotation: the run of the actor that took the approval */
#define KEY_EXIT_CODE_TEXT KEYS_OWN "exit-code"
#define KEY_EXIT_CODE STR(KEY_EXIT_CODE_TEXT) /* annotation: of the work; "0" when it succeeded */

#define KEY_VISIT STR(KEYS_OWN "visit")         /* annotation: the visit that it was made for */
#define VISIT_CLIENT "drydock-node-maintenance" /* KEY_CLIENT of all visits */
#define KEY_WITHDRAWN STR(KEYS_OWN "withdrawn") /* annotation; "true": given up before the work */

/* ── Machine ─────────────────────────────────────────────────────────────────────────────────── */

#define KEY_ENABLED STR(KEYS_LEGACY "enabled")         /* label; exactly "true" */
#define KEY_MAINTENANCE STR(KEYS_LEGACY "maintenance") /* label; "requested" or "approved" */
#define KEY_REQUESTED STR("requested")
#define KEY_APPROVED STR("approved")
#define KEY_HOOK STR("pre-drain.delete.hook.machine.cluster.x-k8s.io/maintenance-controller")
#define KEY_HOOK_VALUE STR("runtime-extension-maintenance-controller")

/* Of Cluster API. */
#define KEY_WATCH_FILTER_QUERY "cluster.x-k8s.io%2Fwatch-filter" /* label */
#define KEY_CLUSTER_NAME STR("cluster.x-k8s.io/cluster-name")    /* label */
#define KEY_CONTROL_PLANE STR("cluster.x-k8s.io/control-plane")  /* label; any value */
#define KEY_PAUSED STR("cluster.x-k8s.io/paused")                /* annotation; any value */
#define KEY_SKIP_REMEDIATION STR("cluster.x-k8s.io/skip-remediation")
#define KEY_UPDATE_IN_PROGRESS STR("in-place-updates.internal.cluster.x-k8s.io/update-in-progress")
#define KEY_PENDING_HOOKS STR("runtime.cluster.x-k8s.io/pending-hooks")

/* Our own annotations. */
#define KEY_RELEASED STR(KEYS_OWN "hook-released")      /* while deleting: why; it is never back */
#define KEY_GRANTED STR(KEYS_OWN "maintenance-granted") /* the request that `approved` answered */
#define KEY_APPROVED_ASIDE                                                                         \
    STR(KEYS_OWN "maintenance-approved")               /* "true", beside a template's label */
#define KEY_SKIP_OURS STR(KEYS_OWN "skip-remediation") /* "true": the other one is ours */
#define KEY_STATUS STR(KEYS_OWN "bridge-status")       /* JSON: phase, reason, since */
#define KEY_HOLD_SECONDS STR(KEYS_OWN "deletion-hold-seconds") /* read only */
#define KEY_POWER STR(KEYS_OWN "power")                        /* "on" or "off" */
#define KEY_POWER_MODE STR(KEYS_OWN "power-mode")              /* read only: "hard" */

/* ── BareMetalHost ───────────────────────────────────────────────────────────────────────────── */

/* Annotations. */
#define KEY_REBOOT STR("reboot.metal3.io/runtime-extension-maintenance-controller")
#define KEY_REBOOT_OWNER STR(KEYS_OWN "reboot-owner")         /* UID of the Machine */
#define KEY_HOST_PAUSED STR("baremetalhost.metal3.io/paused") /* Metal3's; any value */

/* ── Job of a NodeMaintenance ────────────────────────────────────────────────────────────────── */

#define KEY_JOB_MANAGED STR(KEYS_OWN "managed") /* label; "true" */
#define KEY_JOB_MANAGED_QUERY "drydock.dev%2Fmanaged"
#define KEY_JOB_MAINTENANCE STR(KEYS_OWN "maintenance") /* label: the object's name */
#define KEY_JOB_OPERATION STR(KEYS_OWN "operation")     /* label */
#define KEY_JOB_REVISION STR(KEYS_OWN "revision")       /* label: its first 16 digits */
#define KEY_JOB_MACHINE_HASH STR(KEYS_OWN "machine")    /* label: a name may not fit */
#define KEY_JOB_MACHINE STR(KEYS_OWN "machine-name")    /* annotation */
#define KEY_JOB_HASH STR(KEYS_OWN "job-hash")           /* annotation: of the Job's spec */
/* On NodeOperationTemplates that come with the program: an operation that uses it, as YAML. */
#define KEY_TEMPLATE_EXAMPLE STR(KEYS_OWN "example")

/* ── Secret ──────────────────────────────────────────────────────────────────────────────────── */

/* Label of people on a Secret of the Jobs' namespace: tokens for servers outside, "outbound". */
#define KEY_SECRET_USE_TEXT KEYS_OWN "use"
#define KEY_SECRET_USE STR(KEY_SECRET_USE_TEXT)
#define SECRET_USE_OUTBOUND STR("outbound")

/* ── NodeMaintenance ─────────────────────────────────────────────────────────────────────────── */

#define NODE_MAINTENANCE_FINALIZER STR(KEYS_OWN "node-maintenance")
/* Annotations of people; never removed, status.handled says which were acted upon. */
#define KEY_OPERATION_APPROVE_TEXT KEYS_OWN "approve"
#define KEY_OPERATION_APPROVE                                                                      \
    STR(KEY_OPERATION_APPROVE_TEXT)                 /* "<revision>/<wave>[@tick] by <user>" */
#define KEY_OPERATION_RESUME STR(KEYS_OWN "resume") /* "<revision>" */
#define KEY_OPERATION_RERUN_TEXT KEYS_OWN "rerun"
#define KEY_OPERATION_RERUN STR(KEY_OPERATION_RERUN_TEXT) /* "<operation>[/<machine>]@<time>" */
#define KEY_OPERATION_RUN STR(KEYS_OWN "run")             /* "<operation>/<machine>@<time>" */
#define KEY_OPERATION_ABANDON STR(KEYS_OWN "abandon")     /* "true": the finalizer goes at once */
/* Label of people on a NodeMaintenance, Node or ExternalMachine: nothing new starts; "true". */
/* On ConfigMaps that keep what was done on a machine. */
#define KEY_HISTORY_TEXT KEYS_OWN "history"
#define KEY_HISTORY_QUERY "drydock.dev%2Fhistory"
#define KEY_HOLD_TEXT KEYS_OWN "hold"
#define KEY_HOLD STR(KEY_HOLD_TEXT)
#define KEY_HOLD_FOR_TEXT KEYS_OWN "hold." /* and a NodeMaintenance's name: for that one alone */
