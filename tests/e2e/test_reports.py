"""explain and status against a running controller, for people and for scripts."""

import json
import os
import subprocess

import pytest

from contract import PROFILE
from process import drydock
from profiles import label, wait_state
from wait import wait_for

CONFIG = """
intervals: {requeue: 60s}
instances:
  check:
  - {type: hasLabel, name: needed, config: {key: update, value: needed}}
  - {type: hasLabel, name: approved, config: {key: approved, value: "true"}}
  - {type: maxMaintenance, name: room, config: {max: 1, profile: look}}
  - {type: wait, name: settled, config: {duration: 1h}}
profiles:
- name: look
  operational:
    transitions: [{check: needed, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: approved && room, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: "!needed && settled", next: operational}]
"""


@pytest.fixture
def ask(launch):
    controller = launch(CONFIG)

    def run(*arguments, program=None):
        return subprocess.run(
            [program or drydock(), *arguments, "--address",
             f"http://127.0.0.1:{controller.metrics_port}"],
            capture_output=True, text=True, timeout=120, check=False)
    run.controller = controller
    return run


def test_explain_names_what_stands_in_the_way(client, make_node, unique, ask):
    one, other = (make_node(f"{unique}-{i}", {PROFILE: "look"}) for i in "ab")
    label(client, one, update="needed", approved="true")
    wait_state(client, one, "in-maintenance")
    label(client, other, update="needed")
    wait_state(client, other, "maintenance-required")

    # The server has the new state a moment before the controller has heard that it does.
    text = wait_for(lambda: (t := ask("explain", other)) and "approved && room" in t.stdout and t,
                    what="it waits for approval")
    assert text.returncode == 0, text.stderr
    assert other in text.stdout
    assert "the node has no label approved" in text.stdout
    assert not [line for line in text.stdout.splitlines() if len(line) > 80]
    found = json.loads(ask("explain", other, "-o", "json").stdout)
    assert found["node"] == other
    checks = {c["name"]: c for c in found["profiles"][0]["transitions"][0]["checks"]}
    assert set(checks) == {"approved", "room"}
    assert "1" in checks["room"]["reason"]

    assert "!needed && settled" in ask("explain", one).stdout
    wide = ask("explain", other, "-o", "wide")
    assert wide.returncode == 0 and "approved && room" in wide.stdout


def test_status_counts_and_says_who_waits(client, make_node, unique, ask):
    one, other = (make_node(f"{unique}-{i}", {PROFILE: "look", "approved": "true"}) for i in "ab")
    label(client, one, update="needed")
    wait_state(client, one, "in-maintenance")
    label(client, other, update="needed")
    wait_state(client, other, "maintenance-required")
    wait_for(lambda: ask.controller.metric("drydock_nodes_waiting") == 1, what="it stands in line")

    text = ask("status")
    assert text.returncode == 0, text.stderr
    assert one in text.stdout and other in text.stdout and "look" in text.stdout
    # A file's name is not broken.
    assert not [line for line in text.stdout.splitlines()
                if len(line) > 80 and not line.startswith("config ")]
    document = json.loads(ask("status", "-o", "json").stdout)
    counts = next(p for p in document["profiles"] if p["name"] == "look")
    assert "in-maintenance" in json.dumps(counts) and document["nodes"] >= 2

    def gauges():
        return {(dict(pairs)["state"]): value for (name, pairs), value in
                ask.controller.metrics().items()
                if name == "drydock_profile_nodes" and ("profile", "look") in pairs}
    wait_for(lambda: gauges() == {"operational": 0, "maintenance-required": 1, "in-maintenance": 1},
             what="the metrics tell the same")


def test_a_turn_names_its_group_and_is_no_yes(client, make_node, unique, launch):
    """Nodes of one pool wait for each other; what they wait for says which pool that is."""
    controller = launch(CONFIG.replace("{max: 1, profile: look}", "{max: 1, profile: look, groupBy: [pool]}"))
    names = [make_node(f"{unique}-{i}", {PROFILE: "look", "approved": "true", "pool": unique}) for i in "ab"]
    label(client, names[0], update="needed")
    wait_state(client, names[0], "in-maintenance")
    label(client, names[1], update="needed")
    wait_state(client, names[1], "maintenance-required")
    wait_for(lambda: controller.metric("drydock_nodes_waiting") == 1, what="it stands in line")
    told = " ".join(controller.get(f"/api/v1/explain?node={names[1]}&format=text")[2].split())
    assert f"turn 1 of 1 to go into maintenance, among the nodes with pool={unique} that check room counts" in told


def test_as_a_plugin_of_kubectl(client, make_node, unique, ask, tmp_path):
    name = make_node(unique, {PROFILE: "look"})
    wait_state(client, name, "operational")
    link = tmp_path / "kubectl-drydock"
    os.symlink(drydock(), link)
    result = ask("explain", name, program=str(link))
    assert result.returncode == 0 and name in result.stdout


def test_a_node_that_is_not_there_is_a_clear_message(ask, unique):
    result = ask("explain", unique)
    assert result.returncode == 1 and unique in result.stderr
    assert result.stdout == ""


def test_nobody_there_is_a_clear_message():
    result = subprocess.run([drydock(), "status", "--address", "http://127.0.0.1:1"],
                            capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 1 and "127.0.0.1:1" in result.stderr
