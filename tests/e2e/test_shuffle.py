"""Shuffle metrics from outside: whose pods were on nodes that came into maintenance."""

import math

from contract import PROFILE
from objects import daemon_set, deployment, template
from profiles import label, wait_state
from wait import wait_for

COUNT = "maintenance_controller_pod_shuffle_count"
SHARE = "maintenance_controller_pod_shuffles_per_replica"

CONFIG = """
intervals: {requeue: 1h}
instances:
  check:
  - {type: hasLabel, name: asked, config: {key: asked}}
  - {type: hasLabel, name: approved, config: {key: approved}}
profiles:
- name: multi
  operational: {transitions: [{check: asked, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: approved, next: in-maintenance}]}
"""


def of_kind(kind, name, replicas, selector):
    app = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
           "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                    "template": template(name, selector)}}
    if kind == "StatefulSet":
        app["spec"].update(serviceName=name, podManagementPolicy="Parallel")
    return app


def shown(controller, owner):
    """(count, share) of the owner's series; None where there is none."""
    samples = controller.metrics()
    labels = (("owner", owner), ("profile", "multi"))
    return samples.get((COUNT, labels)), samples.get((SHARE, labels))


def test_pods_are_counted_by_owner_when_their_node_comes_into_maintenance(
        client, nodes, namespace, launch, unique):
    here = {"e2e": unique}
    client.apps.create_namespaced_deployment(namespace, deployment(unique, 4, here))
    client.apps.create_namespaced_stateful_set(
        namespace, of_kind("StatefulSet", unique, 4, here))
    client.apps.create_namespaced_replica_set(
        namespace, of_kind("ReplicaSet", unique + "-bare", 2, here))
    client.apps.create_namespaced_daemon_set(namespace, daemon_set(unique, here))
    wait_for(lambda: client.apps.read_namespaced_daemon_set(
        unique, namespace).status.number_ready == 2, "the DaemonSet is ready")

    def settled():
        pods = client.core.list_namespaced_pod(namespace).items
        return pods if len(pods) == 12 and all(p.spec.node_name for p in pods) else None
    pods = wait_for(settled, "all pods have a node")
    on_node = [p for p in pods if p.spec.node_name == nodes[0]]

    def count(kind, begins):
        return sum(p.metadata.owner_references[0].kind == kind and
                   p.metadata.owner_references[0].name.startswith(begins) for p in on_node)
    bare = count("ReplicaSet", unique + "-bare")
    want = {
        f"daemon_set_{unique}": (1, 1 / 2),
        f"stateful_set_{unique}": (count("StatefulSet", unique), count("StatefulSet", unique) / 4),
        f"replica_set_{unique}-bare": (bare, bare / 2),
        f"deployment_{unique}": (count("ReplicaSet", unique) - bare,
                                 (count("ReplicaSet", unique) - bare) / 4),
    }
    want = {owner: pair for owner, pair in want.items() if pair[0] > 0}

    label(client, nodes[0], **{PROFILE: "multi"})
    controller = launch(CONFIG)
    wait_state(client, nodes[0], "operational")
    assert all(shown(controller, owner) == (None, None) for owner in want)
    label(client, nodes[0], asked="x")
    wait_for(lambda: all(shown(controller, owner) == (0, 0) for owner in want),
             "the series are there")
    label(client, nodes[0], approved="x")
    wait_for(lambda: {owner: shown(controller, owner) for owner in want} == want,
             f"the pods are counted: {want}")
    assert "failed to record shuffle metrics" not in controller.log()


def test_an_unready_daemon_set_makes_infinity(client, make_node, namespace, launch, unique):
    """As the original's suite has it: the pod's owner reports no ready pod."""
    name = make_node(unique, {PROFILE: "multi", "asked": "x", "approved": "x"})
    owner = client.apps.create_namespaced_daemon_set(
        namespace, daemon_set(unique, {"e2e": "nowhere"}))
    client.core.create_namespaced_pod(namespace, {
        "metadata": {"name": unique, "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": unique,
            "uid": owner.metadata.uid}]},
        "spec": {**template(unique)["spec"], "nodeName": name}})
    controller = launch(CONFIG)
    wait_state(client, name, "in-maintenance")
    wait_for(lambda: shown(controller, f"daemon_set_{unique}") == (1, math.inf),
             "the pod is counted")
    # Nobody ends a pod whose node has no kubelet.
    client.core.delete_namespaced_pod(unique, namespace, grace_period_seconds=0)
