"""`drydock explain machine`: which bridge is asked, and what is shown of its answer."""

import http.server
import json
import subprocess
import threading
import urllib.parse

import pytest
import yaml

from process import drydock

LEASE = "runtime-extension-maintenance-controller"
LEASES = "/apis/coordination.k8s.io/v1/"


def lease(name, pod, namespace="ops"):
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"holderIdentity": f"{pod}_1a2b" if pod else ""}}


def document(ours=True):
    return {"namespace": "tenants", "name": "blue-1", "ours": ours, "phase": "HoldingDeletion"}


def report(form, ours):
    """The same as a bridge renders it."""
    replica = "" if ours else "  replica  another shard looks after its Cluster\n"
    return f"machine tenants/blue-1: HoldingDeletion\n{replica}  hook     attached, {form}\n"


class Management(http.server.BaseHTTPRequestHandler):
    """An API server with Leases and the proxy to pods, each of which gives one answer."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        if self.path in (LEASES + "leases", LEASES + "namespaces/ops/leases"):
            return self.answer(200, {"kind": "LeaseList", "items": server.leases})
        for pod, (status, body) in server.pods.items():
            prefix = f"/api/v1/namespaces/ops/pods/http:{pod}:8080/proxy"
            if self.path.startswith(prefix + "/") or (pod == "alone" and self.path.startswith("/api/v1/explain")):
                path, _, query = self.path.removeprefix(prefix).partition("?")
                query = dict(urllib.parse.parse_qsl(query))
                assert path == "/api/v1/explain" and query.pop("machine") == "tenants/blue-1"
                return self.bridge(status, body, **query)
        return self.answer(404, {"kind": "Status", "code": 404, "message": "no such pod"})

    def bridge(self, status, body, format=None, shard=None):
        if status == 200 and shard == "own" and not body["ours"]:
            return self.answer(404, {"error": "another shard looks after its Cluster"})
        if status == 200 and format and "ours" in body:
            return self.answer(200, report(format, body["ours"]))
        return self.answer(status, body)

    def answer(self, status, body):
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture(name="management")
def fixture_management(tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Management) as server:
        server.asked, server.leases, server.pods = [], [], {}
        server.url = f"http://127.0.0.1:{server.server_port}"
        server.kubeconfig = tmp_path / "management.kubeconfig"
        server.kubeconfig.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}), encoding="utf-8")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def run(*arguments):
    return subprocess.run([drydock(), "explain", *arguments], capture_output=True, text=True, timeout=60, check=False)


def explain(management, *flags, code=0):
    done = run("machine", "tenants/blue-1", "--kubeconfig", str(management.kubeconfig), *flags)
    assert done.returncode == code, done.stderr
    return " ".join((done.stdout if code == 0 else done.stderr).split())


def test_the_bridge_is_found_by_its_lease(management):
    management.leases = [lease("worker-1", "worker-1", "kube-node-lease"), lease(LEASE, "bridge-0")]
    management.pods = {"bridge-0": (200, document())}
    text = explain(management)
    assert text == "machine tenants/blue-1: HoldingDeletion hook attached, text"
    assert explain(management, "-o", "wide") == text.replace("text", "wide")
    assert explain(management, "--namespace", "ops") == text
    assert LEASES + "namespaces/ops/leases" in management.asked
    assert json.loads(explain(management, "-o", "json"))["name"] == "blue-1"


def test_it_can_be_asked_by_its_address(management):
    management.pods = {"alone": (200, document())}
    assert "HoldingDeletion" in explain(management, "--address", management.url)


def test_shards_are_asked_until_one_looks_after_it(management):
    management.leases = [lease(LEASE, ""), lease(LEASE + "-shard-0", "b-0"), lease(LEASE + "-shard-1", "b-1"), lease(LEASE + "-shard-2", "b-2")]
    management.pods = {"b-0": (404, {"error": "there is no Machine 'tenants/blue-1'"}), "b-1": (200, document(ours=False)),
                       "b-2": (200, document())}
    assert "replica" not in explain(management)
    assert [pod for path in management.asked for pod in ("b-0", "b-1", "b-2") if f":{pod}:" in path] == ["b-0", "b-1", "b-2"]
    # One that cannot be asked does not matter when another one knows.
    management.pods["b-1"] = (500, {"error": "it hurts"})
    assert "HoldingDeletion" in explain(management)
    management.pods["b-2"] = (200, document(ours=False))
    told = explain(management, code=1)
    assert "pod 'b-1' in namespace 'ops'" in told and "it hurts" in told
    del management.pods["b-1"]
    assert "no such pod" in explain(management, code=1)
    management.pods["b-1"] = management.pods["b-2"]
    assert "another shard looks after its Cluster" in explain(management)
    # Scripts are told by the same one.
    management.pods["b-1"] = (200, document())
    assert json.loads(explain(management, "-o", "json"))["ours"]


def test_what_went_wrong_is_said(management):
    assert f"no bridge is known to this cluster: there is no Lease '{LEASE}'" in explain(management, code=1)
    management.leases = [lease(LEASE, "")]
    assert "no bridge is leading" in explain(management, code=1)
    management.leases = [lease(LEASE, "bridge-0")]
    assert "(--address asks a bridge that runs elsewhere)" in explain(management, code=1)
    management.pods = {"bridge-0": (404, {"error": "there is no Machine 'tenants/blue-1'"})}
    assert explain(management, code=1) == "drydock explain: there is no Machine 'tenants/blue-1'"
    management.pods = {"bridge-0": (200, {"kind": "other"})}  # as an older one answers, whatever is asked for
    assert "the bridge's answer cannot be read: its version answers JSON only" in explain(management, code=1)
    management.pods = {"bridge-0": (200, {"version": "0.3.9"})}
    assert "its version 0.3.9 answers JSON only, which '-o json' prints" in explain(management, code=1)
    assert json.loads(explain(management, "-o", "json")) == {"version": "0.3.9"}
    management.pods = {"bridge-0": (200, "")}
    assert "the bridge's answer cannot be read: it is empty" in explain(management, code=1)
    management.leases = [lease(LEASE + "-shard-0", "a", "one"), lease(LEASE + "-shard-1", "b", "two")]
    assert "2 namespaces have a bridge's Lease, 'one' among them" in explain(management, code=1)


@pytest.mark.parametrize("arguments, says", [
    (["machine", "blue-1"], "machine 'blue-1': want NAMESPACE/NAME"),
    (["machine", "/blue-1"], "machine '/blue-1': want NAMESPACE/NAME"),
    (["cluster", "blue"], "'cluster': want node, request, limit, nodemaintenance or machine"),
])
def test_a_wrong_command_line_is_refused(arguments, says):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "") and says in done.stderr
