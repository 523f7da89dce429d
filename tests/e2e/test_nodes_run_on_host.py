"""`drydock run-on-host` where it belongs: in Jobs on a real node that is cordoned."""

import json

import pytest

from in_cluster import fixture_apply
from real_nodes import NAMES, reported_boot_id, wait_rebooted
from wait import wait_for

pytestmark = pytest.mark.backend("nodes")

PATIENT = NAMES[1]


@pytest.fixture(name="cordoned")
def fixture_cordoned(client):
    client.core.patch_node(PATIENT, {"spec": {"unschedulable": True}})
    yield PATIENT
    client.core.patch_node(PATIENT, {"spec": {"unschedulable": None}})


@pytest.fixture(name="run_job")
def fixture_run_job(apply, client, image, namespace, cordoned):
    """run_job(name, argument…, script=…): a Job as operations make it; its pod, once it has ended."""
    def run(name, *arguments, script=None):
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [cordoned]}]}]}}}
        container = {"name": "run", "image": image, "command": ["drydock", "run-on-host", *arguments],
                     "env": [{"name": "DD_SCRIPT", "value": script}] if script else [],
                     "securityContext": {"privileged": True, "runAsUser": 0},
                     "terminationMessagePolicy": "FallbackToLogsOnError"}
        apply(namespace, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
            "backoffLimit": 0, "podReplacementPolicy": "Failed", "template": {"spec": {
                "restartPolicy": "Never", "hostPID": True, "hostNetwork": True, "affinity": affinity,
                "automountServiceAccountToken": False,
                "tolerations": [{"operator": "Exists"}], "containers": [container]}}}})

        def ended():
            pods = client.core.list_namespaced_pod(namespace, label_selector=f"job-name={name}").items
            return next((pod for pod in pods if pod.status.phase in ("Succeeded", "Failed")), None)
        return wait_for(ended, f"the Job {name} has ended", interval=0.2)

    return run


def terminated(pod):
    return pod.status.container_statuses[0].state.terminated


def test_a_script_changes_the_machine(backend, run_job, cordoned):
    pod = run_job("changes", script="hostname; id -u; systemctl is-active kubelet; echo was here >/etc/motd; touch /run/reboot-required")
    assert pod.status.phase == "Succeeded" and pod.spec.node_name == cordoned
    assert json.loads(terminated(pod).message) == {"exitCode": 0, "rebootRequired": True, "stopped": False}
    assert backend.on(cordoned, "cat", "/etc/motd") == "was here\n"
    backend.on(cordoned, "rm", "/run/reboot-required")


def test_a_failure_is_told_in_the_pods_status(client, run_job, namespace):
    pod = run_job("fails", script="#!/bin/bash\nhostname; echo no space on ${HOSTNAME:-nowhere} >&2; exit 3")
    assert pod.status.phase == "Failed" and terminated(pod).exit_code == 3
    told = json.loads(terminated(pod).message)
    assert (told["exitCode"], told["rebootRequired"]) == (3, False)
    assert told["output"].startswith(f"{PATIENT}\nno space on ")
    log = client.core.read_namespaced_pod_log(pod.metadata.name, namespace)
    assert log == told["output"], "what it printed is the pod's log, too"


def test_nothing_to_do_is_no_failure(run_job):
    pod = run_job("idle", script="exit 77")
    assert pod.status.phase == "Succeeded"
    assert json.loads(terminated(pod).message)["exitCode"] == 77


def test_a_reboot_is_carried_out_once(backend, client, run_job, cordoned):
    before = reported_boot_id(client, cordoned)
    assert before == backend.boot_id(cordoned)
    run_job("reboots", "--reboot", "--expect-boot-id", before)
    node = wait_rebooted(client, cordoned, before)
    after = node.status.node_info.boot_id
    assert after == backend.boot_id(cordoned)
    assert node.spec.unschedulable, "it comes back cordoned, as it went"

    again = run_job("reboots-again", "--reboot", "--expect-boot-id", before)
    assert again.status.phase == "Succeeded" and terminated(again).exit_code == 0
    assert backend.boot_id(cordoned) == after, "an order for an earlier boot is old"
