"""Checks that ask somebody else: Prometheus, leases, the pods of nodes; and the file that says so."""

import json
import os
import shutil
import urllib.request

import pytest

import objects
from contract import DATA, PROFILE, STATE
from process import Controller, Port, Process
from wait import holds_for, wait_for

CONFIG = """
intervals: {{requeue: 1s}}
instances:
  check:
{checks}
profiles:
- name: {profile}
  operational:
    transitions: [{{check: "{first}", next: maintenance-required}}]
  maintenance-required:
    transitions: [{{check: "{second}", next: in-maintenance}}]
"""


def write_config(path, unique, checks, first, second="never"):
    lines = "\n".join("  - " + json.dumps(c) for c in checks + [
        {"type": "hasLabel", "name": "never", "config": {"key": unique + "-never"}},
        {"type": "hasLabel", "name": "always", "config": {"key": "kubernetes.io/hostname"}}])
    path.parent.mkdir(exist_ok=True)
    path.write_text(CONFIG.format(checks=lines, profile=unique, first=first, second=second))
    return path


def join(client, unique, *names):
    for name in names:
        client.core.patch_node(name, {"metadata": {"labels": {PROFILE: unique}}})


def state(client, name):
    return (client.core.read_node(name).metadata.labels or {}).get(STATE)


def checks_of(controller, node):
    """{instance: result} of all transitions that the controller shows of a node."""
    for entry in json.loads(controller.get("/api/v1/info")[2]):
        if entry["node"] == node:
            return {k: v for p in entry["profiles"] for t in p["applied"]["transitions"]
                    for k, v in t["chain"]["info"].items()}
    return {}


def instant(text):
    """A time of the annotation, to compare: it has as many digits as it needs."""
    whole, _, part = text.rstrip("Z").partition(".")
    return whole, part.ljust(9, "0")


@pytest.fixture
def prometheus(tmp_path):
    """start(port…): a Prometheus that scrapes these ports, as if in a cluster; answers its own URL."""
    started = []
    program = shutil.which("prometheus")
    assert program, "prometheus is not in PATH: install Debian's package"

    def start(*targets):
        port = Port()
        settings = tmp_path / "prometheus.yml"
        settings.write_text(json.dumps({
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "drydock",
                                "static_configs": [{"targets": [f"127.0.0.1:{target}" for target in targets],
                                                    "labels": {"namespace": "drydock-system"}}]}]}))
        process = Process([program, f"--config.file={settings}",
                           f"--storage.tsdb.path={tmp_path}/tsdb",
                           f"--web.listen-address=127.0.0.1:{port.number}"], tmp_path, "prometheus")
        started.append((process, port))
        return f"http://127.0.0.1:{port.number}"

    yield start
    for process, port in started:
        process.end()
        port.close()


def test_prometheus_decides(backend, client, nodes, unique, tmp_path, prometheus):
    config = tmp_path / "config" / "maintenance.yaml"
    write_config(config, unique, [], "never")
    with Controller(backend.kubeconfig, tmp_path, flags=["--config", str(config)]) as controller:
        controller.wait_ready()
        url = prometheus(controller.metrics_port)
        write_config(config, unique, [
            {"type": "prometheusInstant", "name": "seen", "config": {
                "url": url + "/", "query": 'sum(up{job="drydock"})', "expr": "value == 1"}},
            {"type": "prometheusInstant", "name": "nothing", "config": {
                "url": url, "query": "no_such_metric", "expr": "value == 1"}},
            {"type": "prometheusInstant", "name": "broken", "config": {
                "url": url, "query": "sum(", "expr": "value == 1"}},
        ], "seen", "nothing && broken")
        join(client, unique, nodes[0])
        # Until the first scrape there is nothing to sum up; then it comes by itself.
        wait_for(lambda: state(client, nodes[0]) == "maintenance-required", "it was scraped")

        def failed():
            checks = checks_of(controller, nodes[0])
            return all(checks[name]["info"].get("error") for name in ("nothing", "broken")) and checks
        seen = wait_for(failed, "both have failed")
        assert seen["nothing"]["info"]["error"] == "result does not contain exactly one element"
        assert "parse error" in seen["broken"]["info"]["error"]
        assert seen["nothing"]["info"]["url"] == url
        assert state(client, nodes[0]) == "maintenance-required"


