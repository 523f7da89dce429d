"""Cluster API's MachineDrainRules, where drydock drains before Cluster API does: the bridge leaves at the Node what the rules
say of it, and whoever drains that Node keeps to it. On the cluster Cluster API itself drains the same pods for comparison."""

import json
import subprocess

import kubernetes
import pytest

from bridge import STAY, BridgeEnv, fixture_bridge_env, leads
from capi import APPROVE_DELETION, CAPI, DELETED, EXCLUDE, HOOK_VALUE, MAINTAINED, RULES
from contract import PROFILE
from auth_proxy import AuthProxy
from objects import budget, pod
from process import Bridge, Controller, drydock
from requests_fixture import fixture_installed, fixture_objects, fixture_requests_env
from test_bridge_engine import ENGINE
from wait import holds_for, wait_for

DRAIN = CAPI + "drain"  # a pod's own label, which counts before any rule
WAYS = {"profiles": (), "requests": ("--workload-approval", "requests")}


def having(**labels):
    return {"matchLabels": labels}


def pods_of(app, **more):
    return {"pods": [{"selector": having(app=app), **more}]}


# Of the Machine and its Cluster: os=linux, stage=test; of the namespace of its pods: team=ours. Two rules are not for this
# Machine; of the two about `both` the first by name decides; `kept` speaks for itself.
SCRIPT = [
    ("05-other-machines", "Skip", None, {"machines": [{"selector": having(os="windows")}], **pods_of("first")}),
    ("06-other-clusters", "Skip", None, {"machines": [{"clusterSelector": having(stage="production")}], **pods_of("first")}),
    ("10-first", "Drain", 0, {"machines": [{"selector": having(os="linux"), "clusterSelector": having(stage="test")}],
                              **pods_of("first")}),
    ("20-later", "Drain", 10, pods_of("later")),
    ("30-stays", "Skip", None, pods_of("stays")),
    ("40-waits", "WaitCompleted", None, pods_of("waits")),
    ("50-theirs", "Skip", None, pods_of("theirs", namespaceSelector=having(team="theirs"))),
    ("51-ours", "Skip", None, pods_of("ours", namespaceSelector=having(team="ours"))),
    ("60-kept", "Drain", None, pods_of("kept")),
    ("70-both", "Skip", None, pods_of("both")),
    ("71-both", "Drain", None, pods_of("both")),
]
PODS = ("both", "first", "kept", "later", "ours", "plain", "stays", "theirs", "waits")
STAYING = {"both", "kept", "ours", "stays"}
# What applies to the Machine, as its Node shows it.
SHOWN = [(name, behavior, order or 0) for name, behavior, order, _ in SCRIPT if not name.startswith("0")]


class Play:
    """Pods on a Node, one of each kind that the rules tell apart, and what becomes of them."""

    def __init__(self, client, namespace, node):
        self.client, self.namespace, self.node = client, namespace, node
        client.core.patch_namespace(namespace, {"metadata": {"labels": {"team": "ours"}}})
        for name in PODS:
            labels = {"app": name, **({DRAIN: "skip"} if name == "kept" else {})}
            client.core.create_namespaced_pod(namespace, pod(name, labels, node))
        wait_for(lambda: all(runs(found) for found in self.read().values()), "the pods run")
        self.version = client.core.list_namespaced_pod(namespace).metadata.resource_version

    def read(self):
        return {p.metadata.name: p for p in self.client.core.list_namespaced_pod(self.namespace).items}

    def hold(self):
        """Nobody may evict the first ones until `let_go`."""
        policy = self.client.policy
        policy.create_namespaced_pod_disruption_budget(self.namespace, budget("held", "first", minAvailable=1))
        wait_for(lambda: policy.read_namespaced_pod_disruption_budget("held", self.namespace).status.current_healthy,
                 "the budget knows its pod")

    def let_go(self):
        self.client.policy.delete_namespaced_pod_disruption_budget("held", self.namespace)

    def wait_left(self, *names):
        wait_for(lambda: set(self.read()) == set(names), f"{names} are left: {sorted(self.read())}")

    def untouched(self, *names):
        found = self.read()
        return all(name in found and runs(found[name]) for name in names)

    def complete(self, name):
        """What is waited for comes to its end: somebody deletes it."""
        self.client.core.delete_namespaced_pod(name, self.namespace)

    def record(self, last):
        """[(pod, "leaves" or "gone")] in the order in which it happened, up to the end of one of them."""
        seen = []
        for event in kubernetes.watch.Watch().stream(self.client.core.list_namespaced_pod, self.namespace,
                                                     resource_version=self.version, timeout_seconds=60):
            meta = event["object"].metadata
            step = (meta.name, "gone" if event["type"] == "DELETED" else "leaves")
            if (event["type"] == "DELETED" or meta.deletion_timestamp) and step not in seen:
                seen.append(step)
            if step == (last, "gone"):
                return seen
        raise AssertionError(f"{last} is not gone: {seen}")

    def check_end(self):
        """All that there is to know about who was drained, and when; the same for whoever drained."""
        steps = self.record("later")
        assert {name for name, _ in steps} == set(PODS) - STAYING
        begin = steps.index(("later", "leaves"))
        for name in ("first", "plain", "theirs", "waits"):
            assert steps.index((name, "gone")) < begin, steps
        assert set(self.read()) == STAYING and self.untouched(*STAYING)


