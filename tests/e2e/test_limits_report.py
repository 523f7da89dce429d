"""Limits, holders and the queue as people see them: status, explain, the JSON API, from a running controller."""

import json
import os
import re
import subprocess

import pytest

from requests_api import CLIENT_LABEL, Requests, install
from process import Controller, Process, drydock
from step_config import label, step_config, state, write
from wait import wait_for

LIMITS, ASKS = "maintenancelimits", "maintenancerequests"
# Whoever is due and approved goes, as far as limits let it.
PROFILES = [{
    "name": "os",
    "operational": {"transitions": [{"check": "due", "next": "maintenance-required"}]},
    "maintenance-required": {"transitions": [{"check": "approved", "next": "in-maintenance"}]},
    "in-maintenance": {"transitions": [{"check": "!due", "next": "operational"}]},
}]


@pytest.fixture(scope="module", autouse=True)
def fixture_installed(backend, tmp_path_factory):
    install(backend, tmp_path_factory.mktemp("crds"))


@pytest.fixture(name="objects")
def fixture_objects(backend):
    objects = Requests(backend)
    yield objects
    objects.clean()


@pytest.fixture(name="controller")
def fixture_controller(backend, tmp_path):
    config = write(tmp_path / "maintenance.yaml", step_config(profiles=PROFILES))
    with Controller(backend.kubeconfig, tmp_path, flags=["--config", str(config)]) as started:
        yield started.wait_ready()


class RequestsEnv:
    """Five nodes under one limit of two: a request and a profile hold it, three wait."""

    def __init__(self, client, objects, make_node, unique):
        self.client, self.objects, self.limit = client, objects, unique
        self.nodes = [make_node(f"{unique}-n{i}", {"case": unique}) for i in range(5)]
        self.create(LIMITS, unique, {"type": "node", "limit": 100, "maxCount": 2,
                                     "selector": {"matchLabels": {"case": unique}}})
        for name in self.nodes:
            label(client, name, profile="os", approved="yes")

    def create(self, plural, name, spec, labels=None):
        status, answer = self.objects.create(plural, name, spec, labels)
        assert status == 201, answer
        return name

    def ask(self, number, node, actor):
        return self.create(ASKS, f"{self.limit}-{number}", {"name": node, "type": "node"}, {CLIENT_LABEL: actor})

    def fill(self):
        first = self.ask(1, self.nodes[0], "kured")
        wait_for(lambda: self.objects.state(first) == "Approved", "the first is approved")
        label(self.client, self.nodes[1], due="yes")
        wait_for(lambda: state(self.client, self.nodes[1]) == "in-maintenance", "a profile has the second place")
        return first

    def pause(self, paused):
        status, answer = self.objects.patch(LIMITS, self.limit, {"spec": {"paused": paused}})
        assert status == 200, answer


@pytest.fixture(name="requests_env")
def fixture_requests_env(client, objects, make_node, unique, controller):
    requests_env = RequestsEnv(client, objects, make_node, unique)
    wait_for(lambda: objects.get(LIMITS, unique).get("status", {}).get("nominal") == 2, "the limit is computed")
    assert controller.alive()
    return requests_env


@pytest.fixture(name="run")
def fixture_run(controller):
    """run(argument…): what the command printed."""
    def run(*arguments, check=0):
        result = subprocess.run([drydock(), *arguments, "--address", f"127.0.0.1:{controller.metrics_port}"],
                                text=True, capture_output=True, timeout=120, check=False, env=os.environ)
        assert result.returncode == check, f"{arguments}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout if check == 0 else result.stderr
    return run


def narrow(text):
    """One line of it: where lines are broken depends on the longest name of all."""
    return " ".join(text.split())


def board(controller, where="/api/v1/limits"):
    status, _, body = controller.get(where)
    return json.loads(body) if status == 200 else None


def claim(document, name):
    return next((c for c in (document or {}).get("claims", ()) if c["name"] == name), None)


def wait_claim(controller, name, where="/api/v1/limits", **wanted):
    def found():
        it = claim(board(controller, where), name)
        return it and all(it.get(k) == v for k, v in wanted.items()) and it
    return wait_for(found, f"{name} is shown with {wanted}")


