"""What limits count, by the controller: conditions of nodes, workloads of three types, and both together."""

import pytest

from objects import daemon_set, deployment, template
from requests_fixture import ASKS, LIMITS, fixture_installed, fixture_objects, fixture_requests_env, fixture_serve
from wait import wait_for


def set_ready(client, node, status):
    """None: it has no such condition at all."""
    condition = {"type": "Ready", "$patch": "delete"} if status is None else {
        "type": "Ready", "status": status, "reason": "Test", "message": "as the test says"}
    client.core.patch_node_status(node, {"status": {"conditions": [condition]}})


# --- nodes ---


def test_readiness_counts_as_the_policies_say(requests_env, serve, client, kubelets):
    """Unknown counts, which the original did not see; no condition at all does not. The first policy that hits is told."""
    kubelets.pause()  # so that nodes have the conditions that are written here
    silent, broken, lost, healthy = requests_env.nodes(4)
    for node in (broken, healthy):
        client.core.patch_node(node, {"spec": {"unschedulable": True}})
    both = requests_env.limit("-both", limit=100, policies=["NotReady", "Unschedulable"])
    other = requests_env.limit("-other", limit=100, policies=["Unschedulable", "NotReady"])
    ready = requests_env.limit("-ready", limit=100, policies=["NotReady"])
    none = requests_env.limit("-none", limit=100)
    wanted = {
        both: (1, {broken: "NotReady", lost: "NotReady", healthy: "Unschedulable"}),
        other: (1, {broken: "Unschedulable", lost: "NotReady", healthy: "Unschedulable"}),
        ready: (2, {broken: "NotReady", lost: "NotReady"}),
        none: (4, {}),
    }
    serve()

    def counted():
        # Whoever looks after nodes without a kubelet writes conditions, too: after a while, and again.
        for node, status in ((silent, None), (broken, "False"), (lost, "Unknown"), (healthy, "True")):
            set_ready(client, node, status)
        found = {name: requests_env.status(name, LIMITS) for name in wanted}
        return {name: (s.get("limit", 0), s.get("unavailable", {})) for name, s in found.items()} == wanted

    wait_for(counted, "they are counted as their policies say")


def test_zero_grants_nothing_only_when_the_minimum_is_zero(requests_env, serve, objects):
    nodes = requests_env.nodes(2)
    limit = requests_env.limit(limit=0, minimum=0)
    serve()
    names = [requests_env.ask(node) for node in nodes]
    for name in names:
        requests_env.wait_reason(name, "LimitReached")
    requests_env.wait_limit(limit, nominal=0, waiting=2)
    assert [objects.state(name) for name in names] == ["Pending", "Pending"]
    assert objects.patch(LIMITS, limit, {"spec": {"minimum": None}})[0] == 200
    requests_env.wait_limit(limit, nominal=1, granted=1, waiting=1)


# --- workloads ---


def stateful_set(name, replicas, selector=None):
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
            "spec": {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}},
                     "template": template(name, selector)}}


def workload(kind, name, selector, healthy):
    """One that has all of its pods, because it wants none, or one whose pod nobody runs."""
    if kind == "daemonset":
        manifest = daemon_set(name, {"no": "where"} if healthy else selector)
    else:
        manifest = (deployment if kind == "deployment" else stateful_set)(name, 0 if healthy else 1, selector)
    manifest["metadata"]["labels"] = {"case": selector["case"]}
    return manifest


def create(client, kind, namespace, manifest):
    {"deployment": client.apps.create_namespaced_deployment, "daemonset": client.apps.create_namespaced_daemon_set,
     "statefulset": client.apps.create_namespaced_stateful_set}[kind](namespace, manifest)


@pytest.fixture(name="swept")
def fixture_swept(client, namespace):
    """Nobody ends pods on a node without a kubelet: what is left of them is taken away, for the cases that follow."""
    yield namespace
    client.apps.delete_collection_namespaced_deployment(namespace)
    client.apps.delete_collection_namespaced_daemon_set(namespace)
    client.apps.delete_collection_namespaced_stateful_set(namespace)

    def empty():
        # In this order: as long as there is one that makes pods, another may come that no list has shown.
        makers = client.apps.list_namespaced_replica_set(namespace).items
        pods = client.core.list_namespaced_pod(namespace).items
        for pod in pods:
            client.core.delete_namespaced_pod(pod.metadata.name, namespace, grace_period_seconds=0)
        return not pods and not makers

    wait_for(empty, "the pods are gone")


