"""Draining from outside: which pods go, what a budget holds, who hears of it."""

import subprocess

import pytest

from contract import PROFILE, annotation, state
from objects import budget, daemon_set, deployment, pod
from process import drydock
from profiles import events, label, read, wait_entries, wait_state
from wait import holds_for, wait_for

DRAIN = """
intervals: {requeue: 60s}
instances:
  check:
  - {type: hasLabel, name: needed, config: {key: update, value: needed}}
  - {type: hasLabel, name: done, config: {key: update, value: done}}
  trigger:
  - {type: eviction, name: drain, config: {action: drain, OPTIONS}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
profiles:
- name: drain
  operational:
    transitions: [{check: needed, next: in-maintenance, trigger: drain}]
  in-maintenance:
    transitions: [{check: done, next: operational, trigger: uncordon}]
- name: enter
  operational:
    transitions: [{check: needed, next: in-maintenance}]
  in-maintenance:
    enter: drain
    transitions: [{check: done, next: operational, trigger: uncordon}]
- name: multi
  operational:
    transitions: [{check: needed, next: in-maintenance}]
"""
PLAIN = DRAIN.replace(", OPTIONS", "")


def give(client, name, profile, **labels):
    client.core.patch_node(name, {"metadata": {"labels": {PROFILE: profile, **labels}}})


def pods_on(client, name, namespace):
    return {p.metadata.name: p for p in client.core.list_namespaced_pod(namespace).items
            if p.spec.node_name == name}


def running(client, name, namespace):
    """Names of the pods on the node that are ready and stay."""
    return sorted(n for n, p in pods_on(client, name, namespace).items()
                  if p.metadata.deletion_timestamp is None and p.status.phase == "Running"
                  and any(c.type == "Ready" and c.status == "True"
                          for c in p.status.conditions or []))


def create(client, namespace, *manifests):
    for manifest in manifests:
        client.core.create_namespaced_pod(namespace, manifest)


def hold(client, namespace, app):
    """No pod of the app may go, until the budget is deleted."""
    client.policy.create_namespaced_pod_disruption_budget(
        namespace, budget(app, app, minAvailable=1))


@pytest.mark.nodes(2)
def test_a_drain_takes_the_pods_of_its_node_and_no_other(client, nodes, namespace, unique, launch):
    one, other = nodes
    mirror = pod("mirror", node=one)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    create(client, namespace, pod("bare", node=one), pod("held", node=one), mirror,
           pod("elsewhere", node=other))
    hold(client, namespace, "held")
    client.apps.create_namespaced_daemon_set(namespace, daemon_set("agent", {"e2e": unique}))
    wait_for(lambda: len(running(client, one, namespace)) == 4 and
             len(running(client, other, namespace)) == 2, "all pods run")
    controller = launch(PLAIN)
    give(client, one, "drain", update="needed")

    wait_for(lambda: "bare" not in pods_on(client, one, namespace), what="one has gone")
    assert "held" in running(client, one, namespace)
    node = read(client, one)
    assert node.spec.unschedulable and state(node) == "operational", "not before it is drained"
    assert controller.metric("drydock_drains", kind="active") == 1
    assert controller.metric("maintenance_controller_transition_failure_count") == 0

    client.policy.delete_namespaced_pod_disruption_budget("held", namespace)
    wait_state(client, one, "in-maintenance")
    left = pods_on(client, one, namespace)
    assert "mirror" in left and len(left) == 2, "the mirror pod and that of the DaemonSet stay"
    assert len(running(client, other, namespace)) == 2
    assert not read(client, other).spec.unschedulable
    for name in ("bare", "held"):
        wait_for(lambda n=name: events(client, n, "Evicting", namespace) ==
                 ["Evicting pod during node drain"], what=f"the event of {name}")
    label(client, one, update="done")
    wait_state(client, one, "operational")
    assert not read(client, one).spec.unschedulable


@pytest.mark.nodes(1)
def test_a_drain_on_entry_ends_before_anything_else(client, nodes, namespace, launch):
    [name] = nodes
    create(client, namespace, pod("held", node=name))
    hold(client, namespace, "held")
    wait_for(lambda: running(client, name, namespace), "the pod runs")
    launch(PLAIN)
    give(client, name, "enter", update="needed")
    wait_state(client, name, "in-maintenance")
    node = wait_for(lambda: read(client, name).spec.unschedulable and read(client, name),
                    what="the node is cordoned")
    assert '"Previous":"operational"' in annotation(node)
    label(client, name, update="done")
    holds_for(lambda: state(read(client, name)) == "in-maintenance", 0.5, "the drain comes first")
    client.policy.delete_namespaced_pod_disruption_budget("held", namespace)
    wait_state(client, name, "operational")


@pytest.mark.nodes(1)
def test_force_does_not_lose_a_pod_that_is_terminating_already(client, nodes, namespace, launch,
                                                               kubelets):
    [name] = nodes
    hooked = pod("held", node=name)
    hooked["metadata"]["finalizers"] = ["e2e.example.com/hold"]
    create(client, namespace, hooked)
    wait_for(lambda: running(client, name, namespace), "the pod runs")
    kubelets.pause()
    client.core.delete_namespaced_pod("held", namespace, grace_period_seconds=1)
    controller = launch(DRAIN.replace("OPTIONS", "forceEviction: true, deletionTimeout: 1s"))
    give(client, name, "drain", update="needed")
    wait_for(lambda: read(client, name).spec.unschedulable, what="the node is cordoned")
    wait_for(lambda: events(client, "held", "ForceDeleting", namespace),
             "it is deleted without grace")
    assert state(read(client, name)) == "operational" and "held" in pods_on(client, name, namespace)
    assert controller.metric("drydock_evictions", result="accepted") == 0
    client.core.patch_namespaced_pod("held", namespace, {"metadata": {"finalizers": None}})
    wait_state(client, name, "in-maintenance")


