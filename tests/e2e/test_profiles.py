"""Profiles from outside: what a configuration makes of nodes, as the original's suites assert it."""

import json

import pytest

from contract import PROFILE, annotation, state
from profiles import (Inbox, History, annotate, entries, events, label, read, wait_entries,
                      wait_state)
from wait import wait_for

# The profiles of the original's own integration suite.
SUITE = """
intervals: {requeue: 200ms}
dashboard: {labelFilter: [transition, kubernetes.io/hostname]}
instances:
  check:
  - {type: hasLabel, name: transition, config: {key: transition, value: "true"}}
  - {type: hasLabel, name: never, config: {key: e2e.example.com/never}}
  - {type: prometheusInstant, name: nobody, config: {url: "http://127.0.0.1:1", query: up, expr: value == 1}}
  trigger:
  - {type: alterLabel, name: alter, config: {key: alter, value: "true"}}
profiles:
- name: test
  operational:
    transitions: [{check: transition, next: maintenance-required, trigger: alter}]
- name: block
  operational:
    transitions: [{check: transition, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: never, next: in-maintenance}]
- name: multi
  operational:
    transitions: [{check: transition, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: transition, next: in-maintenance}]
- name: to-maintenance
  operational:
    transitions: [{check: transition, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: transition, next: in-maintenance}]
- name: broken
  operational:
    transitions: [{check: nobody, next: maintenance-required}]
"""

GO = {"transition": "true"}


def test_a_node_without_labels_gets_state_and_data(client, make_node, unique, launch):
    name = make_node(unique)
    launch(SUITE)
    node = wait_state(client, name, "operational")
    assert entries(node) == {"default": "operational"}


def test_a_passing_check_moves_the_node_and_pulls_the_trigger(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "test", **GO})
    launch(SUITE)
    node = wait_state(client, name, "maintenance-required")
    assert node.metadata.labels["alter"] == "true"
    assert entries(node) == {"test": "maintenance-required"}
    wait_for(lambda: events(client, name, "ChangedMaintenanceState") ==
             ["The node is now in the maintenance-required state caused by profile test"],
             what="the node has its event")


@pytest.mark.parametrize("details", [{}, {"cloud.sap/maintenance-log-details": "true"}],
                         ids=["quiet", "log-details"])
def test_a_blocked_profile_does_not_hold_the_other(client, make_node, unique, launch, details):
    name = make_node(unique, {PROFILE: "block--multi", **GO, **details})
    launch(SUITE)
    wait_entries(client, name, {"block": "maintenance-required", "multi": "in-maintenance"})
    assert state(read(client, name)) == "in-maintenance"


def test_an_unknown_profile_is_passed_over(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "does-not-exist--test", **GO})
    with History(client) as history:
        launch(SUITE)
        wait_entries(client, name, {"test": "maintenance-required"})
        assert not any("does-not-exist" in had for _, _, had in history.steps)


def test_unknown_profiles_leave_one(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "multi--otherprofile1--otherprofile2"})
    launch(SUITE)
    wait_entries(client, name, {"multi": "operational"})


def test_one_profile_of_a_node_is_in_maintenance(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "multi--to-maintenance", **GO})
    with History(client) as history:
        controller = launch(SUITE)
        wait_entries(client, name,
                     {"multi": "in-maintenance", "to-maintenance": "maintenance-required"})
        decided = controller.metric("controller_runtime_reconcile_total")
        label(client, name, poke="1")
        wait_for(lambda: controller.metric("controller_runtime_reconcile_total") > decided,
                 what="it has looked again")
        wait_for(lambda: any(step == (name, "in-maintenance", entries(read(client, name)))
                             for step in history.steps), what="the watch has told it")
        for who, _, had in list(history.steps):
            assert who != name or list(had.values()).count("in-maintenance") <= 1, had


def test_labels_are_shown_as_the_filter_says(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "test", "other": "x", **GO})
    controller = launch(SUITE)
    wait_state(client, name, "maintenance-required")
    assert info(controller, name)["labels"] == {**GO, "kubernetes.io/hostname": name}
    controller.config.write_text("intervals: {requeue: 1s}\n")
    wait_for(lambda: info(controller, name)["labels"] == {}, what="no filter, no labels")


def info(controller, name):
    status, _, body = controller.get("/api/v1/info")
    assert status == 200
    return next((e for e in json.loads(body) if e["node"] == name), None)


