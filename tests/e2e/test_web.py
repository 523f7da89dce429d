"""The web view in a headless browser: what it shows, that it goes on by itself, that everybody can use it."""

import pytest

from backend import Sandbox
from browser import Browser
from conftest import WORLD, Client
from process import Controller
from step_config import label, step_config, state, write
from wait import wait_for

pytestmark = pytest.mark.backend("sandbox")
NODES = 24
MANY = 5000


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """(client of a sandbox, its controller, the controller's configuration): 24 nodes of one profile, one of them waiting."""
    folder = tmp_path_factory.mktemp("web")
    config = write(folder / "maintenance.yaml", step_config())
    with Sandbox(folder / "sandbox", nodes=NODES, world=WORLD) as sandbox, sandbox.client() as api:
        client = Client(api)
        for i in range(NODES):
            label(client, f"node-{i + 1:03}", profile="os")
        label(client, "node-002", due="yes")
        with Controller(sandbox.kubeconfig, folder, flags=["--config", str(config)]) as controller:
            controller.wait_ready()
            wait_for(lambda: state(client, "node-002") == "maintenance-required", what="one waits")
            wait_for(lambda: all(state(client, f"node-{i + 1:03}") for i in range(NODES)), what="all are served")
            yield client, controller, config


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture
def view(browser, fleet):
    browser.open(fleet[1].metrics_port)
    wait_for(lambda: browser.count("#grid .cell") == NODES, what="the fleet is shown")
    yield browser
    assert browser.complaints() == []


def lane(browser, name):
    return browser.run("return [...document.querySelectorAll(`.lane-${arguments[0]} .cell`)].map((e) => e.dataset.name)", name)


def test_the_fleet_stands_by_profile_and_state(view):
    wait_for(lambda: "node-002" in lane(view, "maintenance-required"), what="it waits")
    assert len(lane(view, "operational")) + len(lane(view, "maintenance-required")) + len(lane(view, "in-maintenance")) == NODES
    assert view.text(".count[data-key=all] b") == str(NODES)
    assert view.texts(".profile h3") == [f"os{NODES}", "defaultno node has this profile"]
    wait_for(lambda: [t for t in view.texts(".work li") if t.startswith("node-002os")], what="it is told what waits")
    view.shoot("fleet-light")
    view.run("document.getElementById('by-zone').click()")
    wait_for(lambda: view.count(".grid > .group") == 3, what="three zones")
    view.shoot("zones-light")


@pytest.mark.parametrize("dark", (False, True), ids=("light", "dark"))
def test_a_node_shows_its_checks_and_follows_them(view, fleet, dark):
    client, controller, _ = fleet
    node = "node-004" if dark else "node-003"
    view.open(controller.metrics_port, f"/#node={node}", dark)
    wait_for(lambda: view.texts("#node .check .verdict") == ["fail"], what="one check fails")
    assert view.text("#node .transition summary .verdict") == "no"
    assert view.text("#node .expression") == "due"
    assert "e2e.example.com/due" in view.text("#node .check .words")
    assert view.count("#node .check.holds") == 1
    view.run("window.kept = true")
    label(client, node, due="yes")
    wait_for(lambda: view.text("#node .expression") == "approved && one", what="it waits now")
    assert view.texts("#node .check .verdict")[0] == "fail"
    wait_for(lambda: node in lane(view, "maintenance-required"), what="the fleet shows it too")
    wait_for(lambda: [t for t in view.texts("#feed li") if t.endswith(f"{node} is maintenance-required")],
             what="it is told")
    view.inspect()
    view.shoot("node-dark" if dark else "node-light")
    label(client, node, approved="yes")
    wait_for(lambda: node in lane(view, "in-maintenance"), what="it is in maintenance")
    wait_for(lambda: view.text("#node .expression") == "!due && settled", what="its checks are the next ones")
    wait_for(lambda: view.text("#node .check time"), what="it is told when that changes")
    assert view.run("return window.kept"), "the page was loaded again"
    assert view.text("#node h3") == node
    client.core.patch_node(node, {"metadata": {
        "labels": {"e2e.example.com/due": None, "e2e.example.com/approved": None},
        "annotations": {"cloud.sap/maintenance-data": None}}})
    wait_for(lambda: node in lane(view, "operational"), what="it is as before")