def test_who_holds_what_and_who_waits_for_whom(controller, requests_env, run):
    first = requests_env.fill()
    second = requests_env.ask(2, requests_env.nodes[2], "rebooter")
    third = requests_env.ask(3, requests_env.nodes[0], "replacer")
    waits = wait_claim(controller, second, waits=True, reason="LimitReached", limit=requests_env.limit)
    assert waits["limits"] == [requests_env.limit] and waits["position"] >= 1 and waits["since"]
    assert waits["until"].startswith(f"1 of the 2 held under limit {requests_env.limit} ends")
    assert waits["blocker"]["target"] in requests_env.nodes[:2]
    busy = wait_claim(controller, third, waits=True, reason="TargetBusy")
    assert busy["blocker"]["name"] == first and busy["blocker"]["client"] == "kured"
    assert busy["until"] == f"node {requests_env.nodes[0]} is released"
    held = wait_claim(controller, first, waits=False, phase="Approved")
    assert held["limits"] == [requests_env.limit]

    def limit():
        return next(it for it in board(controller)["limits"] if it["name"] == requests_env.limit)

    found = wait_for(lambda: (it := limit())["held"] == 2 and it["waiting"] == 2 and it, "its numbers are right")
    assert (found["allowed"], found["population"], found["room"], found["standing"]) == (2, 5, 0, "full")
    assert found["selects"] == f"case={requests_env.limit}"
    assert {(h["target"], h["name"]) for h in found["holders"]} == {(requests_env.nodes[0], first), (requests_env.nodes[1], "profile/os")}

    text = run("explain", "request", second)
    assert text.splitlines()[0].startswith(f"request {second}: Pending for ")
    assert f"node {requests_env.nodes[2]}" in text and "rebooter" in text and "  until " in text
    assert f"limit {requests_env.limit}: 2 granted" in narrow(text)
    assert f"request {first}: Approved for " in run("explain", "request", requests_env.nodes[0])  # by its target
    text = run("explain", "limit", requests_env.limit)
    assert text.startswith(f"limit {requests_env.limit}: full\n")
    assert f"held (2) {requests_env.nodes[0]} {first} of kured, Approved for " in narrow(text)
    assert f"{requests_env.nodes[1]} profile os, InMaintenance for " in narrow(text)
    assert "queue (2)" in text
    assert "there is no request 'nobody'" in run("explain", "request", "nobody", check=1)
    assert "there is no limit 'nobody'" in run("explain", "limit", "nobody", check=1)
    # And of a node, who has it and who wants it.
    text = narrow(run("explain", requests_env.nodes[0]))
    assert f"held by request {first} of kured for " in text and f"asked by request {third} of replacer for " in text
    assert "held by profile os for " in narrow(run("explain", requests_env.nodes[1]))


def test_a_profile_that_waits_for_a_limit_stands_in_the_same_queue(client, controller, requests_env, run):
    requests_env.fill()
    label(client, requests_env.nodes[3], due="yes")

    def waits():
        return [c for c in board(controller)["claims"] if c["waits"] and c["target"] == requests_env.nodes[3]]

    [found] = wait_for(waits, "the node waits")
    assert (found["name"], found["reason"], found["limit"]) == ("profile/os", "LimitReached", requests_env.limit)
    text = narrow(run("explain", requests_env.nodes[3]))
    assert f"waits limit {requests_env.limit}: 2 granted" in text
    assert "asked by profile os for " in text and f"until 1 of the 2 held under limit {requests_env.limit} ends" in text


def test_status_has_limits_holders_and_the_queue(controller, requests_env, run):
    first = requests_env.fill()
    second = requests_env.ask(2, requests_env.nodes[2], "rebooter")
    wait_claim(controller, second, waits=True, reason="LimitReached")

    # Others may have limits and requests in this cluster.
    wide = wait_for(lambda: (t := narrow(run("status", "-o", "wide"))) and f"{requests_env.limit} node 2 of 5 2 0 1 full" in t and t,
                    "the limit is in the table")
    assert f"{requests_env.nodes[0]} {first} of kured, Approved for " in wide
    assert re.search(rf"{requests_env.nodes[2]} \d+\. {second} of rebooter for ", wide), wide
    text = run("status")
    assert "\nlimit " in text and "\nheld (" in text and "\nqueue (" in text
    # Words are never broken, and neither is the path of the file.
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("config")), text
    document = json.loads(run("status", "-o", "json"))
    assert claim(document["board"], second)["reason"] == "LimitReached"
    assert "board" not in json.loads(controller.get("/api/v1/status?board=0")[2])


def test_a_pause_is_told_and_followed(controller, requests_env, tmp_path):
    arguments = [drydock(), "explain", "limit", requests_env.limit, "--watch", "--address", f"127.0.0.1:{controller.metrics_port}"]
    with Process(arguments, tmp_path, "watch") as watch:
        wait_for(lambda: f"limit {requests_env.limit}: open" in watch.out(), "it begins")
        requests_env.pause(True)
        name = requests_env.ask(1, requests_env.nodes[0], "kured")
        wait_for(lambda: f"limit {requests_env.limit}: paused" in watch.out(), "it goes on")
        found = wait_claim(controller, name, reason="Paused")
        assert found["until"] == f"spec.paused of limit {requests_env.limit} is false"
        wait_for(lambda: "until spec.paused of" in watch.out(), "and says what would help")
        assert "\033" not in watch.out()
    requests_env.pause(False)
    wait_for(lambda: requests_env.objects.state(name) == "Approved", "it is approved")
    requests_env.objects.move(name, "InProgress", "Completed")
    ended = wait_claim(controller, name, f"/api/v1/explain?request={name}", ended=True, phase="Completed")
    assert ended["until"] == ""
    wait_for(lambda: claim(board(controller), name) is None, "what has ended is not listed")
