"""Machines under the limits of their workload cluster: the bridge asks with MaintenanceRequests, a controller there grants."""

import subprocess

import pytest

from requests_api import KINDS, Requests, path
from bridge import fixture_serve, fixture_bridge_env
from capi import APPROVE_DELETION, APPROVE_MAINTENANCE, DELETED, HOOK, MAINTAINED, OWN
from process import Controller, drydock
from wait import holds_for, wait_for

CLIENT = "cluster-api-bridge"
GROUP = "e2e.example.com/group"  # whose limit it is


@pytest.fixture(name="limits", scope="module", autouse=True)
def fixture_limits(bridge_clusters, tmp_path_factory):
    """A controller in workload cluster "one", which has the kinds."""
    server = bridge_clusters.servers["one"]
    with Controller(server.kubeconfig, str(tmp_path_factory.mktemp("controller")),
                    flags=["--install-crds", "--lease-namespace", "default"]) as controller:
        wait_for(lambda: all(server.access.request("GET", path(plural))[0] == 200 for plural in KINDS), "the kinds are served")
        yield controller.wait_ready()


class RequestsEnv:
    """Pairs under a limit of their own, whom nobody but a limit approves."""

    def __init__(self, bridge_env, requests, unique):
        self.bridge_env, self.requests, self.unique = bridge_env, requests, unique

    def limit(self, **spec):
        status, answer = self.requests.create("maintenancelimits", self.unique, {
            "type": "node", "selector": {"matchLabels": {GROUP: self.unique}}, **spec})
        assert status == 201, answer

    def pair(self):
        pair = self.bridge_env.pair(state=None)
        pair.mark_node({GROUP: self.unique})
        return pair

    def of(self, *pairs):
        """The requests for these Nodes, in the order of their approval; those without one come last."""
        nodes = [pair.node for pair in pairs]
        found = [item for item in self.requests.of(CLIENT) if item["spec"]["name"] in nodes]
        return sorted(found, key=lambda item: item.get("status", {}).get("approvedTime", "~"))

    def states(self, *pairs):
        return sorted(item["spec"]["state"] for item in self.of(*pairs))

    def wait_one_after_another(self, *pairs):
        """All are completed, and each was approved when the one before was over."""
        done = wait_for(lambda: self.over(*pairs), f"completed: {self.states(*pairs)}")
        assert len(done) == len(pairs)
        for first, second in zip(done, done[1:]):
            assert second["status"]["approvedTime"] >= first["status"]["finishedTime"]

    def over(self, *pairs):
        found = self.of(*pairs)
        return all("finishedTime" in item.get("status", {}) for item in found) and found


@pytest.fixture(name="requests_env")
def fixture_requests_env(bridge_clusters, bridge_env, unique):
    requests = Requests(bridge_clusters.servers["one"])
    yield RequestsEnv(bridge_env, requests, unique)
    requests.clean()


def test_maintenances_follow_one_after_another_under_a_limit_of_one(requests_env, serve):
    requests_env.limit(maxCount=1)
    pairs = [requests_env.pair(), requests_env.pair()]
    serve("--workload-approval", "requests")
    for pair in pairs:
        pair.wait_hook()
    for pair in pairs:
        pair.ask("requested")
    left = list(pairs)
    while left:
        first = wait_for(lambda: next((p for p in left if p.maintenance() == "approved"), None), "one is approved")
        holds_for(lambda: sum(p.maintenance() == "approved" for p in pairs) == 1, 0.5)
        assert requests_env.states(first)[-1:] == ["InProgress"]
        first.ask(None)
        left.remove(first)
    requests_env.wait_one_after_another(*pairs)
    for pair in pairs:
        pair.wait_node(MAINTAINED, None)
        pair.wait_node(APPROVE_MAINTENANCE, None)


def test_deletions_follow_one_after_another_under_a_limit_of_one(requests_env, serve):
    requests_env.limit(maxCount=1)
    pairs = [requests_env.pair(), requests_env.pair()]
    serve("--workload-approval", "requests")
    for pair in pairs:
        pair.wait_hook()
    for pair in pairs:
        pair.delete()
    for pair in pairs:
        pair.wait_gone()
    requests_env.wait_one_after_another(*pairs)


def test_a_deletion_waits_until_the_limit_allows_it(requests_env, serve):
    requests_env.limit(maxCount=1, paused=True)
    pair = requests_env.pair()
    bridge = serve("--workload-approval", "requests")
    pair.wait_hook()
    pair.delete()
    wait_for(lambda: requests_env.states(pair) == ["Pending"], "it is asked for")
    holds_for(lambda: pair.hook() is not None and APPROVE_DELETION not in pair.node_labels(), 0.5)
    where = f"http://127.0.0.1:{bridge.metrics_port}"
    said = subprocess.run([drydock(), "explain", "machine", "/".join(pair.machine), "--address", where],
                          text=True, capture_output=True, check=True, timeout=60).stdout
    assert "MaintenanceRequest" in said
    requests_env.requests.patch("maintenancelimits", requests_env.unique, {"spec": {"paused": False}})
    pair.wait_gone()
    requests_env.wait_one_after_another(pair)


def test_a_grant_is_given_back_by_whoever_comes_next(requests_env, serve):
    """The bridge is killed while a maintenance goes on, and the Machine is disabled meanwhile."""
    requests_env.limit(maxCount=1)
    pair = requests_env.pair()
    bridge = serve("--workload-approval", "requests", lease=requests_env.unique)
    pair.ask("requested")
    pair.wait_maintenance("approved")
    bridge.end()
    pair.mark({key: None for key in pair.labels() if key.endswith(("/enabled", "/maintenance"))})
    assert requests_env.states(pair) == ["InProgress"]
    serve("--workload-approval", "requests")
    requests_env.wait_one_after_another(pair)
    wait_for(lambda: not any(key.startswith(OWN) for key in pair.node_annotations()), "the Node is clean")
    wait_for(lambda: OWN + "bridge-status" not in pair.annotations(), "the Machine is clean")
    assert not {HOOK} & set(pair.annotations()) and not {DELETED, MAINTAINED, APPROVE_MAINTENANCE} & set(pair.node_labels())


def test_no_request_is_made_unless_told(requests_env, serve):
    requests_env.limit(maxCount=1)
    pair = requests_env.pair()
    serve()
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    holds_for(lambda: not requests_env.of(pair) and pair.maintenance() == "requested", 0.5)
