"""Thousands of MaintenanceRequests by one client: whoever leads goes on leading, and the work goes on."""

import itertools
import signal

import pytest

from attacks import LONG, Observer, ask, controller, each, lease, limit, node, phases, sandbox
from process import Controller
from proxy import Proxy
from requests_api import path
from wait import holds_for, wait_for

COUNT = 30000 if LONG else 10000
TARGETS = 2500
SECONDS = 120 if LONG else 12  # more than the 10 s in which a leader must have renewed its Lease


def renewed(access, before):
    """Whether the holder of the Lease is the same, and has renewed it since."""
    now = lease(access)
    assert (now["holderIdentity"], now["leaseTransitions"]) == (before["holderIdentity"], before["leaseTransitions"])
    return now["renewTime"] != before["renewTime"]


def stays_with(access, process):
    """The Lease stays with its holder, which answers and renews it again and again."""
    wait_for(lambda: process.alive_or_fail() and lease(access).get("holderIdentity"), "somebody leads")
    first = lease(access)

    def well():
        renewed(access, first)  # asserts that it is the same holder
        return process.alive_or_fail() and process.health("/healthz")[0] == 200

    holds_for(well, SECONDS, "it leads and is healthy", interval=0.5)
    for _ in range(2):
        before = lease(access)
        wait_for(lambda b=before: process.alive_or_fail() and renewed(access, b), "the Lease is renewed")


@pytest.mark.parametrize("states", [("Pending",), ("Approved", "InProgress", "Completed")], ids=("pending", "later"))
def test_a_start_with_ten_thousand_requests_keeps_the_lease(tmp_path, states):
    with sandbox(tmp_path) as server:
        each(server.access, (node(f"n{i}") for i in range(TARGETS)))
        each(server.access, (ask(f"r{i}", f"n{i % TARGETS}", state)
                             for i, state in zip(range(COUNT), itertools.cycle(states))))
        with controller(server.kubeconfig, tmp_path) as one:
            stays_with(server.access, one)
            wait_for(lambda: phases(server.access)[""] <= COUNT - TARGETS, "the work goes on", interval=0.5)
            one.stop()


def test_a_successor_among_thousands_of_grants_keeps_the_lease(tmp_path):
    """All that its predecessor had begun is checked once more by its successor, and the API server is slow."""
    many = COUNT // 2
    with sandbox(tmp_path) as server:
        each(server.access, (node(f"n{i}") for i in range(many)))
        with controller(server.kubeconfig, tmp_path, "first") as first:
            each(server.access, (ask(f"r{i}", f"n{i}") for i in range(many)))
            wait_for(lambda: phases(server.access)["Preparing"] > many * 3 // 10, "there are grants", interval=0.2)
            first.send(signal.SIGKILL)
            first.wait()
        access = server.access
        with Proxy(access.host, access.port) as proxy:
            proxy.delay(0.1)
            slow = access.variant(tmp_path / "slow", {"server": f"http://127.0.0.1:{proxy.port}"})
            with controller(slow, tmp_path, "second") as second:
                before = lease(access)["holderIdentity"]
                wait_for(lambda: lease(access)["holderIdentity"] != before, "the second leads")
                approved = phases(access)["Approved"]
                stays_with(access, second)
                wait_for(lambda: phases(access)["Approved"] > approved + 10, "the work goes on", interval=0.5)


def test_requests_that_say_they_are_approved_are_not_granted_beyond_the_limit(tmp_path):
    """Anybody who may create a request can write any state into it."""
    rounds, most = (10, 2) if LONG else (2, 2)
    with sandbox(tmp_path) as server:
        each(server.access, (node(f"n{i}", {"case": "forged"}) for i in range(20)))
        each(server.access, [limit("few", most, {"case": "forged"})])
        with Controller(server.kubeconfig, tmp_path / "c", "controller") as one, Observer(server.access) as seen:
            one.wait_ready()
            for turn in range(rounds):
                each(server.access, (ask(f"r{turn}-{i}", f"n{i}", ("Approved", "InProgress")[i % 2]) for i in range(20)))
                wait_for(lambda: not phases(server.access)[""], "all have been looked at")
                wait_for(lambda: sum(seen.requests.values()) >= most, "as many as the limit allows are granted")
                holds_for(lambda: seen.most_open <= most and not seen.wrong, 2,
                          f"at most {most} are granted, not {seen.most_open}; {seen.wrong}")
                each(server.access, (("DELETE", path("maintenancerequests", f"r{turn}-{i}")) for i in range(20)))
                wait_for(lambda: not phases(server.access), "they are gone")
