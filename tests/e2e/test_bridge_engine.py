"""Both halves: the bridge in the management cluster, and the controller with a profile in the workload cluster."""

import pytest
import yaml

from bridge import fixture_bridge_env, module_bridge
from capi import APPROVE_DELETION, APPROVE_MAINTENANCE, DELETED, HOOK_VALUE, MAINTAINED, REBOOT, STATE
from conftest import node_ready
from contract import PROFILE
from objects import budget, pod
from wait import holds_for, wait_for

fixture_bridge = module_bridge("--enable-metal3-maintenance")


def profile(name, asked, approve):
    """A node is drained when somebody asks by a label, the answer is another label, and both go again."""
    return {
        "name": name,
        "operational": {"transitions": [{"check": asked, "next": "maintenance-required"}]},
        "maintenance-required": {"transitions": [
            {"check": f"!{asked}", "next": "operational"},
            {"check": "one", "next": "in-maintenance", "trigger": f"drain && {approve}"}]},
        "in-maintenance": {"transitions": [
            {"check": f"!{asked}", "next": "operational", "trigger": f"withdraw_{approve} && uncordon"}]}}


def alter(name, key, **config):
    return {"type": "alterLabel", "name": name, "config": {"key": key, **config}}


ENGINE = yaml.safe_dump({
    "intervals": {"requeue": "60s"},
    "instances": {
        "check": [
            {"type": "hasLabel", "name": "deleted", "config": {"key": DELETED, "value": "true"}},
            {"type": "hasLabel", "name": "maintained", "config": {"key": MAINTAINED, "value": "true"}},
            {"type": "maxMaintenance", "name": "one", "config": {"max": 1}}],
        "trigger": [
            {"type": "eviction", "name": "drain", "config": {"action": "drain"}},
            {"type": "eviction", "name": "uncordon", "config": {"action": "uncordon"}},
            alter("approve_deletion", APPROVE_DELETION, value="true"),
            alter("withdraw_approve_deletion", APPROVE_DELETION, remove=True),
            alter("approve_maintenance", APPROVE_MAINTENANCE, value="true"),
            alter("withdraw_approve_maintenance", APPROVE_MAINTENANCE, remove=True)],
        "notify": []},
    "profiles": [profile("capi-deletion", "deleted", "approve_deletion"),
                 profile("capi-maintenance", "maintained", "approve_maintenance")]}, sort_keys=False)


@pytest.fixture(name="cluster")
def fixture_cluster(bridge_env):
    return bridge_env.cluster(workload="live")


@pytest.fixture(name="member")
def fixture_member(bridge_env, client, cluster):
    """member(): a Machine whose Node has a kubelet and both profiles."""
    def make(**kwargs):
        pair = bridge_env.pair(cluster, workload="live", state=None, **kwargs)
        pair.mark_node({PROFILE: "capi-deletion--capi-maintenance"})
        wait_for(lambda: node_ready(client.core.read_node(pair.node)), "its kubelet is there")
        return pair
    return make


def runs(client, namespace, name):
    found = client.core.read_namespaced_pod(name, namespace)
    return found.metadata.deletion_timestamp is None and found.status.phase == "Running"


def pods(client, namespace):
    return [p.metadata.name for p in client.core.list_namespaced_pod(namespace).items]


def test_a_machine_is_deleted_after_its_node_is_drained(client, namespace, launch, member):
    pair, other = member(), member()
    launch(ENGINE)
    for each in (pair, other):
        each.wait_hook()
    client.core.create_namespaced_pod(namespace, pod("goes", node=pair.node))
    client.core.create_namespaced_pod(namespace, pod("held", node=pair.node))
    client.core.create_namespaced_pod(namespace, pod("stays", node=other.node))
    client.policy.create_namespaced_pod_disruption_budget(namespace, budget("held", "held", minAvailable=1))
    wait_for(lambda: all(runs(client, namespace, name) for name in ("goes", "held", "stays")), "the pods run")
    pair.delete()
    wait_for(lambda: sorted(pods(client, namespace)) == ["held", "stays"], "what may go is gone")
    holds_for(lambda: pair.hook() == HOOK_VALUE, 1, "a budget holds the drain, and so the deletion")
    client.policy.delete_namespaced_pod_disruption_budget("held", namespace)
    pair.wait_gone()
    assert pods(client, namespace) == ["stays"]
    pair.wait_event("HookReleased")
    assert other.hook() == HOOK_VALUE
    assert not client.core.read_node(other.node).spec.unschedulable


def test_a_maintenance_takes_its_turn_and_comes_back(bridge_env, client, namespace, launch, member):
    """From the request to the host that is switched off, and back when the request is taken away."""
    name = f"{bridge_env.unique}-m0"
    host = bridge_env.host(consumer=name)
    pair = member(provider=f"metal3://default/{host['name']}/{name}")
    other = member()
    launch(ENGINE)
    for each in (pair, other):
        each.wait_hook()
    client.core.create_namespaced_pod(namespace, pod("goes", node=pair.node))
    wait_for(lambda: runs(client, namespace, "goes"), "the pod runs")

    def off():
        return REBOOT in bridge_env.management.annotations("BareMetalHost", "default", host["name"])
    for _ in range(2):  # the second time needs another approval, and gets it
        pair.ask("requested")
        pair.wait_maintenance("approved")
        wait_for(off, "the host is to be switched off")
        assert pods(client, namespace) == []
        assert client.core.read_node(pair.node).spec.unschedulable
        other.ask("requested")
        other.wait_node(STATE, "maintenance-required")
        holds_for(lambda: other.maintenance() == "requested", 0.5, "one at a time")
        pair.ask(None)
        wait_for(lambda: not off(), "the host is to be on")
        pair.wait_node(STATE, "operational")
        wait_for(lambda: not client.core.read_node(pair.node).spec.unschedulable, "pods may come again")
        wait_for(lambda: APPROVE_MAINTENANCE not in pair.node_labels(), "the approval is used up")
        other.wait_maintenance("approved")
        other.ask(None)
        other.wait_node(STATE, "operational")


def test_a_request_that_is_taken_back_gives_the_node_back(client, launch, member):
    """While it waits for its turn: it is neither drained nor approved."""
    pair, busy = member(), member()
    launch(ENGINE)
    for each in (pair, busy):
        each.wait_hook()
    busy.ask("requested")
    busy.wait_maintenance("approved")
    pair.ask("requested")
    pair.wait_node(STATE, "maintenance-required")
    pair.ask(None)
    pair.wait_node(MAINTAINED, None)
    pair.wait_node(STATE, "operational")
    node = client.core.read_node(pair.node)
    assert not node.spec.unschedulable and APPROVE_MAINTENANCE not in node.metadata.labels
    busy.ask(None)
    busy.wait_node(STATE, "operational")
