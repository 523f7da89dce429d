"""Requests and limits, by the controller: who is approved, who waits, and what is left behind.

Every case has its own nodes and a limit that selects them alone, so cases share a cluster.
"""

import pytest

from requests_api import path
from process import Process, drydock
from requests_fixture import (ASKS, LIMITS, OPEN, SELECTORS,
                   fixture_installed, fixture_objects, fixture_scene, fixture_serve)
from wait import holds_for, wait_for


# --- limits ---


@pytest.mark.parametrize("count, spec, wanted", [
    (1, {"limit": 50}, 1), (2, {"limit": 50}, 1), (4, {"limit": 50}, 2), (10, {"limit": 50}, 5),
    (2, {"limit": 10}, 1), (3, {"limit": 0}, 1), (3, {"limit": 0, "minimum": 0}, 0),
    (4, {"limit": 100, "maxCount": 2}, 2),
])
def test_a_limit_counts_as_the_original_did(scene, serve, count, spec, wanted):
    scene.nodes(count)
    limit = scene.limit(**spec)
    serve()
    scene.wait_limit(limit, population=count, nominal=wanted, limit=wanted)


def test_a_limit_follows_the_nodes(scene, serve):
    limit = scene.limit(limit=50)
    serve()
    scene.wait_limit(limit, population=0, limit=0)
    scene.nodes(10)
    scene.wait_limit(limit, population=10, limit=5)


def test_cordoned_nodes_count_where_the_policy_says_so(scene, serve, client):
    nodes = scene.nodes(2)
    limit = scene.limit(limit=50, policies=["Unschedulable"])
    serve()
    scene.wait_limit(limit, limit=1)
    client.core.patch_node(nodes[0], {"spec": {"unschedulable": True}})
    scene.wait_limit(limit, limit=0, unavailable={nodes[0]: "Unschedulable"})


def test_unknown_policies_are_named(scene, serve):
    scene.nodes(1)
    limit = scene.limit(limit=50, policies=["Sunny"])
    serve()
    condition = wait_for(lambda: [c for c in scene.status(limit, LIMITS).get("conditions", ())
                                  if c["type"] == "PoliciesRecognized" and c["status"] == "False"], "it says so")[0]
    assert "Sunny" in condition["message"]


# --- the four steps ---


def test_the_four_steps(scene, serve):
    node, = scene.nodes(1)
    limit = scene.limit(limit=50)
    serve()
    name = scene.ask(node)
    scene.wait_phase(name, "Approved")
    scene.wait_limit(limit, granted=1)
    reservation, = scene.status(limit, LIMITS)["reservations"]
    assert (reservation["target"], reservation["requestName"]) == (node, name)
    scene.act(name)
    scene.wait_phase(name, "Completed")
    assert scene.status(name)["result"] == "Succeeded"
    scene.nothing_is_left(limit)


def test_work_that_failed_ends_as_failed(scene, serve, backend, objects, tmp_path):
    """Told by `drydock run`, with the controller's part played by the controller."""
    node, = scene.nodes(1)
    limit = scene.limit(limit=100)
    serve()
    with Process([drydock(), "run", "--kubeconfig", backend.kubeconfig, "--client", scene.unique, node, "--",
                  "sh", "-c", "exit 3"], str(tmp_path), "run") as run:
        assert run.wait() == 3, run.log()
    request, = objects.of(scene.unique)
    objects.keep(ASKS, request["metadata"]["name"])
    scene.wait_phase(request["metadata"]["name"], "Completed")
    assert scene.status(request["metadata"]["name"])["result"] == "Failed"
    scene.nothing_is_left(limit)


def test_the_second_waits_and_is_told_why(scene, serve):
    nodes = scene.nodes(2)
    limit = scene.limit(limit=50)
    serve()
    first = scene.ask(nodes[0])
    scene.wait_phase(first, "Approved")
    second = scene.ask(nodes[1])
    waiting = scene.wait_reason(second, "LimitReached")
    assert limit in waiting["message"]
    assert scene.objects.state(second) == "Pending"
    scene.act(first)
    scene.act(second)
    scene.nothing_is_left(limit)


def test_kubectl_waits_for_an_approval(scene, serve, kubectl):
    node, = scene.nodes(1)
    scene.limit(limit=50)
    serve()
    name = scene.ask(node)
    kubectl("wait", "--for=condition=Accepted", "--timeout=120s", f"mreq/{name}")
    scene.wait_state(name, "Approved")
    assert kubectl("get", "mreq", name, "--no-headers").split()[1:4] == [node, "node", "Approved"]