def test_metrics_are_packed_for_who_accepts_it(backend, tmp_path):
    with Controller(backend.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        request = urllib.request.Request(f"http://127.0.0.1:{controller.metrics_port}/metrics",
                                         headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.headers["Content-Encoding"] == "gzip"
            assert answer.read(2) == b"\x1f\x8b"


def test_staggered_nodes_go_one_after_the_other(backend, client, nodes, namespace, unique, tmp_path):
    config = write_config(tmp_path / "config" / "maintenance.yaml", unique, [
        {"type": "stagger", "name": "slow", "config": {
            "duration": "10s", "leaseName": unique, "leaseNamespace": namespace}}], "slow")
    join(client, unique, *nodes)
    with Controller(backend.kubeconfig, tmp_path, flags=["--config", str(config)]) as controller:
        controller.wait_ready()

        def moved():
            return [n for n in nodes if state(client, n) == "maintenance-required"]
        first = wait_for(moved, "one has gone")
        assert len(first) == 1
        lease = client.leases.read_namespaced_lease(unique + "-0", namespace)
        assert lease.spec.holder_identity == first[0]
        assert lease.spec.lease_duration_seconds == 10
        assert lease.spec.acquire_time == lease.spec.renew_time
        began = lease.spec.renew_time
        wait_for(lambda: len(moved()) == 2, "the other has gone")
        lease = client.leases.read_namespaced_lease(unique + "-0", namespace)
        assert lease.spec.holder_identity == next(n for n in nodes if n not in first)
        assert lease.spec.lease_transitions == 1
        assert (lease.spec.renew_time - began).total_seconds() > 10


def test_nodes_without_affinity_pods_go_first(backend, client, nodes, namespace, unique, tmp_path):
    config = write_config(tmp_path / "config" / "maintenance.yaml", unique, [
        {"type": "hasLabel", "name": "go", "config": {"key": unique}},
        {"type": "affinity", "name": "near"}], "always", "go && near")
    picky = objects.pod("picky", node=nodes[0])
    picky["spec"]["affinity"] = {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {
            "matchExpressions": [{"key": STATE, "operator": "In", "values": ["operational"]}]}}]}}
    client.core.create_namespaced_pod(namespace, picky)
    join(client, unique, *nodes)
    with Controller(backend.kubeconfig, tmp_path, flags=["--config", str(config)]) as controller:
        controller.wait_ready()
        # One waits for those alone that need maintenance already: both do, before either may go.
        for name in nodes:
            wait_for(lambda n=name: state(client, n) == "maintenance-required", f"{name} waits")
        for name in nodes:
            client.core.patch_node(name, {"metadata": {"labels": {unique: "go"}}})
        wait_for(lambda: state(client, nodes[1]) == "in-maintenance", "the free node has gone")
        # Nobody is left who would have to go before it.
        wait_for(lambda: state(client, nodes[0]) == "in-maintenance", "the other follows")
        last, first = [json.loads(client.core.read_node(n).metadata.annotations[DATA])
                       ["Profiles"][unique]["Transition"] for n in nodes]
        assert instant(first) <= instant(last)


def test_a_swapped_config_map_takes_effect(backend, client, nodes, unique, tmp_path):
    """As the kubelet mounts one: the file is a link through `..data`, which is swapped."""
    mount = tmp_path / "mount"
    mount.mkdir()

    def publish(number, first):
        version = mount / f"..{number}"
        write_config(version / "maintenance.yaml", unique, [], first)
        os.symlink(version.name, mount / "..data_tmp")
        os.rename(mount / "..data_tmp", mount / "..data")
    publish(1, "never")
    os.symlink("..data/maintenance.yaml", mount / "maintenance.yaml")
    join(client, unique, nodes[0])
    with Controller(backend.kubeconfig, tmp_path,
                    flags=["--config", str(mount / "maintenance.yaml")]) as controller:
        controller.wait_ready()
        wait_for(lambda: state(client, nodes[0]) == "operational", "the first one is read")
        (mount / "..3").mkdir()
        (mount / "..3" / "maintenance.yaml").write_text("intervals: [")
        os.symlink("..3", mount / "..data_tmp")
        os.rename(mount / "..data_tmp", mount / "..data")
        # A broken one changes nothing …
        holds_for(lambda: state(client, nodes[0]) == "operational" and controller.alive(), 0.5)
        publish(2, "always")
        # … and what mends it comes without a restart.
        wait_for(lambda: state(client, nodes[0]) == "maintenance-required", "it is read again")
