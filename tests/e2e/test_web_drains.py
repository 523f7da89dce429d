"""A drain that is blocked, as somebody sees it who was woken up: without reading, and one step from the pod, its budget, the
request and the limit."""

import pytest
import yaml

from backend import Sandbox
from browser import Browser
from conftest import WORLD, Client
from objects import budget, deployment
from process import Controller
from requests_api import CLIENT_LABEL, Requests, install
from step_config import label, step_config, write
from wait import wait_for

pytestmark = pytest.mark.backend("sandbox")
NODES = 12
BY_PROFILE, BY_REQUEST = "node-003", "node-007"


def draining_config():
    config = yaml.safe_load(step_config())
    config["instances"]["trigger"] = [{"type": "eviction", "name": "drain", "config": {"action": "drain"}}]
    config["profiles"][0]["maintenance-required"]["transitions"][0]["trigger"] = "drain"
    return yaml.safe_dump(config, sort_keys=False)


@pytest.fixture(scope="module", name="fleet")
def fixture_fleet(tmp_path_factory):
    """A profile drains one node, a request another; each waits for a budget that allows nothing."""
    folder = tmp_path_factory.mktemp("drains")
    config = write(folder / "maintenance.yaml", draining_config())
    with Sandbox(folder / "sandbox", nodes=NODES, world=WORLD) as sandbox, sandbox.client() as api:
        client = Client(api)
        client.core.create_namespace({"metadata": {"name": "shop"}})
        for i in range(NODES):
            label(client, f"node-{i + 1:03}", profile="os")
        for app, node in (("web", BY_PROFILE), ("db", BY_REQUEST)):
            client.core.patch_node(node, {"metadata": {"labels": {"runs": app}}})
            client.apps.create_namespaced_deployment("shop", deployment(app, 1, {"runs": app}))
            client.policy.create_namespaced_pod_disruption_budget("shop", budget(app, app, minAvailable=1))
        wait_for(lambda: len([p for p in client.core.list_namespaced_pod("shop").items if p.status.phase == "Running"]) == 2,
                 what="the pods run")
        with Controller(sandbox.kubeconfig, folder, flags=["--config", str(config)]) as controller:
            controller.wait_ready()
            install(sandbox, folder)
            objects = Requests(sandbox)
            status, answer = objects.create("maintenancelimits", "workers",
                                            {"type": "node", "limit": 50, "drain": {"timeoutSeconds": 3600}}, None)
            assert status == 201, answer
            wait_for(lambda: "nominal" in objects.get("maintenancelimits", "workers").get("status", {}), "it is computed")
            status, answer = objects.create("maintenancerequests", "reboot-7", {"name": BY_REQUEST, "type": "node"},
                                            {CLIENT_LABEL: "kured"})
            assert status == 201, answer
            label(client, BY_PROFILE, due="yes", approved="yes")
            wait_for(lambda: blocked(controller) == 2, what="both drains are blocked")
            yield client, controller


def blocked(controller):
    return yaml.safe_load(controller.get("/api/v1/status")[2])["blocked"]


@pytest.fixture(scope="module", name="browser")
def fixture_browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(name="view")
def fixture_view(browser, fleet):
    browser.open(fleet[1].metrics_port)
    wait_for(lambda: browser.count("#blocked li") == 2, what="both are shown")
    yield browser
    assert browser.complaints() == []


def press(browser, selector, text):
    assert browser.run("""const e = [...document.querySelectorAll(arguments[0])].find((b) => b.textContent === arguments[1]);
        if (e) e.click(); return Boolean(e)""", selector, text), f"there is no {selector} '{text}'"


def test_blocked_drains_are_seen_without_reading(view):
    assert view.text(".count[data-key=draining] b") == "2"
    assert view.text(".count[data-key=blocked] b") == "2"
    assert view.count(".count.alarm[data-key=blocked]") == 1
    cells = view.run("return [...document.querySelectorAll('.cell.blocked')].map((e) => e.dataset.name)")
    assert sorted(cells) == [BY_PROFILE, BY_REQUEST]
    symbol, colour, calm = view.run("""const cell = document.querySelector(".cell.blocked");
        return [getComputedStyle(cell, "::before").content, getComputedStyle(cell).backgroundColor,
          getComputedStyle(document.querySelector(".cell:not(.blocked)")).backgroundColor]""")
    assert symbol == '"!"' and colour != calm
    assert view.run("return document.title").startswith("(2 blocked) ")
    first = wait_for(lambda: (t := view.texts(".work li")) and all("drain is blocked" in e for e in t[:2]) and t,
                     what="they come first in the list")
    assert BY_PROFILE in first[0] + first[1] and BY_REQUEST in first[0] + first[1]
    view.run("document.querySelector('.count[data-key=blocked]').click()")
    wait_for(lambda: view.text("#list-note") == f"2 of {NODES}", what="the tile filters")
    view.shoot("drains-light")


