"""The Helm chart on a real API server: every object is taken as it is; a release is installed, upgraded and removed."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest
import yaml

from backend import ROOT
from requests_fixture import ASKS, LIMITS, fixture_installed, fixture_objects, fixture_requests_env, fixture_serve
from wait import wait_for

CHART = pathlib.Path(ROOT) / "deploy/helm/drydock"
SETS = [None, *sorted((CHART / "ci").glob("*-values.yaml"))]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FOREIGN = ("ServiceMonitor", "PrometheusRule")  # kinds of the Prometheus operator, which is not here

# The sandbox has neither schemas of all kinds nor Helm's questions to discovery.
pytestmark = pytest.mark.backend("cluster")


@pytest.fixture(name="helm", scope="module")
def fixture_helm(backend, tmp_path_factory):
    """helm(argument…): against this cluster, with a home of its own."""
    folder = subprocess.run([f"{ROOT}/tests/cluster/build-helm"], check=True, text=True, capture_output=True).stdout.strip()
    home = tmp_path_factory.mktemp("helm")
    env = os.environ | {"KUBECONFIG": str(backend.kubeconfig)} | {f"HELM_{kind}_HOME": f"{home}/{kind}" for kind in (
        "CACHE", "CONFIG", "DATA")}

    def helm(*arguments, check=True):
        done = subprocess.run([f"{folder}/helm", *map(str, arguments)], check=False, text=True, capture_output=True, timeout=180, env=env)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done
    return helm


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.name.removesuffix("-values.yaml") if path else "defaults")
def test_the_server_takes_every_object(helm, kubectl, client, namespace, tmp_path, values):
    """By a server-side dry run with strict validation: schemas, names, roles, admission and all."""
    text = helm("template", "drydock", CHART, "--namespace", namespace, *(["--values", values] if values else [])).stdout
    items = [item for item in yaml.safe_load_all(text) if item and item["kind"] not in FOREIGN]
    known = {space.metadata.name for space in client.core.list_namespace().items}
    made = {item["metadata"]["namespace"] for item in items if "namespace" in item["metadata"]} - known
    for space in made:
        client.core.create_namespace({"metadata": {"name": space}})
    try:
        file = tmp_path / "objects.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
        done = kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", str(file), check=False)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == len(items), done.stdout
        # CRDs that others have applied otherwise are no matter of the chart's.
        assert not [line for line in done.stderr.splitlines() if "Warning" in line and "last-applied" not in line], done.stderr
    finally:
        for space in made:
            client.core.delete_namespace(space)


def things(kubectl, release):
    """What carries the release's label, CRDs left out."""
    kinds = ("deployments,services,serviceaccounts,secrets,roles,rolebindings,poddisruptionbudgets,configmaps,pods,"
             "clusterroles,clusterrolebindings,networkpolicies")
    return kubectl("get", kinds, "--all-namespaces", "--ignore-not-found", "-o", "name", "-l", f"app.kubernetes.io/instance={release}").split()


@pytest.mark.nodes(2)
def test_a_release_is_installed_upgraded_and_removed(helm, kubectl, client, objects, requests_env, serve, nodes, namespace, unique, tmp_path):
    """Under Pod Security `restricted`; a grant outlives an upgrade that brings a new field; nothing is left but the CRDs."""
    space, release = f"{unique}-home", f"{unique}-drydock"[:40].strip("-")
    for name in nodes:
        client.core.patch_node(name, {"metadata": {"labels": {"chart": unique, "case": unique}}})
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps({"nodeSelector": {"chart": unique}, "podAntiAffinity": "hard", "tolerations": [{"operator": "Exists"}]}),
                      encoding="utf-8")
    client.core.create_namespace({"metadata": {"name": space, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    where = ("--namespace", space, "--values", values, "--wait", "--timeout", "2m", "--take-ownership")
    try:
        said = helm("install", release, CHART, *where).stdout
        assert f"test {release}" in said and "MaintenanceLimit" in said, "the notes say what to do next"
        deployment = client.apps.read_namespaced_deployment(f"{release}-controller", space)
        assert deployment.status.ready_replicas == 2
        assert len({pod.spec.node_name for pod in client.core.list_namespaced_pod(space).items}) == 2, "on different nodes"

        def held():
            return [(entry["requestUID"], entry["grant"], entry["grantedTime"]) for entry in
                    requests_env.status(limit, LIMITS)["reservations"]]

        # Somebody holds a grant while the release is upgraded.
        limit = requests_env.limit(limit=50)
        node = nodes[0]
        serve()
        asked = requests_env.ask(node)
        requests_env.wait_state(asked, "Approved")
        objects.move(asked, "InProgress")
        requests_env.wait_phase(asked, "InProgress")
        before = held()
        newer = tmp_path / "newer"
        shutil.copytree(CHART, newer)
        file = newer / "files/crds/requests/maintenancelimits.yaml"
        crd = yaml.safe_load(file.read_text(encoding="utf-8"))
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["newerField"] = {"type": "string"}
        file.write_text(yaml.safe_dump(crd), encoding="utf-8")
        helm("upgrade", release, newer, *where, "--set", "logLevel=debug")
        assert held() == before and len(before) == 1
        status, answer = objects.send("PATCH", f"/apis/repairman.k8s.io/v1/{LIMITS}/{limit}", {"spec": {"newerField": "taken"}},
                                      "application/merge-patch+json")
        assert status == 200 and answer["spec"]["newerField"] == "taken", "the CRD was upgraded"
        objects.move(asked, "Completed")
        requests_env.nothing_is_left(limit, nodes=[node])
        helm("rollback", release, "1", "--namespace", space, "--wait")
        assert "newerField" not in json.dumps(objects.send("GET", f"{CRDS}/{LIMITS}.repairman.k8s.io")[1]["spec"])
    finally:
        helm("uninstall", release, "--namespace", space, "--wait", check=False)
    wait_for(lambda: not things(kubectl, release), "nothing carries its label")
    assert objects.send("GET", f"{CRDS}/{ASKS}.repairman.k8s.io")[0] == 200, "the CRDs are kept"
    left = kubectl("get", "secrets,leases,configmaps", "-n", space, "-o", "name").split()
    assert set(left) <= {"configmap/kube-root-ca.crt"}, left
    client.core.delete_namespace(space)
