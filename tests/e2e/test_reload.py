"""The configuration while the controller runs: replaced, broken, mended, mounted as a ConfigMap is."""

import json
import os
import subprocess

import pytest

from contract import PROFILE
from process import Controller, drydock
from profiles import entries, label, read, wait_entries, wait_state
from wait import holds_for, wait_for

GOOD = """intervals: {requeue: 60s}
instances:
  check:
  - {type: hasLabel, name: go, config: {key: go, value: "VALUE"}}
profiles:
- name: reload
  operational:
    transitions: [{check: go, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: "!go", next: operational}]
"""
ONE, TWO = GOOD.replace("VALUE", "one"), GOOD.replace("VALUE", "two")
BROKEN = ONE.replace("[{check: go,", "[{check: gone,")
PLACE = ":8:27:"  # where BROKEN names what is not there


def generation(controller):
    return controller.metric("drydock_config_loads_total")


def valid(controller):
    return controller.metric("drydock_config_valid") == 1


def replace(path, text):
    """As editors and tools do it: a new file takes the name of the old one."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


@pytest.mark.parametrize("put", [replace, lambda path, text: path.write_text(text)],
                         ids=["renamed", "rewritten"])
def test_a_changed_file_comes_into_force(client, make_node, unique, launch, put):
    name = make_node(unique, {PROFILE: "reload", "go": "two"})
    controller = launch(ONE)
    wait_entries(client, name, {"reload": "operational"})
    put(controller.config, TWO)
    wait_state(client, name, "maintenance-required")
    assert valid(controller) and controller.alive()


def test_a_broken_file_leaves_the_last_good_one_in_force(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "reload"})
    controller = launch(ONE)
    wait_entries(client, name, {"reload": "operational"})
    before = generation(controller)
    replace(controller.config, BROKEN)
    wait_for(lambda: not valid(controller), what="the metric tells")
    problem = f"{controller.config}{PLACE} the requested check instance \"gone\" is not known"
    lines = [line for line in controller.log().splitlines()
             if "Failed to parse configuration file" in line]
    assert len(lines) == 1 and problem in lines[0].replace('\\"', '"')
    told = wait_for(lambda: [e for e in client.core.list_event_for_all_namespaces().items
                             if e.reason == "ConfigurationInvalid"
                             and str(controller.config) in (e.message or "")], what="an event tells")
    assert told[0].type == "Warning" and problem in told[0].message
    shown = json.loads(controller.get("/api/v1/status")[2])
    assert problem in json.dumps(shown, ensure_ascii=False).replace('\\"', '"')
    assert controller.health("/readyz")[0] == 200, "it serves the nodes as before"

    label(client, name, go="one")
    wait_state(client, name, "maintenance-required")
    assert generation(controller) == before
    replace(controller.config, TWO)
    wait_for(lambda: valid(controller), what="the metric is back")
    wait_state(client, name, "operational")
    assert problem not in controller.get("/api/v1/status")[2].replace('\\"', '"')


def test_a_file_that_is_away_for_a_while_changes_nothing(client, make_node, unique, launch):
    name = make_node(unique, {PROFILE: "reload"})
    controller = launch(ONE)
    wait_entries(client, name, {"reload": "operational"})
    os.remove(controller.config)
    label(client, name, go="one")
    wait_state(client, name, "maintenance-required")
    controller.config.write_text(TWO)
    wait_state(client, name, "operational")


def test_the_default_is_a_file_below_the_working_directory(backend, client, make_node, unique,
                                                           tmp_path):
    name = make_node(unique, {PROFILE: "reload", "go": "one"})
    folder = tmp_path / "controller"
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "maintenance.yaml").write_text(ONE)
    with Controller(backend.kubeconfig, folder) as controller:
        controller.wait_ready()
        wait_state(client, name, "maintenance-required")


def test_a_broken_file_at_the_start_touches_no_node_until_it_is_mended(backend, client, make_node,
                                                                       unique, tmp_path):
    name = make_node(unique, {PROFILE: "reload", "go": "one"})
    path = tmp_path / "maintenance.yaml"
    path.write_text(BROKEN)
    with Controller(backend.kubeconfig, tmp_path / "controller",
                    flags=["--config", str(path)]) as controller:
        wait_for(lambda: controller.health("/readyz")[0] == 500, what="it says that it is not ready")
        wait_for(lambda: not valid(controller), what="the metric tells")
        holds_for(lambda: controller.alive() and entries(read(client, name)) == {}, 0.5)
        path.write_text(ONE)
        controller.wait_ready()
        wait_state(client, name, "maintenance-required")


def test_check_says_what_the_controller_says(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)
    result = subprocess.run([drydock(), "check", str(path)], capture_output=True, text=True,
                            timeout=120, check=False)
    assert result.returncode == 1
    assert f"{path}{PLACE} the requested check instance \"gone\" is not known" in \
        result.stdout + result.stderr


def test_a_key_that_nothing_reads_is_told_and_the_file_is_in_force(client, make_node, unique, launch, tmp_path):
    odd = ONE.replace("transitions: [{check: go,", "transitons: []\n    transitions: [{check: go,")
    name = make_node(unique, {PROFILE: "reload", "go": "one"})
    controller = launch(odd)
    wait_state(client, name, "maintenance-required")
    assert valid(controller) and controller.metric("drydock_config_warnings") == 1
    shown = json.loads(controller.get("/api/v1/status")[2])["config"]["warnings"]
    assert ":8:5: key 'transitons' is unknown in a state and ignored; did you mean 'transitions'?" in shown
    assert shown in controller.log()
    path = tmp_path / "odd.yaml"
    path.write_text(odd)
    said = subprocess.run([drydock(), "check", str(path)], capture_output=True, text=True, check=True)
    assert "odd.yaml:8:5: warning: key 'transitons'" in said.stdout
    assert subprocess.run([drydock(), "check", "--strict", str(path)], capture_output=True, check=False).returncode == 1
