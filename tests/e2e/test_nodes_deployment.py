"""The image as it is meant to run: a Deployment on a real node that takes another real node through maintenance."""

import re

import pytest

from contract import LEASE, PROFILE
from in_cluster import HOST, RESTRICTED, USER, Pods, account, fixture_apply, metric, workload
from objects import budget
from profiles import label, wait_state
from real_nodes import NAMES, PAUSE
from test_requests_rights import roles
from wait import wait_for

pytestmark = pytest.mark.backend("nodes")

HOME, PATIENT = NAMES
CONFIG = """\
intervals: {requeue: 30s}
instances:
  check:
  - {type: hasLabel, name: needed, config: {key: update, value: needed}}
  - {type: hasLabel, name: done, config: {key: update, value: done}}
  trigger:
  - {type: eviction, name: drain, config: {action: drain}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
profiles:
- name: cycle
  operational:
    transitions: [{check: needed, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: needed, trigger: drain, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: done, trigger: uncordon, next: operational}]
"""


def controller(image):
    probe = {"httpGet": {"path": "/readyz", "port": 8081}, "periodSeconds": 1}
    return workload("drydock", 2, image, serviceAccountName="drydock", nodeSelector={HOST: HOME}, securityContext=USER, container={
        "args": ["controller", "--enable-leader-election", "--metrics-timeout", "1s"],
        "readinessProbe": probe, "livenessProbe": {**probe, "httpGet": {"path": "/healthz", "port": 8081}},
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": RESTRICTED, "volumeMounts": [{"name": "config", "mountPath": "/config"}],
    }, volumes=[{"name": "config", "configMap": {"name": "drydock"}}])


@pytest.fixture(name="replicas")
def fixture_replicas(apply, client, image, namespace):
    """Two, with the rights that `drydock rbac` prints."""
    granted = [roles()[kind, "drydock-controller"] for kind in ("ClusterRole", "Role")]
    apply(namespace, *account("drydock", namespace, *granted), controller(image),
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "drydock"}, "data": {"maintenance.yaml": CONFIG}})
    pods = Pods(client, namespace, "app=drydock")
    pods.wait_ready(2)
    return pods


@pytest.fixture(name="patient")
def fixture_patient(client):
    """The second node. Afterwards nodes are as they were before."""
    yield PATIENT
    for name in NAMES:
        client.core.patch_node(name, {"metadata": {"labels": {PROFILE: None, "update": None}}, "spec": {"unschedulable": None}})


def leader(client, replicas):
    def held():
        holder = client.leases.read_namespaced_lease(LEASE, replicas.namespace).spec.holder_identity
        return holder and replicas.named(holder)
    return wait_for(held, "one of them leads")


def test_it_runs_with_no_rights_on_its_machine(backend, replicas):
    pids = wait_for(lambda: backend.on(HOME, "pgrep", "-x", "drydock").split(), "its processes are there")
    assert len(pids) == 2
    for pid in pids:
        status = backend.on(HOME, "cat", f"/proc/{pid}/status")
        assert re.search(r"^Uid:(\s+65532){4}$", status, re.M), status
        assert re.search(r"^CapEff:\s+0+$", status, re.M), status
        assert re.search(r"^NoNewPrivs:\s+1$", status, re.M), status
        assert re.search(r"^Seccomp:\s+2$", status, re.M), status
        root, = re.findall(r"^\S+ / \S+ (\S+)", backend.on(HOME, "cat", f"/proc/{pid}/mounts"), re.M)
        assert "ro" in root.split(","), root


def test_a_node_goes_through_maintenance_when_the_budget_allows_it(apply, client, replicas, namespace, patient):
    spread = [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway",
               "labelSelector": {"matchLabels": {"app": "web"}}}]
    apply(namespace, workload("web", 2, PAUSE, topologySpreadConstraints=spread), budget("web", "web", minAvailable=2))
    web = Pods(client, namespace, "app=web")
    before = {pod.spec.node_name: pod.metadata.name for pod in web.wait_ready(2)}
    assert set(before) == set(NAMES), before

    label(client, patient, update="needed", **{PROFILE: "cycle"})
    boss = leader(client, replicas)
    wait_for(lambda: metric(boss, "drydock_drains", kind="blocked") == 1, "the budget holds the drain up", interval=0.2)
    assert client.core.read_node(patient).spec.unschedulable
    assert before[patient] in [pod.metadata.name for pod in web.ready()]

    client.apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    wait_state(client, patient, "in-maintenance")
    assert {pod.spec.node_name for pod in web.all()} == {HOME}
    web.wait_ready(3)

    label(client, patient, update="done")
    node = wait_state(client, patient, "operational")
    assert not node.spec.unschedulable
    client.core.delete_collection_namespaced_pod(namespace, label_selector="app=web")
    wait_for(lambda: patient in {pod.spec.node_name for pod in web.ready()}, "it has pods again", interval=0.2)


def test_the_other_replica_leads_when_the_leader_is_gone(client, replicas, patient):
    boss = leader(client, replicas)
    client.core.delete_namespaced_pod(boss.metadata.name, replicas.namespace)
    wait_for(lambda: leader(client, replicas).metadata.name != boss.metadata.name, "another one leads")
    label(client, patient, update="needed", **{PROFILE: "cycle"})
    wait_state(client, patient, "in-maintenance")
    label(client, patient, update="done")
    wait_state(client, patient, "operational")
