"""The bridge as the original is tested: hooks of Machines follow their Nodes, requests reach Nodes, approvals come back.

test_bridge_old.py runs these cases against a server that knows v1beta1 alone.
"""

from bridge import HOLD, STAY, fixture_bridge_env, module_bridge
from capi import (APPROVE_DELETION, APPROVE_MAINTENANCE, DELETED, ENABLED, HOOK_VALUE, MAINTAINED, MAINTENANCE, STATE, status_of)
from wait import holds_for, wait_for

fixture_bridge = module_bridge()


def test_nothing_is_attached_before_an_engine_looks_after_the_node(bridge_env):
    """1 and 2."""
    pair = bridge_env.pair(state=None, annotations={HOLD: "e2e"})
    witness = bridge_env.pair()
    witness.wait_hook()
    pair.delete()
    witness.delete()
    witness.wait_node(DELETED)
    holds_for(lambda: pair.hook() is None and DELETED not in pair.node_labels(), 0.5)


def test_the_hook_has_the_value_of_the_original(bridge_env):
    """4."""
    pair = bridge_env.pair()
    pair.wait_hook()
    assert pair.hook() == HOOK_VALUE


def test_a_node_that_gets_an_engine_protects_its_machine(bridge_env):
    """10."""
    pair = bridge_env.pair(state=None)
    witness = bridge_env.pair()
    witness.wait_hook()
    assert pair.hook() is None
    pair.mark_node({STATE: "operational"})
    pair.wait_hook()
    pair.mark_node({STATE: "in-maintenance"})
    pair.touch()
    holds_for(lambda: pair.hook() == HOOK_VALUE, 0.3)
    pair.mark_node({STATE: None})
    pair.wait_free()


def test_a_deletion_is_told_to_the_node_held_and_approved(bridge_env):
    """3, 5 and 11."""
    pair = bridge_env.pair()
    pair.wait_hook()
    assert DELETED not in pair.node_labels()
    pair.delete()
    pair.wait_node(DELETED)
    pair.touch()
    wait_for(lambda: pair.reason() == "WaitingForPreDrainHook", "Cluster API waits")
    holds_for(lambda: pair.hook() == HOOK_VALUE and pair.deleting(), 0.5)
    pair.approve()
    pair.wait_gone()
    wait_for(lambda: not pair.node_labels(), "the Node is gone, too")


def test_approvals_are_the_engines_and_stay(bridge_env):
    """The labels of the engine are never ours to give or to change."""
    pair = bridge_env.pair(annotations={STAY: "e2e"})
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    pair.approve()
    pair.wait_free()
    labels = pair.node_labels()
    assert (labels[APPROVE_DELETION], labels[STATE]) == ("true", "operational")


def test_an_approval_with_another_value_is_none(bridge_env):
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    for value in ("false", "True", ""):
        pair.mark_node({APPROVE_DELETION: value})
        holds_for(lambda: pair.hook() == HOOK_VALUE, 0.3)
    pair.approve()
    pair.wait_gone()


def test_a_machine_that_is_not_enabled_any_more_is_free(bridge_env):
    """6 and 12."""
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.mark({ENABLED: None})
    pair.wait_free()
    pair.touch()
    holds_for(lambda: pair.hook() is None, 0.3)


def test_only_exactly_true_enables(bridge_env):
    pairs = [bridge_env.pair(enabled=False, labels={ENABLED: value}, wait=False) for value in ("True", "yes", "")]
    witness = bridge_env.pair()
    witness.wait_hook()
    holds_for(lambda: not any(pair.hook() for pair in pairs), 0.3)
    pairs[0].mark({ENABLED: "true"})
    pairs[0].wait_hook()


def test_a_maintenance_is_told_to_the_node_and_taken_back(bridge_env):
    """7 and 9; another value is as none."""
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    holds_for(lambda: pair.maintenance() == "requested", 0.3)
    pair.ask(None)
    pair.wait_node(MAINTAINED, None)
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.ask("whatever")
    pair.wait_node(MAINTAINED, None)
    assert pair.maintenance() == "whatever"


def test_an_approved_maintenance_comes_back(bridge_env):
    """8; it stays until the label goes, whatever becomes of the approval."""
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.approve(APPROVE_MAINTENANCE)
    pair.wait_maintenance("approved")
    pair.wait_event("ApprovalReceived")
    assert pair.node_labels()[MAINTAINED] == "true"
    pair.mark_node({APPROVE_MAINTENANCE: None})
    holds_for(lambda: pair.maintenance() == "approved" and pair.node_labels().get(MAINTAINED) == "true", 0.5)
    pair.ask(None)
    pair.wait_node(MAINTAINED, None)
    holds_for(lambda: pair.maintenance() is None and pair.hook() == HOOK_VALUE, 0.3)


def test_an_engine_that_leaves_takes_requests_with_it_and_no_label_of_the_machine(bridge_env):
    pair = bridge_env.pair()
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.mark_node({STATE: None})
    pair.wait_node(MAINTAINED, None)
    pair.wait_free()
    assert pair.labels()[MAINTENANCE] == "requested"


def test_a_machine_without_a_node_is_not_held(bridge_env):
    pair = bridge_env.pair(node=False)
    witness = bridge_env.pair()
    witness.wait_hook()
    assert pair.hook() is None
    pair.delete()
    pair.wait_gone()


def test_a_node_that_comes_later_is_found(bridge_env):
    pair = bridge_env.pair(node=False)
    witness = bridge_env.pair()
    witness.wait_hook()
    bridge_env.add_node(pair, f"lab://{pair.machine.space}/one/{pair.machine.name}")
    wait_for(lambda: pair.named() == pair.node, "the Machine has its Node")
    pair.wait_hook()


def test_what_goes_on_is_written_at_the_machine(bridge_env):
    """A machine that is merely protected needs no word; one that waits says since when, and why."""
    pair = bridge_env.pair()
    pair.wait_hook()
    assert status_of(bridge_env.management, pair.machine) == {}
    pair.ask("requested")
    first = wait_for(lambda: status_of(bridge_env.management, pair.machine), "it says what it does")
    assert set(first) == {"phase", "reason", "since"}, first
    pair.delete()
    pair.wait_node(DELETED)
    then = wait_for(lambda: (s := status_of(bridge_env.management, pair.machine))["phase"] != first["phase"] and s, "it says more")
    assert then["since"] >= first["since"]
    for reason in ("HookAttached", "NodeRequestDelivered"):
        pair.wait_event(reason)
    pair.approve()
    pair.wait_gone()
    pair.wait_event("HookReleased")
