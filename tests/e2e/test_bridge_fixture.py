"""The clusters of the suites about the bridge: Cluster API's manager, or who stands in for it, does what they rely on."""

import pytest

from bridge import HOLD, STAY, fixture_bridge_env
from capi import CAPI, PAUSED
from wait import holds_for, wait_for


def test_a_machine_finds_its_node_and_says_so_there(bridge_env):
    pair = bridge_env.pair()
    said = wait_for(lambda: CAPI + "machine" in pair.node_annotations() and pair.node_annotations(), "the Node is annotated")
    assert said[CAPI + "machine"] == pair.machine.name
    assert said[CAPI + "cluster-namespace"] == pair.machine.space


def test_a_hook_holds_a_deletion_and_the_node_goes_with_the_machine(bridge_env):
    pair = bridge_env.pair(annotations={HOLD: "e2e"})
    pair.delete()
    wait_for(lambda: pair.reason() == "WaitingForPreDrainHook", "the hook is waited for")
    assert "waitForPreDrainHookStartTime" in wait_for(lambda: pair.read()["status"].get("deletion"), "since when is told")
    holds_for(lambda: pair.deleting() and pair.node_annotations(), 0.5)
    pair.mark(annotations={HOLD: None, STAY: "e2e"})
    wait_for(lambda: pair.reason() == "WaitingForPreTerminateHook", "the other one is waited for")
    pair.mark(annotations={STAY: None})
    pair.wait_gone()
    wait_for(lambda: not pair.node_annotations(), "the Node is gone")


def test_nothing_holds_a_machine_without_a_node(bridge_env):
    pair = bridge_env.pair(node=False, annotations={HOLD: "e2e"})
    wait_for(lambda: pair.read()["metadata"].get("finalizers"), "somebody looks after it")
    pair.delete()
    pair.wait_gone()


def test_nothing_holds_the_machines_of_a_cluster_that_goes(bridge_env):
    cluster = bridge_env.cluster()
    pair = bridge_env.pair(cluster, annotations={HOLD: "e2e"})
    bridge_env.management.delete("Cluster", *cluster)
    pair.wait_gone()
    wait_for(lambda: bridge_env.management.get("Cluster", *cluster) is None, "the Cluster is gone")


def test_what_is_paused_is_left_alone(bridge_env):
    pair = bridge_env.pair(annotations={PAUSED: ""}, wait=False)
    other = bridge_env.pair()
    assert other.named()
    holds_for(lambda: not pair.named(), 0.5)
    pair.mark(annotations={PAUSED: None})
    wait_for(lambda: pair.named() == pair.node, "it goes on")


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_both_versions_are_served(bridge_env, version):
    pair = bridge_env.pair()
    where = bridge_env.management.path("Machine", *pair.machine).replace("v1beta2", version)
    status, answer = bridge_env.management.send("GET", where)
    assert (status, answer["apiVersion"]) == (200, f"cluster.x-k8s.io/{version}")
    assert answer["status"]["nodeRef"]["name"] == pair.node


# --- the manager alone: when it does not wait for a hook ---


@pytest.mark.backend("cluster")
def test_no_hook_holds_where_no_control_plane_is_known(bridge_env):
    """The likeliest trap of a lab: neither control plane Machines, nor one that is run elsewhere."""
    pair = bridge_env.pair(bridge_env.cluster(external=False), annotations={HOLD: "e2e"})
    pair.delete()
    pair.wait_gone()
    assert pair.node_annotations(), "nobody has deleted the Node"


@pytest.mark.backend("cluster")
def test_a_hook_holds_when_the_node_was_deleted_by_hand(bridge_env):
    pair = bridge_env.pair(annotations={HOLD: "e2e"})
    pair.workload.delete("Node", None, pair.node)
    pair.delete()
    wait_for(lambda: pair.reason() == "WaitingForPreDrainHook", "the hook is waited for")
    pair.mark(annotations={HOLD: None})
    pair.wait_gone()
