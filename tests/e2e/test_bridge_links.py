"""Connections to workload clusters: dead ones, slow ones, changed passwords, certificates and addresses, and their ends."""

import base64
import json
import os

import pytest
import yaml

from bridge import fixture_yard, module_bridge, text_of
from capi import APPROVE_MAINTENANCE, DELETED, ENABLED, HOOK_VALUE, MAINTAINED, OWN
from hostile import Mute
from proxy import Proxy
from wait import holds_for, wait_for

fixture_bridge = module_bridge()


def through(yard, gate, **kwargs):
    """A Machine of a Cluster behind the gate, which the bridge knows."""
    pair = yard.pair(yard.cluster(gate.kubeconfig(), **kwargs))
    pair.wait_hook()
    assert gate.count() > 0
    return pair


def rotate(yard, pair, kubeconfig):
    """Another one for the Cluster of the pair, which is the yard's first."""
    yard.management.secret(yard.clusters[0], kubeconfig)


# --- who does not answer ---


def test_clusters_that_accept_and_never_answer_delay_nobody(yard):
    """B25."""
    with Mute() as mute:
        dead = yard.gate()
        kubeconfig = dead.kubeconfig(server=f"https://127.0.0.1:{mute.port}")
        pairs = [yard.pair(yard.cluster(kubeconfig), node=False) for _ in range(5)]
        for pair in pairs:
            yard.management.name_node(pair.machine, pair.node)
        wait_for(lambda: len(mute.peers) >= 5, "it waits for their answers")
        alive = yard.pair()
        alive.wait_hook()
        alive.delete()
        alive.wait_node(DELETED)
        alive.approve()
        alive.wait_gone()
        assert not any(pair.hook() for pair in pairs)


def test_a_cluster_that_freezes_keeps_its_hooks_and_delays_nobody(yard, bed):
    access = bed.servers["one"].access
    with Proxy(access.host, access.port) as proxy:
        path = access.variant(yard.folder / "frozen", {"server": f"https://127.0.0.1:{proxy.port}"})
        pair = yard.pair(yard.cluster(text_of(path)))
        pair.wait_hook()
        proxy.freeze()
        pair.delete()
        other = yard.pair()
        other.wait_hook()
        other.ask("requested")
        other.wait_node(MAINTAINED)
        assert DELETED not in pair.node_labels()
        assert pair.hook() == HOOK_VALUE
        proxy.resume()
        pair.wait_node(DELETED)
        pair.approve()
        pair.wait_gone()


def test_lack_of_information_releases_nothing(yard):
    """B27, the second half: the Node is gone, and nobody can know."""
    gate = yard.gate()
    pair = through(yard, gate)
    gate.shut()
    pair.workload.delete("Node", None, pair.node)
    pair.delete()
    other = yard.pair()
    other.wait_hook()
    holds_for(lambda: pair.hook() == HOOK_VALUE, 2)


def test_a_connection_that_is_cut_comes_back(yard):
    gate = yard.gate()
    pair = through(yard, gate)
    for value in ("requested", None, "requested"):
        gate.cut()
        pair.ask(value)
        gate.cut()
        pair.wait_node(MAINTAINED, "true" if value else None)
    gate.cut()
    pair.approve(APPROVE_MAINTENANCE)
    pair.wait_maintenance("approved")


def test_a_write_that_fails_is_tried_again(yard):
    gate = yard.gate()
    pair = through(yard, gate)
    gate.answer = lambda request: 500 if request.method == "PATCH" and "drydock" in request.agent else None
    pair.ask("requested")
    wait_for(lambda: gate.rejected(500) >= 2, "it has tried, and tried again")
    gate.answer = lambda request: None
    pair.wait_node(MAINTAINED)


# --- passwords, certificates, addresses ---


def test_a_kubeconfig_that_changes_is_used_at_once(yard):
    """B26: nobody has refused the old one."""
    gate, other = yard.gate(), yard.gate()
    pair = through(yard, gate)
    rotate(yard, pair, other.kubeconfig())
    wait_for(lambda: other.present() > 0, "the new one is used")
    wait_for(lambda: gate.present() == 0, "the old connection is closed")
    assert gate.rejected(401) == 0
    seen = gate.count()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    assert gate.count() == seen