def test_info_shows_transitions_in_the_shape_of_the_original(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "block", **GO})
    controller = launch(SUITE)
    wait_state(client, name, "maintenance-required")
    # The server has the new state a moment before the controller has heard that it does.
    found = wait_for(lambda: (i := info(controller, name)) and
                     i["profiles"][0]["state"] == "maintenance-required" and i,
                     what="the node is shown")
    assert list(found) == ["node", "profiles", "labels", "updated"]
    [profile] = found["profiles"]
    assert profile["name"] == "block"
    assert profile["applied"] == {
        "next": "maintenance-required", "error": "", "transitions": [{
            "passed": False, "target": "in-maintenance", "error": "",
            "chain": {"passed": False, "expression": "never", "info": {"never": {
                "id": "hasLabel", "passed": False,
                "info": {"reason": "label e2e.example.com/never not present"}}}}}]}
    names = [e["node"] for e in json.loads(controller.get("/api/v1/info")[2])]
    assert len(names) == len(set(names)), "one entry a node"


def test_a_page_is_served(launch):
    controller = launch(SUITE)
    status, headers, body = controller.get("/")
    if status in (301, 302, 307, 308):
        status, headers, body = controller.get(headers["Location"])
    assert status == 200 and "<html" in body


def test_a_failing_check_counts_and_keeps_to_its_profile(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "broken--test", **GO})
    controller = launch(SUITE)
    wait_entries(client, name, {"broken": "operational", "test": "maintenance-required"})

    def failures():
        return controller.metric("maintenance_controller_transition_failure_count",
                                 profile="broken")

    for i in range(5):
        wait_for(lambda: failures() > i, what=f"it has failed {i + 1} times")
        label(client, name, poke=str(i))
    wait_for(lambda: failures() >= 5, what="it has failed five times")
    wait_for(lambda: "At least one check plugin failed for profile broken: Will stay in operational "
             "state" in events(client, name, "ChangeMaintenanceStateFailed"), what="it is told")
    shown = wait_for(lambda: (a := info(controller, name)["profiles"][0]["applied"]) and
                     a["error"] and a, what="it is shown")
    assert "failed check instances: nobody" in shown["error"]
    assert shown["transitions"][0]["chain"]["info"]["nobody"]["info"]["error"]


# --- a whole cycle ---

CYCLE = """
intervals: {requeue: 60s}
instances:
  check:
  - {type: hasLabel, name: needed, config: {key: update, value: needed}}
  - {type: hasLabel, name: approved, config: {key: approved, value: "true"}}
  - {type: hasLabel, name: done, config: {key: update, value: done}}
  - {type: maxMaintenance, name: room, config: {max: 1, profile: cycle}}
  trigger:
  - {type: alterLabel, name: take-approval, config: {key: approved, remove: true}}
  - {type: alterAnnotation, name: go, config: {key: e2e.example.com/go, value: "now"}}
  - {type: alterAnnotation, name: stop, config: {key: e2e.example.com/go, remove: true}}
  - {type: alterFinalizer, name: hold, config: {key: e2e.example.com/hold}}
  - {type: alterFinalizer, name: release, config: {key: e2e.example.com/hold, remove: true}}
  - {type: eviction, name: cordon, config: {action: cordon}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
  - {type: eviction, name: uncordon-all, config: {action: uncordon, anyOwner: true}}
profiles:
- name: cycle
  operational:
    transitions: [{check: needed, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: approved && room, next: in-maintenance, trigger: take-approval && cordon}]
  in-maintenance:
    enter: go && hold
    transitions: [{check: done, next: operational, trigger: stop && release && uncordon}]
- name: lifts
  in-maintenance:
    transitions: [{check: done, next: operational, trigger: uncordon-all}]
  operational:
    transitions: [{check: needed, next: in-maintenance, trigger: cordon}]
"""


def test_a_cycle_takes_three_patches_and_tells_three_events(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "cycle"})
    controller = launch(CYCLE)
    wait_state(client, name, "operational")
    wait_for(controller.idle, what="all nodes are served")
    before = controller.patches_taken()

    label(client, name, update="needed")
    wait_state(client, name, "maintenance-required")
    label(client, name, approved="true")
    node = wait_state(client, name, "in-maintenance")
    assert "approved" not in node.metadata.labels
    assert node.metadata.annotations["e2e.example.com/go"] == "now"
    assert node.metadata.finalizers == ["e2e.example.com/hold"]
    assert node.spec.unschedulable
    label(client, name, update="done")
    node = wait_state(client, name, "operational")
    assert "e2e.example.com/go" not in node.metadata.annotations
    assert not node.metadata.finalizers and not node.spec.unschedulable
    entry = json.loads(annotation(node))["Profiles"]["cycle"]
    assert entry["Current"] == entry["Previous"] == "operational"

    told = wait_for(lambda: len(events(client, name, "ChangedMaintenanceState")) >= 3 and
                    events(client, name, "ChangedMaintenanceState"), what="three events")
    assert told == [f"The node is now in the {where} state caused by profile cycle"
                    for where in ("maintenance-required", "in-maintenance", "operational")]
    wait_for(controller.idle, what="nothing is left to do")
    # Kubelets and, on a real cluster, controllers write to nodes too. A patch that meets such a write
    # is not taken, and is decided and sent again; three are taken in any case.
    assert controller.patches_taken() - before == 3
    moves = [line for line in controller.log().splitlines()
             if "Moved node to next state" in line and name in line]
    assert len(moves) == 3
    assert "Starting worker" in controller.log() and "is forbidden" not in controller.log()


