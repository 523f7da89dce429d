"""The CRDs of repairman.k8s.io/v1: who printed them, who applied them, what they accept and refuse.

Rules are those of a real API server: their cases run on the cluster.
"""

import json
import subprocess

import pytest
import yaml

from process import Controller, Process, drydock
from requests_api import KINDS, Requests, causes, install, path
from wait import wait_for

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMES = [f"{p}.repairman.k8s.io" for p in KINDS]
STATES = ("Pending", "Approved", "InProgress", "Completed")
ALLOWED = {("Pending", "Approved"), ("Pending", "Completed"),
           ("Approved", "Pending"), ("Approved", "InProgress"), ("Approved", "Completed"),
           ("InProgress", "Pending"), ("InProgress", "Completed"),
           *((s, s) for s in STATES)}
OPERATION_NAMES = [f"{plural}.drydock.dev" for plural in
                   ("maintenancewindows", "nodemaintenances", "nodeoperationtemplates", "nodeseries", "nodestates")]


@pytest.fixture(scope="module", name="installed")
def fixture_installed(backend, tmp_path_factory):
    install(backend, tmp_path_factory.mktemp("crds"))


@pytest.fixture(name="objects")
def fixture_objects(backend, installed):
    objects = Requests(backend)
    yield objects
    objects.clean()


def printed(*flags):
    return subprocess.run([drydock(), "crds", *flags], check=True, text=True, capture_output=True,
                          timeout=60).stdout


def test_both_forms_hold_the_same():
    documents = list(yaml.safe_load_all(printed()))
    assert json.loads(printed("-o", "json"))["items"] == documents
    assert [d["metadata"]["name"] for d in documents] == NAMES + OPERATION_NAMES
    assert [d["metadata"]["name"] for d in yaml.safe_load_all(printed("--operations"))] == OPERATION_NAMES


def test_kubectl_finds_nothing_to_change_the_second_time(kubectl, installed):
    lines = kubectl("apply", "-f", "-", stdin=printed(), timeout=120).splitlines()
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["unchanged"] * len(NAMES + OPERATION_NAMES)


def test_kubectl_knows_short_names_and_the_category(kubectl, objects, unique):
    assert objects.create("maintenancelimits", unique, {"limit": 10})[0] == 201
    assert objects.create("maintenancerequests", unique, {"name": "n", "type": "node"})[0] == 201
    assert kubectl("get", "mlimit", unique, "-o", "name").split() == \
        [f"maintenancelimit.repairman.k8s.io/{unique}"]
    found = kubectl("get", "drydock", "-A", "-o", "name").split()
    assert {f"maintenancelimit.repairman.k8s.io/{unique}",
            f"maintenancerequest.repairman.k8s.io/{unique}"} <= set(found)


@pytest.mark.parametrize("plural", ["maintenancelimits", "maintenancerequests"])
def test_an_object_without_spec_comes_back_as_it_was(objects, plural, unique):
    status, made = objects.create(plural, unique)
    assert status == 201, made
    assert "spec" not in made and "status" not in made
    assert objects.get(plural, unique) == made
    assert objects.send("DELETE", path(plural, unique))[0] == 200
    assert objects.send("GET", path(plural, unique))[0] == 404


def test_objects_of_the_original_are_accepted_unchanged(objects, namespace, unique):
    """Its samples and what its users wrote, under strict validation."""
    limit = {"limit": 20, "policies": ["NotReady", "RespectUnschedulableNodes", "Anything"]}
    status, made = objects.create("maintenancelimits", unique, limit)
    assert (status, made.get("spec")) == (201, limit), made
    request = {"name": "dummynode", "type": "node", "state": "Pending"}
    status, made = objects.create("maintenancerequests", unique, request)
    assert (status, made.get("spec")) == (201, request), made
    status, made = objects.create("maintenanceselectors", unique, {"foo": "bar"}, namespace=namespace)
    assert (status, made.get("spec")) == (201, {"foo": "bar"}), made
    # A limit without a state of mind: absent stays absent.
    status, made = objects.create("maintenancelimits", unique + "-0", {})
    assert (status, made.get("spec")) == (201, {}), made


def test_a_request_without_state_is_pending(objects, unique):
    status, made = objects.create("maintenancerequests", unique, {"name": "n", "type": "node"})
    assert (status, made["spec"]["state"]) == (201, "Pending")


def columns(text):
    head, *lines = text.rstrip("\n").splitlines()
    assert len(lines) == 1, text
    return head.split(), lines[0].split()