def test_another_users_password_works_at_once(yard):
    """B26."""
    gate = yard.gate(token="first")
    pair = through(yard, gate)
    gate.token = "second"
    gate.cut()
    wait_for(lambda: gate.rejected(401) > 0, "the old one is refused")
    rotate(yard, pair, gate.kubeconfig())
    pair.ask("requested")
    pair.wait_node(MAINTAINED)


def test_a_patch_that_is_refused_needs_no_other_event(yard):
    """B26: the watch goes on meanwhile, as a real server lets it."""
    gate = yard.gate(token="first")
    pair = through(yard, gate)
    gate.token = "second"
    pair.delete()
    wait_for(lambda: [r for s, r in gate.refused if s == 401 and r.method == "PATCH"], "the patch is refused")
    rotate(yard, pair, gate.kubeconfig())
    pair.wait_node(DELETED)


def test_ten_wrong_passwords_and_a_right_one(yard):
    """B26."""
    gate = yard.gate(token="right")
    pair = through(yard, gate)
    gate.token = "another"
    gate.cut()
    for number in range(10):
        refused = gate.rejected(401)
        rotate(yard, pair, gate.kubeconfig(token=f"wrong-{number}"))
        wait_for(lambda r=refused: gate.rejected(401) > r, "it is refused once more")
    rotate(yard, pair, gate.kubeconfig())
    pair.ask("requested")
    pair.wait_node(MAINTAINED)


def test_another_certificate_is_trusted_when_the_secret_says_so(yard):
    gate = yard.gate()
    pair = through(yard, gate)
    gate.renew()
    gate.cut()
    pair.ask("requested")
    seen = gate.count()
    holds_for(lambda: gate.count() == seen and MAINTAINED not in pair.node_labels(), 2)
    rotate(yard, pair, gate.kubeconfig())
    pair.wait_node(MAINTAINED)


def test_rights_that_are_missing_are_asked_for_again(yard):
    gate = yard.gate()
    gate.answer = lambda request: 403 if "/nodes" in request.path and "drydock" in request.agent else None
    pair = yard.pair(yard.cluster(gate.kubeconfig()))
    wait_for(lambda: gate.rejected(403) > 0, "it may not")
    assert pair.hook() is None
    gate.answer = lambda request: None
    rotate(yard, pair, gate.kubeconfig(token="whatever"))
    pair.wait_hook()


