"""The dashboard for Grafana: every query is run by a Prometheus that has scraped a controller and a bridge at work."""

import json
import os
import urllib.parse
import urllib.request

import pytest

from backend import ROOT
from contract import PROFILE
from objects import pod
from process import Bridge
from requests_fixture import fixture_installed, fixture_objects, fixture_requests_env, fixture_serve
from test_external_checks import prometheus
from wait import wait_for

DASHBOARD = os.path.join(ROOT, "deploy/helm/drydock/files/dashboard.json")
# What has no value in this world: nobody is told, rejected or let go, no certificate ends, no cluster is lost.
SILENT = {"drydock_notifications_total", "drydock_request_rejections_total", "drydock_bridge_hook_hold_seconds_bucket",
          "drydock_bridge_away_seconds_bucket"}
CONFIG = """
instances:
  check:
  - {type: hasLabel, name: wanted, config: {key: update, value: needed}}
  - {type: hasLabel, name: done, config: {key: update, value: done}}
  trigger:
  - {type: eviction, name: drain, config: {action: drain, forceEviction: true}}
profiles:
- name: cycle
  operational: {transitions: [{check: wanted, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: wanted, trigger: drain, next: in-maintenance}]}
  in-maintenance: {transitions: [{check: done, next: operational}]}
"""


def queries():
    with open(DASHBOARD, encoding="utf-8") as f:
        panels = json.load(f)["panels"]
    return [(panel["title"], target["expr"].replace("$namespace", ".*")) for panel in panels for target in panel.get("targets", [])]


def ask(url, query):
    with urllib.request.urlopen(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=30) as answer:
        return json.load(answer)


# One world is enough for questions to Prometheus.
@pytest.mark.backend("sandbox")
@pytest.mark.nodes(1)
def test_every_query_has_an_answer(backend, client, requests_env, serve, prometheus, nodes, namespace, tmp_path):
    config = tmp_path / "maintenance.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    profiled, asked = nodes[0], requests_env.nodes(1)[0]
    limit = requests_env.limit(limit=50)
    client.core.create_namespaced_pod(namespace, pod("goes", node=profiled))
    controller = serve("--config", str(config))
    bridge = Bridge(backend.kubeconfig, tmp_path / "bridge", flags=["--lease-namespace", namespace])
    try:
        wait_for(lambda: "drydock_bridge_links" in bridge.get("/metrics")[2], "the bridge counts")
        url = prometheus(controller.metrics_port, bridge.metrics_port)
        wait_for(lambda: len(ask(url, 'up == 1')["data"]["result"]) == 2, "both are scraped")
        client.core.patch_node(profiled, {"metadata": {"labels": {PROFILE: "cycle", "update": "needed"}}})
        requests_env.act(requests_env.ask(asked))
        requests_env.wait_limit(limit, population=1)
        open_ones = dict.fromkeys(queries())

        def answered():
            for title, query in list(open_ones):
                answer = ask(url, query)
                assert answer["status"] == "success", (title, query, answer)
                if answer["data"]["result"] or any(name in query for name in SILENT):
                    del open_ones[title, query]
            return not open_ones
        wait_for(answered, "every query has a value")
    except AssertionError as e:
        raise AssertionError(f"{e}: no value of {list(open_ones)}") from e
    finally:
        bridge.end()