def test_the_list_is_filtered_by_label_and_text(view, fleet):
    zone = fleet[0].core.read_node("node-001").metadata.labels["topology.kubernetes.io/zone"]

    def shown():
        return view.text("#list-note")

    wait_for(lambda: shown() == str(NODES), what="all are listed")
    view.press("/")
    assert view.focus()["id"] == "filter"
    view.press(*f"topology.kubernetes.io/zone={zone}")
    wait_for(lambda: shown() == f"8 of {NODES}", what="one zone of three")
    wait_for(lambda: view.count("#grid .cell.dim") == NODES - 8, what="the others are dimmed")
    view.press(*" 00")
    wait_for(lambda: shown() == f"3 of {NODES}", what="and the names that have 00")
    view.press("ESCAPE")
    wait_for(lambda: shown() == str(NODES), what="all again")
    view.press("/", *"profile=none")
    wait_for(lambda: shown() == f"0 of {NODES}", what="nobody has that profile")
    view.press("ESCAPE")


def test_everything_is_reached_by_keyboard(view):
    stops = []
    for _ in range(40):
        view.press("TAB")
        at = view.focus()
        if at is None or (stops and at == stops[0]):
            break
        assert at["visible"] and at["ring"], f"focus is not seen: {at}"
        stops.append(at)
    ids = [stop["id"] for stop in stops]
    assert {"theme", "by-profile", "by-zone", "filter", "rows"} <= set(ids), ids
    assert len([stop for stop in stops if stop["name"]]) == 1, "the fleet is one stop"
    assert len(stops) < 40

    view.press("g")
    first = view.focus()["name"]
    view.press("ARROW_RIGHT")
    second = view.focus()["name"]
    assert first and second and first != second
    view.press("ARROW_DOWN")
    assert view.focus()["name"] not in (first, second)
    view.press("HOME", "ENTER")
    wait_for(lambda: view.text("#node h3") == first, what="Enter shows the node")
    view.press("d")
    assert view.focus()["id"] == "node-card"
    view.run("document.getElementById('rows').focus()")
    view.press("ARROW_DOWN", "ARROW_DOWN", "ENTER")
    wait_for(lambda: view.text("#node h3") == "node-003", what="so does Enter in the list")
    assert view.run("return document.getElementById('rows').getAttribute('aria-activedescendant')") == "row-2"


def test_a_pause_of_everything_stands_above_all(view, fleet):
    client, name = fleet[0], "maintenance-controller-leader-election.cloud.sap"
    client.leases.create_namespaced_lease("default", {"metadata": {"name": name, "annotations": {"drydock.dev/paused": "the storage is down"}}})
    text = wait_for(lambda: view.text("#banner"), what="the banner is shown")
    assert text.startswith("Everything is paused: the storage is down. Nothing new is granted")
    view.inspect()
    client.leases.delete_namespaced_lease(name, "default")
    wait_for(lambda: view.text("#banner") is None, what="the banner is gone")


def test_a_key_that_nothing_reads_stands_above_all(view, fleet):
    config = fleet[2]
    write(config, step_config(profil=[]))
    text = wait_for(lambda: view.text("#banner"), what="the banner is shown")
    assert text.startswith("The configuration may not mean what it was meant to. ")
    assert "key 'profil' is unknown in the file and ignored; did you mean 'profiles'?" in text
    write(config, step_config())
    wait_for(lambda: view.text("#banner") is None, what="the banner is gone")


