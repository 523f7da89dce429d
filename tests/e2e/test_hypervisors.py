"""Hypervisors of kvm.cloud.sap: checks, a condition and a trigger on an object that has the name of its node. The CRD here is
our own; it has the fields that the plugins can name."""

import json

import kubernetes
import pytest

from contract import PROFILE
from process import Controller
from profiles import events, read, wait_state
from wait import holds_for, wait_for

GROUP, VERSION, PLURAL = "kvm.cloud.sap", "v1", "hypervisors"
TEXT, TRUTH = {"type": "string"}, {"type": "boolean"}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {"group": GROUP, "scope": "Cluster",
             "names": {"kind": "Hypervisor", "listKind": "HypervisorList", "plural": PLURAL, "singular": "hypervisor"},
             "versions": [{
                 "name": VERSION, "served": True, "storage": True, "subresources": {"status": {}},
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                     "spec": {"type": "object", "properties": {
                         "maintenance": {**TEXT, "enum": ["", "manual", "auto", "ha", "termination"]},
                         "maintenanceReason": TEXT, "version": TEXT, "reboot": TRUTH, "lifecycleEnabled": TRUTH}},
                     "status": {"type": "object", "properties": {
                         "evicted": TRUTH, "hypervisorVersion": TEXT, "libVirtVersion": TEXT, "hypervisorId": TEXT,
                         "numInstances": {"type": "integer"},
                         "conditions": {"type": "array", "items": {"type": "object", "properties": {
                             "type": TEXT, "status": TEXT}}}}}}}}}]}}

CONFIG = """intervals: {requeue: 60s}
instances:
  check:
  - {type: hasLabel, name: go, config: {key: go}}
  - {type: checkHypervisor, name: evicted, config: {evicted: true, hypervisorVersion: "8.2"}}
  - {type: hypervisorCondition, name: ready, config: {type: Ready, status: "True"}}
  trigger:
  - {type: alterHypervisor, name: maintain, config: {maintenance: auto, reboot: true}}
  - {type: alterHypervisor, name: back, config: {maintenance: "", reboot: false}}
profiles:
- name: kvm
  operational:
    transitions: [{check: go, next: maintenance-required, trigger: maintain}]
  maintenance-required:
    transitions: [{check: evicted, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: ready, next: operational}]
    enter: back
"""


@pytest.fixture(name="kind", scope="module")
def fixture_kind(backend):
    """install(), remove(): whether the cluster knows Hypervisors."""
    with backend.client() as api:
        definitions = kubernetes.client.ApiextensionsV1Api(api)
        custom = kubernetes.client.CustomObjectsApi(api)

        def served():
            try:
                custom.list_cluster_custom_object(GROUP, VERSION, PLURAL)
                return True
            except kubernetes.client.ApiException as error:
                assert error.status == 404
                return False

        class Kind:
            def install(self):
                if not served():
                    definitions.create_custom_resource_definition(CRD)
                    wait_for(served, "hypervisors are served")

            def remove(self):
                if served():
                    definitions.delete_custom_resource_definition(CRD["metadata"]["name"])
                    wait_for(lambda: not served(), "hypervisors are gone")

        kind = Kind()
        yield kind
        kind.remove()


@pytest.fixture(name="make_hypervisor")
def fixture_make_hypervisor(client, kind):
    """make(name, spec): one that is gone after the test."""
    kind.install()
    made = []

    def make(name, **spec):
        client.custom.create_cluster_custom_object(GROUP, VERSION, PLURAL, {
            "apiVersion": f"{GROUP}/{VERSION}", "kind": "Hypervisor", "metadata": {"name": name},
            "spec": {"lifecycleEnabled": True, **spec}})
        made.append(name)

    yield make
    for name in made:
        client.custom.delete_cluster_custom_object(GROUP, VERSION, PLURAL, name)


def spec(client, name):
    return client.custom.get_cluster_custom_object(GROUP, VERSION, PLURAL, name)["spec"]


def set_status(client, name, **status):
    client.custom.patch_cluster_custom_object_status(GROUP, VERSION, PLURAL, name, {"status": status})


def explained(controller, name):
    return json.loads(controller.get(f"/api/v1/explain?node={name}")[2])


def check_of(controller, name, check):
    for profile in explained(controller, name)["profiles"]:
        for transition in profile["transitions"]:
            for found in transition["checks"]:
                if found["name"] == check:
                    return found
    return None


def test_a_whole_cycle(client, make_node, make_hypervisor, unique, launch):
    name = make_node(unique, {PROFILE: "kvm"})
    make_hypervisor(name, version="1", maintenanceReason="mine")
    controller = launch(CONFIG)
    wait_state(client, name, "operational")
    client.core.patch_node(name, {"metadata": {"labels": {"go": ""}}})
    wait_state(client, name, "maintenance-required")
    assert spec(client, name) == {"lifecycleEnabled": True, "version": "1", "maintenanceReason": "mine",
                                  "maintenance": "auto", "reboot": True}

    found = check_of(controller, name, "evicted")
    assert found["answer"] == "fail" and "evicted is 'false', not 'true'" in found["reason"]
    set_status(client, name, evicted=True, hypervisorVersion="8.1")
    wait_for(lambda: "hypervisorVersion is '8.1', not '8.2'" in check_of(controller, name, "evicted")["reason"],
             "the watch brings the change")
    client.core.patch_node(name, {"metadata": {"labels": {"go": None}}})
    set_status(client, name, hypervisorVersion="8.2")
    wait_state(client, name, "in-maintenance")
    wait_for(lambda: spec(client, name)["maintenance"] == "" and spec(client, name)["reboot"] is False,
             "the enter chain has changed it back")
    found = check_of(controller, name, "ready")
    assert found["info"] == {"reason": "condition Ready not present"}
    set_status(client, name, conditions=[{"type": "Ready", "status": "True"}])
    wait_state(client, name, "operational")


