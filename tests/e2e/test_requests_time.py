"""Requests and time, by the controller: gaps, clocks that are off, controllers that die, and rest when nothing happens."""

import datetime
import json
import signal

from requests_api import path
from requests_fixture import ASKS, LIMITS, fixture_installed, fixture_objects, fixture_requests_env, fixture_serve
from wait import holds_for, wait_for


def moment(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def kill(controller):
    controller.send(signal.SIGKILL)
    controller.wait()


def test_a_gap_lies_between_two_operations(requests_env, serve):
    """Also between an end and the next grant. The ledger's own stamps are compared: a request says when it was told of its
    place, which on a busy machine is later."""
    gap = 3

    def granted(*nodes):
        reservations = requests_env.status(limit, LIMITS)["reservations"]
        times = [moment(r["grantedTime"]) for r in reservations if r["target"] in nodes]
        assert len(times) == len(nodes)
        return sorted(times)

    nodes = requests_env.nodes(3)
    limit = requests_env.limit(limit=100, timeouts={"betweenOperationsSeconds": gap})
    serve()
    names = [requests_env.ask(node) for node in nodes[:2]]
    for name in names:
        requests_env.wait_phase(name, "Approved")
    first, second = granted(*nodes[:2])
    assert (second - first).total_seconds() >= gap
    requests_env.act(names[0])
    requests_env.wait_limit(limit, granted=1)
    released = moment(requests_env.status(limit, LIMITS)["lastReleaseTime"])
    third = requests_env.ask(nodes[2])
    requests_env.wait_phase(third, "Approved")
    assert (granted(nodes[2])[0] - released).total_seconds() >= gap


def test_a_gap_that_is_waited_for_is_named(requests_env, serve):
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=100, timeouts={"betweenOperationsSeconds": 3600})
    serve()
    requests_env.wait_phase(requests_env.ask(nodes[0]), "Approved")
    waiting = requests_env.ask(nodes[1])
    assert limit in requests_env.wait_reason(waiting, "Gap")["message"]
    assert requests_env.objects.state(waiting) == "Pending"


def test_a_clock_that_was_off_fires_nothing_early(requests_env, serve, objects):
    """The last leader wrote its times an hour ahead or behind; only what is really over is taken back."""
    nodes = requests_env.nodes(3)
    requests_env.limit(limit=100, timeouts={"approvedSeconds": 7000})
    first = serve()
    ahead, behind, over = [requests_env.ask(node) for node in nodes]
    for name in (ahead, behind, over):
        requests_env.wait_phase(name, "Approved")
    first.stop()
    now = datetime.datetime.utcnow()
    times = {}
    for name, hours in ((ahead, 1), (behind, -1), (over, -2)):
        times[name] = (now + datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert objects.patch(ASKS, name, {"status": {"approvedTime": times[name]}}, "status")[0] == 200
    serve("--clock-skew-tolerance", "0s")
    wait_for(lambda: requests_env.status(over).get("rejections") == 1, "what is over is taken back")
    for name in (ahead, behind):
        assert (objects.state(name), requests_env.status(name)["phase"]) == ("Approved", "Approved")
        assert requests_env.status(name)["approvedTime"] == times[name], "it is not rewritten"
        requests_env.act(name)
        requests_env.wait_phase(name, "Completed")


def test_a_controller_that_is_killed_loses_nothing(requests_env, serve):
    """Between any two steps; the steps of the actor come while nobody serves."""
    node, = requests_env.nodes(1)
    limit = requests_env.limit(limit=100, drain={"postGraceSeconds": 1})
    controller = serve()
    name = requests_env.ask(node)
    requests_env.wait_phase(name, "Preparing")
    kill(controller)
    controller = serve()
    requests_env.wait_state(name, "Approved")
    kill(controller)
    requests_env.objects.move(name, "InProgress")
    controller = serve()
    requests_env.wait_phase(name, "InProgress")
    requests_env.wait_limit(limit, granted=1)
    kill(controller)
    requests_env.objects.move(name, "Completed")
    serve()
    requests_env.wait_phase(name, "Completed")
    assert requests_env.status(name)["result"] == "Succeeded"
    requests_env.nothing_is_left(limit, nodes=[node])


def test_nothing_is_written_when_nothing_changes(requests_env, serve, objects, client):
    """An approved one and one that waits; nodes that change in what nobody asked about wake nobody up."""
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=50, policies=["NotReady", "Unschedulable"])
    serve()
    names = [requests_env.ask(nodes[0])]
    requests_env.wait_phase(names[0], "Approved")
    names.append(requests_env.ask(nodes[1]))
    requests_env.wait_reason(names[1], "LimitReached")
    requests_env.wait_limit(limit, granted=1, waiting=1)

    def events():
        found = client.core.list_event_for_all_namespaces(field_selector="involvedObject.kind=MaintenanceRequest").items
        found += client.core.list_event_for_all_namespaces(field_selector="involvedObject.kind=MaintenanceLimit").items
        return sorted(e.metadata.name for e in found if e.involved_object.name in (*names, limit))

    def versions():
        objects_now = [objects.get(ASKS, name) for name in names] + [objects.get(LIMITS, limit)]
        return [o["metadata"]["resourceVersion"] for o in objects_now], events()

    def rests():
        before = versions()
        client.core.patch_node(nodes[0], {"metadata": {"annotations": {"touched": json.dumps(before[0])}}})
        holds_for(lambda: versions() == before, 1.5)
        return True

    # Numbers for people and events are told a moment late: it comes to rest, and then it rests.
    wait_for(rests, "it rests")


def test_the_history_of_a_limit_never_shows_too_many(requests_env, serve, objects):
    """Every version that the server ever had is looked at, not only those that a test happens to see."""
    nodes = requests_env.nodes(10)
    limit = requests_env.limit(limit=20)
    start = objects.get(LIMITS, limit)["metadata"]["resourceVersion"]
    names = [requests_env.ask(node) for node in nodes for _ in range(2)]
    serve()

    def finish():
        status, answer = objects.send("GET", path(ASKS))
        assert status == 200
        states = {r["metadata"]["name"]: r["spec"]["state"] for r in answer["items"] if r["metadata"]["name"] in names}
        for name, state in states.items():
            if state in ("Approved", "InProgress"):
                objects.patch(ASKS, name, {"spec": {"state": "InProgress" if state == "Approved" else "Completed"}})
        return set(states.values()) == {"Completed"}

    wait_for(finish, "all are served")
    requests_env.nothing_is_left(limit)
    end = int(objects.get(LIMITS, limit)["metadata"]["resourceVersion"])
    most, last = 0, 0
    for event in history(objects.access, f"{path(LIMITS)}?watch=true&resourceVersion={start}"
                         f"&fieldSelector=metadata.name%3D{limit}", end):
        reservations = event["object"].get("status", {}).get("reservations", ())
        assert len({r["target"] for r in reservations}) == len(reservations) <= 2
        most, last = max(most, len(reservations)), int(event["object"]["metadata"]["resourceVersion"])
    assert (most, last) == (2, end)


def history(access, where, end):
    """The events of a watch until the version `end` has been seen."""
    connection = access.connect()
    try:
        connection.request("GET", where, headers={**access.headers(), "Accept": "application/json"})
        response = connection.getresponse()
        assert response.status == 200
        while True:
            line = response.readline()
            assert line, "the watch has ended before its time"
            event = json.loads(line)
            assert event["type"] in ("ADDED", "MODIFIED"), event
            yield event
            if int(event["object"]["metadata"]["resourceVersion"]) >= end:
                return
    finally:
        connection.close()
