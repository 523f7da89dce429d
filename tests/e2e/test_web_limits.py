"""Limits, holders and the queue in a headless browser: hidden without them, live with them, for everybody."""

import pytest

from requests_api import CLIENT_LABEL, Requests, install
from backend import Sandbox
from browser import Browser
from conftest import WORLD, Client
from process import Controller
from step_config import label, step_config, write
from wait import wait_for

pytestmark = pytest.mark.backend("sandbox")
LIMITS, ASKS = "maintenancelimits", "maintenancerequests"
NODES = 24


class Fleet:
    """24 nodes of one profile; limits and requests come with `fill`."""

    def __init__(self, backend, client, controller):
        self.backend, self.client, self.controller = backend, client, controller
        self.objects = Requests(backend)

    def create(self, plural, name, spec, actor=None):
        status, answer = self.objects.create(plural, name, spec, {CLIENT_LABEL: actor} if actor else None)
        assert status == 201, answer

    def ask(self, name, node, actor, **spec):
        self.create(ASKS, name, {"name": node, "type": "node", **spec}, actor)

    def change(self, name, **spec):
        status, answer = self.objects.patch(LIMITS, name, {"spec": spec})
        assert status == 200, answer

    def state(self, name, wanted):
        wait_for(lambda: self.objects.state(name) == wanted, f"{name} is {wanted}")

    def fill(self):
        for i in range(6):
            self.client.core.patch_node(f"node-{i + 1:03}", {"metadata": {"labels": {"pool": "gpu"}}})
        self.create(LIMITS, "node", {"limit": 15, "policies": ["Unschedulable"]})
        self.create(LIMITS, "gpu", {"type": "node", "limit": 50, "selector": {"matchLabels": {"pool": "gpu"}}})
        for name in ("node", "gpu"):
            wait_for(lambda n=name: "nominal" in self.objects.get(LIMITS, n).get("status", {}), f"{name} is computed")
        self.ask("reboot-7", "node-007", "kured")
        self.state("reboot-7", "Approved")
        self.objects.move("reboot-7", "InProgress")
        self.ask("replace-2", "node-002", "replacer")
        self.state("replace-2", "Approved")
        label(self.client, "node-008", due="yes", approved="yes")
        wait_for(lambda: "node-008" in str(self.objects.get(LIMITS, "node").get("status", {}).get("reservations")),
                 "a profile has the third place")
        self.change("gpu", paused=True)
        self.ask("reboot-9", "node-009", "kured", priority=5)
        # Times have whole seconds: priorities make the order certain.
        self.ask("replace-7", "node-007", "replacer", priority=2)
        self.ask("firmware-3", "node-003", "firmware")


@pytest.fixture(scope="module", name="browser")
def fixture_browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module", name="fleet")
def fixture_fleet(tmp_path_factory, browser):
    folder = tmp_path_factory.mktemp("limits")
    config = write(folder / "maintenance.yaml", step_config())
    with Sandbox(folder / "sandbox", nodes=NODES, world=WORLD) as sandbox, sandbox.client() as api:
        client = Client(api)
        for i in range(NODES):
            label(client, f"node-{i + 1:03}", profile="os")
        with Controller(sandbox.kubeconfig, folder, flags=["--config", str(config)]) as controller:
            controller.wait_ready()
            # Without the CRDs there is nothing to show; they appear without a reload.
            browser.open(controller.metrics_port)
            wait_for(lambda: browser.count("#grid .cell") == NODES, what="the fleet is shown")
            assert not visible(browser)
            install(sandbox, folder)
            wait_for(lambda: visible(browser), "the limits are shown")
            assert browser.text("#limits-empty") and browser.count("#limits li") == 0
            fleet = Fleet(sandbox, client, controller)
            fleet.fill()
            yield fleet


@pytest.fixture(name="view")
def fixture_view(browser, fleet):
    browser.open(fleet.controller.metrics_port)
    wait_for(lambda: browser.count("#queue li") == 3 and browser.count("#held li") == 3, what="the queue is shown")
    yield browser
    assert browser.complaints() == []


def visible(browser):
    return browser.run("return document.getElementById('limits-card').getClientRects().length > 0")


