"""Alerts: Prometheus takes them, each has a unit test, a section in the documentation, and metrics that exist."""

import json
import re

import yaml

from conftest import CHART, TOP, find, rendered, run

RULES = CHART / "files/alerts.yaml"
TESTS = TOP / "tests/alerts/alerts_test.yaml"
WORDS = re.compile(r"\b(?:drydock|maintenance_controller|leader_election|rest_client|process)_[a-z_]+")


def alerts():
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def documented():
    """Every word of the pages that list metrics; parts of names stand for whole ones: `drydock_limit_nominal`, `_granted`."""
    text = "".join((TOP / f"docs/{page}.md").read_text(encoding="utf-8") for page in ("controller", "requests", "bridge"))
    return set(WORDS.findall(text)), set(re.findall(r"`(_[a-z_]+)`", text))


def test_prometheus_takes_the_rules_and_they_fire_when_they_should():
    for command in (("check", "rules", RULES), ("test", "rules", TESTS)):
        done = run("promtool", *command, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_seen_to_fire_and_not_to_fire():
    cases = {}
    for test in yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]:
        for case in test["alert_rule_test"]:
            cases.setdefault(case["alertname"], set()).add(bool(case["exp_alerts"]))
    fire = {name for name, seen in cases.items() if True in seen}
    assert fire == set(alerts())


def test_every_alert_has_its_section():
    sections = set(re.findall(r"^## (\w+)$", (TOP / "docs/alerts.md").read_text(encoding="utf-8"), re.M))
    assert sections == set(alerts())


def test_every_metric_of_alerts_and_dashboard_is_documented():
    whole, parts = documented()
    dashboard = json.loads((CHART / "files/dashboard.json").read_text(encoding="utf-8"))
    texts = [rule["expr"] for rule in alerts().values()]
    texts += [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    for name in {word for text in texts for word in WORDS.findall(text)}:
        plain = name.removesuffix("_bucket")
        assert plain in whole or any(plain.endswith(part) for part in parts), name


def test_the_chart_has_the_alerts_of_the_parts_that_it_installs():
    def names(values):
        rule = find(rendered(values), "PrometheusRule")
        return {alert["alert"]: alert for group in rule["spec"]["groups"] for alert in group["rules"]}
    everything = names("everything")
    assert set(everything) == set(alerts())
    for name, rule in everything.items():
        assert rule["annotations"]["runbook_url"] == f"https://runbooks.example/alerts#{name.lower()}"
        assert rule["annotations"]["description"] == alerts()[name]["annotations"]["description"], "no template of Helm's"
    groups = {group["name"]: {rule["alert"] for rule in group["rules"]} for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]}
    assert set(names("bridge")) == groups["drydock"] | groups["drydock-bridge"]


def test_the_dashboard_is_one_for_the_sidecar_of_grafana():
    found = find(rendered("everything"), "ConfigMap")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    dashboard = json.loads(found["data"]["drydock.json"])
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)) and all(panel["title"] for panel in dashboard["panels"])