def test_one_target_has_one_grant(scene, serve):
    node, other = scene.nodes(2)
    scene.limit(limit=100)
    serve()
    first = scene.ask(node, "one")
    scene.wait_phase(first, "Approved")
    second = scene.ask(node, "two")
    scene.wait_reason(second, "TargetBusy")
    scene.act(first)
    scene.act(second)


def test_in_progress_is_never_approved_again(scene, serve):
    nodes = scene.nodes(4)
    scene.limit(limit=100)
    serve()
    name = scene.ask(nodes[0])
    scene.wait_state(name, "Approved")
    scene.objects.move(name, "InProgress")
    scene.wait_phase(name, "InProgress")
    others = [scene.ask(node) for node in nodes[1:]]
    for other in others:
        scene.wait_phase(other, "Approved")
    assert scene.objects.state(name) == "InProgress"


def test_a_missing_target_is_said_to_be_missing(scene, serve):
    scene.nodes(1)
    scene.limit(limit=100)
    serve()
    name = scene.ask(scene.unique + "-nobody")
    scene.wait_reason(name, "TargetNotFound")


def test_a_missing_target_is_granted_where_that_is_wanted(scene, serve):
    serve("--grant-missing-targets")
    name = scene.ask(scene.unique + "-nobody")
    scene.wait_phase(name, "Approved")


def test_a_broken_node_gets_its_own_repair(scene, serve, client):
    broken, healthy = scene.nodes(2)
    scene.limit(limit=50, policies=["Unschedulable"])
    client.core.patch_node(broken, {"spec": {"unschedulable": True}})
    serve()
    waits = scene.ask(healthy)
    scene.wait_reason(waits, "LimitReached")
    repair = scene.ask(broken)
    scene.wait_phase(repair, "Approved")
    assert scene.objects.state(waits) == "Pending"


def test_a_node_may_go_while_its_maintenance_runs(scene, serve, client):
    node, = scene.nodes(1)
    limit = scene.limit(limit=50)
    serve()
    name = scene.ask(node)
    scene.wait_state(name, "Approved")
    scene.objects.move(name, "InProgress")
    scene.wait_phase(name, "InProgress")
    client.core.delete_node(node)
    scene.wait_limit(limit, population=0)
    scene.objects.move(name, "Completed")
    scene.wait_phase(name, "Completed")
    scene.nothing_is_left(limit)


# --- exactness ---


@pytest.mark.parametrize("controllers", [1, 2])
def test_never_more_than_the_limit(scene, serve, objects, backend, controllers):
    """Also with two controllers that both act, for neither stands for election."""
    nodes = scene.nodes(20)
    limit = scene.limit(limit=10)
    names = [scene.ask(node) for node in nodes]
    for _ in range(controllers):
        serve()
    done = set()

    def serve_the_approved():
        status, answer = objects.send("GET", path(ASKS))
        assert status == 200
        mine = {r["metadata"]["name"]: r["spec"]["state"] for r in answer["items"] if r["metadata"]["name"] in names}
        assert sum(state in OPEN for state in mine.values()) <= 2
        assert len(scene.status(limit, LIMITS).get("reservations", ())) <= 2
        for name, state in mine.items():
            if state in OPEN:
                objects.patch(ASKS, name, {"spec": {"state": "InProgress" if state == "Approved" else "Completed"}})
            elif state == "Completed":
                done.add(name)
        return len(done) == len(names)

    wait_for(serve_the_approved, "all are served")
    scene.nothing_is_left(limit)


# --- pause, lowering, deleting ---


def test_a_paused_limit_grants_nothing_new(scene, serve, objects):
    nodes = scene.nodes(2)
    limit = scene.limit(limit=100)
    serve()
    first = scene.ask(nodes[0])
    scene.wait_phase(first, "Approved")
    assert objects.patch(LIMITS, limit, {"spec": {"paused": True}})[0] == 200
    second = scene.ask(nodes[1])
    scene.wait_reason(second, "Paused")
    scene.act(first)
    assert objects.state(second) == "Pending"
    assert objects.patch(LIMITS, limit, {"spec": {"paused": False}})[0] == 200
    scene.act(second)


