/*
 * keys: every label, annotation and value that the bridge reads or writes, and on which object.
 *
 * Those of the original stand as they are in its code. Our own have one domain.
 */
#pragma once

#include "base/str.h"

#define KEYS_LEGACY "runtime-extension-maintenance-controller.cloud.sap/"
#define KEYS_OWN "drydock.dev/"

#define KEYS_TRUE STR("true")

/* ── Machine ─────────────────────────────────────────────────────────────────────────────────── */

#define KEY_ENABLED STR(KEYS_LEGACY "enabled")         /* label; exactly "true" */
#define KEY_MAINTENANCE STR(KEYS_LEGACY "maintenance") /* label; "requested" or "approved" */
#define KEY_REQUESTED STR("requested")
#define KEY_APPROVED STR("approved")
#define KEY_HOOK STR("pre-drain.delete.hook.machine.cluster.x-k8s.io/maintenance-controller")
#define KEY_HOOK_VALUE STR("runtime-extension-maintenance-controller")

#define KEY_CLUSTER_NAME STR("cluster.x-k8s.io/cluster-name")   /* label */
#define KEY_CONTROL_PLANE STR("cluster.x-k8s.io/control-plane") /* label; any value */
#define KEY_PAUSED STR("cluster.x-k8s.io/paused")               /* annotation; any value */
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

/* ── Node ────────────────────────────────────────────────────────────────────────────────────── */

#define KEY_MACHINE_DELETED STR(KEYS_LEGACY "machine-deleted")         /* label */
#define KEY_MACHINE_MAINTENANCE STR(KEYS_LEGACY "machine-maintenance") /* label */
#define KEY_APPROVE_DELETION STR(KEYS_LEGACY "approve-deletion")       /* label; the engine's */
#define KEY_APPROVE_MAINTENANCE STR(KEYS_LEGACY "approve-maintenance") /* label; the engine's */
#define KEY_STATE STR("cloud.sap/maintenance-state")                   /* label; the engine's */
#define KEY_OPERATIONAL STR("operational")

#define KEY_NODE_MACHINE STR("cluster.x-k8s.io/machine")             /* annotation; CAPI's */
#define KEY_NODE_NAMESPACE STR("cluster.x-k8s.io/cluster-namespace") /* annotation; CAPI's */

/* Our own annotations: which request the label beside it stands for. */
#define KEY_DELETION_REQUEST STR(KEYS_OWN "deletion-request")       /* the Machine's UID */
#define KEY_MAINTENANCE_REQUEST STR(KEYS_OWN "maintenance-request") /* the Machine's UID/number */
/* Beside a request: the MachineDrainRules that apply to the Machine, for whoever drains the Node.
 * DRAIN_RULES_ANNOTATION of drain/drain_rules.h, "drydock.dev/drain-rules". */
/* And of an engine that says which one it answers. */
#define KEY_DELETION_APPROVED_FOR STR(KEYS_OWN "deletion-approved-for")
#define KEY_MAINTENANCE_APPROVED_FOR STR(KEYS_OWN "maintenance-approved-for")

/* ── MaintenanceRequest ──────────────────────────────────────────────────────────────────────── */

#define MAINTENANCE_API_VERSION "repairman.k8s.io/v1"
#define MAINTENANCE_REQUESTS_PATH "/apis/" MAINTENANCE_API_VERSION "/maintenancerequests"

#define KEY_CLIENT STR("maintenancerequests.repairman.k8s.io/clientname") /* label: who asks */
#define KEY_CLIENT_QUERY "maintenancerequests.repairman.k8s.io%2Fclientname"
#define KEY_BRIDGE_REQUEST STR(KEYS_OWN "bridge-request") /* annotation: which of a Machine's */
#define KEY_RUN STR(KEYS_OWN "run") /* annotation: the run of the actor that took the approval */
#define KEY_EXIT_CODE_TEXT KEYS_OWN "exit-code"
#define KEY_EXIT_CODE STR(KEY_EXIT_CODE_TEXT) /* annotation: of the work; "0" when it succeeded */

/* ── BareMetalHost ───────────────────────────────────────────────────────────────────────────── */

/* Annotations. */
#define KEY_REBOOT STR("reboot.metal3.io/runtime-extension-maintenance-controller")
#define KEY_REBOOT_OWNER STR(KEYS_OWN "reboot-owner")         /* UID of the Machine */
#define KEY_HOST_PAUSED STR("baremetalhost.metal3.io/paused") /* Metal3's; any value */
