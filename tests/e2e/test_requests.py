"""Requests and limits, by the controller: who is approved, who waits, and what is left behind.

Every case has its own nodes and a limit that selects them alone, so cases share a cluster.
"""

import json
import time

import pytest

from requests_api import path
from process import Process, drydock
from requests_fixture import (ASKS, LIMITS, OPEN, SELECTORS,
                   fixture_installed, fixture_objects, fixture_requests_env, fixture_serve)
from wait import holds_for, wait_for


# --- limits ---


@pytest.mark.parametrize("count, spec, wanted", [
    (1, {"limit": 50}, 1), (2, {"limit": 50}, 1), (4, {"limit": 50}, 2), (10, {"limit": 50}, 5),
    (2, {"limit": 10}, 1), (3, {"limit": 0}, 1), (3, {"limit": 0, "minimum": 0}, 0),
    (4, {"limit": 100, "maxCount": 2}, 2),
])
def test_a_limit_counts_as_the_original_did(requests_env, serve, count, spec, wanted):
    requests_env.nodes(count)
    limit = requests_env.limit(**spec)
    serve()
    requests_env.wait_limit(limit, population=count, nominal=wanted, limit=wanted)


def test_a_limit_follows_the_nodes(requests_env, serve):
    limit = requests_env.limit(limit=50)
    serve()
    requests_env.wait_limit(limit, population=0, limit=0)
    requests_env.nodes(10)
    requests_env.wait_limit(limit, population=10, limit=5)


def test_cordoned_nodes_count_where_the_policy_says_so(requests_env, serve, client):
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=50, policies=["Unschedulable"])
    serve()
    requests_env.wait_limit(limit, limit=1)
    client.core.patch_node(nodes[0], {"spec": {"unschedulable": True}})
    requests_env.wait_limit(limit, limit=0, unavailable={nodes[0]: "Unschedulable"})


def test_unknown_policies_are_named(requests_env, serve):
    requests_env.nodes(1)
    limit = requests_env.limit(limit=50, policies=["Sunny"])
    serve()
    condition = wait_for(lambda: [c for c in requests_env.status(limit, LIMITS).get("conditions", ())
                                  if c["type"] == "PoliciesRecognized" and c["status"] == "False"], "it says so")[0]
    assert "Sunny" in condition["message"]


# --- the four steps ---


def test_the_four_steps(requests_env, serve):
    node, = requests_env.nodes(1)
    limit = requests_env.limit(limit=50)
    serve()
    name = requests_env.ask(node)
    requests_env.wait_phase(name, "Approved")
    requests_env.wait_limit(limit, granted=1)
    reservation, = requests_env.status(limit, LIMITS)["reservations"]
    assert (reservation["target"], reservation["requestName"]) == (node, name)
    requests_env.act(name)
    requests_env.wait_phase(name, "Completed")
    assert requests_env.status(name)["result"] == "Succeeded"
    requests_env.nothing_is_left(limit)


def test_work_that_failed_ends_as_failed(requests_env, serve, backend, objects, tmp_path):
    """Told by `drydock run`, with the controller's part played by the controller."""
    node, = requests_env.nodes(1)
    limit = requests_env.limit(limit=100)
    serve()
    with Process([drydock(), "run", "--kubeconfig", backend.kubeconfig, "--client", requests_env.unique, node, "--",
                  "sh", "-c", "exit 3"], str(tmp_path), "run") as run:
        assert run.wait() == 3, run.log()
    request, = objects.of(requests_env.unique)
    objects.keep(ASKS, request["metadata"]["name"])
    requests_env.wait_phase(request["metadata"]["name"], "Completed")
    assert requests_env.status(request["metadata"]["name"])["result"] == "Failed"
    requests_env.nothing_is_left(limit)


