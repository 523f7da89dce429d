"""Faults on the real control plane: servers die and freeze, networks fail, leaders are killed.

After each fault everything must converge: every node carries exactly what the contract says, and
nothing was written by a controller that does not lead.
"""

import collections
import os
import signal
import threading

import pytest

from backend import Cluster
from contract import DATA, FRESH, LEASE, STATE
from process import Controller, parse_metrics
from proxy import Proxy
from wait import holds_for, wait_for

pytestmark = pytest.mark.backend("cluster")

NODES = 40
ELECT = ("--enable-leader-election", "--lease-namespace", "default")


@pytest.fixture(scope="module")
def lean(tmp_path_factory):
    """A control plane of this suite's own, to be mistreated."""
    with Cluster(tmp_path_factory.mktemp("faults"), lean=True) as server:
        yield server


class Fleet:
    """Nodes, as the API server has them; every call is one plain request."""

    def __init__(self, access):
        self.access = access

    def request(self, method, path, body=None, content_type="application/json"):
        status, answer = self.access.request(method, path, body, content_type)
        assert status in (200, 201), f"{method} {path}: {status} {answer}"
        return answer

    def create(self, name):
        self.request("POST", "/api/v1/nodes",
                     {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})

    def delete_all(self):
        self.request("DELETE", "/api/v1/nodes")

    def patch(self, name, meta):
        self.request("PATCH", f"/api/v1/nodes/{name}", {"metadata": meta},
                     "application/merge-patch+json")

    def strip(self, name):
        """Takes the label away: work for whoever leads."""
        self.patch(name, {"labels": {STATE: None}})
        return True

    def all(self):
        return self.request("GET", "/api/v1/nodes")["items"]

    def served(self, count):
        nodes = self.all()
        return len(nodes) == count and all(
            n["metadata"].get("labels", {}).get(STATE) == "operational"
            and FRESH.fullmatch(n["metadata"].get("annotations", {}).get(DATA, "")) for n in nodes)

    def holder(self):
        for item in self.request("GET", "/apis/coordination.k8s.io/v1/leases")["items"]:
            if item["metadata"]["name"] == LEASE:
                return item["spec"].get("holderIdentity") or ""
        return ""

    def node_patches(self):
        """(taken, refused): how many patches of nodes the server has answered."""
        status, text = self.access.request("GET", "/metrics")
        assert status == 200
        codes = collections.Counter()
        for (name, labels), value in parse_metrics(text).items():
            if name == "apiserver_request_total" and \
                    {("verb", "PATCH"), ("resource", "nodes")} <= set(labels):
                codes[dict(labels)["code"] == "200"] += value
        return codes[True], codes[False]

    def quiet(self):
        """The same, once it has not changed for two seconds: a patch is counted after its effect
        can be seen."""
        seen = []

        def same():
            seen.append(self.node_patches())
            return len(seen) > 20 and len(set(seen[-20:])) == 1 and seen[-1]
        return wait_for(same, "nobody patches nodes", interval=0.1)

    def drop_lease(self):
        for item in self.request("GET", "/apis/coordination.k8s.io/v1/leases")["items"]:
            if item["metadata"]["name"] == LEASE:
                space = item["metadata"]["namespace"]
                self.request("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases/{LEASE}")


@pytest.fixture
def fleet(lean):
    lean.start()  # a test before may have left it in pieces
    fleet = Fleet(lean.access)
    fleet.drop_lease()
    for i in range(NODES):
        fleet.create(f"node-{i:02}")
    yield fleet
    fleet.delete_all()


@pytest.fixture
def start(lean, tmp_path):
    running = []

    def run(name="controller", flags=(), kubeconfig=None):
        controller = Controller(kubeconfig or lean.kubeconfig, tmp_path / name, name, flags)
        running.append(controller)
        return controller

    yield run
    for controller in running:
        controller.end()


@pytest.fixture
def proxied(lean, tmp_path):
    """(proxy, kubeconfig through it)"""
    access = lean.access
    with Proxy(access.host, access.port) as proxy:
        path = access.variant(tmp_path / "proxied", {"server": f"https://127.0.0.1:{proxy.port}"})
        yield proxy, path


class Load:
    """Keeps taking labels away in the background, so that there is always something to do."""

    def __init__(self, fleet):
        self.fleet, self.done = fleet, threading.Event()
        self.rounds = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        number = 0
        while not self.done.wait(0.02):
            try:
                self.fleet.strip(f"node-{number % NODES:02}")
                self.rounds += 1
            except (AssertionError, OSError, ValueError):
                pass  # the server is being mistreated
            number += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join(30)


def leading(controller):
    return controller.metric("leader_election_master_status", name=LEASE) == 1


def converges(fleet):
    wait_for(lambda: fleet.served(NODES), "every node is served", interval=0.2)


# --- servers ---


def test_the_api_server_is_killed_and_restarted_under_load(lean, fleet, start):
    controller = start().wait_ready()
    converges(fleet)
    with Load(fleet) as load:
        wait_for(lambda: load.rounds >= 20, what="the load runs")
        for _ in range(2):
            lean.kill("kube-apiserver")
            lean.start()
            rounds = load.rounds
            wait_for(lambda r=rounds: load.rounds >= r + 20, "the load runs again")
    converges(fleet)
    assert controller.alive()
    controller.wait_ready()
    controller.stop()


