"""Connections to workload clusters: dead ones, slow ones, changed passwords, certificates and addresses, and their ends."""

import base64
import json
import os

import pytest
import yaml

from bridge import fixture_bridge_env, module_bridge, text_of
from capi import APPROVE_MAINTENANCE, DELETED, ENABLED, HOOK_VALUE, MAINTAINED, OWN
from hostile import Mute
from proxy import Proxy
from wait import holds_for, wait_for

fixture_bridge = module_bridge()


def through(bridge_env, auth_proxy, **kwargs):
    """A Machine of a Cluster behind the auth_proxy, which the bridge knows."""
    pair = bridge_env.pair(bridge_env.cluster(auth_proxy.kubeconfig(), **kwargs))
    pair.wait_hook()
    assert auth_proxy.count() > 0
    return pair


def rotate(bridge_env, pair, kubeconfig):
    """Another one for the Cluster of the pair, which is bridge_env's first."""
    bridge_env.management.secret(bridge_env.clusters[0], kubeconfig)


# --- who does not answer ---


def test_clusters_that_accept_and_never_answer_delay_nobody(bridge_env):
    """B25."""
    with Mute() as mute:
        dead = bridge_env.auth_proxy()
        kubeconfig = dead.kubeconfig(server=f"https://127.0.0.1:{mute.port}")
        pairs = [bridge_env.pair(bridge_env.cluster(kubeconfig), node=False) for _ in range(5)]
        for pair in pairs:
            bridge_env.management.name_node(pair.machine, pair.node)
        wait_for(lambda: len(mute.peers) >= 5, "it waits for their answers")
        alive = bridge_env.pair()
        alive.wait_hook()
        alive.delete()
        alive.wait_node(DELETED)
        alive.approve()
        alive.wait_gone()
        assert not any(pair.hook() for pair in pairs)


def test_a_cluster_that_freezes_keeps_its_hooks_and_delays_nobody(bridge_env, bridge_clusters):
    access = bridge_clusters.servers["one"].access
    with Proxy(access.host, access.port) as proxy:
        path = access.variant(bridge_env.folder / "frozen", {"server": f"https://127.0.0.1:{proxy.port}"})
        pair = bridge_env.pair(bridge_env.cluster(text_of(path)))
        pair.wait_hook()
        proxy.freeze()
        pair.delete()
        other = bridge_env.pair()
        other.wait_hook()
        other.ask("requested")
        other.wait_node(MAINTAINED)
        assert DELETED not in pair.node_labels()
        assert pair.hook() == HOOK_VALUE
        proxy.resume()
        pair.wait_node(DELETED)
        pair.approve()
        pair.wait_gone()


def test_lack_of_information_releases_nothing(bridge_env):
    """B27, the second half: the Node is gone, and nobody can know."""
    auth_proxy = bridge_env.auth_proxy()
    pair = through(bridge_env, auth_proxy)
    auth_proxy.shut()
    pair.workload.delete("Node", None, pair.node)
    pair.delete()
    other = bridge_env.pair()
    other.wait_hook()
    holds_for(lambda: pair.hook() == HOOK_VALUE, 2)


def test_a_connection_that_is_cut_comes_back(bridge_env):
    auth_proxy = bridge_env.auth_proxy()
    pair = through(bridge_env, auth_proxy)
    for value in ("requested", None, "requested"):
        auth_proxy.cut()
        pair.ask(value)
        auth_proxy.cut()
        pair.wait_node(MAINTAINED, "true" if value else None)
    auth_proxy.cut()
    pair.approve(APPROVE_MAINTENANCE)
    pair.wait_maintenance("approved")


def test_a_write_that_fails_is_tried_again(bridge_env):
    auth_proxy = bridge_env.auth_proxy()
    pair = through(bridge_env, auth_proxy)
    auth_proxy.answer = lambda request: 500 if request.method == "PATCH" and "drydock" in request.agent else None
    pair.ask("requested")
    wait_for(lambda: auth_proxy.rejected(500) >= 2, "it has tried, and tried again")
    auth_proxy.answer = lambda request: None
    pair.wait_node(MAINTAINED)


# --- passwords, certificates, addresses ---