def test_the_second_waits_and_is_told_why(requests_env, serve):
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=50)
    serve()
    first = requests_env.ask(nodes[0])
    requests_env.wait_phase(first, "Approved")
    second = requests_env.ask(nodes[1])
    waiting = requests_env.wait_reason(second, "LimitReached")
    assert limit in waiting["message"]
    assert requests_env.objects.state(second) == "Pending"
    requests_env.act(first)
    requests_env.act(second)
    requests_env.nothing_is_left(limit)


def test_kubectl_waits_for_an_approval(requests_env, serve, kubectl):
    node, = requests_env.nodes(1)
    requests_env.limit(limit=50)
    serve()
    name = requests_env.ask(node)
    kubectl("wait", "--for=condition=Accepted", "--timeout=120s", f"mreq/{name}")
    requests_env.wait_state(name, "Approved")
    assert kubectl("get", "mreq", name, "--no-headers").split()[1:4] == [node, "node", "Approved"]


def test_one_target_has_one_grant(requests_env, serve):
    node, other = requests_env.nodes(2)
    requests_env.limit(limit=100)
    serve()
    first = requests_env.ask(node, "one")
    requests_env.wait_phase(first, "Approved")
    second = requests_env.ask(node, "two")
    requests_env.wait_reason(second, "TargetBusy")
    requests_env.act(first)
    requests_env.act(second)


def test_in_progress_is_never_approved_again(requests_env, serve):
    nodes = requests_env.nodes(4)
    requests_env.limit(limit=100)
    serve()
    name = requests_env.ask(nodes[0])
    requests_env.wait_state(name, "Approved")
    requests_env.objects.move(name, "InProgress")
    requests_env.wait_phase(name, "InProgress")
    others = [requests_env.ask(node) for node in nodes[1:]]
    for other in others:
        requests_env.wait_phase(other, "Approved")
    assert requests_env.objects.state(name) == "InProgress"


def test_a_missing_target_is_said_to_be_missing(requests_env, serve):
    requests_env.nodes(1)
    requests_env.limit(limit=100)
    serve()
    name = requests_env.ask(requests_env.unique + "-nobody")
    requests_env.wait_reason(name, "TargetNotFound")


def test_a_missing_target_is_granted_where_that_is_wanted(requests_env, serve):
    serve("--grant-missing-targets")
    name = requests_env.ask(requests_env.unique + "-nobody")
    requests_env.wait_phase(name, "Approved")


def test_a_broken_node_gets_its_own_repair(requests_env, serve, client):
    broken, healthy = requests_env.nodes(2)
    requests_env.limit(limit=50, policies=["Unschedulable"])
    client.core.patch_node(broken, {"spec": {"unschedulable": True}})
    serve()
    waits = requests_env.ask(healthy)
    requests_env.wait_reason(waits, "LimitReached")
    repair = requests_env.ask(broken)
    requests_env.wait_phase(repair, "Approved")
    assert requests_env.objects.state(waits) == "Pending"


def test_a_node_may_go_while_its_maintenance_runs(requests_env, serve, client):
    node, = requests_env.nodes(1)
    limit = requests_env.limit(limit=50)
    serve()
    name = requests_env.ask(node)
    requests_env.wait_state(name, "Approved")
    requests_env.objects.move(name, "InProgress")
    requests_env.wait_phase(name, "InProgress")
    client.core.delete_node(node)
    requests_env.wait_limit(limit, population=0)
    requests_env.objects.move(name, "Completed")
    requests_env.wait_phase(name, "Completed")
    requests_env.nothing_is_left(limit)


# --- exactness ---