def test_etcd_is_paused(lean, fleet, start):
    controller = start().wait_ready()
    converges(fleet)
    etcd = lean.pid("etcd")
    os.kill(etcd, signal.SIGSTOP)
    try:
        holds_for(controller.alive, 12, "it waits", interval=0.5)
        assert controller.health("/healthz")[0] == 200
    finally:
        os.kill(etcd, signal.SIGCONT)
    wait_for(lambda: fleet.all(), "the server answers again")
    for i in range(NODES):
        # A store that has just woken may refuse a write or two.
        wait_for(lambda n=i: fleet.strip(f"node-{n:02}"), "a label is taken away")
    converges(fleet)
    controller.stop()


# --- networks ---


def test_connections_are_cut_again_and_again(fleet, start, proxied):
    proxy, kubeconfig = proxied
    controller = start(kubeconfig=kubeconfig).wait_ready()
    converges(fleet)
    with Load(fleet) as load:
        for _ in range(5):
            rounds = load.rounds
            wait_for(lambda r=rounds: load.rounds >= r + 10, what="the load runs")
            proxy.cut()
    converges(fleet)
    controller.wait_ready()
    controller.stop()


def test_connections_are_refused_for_a_while(fleet, start, proxied):
    proxy, kubeconfig = proxied
    controller = start(kubeconfig=kubeconfig).wait_ready()
    converges(fleet)
    proxy.refuse()
    for i in range(NODES):
        fleet.strip(f"node-{i:02}")
    fleet.create("late")
    wait_for(lambda: controller.health("/readyz")[0] != 200, what="it says that it is cut off")
    assert not any(n["metadata"].get("labels", {}).get(STATE) for n in fleet.all())
    proxy.resume()
    wait_for(lambda: fleet.served(NODES + 1), "every node is served", interval=0.2)
    controller.wait_ready()
    controller.stop()


def test_a_slow_network_only_takes_longer(fleet, start, proxied):
    proxy, kubeconfig = proxied
    proxy.delay(0.2)
    controller = start(kubeconfig=kubeconfig).wait_ready()
    converges(fleet)
    controller.stop()


def test_a_frozen_network_is_noticed_and_survived(fleet, start, proxied):
    """Nothing moves and nothing is closed: deadlines must end what is in flight."""
    proxy, kubeconfig = proxied
    controller = start(kubeconfig=kubeconfig).wait_ready()
    converges(fleet)
    proxy.freeze()
    for i in range(NODES):
        fleet.strip(f"node-{i:02}")
    holds_for(controller.alive, 3, "it waits", interval=0.5)
    proxy.resume()
    converges(fleet)
    controller.wait_ready()
    controller.stop()


def test_a_leader_behind_a_frozen_network_ends_before_another_begins(fleet, start, proxied):
    """It cannot renew, so it must not act: it ends, as the original does, and is started again.
    10 s after its last renewal it gives up; the lease runs out after 15 s. Their own logs tell the
    order of it, however late this test looks."""
    proxy, kubeconfig = proxied
    leader = start("leader", ELECT, kubeconfig).wait_ready()
    wait_for(lambda: leading(leader), what="it leads")
    other = start("other", ELECT).wait_ready()
    converges(fleet)
    proxy.freeze()
    assert leader.wait() == 1
    wait_for(lambda: leading(other), what="the other leads")
    assert logged(leader, "leader election lost") < logged(other, "Starting workers")
    proxy.resume()
    for i in range(NODES):
        fleet.strip(f"node-{i:02}")
    again = start("again", ELECT, kubeconfig).wait_ready()
    converges(fleet)
    again.stop()
    other.stop()


def logged(controller, words):
    """The time of a line, which is what it begins with."""
    return next(line for line in controller.log().splitlines() if words in line).split(" ")[0]


# --- leaders ---


def pair(start):
    """(the leader, the other one)"""
    one, other = start("one", ELECT).wait_ready(), start("other", ELECT).wait_ready()
    wait_for(lambda: leading(one) or leading(other), what="one leads")
    return (one, other) if leading(one) else (other, one)


def test_a_killed_leader_is_replaced(fleet, start):
    leader, other = pair(start)
    converges(fleet)
    with Load(fleet):
        leader.send(signal.SIGKILL)
        leader.wait()
        wait_for(lambda: leading(other), "the other leads")
    converges(fleet)
    other.stop()


def test_a_frozen_leader_does_not_write_after_it_wakes(fleet, start):
    """Stopped in mid-work, it wakes with work in its queue and a lease that is another's."""
    leader, other = pair(start)
    converges(fleet)
    patches = leader.metric("drydock_patches_total")
    with Load(fleet):
        wait_for(lambda: leader.metric("drydock_patches_total") > patches, what="it works")
        leader.send(signal.SIGSTOP)
        wait_for(lambda: leading(other), "the other leads")
        holder = fleet.holder()
    converges(fleet)
    # Nobody has anything to do now, so a patch that the server sees comes from the one that wakes.
    # It may end itself, as the original does when it has lost its lease.
    taken, refused = fleet.quiet()
    leader.send(signal.SIGCONT)
    holds_for(lambda: fleet.holder() == holder, 8, "the lease stays where it is", interval=0.2)
    taken_then, refused_then = fleet.quiet()
    assert taken_then == taken, "it has written after waking"
    # What it was about to send when it froze leaves it when it wakes; the server refuses an old
    # version. That is one turn's work and no more.
    assert refused_then - refused < NODES, "it goes on after waking"
    assert not leader.alive() or not leading(leader)
    converges(fleet)
    other.stop()
