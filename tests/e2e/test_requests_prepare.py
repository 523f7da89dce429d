"""Preparation, by the controller: cordon, drain and volumes before an approval, and what is undone after it."""

import pytest

from requests_api import path
from objects import budget, daemon_set, pod
from requests_fixture import ASKS, LIMITS, MARK, fixture_installed, fixture_objects, fixture_requests_env, fixture_serve
from wait import wait_for

ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
VOLUMES = "/api/v1/persistentvolumes"


def running(client, namespace, *names):
    pods = {p.metadata.name: p for p in client.core.list_namespaced_pod(namespace).items}
    return all(name in pods and any(c.type == "Ready" and c.status == "True"
                                    for c in pods[name].status.conditions or []) for name in names)


def left(client, namespace, node):
    return sorted(p.metadata.name for p in client.core.list_namespaced_pod(namespace).items
                  if p.spec.node_name == node)


def machines(unique):
    """A limit of the nodes that have kubelets."""
    return {"matchLabels": {"e2e": unique}}


@pytest.fixture(name="held")
def fixture_held(client, nodes, namespace):
    """A pod of the first node that its budget does not let go."""
    client.core.create_namespaced_pod(namespace, pod("held", node=nodes[0]))
    client.policy.create_namespaced_pod_disruption_budget(namespace, budget("held", "held", minAvailable=1))
    wait_for(lambda: running(client, namespace, "held"), "the pod runs")
    wait_for(lambda: client.policy.read_namespaced_pod_disruption_budget("held", namespace).status.current_healthy,
             "the budget knows it")
    return nodes[0]


# --- drain ---


@pytest.mark.nodes(1)
def test_a_budget_blocks_the_drain_and_is_named(requests_env, serve, client, held, namespace, unique):
    limit = requests_env.limit(selector=machines(unique), limit=100, drain={"evictUnmanaged": True, "timeoutSeconds": 0})
    serve()
    name = requests_env.ask(held)
    blocked = requests_env.wait_reason(name, "PDBWouldBlock")
    assert blocked["type"] == "Prepared"
    preparation = wait_for(lambda: requests_env.status(name)["preparation"].get("blockedBy") and
                           requests_env.status(name)["preparation"], "it says who bars the way")
    assert f"{namespace}/held" in preparation["blockedBy"][0]
    assert preparation["podsLeft"] == 1
    assert requests_env.objects.state(name) == "Pending", "an actor sees nothing of it"
    node = client.core.read_node(held)
    assert node.spec.unschedulable and node.metadata.annotations[MARK] == requests_env.uid(name)
    assert running(client, namespace, "held")
    client.policy.delete_namespaced_pod_disruption_budget("held", namespace)
    requests_env.act(name)
    assert left(client, namespace, held) == []
    requests_env.nothing_is_left(limit, nodes=[held])


@pytest.mark.nodes(1)
def test_a_drain_that_takes_too_long_is_undone(requests_env, serve, client, held, namespace, unique):
    limit = requests_env.limit(selector=machines(unique), limit=100, drain={"evictUnmanaged": True, "timeoutSeconds": 2},
                        timeouts={"maxRejections": 1})
    serve("--clock-skew-tolerance", "0s")
    name = requests_env.ask(held)
    requests_env.wait_phase(name, "Rejected")
    status = requests_env.status(name)
    assert (status["lastRejection"]["reason"], status["rejections"], status["result"]) == ("DrainTimeout", 1, "Rejected")
    requests_env.nothing_is_left(limit, nodes=[held])
    assert running(client, namespace, "held")


