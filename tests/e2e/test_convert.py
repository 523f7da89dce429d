"""drydock convert: what comes out is accepted by an API server, and what goes wrong is told with its place.

The tables are data: tests/data/convert; a unit test compares what comes out.
"""

import os
import re
import subprocess

import pytest
import yaml

from backend import ROOT
from operation_cases import path
from process import drydock
from requests_api import install
from requests_api import path as limit_path


def rows(tool):
    with open(os.path.join(ROOT, "tests", "data", "convert", f"{tool}.yaml"), encoding="utf-8") as f:
        return [(tool, row) for row in yaml.safe_load(f)]


def text_of(tool, row):
    """The file of a row: its own, or flags or a Plan in the plainest form."""
    if "flags" in row:
        container = {"name": "kured", "args": row["flags"]}
        return yaml.safe_dump({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kured"},
                               "spec": {"template": {"spec": {"containers": [container]}}}})
    if "plan" in row:
        return yaml.safe_dump({"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", "metadata": {"name": "p"}, "spec": row["plan"]})
    return row["file"]


ROWS = rows("kured") + rows("suc")
GOOD = [pytest.param(tool, row, id=f"{tool}-{row['case']}") for tool, row in ROWS if "error" not in row]
BAD = [pytest.param(tool, row, id=f"{tool}-{row['case']}") for tool, row in ROWS if "error" in row]