def ask_for(requests_env, kind, namespace, name):
    return requests_env.ask(name, type=kind, namespace=namespace)


@pytest.mark.parametrize("kind", ["deployment", "daemonset", "statefulset"])
def test_workloads_are_granted_by_their_own_limit(requests_env, serve, client, kubelets, namespace, swept, kind):
    """Half of four, and one of them is broken: one healthy one and the broken one, never a second healthy one."""
    assert swept == namespace
    kubelets.pause()
    requests_env.nodes(1)
    selector = {"case": requests_env.unique}
    for name in ("a", "b", "c", "broken"):
        create(client, kind, namespace, workload(kind, name, selector, healthy=name != "broken"))
    limit = requests_env.limit(type=kind, limit=50, policies=["Unavailable"])
    serve()
    requests_env.wait_limit(limit, population=4, nominal=2, limit=1, unavailable={f"{namespace}/broken": "Unavailable"})
    first = ask_for(requests_env, kind, namespace, "a")
    requests_env.wait_phase(first, "Approved")
    waiting = ask_for(requests_env, kind, namespace, "b")
    requests_env.wait_reason(waiting, "LimitReached")
    repair = ask_for(requests_env, kind, namespace, "broken")
    requests_env.wait_phase(repair, "Approved")
    requests_env.wait_limit(limit, granted=2, waiting=1)
    assert {r["target"] for r in requests_env.status(limit, LIMITS)["reservations"]} == {
        f"{namespace}/a", f"{namespace}/broken"}
    nowhere = ask_for(requests_env, kind, namespace, "nobody")
    requests_env.wait_reason(nowhere, "TargetNotFound")
    requests_env.act(repair)
    requests_env.wait_limit(limit, granted=1)
    assert requests_env.objects.state(waiting) == "Pending", "the broken one still counts"
    requests_env.act(first)
    requests_env.act(waiting)
    requests_env.nothing_is_left(limit)


def test_a_workload_in_another_namespace_is_another_one(requests_env, serve, client, namespace):
    """Limits may look at the namespaces' labels."""
    client.core.patch_namespace(namespace, {"metadata": {"labels": {"tier": requests_env.unique}}})
    for name in ("a", "b"):
        client.apps.create_namespaced_deployment(namespace, deployment(name, 0))
    limit = requests_env.limit(type="deployment", limit=50, selector={}, namespaceSelector={
        "matchLabels": {"tier": requests_env.unique}})
    serve()
    requests_env.wait_limit(limit, population=2, nominal=1)
    requests_env.wait_phase(ask_for(requests_env, "deployment", namespace, "a"), "Approved")
    requests_env.wait_reason(ask_for(requests_env, "deployment", namespace, "b"), "LimitReached")
    incomplete = requests_env.ask("a", type="deployment")
    requests_env.wait_reason(incomplete, "InvalidSpec")


@pytest.mark.nodes(1)
def test_a_node_waits_for_the_limits_of_its_workloads(requests_env, serve, client, objects, nodes, namespace, unique):
    """safetyChecks: WorkloadLimits. Two Deployments would lose their pods, and one of them may."""
    node, = nodes
    for name in ("a", "b"):
        manifest = deployment(name, 1, {"e2e": unique})
        manifest["metadata"]["labels"] = {"case": unique}
        client.apps.create_namespaced_deployment(namespace, manifest)
    works = requests_env.limit("-works", type="deployment", limit=50, policies=["Unavailable"])
    requests_env.limit(selector={"matchLabels": {"e2e": unique}}, limit=100, safetyChecks=["WorkloadLimits"])
    wait_for(lambda: all((d.status.available_replicas or 0) == 1
                         for d in client.apps.list_namespaced_deployment(namespace).items), "they are available")
    serve()
    requests_env.wait_limit(works, population=2, unavailableCount=0)
    name = requests_env.ask(node)
    refused = wait_for(lambda: requests_env.condition(name, "SafeToProceed").get("status") == "False" and
                       requests_env.condition(name, "SafeToProceed"), "it is not safe")
    assert f"WorkloadLimits: limit {works}: {namespace}/" in refused["message"]
    assert objects.state(name) == "Pending"
    assert objects.patch(LIMITS, works, {"spec": {"limit": 100}})[0] == 200
    requests_env.wait_phase(name, "Approved")
    assert requests_env.objects.get(ASKS, name)["status"]["limits"] == [unique]
