"""Kubernikus: which kubelets are old, and nodes that are deleted with their servers, against a Keystone and a Nova on loopback."""

import base64
import json
import os
import sys

import pytest

from contract import PROFILE
from objects import pod
from process import Controller
from profiles import events, read, wait_state
from conftest import node_ready
from wait import holds_for, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "servers"))
from openstack import PASSWORD, OpenStack  # noqa: E402  pylint: disable=wrong-import-position

CONFIG = """intervals:
  requeue: 1s
  podDeletion: {period: 1s, timeout: 5m}
  podEviction: {period: 1s, timeout: 5m, force: false}
"""
SECRET = "cloudProviderSecret: {name: NAME, namespace: default}\n"
NEEDS = "cloud.sap/kubelet-needs-update"


@pytest.fixture(name="cloud")
def fixture_cloud():
    with OpenStack() as cloud:
        yield cloud


@pytest.fixture(name="start")
def fixture_start(backend, tmp_path):
    """start(conf, config): a controller with Kubernikus, in a folder with provider/cloudprovider.conf."""
    running = []

    def start(conf=None, config=CONFIG, ready=True):
        folder = tmp_path / "kubernikus"
        (folder / "provider").mkdir(parents=True, exist_ok=True)
        (folder / "config").mkdir(exist_ok=True)
        if conf is not None:
            (folder / "provider" / "cloudprovider.conf").write_text(conf, encoding="utf-8")
        (folder / "config" / "kubernikus.yaml").write_text(config, encoding="utf-8")
        controller = Controller(backend.kubeconfig, folder, "controller", ["--enable-kubernikus-maintenance"])
        controller.config = folder / "config" / "kubernikus.yaml"
        running.append(controller)
        return controller.wait_ready() if ready else controller

    yield start
    for controller in running:
        if controller.alive():
            controller.stop()
        controller.end()


def ask_deletion(client, name, value="true"):
    client.core.patch_node(name, {"metadata": {"labels": {"cloud.sap/delete-node": value}}})


def activity(controller, name):
    report = json.loads(controller.get(f"/api/v1/explain?node={name}")[2])
    return next((one for one in report.get("integrations", []) if one["name"] == "kubernikus"), {})


def status(controller):
    return json.loads(controller.get("/api/v1/status")[2])["integrations"][0]


def set_kubelet(client, name, version):
    client.core.patch_node_status(name, {"status": {"nodeInfo": {
        "kubeletVersion": version, **{key: "" for key in (
            "architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "machineID",
            "operatingSystem", "osImage", "systemUUID")}}}})


def test_kubelets_that_have_another_version(client, make_node, unique, start, backend, kubelets):
    kubelets.pause()  # kwok says what version a kubelet has
    server = json.loads(client.api.call_api("/version", "GET", response_type="str", auth_settings=["BearerToken"],
                                            _preload_content=False)[0].data)["gitVersion"]
    names = {version: make_node(f"{unique}-{i}") for i, version in enumerate(("v1.1.0", server, "v1.156.2"))}
    for version, name in names.items():
        if backend.name == "sandbox":  # its kubelet says its version when it is up, and then no more
            wait_for(lambda n=name: node_ready(read(client, n)), f"{name} is up")
        set_kubelet(client, name, version)
    start()
    for version, name in names.items():
        want = "false" if version == server else "true"
        wait_for(lambda n=name, w=want: read(client, n).metadata.labels.get(NEEDS) == w, f"{version} is {want}")
    set_kubelet(client, names["v1.1.0"], server)
    wait_for(lambda: read(client, names["v1.1.0"]).metadata.labels.get(NEEDS) == "false", "a kubelet was replaced")