def test_a_blocked_drain_leads_to_what_blocks_it(view):
    rows = {t.partition("1 pod")[0]: t for t in view.texts("#blocked li")}
    told = rows[BY_REQUEST]
    assert "pod shop/db-" in told and "budget shop/db" in told and "request reboot-7 of kured under limit workers" in told
    assert "pod shop/web-" in rows[BY_PROFILE] and "for profile os" in rows[BY_PROFILE]
    view.run("Object.defineProperty(navigator, 'clipboard', { value: { writeText: async () => {} } })")
    press(view, "#blocked .link", "shop/db")
    wait_for(lambda: view.text("#copied") == "Copied: kubectl -n shop describe pdb db", what="the command is copied")
    press(view, "#blocked .link", "workers")
    wait_for(lambda: view.text("#limits-note") == "only workers", what="the limit is shown")
    press(view, "#blocked .link", "reboot-7")
    wait_for(lambda: view.focus()["name"] == "" and view.focus()["words"] == BY_REQUEST, what="the request is shown")
    press(view, "#blocked .link", BY_REQUEST)
    words = wait_for(lambda: (t := view.text("#node")) and "The drain is blocked" in t and t, what="the node is shown")
    assert "shop/db-" in words and "reboot-7" in words and "then it goes back to the queue" in words


@pytest.mark.parametrize("dark", [False, True])
def test_everybody_can_read_it(view, fleet, dark):
    view.open(fleet[1].metrics_port, f"/#node={BY_REQUEST}", dark=dark)
    wait_for(lambda: view.count("#blocked li") == 2 and "The drain is blocked" in view.text("#node"), what="it is shown")
    view.inspect()
    view.shoot(f"drains-{'dark' if dark else 'node'}")


def test_a_node_that_does_not_exist_says_so(view, fleet):
    view.open(fleet[1].metrics_port, "/#node=worker-99")
    wait_for(lambda: view.text("#node").startswith("There is no node worker-99 in this cluster."), what="it is said")
    view.open(fleet[1].metrics_port, "/#node=%zz")  # no name at all: the page goes on
    wait_for(lambda: view.count("#grid .cell") == NODES, what="the fleet is shown")


def telephone(browser):
    """No window of the browser itself is that narrow."""
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                   {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})


@pytest.mark.parametrize("dark", [False, True])
def test_a_narrow_window(fleet, dark):
    """As a telephone shows it: names in one piece, and what is tapped comes into view."""
    with Browser(width=500, height=844) as narrow:
        telephone(narrow)
        narrow.open(fleet[1].metrics_port, dark=dark)
        wait_for(lambda: narrow.count("#blocked li") == 2 and narrow.count(".work li") >= 2, what="it is shown")
        assert narrow.run("return document.documentElement.scrollWidth") <= 390
        lines = narrow.run("""return [...document.querySelectorAll(".work .link, .claim-list .link, .blocked-list .link")]
            .filter((e) => e.getClientRects().length > 0).map((e) => Math.round(e.getBoundingClientRect().height / 20))""")
        assert lines and max(lines) <= 2, "names break letter by letter"
        narrow.shoot(f"drains-narrow{'-dark' if dark else ''}")
        telephone(narrow)
        narrow.run("document.querySelector(`.cell[data-name='node-010']`).click()")
        wait_for(lambda: narrow.text("#node h3") == "node-010" and "os" in narrow.text("#node"), what="it is chosen")
        wait_for(lambda: -10 <= narrow.run("return document.getElementById('node-card').getBoundingClientRect().top") < 100,
                 what="it is in view")
        narrow.shoot(f"drains-narrow-node{'-dark' if dark else ''}")
