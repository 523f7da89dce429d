"""Who may go into maintenance when: limits, lines, staggers and pods with an affinity."""

import signal

import pytest

from contract import LEASE, PROFILE, state
from objects import pod
from profiles import ELECT, History, entries, label, read, wait_state
from wait import holds_for, wait_for

ROLL = """
intervals: {requeue: 60s}
instances:
  check:
  - {type: hasLabel, name: needed, config: {key: update, value: needed}}
  - {type: hasLabel, name: approved, config: {key: approved}}
  - {type: hasLabel, name: done, config: {key: update, value: done}}
  - {type: maxMaintenance, name: room, config: {max: MAX, profile: roll}}
profiles:
- name: roll
  operational:
    transitions: [{check: needed, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: approved && room, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: done, next: operational}]
"""


@pytest.fixture
def no_lease(client):
    def remove():
        for item in client.leases.list_namespaced_lease("default").items:
            if item.metadata.name == LEASE:
                client.leases.delete_namespaced_lease(LEASE, "default")
    remove()
    yield
    remove()


def in_maintenance(client, names):
    return [n.metadata.name for n in client.core.list_node().items
            if n.metadata.name in names and state(n) == "in-maintenance"]


def test_one_in_maintenance_keeps_the_other_out(client, make_node, unique, launch):
    one, other = (make_node(f"{unique}-{i}", {PROFILE: "roll", "approved": "yes"}) for i in "ab")
    controller = launch(ROLL.replace("MAX", "1"))
    label(client, one, update="needed")
    wait_state(client, one, "in-maintenance")
    label(client, other, update="needed")
    wait_state(client, other, "maintenance-required")
    wait_for(lambda: controller.metric("drydock_nodes_waiting") == 1, what="it stands in line")
    assert state(read(client, other)) == "maintenance-required"
    label(client, one, update="done")
    wait_state(client, other, "in-maintenance")
    assert state(read(client, one)) == "operational"


def test_a_node_that_is_deleted_in_maintenance_makes_room(client, make_node, unique, launch):
    one, other = (make_node(f"{unique}-{i}", {PROFILE: "roll", "approved": "yes"}) for i in "ab")
    controller = launch(ROLL.replace("MAX", "1"))
    label(client, one, update="needed")
    wait_state(client, one, "in-maintenance")
    label(client, other, update="needed")
    wait_for(lambda: controller.metric("drydock_nodes_waiting") == 1, what="it stands in line")
    client.core.delete_node(one)
    wait_state(client, other, "in-maintenance")


def test_first_come_first_served(client, make_node, unique, launch):
    # The names are against the order in which they come.
    names = [make_node(f"{unique}-{i}", {PROFILE: "roll", "approved": "yes"}) for i in "gcaebdf"]
    blocker = make_node(unique + "-z", {PROFILE: "roll", "approved": "yes", "update": "needed"})
    with History(client) as history:
        controller = launch(ROLL.replace("MAX", "1"))
        wait_state(client, blocker, "in-maintenance")
        for name in names:
            label(client, name, update="needed")
            wait_state(client, name, "maintenance-required")
        wait_for(lambda: controller.metric("drydock_nodes_waiting") == len(names),
                 what="all stand in line")
        for name in [blocker, *names]:
            wait_for(lambda n=name: in_maintenance(client, [blocker, *names]) == [n],
                     what=f"it is the turn of {name}", interval=0.02)
            label(client, name, update="done")
        wait_for(lambda: history.arrivals(names) == names, what="they came in order")
        assert history.peak([blocker, *names]) == 1


@pytest.mark.usefixtures("no_lease")
def test_a_limit_is_exact_with_two_replicas_and_a_killed_leader(client, make_node, unique, launch):
    names = [make_node(f"{unique}-{i:02}", {PROFILE: "roll", "approved": "yes"}) for i in range(12)]
    config = ROLL.replace("MAX", "3")

    def leads(c):
        return c.metric("leader_election_master_status", name=LEASE) == 1

    with History(client) as history:
        one = launch(config, "one", ELECT)
        wait_for(lambda: leads(one), what="the first leads")
        other = launch(config, "other", ELECT)
        for name in names:
            label(client, name, update="needed")
        wait_for(lambda: len(in_maintenance(client, names)) == 3, what="three have their turn")
        done = in_maintenance(client, names)
        for name in done:
            label(client, name, update="done")
        wait_for(lambda: len(set(in_maintenance(client, names)) - set(done)) >= 1,
                 what="the next are on their way", interval=0.005)
        one.send(signal.SIGKILL)  # in the middle of the next three
        one.wait()
        late = make_node(unique + "-late")
        wait_for(lambda: leads(other), "the second takes over")

        def serve():
            for name in in_maintenance(client, names):
                label(client, name, update="done")
            return all(state(n) == "operational" and n.metadata.labels.get("update") == "done"
                       for n in client.core.list_node().items if n.metadata.name in names)
        wait_for(serve, "all were served")
        wait_state(client, late, "operational")
        wait_for(lambda: len(history.arrivals(names)) >= 12, what="the watch has told all")
        assert sorted(history.arrivals(names)) == sorted(names), "each once"
        assert history.peak(names) == 3


STAGGER = """
intervals: {requeue: 60s}
instances:
  check:
  - {type: hasLabel, name: needed, config: {key: update, value: needed}}
  - {type: stagger, name: apart, config: {duration: 10s, leaseName: NAME, leaseNamespace: default, parallel: PARALLEL}}
profiles:
- name: stagger
  operational:
    transitions: [{check: needed && apart, next: maintenance-required}]
"""


