"""The end of an installation: what a controller has left in a cluster goes, and nothing else. It has a cluster of its own."""

import subprocess

from backend import Sandbox
from contract import LEASE
from process import Controller, drydock
from profiles import ELECT
from wait import wait_for

STATE = "cloud.sap/maintenance-state"
CONFIG = """intervals: {requeue: 1s}
instances:
  check: [{type: hasLabel, name: asked, config: {key: maintain, value: "yes"}}]
  trigger: [{type: eviction, name: cordon, config: {action: cordon}}]
profiles:
- name: default
  operational: {transitions: [{check: asked, trigger: cordon, next: in-maintenance}]}
  maintenance-required: {transitions: []}
  in-maintenance: {transitions: []}
"""


def test_what_a_controller_leaves_goes(tmp_path):
    (tmp_path / "maintenance.yaml").write_text(CONFIG, encoding="utf-8")
    with Sandbox(tmp_path / "sandbox", nodes=2) as sandbox:
        def ask(method, path, *rest):
            status, answer = sandbox.access.request(method, path, *rest)
            assert status < 300, answer
            return answer

        def tool(*flags):
            return subprocess.run([drydock(), "uninstall", "--kubeconfig", sandbox.kubeconfig, *flags], check=False,
                                  timeout=60, capture_output=True, text=True)

        def nodes():
            return {n["metadata"]["name"]: n for n in ask("GET", "/api/v1/nodes")["items"]}

        def patch(name, body):
            ask("PATCH", f"/api/v1/nodes/{name}", body, "application/merge-patch+json")

        ours, theirs = sorted(nodes())
        patch(theirs, {"spec": {"unschedulable": True}})
        patch(ours, {"metadata": {"labels": {"maintain": "yes"}}})
        flags = [*ELECT, "--install-crds", "--config", str(tmp_path / "maintenance.yaml")]
        with Controller(sandbox.kubeconfig, tmp_path, flags=flags) as controller:
            wait_for(lambda: nodes()[ours]["spec"].get("unschedulable"), "the profile's cordon")
            wait_for(lambda: all(STATE in n["metadata"]["labels"] for n in nodes().values()), "states")
            refused = tool("--yes")
            assert refused.returncode == 1 and "a controller runs" in refused.stderr
            controller.stop()

        shown = tool("--crds")
        assert shown.returncode == 0 and f"node/{ours}: lift the cordon, remove {STATE}" in shown.stdout
        assert f"lease/default/{LEASE}: delete" in shown.stdout and "nothing was changed" in shown.stdout
        assert STATE in nodes()[ours]["metadata"]["labels"]

        done = tool("--crds", "--yes")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[:-1] == shown.stdout.splitlines()[:-1]
        left = nodes()
        assert "unschedulable" not in left[ours]["spec"] and left[theirs]["spec"]["unschedulable"]
        assert left[ours]["metadata"]["labels"]["maintain"] == "yes"
        assert not any("cloud.sap" in key or "drydock" in key for n in left.values()
                       for key in [*n["metadata"]["labels"], *n["metadata"].get("annotations", {})])
        wait_for(lambda: not [c for c in ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
                              if c["spec"]["group"] in ("repairman.k8s.io", "drydock.dev")], "no CRD of ours")
        assert tool("--crds", "--yes").stdout == "there is nothing of drydock left\n"