def test_columns_of_a_limit(kubectl, objects, unique):
    assert objects.create("maintenancelimits", unique, {"limit": 25, "paused": True})[0] == 201
    status, answer = objects.patch("maintenancelimits", unique, {"status": {
        "limit": 2, "type": "node", "granted": 1, "waiting": 4, "unavailableCount": 3}}, "status")
    assert status == 200, answer
    head, cells = columns(kubectl("get", "mlimit", unique, "-o", "wide"))
    assert head == ["NAME", "PERCENT", "COUNT", "TYPE", "GRANTED", "WAITING", "UNAVAILABLE",
                    "PAUSED", "AGE"]
    assert cells[:8] == [unique, "25", "2", "node", "1", "4", "3", "true"]


def test_columns_of_a_request(kubectl, objects, unique):
    spec = {"name": "n1", "type": "node"}
    label = {"maintenancerequests.repairman.k8s.io/clientname": "tester"}
    assert objects.create("maintenancerequests", unique, spec, label)[0] == 201
    status, answer = objects.patch("maintenancerequests", unique, {
        "status": {"phase": "Pending", "reason": "LimitReached"}}, "status")
    assert status == 200, answer
    head, cells = columns(kubectl("get", "mreq", unique))
    assert head == ["NAME", "TARGET", "TYPE", "STATE", "PHASE", "REASON", "CLIENT", "AGE"]
    assert cells[:7] == [unique, "n1", "node", "Pending", "Pending", "LimitReached", "tester"]


def test_columns_of_a_selector(kubectl, objects, namespace, unique):
    assert objects.create("maintenanceselectors", unique, {"type": "node"}, namespace=namespace)[0] == 201
    head, cells = columns(kubectl("get", "msel", unique, "-n", namespace))
    assert head == ["NAME", "TYPE", "MATCHED", "AGE"]
    assert cells[:2] == [unique, "node"]


def test_status_is_written_by_its_own_path_alone(objects, unique):
    assert objects.create("maintenancerequests", unique, {"name": "n", "type": "node"})[0] == 201
    status, answer = objects.patch("maintenancerequests", unique, {"status": {"phase": "Approved"}})
    assert status == 200 and "status" not in answer
    status, answer = objects.patch("maintenancerequests", unique,
                                   {"spec": {"state": "Approved"}, "status": {"phase": "Pending"}}, "status")
    assert status == 200
    assert (answer["spec"]["state"], answer["status"]["phase"]) == ("Pending", "Pending")


SCHEMA = [
    ("maintenancelimits", {"limit": 101}, "spec.limit"),
    ("maintenancelimits", {"limit": -1}, "spec.limit"),
    ("maintenancelimits", {"type": "pod"}, "spec.type"),
    ("maintenancelimits", {"scope": "Mine"}, "spec.scope"),
    ("maintenancelimits", {"maxCount": 0}, "spec.maxCount"),
    ("maintenancelimits", {"timeouts": {"approvedSeconds": 2592001}}, "spec.timeouts.approvedSeconds"),
    ("maintenancelimits", {"drain": {"onTimeout": "Panic"}}, "spec.drain.onTimeout"),
    ("maintenancelimits", {"infraDrain": {"onTimeout": "Force"}}, "spec.infraDrain.onTimeout"),
    ("maintenancelimits", {"policies": ["x"] * 17}, "spec.policies"),
    ("maintenancerequests", {"type": "pod"}, "spec.type"),
    ("maintenancerequests", {"state": ""}, "spec.state"),
    ("maintenancerequests", {"state": "Rejected"}, "spec.state"),
    ("maintenancerequests", {"priority": 1001}, "spec.priority"),
    ("maintenancerequests", {"preparation": "Some"}, "spec.preparation"),
    ("maintenancerequests", {"reason": "x" * 1025}, "spec.reason"),
]


@pytest.mark.parametrize("plural, spec, field", SCHEMA,
                         ids=[f"{p}-{f}-{i}" for i, (p, _, f) in enumerate(SCHEMA)])
def test_the_schema_refuses(objects, plural, spec, field, unique):
    status, answer = objects.create(plural, unique, spec)
    assert status == 422, answer
    assert field in causes(answer)


# --- applied by the controller ---


def established(access):
    status, crds = access.request("GET", CRDS)
    assert status == 200
    return {crd["metadata"]["name"]: {c["type"]: c["status"] for c in crd["status"]["conditions"]}
            ["Established"] for crd in crds["items"] if crd["metadata"]["name"] in NAMES}


