"""attacks: what the suites of attacks share: a sandbox of their own, objects by the thousand, and an observer.

The cases are bounded, so that `tools/attacks` ends in minutes; `tools/attacks --long` sets DRYDOCK_ATTACKS=long, and they take
larger numbers and more rounds.
"""

import collections
import contextlib
import http.client
import json
import os
import threading

from backend import Sandbox
from contract import LEASE, STATE
from process import Controller
from requests_api import CLIENT_LABEL, install, make, path

LONG = os.environ.get("DRYDOCK_ATTACKS") == "long"
ELECT = ("--enable-leader-election", "--lease-namespace", "default")
ASKS, LIMITS = "maintenancerequests", "maintenancelimits"
OPEN = ("Approved", "InProgress")
LEASE_PATH = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{LEASE}"
WORKERS = 4  # connections that create objects


@contextlib.contextmanager
def sandbox(folder):
    """A cluster of the case's own, without machines: nodes are mere objects."""
    with Sandbox(folder, nodes=0) as server:
        install(server, folder)
        yield server


def each(access, calls):
    """Sends (method, path, body…) from a few connections at once; all must succeed."""
    calls, lock, failures = iter(calls), threading.Lock(), []

    def work():
        while not failures:
            with lock:
                call = next(calls, None)
            if call is None:
                return
            try:
                status, answer = access.request(*call)
                if status not in (200, 201):
                    failures.append(f"{call[0]} {call[1]}: {status} {answer}")
            except (OSError, http.client.HTTPException) as error:
                failures.append(f"{call[0]} {call[1]}: {error!r}")

    workers = [threading.Thread(target=work) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures[0]


def node(name, labels=None):
    return "POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels or {}}}


def ask(name, target, state="Pending"):
    return "POST", path(ASKS), make(ASKS, name, {"name": target, "type": "node", "state": state}, {CLIENT_LABEL: "one"})


@contextlib.contextmanager
def release_build():
    """What starts here is the program that people run: sanitizers take several times its memory."""
    before = os.environ.get("DRYDOCK")
    os.environ["DRYDOCK"] = os.environ.get("SANDBOX") or before or "build/drydock"
    yield
    os.environ.pop("DRYDOCK")
    if before:
        os.environ["DRYDOCK"] = before


def limit(name, most, selector):
    return "POST", path(LIMITS), make(LIMITS, name, {"type": "node", "limit": 100, "maxCount": most, "selector": {"matchLabels": selector}})


def lease(access):
    status, answer = access.request("GET", LEASE_PATH)
    return answer["spec"] if status == 200 else {}


def phases(access):
    """{phase: how many requests are in it}; without a status: ''."""
    status, answer = access.request("GET", path(ASKS))
    assert status == 200, answer
    return collections.Counter(item.get("status", {}).get("phase", "") for item in answer["items"])


@contextlib.contextmanager
def controller(kubeconfig, folder, name="controller", flags=()):
    """One that takes part in the election; what is left of it at the end is killed."""
    started = Controller(kubeconfig, os.path.join(str(folder), name), name, [*ELECT, *flags])
    try:
        yield started
    finally:
        started.end()


class Observer:
    """Watches the requests, the nodes and the leader Lease from outside, and counts after every event, in the server's order."""

    def __init__(self, access):
        self.access, self.ended, self.wrong = access, False, []
        self.requests, self.nodes = {}, {}
        self.most_open = self.most_inside = 0
        self.holders = []  # of the Lease, each as often as it got it
        self.transitions = 0
        self.followed = (
            (path(ASKS), self.on_request),
            ("/api/v1/nodes", self.on_node),
            ("/apis/coordination.k8s.io/v1/namespaces/default/leases", self.on_lease))
        self.connections, self.threads = [], []

    def __enter__(self):
        for where, note in self.followed:
            status, listed = self.access.request("GET", where)
            assert status == 200, listed
            for item in listed["items"]:
                note("ADDED", item)
            connection = self.access.connect()
            connection.request("GET", f"{where}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}")
            response = connection.getresponse()
            assert response.status == 200
            self.connections.append(connection)
            self.threads.append(threading.Thread(target=self.follow, args=(response, note), daemon=True))
            self.threads[-1].start()
        return self

    def __exit__(self, *_):
        self.ended = True
        for connection in self.connections:
            connection.sock.shutdown(2)
        for thread in self.threads:
            thread.join()

    def follow(self, response, note):
        try:
            for line in response:
                event = json.loads(line)
                note(event["type"], event["object"])
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
            if not self.ended:
                self.wrong.append(f"the observer has lost its watch: {error!r}")
            return
        if not self.ended:
            self.wrong.append("a watch of the observer has ended")

    def on_request(self, kind, item):
        status = item.get("status", {})
        granted = item.get("spec", {}).get("state") in OPEN and status.get("phase") in OPEN
        self.requests[item["metadata"]["name"]] = kind != "DELETED" and granted
        self.most_open = max(self.most_open, sum(self.requests.values()))

    def on_node(self, kind, item):
        inside = item["metadata"].get("labels", {}).get(STATE) == "in-maintenance"
        self.nodes[item["metadata"]["name"]] = kind != "DELETED" and inside
        self.most_inside = max(self.most_inside, sum(self.nodes.values()))

    def on_lease(self, kind, item):
        if item["metadata"]["name"] != LEASE or kind == "DELETED":
            return
        holder, transitions = item["spec"].get("holderIdentity") or "", item["spec"].get("leaseTransitions", 0)
        if not self.holders or self.holders[-1] != holder:
            if self.holders and transitions != self.transitions + bool(holder):
                self.wrong.append(f"the Lease went from {self.holders[-1]!r} to {holder!r} by {transitions - self.transitions} steps")
            self.holders.append(holder)
        elif transitions != self.transitions:
            self.wrong.append(f"{holder!r} has taken the Lease that it had")
        self.transitions = transitions
