"""NodeMaintenances in a headless browser: windows as a timeline, waves as steps, nodes as a grid, what waits and what failed."""

import pytest

from backend import Sandbox
from browser import Browser
from conftest import WORLD
from operation_cases import make, path
from process import Controller
from requests_api import install
from wait import wait_for

pytestmark = pytest.mark.backend("sandbox")
NODES = 12
FLAGS = ("--runner-image", "localhost/drydock:test", "--unlimited-visits", "0")
FAILS = {"script": "flash", "podAnnotations": {"sandbox.drydock.dev/exit": "3", "sandbox.drydock.dev/run": "1s",
                                               "sandbox.drydock.dev/output": "<b>flash: device is busy</b>"}}


class Fleet:
    """12 nodes with two windows and three NodeMaintenances: one soaks, one has failed, one waits for its window."""

    def __init__(self, backend, controller):
        self.access, self.controller = backend.access, controller

    def create(self, plural, name, spec):
        status, answer = self.access.request("POST", path(plural) + "?fieldValidation=Strict", make(plural, name, spec))
        assert status == 201, answer

    def phase(self, name):
        status, answer = self.access.request("GET", path("nodemaintenances", name))
        assert status == 200, answer
        return answer.get("status", {}).get("reason")

    def fill(self):
        self.create("maintenancewindows", "holidays", {"effect": "Freeze", "recurrences": [{"at": {"from": "2031-01-01T00:00:00Z", "to": "2031-01-02T00:00:00Z"}}]})
        self.create("maintenancewindows", "always", {"recurrences": [{"at": {"from": "2020-01-01T00:00:00Z", "to": "2030-06-01T00:00:00Z"}}]})
        self.create("nodemaintenances", "kubelet", {
            "window": {"refs": ["always"]}, "rollout": {"minReady": "1s", "waves": [{"name": "canary", "size": 1, "soak": "2h"}]},
            "operations": [{"name": "upgrade", "type": "one-shot", "version": {"value": "1.34.2"}, "job": {
                "script": "true", "podAnnotations": {"sandbox.drydock.dev/run": "1s"}}}]})
        self.create("nodemaintenances", "firmware", {"nodeSeries": {"names": ["node-001"]}, "failurePolicy": {"retries": 0}, "rollout": {"minReady": "1s"},
                                                     "operations": [{"name": "flash", "type": "one-shot", "job": FAILS}]})
        self.create("nodemaintenances", "later", {"window": {"recurrences": [{"at": {"from": "2030-01-01T00:00:00Z", "to": "2030-01-01T04:00:00Z"}}]},
                                                  "operations": [{"name": "say", "type": "one-shot", "script": "hello"}]})
        for name, reason in (("kubelet", "Soaking"), ("firmware", "FailureLimit"), ("later", "WaitingWindow")):
            wait_for(lambda n=name, r=reason: self.phase(n) == r, f"{name} is {reason}")


@pytest.fixture(scope="module", name="browser")
def fixture_browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module", name="fleet")
def fixture_fleet(tmp_path_factory, browser):
    folder = tmp_path_factory.mktemp("operations")
    with Sandbox(folder / "sandbox", nodes=NODES, world=WORLD) as sandbox:
        install(sandbox, folder)
        for name in ("drydock-system", "drydock-jobs"):
            sandbox.access.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        with Controller(sandbox.kubeconfig, folder, flags=FLAGS) as controller:
            controller.wait_ready()
            browser.open(controller.metrics_port)
            wait_for(lambda: browser.count("#grid .cell") == NODES, what="the fleet is shown")
            assert not visible(browser), "there is nothing to show"
            fleet = Fleet(sandbox, controller)
            fleet.fill()
            wait_for(lambda: browser.count("#operations li") == 3, "they appear without a reload")
            yield fleet


def visible(browser):
    return browser.run("return document.getElementById('operations-card').getClientRects().length > 0")


def look(browser, fleet, name, dark=False):
    browser.open(fleet.controller.metrics_port, f"/#operation={name}", dark)
    wait_for(lambda: browser.text("#operation-name") == name and browser.count("#machines .machine") > 0, f"{name} is shown")


def test_waves_are_steps_and_nodes_a_grid(browser, fleet):
    look(browser, fleet, "kubelet")
    wait_for(lambda: browser.count("#machines .machine") == NODES, "its machines were asked for")
    assert [text.split()[0] for text in browser.texts("#waves .step b")] == ["canary", "rest"]
    assert browser.text("#waves .step").startswith("canary1 of 1soaks until in ")
    assert browser.count("#machines .m-done") == 1 and browser.count("#machines .m-pending") == NODES - 1
    assert "upgrade (one-shot 1.34.2)" in browser.text("#operation-note")
    assert "the wave is complete, and its quiet time is not over" in browser.text("#operations")
    assert browser.text("#waiting").endswith(" and 8 more11wave 'canary' to be done")
    # A cell is its node.
    browser.run("document.querySelector('#machines .m-done').click()")
    wait_for(lambda: browser.count("#node .name") == 1, "the node is shown")
    assert browser.complaints() == []


def test_what_failed_is_shown_with_its_output(browser, fleet):
    look(browser, fleet, "firmware")
    wait_for(lambda: browser.text("#failures pre") == "<b>flash: device is busy</b>", "the end of its output is shown as text")
    assert browser.texts("#failures .tag") == ["ExitCode"]
    assert "drydock resume firmware" in browser.text("#operations")
    browser.run("document.querySelector('#failures .link').click()")
    wait_for(lambda: any("firmware: failed" in text for text in browser.texts("#node .bad")), "the node says it, too")


def test_windows_are_a_timeline(browser, fleet):
    look(browser, fleet, "later")
    rows = browser.texts("#timeline li")
    assert [row.split("until")[0].split("in ")[0] for row in rows] == ["alwaysopen", "holidaysfreeze", "kubeletoperation", "lateroperation"], rows
    assert browser.count("#timeline li:first-child .span") >= 1, "it is open"
    assert browser.count("#timeline li:last-child .span") == 0, "it is years away"
    assert "2030-01-01T00:00:00Z" in browser.text("#waiting")
    # What changes is seen without a reload.
    status, answer = fleet.access.request("PATCH", path("nodemaintenances", "later"), {"spec": {"suspend": True}}, "application/merge-patch+json")
    assert status == 200, answer
    wait_for(lambda: "Suspended" in browser.texts("#operations .tag"), "it is suspended")
    assert any("operation later is Suspended" in text for text in browser.texts("#feed li"))


@pytest.mark.parametrize("dark", (False, True), ids=("light", "dark"))
def test_everybody_can_read_and_reach_operations(browser, fleet, dark):
    look(browser, fleet, "firmware", dark)
    wait_for(lambda: browser.count("#failures pre") == 1, "all is drawn")
    browser.inspect()
    browser.shoot("operations-dark" if dark else "operations-light")
    browser.press("o")
    assert browser.focus()["words"] == "firmware"
    browser.press("TAB")
    assert browser.focus()["words"] == "kubelet" and browser.focus()["ring"]
    browser.run("document.querySelector('#machines .machine').focus()")
    assert browser.focus()["words"].startswith("node-001: failed")


def test_a_narrow_window_has_operations_too(fleet):
    with Browser(480, 900) as narrow:
        look(narrow, fleet, "kubelet")
        assert narrow.run("return document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
        narrow.inspect()