def test_the_controller_installs_them_and_then_leaves_them_alone(backend, tmp_path):
    """Also where they are already: all are served afterwards, and the second start writes nothing."""
    def generations():
        status, crds = backend.access.request("GET", CRDS)
        assert status == 200
        return {c["metadata"]["name"]: c["metadata"]["generation"] for c in crds["items"]
                if c["metadata"]["name"] in NAMES}

    seen = []
    for name in ("first", "second"):
        with Controller(backend.kubeconfig, tmp_path / name, name, ["--install-crds"]) as controller:
            wait_for(lambda c=controller: c.alive_or_fail() and "CRDs are installed" in c.log(),
                     f"the {name} is done")
            assert established(backend.access) == dict.fromkeys(NAMES, "True")
            seen.append(generations())
            controller.wait_ready()
    assert seen[0] == seen[1]


@pytest.mark.backend("cluster")
def test_the_controller_says_what_it_may_not_do(backend, tmp_path):
    """A user without rights: exit code 1 and a sentence, not a crash and not silence."""
    nobody = backend.access.variant(tmp_path / "nobody.kubeconfig", user={"as": "nobody"})
    with Controller(nobody, str(tmp_path), flags=["--install-crds"]) as controller:
        assert controller.wait(60) == 1
        assert "--install-crds was refused" in controller.log()
        assert "forbidden" in controller.log()


# --- rules ---


LABELS = {"matchLabels": {"a": "b"}}
REF = {"namespace": "default", "name": "x"}

# name of the limit, what is accepted, what is refused, the message
LIMIT_RULES = [
    ("node", {"type": "node"}, {"type": "deployment"}, "a limit named after a type must govern that type"),
    ("deployment", {"namespaceSelector": LABELS}, None, None),
    (None, {"type": "deployment", "namespaceSelector": LABELS}, {"type": "node", "namespaceSelector": LABELS},
     "namespaceSelector is only for namespaced types"),
    ("node", None, {"namespaceSelector": LABELS}, "namespaceSelector is only for namespaced types"),
    (None, {"type": "node", "drain": {}}, {"type": "statefulset", "drain": {}},
     "drain and infraDrain are only for nodes"),
    (None, {"infraDrain": {}}, {"type": "daemonset", "infraDrain": {}}, "drain and infraDrain are only for nodes"),
    ("statefulset", None, {"infraDrain": {}}, "drain and infraDrain are only for nodes"),
    (None, {"selector": LABELS}, {"selector": LABELS, "selectorRef": REF},
     "selector and selectorRef exclude each other"),
    (None, {"scope": "Exclusive", "selectorRef": REF}, {"scope": "Exclusive"}, "an Exclusive limit needs a selector"),
    (None, {"scope": "Exclusive", "selector": LABELS}, {"scope": "Exclusive"}, "an Exclusive limit needs a selector"),
    (None, {"minimum": 3, "maxCount": 3}, {"minimum": 4, "maxCount": 3}, "minimum must not exceed maxCount"),
]


def dry(objects, plural, name, spec):
    """What the server would say; nothing is made, so names that mean something may be tried."""
    body = {"apiVersion": "repairman.k8s.io/v1", "kind": KINDS[plural], "metadata": {"name": name}, "spec": spec}
    return objects.send("POST", path(plural) + "?dryRun=All&fieldValidation=Strict", body)


@pytest.mark.backend("cluster")
@pytest.mark.parametrize("name, accepted, refused, message", LIMIT_RULES, ids=range(len(LIMIT_RULES)))
def test_rules_of_a_limit(objects, unique, name, accepted, refused, message):
    if accepted is not None:
        status, answer = dry(objects, "maintenancelimits", name or unique, accepted)
        assert status == 201, answer
    if refused is not None:
        status, answer = dry(objects, "maintenancelimits", name or unique, refused)
        assert status == 422, answer
        assert any(message in text for text in causes(answer).values()), answer


@pytest.mark.backend("cluster")
def test_the_type_of_a_limit_may_be_added_and_not_changed(objects, unique):
    assert objects.create("maintenancelimits", unique, {"limit": 1})[0] == 201
    assert objects.patch("maintenancelimits", unique, {"spec": {"type": "node"}})[0] == 200
    for change in ({"spec": {"type": "deployment"}}, {"spec": {"type": None}}):
        status, answer = objects.patch("maintenancelimits", unique, change)
        assert status == 422, answer
        assert any("type is immutable once set" in text for text in causes(answer).values())
    assert objects.patch("maintenancelimits", unique, {"spec": {"limit": 2, "type": "node"}})[0] == 200


