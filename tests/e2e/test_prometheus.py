"""Checks on a real Prometheus, which scrapes drydock itself."""

import json
import shutil
import urllib.parse

import pytest

from contract import PROFILE
from process import Process, fetch, free_port
from profiles import entries, events, label, read, wait_state
from wait import wait_for

CONFIG = """
intervals: {requeue: 1s}
instances:
  check:
  - {type: hasLabel, name: armed, config: {key: armed}}
  - type: prometheusInstant
    name: all-known
    config: {url: "URL", query: 'sum(drydock_nodes)', expr: "value >= 1"}
  - type: prometheusInstant
    name: too-few
    config: {url: "URL", query: 'sum(drydock_nodes)', expr: "value < 1"}
  - type: prometheusInstant
    name: no-data
    config: {url: "URL", query: 'no_such_series', expr: "value == 1"}
  - type: prometheusInstant
    name: wrong-place
    config: {url: "URL/nowhere", query: up, expr: "value == 1"}
profiles:
- name: passes
  operational:
    transitions: [{check: armed && all-known, next: maintenance-required}]
- name: fails
  operational:
    transitions: [{check: armed && too-few, next: maintenance-required}]
- name: nodata
  operational:
    transitions: [{check: armed && no-data, next: maintenance-required}]
- name: nowhere
  operational:
    transitions: [{check: armed && wrong-place, next: maintenance-required}]
"""


@pytest.fixture
def prometheus(tmp_path):
    """prometheus(port of a target): the server's address; its files are the test's own."""
    running = []

    def start(target):
        program = shutil.which("prometheus")
        assert program, "prometheus is not in PATH: install Debian's package"
        port = free_port()
        config = tmp_path / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{"job_name": "drydock", "static_configs": [
                {"targets": [f"127.0.0.1:{target}"]}]}]}))
        running.append(Process(
            [program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
             f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"],
            tmp_path / "prometheus", "prometheus"))
        wait_for(lambda: fetch(port, "/-/ready")[0] == 200, 30, "Prometheus is ready")
        return port

    yield start
    for process in running:
        process.end()


def query(port, text):
    _, _, body = fetch(port, "/api/v1/query?query=" + urllib.parse.quote(text))
    result = json.loads(body)["data"]["result"]
    return float(result[0]["value"][1]) if result else None


def test_checks_ask_a_real_prometheus(client, make_node, unique, launch, prometheus):
    names = {profile: make_node(f"{unique}-{profile}", {PROFILE: profile})
             for profile in ("passes", "fails", "nodata", "nowhere")}
    controller = launch("intervals: {requeue: 1s}\n")
    port = prometheus(controller.metrics_port)
    wait_for(lambda: (query(port, "sum(drydock_nodes)") or 0) >= 4, 30, "it has scraped drydock")
    assert query(port, 'count({__name__=~"drydock_.+"})') > 10
    controller.config.write_text(CONFIG.replace("URL", f"http://127.0.0.1:{port}"))
    for name in names.values():
        label(client, name, armed="yes")
    wait_state(client, names["passes"], "maintenance-required")

    def shown(profile):
        body = controller.get("/api/v1/info")[2]
        entry = next(e for e in json.loads(body) if e["node"] == names[profile])
        return entry["profiles"][0]["applied"]["transitions"][0]

    def known(profile, instance):
        info = shown(profile)["chain"]["info"][instance]["info"]
        return info if "value" in info or "error" in info else None

    info = wait_for(lambda: known("fails", "too-few"), what="the other has its answer")
    assert info["value"] >= 4 and info["expr"] == "value < 1" and info["query"] == "sum(drydock_nodes)"
    assert shown("fails")["error"] == "" and not shown("fails")["passed"]
    assert "error" in wait_for(lambda: known("nodata", "no-data"), what="no data is an error")
    assert "result does not contain exactly one element" in known("nodata", "no-data")["error"]
    assert "error" in wait_for(lambda: known("nowhere", "wrong-place"), what="404 is an error")
    for profile in ("nodata", "nowhere"):
        assert "failed check instances" in shown(profile)["error"]
        wait_for(lambda p=profile: controller.metric(
            "maintenance_controller_transition_failure_count", profile=p) >= 1, what="it counts")
        wait_for(lambda p=profile: events(client, names[p], "ChangeMaintenanceStateFailed"),
                 what="it is told")
        assert entries(read(client, names[profile])) == {profile: "operational"}
