"""Workload clusters that want to hurt the bridge, all at once: each costs its own connection and little memory, and a cluster
beside them is served as ever. And kubeconfigs that do."""

import base64
import json
import time

import pytest
import yaml

from attacks import release_build
from bridge import fixture_bridge_env, module_bridge
from capi import DELETED, MAINTAINED
from hostile import Hostile, certificate
from wait import wait_for

fixture_bridge = module_bridge(build=release_build)

MEMORY_MAX = 128 << 20  # bytes that all attackers together may cost; one of them cost 3 GiB in ten seconds before there were limits
SAFETY = 30  # seconds after which a server stops by itself, so that no case runs for ever


def line(name, version, **metadata):
    return json.dumps({"type": "ADDED", "object": {"metadata": {
        "name": name, "resourceVersion": str(version), **metadata}}}).encode() + b"\n"


def endless(handler, pieces):
    """Sends pieces until the bridge has had enough."""
    handler.begin()
    end = time.monotonic() + SAFETY
    for piece in pieces:
        if time.monotonic() > end:
            break
        handler.chunk(piece)
    handler.finish_stream()


def count():
    number = 1
    while True:
        yield number
        number += 1


def fat_names(handler):
    endless(handler, (line(f"{n:0900000}", n) for n in count()))


def fat_labels(handler):
    endless(handler, (line(f"n{n}", n, labels={f"k{i}": "v" * 60000 for i in range(10)}) for n in count()))


def fat_texts(handler):
    """As much as is kept of a Node, and as many as it takes."""
    keys = ("cluster.x-k8s.io/machine", "cluster.x-k8s.io/cluster-namespace", "drydock.dev/deletion-request",
            "drydock.dev/maintenance-request", "drydock.dev/deletion-approved-for", "drydock.dev/maintenance-approved-for")
    endless(handler, (b"".join(line(f"{n * 50 + i:0253}", n * 50 + i + 1, annotations=dict.fromkeys(keys, "v" * 600))
                               for i in range(50)) for n in count()))


def no_newline(handler):
    endless(handler, (b'{"type":"' + b"x" * 65536 for _ in count()))


def tiny_events(handler):
    block = line("a", 1) * 700
    endless(handler, (block for _ in count()))


