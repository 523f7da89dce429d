"""`--workload-approval=requests` with a drain: the limit of a cluster with kubelets prepares the Node before it approves."""

import pytest

from bridge import fixture_bridge_env, module_bridge
from capi import DELETED, HOOK_VALUE
from objects import pod
from process import Controller
from requests_fixture import fixture_installed, fixture_objects, fixture_requests_env
from wait import holds_for, wait_for

fixture_bridge = module_bridge("--workload-approval", "requests")


@pytest.fixture(name="controller", autouse=True)
def fixture_controller(backend, tmp_path):
    with Controller(backend.kubeconfig, str(tmp_path)) as controller:
        yield controller.wait_ready()


@pytest.fixture(name="member")
def fixture_member(bridge_env, requests_env):
    """member(): a Machine whose Node is requests_env's, and has no engine."""
    cluster = bridge_env.cluster(workload="live")

    def make():
        pair = bridge_env.pair(cluster, workload="live", state=None)
        pair.mark_node({"case": requests_env.unique})
        return pair
    return make


def asked(objects, pair):
    """The states of the bridge's requests for the Node."""
    return [r["spec"]["state"] for r in objects.of("cluster-api-bridge") if r["spec"]["name"] == pair.node]


def test_a_deletion_waits_for_the_drain_of_the_limit(client, objects, requests_env, member, namespace, bridge):
    pair = member()
    limit = requests_env.limit(limit=1, drain={"evictUnmanaged": True})
    requests_env.wait_limit(limit, population=1)
    pair.wait_hook()
    client.core.create_namespaced_pod(namespace, pod("goes", node=pair.node))
    wait_for(lambda: client.core.read_namespaced_pod("goes", namespace).status.phase == "Running", "the pod runs")
    other = requests_env.ask(pair.node)
    requests_env.wait_state(other, "Approved")
    objects.move(other, "InProgress")
    pair.delete()
    pair.wait_node(DELETED)
    wait_for(lambda: asked(objects, pair) == ["Pending"], "the bridge asks")
    holds_for(lambda: pair.hook() == HOOK_VALUE, 1, "somebody else has the node")
    objects.move(other, "Completed")
    pair.wait_gone()
    assert not [p for p in client.core.list_namespaced_pod(namespace).items if p.metadata.name == "goes"]
    assert bridge.metric("drydock_bridge_patches_total", object="request", result="done") >= 2, "made, and in progress"
