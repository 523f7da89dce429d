"""The Helm chart on real nodes: install, a node's maintenance, an upgrade with a grant under way, uninstall."""

import os
import pathlib
import shutil

import pytest
import yaml

from backend import ROOT
from contract import LEASE, PROFILE
from in_cluster import Pods, fixture_helm, fixture_restricted
from profiles import label, wait_state
from real_nodes import NAMES
from requests_api import CLIENT_LABEL, Requests, path
from test_nodes_deployment import CONFIG, fixture_patient, leader
from wait import wait_for

pytestmark = pytest.mark.backend("nodes")

RELEASE = "drydock"
OF_RELEASE = f"app.kubernetes.io/instance={RELEASE}"
LIMIT_CRD = "maintenancelimits.repairman.k8s.io"
# All that a release may make.
KINDS = ("deployments,pods,services,serviceaccounts,secrets,configmaps,poddisruptionbudgets,networkpolicies,roles,rolebindings,"
         "clusterroles,clusterrolebindings,customresourcedefinitions,validatingadmissionpolicies,priorityclasses")


@pytest.fixture(name="chart")
def fixture_chart(tmp_path):
    """A copy that the case may change."""
    return pathlib.Path(shutil.copytree(os.path.join(ROOT, "deploy", "helm", "drydock"), tmp_path / "chart"))


@pytest.fixture(name="requests")
def fixture_requests(backend):
    return Requests(backend)


def values(image, tmp_path):
    repository, tag = image.rsplit(":", 1)
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "config": yaml.safe_load(CONFIG),
        "crds": {"keep": False},  # so that nothing is left at the end
        "extraArgs": ["--metrics-timeout=1s"],  # nobody scrapes here
    }), encoding="utf-8")
    return str(file)


def add_field(chart, name):
    """A later version of the chart, whose CRD knows one more field."""
    file = chart / "files/crds/requests/maintenancelimits.yaml"
    crd = yaml.safe_load(file.read_text(encoding="utf-8"))
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][name] = {"type": "string"}
    file.write_text(yaml.safe_dump(crd), encoding="utf-8")


def test_a_release_comes_works_is_upgraded_and_goes(client, chart, helm, image, kubectl, patient, requests, restricted, tmp_path):
    helm("install", RELEASE, str(chart), "--values", values(image, tmp_path), "--wait", "--timeout", "2m")
    pods = Pods(client, restricted, f"{OF_RELEASE},app.kubernetes.io/component=controller")
    first = pods.wait_ready(2)
    assert {pod.spec.node_name for pod in first} == set(NAMES), "one on each node"

    # The leader's own node, whichever it is: it evicts itself, and the other one goes on.
    node = leader(client, pods).spec.node_name
    label(client, node, update="needed", **{PROFILE: "cycle"})
    wait_state(client, node, "in-maintenance")
    assert node not in {pod.spec.node_name for pod in pods.all()}
    label(client, node, update="done")
    wait_state(client, node, "operational")
    label(client, node, update=None, **{PROFILE: None})

    # A grant that is under way stays what it is.
    try:
        assert requests.create("maintenancelimits", "all", {"type": "node", "limit": 50})[0] == 201
        assert requests.create("maintenancerequests", "work", {"name": patient, "type": "node", "state": "Pending"},
                               {CLIENT_LABEL: "case"})[0] == 201
        wait_for(lambda: requests.state("work") == "Approved", "it is approved")
        requests.move("work", "InProgress")

        def reservations():
            return requests.get("maintenancelimits", "all")["status"].get("reservations", [])
        before = wait_for(lambda: (found := reservations()) and found[0]["state"] == "InProgress" and found, "work is under way")
        old = {pod.metadata.name for pod in pods.all()}
        add_field(chart, "laterField")
        helm("upgrade", RELEASE, str(chart), "--reuse-values", "--set", "podAnnotations.version=later", "--wait", "--timeout", "2m")
        wait_for(lambda: len(pods.ready()) == 2 and not old & {pod.metadata.name for pod in pods.all()}, "all pods are new")
        leader(client, pods)
        assert reservations() == before
        assert requests.get("maintenancerequests", "work")["status"]["phase"] == "InProgress"
        status, answer = requests.send("PATCH", path("maintenancelimits", "all"), {"spec": {"laterField": "known"}},
                                       "application/merge-patch+json")
        assert status == 200 and answer["spec"]["laterField"] == "known"
        requests.move("work", "Completed")
        wait_for(lambda: not reservations(), "the grant is over")
        wait_for(lambda: requests.get("maintenancerequests", "work")["status"].get("result") == "Succeeded", "it says so")
    finally:
        requests.clean()

    helm("uninstall", RELEASE, "--wait", "--timeout", "2m")
    wait_for(lambda: not kubectl("get", KINDS, "--all-namespaces", "--selector", OF_RELEASE, "--output", "name").strip(), "nothing is left")
    left = [lease.metadata.name for lease in client.leases.list_namespaced_lease(restricted).items]
    assert set(left) <= {LEASE}, "but for the Lease, which goes with the namespace"