def runs(found):
    return found.metadata.deletion_timestamp is None and found.status.phase == "Running"


def shown(pair):
    """What the Node says, and whether somebody asks for it; both as of one moment."""
    meta = pair.workload.get("Node", None, pair.node)["metadata"]
    rules = meta.get("annotations", {}).get(RULES)
    if rules and rules.startswith("["):
        rules = [(rule["name"], rule["behavior"], rule.get("order", 0)) for rule in json.loads(rules)]
    return rules, bool({DELETED, MAINTAINED} & set(meta.get("labels", {})))


def wait_shown(pair, rules, asked=True):
    def says():
        found = shown(pair)
        assert found == (rules, asked), found
        return True
    wait_for(says, f"{pair.node} says {rules}")


# --- one Cluster for the whole module, and Cluster API's own drain beside everything else ---


class Stage:
    """A Cluster behind an auth_proxy, and its rules."""

    def __init__(self, bridge_env):
        self.bridge_env, self.auth_proxy, self.space = bridge_env, bridge_env.auth_proxy("live"), bridge_env.space()
        self.cluster = bridge_env.cluster(self.auth_proxy.kubeconfig(), space=self.space)
        bridge_env.management.mark("Cluster", *self.cluster, {"stage": "test"})
        for name, behavior, order, of in SCRIPT:
            bridge_env.rule(name, behavior, order, **of)

    def evictions(self, namespace):
        """The pods that Cluster API has had evicted, in its order. Whoever drains for us does not come through here."""
        paths = [r.path.split("?")[0].split("/") for r in self.auth_proxy.requests if r.method == "POST"]
        return [path[-2] for path in paths if path[-1] == "eviction" and namespace in path]