def convert(tool, *files):
    return subprocess.run([drydock(), "convert", tool, *map(str, files)], check=False, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module", name="installed")
def fixture_installed(backend, tmp_path_factory):
    install(backend, tmp_path_factory.mktemp("crds"))


@pytest.mark.parametrize("tool, row", GOOD)
def test_what_comes_out_is_accepted_and_says_what_was_lost(backend, installed, tmp_path, unique, tool, row):
    file = tmp_path / "in.yaml"
    file.write_text(text_of(tool, row))
    done = convert(tool, file)
    assert done.returncode == 0, done.stderr
    objects = list(yaml.safe_load_all(done.stdout))
    assert [o["kind"] for o in objects] == ["NodeMaintenance"] + (["MaintenanceLimit"] if "limit" in row else [])
    for limit in objects[1:]:
        limit["metadata"]["name"] = unique  # other tests have limits of their own
        status, answer = backend.access.request(
            "POST", limit_path("maintenancelimits") + "?dryRun=All&fieldValidation=Strict", limit)
        assert (status, answer.get("spec")) == (201, row["limit"]), answer
    status, answer = backend.access.request("POST", path("nodemaintenances") + "?dryRun=All&fieldValidation=Strict", objects[0])
    assert (status, answer.get("spec")) == (201, objects[0]["spec"]), answer
    for about in row.get("lost", []):
        assert f": not carried over: {about}: " in done.stderr
        assert f"#   {about}: " in done.stdout
    for line in done.stderr.splitlines():
        assert line.startswith(f"{file}:"), line


@pytest.mark.parametrize("tool, row", BAD)
def test_bad_input_is_told_with_its_place(tmp_path, tool, row):
    file = tmp_path / "in.yaml"
    file.write_text(text_of(tool, row))
    done = convert(tool, file)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"drydock convert: {file}:{row.get('line', '')}" in done.stderr and row["error"] in done.stderr, done.stderr


def test_the_address_of_a_webhook_is_not_printed(tmp_path):
    file = tmp_path / "in.yaml"
    file.write_text(text_of("kured", {"flags": ["--slack-hook-url=https://hooks.slack.com/services/A/B/hidden"]}))
    done = convert("kured", file)
    assert done.returncode == 0 and "hidden" not in done.stdout + done.stderr


def test_several_files_and_plans_are_one_output(backend, installed, tmp_path):
    for name in ("a", "b"):
        plan = {"concurrency": 1, "nodeSelector": {}, "version": "v1", "upgrade": {"image": "x"}}
        (tmp_path / name).write_text(yaml.safe_dump_all([
            {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", "metadata": {"name": f"{name}-{i}"}, "spec": plan} for i in (1, 2)]))
    done = convert("suc", tmp_path / "a", tmp_path / "b")
    objects = list(yaml.safe_load_all(done.stdout))
    assert [o["metadata"]["name"] for o in objects] == ["a-1", "a-2", "b-1", "b-2"]
    done = convert("suc", tmp_path / "a", tmp_path / "a")
    assert done.returncode == 1 and "would both be NodeMaintenance 'a-1'" in done.stderr


def test_the_output_goes_to_kubectl(backend, installed, kubectl, tmp_path, unique):
    (tmp_path / "in.yaml").write_text(text_of("kured", {"flags": ["--reboot-days=sat"]}))
    text = convert("kured", tmp_path / "in.yaml").stdout.replace("name: kured\n", f"name: {unique}\n", 1)
    try:
        kubectl("apply", "-f", "-", stdin=text)
        status, answer = backend.access.request("GET", path("nodemaintenances", unique))
        assert (status, answer["spec"]["window"]["days"]) == (200, ["Sat"])
    finally:
        backend.access.request("DELETE", path("nodemaintenances", unique))


FLAGS = """alert-filter-match-only alert-filter-regexp alert-firing-only annotate-nodes blocking-pod-selector concurrency drain-delay
drain-grace-period drain-pod-selector drain-timeout ds-name ds-namespace end-time force-reboot lock-annotation lock-release-delay lock-ttl
log-format message-template-drain message-template-reboot message-template-uncordon metrics-host metrics-port node-id notify-url period
post-reboot-node-labels pre-reboot-node-labels prefer-no-schedule-taint prometheus-url reboot-command reboot-days reboot-delay reboot-method
reboot-sentinel reboot-sentinel-command reboot-signal skip-wait-for-delete-timeout slack-channel slack-hook-url slack-username start-time
time-zone""".split()
FIELDS = """channel concurrency cordon drain drain.deleteEmptydirData drain.deleteLocalData drain.disableEviction drain.force drain.gracePeriod
drain.ignoreDaemonSets drain.podSelector drain.skipWaitForDeleteTimeout drain.timeout exclusive imagePullSecrets jobActiveDeadlineSecs
nodeSelector postCompleteDelay postCompleteLabels prepare priorityClassName secrets secrets.defaultMode secrets.ignoreUpdates
serviceAccountName tolerations upgrade upgrade.args upgrade.command upgrade.envFrom upgrade.envs upgrade.image upgrade.securityContext
upgrade.volumes version window.days window.endTime window.startTime window.timeZone""".split()


def test_the_pages_have_every_flag_and_every_field_and_the_command_knows_them(tmp_path):
    with open(os.path.join(ROOT, "docs", "from-kured.md"), encoding="utf-8") as f:
        page = f.read().split("## Flags")[1]
    assert sorted(re.findall(r"`--([a-z-]+)`(?=[^|]*\|[^|]*\|\n)", page)) == FLAGS
    with open(os.path.join(ROOT, "docs", "from-system-upgrade-controller.md"), encoding="utf-8") as f:
        page = f.read().split("## Fields")[1]
    named = [name for line in page.splitlines() if line.startswith("| `spec.") for name in re.findall(r"`spec\.([a-zA-Z.]+)`", line.split("|")[1])]
    assert sorted(named) == sorted(FIELDS)
    (tmp_path / "in.yaml").write_text(text_of("kured", {"flags": [f"--{flag}={VALUES.get(flag, '1')}" for flag in FLAGS]}))
    done = convert("kured", tmp_path / "in.yaml")
    assert done.returncode == 0 and "no such flag" not in done.stderr, done.stderr


VALUES = {**{flag: "1s" for flag in ("drain-delay", "drain-timeout", "lock-release-delay", "lock-ttl", "period", "reboot-delay")},
          "prometheus-url": "http://p", "reboot-method": "signal", "reboot-sentinel": "/a", "start-time": "2", "time-zone": "UTC",
          "end-time": "3", "post-reboot-node-labels": "a=b", "pre-reboot-node-labels": "a=b", "notify-url": "slack://a"}


@pytest.mark.parametrize("arguments, code, says", [
    (["ansible", "x"], 2, "'ansible': want kured or suc, and files behind it"),
    (["kured"], 2, "Run 'drydock help convert' for usage."),
    (["kured", "/no/such/file"], 1, "/no/such/file"),
])
def test_bad_command_lines_are_told(arguments, code, says):
    done = convert(*arguments)
    assert (done.returncode, done.stdout) == (code, "") and says in done.stderr, done.stderr