@pytest.mark.nodes(1)
def test_a_node_is_drained_and_its_server_deleted(client, nodes, namespace, cloud, start):
    """The name is a pattern to Nova: others have it in theirs, and pages come before the one that counts."""
    name = nodes[0]
    others = [name + "0", "x" + name, name.replace("-", "x", 1) + "-", name + "-1"]
    for other in others:
        cloud.add(other)
    cloud.add(name)
    cloud.add(name, tenant="another")
    client.core.create_namespaced_pod(namespace, pod("one", node=name))
    wait_for(lambda: client.core.read_namespaced_pod("one", namespace).status.phase == "Running", "the pod runs")
    controller = start(cloud.conf())
    ask_deletion(client, name)
    wait_for(lambda: name in cloud.deleted, "its server is deleted")
    assert read(client, name).spec.unschedulable
    assert not [p for p in client.core.list_namespaced_pod(namespace).items if not p.metadata.deletion_timestamp]
    assert sorted(cloud.names()) == sorted(others + [name]), "the other project's is left"
    wait_for(lambda: any("was deleted" in note for note in events(client, name, "ServerDeleted")), "an event tells")
    assert "is deleted" in activity(controller, name)["did"]
    assert controller.metric("drydock_kubernikus_servers_deleted_total") == 1
    assert len(cloud.asked("GET", "/servers/detail")) > 1 and len(cloud.asked("POST", "/auth/tokens")) == 1
    ask_deletion(client, name, None)


@pytest.mark.parametrize("path, versions", [("/identity/v3/", ("v3", "v2.0")), ("/identity", ("v3", "v2.0")), ("/identity/", ("v2.0",)),
                                            ("/identity/v2.0", ("v3", "v2.0"))])
def test_versions_of_keystone(client, make_node, unique, start, path, versions):
    name = make_node(unique, {"cloud.sap/delete-node": "true"})
    with OpenStack(versions=versions) as cloud:
        cloud.add(name)
        start(cloud.conf(path))
        wait_for(lambda: name in cloud.deleted, "its server is deleted")
        old = cloud.asked("POST", "/v2.0/tokens")
        assert bool(old) == ("v3" not in versions or path.endswith("v2.0"))
        assert bool(cloud.asked("GET", "/identity")) == ("v3" not in path)


def test_credentials_from_a_secret(client, make_node, unique, cloud, start):
    """It is made later, and its password is wrong at first."""
    name = make_node(unique, {"cloud.sap/delete-node": "true"})
    cloud.add(name)
    controller = start(config=CONFIG + SECRET.replace("NAME", unique))
    wait_for(lambda: f"Secret 'default/{unique}': there is no such Secret" in activity(controller, name).get("lastError", ""),
             "explain says so")
    wrong = base64.b64encode(cloud.conf(password="wrong-one").encode()).decode()
    client.core.create_namespaced_secret("default", {"metadata": {"name": unique}, "data": {"cloudprovider.conf": wrong}})
    try:
        wait_for(lambda: "refused the credentials with 401" in activity(controller, name).get("lastError", ""), "and of the password")
        assert "lastError" in status(controller)
        right = base64.b64encode(cloud.conf().encode()).decode()
        client.core.patch_namespaced_secret(unique, "default", {"data": {"cloudprovider.conf": right}})
        # Wrong passwords lock accounts, so the next try is half a minute away: a new configuration does not wait for it.
        controller.config.write_text(CONFIG + SECRET.replace("NAME", unique + "x"), encoding="utf-8")
        wait_for(lambda: f"default/{unique}x" in activity(controller, name).get("lastError", ""), "the file is read again")
        controller.config.write_text(CONFIG + SECRET.replace("NAME", unique), encoding="utf-8")
        wait_for(lambda: name in cloud.deleted, "its server is deleted")
    finally:
        client.core.delete_namespaced_secret(unique, "default")
    everything = controller.log() + controller.get("/api/v1/status")[2] + controller.get("/metrics")[2]
    assert PASSWORD not in everything and "wrong-one" not in everything and "gAAAA" not in everything


def test_a_token_that_has_expired(client, make_node, unique, cloud, start):
    first, second = make_node(unique + "-1", {"cloud.sap/delete-node": "true"}), make_node(unique + "-2")
    cloud.add(first)
    cloud.add(second)
    start(cloud.conf())
    wait_for(lambda: first in cloud.deleted, "the first is deleted")
    cloud.expire_tokens()
    ask_deletion(client, second)
    wait_for(lambda: second in cloud.deleted, "the second is deleted with another token")
    assert len(cloud.asked("POST", "/auth/tokens")) == 2


