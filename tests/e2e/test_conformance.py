"""The recorded answers of a real API server, played against both back ends."""

import base64
import json
import os
import re
import urllib.request

import pytest

import replay
from backend import ROOT, Cluster, Sandbox
from wait import wait_for

with open(os.path.join(ROOT, "tests", "data", "apiserver-exceptions.json"), encoding="utf-8") as f:
    EXCEPTIONS = json.load(f)


def compact(server):
    """Makes old versions expire. A young etcd still knows everything, and so do the API server's
    caches, which learn within 15 seconds from this key that etcd has forgotten."""
    revision = server.access.request("GET", "/api/v1/nodes")[1]["metadata"]["resourceVersion"]
    etcd(server, "put", {"key": encoded("compact_rev_key"), "value": encoded(revision)})
    etcd(server, "compaction", {"revision": revision, "physical": True})


def etcd(server, call, body):
    url = f"http://127.0.0.1:{server.etcd_port()}/v3/kv/{call}"
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=60).close()


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def expired(server):
    """The server no longer lists the nodes of resourceVersion 1."""
    path = "/api/v1/nodes?resourceVersion=1&resourceVersionMatch=Exact"
    return server.access.request("GET", path)[0] == 410


def watched(server, path):
    """Whether the server lets a collection be watched. One that was defined a moment ago is not
    known at first (404), then its cache is being filled (429)."""
    connection = server.access.connect()
    try:
        connection.request("GET", path + "?watch=1&timeoutSeconds=1", headers=server.access.headers())
        return connection.getresponse().status == 200
    finally:
        connection.close()


@pytest.fixture(scope="module")
def lean(tmp_path_factory):
    """A real server nobody else writes to, as in the recording."""
    with Cluster(tmp_path_factory.mktemp("conformance"), lean=True) as server:
        cleaner = replay.Cleaner(server.access)
        cleaner.prelude()
        compact(server)
        for path in cleaner.defined():
            wait_for(lambda p=path: watched(server, p), f"{path} can be watched")
        yield server


@pytest.mark.backend("cluster")
@pytest.mark.parametrize("name", replay.case_names())
def test_the_real_server_answers_as_recorded(name, lean):
    """Proves the replay: before it judges the sandbox it must agree with what was recorded."""
    case = replay.load(name)
    if "expired" in name:
        wait_for(lambda: expired(lean), "resourceVersion 1 has expired")
    try:
        replay.Replay(lean.access).play(case, exact=True)
    finally:
        replay.Cleaner(lean.access).clean(case)


@pytest.mark.backend("sandbox")
@pytest.mark.parametrize("name", replay.case_names())
def test_the_sandbox_answers_as_recorded(name, tmp_path):
    """Each case on a server of its own: it starts in milliseconds. What the sandbox leaves out is
    listed with the reason; a case that it has learnt meanwhile must leave the list."""
    case = replay.load(name)
    with Sandbox(tmp_path, flags=["--bare"]) as server:
        replay.Cleaner(server.access).prelude()
        if name in EXCEPTIONS:
            with pytest.raises(replay.Mismatch):
                replay.Replay(server.access).play(case)
        else:
            replay.Replay(server.access).play(case)


def ages(value):
    """The texts in a recording that could be an object's age."""
    if isinstance(value, dict):
        return [a for v in value.values() for a in ages(v)]
    if isinstance(value, list):
        return [a for v in value for a in ages(v)]
    return [value] if isinstance(value, str) and re.fullmatch(r"(\d+[smhdy])+", value) else []


def test_recordings_hold_no_age():
    """An age is whatever the machine's speed makes of it; a recording says <age> instead."""
    assert [n for n in replay.case_names() if ages(replay.load(n)["response"])] == []


def test_exceptions_name_cases_and_reasons():
    assert set(EXCEPTIONS) <= set(replay.case_names())
    assert all(isinstance(reason, str) and reason for reason in EXCEPTIONS.values())
    assert len(EXCEPTIONS) <= 7, "what the sandbox leaves out is little"