@pytest.mark.parametrize("controllers", [1, 2])
def test_never_more_than_the_limit(requests_env, serve, objects, backend, controllers):
    """Also with two controllers that both act, for neither stands for election."""
    nodes = requests_env.nodes(20)
    limit = requests_env.limit(limit=10)
    names = [requests_env.ask(node) for node in nodes]
    for _ in range(controllers):
        serve()
    done = set()

    def serve_the_approved():
        status, answer = objects.send("GET", path(ASKS))
        assert status == 200
        mine = {r["metadata"]["name"]: r["spec"]["state"] for r in answer["items"] if r["metadata"]["name"] in names}
        assert sum(state in OPEN for state in mine.values()) <= 2
        assert len(requests_env.status(limit, LIMITS).get("reservations", ())) <= 2
        for name, state in mine.items():
            if state in OPEN:
                objects.patch(ASKS, name, {"spec": {"state": "InProgress" if state == "Approved" else "Completed"}})
            elif state == "Completed":
                done.add(name)
        return len(done) == len(names)

    wait_for(serve_the_approved, "all are served")
    requests_env.nothing_is_left(limit)


# --- pause, lowering, deleting ---


def test_a_paused_limit_grants_nothing_new(requests_env, serve, objects):
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=100)
    serve()
    first = requests_env.ask(nodes[0])
    requests_env.wait_phase(first, "Approved")
    assert objects.patch(LIMITS, limit, {"spec": {"paused": True}})[0] == 200
    second = requests_env.ask(nodes[1])
    requests_env.wait_reason(second, "Paused")
    requests_env.act(first)
    assert objects.state(second) == "Pending"
    assert objects.patch(LIMITS, limit, {"spec": {"paused": False}})[0] == 200
    requests_env.act(second)


def test_a_lowered_limit_says_so_and_revokes_nothing(requests_env, serve, objects):
    nodes = requests_env.nodes(4)
    limit = requests_env.limit(limit=50)
    serve()
    names = [requests_env.ask(node) for node in nodes[:2]]
    for name in names:
        requests_env.wait_phase(name, "Approved")
    assert objects.patch(LIMITS, limit, {"spec": {"limit": 25}})[0] == 200
    wait_for(lambda: [c for c in requests_env.status(limit, LIMITS)["conditions"]
                      if c["type"] == "OverCommitted" and c["status"] == "True"], "it is over-committed")
    third = requests_env.ask(nodes[2])
    requests_env.wait_reason(third, "LimitReached")
    assert [objects.state(name) for name in names] == ["Approved", "Approved"]
    requests_env.act(names[0])
    requests_env.wait_limit(limit, granted=1)
    assert objects.state(third) == "Pending"
    requests_env.act(names[1])
    requests_env.act(third)
    requests_env.nothing_is_left(limit)


# --- time limits ---


def test_an_approval_that_nobody_uses_goes_to_the_next(requests_env, serve, objects):
    nodes = requests_env.nodes(2)
    requests_env.limit(limit=50, timeouts={"approvedSeconds": 3})
    serve("--clock-skew-tolerance", "0s")
    first = requests_env.ask(nodes[0])
    requests_env.wait_phase(first, "Approved")
    held = objects.get(ASKS, first)
    second = requests_env.ask(nodes[1], "other")
    requests_env.wait_state(second, "Approved")
    assert objects.state(first) == "Pending"
    assert requests_env.status(first)["rejections"] == 1
    held["spec"]["state"] = "InProgress"
    status, answer = objects.send("PUT", path(ASKS, first), held)
    assert (status, answer["reason"]) == (409, "Conflict")


def test_work_that_takes_too_long_loses_its_place(requests_env, serve, objects):
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=50, timeouts={"inProgressSeconds": 3})
    serve("--clock-skew-tolerance", "0s")
    first = requests_env.ask(nodes[0])
    requests_env.wait_state(first, "Approved")
    objects.move(first, "InProgress")
    requests_env.wait_phase(first, "Expired")
    assert objects.state(first) == "InProgress"
    second = requests_env.ask(nodes[1], "other")
    requests_env.wait_state(second, "Approved")
    objects.move(first, "Completed")
    requests_env.wait_phase(first, "Completed")
    assert requests_env.status(first)["result"] == "Succeeded"
    requests_env.act(second)
    requests_env.nothing_is_left(limit)


# --- trust ---


