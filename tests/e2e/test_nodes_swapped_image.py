"""Only the image is changed: Deployments with the shape and the rights of the originals' charts run drydock, which goes on from
where the original was."""

import base64
import datetime
import os
import re

import pytest

from bridge import Pair
from capi import APPROVE_MAINTENANCE, ENABLED, LAB, MAINTAINED, Management, StandIn
from capi import DATA as CAPI_DATA
from contract import DATA, LEASE, PROFILE, STATE, data
from in_cluster import HOST, Pods, account, fixture_apply, metric, workload
from objects import budget
from profiles import label, wait_state
from real_nodes import ADDRESS, NAMES, PAUSE
from wait import holds_for, wait_for

pytestmark = pytest.mark.backend("nodes")

HOME, PATIENT = NAMES
SYSTEM = "kube-system"
MANAGER = "maintenance-controller"
CONFIG = """\
intervals: {requeue: 30s, notify: 5h}
instances:
  check:
  - {type: hasLabel, name: needed, config: {key: update, value: needed}}
  - {type: hasLabel, name: done, config: {key: update, value: done}}
  - {type: maxMaintenance, name: one, config: {max: 1}}
  trigger:
  - {type: eviction, name: cordon, config: {action: cordon}}
  - {type: eviction, name: drain, config: {action: drain}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
  notify: []
profiles:
- name: flatcar
  operational:
    transitions: [{check: needed, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: needed && one, trigger: cordon && drain, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: done, trigger: uncordon, next: operational}]
"""
SINCE = "2026-01-02T03:04:05.678901234Z"  # nanoseconds, as Go writes them


def role(kind, *rules):
    """role("Role", (group, resources, verbs)…)"""
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "rules": [
        {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()} for group, resources, verbs in rules]}


# What the chart of the original gives, and nothing else.
ALL = "create delete get list patch update watch"
MANAGER_ROLES = [
    role("ClusterRole",
         ("coordination.k8s.io", "leases", ALL), ("", "events", "create patch update"), ("", "nodes", ALL),
         ("", "nodes/status", "get patch update"), ("", "pods", ALL), ("", "pods/eviction", "create"),
         ("apps", "deployments daemonsets replicasets statefulsets", "get list watch")),
    role("Role", ("", "configmaps", ALL), ("coordination.k8s.io", "leases", ALL), ("", "events", "create patch")),
]


def secret(name, **files):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque",
            "data": {key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in files.items()}}


def manager(image):
    mounts = {"config": "/config", "cloudconfig": "/provider"}
    return workload(MANAGER, 1, image, serviceAccountName=MANAGER, terminationGracePeriodSeconds=71, nodeSelector={HOST: HOME}, container={
        "command": ["/manager"], "args": ["--enable-leader-election"],
        "volumeMounts": [{"name": name, "mountPath": path, "readOnly": True} for name, path in mounts.items()],
        "resources": {kind: {"cpu": "100m", "memory": "256Mi"} for kind in ("limits", "requests")},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8081}, "initialDelaySeconds": 3, "periodSeconds": 3},
        "ports": [{"name": "metrics", "containerPort": 8080}],
    }, volumes=[{"name": name, "secret": {"secretName": f"{MANAGER}-{name}"}} for name in mounts])


