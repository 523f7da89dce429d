"""The bridge beside the manager of Cluster API: deletions end as they should, also where the manager honours no hook."""

import pytest

from bridge import STAY, fixture_bridge_env, module_bridge
from capi import CAPI, DELETED, ENABLED, HOOK, HOOK_VALUE, MAINTAINED, OWN
from wait import holds_for, wait_for

pytestmark = pytest.mark.backend("cluster")

fixture_bridge = module_bridge()

CONTROL_PLANE = CAPI + "control-plane"


def unschedulable(pair):
    return pair.workload.get("Node", None, pair.node)["spec"].get("unschedulable", False)


def test_a_deletion_waits_for_the_engine_and_then_drains(bridge_env):
    pair = bridge_env.pair(annotations={STAY: "e2e"})
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    wait_for(lambda: pair.reason() == "WaitingForPreDrainHook", "the hook is waited for")
    message = next(c["message"] for c in pair.read()["status"]["conditions"] if c["type"] == "Deleting")
    assert HOOK in message
    holds_for(lambda: not unschedulable(pair) and pair.hook() == HOOK_VALUE, 1)
    pair.approve()
    wait_for(lambda: pair.reason() == "WaitingForPreTerminateHook", "it is drained")
    assert unschedulable(pair)
    pair.mark(annotations={STAY: None})
    pair.wait_gone()
    wait_for(lambda: pair.workload.get("Node", None, pair.node) is None, "the Node is gone")


def test_a_deletion_goes_on_when_the_machine_is_disabled(bridge_env):
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.delete()
    wait_for(lambda: pair.reason() == "WaitingForPreDrainHook", "the hook is waited for")
    pair.mark({ENABLED: None})
    pair.wait_gone()


def test_a_cluster_goes_with_machines_in_every_state(bridge_env):
    cluster = bridge_env.cluster()
    calm, asking, leaving = (bridge_env.pair(cluster) for _ in range(3))
    for pair in (calm, asking, leaving):
        pair.wait_hook()
    asking.ask("requested")
    asking.wait_node(MAINTAINED)
    leaving.delete()
    wait_for(lambda: leaving.reason() == "WaitingForPreDrainHook", "the hook is waited for")
    bridge_env.management.delete("Cluster", *cluster)
    for pair in (calm, asking, leaving):
        pair.wait_gone()
    wait_for(lambda: bridge_env.management.get("Cluster", *cluster) is None, "the Cluster is gone")


def test_where_no_hook_is_honoured_nothing_of_ours_stays_on_the_node(bridge_env):
    """Neither control plane Machines nor an external one: the manager waits for nobody, and leaves the Node."""
    cluster = bridge_env.cluster(external=False)
    other = bridge_env.pair(cluster)
    pair = bridge_env.pair(cluster)
    for each in (other, pair):
        each.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.delete()
    pair.wait_gone()
    pair.wait_node(MAINTAINED, None)
    pair.wait_node(DELETED, None)
    wait_for(lambda: not [key for key in pair.node_annotations() if key.startswith(OWN)], "nothing of ours is left")
    assert other.hook() == HOOK_VALUE


def test_the_last_control_plane_machine_is_not_held(bridge_env):
    cluster = bridge_env.cluster(external=False)
    leader, worker = bridge_env.pair(cluster, labels={CONTROL_PLANE: ""}), bridge_env.pair(cluster)
    for pair in (leader, worker):
        pair.wait_hook()
    worker.delete()
    wait_for(lambda: worker.reason() == "WaitingForPreDrainHook", "the worker is held")
    leader.delete()
    leader.wait_gone()
    worker.touch()
    worker.mark(annotations={"e2e.example.com/touch": "1"})
    worker.wait_gone()


def test_a_hook_is_released_when_the_manager_is_back(bridge_env, bridge_clusters, bridge):
    """Its webhooks are in the way of every write to a Machine while it is down."""
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    wait_for(lambda: pair.reason() == "WaitingForPreDrainHook", "the hook is waited for")
    bridge_clusters.home.kill("capi-manager")
    try:
        pair.approve()
        wait_for(lambda: bridge.metric("drydock_bridge_patches_total", object="machine", result="failed") >= 2,
                 "its patch is refused, and sent again")
        assert pair.hook() == HOOK_VALUE and bridge.health("/healthz")[0] == 200
    finally:
        bridge_clusters.home.start_manager()
    pair.wait_gone()


def test_both_versions_show_the_same(bridge_env):
    """Read through v1beta1, as an older client would, the Machine carries what was written through v1beta2."""
    pair = bridge_env.pair()
    pair.wait_hook()
    status, answer = bridge_env.management.send("GET", bridge_env.management.path("Machine", *pair.machine).replace("v1beta2", "v1beta1"))
    assert status == 200 and answer["metadata"]["annotations"][HOOK] == HOOK_VALUE