def test_a_forged_approval_is_taken_back(requests_env, serve, objects):
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=50)
    serve()
    holder = requests_env.ask(nodes[0])
    requests_env.wait_phase(holder, "Approved")
    forged = requests_env.ask(nodes[1])
    requests_env.wait_reason(forged, "LimitReached")
    objects.move(forged, "Approved")
    requests_env.wait_state(forged, "Pending")
    requests_env.wait_limit(limit, granted=1)


@pytest.mark.backend("sandbox")  # it evaluates no rules, as the servers of older CRDs
def test_work_that_nobody_granted_is_taken_back(requests_env, serve):
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=50)
    serve()
    requests_env.wait_limit(limit, population=2)
    holder = requests_env.ask(nodes[0])
    requests_env.wait_phase(holder, "Approved")
    forged = requests_env.ask(nodes[1], state="InProgress")
    requests_env.wait_reason(forged, "LimitReached")
    requests_env.wait_state(forged, "Pending")
    requests_env.wait_limit(limit, granted=1)


def test_an_approval_that_is_withdrawn_did_not_succeed(backend, requests_env, serve, tmp_path):
    node = requests_env.nodes(1)[0]
    requests_env.limit(limit=100)
    serve()
    name = requests_env.ask(node)
    requests_env.wait_phase(name, "Approved")
    with Process([drydock(), "withdraw", "--kubeconfig", backend.kubeconfig, name],
                 str(tmp_path), "withdraw") as process:
        assert process.wait() == 0, process.log()
    requests_env.wait_phase(name, "Completed")
    assert requests_env.status(name)["result"] == "Withdrawn"


def test_work_that_began_before_us_is_adopted(requests_env, serve, objects):
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=50)
    names = [requests_env.ask(node) for node in nodes]
    for name in names:
        objects.move(name, "Approved", "InProgress")
    # Times are whole seconds: a ledger that begins in the same one is not newer.
    made = max(objects.get("maintenancerequests", name)["metadata"]["creationTimestamp"] for name in names)
    wait_for(lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > made, "the second is over")
    serve()
    for name in names:
        requests_env.wait_phase(name, "InProgress")
    requests_env.wait_limit(limit, granted=2)
    assert [objects.state(name) for name in names] == ["InProgress", "InProgress"]


# --- without profiles ---


def test_requests_need_no_configuration_of_profiles(requests_env, serve, tmp_path):
    node = requests_env.nodes(1)[0]
    requests_env.limit(limit=100)
    controller = serve("--config", str(tmp_path / "missing.yaml"), ready=False)
    requests_env.wait_phase(requests_env.ask(node), "Approved")
    status = json.loads(controller.get("/api/v1/status")[2])
    assert "missing.yaml" in status["config"]["error"] and not status["config"].get("loaded")


# --- selectors ---


def test_every_shared_limit_must_allow_it(requests_env, serve):
    nodes = requests_env.nodes(4)
    requests_env.limit("-wide", limit=100)
    narrow = requests_env.limit("-narrow", limit=25)
    serve()
    first = requests_env.ask(nodes[0])
    requests_env.wait_phase(first, "Approved")
    second = requests_env.ask(nodes[1])
    assert narrow in requests_env.wait_reason(second, "LimitReached")["message"]


def test_an_exclusive_limit_takes_its_nodes_from_the_others(requests_env, serve):
    requests_env.nodes(2)
    special = requests_env.make_node(requests_env.unique + "-special", {"case": requests_env.unique, "special": "yes"})
    shared = requests_env.limit("-shared", limit=50)
    own = requests_env.limit("-own", limit=100, scope="Exclusive",
                      selector={"matchLabels": {"case": requests_env.unique, "special": "yes"}})
    serve()
    requests_env.wait_limit(shared, population=2)
    requests_env.wait_limit(own, population=1)
    name = requests_env.ask(special)
    requests_env.wait_phase(name, "Approved")
    assert requests_env.status(name)["limits"] == [own]