def test_a_lowered_limit_says_so_and_revokes_nothing(scene, serve, objects):
    nodes = scene.nodes(4)
    limit = scene.limit(limit=50)
    serve()
    names = [scene.ask(node) for node in nodes[:2]]
    for name in names:
        scene.wait_phase(name, "Approved")
    assert objects.patch(LIMITS, limit, {"spec": {"limit": 25}})[0] == 200
    wait_for(lambda: [c for c in scene.status(limit, LIMITS)["conditions"]
                      if c["type"] == "OverCommitted" and c["status"] == "True"], "it is over-committed")
    third = scene.ask(nodes[2])
    scene.wait_reason(third, "LimitReached")
    assert [objects.state(name) for name in names] == ["Approved", "Approved"]
    scene.act(names[0])
    scene.wait_limit(limit, granted=1)
    assert objects.state(third) == "Pending"
    scene.act(names[1])
    scene.act(third)
    scene.nothing_is_left(limit)


# --- time limits ---


def test_an_approval_that_nobody_uses_goes_to_the_next(scene, serve, objects):
    nodes = scene.nodes(2)
    scene.limit(limit=50, timeouts={"approvedSeconds": 3})
    serve("--clock-skew-tolerance", "0s")
    first = scene.ask(nodes[0])
    scene.wait_phase(first, "Approved")
    held = objects.get(ASKS, first)
    second = scene.ask(nodes[1], "other")
    scene.wait_state(second, "Approved")
    assert objects.state(first) == "Pending"
    assert scene.status(first)["rejections"] == 1
    held["spec"]["state"] = "InProgress"
    status, answer = objects.send("PUT", path(ASKS, first), held)
    assert (status, answer["reason"]) == (409, "Conflict")


def test_work_that_takes_too_long_loses_its_place(scene, serve, objects):
    nodes = scene.nodes(2)
    limit = scene.limit(limit=50, timeouts={"inProgressSeconds": 3})
    serve("--clock-skew-tolerance", "0s")
    first = scene.ask(nodes[0])
    scene.wait_state(first, "Approved")
    objects.move(first, "InProgress")
    scene.wait_phase(first, "Expired")
    assert objects.state(first) == "InProgress"
    second = scene.ask(nodes[1], "other")
    scene.wait_state(second, "Approved")
    objects.move(first, "Completed")
    scene.wait_phase(first, "Completed")
    assert scene.status(first)["result"] == "Succeeded"
    scene.act(second)
    scene.nothing_is_left(limit)


# --- trust ---


def test_a_forged_approval_is_taken_back(scene, serve, objects):
    nodes = scene.nodes(2)
    limit = scene.limit(limit=50)
    serve()
    holder = scene.ask(nodes[0])
    scene.wait_phase(holder, "Approved")
    forged = scene.ask(nodes[1])
    scene.wait_reason(forged, "LimitReached")
    objects.move(forged, "Approved")
    scene.wait_state(forged, "Pending")
    scene.wait_limit(limit, granted=1)


def test_work_that_began_before_us_is_adopted(scene, serve, objects):
    nodes = scene.nodes(2)
    limit = scene.limit(limit=50)
    names = [scene.ask(node) for node in nodes]
    for name in names:
        objects.move(name, "Approved", "InProgress")
    serve()
    for name in names:
        scene.wait_phase(name, "InProgress")
    scene.wait_limit(limit, granted=2)
    assert [objects.state(name) for name in names] == ["InProgress", "InProgress"]


# --- selectors ---


def test_every_shared_limit_must_allow_it(scene, serve):
    nodes = scene.nodes(4)
    scene.limit("-wide", limit=100)
    narrow = scene.limit("-narrow", limit=25)
    serve()
    first = scene.ask(nodes[0])
    scene.wait_phase(first, "Approved")
    second = scene.ask(nodes[1])
    assert narrow in scene.wait_reason(second, "LimitReached")["message"]


def test_an_exclusive_limit_takes_its_nodes_from_the_others(scene, serve):
    scene.nodes(2)
    special = scene.make_node(scene.unique + "-special", {"scene": scene.unique, "special": "yes"})
    shared = scene.limit("-shared", limit=50)
    own = scene.limit("-own", limit=100, scope="Exclusive",
                      selector={"matchLabels": {"scene": scene.unique, "special": "yes"}})
    serve()
    scene.wait_limit(shared, population=2)
    scene.wait_limit(own, population=1)
    name = scene.ask(special)
    scene.wait_phase(name, "Approved")
    assert scene.status(name)["limits"] == [own]