@pytest.mark.backend("cluster")
@pytest.mark.parametrize("plural", ["maintenancelimits", "maintenancerequests"])
def test_spec_cannot_be_removed(objects, plural, unique):
    assert objects.create(plural, unique)[0] == 201
    assert objects.patch(plural, unique, {"metadata": {"labels": {"a": "b"}}})[0] == 200
    assert objects.patch(plural, unique, {"spec": {}})[0] == 200
    status, answer = objects.patch(plural, unique, {"spec": None})
    assert status == 422, answer
    assert any("spec cannot be removed" in text for text in causes(answer).values())


@pytest.mark.backend("cluster")
@pytest.mark.parametrize("field, first, other", [
    ("name", "a", "b"), ("type", "node", "deployment"), ("namespace", "x", "y")])
def test_the_target_of_a_request_may_be_added_and_not_changed(objects, unique, field, first, other):
    assert objects.create("maintenancerequests", unique, {})[0] == 201
    assert objects.patch("maintenancerequests", unique, {"spec": {field: first}})[0] == 200
    assert objects.patch("maintenancerequests", unique, {"spec": {field: first, "reason": "r"}})[0] == 200
    for value in (other, None):
        status, answer = objects.patch("maintenancerequests", unique, {"spec": {field: value}})
        assert status == 422, answer
        assert any(f"{field} is immutable" in text for text in causes(answer).values())


@pytest.mark.backend("cluster")
@pytest.mark.parametrize("state", STATES)
def test_a_new_request_is_pending(objects, unique, state):
    status, answer = objects.create("maintenancerequests", unique, {"name": "n", "type": "node", "state": state})
    if state == "Pending":
        assert status == 201, answer
        return
    assert status == 422, answer
    assert causes(answer)["spec"].endswith("a new request is Pending")
    assert objects.create("maintenancerequests", unique)[0] == 201  # nor by a spec that comes later
    status, answer = objects.patch("maintenancerequests", unique, {"spec": {"state": state}})
    assert status == 422, answer


WAYS = {"Pending": [], "Approved": ["Approved"], "InProgress": ["Approved", "InProgress"],
        "Completed": ["Completed"]}


@pytest.mark.backend("cluster")
@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_transitions_of_a_request(objects, unique, before, after):
    assert objects.create("maintenancerequests", unique, {"name": "n", "type": "node"})[0] == 201
    objects.move(unique, *WAYS[before])
    status, answer = objects.patch("maintenancerequests", unique, {"spec": {"state": after}})
    if (before, after) in ALLOWED:
        assert (status, objects.state(unique)) == (200, after), answer
    else:
        assert status == 422, answer
        assert causes(answer)["spec"].endswith("state transition not allowed")
        assert objects.state(unique) == before


@pytest.mark.backend("cluster")
def test_removing_the_state_means_pending_and_leads_not_out_of_completed(objects, unique):
    assert objects.create("maintenancerequests", unique, {"name": "n", "type": "node"})[0] == 201
    objects.move(unique, "Approved")
    status, answer = objects.patch("maintenancerequests", unique, {"spec": {"state": None}})
    assert (status, answer["spec"]["state"]) == (200, "Pending")
    objects.move(unique, "Completed")
    assert objects.patch("maintenancerequests", unique, {"spec": {"state": None}})[0] == 422
    assert objects.state(unique) == "Completed"


@pytest.mark.backend("cluster")
def test_kubectl_waits_for_state_and_condition(backend, objects, tmp_path, unique):
    assert objects.create("maintenancerequests", unique, {"name": "n", "type": "node"})[0] == 201
    waits = {"state": "--for=jsonpath={.spec.state}=Approved", "condition": "--for=condition=Accepted"}
    started = {name: Process(backend.kubectl_command("wait", flag, f"mreq/{unique}", "--timeout=120s"),
                             str(tmp_path), name, env=backend.kubectl_env())
               for name, flag in waits.items()}
    try:
        objects.move(unique, "Approved")
        status, answer = objects.patch("maintenancerequests", unique, {"status": {"conditions": [{
            "type": "Accepted", "status": "True", "reason": "Valid", "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}, "status")
        assert status == 200, answer
        for process in started.values():
            assert process.wait(150) == 0, process.log()
            assert process.out() == f"maintenancerequest.repairman.k8s.io/{unique} condition met\n"
    finally:
        for process in started.values():
            process.end()
