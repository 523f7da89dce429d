"""The recorded answers of a real API server, played against both back ends."""

import base64
import json
import os
import urllib.request

import pytest

import player
from backend import ROOT, Cluster, Sandbox
from wait import wait_for

EXCEPTIONS = os.path.join(ROOT, "tests", "data", "apiserver-exceptions.json")


def compact(server):
    """Makes old versions expire. A young etcd still knows everything, and so do the API server's
    caches, which learn within 15 seconds from this key that etcd has forgotten."""
    revision = server.access.request("GET", "/api/v1/nodes")[1]["metadata"]["resourceVersion"]
    etcd(server, "put", {"key": encoded("compact_rev_key"), "value": encoded(revision)})
    etcd(server, "compaction", {"revision": revision, "physical": True})


def etcd(server, call, body):
    url = f"http://127.0.0.1:{server.etcd_port()}/v3/kv/{call}"
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=5).close()


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def expired(server):
    """The server no longer lists the nodes of resourceVersion 1."""
    path = "/api/v1/nodes?resourceVersion=1&resourceVersionMatch=Exact"
    return server.access.request("GET", path)[0] == 410


@pytest.fixture(scope="module")
def bare(backend_name, tmp_path_factory):
    """A server nobody else writes to, as in the recording."""
    folder = tmp_path_factory.mktemp("conformance")
    with Cluster(folder, lean=True) as server:
        player.Cleaner(server.access).prelude()
        compact(server)
        yield server


@pytest.mark.parametrize("name", player.case_names())
def test_answers_as_recorded(name, bare):
    case = player.load(name)
    if "expired" in name:
        wait_for(lambda: expired(bare), 20, "resourceVersion 1 has expired")
    try:
        player.Player(bare.access).play(case, exact=True)
    finally:
        player.Cleaner(bare.access).clean(case)