def test_servers_that_fail_and_two_of_a_name(client, make_node, unique, cloud, start):
    name = make_node(unique, {"cloud.sap/delete-node": "true"})
    cloud.add(name)
    twin = cloud.add(name)
    cloud.faults["/identity"] = 503
    controller = start(cloud.conf())
    wait_for(lambda: "answered 503" in activity(controller, name).get("lastError", ""), "Keystone is away")
    cloud.faults.clear()
    wait_for(lambda: "expected to list 1 or 0 servers, but got 2" in activity(controller, name).get("lastError", ""), "two have the name")
    assert not cloud.deleted
    with cloud.lock:
        cloud.servers[:] = [one for one in cloud.servers if one["id"] != twin]
        cloud.faults["/servers/"] = 500
    wait_for(lambda: "answered 500" in activity(controller, name).get("lastError", ""), "Nova is away")
    cloud.faults.clear()
    wait_for(lambda: name in cloud.deleted, "its server is deleted")


def test_the_label_goes_in_time(client, make_node, unique, cloud, start):
    name = make_node(unique, {"cloud.sap/delete-node": "true"})
    cloud.add(name)
    cloud.faults["/identity"] = 503
    controller = start(cloud.conf())
    wait_for(lambda: "answered 503" in activity(controller, name).get("lastError", ""), "it is tried")
    ask_deletion(client, name, "false")
    wait_for(lambda: not activity(controller, name).get("waitsFor"), "nothing is left to do")
    cloud.faults.clear()
    holds_for(lambda: not cloud.deleted, 1, "its server stays")
    assert read(client, name).spec.unschedulable, "as the original leaves it"


COUNT = """intervals: {requeue: 1s}
instances:
  check:
  - {type: kubernikusCount, name: full, config: {cluster: mine, url: "URL", cloudProviderSecret: {name: NAME, namespace: default}}}
profiles:
- name: pools
  operational:
    transitions: [{check: full, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: "!full", next: operational}]
"""


def test_a_profile_waits_for_all_nodes_of_the_pools(client, make_node, unique, cloud, launch):
    """An outage is an error, and never passes (W-12)."""
    name = make_node(unique, {PROFILE: "pools"})
    count = len(client.core.list_node().items)
    client.core.create_namespaced_secret("default", {"metadata": {"name": unique}, "stringData": {"cloudprovider.conf": cloud.conf()}})
    try:
        controller = launch(COUNT.replace("URL", cloud.url + "/kubernikus").replace("NAME", unique))

        def check():
            report = json.loads(controller.get(f"/api/v1/explain?node={name}")[2])
            return report["profiles"][0]["transitions"][0]["checks"][0]

        wait_for(lambda: check()["error"] == "Kubernikus answered 404", "no such cluster")
        cloud.pools["mine"] = [count, 1]
        wait_for(lambda: check()["info"] == {"reason": "found less nodes than specified by nodepool"}, "one is missing")
        cloud.faults["/kubernikus"] = 500
        wait_for(lambda: "Kubernikus answered 500" in check()["error"], "an outage is an error")
        assert read(client, name).metadata.labels["cloud.sap/maintenance-state"] == "operational"
        cloud.faults.clear()
        cloud.expire_tokens()
        wait_for(lambda: check()["info"] == {"reason": "found less nodes than specified by nodepool"}, "with another token")
        make_node(unique + "-2")
        wait_state(client, name, "maintenance-required")
        everything = controller.log() + controller.get("/api/v1/info")[2]
        assert PASSWORD not in everything and "gAAAA" not in everything
    finally:
        client.core.delete_namespaced_secret(unique, "default")


def test_a_file_that_is_wrong(client, make_node, unique, cloud, start):
    """At first the process is not ready; later the last good one stays in force."""
    controller = start(cloud.conf(), config="intervals: {requeue: soon}\n", ready=False)
    wait_for(lambda: controller.alive_or_fail() and controller.health("/readyz")[0] == 500 and "Kubernikus has no configuration" in
             controller.health("/readyz?verbose")[2], "it is not ready")
    controller.config.write_text(CONFIG, encoding="utf-8")
    controller.wait_ready()
    controller.config.write_text(CONFIG.replace("requeue: 1s", "requeue: -1"), encoding="utf-8")
    wait_for(lambda: controller.metric("drydock_integration_config_valid", integration="kubernikus") == 0, "a metric tells")
    assert f"{controller.config}".endswith("kubernikus.yaml") and ":2:12: key 'intervals.requeue'" in status(controller)["lastError"]
    name = make_node(unique, {"cloud.sap/delete-node": "true"})
    cloud.add(name)
    wait_for(lambda: name in cloud.deleted, "the last good one is in force")
