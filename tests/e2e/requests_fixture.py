"""requests_fixture: some nodes, a limit that selects them alone, and requests for them; fixtures of the suites about requests.

A suite imports the fixtures that it uses by their names; every case has its own nodes, so cases share a cluster.
"""

import pytest

from requests_api import CLIENT_LABEL, Requests, install, path
from process import Controller
from wait import wait_for

LIMITS, ASKS, SELECTORS = "maintenancelimits", "maintenancerequests", "maintenanceselectors"
OPEN = ("Approved", "InProgress")
MARK = "repairman.k8s.io/cordoned-by"
LOCKS = "repairman.k8s.io/lock=target"


@pytest.fixture(scope="module", autouse=True)
def fixture_installed(backend, tmp_path_factory):
    install(backend, tmp_path_factory.mktemp("crds"))


@pytest.fixture(name="objects")
def fixture_objects(backend):
    objects = Requests(backend)
    yield objects
    objects.clean()


@pytest.fixture(name="serve")
def fixture_serve(backend, tmp_path):
    """serve(flag…): a controller that is ready, or just begun, ended in order after the test."""
    running = []

    def run(*flags, kubeconfig=backend.kubeconfig, ready=True):
        controller = Controller(kubeconfig, tmp_path / f"c{len(running)}", "controller", flags)
        running.append(controller)
        return controller.wait_ready() if ready else controller

    yield run
    for controller in running:
        try:
            if controller.alive():
                controller.stop()
        finally:
            controller.end()


class RequestsEnv:
    """Some nodes with a label of their own, and requests for them."""

    def __init__(self, client, objects, make_node, unique):
        self.client, self.objects, self.make_node, self.unique = client, objects, make_node, unique

    def nodes(self, count, **labels):
        return [self.make_node(f"{self.unique}-n{i}", {"case": self.unique, **labels}) for i in range(count)]

    def limit(self, name="", **spec):
        spec = {"type": "node", "selector": {"matchLabels": {"case": self.unique}}, **spec}
        status, answer = self.objects.create(LIMITS, self.unique + name, spec)
        assert status == 201, answer
        return self.unique + name

    def ask(self, node, actor="actor", **spec):
        name = f"{self.unique}-{len(self.objects.made)}"
        status, answer = self.objects.create(ASKS, name, {"name": node, "type": "node", "state": "Pending", **spec},
                                             {CLIENT_LABEL: actor})
        assert status == 201, answer
        return name

    def status(self, name, plural=ASKS):
        return self.objects.get(plural, name).get("status", {})

    def wait_state(self, name, state):
        wait_for(lambda: self.objects.state(name) == state, f"{name} is {state}")

    def wait_phase(self, name, phase):
        wait_for(lambda: self.status(name).get("phase") == phase, f"{name} has phase {phase}")

    def wait_reason(self, name, reason):
        """It waits, and its condition says for what."""
        return wait_for(lambda: [c for c in self.status(name).get("conditions", ())
                                 if c["status"] == "False" and c["reason"] == reason], f"{name}: {reason}")[0]

    def wait_limit(self, name, **numbers):
        wait_for(lambda: {k: self.status(name, LIMITS).get(k, 0) for k in numbers} == numbers,
                 f"{name} has {numbers}: {self.status(name, LIMITS)}")

    def act(self, name):
        """What an actor does once it is approved."""
        self.wait_state(name, "Approved")
        self.objects.move(name, "InProgress")
        self.wait_phase(name, "InProgress")
        self.objects.move(name, "Completed")

    def nothing_is_left(self, limit=None, uids=(), nodes=()):
        """No reservation, no lock of the requests (also of `uids`, which may be gone), no cordon of ours."""
        if limit:
            wait_for(lambda: not self.status(limit, LIMITS).get("reservations"), "no reservation is left")
        wait_for(lambda: not [lease for lease in self.locks() if lease in (*self.uids(), *uids)], "no lock is left")
        for node in nodes:
            wait_for(lambda n=node: not self.cordoned(n), f"no cordon is left on {node}")

    def locks(self):
        leases = self.client.leases.list_lease_for_all_namespaces(label_selector=LOCKS)
        return [lease.spec.holder_identity for lease in leases.items]

    def cordoned(self, node):
        """Whether it is, or has a request's mark."""
        found = self.client.core.read_node(node)
        return bool(found.spec.unschedulable) or MARK in (found.metadata.annotations or {})

    def uid(self, name):
        return self.objects.get(ASKS, name)["metadata"]["uid"]

    def condition(self, name, kind, plural=ASKS):
        found = [c for c in self.status(name, plural).get("conditions", ()) if c["type"] == kind]
        return found[0] if found else {}

    def uids(self):
        status, answer = self.objects.send("GET", path(ASKS))
        assert status == 200
        return [r["metadata"]["uid"] for r in answer["items"] if r["metadata"]["name"].startswith(self.unique)]


@pytest.fixture(name="requests_env")
def fixture_requests_env(client, objects, make_node, unique):
    return RequestsEnv(client, objects, make_node, unique)