def test_a_selector_object_gives_the_nodes(scene, serve, objects, namespace):
    nodes = scene.nodes(2)
    status, answer = objects.create(SELECTORS, scene.unique, {"names": nodes[:1]}, namespace=namespace)
    assert status == 201, answer
    status, answer = objects.create(LIMITS, scene.unique, {"type": "node", "limit": 100, "selectorRef": {
        "namespace": namespace, "name": scene.unique}})
    assert status == 201, answer
    limit = scene.unique
    serve()
    scene.wait_limit(limit, population=1)


# --- one budget ---


PROFILE = """\
intervals: {requeue: 30s}
instances:
  check:
  - {type: hasLabel, name: needed, config: {key: update, value: needed}}
  - {type: hasLabel, name: done, config: {key: update, value: done}}
profiles:
- name: cycle
  operational:
    transitions: [{check: needed, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: needed, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: done, next: operational}]
"""
STATE = "cloud.sap/maintenance-state"


def test_profiles_and_requests_share_one_budget(scene, serve, client, tmp_path):
    nodes = scene.nodes(2, **{"cloud.sap/maintenance-profile": "cycle"})
    limit = scene.limit(limit=50)
    config = tmp_path / "maintenance.yaml"
    config.write_text(PROFILE, encoding="utf-8")
    serve("--config", str(config))

    def state(node):
        return client.core.read_node(node).metadata.labels.get(STATE)

    client.core.patch_node(nodes[0], {"metadata": {"labels": {"update": "needed"}}})
    wait_for(lambda: state(nodes[0]) == "in-maintenance", "the profile has taken the node")
    scene.wait_limit(limit, granted=1)
    reservation, = scene.status(limit, LIMITS)["reservations"]
    assert (reservation["target"], reservation["requestName"]) == (nodes[0], "profile/cycle")
    request = scene.ask(nodes[1])
    scene.wait_reason(request, "LimitReached")
    client.core.patch_node(nodes[0], {"metadata": {"labels": {"update": "done"}}})
    wait_for(lambda: state(nodes[0]) == "operational", "the profile is through")
    scene.wait_phase(request, "Approved")
    client.core.patch_node(nodes[0], {"metadata": {"labels": {"update": "needed"}}})
    wait_for(lambda: state(nodes[0]) == "maintenance-required", "the node waits")
    holds_for(lambda: state(nodes[0]) == "maintenance-required", 1, "it waits for the limit")
    scene.act(request)
    wait_for(lambda: state(nodes[0]) == "in-maintenance", "its turn has come")


def test_whoever_came_first_goes_first(scene, serve, client, tmp_path):
    """A node that a profile wants and a request wait in one line."""
    nodes = scene.nodes(4, **{"cloud.sap/maintenance-profile": "cycle"})
    limit = scene.limit(limit=25)
    config = tmp_path / "maintenance.yaml"
    config.write_text(PROFILE, encoding="utf-8")
    serve("--config", str(config))

    def state(node):
        return client.core.read_node(node).metadata.labels.get(STATE)

    def update(node, value):
        client.core.patch_node(node, {"metadata": {"labels": {"update": value}}})

    holder = scene.ask(nodes[0])
    scene.wait_phase(holder, "Approved")
    update(nodes[1], "needed")
    wait_for(lambda: state(nodes[1]) == "maintenance-required", "the node waits")
    # Times of requests are whole seconds: the next one is younger by more than that.
    holds_for(lambda: state(nodes[1]) == "maintenance-required", 2, "it waits for the limit")
    request = scene.ask(nodes[2])
    scene.wait_reason(request, "LimitReached")
    holds_for(lambda: scene.objects.state(request) == "Pending", 2, "it waits, too")
    update(nodes[3], "needed")
    wait_for(lambda: state(nodes[3]) == "maintenance-required", "and another node")
    scene.wait_limit(limit, granted=1, waiting=3)
    scene.act(holder)
    wait_for(lambda: state(nodes[1]) == "in-maintenance", "the node goes first")
    assert scene.objects.state(request) == "Pending"
    update(nodes[1], "done")
    scene.wait_phase(request, "Approved")
    assert state(nodes[3]) == "maintenance-required"
    scene.act(request)
    wait_for(lambda: state(nodes[3]) == "in-maintenance", "the last one goes last")