@pytest.mark.nodes(1)
def test_pods_that_stay_on_purpose_survive(requests_env, serve, client, nodes, namespace, unique):
    node, = nodes
    mirror = pod("mirror", node=node)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    for manifest in (mirror, pod("goes", node=node),
                     pod("stays", {"app": "stays", "cluster.x-k8s.io/drain": "skip"}, node)):
        client.core.create_namespaced_pod(namespace, manifest)
    client.apps.create_namespaced_daemon_set(namespace, daemon_set("agent", {"e2e": unique}))
    wait_for(lambda: len(left(client, namespace, node)) == 4 and
             running(client, namespace, *left(client, namespace, node)), "all pods run")
    before = {p.metadata.name: p.metadata.uid for p in client.core.list_namespaced_pod(namespace).items}
    limit = requests_env.limit(selector=machines(unique), limit=100, drain={"evictUnmanaged": True})
    serve()
    name = requests_env.ask(node)
    requests_env.wait_phase(name, "Approved")
    after = {p.metadata.name: p.metadata.uid for p in client.core.list_namespaced_pod(namespace).items}
    assert after == {pod_name: uid for pod_name, uid in before.items() if pod_name != "goes"}
    requests_env.act(name)
    requests_env.nothing_is_left(limit, nodes=[node])


@pytest.mark.nodes(1)
def test_work_that_expires_keeps_the_cordon_until_it_ends(requests_env, serve, client, nodes, unique):
    node, = nodes
    limit = requests_env.limit(selector=machines(unique), limit=100, drain={}, timeouts={"inProgressSeconds": 1})
    serve("--clock-skew-tolerance", "0s")
    name = requests_env.ask(node)
    requests_env.wait_state(name, "Approved")
    requests_env.objects.move(name, "InProgress")
    requests_env.wait_phase(name, "Expired")
    requests_env.wait_limit(limit, granted=0)
    assert client.core.read_node(node).spec.unschedulable
    requests_env.objects.move(name, "Completed")
    requests_env.nothing_is_left(limit, nodes=[node])


def test_a_cordon_of_somebody_else_stays(requests_env, serve, client):
    node, = requests_env.nodes(1)
    client.core.patch_node(node, {"spec": {"unschedulable": True}})
    limit = requests_env.limit(limit=100, drain={})
    serve()
    name = requests_env.ask(node)
    requests_env.act(name)
    requests_env.wait_phase(name, "Completed")
    requests_env.nothing_is_left(limit)
    found = client.core.read_node(node)
    assert found.spec.unschedulable and MARK not in (found.metadata.annotations or {})


# --- volumes ---


@pytest.fixture(name="volumes")
def fixture_volumes(objects):
    """attach(name, node, driver): a VolumeAttachment, gone after the test; detach(name)."""
    made = []

    class Volumes:
        @staticmethod
        def attach(name, node, volume=None, driver="disks.example.com"):
            status, answer = objects.send("POST", ATTACHMENTS, {
                "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
                "spec": {"attacher": driver, "nodeName": node,
                         "source": {"persistentVolumeName": volume or "pv-" + name}}})
            assert status == 201, answer
            made.append(f"{ATTACHMENTS}/{name}")
            return name

        @staticmethod
        def detach(name):
            assert objects.send("DELETE", f"{ATTACHMENTS}/{name}")[0] == 200

        @staticmethod
        def made(where):
            made.append(where)

    yield Volumes
    for where in made:
        objects.send("DELETE", where)


def test_the_last_volume_is_waited_for(requests_env, serve, volumes):
    node, other = requests_env.nodes(2)
    unique = requests_env.unique
    first, last = volumes.attach(f"{unique}-1", node), volumes.attach(f"{unique}-2", node)
    volumes.attach(f"{unique}-3", other)
    volumes.attach(f"{unique}-4", node, driver="ignored.example.com")
    limit = requests_env.limit(limit=50, infraDrain={"ignoreDrivers": ["ignored.example.com"]})
    serve()
    name = requests_env.ask(node)

    def waits_for(count):
        wait_for(lambda: requests_env.status(name).get("preparation", {}).get("volumesLeft") == count, f"{count} are left")

    waits_for(2)
    assert requests_env.wait_reason(name, "WaitingForDetach")["type"] == "Prepared"
    assert requests_env.status(name)["step"] == "Detach"
    volumes.detach(first)
    waits_for(1)
    assert f"pv-{last}" in requests_env.status(name)["preparation"]["blockedBy"][0]
    assert requests_env.objects.state(name) == "Pending"
    volumes.detach(last)
    requests_env.act(name)
    requests_env.nothing_is_left(limit)