@pytest.fixture
def leases(client, unique):
    """leases(): the stagger's leases by name."""
    def found():
        return {item.metadata.name: item for item in client.leases.list_namespaced_lease(
            "default").items if item.metadata.name.startswith(unique)}
    yield found
    for name in found():
        client.leases.delete_namespaced_lease(name, "default")


def test_a_stagger_lets_one_go_at_a_time(client, make_node, unique, launch, leases):
    names = [make_node(f"{unique}-{i}", {PROFILE: "stagger", "update": "needed"}) for i in "ab"]
    launch(STAGGER.replace("NAME", unique).replace("PARALLEL", "1"))

    def moved():
        return [n for n in names if state(read(client, n)) == "maintenance-required"]

    first = wait_for(moved, what="one has gone", interval=0.02)
    assert len(first) == 1
    lease = leases()[unique + "-0"].spec
    assert lease.holder_identity == first[0] and lease.lease_duration_seconds == 10
    holds_for(lambda: moved() == first and
              leases()[unique + "-0"].spec.holder_identity == first[0], 1, "the other waits")
    wait_for(lambda: len(moved()) == 2, what="the other has gone")
    [second] = set(names) - set(first)
    after = leases()[unique + "-0"].spec
    assert after.holder_identity == second
    assert (after.renew_time - lease.renew_time).total_seconds() >= 10
    assert list(leases()) == [unique + "-0"]


def test_a_stagger_of_two_lets_two_go(client, make_node, unique, launch, leases):
    names = [make_node(f"{unique}-{i}", {PROFILE: "stagger", "update": "needed"}) for i in "abc"]
    controller = launch(STAGGER.replace("NAME", unique).replace("PARALLEL", "2")
                        .replace("10s", "1h"))
    wait_for(lambda: sum(state(read(client, n)) == "maintenance-required" for n in names) == 2,
             what="two have gone")
    assert {lease.spec.holder_identity for lease in leases().values()} <= set(names)
    assert sorted(leases()) == [unique + "-0", unique + "-1"]
    decided = controller.metric("controller_runtime_reconcile_total")
    for name in names:
        label(client, name, poke="1")
    wait_for(lambda: controller.metric("controller_runtime_reconcile_total") >= decided + 3,
             what="it has looked again")
    assert sum(state(read(client, n)) == "maintenance-required" for n in names) == 2


AFFINITY = """
intervals: {requeue: 24h}
instances:
  check:
  - {type: hasLabel, name: needed, config: {key: update, value: needed}}
  - {type: hasLabel, name: approved, config: {key: approved}}
  - {type: affinity, name: empty-first, config: null}
profiles:
- name: affine
  operational:
    transitions: [{check: needed, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: approved && empty-first, next: in-maintenance}]
"""


def affine_pod(name, node):
    manifest = pod(name, node=node)
    manifest["spec"]["affinity"] = {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {
            "matchExpressions": [{"key": "cloud.sap/maintenance-state", "operator": "In",
                                  "values": ["operational"]}]}}]}}
    return manifest


@pytest.fixture
def place(client, namespace):
    """place(manifest): a pod on a node that may have no kubelet, which would remove it."""
    placed = []

    def create(manifest):
        client.core.create_namespaced_pod(namespace, manifest)
        placed.append(manifest["metadata"]["name"])

    yield create
    for name in placed:
        client.core.delete_namespaced_pod(name, namespace, grace_period_seconds=0)


def test_nodes_without_affine_pods_go_first(client, make_node, namespace, launch, place):
    full, empty = (make_node(f"{namespace}-{i}", {PROFILE: "affine", "update": "needed"})
                   for i in ("full", "empty"))
    place(affine_pod("likes", full))
    place(pod("plain", node=empty))
    controller = launch(AFFINITY)
    for name in (full, empty):
        wait_state(client, name, "maintenance-required")
    label(client, full, approved="yes")

    def reason():
        answer = controller.get(f"/api/v1/explain?node={full}")[2]
        return f"pods without affinity on: {empty}" in answer
    wait_for(reason, what="it waits for the node without such pods")
    assert entries(read(client, full)) == {"affine": "maintenance-required"}
    label(client, empty, approved="yes")
    wait_state(client, empty, "in-maintenance")
    wait_state(client, full, "in-maintenance")


def test_a_pod_that_comes_changes_who_goes_first(client, make_node, namespace, launch, place):
    """Nothing is asked again before a day is over: it is the watch that tells."""
    full, empty = (make_node(f"{namespace}-{i}", {PROFILE: "affine", "update": "needed"})
                   for i in ("full", "empty"))
    place(affine_pod("likes", full))
    controller = launch(AFFINITY)
    for name in (full, empty):
        wait_state(client, name, "maintenance-required")
    label(client, full, approved="yes")
    wait_for(lambda: f"pods without affinity on: {empty}" in
             controller.get(f"/api/v1/explain?node={full}")[2], what="it waits for the other")
    place(affine_pod("comes", empty))
    wait_state(client, full, "in-maintenance")
    assert entries(read(client, empty)) == {"affine": "maintenance-required"}


def test_all_go_where_all_have_affine_pods(client, make_node, namespace, launch, place):
    names = [make_node(f"{namespace}-{i}", {PROFILE: "affine", "update": "needed",
                                            "approved": "yes"}) for i in "ab"]
    for name in names:
        place(affine_pod("likes-" + name, name))
    launch(AFFINITY)
    for name in names:
        wait_state(client, name, "in-maintenance")
