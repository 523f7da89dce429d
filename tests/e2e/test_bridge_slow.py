"""What takes a while on purpose: a Node that is gone must be seen to be gone twice, half a minute apart, and so must a kind; an
approval that is left over is the engine's for a minute. All clocks begin together, so the module takes as long as the longest."""

import pytest

from bridge import BridgeEnv, end_all
from capi import APPROVE_MAINTENANCE, DELETED, HOOK_VALUE, MAINTAINED, RULES, STATE, status_of
from process import Bridge
from wait import wait_for


class Clocks:
    pass


@pytest.fixture(scope="module", name="clocks")
def fixture_clocks(bridge_clusters, tmp_path_factory):
    """Two bridges, one of which holds Machines without a Node, and what they are to find out. The server of a third does not
    know MachineDrainRules, as Cluster API before 1.9."""
    folder = tmp_path_factory.mktemp("slow")
    bridge_env = BridgeEnv(bridge_clusters, "slow" + folder.parent.name.rsplit("-", 1)[-1], folder)
    clocks, running = Clocks(), []
    spaces = {name: bridge_clusters.management.space(f"{bridge_env.unique}-{name}") for name in ("release", "hold")}
    for name, space in spaces.items():
        running.append(Bridge(bridge_clusters.home.kubeconfig, str(folder), name, [
            "--lease-namespace", space, "--namespace", space, "--on-missing-node", name]).wait_ready())
    clocks.old, past = bridge_env.auth_proxy("management"), bridge_clusters.management.space(f"{bridge_env.unique}-past")
    clocks.old.answer = lambda request: 404 if "/machinedrainrules" in request.path else None
    clusters = {name: bridge_env.cluster(space=space) for name, space in {**spaces, "past": past}.items()}
    clocks.gone, clocks.held = bridge_env.pair(clusters["release"]), bridge_env.pair(clusters["hold"])
    clocks.back = bridge_env.pair(clusters["release"])
    clocks.maintained, clocks.kept = bridge_env.pair(clusters["release"]), bridge_env.pair(clusters["release"])
    clocks.auth_proxy = bridge_env.auth_proxy()
    clocks.dark = bridge_env.pair(bridge_env.cluster(clocks.auth_proxy.kubeconfig(), space=spaces["release"]))
    for pair in bridge_env.made:
        pair.wait_hook()
    clocks.ruled = bridge_env.pair(clusters["past"])
    clocks.ruled.ask("requested")
    running.append(Bridge(clocks.old.file(folder / "past"), str(folder), "past", ["--lease-namespace", past, "--namespace", past]))
    wait_for(lambda: status_of(bridge_clusters.management, clocks.ruled.machine).get("reason") == "DrainRulesUnknown", "once is not enough")
    for pair in (clocks.maintained, clocks.kept):
        pair.ask("requested")
        pair.wait_node(MAINTAINED)
        pair.approve(APPROVE_MAINTENANCE)
        pair.wait_maintenance("approved")
    clocks.kept.mark_node({STATE: "in-maintenance"})
    for pair in (clocks.maintained, clocks.kept):
        pair.ask(None)
        pair.wait_node(MAINTAINED, None)
    clocks.auth_proxy.shut()
    for pair in (clocks.gone, clocks.held, clocks.back, clocks.dark):
        pair.workload.delete("Node", None, pair.node)
    for pair in (clocks.gone, clocks.held, clocks.back, clocks.dark):
        pair.delete()
    bridge_env.add_node(clocks.back, "lab://another-provider-id/" + clocks.back.node)
    yield clocks
    try:
        end_all(running)
    finally:
        bridge_env.clean()


def test_a_node_that_is_gone_holds_no_deletion(clocks):
    """B27."""
    clocks.gone.wait_gone()
    assert clocks.gone.events("NodeMissing") or clocks.gone.events("HookReleased")
    assert clocks.dark.hook() == HOOK_VALUE, "of what cannot be asked nothing is known"


def test_a_node_that_came_back_holds_it(clocks):
    assert clocks.back.hook() == HOOK_VALUE
    clocks.back.wait_node(DELETED)


def test_a_missing_node_holds_where_that_is_wanted(clocks):
    assert clocks.held.hook() == HOOK_VALUE


def test_an_approval_that_is_left_over_is_taken_away(clocks):
    """B16: once the engine says that the node is in service and has had its time."""
    clocks.maintained.wait_node(APPROVE_MAINTENANCE, None)
    assert clocks.kept.node_labels()[APPROVE_MAINTENANCE] == "true", "its engine is not done"


def test_a_cluster_that_cannot_be_reached_is_told_of(clocks):
    """Once it is worth a word, and not at every hiccup."""
    clocks.dark.wait_event("ClusterUnreachable")
    assert clocks.dark.hook() == HOOK_VALUE


def test_a_server_without_the_kind_has_no_drain_rules(clocks):
    clocks.ruled.wait_node(MAINTAINED)
    assert clocks.ruled.node_annotations()[RULES] == "[]"
    assert clocks.old.rejected(404) >= 2
