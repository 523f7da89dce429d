"""What the bridge adds for those who rely on it: no approval is used twice, no cluster speaks for another, what is paused is
left alone, and what its marks were for is known."""

import json

from bridge import HOLD, STAY, fixture_bridge_env, module_bridge
from capi import (APPROVE_DELETION, APPROVE_MAINTENANCE, CAPI, DELETED, ENABLED, HOOK_VALUE, MAINTAINED, MAINTENANCE, OWN,
                  PAUSED, SKIP, STATE)
from wait import holds_for, wait_for

fixture_bridge = module_bridge()

CONTROL_PLANE = CAPI + "control-plane"
ASIDE = OWN + "maintenance-approved"


# --- approvals ---


def test_an_approval_from_before_the_deletion_does_not_count(bridge_env):
    """B15."""
    pair = bridge_env.pair()
    pair.approve()
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    pair.wait_node(APPROVE_DELETION, None)
    pair.wait_event("StaleApprovalRemoved")
    holds_for(lambda: pair.hook() == HOOK_VALUE, 0.5)
    pair.approve()
    pair.wait_gone()


def test_an_approval_from_before_the_maintenance_does_not_count(bridge_env):
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.approve(APPROVE_MAINTENANCE)
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.wait_node(APPROVE_MAINTENANCE, None)
    holds_for(lambda: pair.maintenance() == "requested", 0.5)
    pair.approve(APPROVE_MAINTENANCE)
    pair.wait_maintenance("approved")


def test_a_second_maintenance_needs_another_approval(bridge_env):
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    first = pair.node_annotations()[OWN + "maintenance-request"]
    pair.approve(APPROVE_MAINTENANCE)
    pair.wait_maintenance("approved")
    pair.ask(None)
    pair.wait_node(MAINTAINED, None)
    pair.ask("requested")
    wait_for(lambda: pair.node_annotations().get(OWN + "maintenance-request") not in (None, first), "it is another request")
    pair.wait_node(APPROVE_MAINTENANCE, None)
    holds_for(lambda: pair.maintenance() == "requested", 0.5)
    pair.approve(APPROVE_MAINTENANCE)
    pair.wait_maintenance("approved")


def test_an_engine_that_names_what_it_approves_is_taken_at_its_word(bridge_env):
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    nonce = pair.node_annotations()[OWN + "deletion-request"]
    assert nonce == pair.read()["metadata"]["uid"]
    pair.mark_node({APPROVE_DELETION: "true"}, {OWN + "deletion-approved-for": "another"})
    holds_for(lambda: pair.hook() == HOOK_VALUE, 0.5)
    pair.mark_node({APPROVE_DELETION: "true"}, {OWN + "deletion-approved-for": nonce})
    pair.wait_gone()


def test_a_released_machine_is_not_held_again(bridge_env):
    """B2."""
    pair = bridge_env.pair(annotations={STAY: "e2e"})
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    pair.approve()
    pair.wait_free()
    pair.mark_node({APPROVE_DELETION: None})
    pair.touch()
    holds_for(lambda: pair.hook() is None, 1)
    assert OWN + "hook-released" in pair.annotations()
    pair.mark(annotations={STAY: None})
    pair.wait_gone()


def test_an_approval_that_nobody_asked_for_is_reported(bridge_env):
    """B18; it is reported and, unless told otherwise, left alone."""
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.ask("approved")
    pair.wait_event("ForgedApproval")
    pair.wait_node(MAINTAINED)
    holds_for(lambda: pair.maintenance() == "approved", 0.3)


def test_a_label_that_a_template_keeps_is_not_fought_over(bridge_env):
    """B19."""
    pair = bridge_env.pair()
    pair.wait_hook()
    kept = {CAPI + "cluster-name": "one", ENABLED: "true"}
    bridge_env.management.apply("Machine", *pair.machine, "capi-machineset", {**kept, MAINTENANCE: "requested"})
    pair.wait_node(MAINTAINED)
    pair.approve(APPROVE_MAINTENANCE)
    wait_for(lambda: pair.annotations().get(ASIDE) == "true", "the approval is an annotation")
    bridge_env.management.apply("Machine", *pair.machine, "capi-machineset", {**kept, MAINTENANCE: "requested"})
    holds_for(lambda: pair.maintenance() == "requested" and pair.annotations().get(ASIDE) == "true", 0.5)
    bridge_env.management.apply("Machine", *pair.machine, "capi-machineset", kept)
    wait_for(lambda: ASIDE not in pair.annotations(), "the approval goes with the request")
    pair.wait_node(MAINTAINED, None)


# --- remediation, updates, control planes ---


def test_nobody_remediates_what_is_maintained(bridge_env):
    """B20."""
    pair, other = bridge_env.pair(), bridge_env.pair(annotations={SKIP: "mine"})
    for each in (pair, other):
        each.wait_hook()
        each.ask("requested")
        each.wait_node(MAINTAINED)
        assert each is other or SKIP not in each.annotations()
        each.approve(APPROVE_MAINTENANCE)
        each.wait_maintenance("approved")
    wait_for(lambda: SKIP in pair.annotations(), "remediation is off")
    for each in (pair, other):
        each.ask(None)
        each.wait_node(MAINTAINED, None)
    wait_for(lambda: SKIP not in pair.annotations(), "remediation is on again")
    assert other.annotations()[SKIP] == "mine"