@pytest.mark.parametrize("profile, stays", [("cycle", True), ("lifts", False)])
def test_a_node_cordoned_by_hand_stays_so_unless_all_may_be_lifted(client, make_node, unique,
                                                                   launch, profile, stays):
    name = make_node(unique, {PROFILE: profile})
    client.core.patch_node(name, {"spec": {"unschedulable": True}})
    launch(CYCLE)
    wait_state(client, name, "operational")
    label(client, name, update="needed", approved="true")
    wait_state(client, name, "in-maintenance")
    label(client, name, update="done", approved=None)
    node = wait_state(client, name, "operational")
    assert bool(node.spec.unschedulable) == stays


def test_removing_the_profile_forgets_and_its_return_begins_anew(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "cycle", "update": "needed"})
    launch(CYCLE)
    wait_state(client, name, "maintenance-required")
    client.core.patch_node(name, {"metadata": {"labels": {PROFILE: None, "update": None}}})
    wait_entries(client, name, {"default": "operational"})
    client.core.patch_node(name, {"metadata": {"labels": {PROFILE: "cycle"}}})
    node = wait_entries(client, name, {"cycle": "operational"})
    assert state(node) == "operational"


TWO_WAYS = """
intervals: {requeue: 60s}
instances:
  check:
  - {type: hasLabel, name: first, config: {key: way, value: first}}
  - {type: hasLabel, name: second, config: {key: way, value: second}}
  trigger:
  - {type: alterLabel, name: by-first, config: {key: by, value: first}}
  - {type: alterLabel, name: by-second, config: {key: by, value: second}}
  - {type: alterLabel, name: leave, config: {key: cloud.sap/maintenance-profile, value: other}}
profiles:
- name: ways
  operational:
    transitions:
    - {check: first, next: maintenance-required, trigger: by-first}
    - {check: second, next: maintenance-required, trigger: by-second}
- name: leaves
  operational:
    transitions: [{check: first, next: maintenance-required, trigger: leave}]
- name: other
"""


def test_the_transition_that_passed_pulls_its_own_trigger(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "ways", "way": "second"})
    launch(TWO_WAYS)
    node = wait_state(client, name, "maintenance-required")
    assert node.metadata.labels["by"] == "second"


def test_a_trigger_may_rewrite_the_profile_label(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "leaves", "way": "first"})
    launch(TWO_WAYS)
    wait_entries(client, name, {"other": "operational"})
    assert state(read(client, name)) == "operational"


def test_a_finalizer_holds_a_node_that_leaves_until_maintenance_is_over(client, make_node, unique,
                                                                       launch):
    name = make_node(unique, {PROFILE: "cycle"})
    launch(CYCLE)
    wait_state(client, name, "operational")
    label(client, name, update="needed", approved="true")
    wait_state(client, name, "in-maintenance")
    client.core.delete_node(name)
    assert read(client, name).metadata.deletion_timestamp
    label(client, name, update="done")

    def gone():
        return name not in {n.metadata.name for n in client.core.list_node().items}
    wait_for(gone, what="the finalizer is removed and the node is gone")


TWO = """
intervals: {requeue: 60s}
instances:
  notify:
  - {type: webhook, name: a, config: {url: "URL/a"}, schedule: {type: oneshot, config: {delay: -5m}}}
  - {type: webhook, name: b, config: {url: "URL/b"}, schedule: {type: oneshot, config: {delay: -5m}}}
profiles:
- {name: one, operational: {notify: a}}
- {name: two, operational: {notify: b}}
"""


def test_two_messages_that_fail_wait_each_for_its_next_try(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "one--two"})
    with Inbox() as inbox:
        inbox.answer = lambda path, body: (500, "no")
        controller = launch(TWO.replace("URL", inbox.url))
        wait_for(lambda: len(inbox.bodies("/a")) >= 2 and len(inbox.bodies("/b")) >= 2,
                 what="both are tried again")
        # Pauses begin at a second and grow; without them there would be hundreds.
        assert len(inbox.requests) <= 40
        inbox.answer = lambda path, body: (500, "no") if path == "/a" else (200, "ok")
        wait_for(lambda: controller.metric("drydock_notifications_total", instance="b",
                                           result="sent") == 1, "one comes through")

        def notes():
            return json.loads(annotation(read(client, name)))["Notifications"]
        wait_for(lambda: notes()["b"] != "0001-01-01T00:00:00Z", what="it is noted")
        assert notes()["a"] == "0001-01-01T00:00:00Z"
        inbox.answer = lambda path, body: (200, "ok")
        wait_for(lambda: controller.metric("drydock_notifications_total", instance="a",
                                           result="sent") == 1, "and the other")