def test_a_selector_object_gives_the_nodes(requests_env, serve, objects, namespace):
    nodes = requests_env.nodes(2)
    status, answer = objects.create(SELECTORS, requests_env.unique, {"names": nodes[:1]}, namespace=namespace)
    assert status == 201, answer
    status, answer = objects.create(LIMITS, requests_env.unique, {"type": "node", "limit": 100, "selectorRef": {
        "namespace": namespace, "name": requests_env.unique}})
    assert status == 201, answer
    limit = requests_env.unique
    serve()
    requests_env.wait_limit(limit, population=1)


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


def test_profiles_and_requests_share_one_budget(requests_env, serve, client, tmp_path):
    nodes = requests_env.nodes(2, **{"cloud.sap/maintenance-profile": "cycle"})
    limit = requests_env.limit(limit=50)
    config = tmp_path / "maintenance.yaml"
    config.write_text(PROFILE, encoding="utf-8")
    serve("--config", str(config))

    def state(node):
        return client.core.read_node(node).metadata.labels.get(STATE)

    client.core.patch_node(nodes[0], {"metadata": {"labels": {"update": "needed"}}})
    wait_for(lambda: state(nodes[0]) == "in-maintenance", "the profile has taken the node")
    requests_env.wait_limit(limit, granted=1)
    reservation, = requests_env.status(limit, LIMITS)["reservations"]
    assert (reservation["target"], reservation["requestName"]) == (nodes[0], "profile/cycle")
    request = requests_env.ask(nodes[1])
    requests_env.wait_reason(request, "LimitReached")
    client.core.patch_node(nodes[0], {"metadata": {"labels": {"update": "done"}}})
    wait_for(lambda: state(nodes[0]) == "operational", "the profile is through")
    requests_env.wait_phase(request, "Approved")
    client.core.patch_node(nodes[0], {"metadata": {"labels": {"update": "needed"}}})
    wait_for(lambda: state(nodes[0]) == "maintenance-required", "the node waits")
    holds_for(lambda: state(nodes[0]) == "maintenance-required", 1, "it waits for the limit")
    requests_env.act(request)
    wait_for(lambda: state(nodes[0]) == "in-maintenance", "its turn has come")


def test_whoever_came_first_goes_first(requests_env, serve, client, tmp_path):
    """A node that a profile wants and a request wait in one line."""
    nodes = requests_env.nodes(4, **{"cloud.sap/maintenance-profile": "cycle"})
    limit = requests_env.limit(limit=25)
    config = tmp_path / "maintenance.yaml"
    config.write_text(PROFILE, encoding="utf-8")
    serve("--config", str(config))

    def state(node):
        return client.core.read_node(node).metadata.labels.get(STATE)

    def update(node, value):
        client.core.patch_node(node, {"metadata": {"labels": {"update": value}}})

    holder = requests_env.ask(nodes[0])
    requests_env.wait_phase(holder, "Approved")
    update(nodes[1], "needed")
    wait_for(lambda: state(nodes[1]) == "maintenance-required", "the node waits")
    # Times of requests are whole seconds: the next one is younger by more than that.
    holds_for(lambda: state(nodes[1]) == "maintenance-required", 2, "it waits for the limit")
    request = requests_env.ask(nodes[2])
    requests_env.wait_reason(request, "LimitReached")
    holds_for(lambda: requests_env.objects.state(request) == "Pending", 2, "it waits, too")
    update(nodes[3], "needed")
    wait_for(lambda: state(nodes[3]) == "maintenance-required", "and another node")
    requests_env.wait_limit(limit, granted=1, waiting=3)
    requests_env.act(holder)
    wait_for(lambda: state(nodes[1]) == "in-maintenance", "the node goes first")
    assert requests_env.objects.state(request) == "Pending"
    update(nodes[1], "done")
    requests_env.wait_phase(request, "Approved")
    assert state(nodes[3]) == "maintenance-required"
    requests_env.act(request)
    wait_for(lambda: state(nodes[3]) == "in-maintenance", "the last one goes last")