def test_an_update_in_place_is_waited_for(bridge_env):
    """B21."""
    hooks = "runtime.cluster.x-k8s.io/pending-hooks"
    pair = bridge_env.pair(annotations={hooks: "UpdateMachine"})
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.approve(APPROVE_MAINTENANCE)
    holds_for(lambda: pair.maintenance() == "requested", 0.5)
    pair.mark(annotations={hooks: None})
    pair.wait_maintenance("approved")


def test_control_plane_machines_are_approved_one_after_another(bridge_env):
    """B21. Where Cluster API judges how Nodes are, members that are not healthy do not count for the quorum."""
    cluster = bridge_env.cluster()
    pairs = [bridge_env.pair(cluster, labels={CONTROL_PLANE: ""}, wait=False) for _ in range(3)]
    for pair in pairs:
        wait_for(lambda p=pair: p.named(), "it has its Node")
        pair.wait_hook()
    for pair in pairs:
        pair.ask("requested")
    for pair in pairs:
        pair.wait_node(MAINTAINED)
        pair.approve(APPROVE_MAINTENANCE)
    if bridge_env.bridge_clusters.real:
        holds_for(lambda: not any(p.maintenance() == "approved" for p in pairs), 1, "no Node says that it is healthy")
    for pair in pairs:
        pair.report()
    waiting = list(pairs)
    while waiting:
        done = wait_for(lambda: [p for p in waiting if p.maintenance() == "approved"], "the next is approved")
        assert len(done) == 1
        holds_for(lambda: sum(p.maintenance() == "approved" for p in pairs) == 1, 0.5)
        waiting.remove(done[0])
        done[0].ask(None)
        done[0].wait_node(MAINTAINED, None)


# --- who may speak for whom ---


def test_a_node_of_another_cluster_says_nothing_about_a_machine(bridge_env):
    """B13: whoever rules a workload cluster can write on its Nodes what he likes."""
    victim, own = bridge_env.pair(annotations={HOLD: "e2e"}), bridge_env.pair(workload="two")
    victim.wait_hook()
    own.wait_hook()
    victim.delete()
    victim.wait_node(DELETED)
    lie = {CAPI + "machine": victim.machine.name, CAPI + "cluster-namespace": victim.machine.space, CAPI + "cluster-name": "one"}
    name = f"{bridge_env.unique}-liar"
    own.workload.create("Node", None, name, labels={STATE: "operational", APPROVE_DELETION: "true"}, annotations={
        **lie, OWN + "deletion-request": victim.read()["metadata"]["uid"]})

    def told():
        """Cluster API may have set it right before anybody has looked."""
        own.mark_node({APPROVE_DELETION: "true"}, lie)
        return own.events("PairingMismatch")
    wait_for(told, "the lie is noticed")
    holds_for(lambda: victim.hook() == HOOK_VALUE, 0.5)
    assert DELETED not in own.workload.labels("Node", None, name)
    own.workload.delete("Node", None, name)


def test_a_machine_that_does_not_name_its_node_is_not_found_by_it(bridge_env):
    """Of the same cluster: only the Machine's own word counts."""
    pair, other = bridge_env.pair(), bridge_env.pair()
    for each in (pair, other):
        each.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    other.mark_node({APPROVE_DELETION: "true"}, {CAPI + "machine": pair.machine.name,
                                                 OWN + "deletion-request": pair.read()["metadata"]["uid"]})
    holds_for(lambda: pair.hook() == HOOK_VALUE and DELETED not in other.node_labels(), 0.5)


# --- who is not to be written to ---


def test_a_paused_machine_is_not_written_to(bridge_env, bridge):
    """B6."""
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.mark({MAINTENANCE: "requested", ENABLED: None}, {PAUSED: ""})
    witness = bridge_env.pair()
    witness.wait_hook()
    before = json.dumps(pair.annotations(), sort_keys=True), pair.node_labels()
    pair.touch()
    holds_for(lambda: (json.dumps(pair.annotations(), sort_keys=True), pair.node_labels()) == before, 1)
    pair.mark(annotations={PAUSED: None})
    pair.wait_free()


def test_the_machines_of_a_paused_cluster_are_not_written_to(bridge_env):
    cluster = bridge_env.cluster()
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    bridge_env.management.patch("Cluster", *cluster, {"spec": {"paused": True}})
    witness = bridge_env.pair()
    witness.wait_hook()
    pair.ask("requested")
    holds_for(lambda: MAINTAINED not in pair.node_labels() and pair.hook() == HOOK_VALUE, 1)
    bridge_env.management.patch("Cluster", *cluster, {"spec": {"paused": None}})
    pair.wait_node(MAINTAINED)


# --- ends ---


def test_a_disabled_machine_leaves_no_request_behind(bridge_env):
    """B17, also for the last one of a cluster."""
    pair = bridge_env.pair(bridge_env.cluster())
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.mark({ENABLED: None})
    pair.wait_free()
    pair.wait_node(MAINTAINED, None)
    wait_for(lambda: not [key for key in pair.node_annotations() if key.startswith(OWN)], "nothing of ours is left on the Node")
    assert pair.maintenance() == "requested"


def test_a_cluster_that_is_deleted_does_not_hang(bridge_env):
    """B28."""
    cluster = bridge_env.cluster()
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    bridge_env.management.delete("Cluster", *cluster)
    pair.wait_gone()
    wait_for(lambda: bridge_env.management.get("Cluster", *cluster) is None, "the Cluster is gone")