# --- the example of the original's documentation ---

FLATCAR = """
intervals:
  requeue: 60s
  notify: 5h
instances:
  notify:
  - type: slack
    name: approval_required
    config:
      hook: ${HOOK}/approve
      channel: "#nodes"
      message: |
        {{ .Node.Name }} wants a reboot; approve it with
        kubectl annotate node {{ .Node.Name }} cloud.sap/maintenance-approved=true
    schedule: {type: periodic, config: {interval: 24h}}
  - type: slack
    name: maintenance_started
    config: {hook: "${HOOK}/started", channel: "#nodes", message: "{{ .Node.Name }} is {{ .State }}"}
    schedule: {type: periodic, config: {interval: 24h}}
  check:
  - type: hasAnnotation
    name: reboot_needed
    config: {key: flatcar-linux-update.v1.flatcar-linux.net/reboot-needed, value: "true"}
  - type: hasAnnotation
    name: check_approval
    config: {key: cloud.sap/maintenance-approved, value: "true"}
  - type: maxMaintenance
    name: one_at_a_time
    config: {max: 1, profile: flatcar}
  trigger:
  - type: alterAnnotation
    name: reboot-ok
    config: {key: flatcar-linux-update.v1.flatcar-linux.net/reboot-ok, value: "true"}
  - type: alterAnnotation
    name: remove_approval
    config: {key: cloud.sap/maintenance-approved, remove: true}
  - type: alterAnnotation
    name: remove_reboot_ok
    config: {key: flatcar-linux-update.v1.flatcar-linux.net/reboot-ok, remove: true}
profiles:
- name: flatcar
  operational:
    transitions:
    - check: reboot_needed
      next: maintenance-required
  maintenance-required:
    notify: approval_required
    transitions:
    - check: check_approval && one_at_a_time
      trigger: remove_approval && reboot-ok
      next: in-maintenance
  in-maintenance:
    notify: maintenance_started
    transitions:
    - check: "!reboot_needed"
      trigger: remove_reboot_ok
      next: operational
"""

AGENT = "flatcar-linux-update.v1.flatcar-linux.net/"
APPROVED = "cloud.sap/maintenance-approved"


class UpdateAgent:
    """What the update agent on a node does: asks, and with the permission cordons, reboots, returns."""

    def __init__(self, client, name):
        self.client, self.name = client, name

    def ask(self):
        annotate(self.client, self.name, **{AGENT + "reboot-needed": "true"})

    def reboot(self):
        annotations = read(self.client, self.name).metadata.annotations
        assert annotations[AGENT + "reboot-ok"] == "true"
        self.client.core.patch_node(self.name, {"spec": {"unschedulable": True}})
        self.client.core.patch_node(self.name, {
            "spec": {"unschedulable": None},
            "metadata": {"annotations": {AGENT + "reboot-needed": "false"}}})


def test_the_flatcar_example_runs_through_its_cycle(client, make_node, unique, launch):
    names = [make_node(f"{unique}-{i}", {PROFILE: "flatcar"}) for i in range(2)]
    agents = {name: UpdateAgent(client, name) for name in names}
    with Inbox() as slack, History(client) as history:
        controller = launch(FLATCAR, env={"HOOK": slack.url})
        for name in names:
            wait_state(client, name, "operational")
        for agent in agents.values():
            agent.ask()
        for name in names:
            wait_state(client, name, "maintenance-required")
            annotate(client, name, **{APPROVED: "true"})
        for _ in names:
            name = wait_for(lambda: [n for n in names
                                     if state(read(client, n)) == "in-maintenance"],
                            what="one of them may reboot", interval=0.02)[0]
            assert APPROVED not in read(client, name).metadata.annotations
            wait_for(lambda n=name: any(n in body for body in slack.bodies("/started")),
                     what="people know")
            agents[name].reboot()
            node = wait_state(client, name, "operational")
            assert AGENT + "reboot-ok" not in node.metadata.annotations
            assert not node.spec.unschedulable
        for name in names:
            wait_for(lambda n=name: len(events(client, n, "ChangedMaintenanceState")) == 3,
                     what=f"three events of {name}")
        wait_for(lambda: sorted(history.arrivals(names)) == names, what="the watch has told it")
        assert history.peak(names) == 1
    asked = [json.loads(body) for body in slack.bodies("/approve")]
    assert [a["channel"] for a in asked] == ["#nodes"] * 2
    assert {n for n in names if any(n in a["text"] for a in asked)} == set(names)
    assert "Starting worker" in controller.log() and "is forbidden" not in controller.log()