@pytest.mark.parametrize("dark", (False, True), ids=("light", "dark"))
def test_everybody_can_read_it(view, fleet, dark):
    _, controller, config = fleet
    view.open(controller.metrics_port, "/#node=node-002", dark)
    wait_for(lambda: view.count("#node .check") == 2 and view.count(".work li"), what="all is drawn")
    view.inspect()
    write(config, step_config(profiles=[{"name": "os", "operational": {"transitions": [
        {"check": "nonsense", "next": "in-maintenance"}]}}]))
    text = wait_for(lambda: view.text("#banner"), what="the banner is shown")
    assert "nonsense" in text and "last good one stays in force" in text
    view.inspect()
    view.shoot("banner-dark" if dark else "banner-light")
    write(config, step_config())
    wait_for(lambda: view.text("#banner") is None, what="the banner is gone")
    view.press("t")
    assert view.run("return document.documentElement.dataset.theme") == ("light" if dark else "dark")
    view.inspect()


def test_the_inspection_finds_what_is_wrong(view):
    view.run("""document.querySelector("main").insertAdjacentHTML("beforeend",
        '<h5>deep</h5><button tabindex="3"></button><p id="pale">pale</p>' +
        '<div role="option">lost</div><i id="title" aria-labelledby="nothing"></i>');
        Object.assign(document.getElementById("pale").style, { color: "#999", background: "#aaa" });""")
    with pytest.raises(AssertionError) as found:
        view.inspect()
    for part in ("skips a level", "has no name", "jumps the queue", "has contrast 1.2", "option of nothing",
                 "two elements have the id title", "refers to nothing"):
        assert part in str(found.value), f"{part}: not in {found.value}"


def test_a_narrow_window_has_it_all(fleet):
    with Browser(480, 900) as browser:
        browser.open(fleet[1].metrics_port, "/#node=node-002")
        wait_for(lambda: browser.count("#node .check") == 2, what="the node is shown")
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
        browser.inspect()
        browser.shoot("narrow-light")


def test_a_lost_connection_is_told_and_comes_back(browser, fleet, tmp_path):
    client, controller, config = fleet
    with Controller(kubeconfig_of(controller), tmp_path, flags=["--config", str(config)]) as second:
        second.wait_ready()
        browser.open(second.metrics_port)
        second.stop()
        wait_for(lambda: "connection lost" in browser.text("#link"), what="it is told")
        # While the second holds its port, nobody else gets it.
        arguments = ["--config", str(config), "--metrics-addr", f"127.0.0.1:{second.metrics_port}"]
        with Controller(kubeconfig_of(controller), tmp_path, "third", arguments) as third:
            wait_for(lambda: browser.text("#link") == "live", "it is live again")
            assert third.alive()


def kubeconfig_of(controller):
    return controller.popen.args[controller.popen.args.index("--kubeconfig") + 1]


# Milliseconds from each input to the frame after the one that draws it.
KEYSTROKES = """
const box = document.getElementById("filter");
const frame = () => new Promise((done) => requestAnimationFrame(done));
return (async () => {
  const took = [];
  for (const text of arguments[0]) {
    const began = performance.now();
    box.value = text;
    box.dispatchEvent(new Event("input"));
    await frame();
    await frame();
    took.push(Math.round(performance.now() - began));
  }
  return took;
})();
"""


def test_five_thousand_nodes(browser, tmp_path):
    config = write(tmp_path / "maintenance.yaml", step_config())
    with Sandbox(tmp_path / "sandbox", nodes=MANY, world={"heartbeats": "none"}) as sandbox, \
            Controller(sandbox.kubeconfig, tmp_path, flags=["--config", str(config)]) as controller:
        controller.wait_ready()
        wait_for(lambda: controller.metric("drydock_nodes") >= MANY, "all are known")
        browser.open(controller.metrics_port)
        wait_for(lambda: browser.count("#grid .cell") == MANY, "all are shown")
        wait_for(lambda: browser.text(".count[data-key=operational] b") == f"{MANY:,}", "all are served")
        took = browser.run(KEYSTROKES, ["node-49", "node-499", "node-4999"])
        assert browser.text("#list-note") == f"1 of {MANY:,}"
        assert min(took) < 10000, f"keystrokes take {took} ms"
        assert browser.count("#window .row") == 1
        browser.press("ESCAPE")
        browser.run("document.querySelectorAll('.cell')[3000].click()")
        wait_for(lambda: browser.text("#node h3"), what="a node is shown")
        browser.shoot("many-light")
        assert browser.complaints() == []