def limit(browser, name):
    return browser.run("""const li = [...document.querySelectorAll("#limits li")].find((e) => e.querySelector(".link").textContent === arguments[0]);
        return li && { text: li.textContent, standing: li.querySelector(".tag").textContent, held: li.querySelectorAll(".place.held").length,
          free: li.querySelectorAll(".place.room").length, over: li.querySelectorAll(".place.over").length,
          bar: li.querySelector(".bar").getAttribute("aria-label") }""", name)


def test_limits_are_bars_with_holders_and_a_queue(view):
    node = wait_for(lambda: (it := limit(view, "node")) and it["held"] == 3 and it, "three of three are held")
    assert (node["standing"], node["free"], node["over"]) == ("full", 0, 0)
    assert node["bar"] == "node: 3 held and 0 unavailable of 3 allowed"
    assert "every node" in node["text"] and "3 of 24 (15 %)" in node["text"]
    gpu = wait_for(lambda: (it := limit(view, "gpu"))["standing"] == "paused" and it["held"] == 1 and it, "the other is paused")
    assert gpu["free"] == 2 and "node: pool=gpu" in gpu["text"]

    def row(where, *words):
        wait_for(lambda: [t for t in view.texts(where) if all(word in t for word in words)], f"{where}: {words}")

    row("#held li", "node-007", "InProgress", "reboot-7 of kured")
    row("#held li", "node-008", "profile os under node")
    row("#held li", "node-002", "Approved", "under gpu, node")
    row("#queue li:first-child", "node-009", "priority 5", "until 1 of the 3 held under limit node ends; longest held: ")
    row("#queue li", "node-007", "until node node-007 is released; held by reboot-7 of kured")
    row("#queue li", "node-003", "until spec.paused of limit gpu is false")


def test_one_limit_narrows_the_lists_and_a_target_shows_its_node(view):
    view.run("[...document.querySelectorAll('#limits .link')].find((e) => e.textContent === 'gpu').click()")
    wait_for(lambda: view.count("#queue li") == 1 and view.count("#held li") == 1, "only those of gpu")
    assert view.text("#limits-note") == "only gpu"
    assert view.run("return document.querySelector(\"#limits .link[aria-pressed=true]\").textContent") == "gpu"
    view.run("document.querySelector('#queue .link').click()")
    wait_for(lambda: view.text("#node h3") == "node-003", "the node is shown")
    wait_for(lambda: [t for t in view.texts("#node .held") if t.startswith("asked for by request firmware-3 of firmware")],
             "with who asks for it")


def test_what_changes_is_seen_without_a_reload(view, fleet):
    view.run("window.kept = true")
    fleet.change("node", limit=5)
    wait_for(lambda: limit(view, "node")["standing"] == "over-committed" and limit(view, "node")["over"] == 2, "it is told")
    wait_for(lambda: [t for t in view.texts("#feed li") if t.endswith("limit node is over-committed")], "the feed tells it")
    view.inspect()
    fleet.change("node", limit=15)
    wait_for(lambda: limit(view, "node")["standing"] == "full", "as before")
    assert view.run("return window.kept"), "the page was loaded again"


@pytest.mark.parametrize("dark", (False, True), ids=("light", "dark"))
def test_everybody_can_read_and_reach_it(view, fleet, dark):
    view.open(fleet.controller.metrics_port, "/#node=node-007", dark)
    wait_for(lambda: view.count("#queue li") == 3 and view.count("#node .held") == 2, what="all is drawn")
    view.inspect()
    view.shoot("limits-dark" if dark else "limits-light")
    view.press("l")
    assert view.focus()["words"] == "gpu"
    stops = []
    for _ in range(7):
        view.press("TAB")
        stops.append(view.focus())
    assert all(stop["visible"] and stop["ring"] for stop in stops), stops
    # The other limit, then who holds, then who waits.
    assert [stop["words"] for stop in stops] == ["node", "node-002", "node-007", "node-008", "node-009", "node-007", "node-003"]
    # What is focused stays so when the lists are drawn anew.
    fleet.change("gpu", minimum=2 if dark else 3)
    wait_for(lambda: "at least " + ("2" if dark else "3") in limit(view, "gpu")["text"], "it is drawn anew")
    assert view.focus()["words"] == "node-003"


def test_a_narrow_window_has_limits_too(fleet):
    with Browser(480, 900) as narrow:
        narrow.open(fleet.controller.metrics_port)
        wait_for(lambda: narrow.count("#queue li") == 3, what="the queue is shown")
        assert narrow.run("return document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
        narrow.inspect()
        narrow.shoot("limits-narrow")
