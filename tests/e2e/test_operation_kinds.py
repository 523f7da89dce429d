"""The kinds of drydock.dev/v1alpha1: what an API server accepts, refuses, stores and shows of them.

The tables are data: tests/data/operations. Rules are evaluated by a real API server.
"""

import json
import os
import subprocess

import pytest
import yaml

from backend import ROOT
from operation_cases import GROUP, KINDS, OPERATION, cases, make, path
from process import drydock
from requests_api import causes, install

CASES = list(cases())
AGENT_BYTES_MAX = 48 * 1024  # of status.agent: one object holds it beside all else
TARGET = {"kind": "Node", "name": "a", "uid": "u"}


@pytest.fixture(scope="module", name="installed")
def fixture_installed(backend, tmp_path_factory):
    install(backend, tmp_path_factory.mktemp("crds"), "--operations")


@pytest.fixture(name="create")
def fixture_create(backend, installed, unique):
    """create(plural, spec): stores an object of the test's own name."""
    made = []

    def create(plural, spec):
        status, answer = backend.access.request("POST", path(plural) + "?fieldValidation=Strict",
                                                make(plural, unique, spec))
        assert status == 201, answer
        made.append(path(plural, unique))
        return answer

    yield create
    for where in made:
        backend.access.request("DELETE", where)


def patch(backend, plural, name, change, sub=None):
    return backend.access.request("PATCH", path(plural, name, sub), change, "application/merge-patch+json")


@pytest.mark.backend("cluster")
@pytest.mark.parametrize("case", CASES, ids=[f"{c.plural}-{c.name}" for c in CASES])
def test_the_server_accepts_or_says_what_to_write(backend, installed, case):
    status, answer = case.send(backend.access)
    if not case.refused:
        assert (status, answer.get("spec")) == (201, case.body["spec"]), answer
    else:
        assert status in (400, 422), answer
        assert [text for text in case.refused if text not in answer["message"]] == [], answer["message"]


@pytest.mark.parametrize("plural, spec", [
    ("nodemaintenances", {"window": {"days": ["Sat"], "from": "00:00", "to": "06:00"}, "nodeSeries": {"names": ["n"]},
                          "rollout": {"maxConcurrent": "10%"}, "operations": [OPERATION]}),
    ("maintenancewindows", {"recurrences": [{"cron": "@daily", "duration": "1h"}]}),
    ("nodeoperationtemplates", {"job": {"script": "true", "any": {"thing": [1]}}}),
    ("nodeseries", {"sample": 3}),
    ("nodestates", {"format": 1, "target": TARGET}),
])
def test_what_was_written_is_read_back(backend, create, unique, plural, spec):
    """No defaults: a second apply of the same file changes nothing."""
    assert create(plural, spec)["spec"] == spec
    status, answer = backend.access.request("GET", path(plural, unique))
    assert (status, answer["spec"]) == (200, spec)
    assert "status" not in answer


@pytest.mark.parametrize("plural, spec, field", [
    ("nodemaintenances", {"operations": []}, "spec.operations"),
    ("nodemaintenances", {"operations": [OPERATION], "window": {}}, "spec.window"),
    ("nodemaintenances", {"operations": [OPERATION], "nodeSeries": {"include": [{}]}}, "spec.nodeSeries.include[0]"),
    ("nodemaintenances", {"operations": [{**OPERATION, "disruptive": "No"}]}, "spec.operations[0].disruptive"),
    ("nodemaintenances", {"operations": [OPERATION], "mode": "Off"}, "spec.mode"),
    ("maintenancewindows", {"effect": "Shut"}, "spec.effect"),
    ("nodeseries", {"names": []}, "spec.names"),
    ("nodestates", {"format": 0, "target": TARGET}, "spec.format"),
])
def test_the_schema_refuses(backend, installed, plural, spec, field):
    status, answer = backend.access.request("POST", path(plural), make(plural, "x", spec))
    assert status == 422, answer
    assert field in causes(answer)


def rows(text):
    return [line.rstrip() for line in text.rstrip("\n").splitlines()]


def test_the_table_fits_a_terminal_and_says_why_it_waits(backend, kubectl, create, unique):
    create("nodemaintenances", {"operations": [OPERATION]})
    status, answer = patch(backend, "nodemaintenances", unique, {"status": {
        "phase": "Degraded", "progress": "1180/1200", "reason": "WaitingGate", "next": "11-24 02:00Z",
        "counts": {"failed": 20, "drifted": 3}, "window": {"open": True}, "wave": {"name": "canary"},
        "revision": "5d41402abc4b2a76"}}, "status")
    assert status == 200, answer
    head, line = rows(kubectl("get", "ndm", unique))
    assert head.split() == ["NAME", "PHASE", "DONE", "FAILED", "REASON", "NEXT", "AGE"]
    assert line.split()[:7] == [unique, "Degraded", "1180/1200", "20", "WaitingGate", "11-24", "02:00Z"]
    assert max(len(head), len(line)) <= 80
    head, line = rows(kubectl("get", "ndm", unique, "-o", "wide"))
    assert head.split()[7:] == ["WINDOW", "DRIFTED", "WAVE", "REVISION"]
    assert line.split()[-4:] == ["true", "3", "canary", "5d41402abc4b2a76"]


