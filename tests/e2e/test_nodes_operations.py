"""NodeMaintenances on real nodes: scripts, packages and reboots, from the object to the machine."""

import os
import uuid

import pytest
import yaml

from backend import ROOT
from in_cluster import HOST, Pods, fixture_apply, fixture_helm, keep_logs, workload
from local_apt import build_package, installed_version, publish
from operation_cases import make, path
from real_nodes import NAMES, PAUSE, reported_boot_id, wait_rebooted
from wait import wait_for

pytestmark = pytest.mark.backend("nodes")

HOME, PATIENT = NAMES
PACKAGE = "drydock-greeting"


@pytest.fixture(name="restricted")
def fixture_own_namespace(namespace):
    """Of the controller alone: Jobs have a namespace of their own."""
    return namespace


@pytest.fixture(name="operate")
def fixture_operate(backend, client, helm, image, kubectl, restricted, tmp_path):
    """operate(operation, field=…): a NodeMaintenance of the second node with that operation; its name. The controller runs on the
    first."""
    jobs = f"{restricted}-jobs"
    repository, tag = image.rsplit(":", 1)
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"}, "replicaCount": 1, "nodeSelector": {HOST: HOME},
        "crds": {"keep": False}, "operations": {"enabled": True, "jobsNamespace": jobs}, "extraArgs": ["--metrics-timeout=1s"],
    }), encoding="utf-8")
    helm("install", "drydock", os.path.join(ROOT, "deploy", "helm", "drydock"), "--values", str(values), "--wait", "--timeout", "2m")
    kubectl("apply", "-f", os.path.join(ROOT, "src", "kinds", "templates", "apt-upgrade.yaml"))
    made = []

    def operate(operation, **spec):
        name = "m" + uuid.uuid4().hex[:8]
        body = make("nodemaintenances", name, {"nodeSeries": {"names": [PATIENT]}, "operations": [{"name": "work", **operation}], **spec})
        status, answer = backend.access.request("POST", path("nodemaintenances") + "?fieldValidation=Strict", body)
        assert status == 201, answer
        made.append(name)
        return name

    yield operate
    keep_logs(backend, client, jobs)
    for name in made:
        with open(os.path.join(backend.folder, "pods", name + ".yaml"), "w", encoding="utf-8") as f:
            f.write(kubectl("get", "nodemaintenance", name, "--output", "yaml"))
        backend.access.request("DELETE", path("nodemaintenances", name))
    client.core.patch_node(PATIENT, {"spec": {"unschedulable": None}})


@pytest.fixture(name="phase")
def fixture_phase(backend):
    def phase(name):
        return backend.access.request("GET", path("nodemaintenances", name))[1].get("status", {}).get("phase")
    return phase


def wait_in_service(client):
    wait_for(lambda: not client.core.read_node(PATIENT).spec.unschedulable, "the node is in service again")


def test_a_script_runs_once_on_a_machine_that_was_drained(apply, backend, client, namespace, operate, phase):
    apply(namespace, workload("web", 1, PAUSE, affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "preference": {"matchExpressions": [{"key": HOST, "operator": "In", "values": [PATIENT]}]}}]}}))
    web = Pods(client, namespace, "app=web")
    pod, = web.wait_ready(1)
    assert pod.spec.node_name == PATIENT
    script = "echo $DD_MACHINE $DD_OPERATION >>/etc/drydock-was-here"
    name = operate({"type": "one-shot", "script": script}, disruption={"drain": {"timeout": "5m"}})
    wait_for(lambda: phase(name) == "Complete", "the operation is complete", interval=0.2)
    assert backend.on(PATIENT, "cat", "/etc/drydock-was-here") == f"{PATIENT} work\n"
    wait_in_service(client)
    assert {pod.spec.node_name for pod in web.wait_ready(1)} == {HOME}, "web was drained"


def test_packages_are_upgraded_at_a_tick(backend, client, operate, tmp_path):
    old, new = (build_package(tmp_path, PACKAGE, version) for version in ("1.0", "2.0"))
    publish(backend, PATIENT, [old])
    backend.on(PATIENT, "apt-get", "update")
    backend.on(PATIENT, "apt-get", "install", "--yes", PACKAGE)
    assert installed_version(backend, PATIENT, PACKAGE) == "1.0"
    publish(backend, PATIENT, [new])
    before = reported_boot_id(client, PATIENT)
    operate({"type": "cron", "schedule": "* * * * *",
             "template": {"name": "drydock-apt-upgrade", "parameters": {"packages": [PACKAGE]}}})
    wait_for(lambda: installed_version(backend, PATIENT, PACKAGE) == "2.0", "the package is upgraded", interval=0.5)
    wait_in_service(client)
    assert reported_boot_id(client, PATIENT) == before, "nobody asked for a reboot"


def test_a_machine_is_rebooted(backend, client, operate, phase):
    before = reported_boot_id(client, PATIENT)
    name = operate({"type": "one-shot", "reboot": {"policy": "Always"}}, rollout={"minReady": "1s"})
    wait_rebooted(client, PATIENT, before)
    wait_for(lambda: phase(name) == "Complete", "the operation is complete", interval=0.2)
    wait_in_service(client)
    after = reported_boot_id(client, PATIENT)
    assert after == backend.boot_id(PATIENT) != before