def test_an_operator_that_clears_the_field_is_asked_once(client, make_node, make_hypervisor, unique, launch):
    """The change counts when the server has taken it; what others make of the field afterwards is theirs."""
    name = make_node(unique, {PROFILE: "kvm", "go": ""})
    make_hypervisor(name)
    launch(CONFIG)
    wait_state(client, name, "maintenance-required")
    client.custom.patch_cluster_custom_object(GROUP, VERSION, PLURAL, name, {"spec": {"reboot": False}})
    holds_for(lambda: spec(client, name)["reboot"] is False, 1, "nobody sets it again")


def test_a_node_without_a_hypervisor(client, make_node, make_hypervisor, unique, launch):
    name = make_node(unique, {PROFILE: "kvm", "go": ""})
    make_hypervisor(unique + "-other")
    controller = launch(CONFIG)
    missing = f'{PLURAL}.{GROUP} "{name}" not found'
    wait_for(lambda: missing in json.dumps(explained(controller, name)).replace('\\"', '"'), "explain says so")
    wait_for(lambda: any("trigger plugin failed" in note for note in events(client, name, "ChangeMaintenanceStateFailed")),
             "an event says so")
    holds_for(lambda: read(client, name).metadata.labels.get("cloud.sap/maintenance-state") == "operational", 0.5,
              "it stays where it is")
    make_hypervisor(name)
    wait_state(client, name, "maintenance-required")
    assert spec(client, name)["maintenance"] == "auto"


def test_a_cluster_without_the_kind(client, make_node, kind, make_hypervisor, unique, launch):
    kind.remove()
    name = make_node(unique, {PROFILE: "kvm", "go": ""})
    controller = launch(CONFIG)
    words = f"the cluster has no kind {PLURAL}.{GROUP}: its CRD is not installed"
    wait_for(lambda: words in json.dumps(explained(controller, name)), "explain says so")
    kind.install()
    make_hypervisor(name)
    wait_state(client, name, "maintenance-required")


def test_a_value_that_the_server_refuses(client, make_node, make_hypervisor, unique, launch):
    name = make_node(unique, {PROFILE: "kvm", "go": ""})
    make_hypervisor(name)
    controller = launch(CONFIG.replace("{maintenance: auto, reboot: true}", "{maintenance: perhaps}"))
    wait_for(lambda: f'{PLURAL}.{GROUP} "{name}" cannot be changed: the server answered 422' in
             json.dumps(explained(controller, name)).replace('\\"', '"'), "explain says so")
    controller.config.write_text(CONFIG, encoding="utf-8")
    wait_state(client, name, "maintenance-required")


# The sandbox knows an administrator and nobody else.
@pytest.mark.backend("cluster")
def test_a_right_that_is_missing(backend, client, make_node, make_hypervisor, kubectl, unique, launch, tmp_path):
    """Other profiles work on."""
    name = make_node(unique, {PROFILE: "kvm--plain", "go": ""})
    make_hypervisor(name)
    rules = [{"apiGroups": ["*"], "resources": ["nodes", "pods", "leases", "events", "deployments", "daemonsets",
                                                "replicasets", "statefulsets"], "verbs": ["*"]}]
    rbac = "rbac.authorization.k8s.io"
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": f"{rbac}/v1", "kind": "ClusterRole",
                                                  "metadata": {"name": unique}, "rules": rules}))
    kubectl("create", "clusterrolebinding", unique, f"--clusterrole={unique}", f"--user={unique}")
    config = CONFIG + "- name: plain\n  operational:\n    transitions: [{check: go, next: maintenance-required}]\n"
    path = tmp_path / "rights.yaml"
    path.write_text(config, encoding="utf-8")
    kubeconfig = str(backend.access.variant(tmp_path / "user.kubeconfig", user={"as": unique}))
    try:
        with Controller(kubeconfig, tmp_path, "rights", ["--config", str(path)]) as controller:
            controller.wait_ready()
            wait_state(client, name, "maintenance-required")
            words = json.dumps(explained(controller, name))
            assert f"{PLURAL}.{GROUP} cannot be watched: " in words and "forbidden" in words
    finally:
        kubectl("delete", "clusterrolebinding,clusterrole", unique)


def test_nothing_is_watched_unless_a_configuration_names_it(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "kvm", "go": ""})
    plain = CONFIG.split("  - {type: checkHypervisor")[0] + """profiles:
- name: kvm
  operational:
    transitions: [{check: go, next: maintenance-required}]
"""
    controller = launch(plain, flags=["--v", "1"])
    wait_state(client, name, "maintenance-required")
    assert PLURAL not in controller.log()