BAD = {
    "no kubeconfig": lambda good: "nonsense: [",
    "no server": lambda good: "apiVersion: v1\nkind: Config\n",
    "exec": lambda good: with_user(good, exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true"}),
    "files": lambda good: with_user(good, **{"client-certificate": "/etc/hostname", "client-key": "/etc/hostname"}),
    "token file": lambda good: with_user(good, tokenFile="/etc/hostname"),
    "authority file": lambda good: with_cluster(good, **{"certificate-authority-data": None,
                                                         "certificate-authority": "/etc/hostname"}),
    "insecure": lambda good: with_cluster(good, **{"certificate-authority-data": None, "insecure-skip-tls-verify": True}),
}


def with_user(text, **user):
    config = yaml.safe_load(text)
    config["users"][0]["user"] = user
    return yaml.safe_dump(config)


def with_cluster(text, **changes):
    config = yaml.safe_load(text)
    cluster = config["clusters"][0]["cluster"]
    for key, value in changes.items():
        cluster.pop(key, None)
        if value is not None:
            cluster[key] = value
    return yaml.safe_dump(config)


@pytest.mark.parametrize("kind", BAD)
def test_a_kubeconfig_that_cannot_be_used_is_not_used(yard, bridge, kind):
    """Nothing in it makes the bridge read a file, start a program or trust anybody; a good one mends it."""
    gate = yard.gate()
    pair = yard.pair(yard.cluster(BAD[kind](gate.kubeconfig())), node=False)
    yard.management.name_node(pair.machine, pair.node)
    witness = yard.pair()
    witness.wait_hook()
    holds_for(lambda: pair.hook() is None and gate.count() == 0, 0.5)
    yard.add_node(pair, f"lab://{pair.machine.space}/{yard.clusters[0].name}/{pair.machine.name}")
    rotate(yard, pair, gate.kubeconfig())
    pair.wait_hook()
    assert bridge.alive()


def test_a_secret_that_comes_late_or_with_another_key(yard):
    gate = yard.gate()
    cluster = yard.cluster(kubeconfig="")
    pair = yard.pair(cluster, wait=False)
    witness = yard.pair()
    witness.wait_hook()
    yard.management.secret(cluster, gate.kubeconfig(), key="kubeconfig")
    holds_for(lambda: gate.count() == 0, 0.5)
    yard.management.name_node(pair.machine, pair.node)
    yard.management.secret(cluster, gate.kubeconfig())
    pair.wait_hook()


def test_a_secret_of_another_type_is_found_by_its_name(yard):
    """As the original's own test has it: Opaque, and without labels."""
    gate = yard.gate()
    cluster = yard.cluster(kubeconfig="")
    yard.management.create("Secret", cluster.space, f"{cluster.name}-kubeconfig", type="Opaque", data={
        "value": base64.b64encode(gate.kubeconfig().encode()).decode()})
    pair = yard.pair(cluster, wait=False)
    yard.management.name_node(pair.machine, pair.node)
    pair.wait_hook()


# --- names and ends ---


def test_one_name_in_two_namespaces(yard):
    """B12."""
    gates = yard.gate(), yard.gate("two")
    name = yard.unique
    here = through(yard, gates[0], name=name)
    cluster = yard.cluster(gates[1].kubeconfig(), space=yard.space(), name=name)
    there = yard.pair(cluster, workload="two")
    there.wait_hook()
    here.mark({ENABLED: None})
    here.wait_free()
    wait_for(lambda: gates[0].present() == 0, "the first connection is closed")
    there.delete()
    there.wait_node(DELETED)
    assert gates[1].present() > 0
    assert DELETED not in here.node_labels()


def test_the_last_machine_closes_the_connection(yard, bridge):
    """B17."""
    before = sockets(bridge)
    gate = yard.gate()
    pair = through(yard, gate)
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.mark({ENABLED: None})
    pair.wait_node(MAINTAINED, None)
    wait_for(lambda: gate.present() == 0, "the connection is closed")
    wait_for(lambda: sockets(bridge) <= before, "no descriptor is left")
    assert not [key for key in pair.node_annotations() if key.startswith(OWN)]


def sockets(bridge):
    folder = f"/proc/{bridge.pid}/fd"
    return sum(os.readlink(os.path.join(folder, fd)).startswith("socket:") for fd in os.listdir(folder))


def stays_away(gate):
    """Nobody of us comes for two seconds; before, what is left on a Node may still be cleaned."""
    seen = gate.count()
    try:
        holds_for(lambda: gate.present() == 0 and gate.count() == seen, 2)
    except AssertionError:
        return False
    return True


def test_a_cluster_that_is_deleted_closes_its_connection(yard, bridge):
    """B28."""
    gate = yard.gate()
    pair = through(yard, gate)
    yard.management.delete("Cluster", *yard.clusters[0])
    pair.wait_gone()
    wait_for(lambda: stays_away(gate), "the connection is closed")
    lines = len(bridge.log().splitlines())
    assert stays_away(gate)
    assert len(bridge.log().splitlines()) - lines < 10, bridge.log()[-2000:]


def test_a_cluster_with_more_nodes_than_a_page(yard):
    workload = yard.bed.workloads["two"]
    connection = workload.access.connect()  # one for all: a handshake for each would take longer than the case
    try:
        for number in range(520):
            connection.request("POST", "/api/v1/nodes", json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": f"{yard.unique}-n{number:03}", "labels": {yard.unique: ""}}}), {
                    **workload.access.headers(), "Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 201, response.read()
            response.read()
        pair = yard.pair(yard.cluster(workload="two"), workload="two")
        pair.wait_hook()
        pair.delete()
        pair.wait_node(DELETED)
    finally:
        connection.close()
        workload.send("DELETE", f"/api/v1/nodes?labelSelector={yard.unique}")
