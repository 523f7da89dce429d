"""An actor of repairman, as it was: the four steps by plain HTTP, with the words of its client library.

The actor is written here, from the library's contract, and uses nothing of drydock's. What it says by itself it
says as the library did; what the server says comes from the CRD's rules and from optimistic concurrency.
"""

import pytest

from requests_api import CLIENT_LABEL, GROUP, causes, path
from requests_fixture import ASKS, LIMITS, fixture_installed, fixture_objects, fixture_requests_env, fixture_serve
from wait import wait_for

CRD = "maintenancerequests.repairman.k8s.io"


class Refused(Exception):
    """What the library returned as an error."""


class Conflict(Refused):
    """The server's 409, which the library handed on."""


class Actor:
    """The client library of repairman: it remembers its name and nothing else."""

    def __init__(self, access, name):
        if not name:
            raise Refused("client name required")
        self.access, self.name = access, name

    def send(self, method, where, body=None):
        status, answer = self.access.request(method, where, body)
        if status >= 300:
            message = answer["message"] if isinstance(answer, dict) else answer.strip()
            raise (Conflict if status == 409 else Refused)(message)
        return answer

    def is_enabled(self, kind, version="v1"):
        """Whether requests of that kind are served; the original asked for v1beta1."""
        if kind != "node":
            return False
        status, _ = self.access.request("GET", f"/apis/apiextensions.k8s.io/{version}/customresourcedefinitions/{CRD}")
        return status == 200

    def validate(self, name, kind):
        if kind != "node":
            return
        nodes = self.send("GET", "/api/v1/nodes")["items"]
        if not any(node["metadata"]["name"].lower() == name.lower() for node in nodes):
            raise Refused(f"invalid node name in {len(nodes)} node list")

    def find(self, name, kind):
        label = CLIENT_LABEL.replace("/", "%2F")
        for request in self.send("GET", path(ASKS) + f"?labelSelector={label}%3D{self.name}")["items"]:
            spec = request.get("spec", {})
            if spec.get("name", "").lower() == name.lower() and spec.get("type", "").lower() == kind.lower() \
                    and spec.get("state") != "Completed":
                return request
        return None

    def is_maintenance_approved(self, name, kind="node"):
        self.validate(name, kind)
        found = self.find(name, kind)
        if found is None:
            found = self.send("POST", path(ASKS), {
                "apiVersion": f"{GROUP}/v1", "kind": "MaintenanceRequest",
                "metadata": {"generateName": "mr-", "labels": {CLIENT_LABEL: self.name}},
                "spec": {"name": name, "type": kind, "state": "Pending"}})
        return found["spec"]["state"] == "Approved"

    def update_maintenance_state(self, name, kind, desired):
        if desired == "Approved":
            raise Refused("cannot set state as approved")
        self.validate(name, kind)
        found = self.find(name, kind)
        if found is None:
            raise Refused("request must exist before state can be updated")
        if found["spec"].get("state") == "Pending":
            raise Refused("request is not yet approved")
        self.write(found, desired)

    def write(self, request, desired):
        """The whole object, with the version it was read at."""
        body = {**request, "spec": {**request["spec"], "state": desired}}
        self.send("PUT", path(ASKS, request["metadata"]["name"]), body)


@pytest.fixture(name="actor")
def fixture_actor(backend, objects, unique):
    yield Actor(backend.access, unique)
    for request in objects.of(unique):
        objects.keep(ASKS, request["metadata"]["name"])


def refuses(words, call, *arguments):
    with pytest.raises(Refused) as refusal:
        call(*arguments)
    assert words in str(refusal.value), refusal.value


def test_the_four_steps_of_an_old_actor(requests_env, serve, backend, actor, unique):
    """What the original's own suite did with its library and one pass of its operator after the other."""
    first, second = requests_env.nodes(2)
    limit = requests_env.limit(limit=10)
    serve()
    requests_env.wait_limit(limit, limit=1)

    refuses("client name required", Actor, backend.access, "")
    assert actor.is_enabled("node") and not actor.is_enabled("Node") and not actor.is_enabled("pod")
    refuses("invalid node name in ", actor.is_maintenance_approved, "")
    refuses("request must exist before state can be updated",
            actor.update_maintenance_state, first, "node", "InProgress")

    assert actor.is_maintenance_approved(first) is False, "the first call only asks"
    wait_for(lambda: actor.is_maintenance_approved(first), "the first is approved")
    assert actor.is_maintenance_approved(second) is False
    waiting = actor.find(second, "node")["metadata"]["name"]
    requests_env.wait_reason(waiting, "LimitReached")
    assert actor.is_maintenance_approved(second) is False, "there is room for one"

    refuses("cannot set state as approved", actor.update_maintenance_state, first, "node", "Approved")
    refuses("request is not yet approved", actor.update_maintenance_state, second, "node", "InProgress")

    def begin():
        # The controller still writes its record of the approval: the library's caller tries again.
        try:
            actor.update_maintenance_state(first, "node", "InProgress")
        except Conflict as conflict:
            assert "the object has been modified; please apply your changes to the latest version" in str(conflict)
            return False
        return True

    wait_for(begin, "it may begin")
    assert actor.is_maintenance_approved(first) is False, "in progress is not approved"
    running = actor.find(first, "node")["metadata"]["name"]
    requests_env.wait_phase(running, "InProgress")
    assert actor.is_maintenance_approved(second) is False

    actor.update_maintenance_state(first, "node", "Completed")
    assert actor.find(first, "node") is None
    wait_for(lambda: actor.is_maintenance_approved(second), "the second is approved")
    requests_env.wait_phase(running, "Completed")
    assert requests_env.status(running)["result"] == "Succeeded"

    assert actor.is_maintenance_approved(first) is False, "it asks again, with a request of its own"
    assert actor.find(first, "node")["metadata"]["name"] != running


