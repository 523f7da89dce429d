"""MachineDrainRules of Cluster API reach the Nodes that are asked for something, and are kept right there."""

import json

import pytest

from bridge import fixture_yard, module_bridge
from capi import DELETED, MAINTAINED, Ref
from wait import holds_for, wait_for

RULES = "drydock.dev/drain-rules"
TIER = "e2e.example.com/tier"

fixture_bridge = module_bridge()


@pytest.fixture(name="place")
def fixture_place(yard):
    """A namespace of its own: rules mean all Machines of theirs."""
    return Place(yard)


class Place:
    def __init__(self, yard):
        self.yard, self.space = yard, yard.space()
        self.cluster = yard.cluster(space=self.space)

    def rule(self, name, behavior, **more):
        drain = {"behavior": behavior, **({"order": more.pop("order")} if "order" in more else {})}
        self.yard.management.create("MachineDrainRule", self.space, name, spec={"drain": drain, **more})
        self.yard.others.append(("MachineDrainRule", self.space, name))

    def pair(self, **labels):
        pair = self.yard.pair(self.cluster, labels=labels or {TIER: "gold"})
        pair.wait_hook()
        return pair


def book(pair):
    """None: there is none; what is no JSON comes as it is."""
    text = pair.node_annotations().get(RULES)
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def wait_book(pair, wanted):
    wait_for(lambda: book(pair) == wanted, f"{pair.node} has the rules {wanted}: {book(pair)}")


def test_rules_come_with_a_request_and_go_with_it(place):
    place.rule("10-db", "Drain", order=5, pods=[{"selector": {"matchLabels": {"app": "db"}}}])
    place.rule("20-others", "Skip", machines=[{"selector": {"matchLabels": {TIER: "silver"}}}])
    place.rule("30-jobs", "WaitCompleted", machines=[{"selector": {"matchLabels": {TIER: "gold"}}}],
               pods=[{"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["b", "a"]}]}}])
    pair = place.pair()
    assert book(pair) is None
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    assert book(pair) == [
        {"name": "10-db", "behavior": "Drain", "order": 5, "pods": [{"selector": "app=db"}]},
        {"name": "30-jobs", "behavior": "WaitCompleted", "pods": [{"namespaceSelector": "team in (a,b)"}]}]
    pair.ask(None)
    pair.wait_node(MAINTAINED, None)
    assert book(pair) is None


def test_rules_are_kept_right(place):
    """Rules and labels that change, and somebody in the workload cluster who would like others."""
    pair = place.pair()
    pair.delete()
    pair.wait_node(DELETED)
    assert book(pair) == []
    place.rule("a", "Skip", machines=[{"selector": {"matchLabels": {TIER: "silver"}}}])
    place.rule("b", "Drain", machines=[{"clusterSelector": {"matchLabels": {TIER: "east"}}}])
    holds_for(lambda: book(pair) == [], 0.3)
    pair.mark({TIER: "silver"})
    wait_book(pair, [{"name": "a", "behavior": "Skip"}])
    place.yard.management.mark("Cluster", *Ref(*place.cluster), labels={TIER: "east"})
    both = [{"name": "a", "behavior": "Skip"}, {"name": "b", "behavior": "Drain"}]
    wait_book(pair, both)
    for value in ("[]", None, "?"):
        pair.mark_node(annotations={RULES: value})
        wait_book(pair, both)
    place.yard.management.delete("MachineDrainRule", place.space, "a")
    wait_book(pair, both[1:])
