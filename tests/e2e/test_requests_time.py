"""Requests and time, by the controller: gaps, clocks that are off, controllers that die, and rest when nothing happens."""

import datetime
import json
import signal

from requests_api import path
from requests_fixture import ASKS, LIMITS, fixture_installed, fixture_objects, fixture_scene, fixture_serve
from wait import holds_for, wait_for


def moment(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def kill(controller):
    controller.send(signal.SIGKILL)
    controller.wait()


def test_a_gap_lies_between_two_operations(scene, serve):
    """Also between an end and the next grant. The ledger's own stamps are compared: a request says when it was told of its
    place, which on a busy machine is later."""
    gap = 3

    def granted(*nodes):
        reservations = scene.status(limit, LIMITS)["reservations"]
        times = [moment(r["grantedTime"]) for r in reservations if r["target"] in nodes]
        assert len(times) == len(nodes)
        return sorted(times)

    nodes = scene.nodes(3)
    limit = scene.limit(limit=100, timeouts={"betweenOperationsSeconds": gap})
    serve()
    names = [scene.ask(node) for node in nodes[:2]]
    for name in names:
        scene.wait_phase(name, "Approved")
    first, second = granted(*nodes[:2])
    assert (second - first).total_seconds() >= gap
    scene.act(names[0])
    scene.wait_limit(limit, granted=1)
    released = moment(scene.status(limit, LIMITS)["lastReleaseTime"])
    third = scene.ask(nodes[2])
    scene.wait_phase(third, "Approved")
    assert (granted(nodes[2])[0] - released).total_seconds() >= gap


def test_a_gap_that_is_waited_for_is_named(scene, serve):
    nodes = scene.nodes(2)
    limit = scene.limit(limit=100, timeouts={"betweenOperationsSeconds": 3600})
    serve()
    scene.wait_phase(scene.ask(nodes[0]), "Approved")
    waiting = scene.ask(nodes[1])
    assert limit in scene.wait_reason(waiting, "Gap")["message"]
    assert scene.objects.state(waiting) == "Pending"


def test_a_clock_that_was_off_fires_nothing_early(scene, serve, objects):
    """The last leader wrote its times an hour ahead or behind; only what is really over is taken back."""
    nodes = scene.nodes(3)
    scene.limit(limit=100, timeouts={"approvedSeconds": 7000})
    first = serve()
    ahead, behind, over = [scene.ask(node) for node in nodes]
    for name in (ahead, behind, over):
        scene.wait_phase(name, "Approved")
    first.stop()
    now = datetime.datetime.utcnow()
    times = {}
    for name, hours in ((ahead, 1), (behind, -1), (over, -2)):
        times[name] = (now + datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert objects.patch(ASKS, name, {"status": {"approvedTime": times[name]}}, "status")[0] == 200
    serve("--clock-skew-tolerance", "0s")
    wait_for(lambda: scene.status(over).get("rejections") == 1, "what is over is taken back")
    for name in (ahead, behind):
        assert (objects.state(name), scene.status(name)["phase"]) == ("Approved", "Approved")
        assert scene.status(name)["approvedTime"] == times[name], "it is not rewritten"
        scene.act(name)
        scene.wait_phase(name, "Completed")


def test_a_controller_that_is_killed_loses_nothing(scene, serve):
    """Between any two steps; the steps of the actor come while nobody serves."""
    node, = scene.nodes(1)
    limit = scene.limit(limit=100, drain={"postGraceSeconds": 1})
    controller = serve()
    name = scene.ask(node)
    scene.wait_phase(name, "Preparing")
    kill(controller)
    controller = serve()
    scene.wait_state(name, "Approved")
    kill(controller)
    scene.objects.move(name, "InProgress")
    controller = serve()
    scene.wait_phase(name, "InProgress")
    scene.wait_limit(limit, granted=1)
    kill(controller)
    scene.objects.move(name, "Completed")
    serve()
    scene.wait_phase(name, "Completed")
    assert scene.status(name)["result"] == "Succeeded"
    scene.nothing_is_left(limit, nodes=[node])


def test_nothing_is_written_when_nothing_changes(scene, serve, objects, client):
    """An approved one and one that waits; nodes that change in what nobody asked about wake nobody up."""
    nodes = scene.nodes(2)
    limit = scene.limit(limit=50, policies=["NotReady", "Unschedulable"])
    serve()
    names = [scene.ask(nodes[0])]
    scene.wait_phase(names[0], "Approved")
    names.append(scene.ask(nodes[1]))
    scene.wait_reason(names[1], "LimitReached")
    scene.wait_limit(limit, granted=1, waiting=1)

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


def test_the_history_of_a_limit_never_shows_too_many(scene, serve, objects):
    """Every version that the server ever had is looked at, not only those that a test happens to see."""
    nodes = scene.nodes(10)
    limit = scene.limit(limit=20)
    start = objects.get(LIMITS, limit)["metadata"]["resourceVersion"]
    names = [scene.ask(node) for node in nodes for _ in range(2)]
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
    scene.nothing_is_left(limit)
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