def test_the_version_that_the_old_library_asks_for_is_not_there(actor):
    """No server of today has it, so that library takes repairman for not installed, whoever serves it."""
    assert actor.is_enabled("node") is True
    assert actor.is_enabled("node", "v1beta1") is False


# The sandbox has the schemas of the CRDs and not their rules: the words are the real server's.
@pytest.mark.backend("cluster")
@pytest.mark.parametrize("before, after", [("Pending", "InProgress"), ("InProgress", "Approved"),
                                           ("Completed", "Pending"), ("Completed", "InProgress")])
def test_the_server_says_what_the_library_did_not_ask(requests_env, objects, before, after):
    """Whoever writes past the library meets the rule of the CRD, and its words."""
    node, = requests_env.nodes(1)
    name = requests_env.ask(node)
    way = {"Pending": [], "InProgress": ["Approved", "InProgress"], "Completed": ["Completed"]}[before]
    objects.move(name, *way)
    held = objects.get(ASKS, name)
    held["spec"]["state"] = after
    status, answer = objects.send("PUT", path(ASKS, name), held)
    assert status == 422
    assert causes(answer) == {"spec": "Invalid value: state transition not allowed"}
    assert answer["message"] == (f'MaintenanceRequest.repairman.k8s.io "{name}" is invalid: spec: '
                                 "Invalid value: state transition not allowed")


def test_a_request_without_a_state_is_not_begun(backend, requests_env, objects):
    """The library forgot to look for that one; the server's default makes it Pending."""
    node, = requests_env.nodes(1)
    status, made = objects.create(ASKS, requests_env.unique, {"name": node, "type": "node"}, {CLIENT_LABEL: requests_env.unique})
    assert (status, made["spec"]["state"]) == (201, "Pending")
    actor = Actor(backend.access, requests_env.unique)
    refuses("request is not yet approved", actor.update_maintenance_state, node, "node", "InProgress")
    if backend.name == "cluster":
        refuses("state transition not allowed", actor.write, made, "InProgress")


def test_an_approval_that_was_withdrawn_cannot_be_begun(requests_env, serve, actor):
    """The actor was slow: what it read is old, and the answer to its write is a conflict."""
    node, = requests_env.nodes(1)
    requests_env.limit(limit=100, timeouts={"approvedSeconds": 2, "rejectionBackoffSeconds": 3600})
    serve("--clock-skew-tolerance", "0s")
    wait_for(lambda: actor.is_maintenance_approved(node), "it is approved")
    read = actor.find(node, "node")
    name = read["metadata"]["name"]
    wait_for(lambda: requests_env.status(name).get("rejections"), "the approval is withdrawn")
    with pytest.raises(Conflict) as refusal:
        actor.write(read, "InProgress")
    assert str(refusal.value) == (
        f'Operation cannot be fulfilled on maintenancerequests.repairman.k8s.io "{name}": the object has been '
        "modified; please apply your changes to the latest version and try again")


def test_an_actor_that_drains_by_itself(requests_env, serve, actor, client):
    """The reference actor: approved, in progress, cordon by its own hand, work, completed, and only then uncordon."""
    node, = requests_env.nodes(1)
    limit = requests_env.limit(limit=100, policies=["Unschedulable"])
    serve()
    wait_for(lambda: actor.is_maintenance_approved(node), "it is approved")
    name = actor.find(node, "node")["metadata"]["name"]
    requests_env.wait_phase(name, "Approved")
    actor.update_maintenance_state(node, "node", "InProgress")
    client.core.patch_node(node, {"spec": {"unschedulable": True}})
    requests_env.wait_phase(name, "InProgress")
    wait_for(lambda: _completes(actor, node), "it reports the end")
    requests_env.wait_phase(name, "Completed")
    assert client.core.read_node(node).spec.unschedulable, "nobody else lifts the actor's cordon"
    requests_env.wait_limit(limit, granted=0, limit=0, unavailable={node: "Unschedulable"})
    client.core.patch_node(node, {"spec": {"unschedulable": None}})
    requests_env.wait_limit(limit, limit=1)
    requests_env.nothing_is_left(limit)


def _completes(actor, node):
    try:
        actor.update_maintenance_state(node, "node", "Completed")
    except Conflict:
        return False
    return True


def test_an_old_limit_and_an_old_request_are_served_as_they_are(requests_env, serve, objects, actor):
    """Percent and policies, no type: the limit of that name governs all nodes. It is shared with nobody here: the
    limit grants whatever other cases hold, so it has all of the room there is."""
    node, = requests_env.nodes(1)
    objects.send("DELETE", path(LIMITS, "node"))
    status, answer = objects.create(LIMITS, "node", {"limit": 100, "policies": ["RespectNotReadyNodes", "None"]})
    assert status == 201, answer
    serve()
    wait_for(lambda: requests_env.status("node", LIMITS).get("limit", 0) >= 1, "it counts")
    assert requests_env.condition("node", "PoliciesRecognized", LIMITS).get("status") != "False"
    wait_for(lambda: actor.is_maintenance_approved(node), "it is approved")
    name = actor.find(node, "node")["metadata"]["name"]
    requests_env.wait_phase(name, "Approved")
    assert requests_env.status(name)["limits"] == ["node"]