@pytest.mark.nodes(1)
def test_the_volume_of_a_daemon_is_not_waited_for(requests_env, serve, client, backend, volumes, nodes, namespace, unique):
    node, = nodes
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
             "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": unique,
                      "resources": {"requests": {"storage": "1Gi"}}}}
    if backend.name == "cluster":
        # Its scheduler places nobody whose volume is not there; the sandbox's does not look.
        status, answer = backend.access.request("POST", VOLUMES, {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": unique},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                     "hostPath": {"path": "/nowhere"}, "claimRef": {"namespace": namespace, "name": "data"}}})
        assert status == 201, answer
        volumes.made(f"{VOLUMES}/{unique}")
        # Whoever binds looks again after a quarter of a minute when the claim comes before it has seen the volume.
        wait_for(lambda: backend.access.request("GET", f"{VOLUMES}/{unique}")[1]["status"].get("phase") == "Available",
                 "the volume is known")
    client.core.create_namespaced_persistent_volume_claim(namespace, claim)
    daemon = daemon_set("agent", {"e2e": unique})
    daemon["spec"]["template"]["spec"]["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    client.apps.create_namespaced_daemon_set(namespace, daemon)
    wait_for(lambda: left(client, namespace, node) and running(client, namespace, *left(client, namespace, node)),
             "the daemon runs")
    volumes.attach(f"{unique}-daemon", node, unique)
    barring = volumes.attach(f"{unique}-other", node)
    limit = requests_env.limit(selector=machines(unique), limit=100, drain={"evictUnmanaged": True}, infraDrain={})
    serve()
    name = requests_env.ask(node)
    wait_for(lambda: requests_env.status(name).get("preparation", {}).get("volumesLeft") == 1, "one is waited for")
    volumes.detach(barring)
    requests_env.act(name)
    requests_env.nothing_is_left(limit, nodes=[node])


# --- whatever happens ---


@pytest.mark.parametrize("point", ["Preparing", "Approved", "InProgress", "Expired"])
def test_whatever_is_deleted_whenever_nothing_is_left(requests_env, serve, objects, client, point):
    """A limit, a request and a node go, each with a request of its own, and always at the same point."""
    drain = {"postGraceSeconds": 3600 if point == "Preparing" else 0}
    timeouts = {"inProgressSeconds": 1 if point == "Expired" else 0}
    kinds = ("limit", "request", "node")
    nodes = {gone: requests_env.make_node(f"{requests_env.unique}-{gone}", {"case": requests_env.unique, "gone": gone}) for gone in kinds}
    limits = {gone: requests_env.limit("-" + gone, limit=100, drain=drain, timeouts=timeouts, selector={
        "matchLabels": {"case": requests_env.unique, "gone": gone}}) for gone in kinds}
    serve("--clock-skew-tolerance", "0s")
    names = {gone: requests_env.ask(nodes[gone]) for gone in kinds}
    uids = [requests_env.uid(name) for name in names.values()]
    for name in names.values():
        if point in ("InProgress", "Expired"):
            requests_env.wait_phase(name, "Approved")
            objects.move(name, "InProgress")
        requests_env.wait_phase(name, point)
        if point == "Preparing":
            wait_for(lambda n=name: requests_env.status(n).get("step") == "DrainGrace", "the node is drained")
    assert all(requests_env.cordoned(node) for node in nodes.values())

    assert objects.send("DELETE", path(LIMITS, limits["limit"]))[0] == 200
    assert objects.send("DELETE", path(ASKS, names["request"]))[0] == 200
    client.core.delete_node(nodes["node"])
    if point == "Preparing":
        requests_env.wait_phase(names["limit"], "Approved")
        requests_env.wait_reason(names["node"], "TargetNotFound")
    for gone in ("limit", "node"):
        objects.move(names[gone], "Completed")
        requests_env.wait_phase(names[gone], "Completed")
    for gone in ("request", "node"):
        requests_env.nothing_is_left(limits[gone], uids)
    requests_env.nothing_is_left(uids=uids, nodes=[nodes["limit"], nodes["request"]])
