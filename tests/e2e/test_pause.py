"""The pause of everything, from outside: an annotation of the controller's Lease, by drydock or by kubectl."""

import json
import subprocess

import pytest

from objects import budget, deployment
from process import drydock
from profiles import read, wait_state
from test_drain import PLAIN, give, running
from wait import holds_for, wait_for

LEASE = "maintenance-controller-leader-election.cloud.sap"
REASON = "the storage is down"


def tool(backend, *arguments, check=True):
    return subprocess.run([drydock(), *arguments, "--kubeconfig", str(backend.kubeconfig)], check=check, timeout=60,
                          capture_output=True, text=True)


def hold_pod(client, name, namespace, unique):
    """A pod on the node that its budget lets not go."""
    client.apps.create_namespaced_deployment(namespace, deployment("web", 1, {"e2e": unique}))
    client.policy.create_namespaced_pod_disruption_budget(namespace, budget("web", "web", minAvailable=1))
    wait_for(lambda: len(running(client, name, namespace)) == 1, "the pod runs")
    wait_for(lambda: client.policy.read_namespaced_pod_disruption_budget("web", namespace).status.current_healthy == 1,
             "the budget knows")


def let_pod_go(client, namespace):
    client.policy.patch_namespaced_pod_disruption_budget("web", namespace, {"spec": {"minAvailable": 0}})
    wait_for(lambda: client.policy.read_namespaced_pod_disruption_budget("web", namespace)
             .status.disruptions_allowed == 1, "the budget would let it go")


def check_shown(backend, controller, name):
    """Everybody who looks sees it."""
    said = f"everything is paused: {REASON} ("
    status = json.loads(controller.get("/api/v1/status")[2])
    assert status["paused"].startswith(said)
    address = f"http://127.0.0.1:{controller.metrics_port}"
    assert f"PAUSED   {said}" in tool(backend, "status", "--address", address).stdout
    explained = json.loads(tool(backend, "explain", name, "--address", address, "-o", "json").stdout)
    assert explained["waits"].startswith(said)
    assert "; pods stay, " + said in explained["drain"]
    ready, _, body = controller.health("/readyz?verbose")
    assert ready == 200
    assert said in str(body)


def events(client, namespace):
    found = client.custom.list_namespaced_custom_object("events.k8s.io", "v1", namespace, "events")["items"]
    return {e["reason"] for e in found if e["regarding"]["kind"] == "Lease"}


@pytest.mark.nodes(1)
def test_everything_stops_and_goes_on(client, backend, nodes, namespace, unique, launch):
    [name] = nodes
    flags = ["--enable-leader-election", "--lease-namespace", namespace]
    hold_pod(client, name, namespace, unique)
    controller = launch(PLAIN, flags=flags)
    give(client, name, "drain", update="needed")
    wait_for(lambda: controller.metric("drydock_drains", kind="blocked") == 1, "the drain is under way")
    out = tool(backend, "pause", "-n", namespace, "--reason", REASON).stdout
    assert out.startswith(f"everything is paused: {REASON} (20")
    wait_for(lambda: controller.metric("drydock_paused") == 1, "the leader has seen it")
    wait_for(lambda: "EverythingPaused" in events(client, namespace), "an Event says so")
    let_pod_go(client, namespace)
    holds_for(lambda: len(running(client, name, namespace)) == 1, 1, "nobody evicts it")
    check_shown(backend, controller, name)
    controller.stop()
    second = launch(PLAIN, name="second", flags=flags)
    wait_for(lambda: second.metric("leader_election_master_status", name=LEASE) == 1, "another leads")
    assert second.metric("drydock_paused") == 1
    holds_for(lambda: len(running(client, name, namespace)) == 1, 1, "nor does the next leader")
    assert read(client, name).metadata.labels["cloud.sap/maintenance-state"] == "operational"
    assert tool(backend, "resume", "-n", namespace).stdout == "everything goes on\n"
    wait_state(client, name, "in-maintenance")
    assert second.metric("drydock_paused") == 0
    assert tool(backend, "resume", "-n", namespace).stdout == "nothing was paused\n"


@pytest.mark.nodes(1)
def test_kubectl_pauses_a_controller_without_election(client, backend, nodes, namespace, unique, launch, kubectl):
    [name] = nodes
    hold_pod(client, name, namespace, unique)
    tool(backend, "pause", "-n", namespace)  # makes the Lease, which nobody holds
    kubectl("annotate", "lease", "-n", namespace, LEASE, "--overwrite", f"drydock.dev/paused={REASON}")
    controller = launch(PLAIN, flags=["--lease-namespace", namespace])
    wait_for(lambda: controller.metric("drydock_paused") == 1, "it finds the pause when it starts")
    let_pod_go(client, namespace)
    give(client, name, "drain", update="needed")
    holds_for(lambda: not read(client, name).spec.unschedulable, 1, "nothing begins")
    kubectl("annotate", "lease", "-n", namespace, LEASE, "drydock.dev/paused-")
    wait_state(client, name, "in-maintenance")


def test_a_pause_names_what_is_missing(backend, namespace):
    done = tool(backend, "pause", "--context", "no-such-context", check=False)
    assert done.returncode == 1
    assert "no-such-context" in done.stderr
    done = tool(backend, "pause", "worker-7", check=False)
    assert (done.returncode, "NodeMaintenance 'worker-7'" in done.stderr) == (1, True), done.stderr
    done = tool(backend, "abort", "worker-7", check=False)
    assert (done.returncode, "node 'worker-7'" in done.stderr) == (1, True), done.stderr
    assert tool(backend, "resume", "-n", namespace).stdout == "nothing was paused\n"