def test_a_kubeconfig_that_changes_is_used_at_once(bridge_env):
    """B26: nobody has refused the old one."""
    auth_proxy, other = bridge_env.auth_proxy(), bridge_env.auth_proxy()
    pair = through(bridge_env, auth_proxy)
    rotate(bridge_env, pair, other.kubeconfig())
    wait_for(lambda: other.present() > 0, "the new one is used")
    wait_for(lambda: auth_proxy.present() == 0, "the old connection is closed")
    assert auth_proxy.rejected(401) == 0
    seen = auth_proxy.count()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    assert auth_proxy.count() == seen


def test_another_users_password_works_at_once(bridge_env):
    """B26."""
    auth_proxy = bridge_env.auth_proxy(token="first")
    pair = through(bridge_env, auth_proxy)
    auth_proxy.token = "second"
    auth_proxy.cut()
    wait_for(lambda: auth_proxy.rejected(401) > 0, "the old one is refused")
    rotate(bridge_env, pair, auth_proxy.kubeconfig())
    pair.ask("requested")
    pair.wait_node(MAINTAINED)


def test_a_patch_that_is_refused_needs_no_other_event(bridge_env):
    """B26: the watch goes on meanwhile, as a real server lets it."""
    auth_proxy = bridge_env.auth_proxy(token="first")
    pair = through(bridge_env, auth_proxy)
    auth_proxy.token = "second"
    pair.delete()
    wait_for(lambda: [r for s, r in auth_proxy.refused if s == 401 and r.method == "PATCH"], "the patch is refused")
    rotate(bridge_env, pair, auth_proxy.kubeconfig())
    pair.wait_node(DELETED)


def test_ten_wrong_passwords_and_a_right_one(bridge_env):
    """B26."""
    auth_proxy = bridge_env.auth_proxy(token="right")
    pair = through(bridge_env, auth_proxy)
    auth_proxy.token = "another"
    auth_proxy.cut()
    for number in range(10):
        refused = auth_proxy.rejected(401)
        rotate(bridge_env, pair, auth_proxy.kubeconfig(token=f"wrong-{number}"))
        wait_for(lambda r=refused: auth_proxy.rejected(401) > r, "it is refused once more")
    rotate(bridge_env, pair, auth_proxy.kubeconfig())
    pair.ask("requested")
    pair.wait_node(MAINTAINED)


def test_another_certificate_is_trusted_when_the_secret_says_so(bridge_env):
    auth_proxy = bridge_env.auth_proxy()
    pair = through(bridge_env, auth_proxy)
    auth_proxy.renew()
    auth_proxy.cut()
    pair.ask("requested")
    seen = auth_proxy.count()
    holds_for(lambda: auth_proxy.count() == seen and MAINTAINED not in pair.node_labels(), 2)
    rotate(bridge_env, pair, auth_proxy.kubeconfig())
    pair.wait_node(MAINTAINED)


def test_rights_that_are_missing_are_asked_for_again(bridge_env):
    auth_proxy = bridge_env.auth_proxy()
    auth_proxy.answer = lambda request: 403 if "/nodes" in request.path and "drydock" in request.agent else None
    pair = bridge_env.pair(bridge_env.cluster(auth_proxy.kubeconfig()))
    wait_for(lambda: auth_proxy.rejected(403) > 0, "it may not")
    assert pair.hook() is None
    auth_proxy.answer = lambda request: None
    rotate(bridge_env, pair, auth_proxy.kubeconfig(token="whatever"))
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
def test_a_kubeconfig_that_cannot_be_used_is_not_used(bridge_env, bridge, kind):
    """Nothing in it makes the bridge read a file, start a program or trust anybody; a good one mends it."""
    auth_proxy = bridge_env.auth_proxy()
    pair = bridge_env.pair(bridge_env.cluster(BAD[kind](auth_proxy.kubeconfig())), node=False)
    bridge_env.management.name_node(pair.machine, pair.node)
    witness = bridge_env.pair()
    witness.wait_hook()
    holds_for(lambda: pair.hook() is None and auth_proxy.count() == 0, 0.5)
    bridge_env.add_node(pair, f"lab://{pair.machine.space}/{bridge_env.clusters[0].name}/{pair.machine.name}")
    rotate(bridge_env, pair, auth_proxy.kubeconfig())
    pair.wait_hook()
    assert bridge.alive()