@pytest.mark.nodes(1)
def test_a_budget_holds_a_drain_until_it_allows_one(client, nodes, namespace, unique, launch):
    [name] = nodes
    # Both replicas are on one node, and no other may take them.
    client.apps.create_namespaced_deployment(namespace, deployment("web", 2, {"e2e": unique}))
    client.policy.create_namespaced_pod_disruption_budget(
        namespace, budget("web", "web", minAvailable=2))
    wait_for(lambda: len(running(client, name, namespace)) == 2, "both replicas run")
    wait_for(lambda: client.policy.read_namespaced_pod_disruption_budget("web", namespace)
             .status.current_healthy == 2, "the budget knows")
    controller = launch(PLAIN)
    give(client, name, "drain", update="needed")
    wait_for(lambda: read(client, name).spec.unschedulable, what="the node is cordoned")
    wait_for(lambda: controller.metric("drydock_drains", kind="blocked") == 1, "it is blocked")
    assert len(running(client, name, namespace)) == 2, "no pod went that the budget holds"

    told = wait_for(lambda: [note for note in events(client, name, "DrainBlocked") if namespace in note],
                    what="the node has an event")[0]  # the sandbox's node may have older ones
    assert f"{namespace}/web-" in told and "budget web allows no disruption" in told
    held = told.split("/")[1].split(" ")[0]
    assert wait_for(lambda: events(client, held, "DrainBlocked", namespace),
                    what="the pod has an event")
    shown = controller.get(f"/api/v1/explain?node={name}")[2]
    assert "budget web allows no disruption" in shown and held in shown
    assert state(read(client, name)) == "operational"
    assert controller.metric("drydock_evictions", result="refused") == 0, "it does not knock in vain"

    client.policy.patch_namespaced_pod_disruption_budget(
        "web", namespace, {"spec": {"minAvailable": 0}})
    wait_state(client, name, "in-maintenance")
    assert not running(client, name, namespace)
    wait_for(lambda: controller.metric("drydock_drains", kind="blocked") == 0, "no drain is blocked")
    assert controller.metric("drydock_evictions", result="accepted") == 2


@pytest.mark.nodes(2)
def test_a_drain_goes_on_when_a_replica_is_back_elsewhere(client, nodes, namespace, unique, launch):
    one, other = nodes
    # A label and no cordon: a scheduler that has not heard of it yet places nothing.
    label(client, one, web=unique)
    client.apps.create_namespaced_deployment(namespace, deployment("web", 2, {"web": unique}))
    client.policy.create_namespaced_pod_disruption_budget(
        namespace, budget("web", "web", maxUnavailable=1))
    wait_for(lambda: len(running(client, one, namespace)) == 2, "both replicas run")
    wait_for(lambda: client.policy.read_namespaced_pod_disruption_budget("web", namespace)
             .status.disruptions_allowed == 1, "the budget knows")
    launch(PLAIN)
    give(client, one, "drain", update="needed")
    wait_for(lambda: len(running(client, one, namespace)) == 1, what="the first has gone")
    holds_for(lambda: len(running(client, one, namespace)) == 1, 0.5, "its budget is used up")
    label(client, other, web=unique)
    wait_state(client, one, "in-maintenance")
    wait_for(lambda: len(running(client, other, namespace)) == 2, "both run elsewhere")
    wait_entries(client, other, {"default": "operational"})


@pytest.mark.nodes(1)
def test_a_drain_that_is_aborted_leaves_no_cordon(client, backend, nodes, namespace, unique, launch):
    [name] = nodes
    client.apps.create_namespaced_deployment(namespace, deployment("web", 1, {"e2e": unique}))
    client.policy.create_namespaced_pod_disruption_budget(namespace, budget("web", "web", minAvailable=1))
    wait_for(lambda: len(running(client, name, namespace)) == 1, "the pod runs")
    wait_for(lambda: client.policy.read_namespaced_pod_disruption_budget("web", namespace)
             .status.current_healthy == 1, "the budget knows")
    controller = launch(PLAIN)
    give(client, name, "drain", update="needed")
    wait_for(lambda: controller.metric("drydock_drains", kind="blocked") == 1, "the drain is under way")
    give(client, name, "drain", update=None)
    subprocess.run([drydock(), "abort", name, "--kubeconfig", str(backend.kubeconfig)], check=True, timeout=60)
    wait_for(lambda: not read(client, name).spec.unschedulable, "the cordon is lifted")
    assert "drydock.dev/abort" not in read(client, name).metadata.annotations
    assert "drydock.dev/cordoned-by" not in read(client, name).metadata.annotations
    assert len(running(client, name, namespace)) == 1
    wait_for(lambda: controller.metric("drydock_drains", kind="blocked") == 0, "the drain has ended")