def headers(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    end = time.monotonic() + SAFETY
    while time.monotonic() < end:
        handler.wfile.write(b"X-Header: " + b"x" * 8000 + b"\r\n")


def wrong_types(handler):
    endless(handler, (json.dumps({"type": "ADDED", "object": o}).encode() + b"\n" for o in (
        {"metadata": {"name": "a", "resourceVersion": "1", "labels": [], "annotations": 7, "uid": {}}},
        {"metadata": {"name": ["a"], "resourceVersion": {}}}) for _ in range(2)))


def no_streams(handler):
    handler.answer(400, {"message": "no streams here"})


def pages(handler):
    """Lists without end; every page has other Nodes."""
    server = handler.server.owner
    with server.lock:
        server.version += 500
        first = server.version
    items = [{"metadata": {"name": f"{first + i:0250}", "resourceVersion": str(first + i),
                           "annotations": {"cluster.x-k8s.io/machine": "m" * 500}}} for i in range(500)]
    handler.answer(200, {"metadata": {"resourceVersion": str(first), "continue": "more"}, "items": items})


ATTACKS = {  # what is answered, and what the bridge says of it
    "fat names": ({"watch": fat_names}, "a node with a name of 900000 bytes, at most 253"),
    "fat labels": ({"watch": fat_labels}, "a label value of 60000 bytes, at most 63"),
    "fat texts": ({"watch": fat_texts}, "the objects of kind node take more than"),
    "no newline": ({"watch": no_newline}, "a line of the watch is longer than"),
    "tiny events": ({"watch": tiny_events}, "the server sends more than"),
    "headers": ({"watch": headers}, "the head of the answer is longer than"),
    "wrong types": ({"watch": wrong_types}, "a node without a name"),
    "pages": ({"watch": no_streams, "list": pages}, "of memory"),
}


class Attackers:
    """A server for each attack, and a Machine of a Cluster there."""

    def __init__(self, bridge_env):
        self.env, self.running, self.clusters = bridge_env, [], {}

    def __enter__(self):
        cert, key = certificate(self.env.folder, "attacker")
        with open(cert, "rb") as f:
            authority = base64.b64encode(f.read()).decode()
        for name, (answers, _) in ATTACKS.items():
            server = Hostile(tls=(cert, key)).__enter__()
            self.running.append(server)
            server.answers = answers
            path = server.kubeconfig(self.env.folder / f"attack-{len(self.running)}", **{"certificate-authority-data": authority})
            with open(path, encoding="utf-8") as f:
                self.clusters[name] = self.env.cluster(f.read())
            pair = self.env.pair(self.clusters[name], node=False)
            self.env.management.name_node(pair.machine, pair.node)
        return self

    def __exit__(self, *_):
        for server in self.running:
            server.__exit__()


def link_of(bridge, cluster):
    status, _, body = bridge.get("/api/v1/links")
    assert status == 200
    return next((link for link in json.loads(body)["links"] if link["cluster"] == cluster.name), {})


def test_hostile_clusters_cost_their_own_connections_and_little_memory(bridge_env, bridge):
    """B25."""
    alive = bridge_env.pair()
    alive.wait_hook()
    before = bridge.usage()[1]
    with Attackers(bridge_env) as attackers:
        for name, (_, trouble) in ATTACKS.items():
            wait_for(lambda n=name, t=trouble: t in link_of(bridge, attackers.clusters[n]).get("trouble", ""),
                     f"{name}: it is given up")
            assert link_of(bridge, attackers.clusters[name])["nodes"] == 0
        alive.ask("requested")
        alive.wait_node(MAINTAINED)
        alive.ask(None)
        alive.wait_node(MAINTAINED, None)
        alive.delete()
        alive.wait_node(DELETED)
        alive.approve()
        alive.wait_gone()
        assert bridge.usage()[2] - before < MEMORY_MAX
        assert bridge.metric("drydock_bridge_connections_over_limit_total") >= len(ATTACKS) - 1  # wrong types are no limit
        assert "a node with a name of 900000 bytes" in bridge.log()


def bomb(good):
    """Each line names the one before ten times."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    return good + "\n".join(lines) + "\n"


def merges(good):
    """Each mapping merges the one before, twice."""
    lines = ["m0: &m0 {k: v}"] + [f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}], k{i}: v}}" for i in range(1, 200)]
    return good + "\n".join(lines) + "\n"


KUBECONFIGS = {
    "aliases": (bomb, "found anchor 'a0', want a text without anchors, aliases and merges"),
    "merges": (merges, "found anchor 'm0', want a text without anchors, aliases and merges"),
    "brackets": (lambda good: good + "x: " + "[" * 100000, "nested"),
    "many keys": (lambda good: good + "".join(f"k{i}: {i}\n" for i in range(20000)), "bytes, at most 131072"),
    "one long text": (lambda good: good + "x: " + "y" * 400000, "bytes, at most 131072"),
}


@pytest.mark.parametrize("kind", KUBECONFIGS)
def test_kubeconfigs_that_grow_when_they_are_read_are_refused(bridge_env, bridge, kind):
    spoil, says = KUBECONFIGS[kind]
    auth_proxy = bridge_env.auth_proxy()
    text = spoil(yaml.safe_dump(yaml.safe_load(auth_proxy.kubeconfig())))  # block style, so that lines can be added
    before = bridge.usage()[2]
    cluster = bridge_env.cluster(text)
    pair = bridge_env.pair(cluster, node=False)
    bridge_env.management.name_node(pair.machine, pair.node)
    wait_for(lambda: says in link_of(bridge, cluster).get("trouble", ""), "it is refused")
    assert auth_proxy.count() == 0
    assert bridge.usage()[2] - before < 64 << 20