def test_a_secret_that_comes_late_or_with_another_key(bridge_env):
    auth_proxy = bridge_env.auth_proxy()
    cluster = bridge_env.cluster(kubeconfig="")
    pair = bridge_env.pair(cluster, wait=False)
    witness = bridge_env.pair()
    witness.wait_hook()
    bridge_env.management.secret(cluster, auth_proxy.kubeconfig(), key="kubeconfig")
    holds_for(lambda: auth_proxy.count() == 0, 0.5)
    bridge_env.management.name_node(pair.machine, pair.node)
    bridge_env.management.secret(cluster, auth_proxy.kubeconfig())
    pair.wait_hook()


def test_a_secret_of_another_type_is_found_by_its_name(bridge_env):
    """As the original's own test has it: Opaque, and without labels."""
    auth_proxy = bridge_env.auth_proxy()
    cluster = bridge_env.cluster(kubeconfig="")
    bridge_env.management.create("Secret", cluster.space, f"{cluster.name}-kubeconfig", type="Opaque", data={
        "value": base64.b64encode(auth_proxy.kubeconfig().encode()).decode()})
    pair = bridge_env.pair(cluster, wait=False)
    bridge_env.management.name_node(pair.machine, pair.node)
    pair.wait_hook()


# --- names and ends ---


def test_one_name_in_two_namespaces(bridge_env):
    """B12."""
    auth_proxies = bridge_env.auth_proxy(), bridge_env.auth_proxy("two")
    name = bridge_env.unique
    here = through(bridge_env, auth_proxies[0], name=name)
    cluster = bridge_env.cluster(auth_proxies[1].kubeconfig(), space=bridge_env.space(), name=name)
    there = bridge_env.pair(cluster, workload="two")
    there.wait_hook()
    here.mark({ENABLED: None})
    here.wait_free()
    wait_for(lambda: auth_proxies[0].present() == 0, "the first connection is closed")
    there.delete()
    there.wait_node(DELETED)
    assert auth_proxies[1].present() > 0
    assert DELETED not in here.node_labels()


def test_the_last_machine_closes_the_connection(bridge_env, bridge):
    """B17."""
    before = sockets(bridge)
    auth_proxy = bridge_env.auth_proxy()
    pair = through(bridge_env, auth_proxy)
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.mark({ENABLED: None})
    pair.wait_node(MAINTAINED, None)
    wait_for(lambda: auth_proxy.present() == 0, "the connection is closed")
    wait_for(lambda: sockets(bridge) <= before, "no descriptor is left")
    assert not [key for key in pair.node_annotations() if key.startswith(OWN)]


def sockets(bridge):
    folder = f"/proc/{bridge.pid}/fd"
    return sum(os.readlink(os.path.join(folder, fd)).startswith("socket:") for fd in os.listdir(folder))


def stays_away(auth_proxy):
    """Nobody of us comes for two seconds; before, what is left on a Node may still be cleaned."""
    seen = auth_proxy.count()
    try:
        holds_for(lambda: auth_proxy.present() == 0 and auth_proxy.count() == seen, 2)
    except AssertionError:
        return False
    return True


def test_a_cluster_that_is_deleted_closes_its_connection(bridge_env, bridge):
    """B28."""
    auth_proxy = bridge_env.auth_proxy()
    pair = through(bridge_env, auth_proxy)
    bridge_env.management.delete("Cluster", *bridge_env.clusters[0])
    pair.wait_gone()
    wait_for(lambda: stays_away(auth_proxy), "the connection is closed")
    lines = len(bridge.log().splitlines())
    assert stays_away(auth_proxy)
    assert len(bridge.log().splitlines()) - lines < 10, bridge.log()[-2000:]


def test_a_cluster_with_more_nodes_than_a_page(bridge_env):
    workload = bridge_env.bridge_clusters.workloads["two"]
    connection = workload.access.connect()  # one for all: a handshake for each would take longer than the case
    try:
        for number in range(520):
            connection.request("POST", "/api/v1/nodes", json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": f"{bridge_env.unique}-n{number:03}", "labels": {bridge_env.unique: ""}}}), {
                    **workload.access.headers(), "Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 201, response.read()
            response.read()
        pair = bridge_env.pair(bridge_env.cluster(workload="two"), workload="two")
        pair.wait_hook()
        pair.delete()
        pair.wait_node(DELETED)
    finally:
        connection.close()
        workload.send("DELETE", f"/api/v1/nodes?labelSelector={bridge_env.unique}")