@pytest.fixture(name="recorded")
def fixture_recorded(client):
    """The objects that the original has left: one node in maintenance, the other not, and a Lease that it renewed just now."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    left = {}
    for name, current, cordoned in ((HOME, "operational", None), (PATIENT, "in-maintenance", True)):
        left[name] = data({"flatcar": (SINCE, current, current)}, {"mail": "0001-01-01T00:00:00Z"})
        client.core.patch_node(name, {
            "metadata": {"labels": {PROFILE: "flatcar", STATE: current}, "annotations": {DATA: left[name]}},
            "spec": {"unschedulable": cordoned}})
    client.leases.create_namespaced_lease(SYSTEM, {"metadata": {"name": LEASE}, "spec": {
        "holderIdentity": f"{MANAGER}-6d5f7c9b8-x2x4z_4b1f0f0e-5c1d-4b0e-9a53-0c8b4e6d2f10", "leaseDurationSeconds": 15,
        "acquireTime": now, "renewTime": now, "leaseTransitions": 3}})
    yield left
    client.leases.delete_namespaced_lease(LEASE, SYSTEM)
    for name in left:
        keys = {PROFILE: None, STATE: None, "update": None}
        client.core.patch_node(name, {"metadata": {"labels": keys, "annotations": {DATA: None}}, "spec": {"unschedulable": None}})


def missing_rights(log):
    return re.findall(r'A right is missing.*?right="?(.*?)"? effect=', log)


def test_the_manager_goes_on_from_where_the_original_was(apply, client, image, namespace, recorded):
    apply(SYSTEM, *account(MANAGER, SYSTEM, *MANAGER_ROLES), secret(f"{MANAGER}-config", maintenance_yaml=CONFIG),
          secret(f"{MANAGER}-cloudconfig", cloudprovider_conf="[Global]\n"), manager(image))
    pods = Pods(client, SYSTEM, f"app={MANAGER}")
    pod, = pods.wait_ready(1)

    def lease():
        return client.leases.read_namespaced_lease(LEASE, SYSTEM).spec
    assert lease().holder_identity.startswith(f"{MANAGER}-6d5f7c9b8-x2x4z_"), "nobody knows yet that the original is gone"
    wait_for(lambda: lease().holder_identity.startswith(pod.metadata.name + "_"), "it leads")
    assert lease().lease_transitions == 4 and lease().lease_duration_seconds == 15
    wait_for(lambda: metric(pod, "leader_election_master_status") == 1, "it says so")

    def left_alone():
        return all(client.core.read_node(name).metadata.annotations[DATA] == text for name, text in recorded.items())
    holds_for(left_alone, 1, "what the original wrote stands")

    # A cordon without drydock's mark may be anybody's.
    label(client, PATIENT, update="done")
    assert wait_state(client, PATIENT, "operational").spec.unschedulable
    client.core.patch_node(PATIENT, {"spec": {"unschedulable": None}})

    spread = [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway",
               "labelSelector": {"matchLabels": {"app": "web"}}}]
    apply(namespace, workload("web", 2, PAUSE, topologySpreadConstraints=spread), budget("web", "web", minAvailable=2))
    web = Pods(client, namespace, "app=web")
    wait_for(lambda: {pod.spec.node_name for pod in web.ready()} == set(NAMES), "web is on both nodes")
    label(client, PATIENT, update="needed")
    wait_for(lambda: metric(pod, "drydock_drains", kind="blocked") == 1, "the server refuses the eviction", interval=0.2)
    client.apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    assert wait_state(client, PATIENT, "in-maintenance").spec.unschedulable
    assert {pod.spec.node_name for pod in web.all()} == {HOME}
    label(client, PATIENT, update="done")
    assert not wait_state(client, PATIENT, "operational").spec.unschedulable

    told = [event for event in client.core.list_namespaced_event("default", field_selector="reason=ChangedMaintenanceState").items
            if event.involved_object.name == PATIENT]
    assert told and told[-1].source.component == "maintenance", "Events go where the role lets them"
    assert sorted(missing_rights(pods.log(pod))) == [
        "create and patch events of the group events.k8s.io", "list and watch poddisruptionbudgets of the group policy"]
    status = pods.all()[0].status.container_statuses[0]
    assert status.restart_count == 0


# ── the bridge ───────────────────────────────────────────────────────────────────────────────

BRIDGE = "runtime-extension-maintenance-controller"
BRIDGE_ROLE = role("ClusterRole",
                   ("", "secrets", "get list watch"), ("cluster.x-k8s.io", "machines", "get list patch update watch"),
                   ("coordination.k8s.io", "leases", ALL), ("", "events", "create patch update"))
BRIDGE_ADDED = role("ClusterRole", ("cluster.x-k8s.io", "clusters machinedrainrules", "list watch"))


def bridge(image):
    return workload(BRIDGE, 1, image, serviceAccountName=BRIDGE, nodeSelector={HOST: HOME}, securityContext={
        "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}, container={
            "command": [f"/{BRIDGE}"], "ports": [{"name": "metrics", "containerPort": 8080}],
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}})


@pytest.fixture(name="machine")
def fixture_machine(backend, client, namespace):
    """A Machine of a Cluster that is this one, and whose Node is a real one."""
    management = Management(backend.access)
    management.install(os.path.join(CAPI_DATA, "v1beta2.yaml"), LAB)
    provider = f"lab://{namespace}/{PATIENT}"
    client.core.patch_node(PATIENT, {"metadata": {"labels": {STATE: "operational"}}, "spec": {"providerID": provider}})
    server = f"https://{ADDRESS}:{backend.access.port}"
    inside = backend.access.variant(os.path.join(backend.folder, "inside.kubeconfig"), cluster={"server": server})
    with open(inside, encoding="utf-8") as f:
        cluster = management.cluster(namespace, "itself", f.read())
    made = management.machine(cluster, "one", provider, labels={ENABLED: "true"})
    with StandIn(management):  # no manager of Cluster API: it has to do with the image as little as with the node
        yield Pair(management, management, made, PATIENT)
    for kind, name in (("Machine", made.name), ("Cluster", cluster.name)):
        management.patch(kind, namespace, name, {"metadata": {"finalizers": None}})
    client.core.patch_node(PATIENT, {"metadata": {"labels": {STATE: None, APPROVE_MAINTENANCE: None}}})


def test_the_bridge_says_what_it_lacks_and_goes_on_when_it_has_it(apply, client, image, machine, namespace):
    apply(namespace, *account(BRIDGE, namespace, BRIDGE_ROLE), bridge(image))
    pods = Pods(client, namespace, f"app={BRIDGE}")
    pod, = pods.wait_ready(1)
    wait_for(lambda: 'clusters.cluster.x-k8s.io is forbidden' in pods.log(pod), "it says that it may not read Clusters")

    apply(namespace, *account(f"{BRIDGE}-added", namespace, BRIDGE_ADDED)[1:2], {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"{BRIDGE}-added"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{BRIDGE}-added"},
        "subjects": [{"kind": "ServiceAccount", "name": BRIDGE, "namespace": namespace}]})
    machine.wait_hook()
    machine.ask("requested")
    machine.wait_node(MAINTAINED)
    machine.approve(APPROVE_MAINTENANCE)
    machine.wait_maintenance("approved")
    machine.ask(None)
    machine.wait_node(MAINTAINED, None)
    told = re.findall(r"management cluster error=(.*)", pods.log(pod))
    assert len(told) == len(set(told)), told
    assert missing_rights(pods.log(pod)) == ["create and patch events of the group events.k8s.io"]
    assert client.leases.read_namespaced_lease(BRIDGE, namespace).spec.holder_identity.startswith(pod.metadata.name + "_")
    assert pods.all()[0].status.container_statuses[0].restart_count == 0