@pytest.fixture(scope="module", name="stage")
def fixture_stage(bridge_clusters, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    stage = Stage(BridgeEnv(bridge_clusters, "rules" + folder.parent.name.rsplit("-", 1)[-1], folder))
    yield stage
    stage.bridge_env.clean()


@pytest.fixture(scope="module", name="comparison", autouse=True)
def fixture_comparison(stage, backend, client):
    """Cluster API drains alone: a Machine that is not ours. It looks again after twenty seconds, which the other cases use."""
    if backend.name != "cluster":
        yield None
        return
    pair = stage.bridge_env.pair(stage.cluster, workload="live", enabled=False, labels={"os": "linux"}, annotations={STAY: "e2e"})
    namespace = f"{stage.space}-alone"
    client.core.create_namespace({"metadata": {"name": namespace}})
    wait_for(lambda: client.core.read_namespaced_service_account("default", namespace), "the namespace has its service account")
    play = Play(client, namespace, pair.node)
    pair.delete()
    play.wait_left("later", "waits", *STAYING)
    assert play.untouched("later", "waits")
    wait_for(lambda: f"{namespace}/waits" in told(pair), f"it is waited for: {told(pair)}")
    assert f"{namespace}/later" in told(pair)
    play.complete("waits")
    yield play, pair
    client.core.delete_namespace(namespace)


def told(pair):
    """What Cluster API says about the deletion."""
    return next((c["message"] for c in pair.read()["status"]["conditions"] if c["type"] == "Deleting"), "")


@pytest.fixture(scope="module", name="engine", autouse=True)
def fixture_engine(backend, fixture_installed, tmp_path_factory):
    """It has the profiles, and looks after limits."""
    folder = tmp_path_factory.mktemp("engine")
    (folder / "engine.yaml").write_text(ENGINE, encoding="utf-8")
    with Controller(backend.kubeconfig, str(folder), flags=["--config", str(folder / "engine.yaml")]) as controller:
        yield controller.wait_ready()


@pytest.fixture(scope="module", name="bridge")
def fixture_bridge(request, bridge_clusters, tmp_path_factory):
    """The bridge, for the way in which a case has its approvals; what it writes to Machines goes through `bridge.auth_proxy`."""
    folder = tmp_path_factory.mktemp("bridge")
    flags = WAYS[getattr(request, "param", "profiles")]
    with AuthProxy(bridge_clusters.home.access, folder) as auth_proxy:
        with Bridge(auth_proxy.file(folder / "home"), str(folder), flags=["--lease-namespace", "default", *flags]) as bridge:
            bridge.auth_proxy, bridge.way = auth_proxy, "requests" if flags else "profiles"
            wait_for(lambda: leads(bridge.wait_ready()), "it leads")
            yield bridge
        assert not [r for r in auth_proxy.requests if EXCLUDE.encode() in r.body], "Cluster API's own drain is never switched off"


both_ways = pytest.mark.parametrize("bridge", WAYS, indirect=True, scope="module")
one_way = pytest.mark.parametrize("bridge", ["profiles"], indirect=True, scope="module")


@pytest.fixture(name="member")
def fixture_member(bridge_env, requests_env, bridge):
    """member(cluster): a Machine whose Node has a kubelet, and profiles or a limit that drain."""
    def make(cluster, **kwargs):
        pair = bridge_env.pair(cluster, workload="live", state=None, **kwargs)
        if bridge.way == "profiles":
            pair.mark_node({PROFILE: "capi-deletion--capi-maintenance"})
        else:
            pair.mark_node({"case": requests_env.unique})
            requests_env.wait_limit(requests_env.limit(limit=100, drain={"evictUnmanaged": True}), population=1)
        pair.wait_hook()
        return pair
    return make


# --- drains ---


@both_ways
def test_a_machine_is_drained_as_the_rules_say(stage, client, namespace, member, bridge):
    pair = member(stage.cluster, labels={"os": "linux"}, annotations={STAY: "e2e"})
    play = Play(client, namespace, pair.node)
    play.hold()
    assert shown(pair) == (None, False)
    pair.delete()
    wait_shown(pair, SHOWN)
    play.wait_left("first", "later", "waits", *STAYING)
    holds_for(lambda: play.untouched("first", "later", "waits") and pair.hook() == HOOK_VALUE, 0.5, "a group is waited for")
    play.let_go()
    play.wait_left("later", "waits", *STAYING)
    holds_for(lambda: play.untouched("later", "waits") and pair.hook() == HOOK_VALUE, 1,
              "what completes by itself is waited for")
    play.complete("waits")
    pair.wait_free()
    play.check_end()
    assert pair.node_labels()[APPROVE_DELETION] == "true"
    # It is Cluster API's turn, which finds nobody left to evict.
    wait_for(lambda: pair.reason() == "WaitingForPreTerminateHook", "Cluster API is done")
    assert stage.evictions(namespace) == []
    assert play.untouched(*STAYING)
    assert EXCLUDE not in pair.annotations()


@both_ways
def test_the_rules_go_with_the_request(stage, client, namespace, member, bridge):
    """A maintenance: its Node is drained by the rules, too, and forgets them."""
    pair = member(stage.cluster, labels={"os": "linux"})
    client.core.create_namespaced_pod(namespace, pod("stays", node=pair.node))
    client.core.create_namespaced_pod(namespace, pod("later", node=pair.node))
    wait_for(lambda: all(runs(p) for p in client.core.list_namespaced_pod(namespace).items), "the pods run")
    pair.ask("requested")
    pair.wait_maintenance("approved")
    found = client.core.list_namespaced_pod(namespace).items
    assert [p.metadata.name for p in found] == ["stays"] and runs(found[0])
    assert shown(pair) == (SHOWN, True)
    pair.ask(None)
    wait_shown(pair, None, asked=False)
    wait_for(lambda: not client.core.read_node(pair.node).spec.unschedulable, "pods may come again")
    assert shown(pair) == (None, False)


INVALID = {"machines": [{"selector": {"matchExpressions": [{"key": "os", "operator": "Resembles", "values": ["linux"]}]}}]}


@both_ways
def test_rules_are_followed_as_they_change(bridge_env, client, namespace, member, bridge):
    """One that nobody understands stops the drain and is told of; mended it goes on, and is changed once more."""
    space = bridge_env.space()
    cluster = bridge_env.cluster(space=space, workload="live")
    with bridge_env.management.unchecked(space):
        rule = wait_for(lambda: bridge_env.rule("10-rule", "Drain", 5, **INVALID), "nobody refuses it")
        pair = member(cluster)
        for name in ("goes", "waits"):
            client.core.create_namespaced_pod(namespace, pod(name, node=pair.node))
        wait_for(lambda: all(runs(p) for p in client.core.list_namespaced_pod(namespace).items), "the pods run")

        def left():
            return {p.metadata.name for p in client.core.list_namespaced_pod(namespace).items if runs(p)}
        pair.delete()
        wait_for(lambda: (shown(pair)[0] or "")[:9] == '{"error":', "the Node says that there is a mistake")
        text = wait_for(lambda: (t := explain(bridge, pair)) and "10-rule" in t and t, "and so does the bridge")
        assert "Resembles" in text, text
        blocked = wait_for(lambda: events(client, pair.node, "DrainBlocked"), "whoever drains says it, too")
        assert "10-rule" in blocked[0].message and "Resembles" in blocked[0].message
        holds_for(lambda: left() == {"goes", "waits"} and pair.hook() == HOOK_VALUE, 1, "nobody is evicted")
        change(bridge_env, rule, {"drain": {"behavior": "WaitCompleted", "order": None}, "machines": None, **pods_of("waits")})
        wait_shown(pair, [("10-rule", "WaitCompleted", 0)])
        wait_for(lambda: left() == {"waits"}, "the rest is drained")
        holds_for(lambda: left() == {"waits"} and pair.hook() == HOOK_VALUE, 0.5, "it is waited for")
        change(bridge_env, rule, {"drain": {"behavior": "Drain"}})
        pair.wait_gone()
        assert left() == set()


def events(client, node, reason):
    return [e for e in client.core.list_event_for_all_namespaces().items
            if e.involved_object.name == node and e.reason == reason]


def change(bridge_env, rule, spec):
    assert bridge_env.management.patch("MachineDrainRule", *rule, {"spec": spec})


def explain(bridge, pair):
    return subprocess.run([drydock(), "explain", "machine", "/".join(pair.machine), "--address",
                           f"http://127.0.0.1:{bridge.metrics_port}"],
                          text=True, capture_output=True, check=True, timeout=60).stdout


# --- what the Node says ---


@one_way
def test_the_node_says_what_applies_to_its_machine(bridge_env, bridge):
    """Nobody drains here: it follows rules and labels, and whoever changes it finds it as it was."""
    auth_proxy, space = bridge_env.auth_proxy(), bridge_env.space()
    cluster = bridge_env.cluster(auth_proxy.kubeconfig(), space=space)
    pair, other = bridge_env.pair(cluster), bridge_env.pair(cluster)
    for each in (pair, other):
        each.wait_hook()
        assert shown(each) == (None, False)
    pair.ask("requested")
    wait_shown(pair, [])
    rule = bridge_env.rule("20-linux", "Skip", machines=[{"selector": having(os="linux")}])
    pair.mark({"os": "linux"})
    wait_shown(pair, [("20-linux", "Skip", 0)])
    bridge_env.rule("10-test", "Drain", -3, machines=[{"selector": having(os="linux"), "clusterSelector": having(stage="test")}])
    bridge_env.management.mark("Cluster", *cluster, {"stage": "test"})
    both = [("10-test", "Drain", -3), ("20-linux", "Skip", 0)]
    wait_shown(pair, both)
    for forged in ("[]", None, "nonsense", json.dumps([{"name": "10-test", "behavior": "Skip"}])):
        assert pair.mark_node(annotations={RULES: forged})
        wait_shown(pair, both)
    bridge_env.management.delete("MachineDrainRule", *rule)
    wait_shown(pair, both[:1])
    bridge_env.management.mark("Cluster", *cluster, {"stage": None})
    wait_shown(pair, [])
    pair.delete()
    pair.wait_node(DELETED)
    pair.ask(None)
    pair.wait_node(MAINTAINED, None)
    assert shown(pair) == ([], True), "it is being deleted all the same"
    assert shown(other) == (None, False)
    # Whoever sees a request sees the rules: one patch brings both.
    bodies = [json.loads(r.body)["metadata"] for r in auth_proxy.requests if r.method == "PATCH" and "drydock" in r.agent]
    asking = [meta for meta in bodies if meta.get("labels", {}).get(MAINTAINED) == "true"]
    assert asking and all(RULES in meta["annotations"] for meta in asking), bodies


@one_way
def test_rules_of_another_namespace_are_not_meant(bridge_env, stage, bridge):
    pair = bridge_env.pair(labels={"os": "linux"})
    pair.wait_hook()
    pair.delete()
    wait_shown(pair, [])


# --- and what Cluster API did ---


@pytest.mark.backend("cluster")
def test_cluster_api_alone_drains_the_same(stage, comparison):
    """The same pods leave and stay, in the same groups, and the same one was waited for."""
    play, pair = comparison
    play.check_end()
    evicted = stage.evictions(play.namespace)
    assert evicted[-1] == "later" and sorted(evicted) == sorted(set(PODS) - STAYING - {"waits"})
    assert EXCLUDE not in pair.annotations() and RULES not in pair.node_annotations()