@pytest.mark.parametrize("short, plural, spec, status, cells", [
    ("mwin", "maintenancewindows", {"recurrences": [{"cron": "@daily", "duration": "1h"}], "timeZone": "America/New_York"},
     {"open": False, "nextStart": "2026-11-24T02:00:00Z"}, ["America/New_York", "false", "2026-11-24T02:00:00Z"]),
    ("nser", "nodeseries", {"scope": "All"}, {"matched": 1200, "external": 3, "held": 1}, ["All", "1200", "3", "1"]),
    ("nopt", "nodeoperationtemplates", {"version": "1.2.0", "job": {"script": "a"}},
     {"parameters": "2 (1 required)", "usedBy": 3}, ["1.2.0", "2", "(1", "required)", "3"]),
    ("nst", "nodestates", {"format": 1, "target": TARGET},
     {"agent": {"summary": "41/42 ok"}, "visit": {"format": 1, "id": "i", "phase": "Draining"}},
     ["41/42", "ok", "Draining"]),
])
def test_tables_of_the_others_fit_a_terminal(backend, kubectl, create, unique, short, plural, spec, status, cells):
    create(plural, spec)
    code, answer = patch(backend, plural, unique, {"status": status}, "status")
    assert code == 200, answer
    head, line = rows(kubectl("get", short, unique))
    assert max(len(head), len(line)) <= 80
    assert line.split()[1:1 + len(cells)] == cells


def test_status_has_its_own_path(backend, create, unique):
    create("nodemaintenances", {"operations": [OPERATION]})
    status, answer = patch(backend, "nodemaintenances", unique, {"status": {"phase": "Running"}})
    assert status == 200 and "status" not in answer
    status, answer = patch(backend, "nodemaintenances", unique, {"spec": {"suspend": True},
                                                                 "status": {"phase": "Running"}}, "status")
    assert (status, answer["status"]["phase"], answer["spec"].get("suspend")) == (200, "Running", None)


@pytest.mark.backend("cluster")
def test_the_machine_of_a_state_cannot_change(backend, create, unique):
    create("nodestates", {"format": 1, "target": TARGET})
    for target in ({"uid": "v"}, None):
        status, answer = patch(backend, "nodestates", unique, {"spec": {"target": target}})
        assert status == 422, answer


@pytest.mark.backend("cluster")
def test_the_type_of_an_operation_may_change(backend, create, unique):
    """Tried once, then kept so: the type is part of the revision."""
    template = {"name": "a", "template": {"name": "t"}}
    create("nodemaintenances", {"operations": [{**template, "type": "one-shot"}]})
    status, answer = patch(backend, "nodemaintenances", unique, {"spec": {"operations": [{**template, "type": "realtime"}]}})
    assert status == 200, answer


@pytest.mark.backend("cluster")
def test_two_managers_own_an_operation_each(kubectl, create, unique):
    def manifest(operation):
        return json.dumps(make("nodemaintenances", unique, {"operations": [
            {"name": operation, "type": "one-shot", "script": "true"}]}))

    create("nodemaintenances", {"operations": [OPERATION]})
    for operation in ("base", "extra"):
        kubectl("apply", "--server-side", "--field-manager", operation, "-f", "-", stdin=manifest(operation))
    found = json.loads(kubectl("get", "ndm", unique, "-o", "json"))
    assert {o["name"] for o in found["spec"]["operations"]} == {"a", "base", "extra"}


# --- what stands in the definitions ---


def printed():
    text = subprocess.run([drydock(), "crds", "--operations"], check=True, text=True, capture_output=True, timeout=60).stdout
    found = {d["spec"]["names"]["plural"]: d for d in yaml.safe_load_all(text) if d["spec"]["group"] == GROUP}
    assert list(found) == list(KINDS)
    return {plural: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for plural, crd in found.items()}


def fields(schema, where=""):
    """(path, schema) of every field."""
    for name, field in schema.get("properties", {}).items():
        yield f"{where}.{name}", field
        yield from fields(field, f"{where}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], where + "[]")


def test_the_files_are_what_the_tool_writes():
    result = subprocess.run([os.path.join(ROOT, "tools", "operation-crds"), "--check"], check=False, text=True,
                            capture_output=True, timeout=60)
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.parametrize("plural", KINDS)
def test_every_field_has_a_description_and_a_maximum(plural):
    for where, field in fields(printed()[plural]):
        assert field.get("description"), where
        assert "default" not in field, where
        if field.get("type") == "string" and "enum" not in field and "format" not in field:
            assert "maxLength" in field, where
        if field.get("type") == "array":
            assert "maxItems" in field, where


def largest(schema):
    """How many bytes the values can take, keys and punctuation included."""
    kind = schema.get("type")
    if kind == "object":
        return 2 + sum(len(name) + 4 + largest(field) for name, field in schema["properties"].items())
    if kind == "array":
        return 2 + schema["maxItems"] * (1 + largest(schema["items"]))
    if kind == "string" and "enum" in schema:
        return 2 + max(map(len, schema["enum"]))
    if kind == "string" and "format" in schema:
        return 2 + len("2026-11-24T02:00:00Z")
    if kind == "string":
        # A byte a letter, and two where JSON escapes it.
        return 2 + {"^[ !#-\\[\\]-~]*$": 1, "^[\\n -~]*$": 2}[schema["pattern"]] * schema["maxLength"]
    return 20


def test_a_report_of_an_agent_has_a_known_size():
    agent = printed()["nodestates"]["properties"]["status"]["properties"]["agent"]
    assert largest(agent) <= AGENT_BYTES_MAX


def test_lists_of_a_state_have_no_owner_for_each_element():
    for where, field in fields(printed()["nodestates"]):
        assert field.get("x-kubernetes-list-type", "atomic") == "atomic", where
