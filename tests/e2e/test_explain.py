"""What the controller says about nodes: explain and status, as text and JSON, by address, through the API server
and from a replica that does not lead."""

import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest
import yaml

from requests_api import install
from process import Controller, Process, drydock, fetch
from step_config import label, step_config, state, write
from wait import wait_for

LEASE = "maintenance-controller-leader-election.cloud.sap"


def run(*arguments, check=0, env=None, program=None):
    """What the command printed; its exit code must be `check`."""
    result = subprocess.run([program or drydock(), *arguments], text=True, capture_output=True, timeout=120,
                            check=False, env={**os.environ, **(env or {})})
    assert result.returncode == check, f"{arguments}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout if check == 0 else result.stderr


@pytest.fixture
def config(tmp_path):
    return write(tmp_path / "maintenance.yaml", step_config())


@pytest.fixture
def controller(backend, tmp_path, config):
    with Controller(backend.kubeconfig, tmp_path, flags=["--config", str(config)]) as started:
        yield started.wait_ready()


@pytest.fixture
def address(controller):
    return ("--address", f"127.0.0.1:{controller.metrics_port}")


@pytest.fixture
def served(client, nodes):
    """Two nodes of the profile, the first one asks for maintenance."""
    for name in nodes:
        label(client, name, profile="os")
    label(client, nodes[0], due="yes")
    return nodes


def test_explain_tells_what_holds_a_node(client, controller, served, address):
    wait_for(lambda: state(client, served[0]) == "maintenance-required", what="it asks for maintenance")
    text = wait_for(lambda: (t := run("explain", served[0], *address)) and "to in-maintenance" in t and t)
    lines = text.splitlines()
    assert lines[0].startswith(f"node {served[0]}: maintenance-required, ready")
    assert re.search(r"^profile os: maintenance-required for [0-9hms]+$", text, re.M)
    assert "  to in-maintenance: no" in text
    assert "      if       approved && one" in lines
    assert re.search(r"^    \* fail     approved \(hasLabel\): \S", text, re.M), text
    assert re.search(r"^      pass     one \(maxMaintenance\): \S", text, re.M), text
    assert all(len(line) <= 80 for line in lines), text

    label(client, served[0], approved="yes")
    wait_for(lambda: state(client, served[0]) == "in-maintenance", what="it is in maintenance")
    document = wait_for(lambda: (d := json.loads(run("explain", served[0], "-o", "json", *address)))
                        and d["profiles"][0]["state"] == "in-maintenance" and d)
    transition, = document["profiles"][0]["transitions"]
    assert transition["target"] == "operational" and not transition["passed"]
    answers = {check["name"]: check for check in transition["checks"]}
    # "!due": it passes, and that is what is in the way.
    assert answers["due"]["answer"] == "pass" and answers["due"]["holds"]
    assert answers["settled"]["answer"] == "fail" and answers["settled"]["info"]["remaining_seconds"] > 0
    assert transition["next"] == answers["settled"]["next"]
    assert "remaining_seconds" in run("explain", served[0], "-o", "wide", *address)


def test_status_counts_and_names_who_waits(client, controller, served, address):
    label(client, served[1], due="yes", approved="yes")
    wait_for(lambda: state(client, served[1]) == "in-maintenance", what="one is in maintenance")
    label(client, served[0], approved="yes")
    wait_for(lambda: state(client, served[0]) == "maintenance-required", what="the other waits")

    def shown():
        text = run("status", *address)
        return "waiting for maintenance (1)" in text and "in maintenance (1)" in text and text

    text = wait_for(shown, what="both are listed")
    assert re.search(r"^os +\d+ +1 +1$", text, re.M), text
    assert re.search(rf"^  {served[0]} +os, [0-9hms]+: (.*one|turn 1 of 1)", text, re.M), text
    # A word is never broken, and the path of the file is one.
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("config")), text
    document = json.loads(run("status", "-o", "json", *address))
    assert {(e["node"], e["state"]) for e in document["entries"]} == {
        (served[0], "maintenance-required"), (served[1], "in-maintenance")}
    assert document["states"]["in-maintenance"] == 1
    assert document["config"]["error"] == ""


def test_info_is_the_original_document(client, controller, served):
    wait_for(lambda: state(client, served[0]) == "maintenance-required")

    def entry():
        found = [e for e in json.loads(controller.get("/api/v1/info")[2]) if e["node"] == served[0]]
        return found and found[0]["profiles"][0]["state"] == "maintenance-required" and found[0]

    found = wait_for(entry, what="the node is shown")
    profile, = found["profiles"]
    assert list(profile) == ["applied", "name", "state"] and list(profile["applied"]) == ["next", "transitions", "error"]
    transition, = profile["applied"]["transitions"]
    assert list(transition) == ["passed", "target", "chain", "error"]
    assert list(transition["chain"]) == ["passed", "info", "expression"]
    assert transition["chain"]["expression"] == "approved && one"
    assert list(transition["chain"]["info"]) == ["approved", "one"]
    assert transition["chain"]["info"]["approved"]["id"] == "hasLabel"
    assert transition["chain"]["info"]["one"] == {
        "id": "maxMaintenance", "passed": True,
        "info": {"maintained": 0, "max": 1, "scope": "all nodes in the cluster"}}
    assert set(found["labels"]) <= {"kubernetes.io/os"}


def test_what_cannot_be_told_is_said(controller, address):
    assert "there is no node 'nobody'" in run("explain", "nobody", *address, check=1)
    assert "Connection refused" in run("status", "--address", "http://127.0.0.1:1", check=1)
    assert "want [node|request|limit|nodemaintenance|machine] NAME" in run("explain", check=2)
    assert "want node, request, limit, nodemaintenance or machine" in run("explain", "pod", "x", check=2)
    assert "text|wide|json" in run("status", "-o", "xml", check=2)
    status, _, body = controller.get("/api/v1/explain?node=nobody")
    assert (status, json.loads(body)) == (404, {"error": "there is no node 'nobody'"})


def test_a_bad_configuration_is_told_and_the_good_one_stays(client, controller, config, served, address):
    wait_for(lambda: state(client, served[0]) == "maintenance-required")
    write(config, step_config(profiles=[{"name": "os", "operational": {
        "transitions": [{"check": "nonsense", "next": "in-maintenance"}]}}]))
    text = wait_for(lambda: (t := run("status", *address)) and "the last good one stays in force" in t and t)
    assert "nonsense" in text
    assert "approved && one" in run("explain", served[0], *address)
    write(config, step_config())
    wait_for(lambda: "stays in force" not in run("status", *address), what="the file is good again")


def test_watch_shows_what_changes(client, controller, served, address, tmp_path):
    wait_for(lambda: state(client, served[0]) == "maintenance-required")
    with Process([drydock(), "explain", served[0], "--watch", *address], tmp_path, "watch") as watch:
        wait_for(lambda: "* fail     approved" in watch.out(), what="it begins")
        label(client, served[0], approved="yes")
        wait_for(lambda: "profile os: in-maintenance" in watch.out(), what="it goes on")
        assert "\033" not in watch.out()


def test_it_is_a_kubectl_plugin(backend, controller, served, address, tmp_path):
    (tmp_path / "kubectl-drydock").symlink_to(drydock())
    env = {**backend.kubectl_env(), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    text = run("drydock", "explain", served[0], *address, program=backend.kubectl_path(), env=env)
    assert text.startswith(f"node {served[0]}: ")
    assert "usage: kubectl drydock explain" in run("drydock", "explain", "--help", program=backend.kubectl_path(), env=env)


# ---- through the API server ----

class Proxy(http.server.BaseHTTPRequestHandler):
    """An API server with Leases and the proxy to one pod, which is a controller."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        kind = self.server.leases
        prefix = "/api/v1/namespaces/ops/pods/http:ctl-0:9000/proxy"
        if self.path.startswith("/apis/coordination.k8s.io/v1/leases?"):
            self.answer(200, json.dumps({"kind": "LeaseList", "items": kind}))
        elif self.path == f"/apis/coordination.k8s.io/v1/namespaces/ops/leases/{LEASE}":
            self.answer(200, json.dumps(kind[0]))
        elif self.path.startswith(prefix):
            status, _, body = fetch(self.server.target, self.path[len(prefix):])
            self.answer(status, body)
        else:
            self.answer(404, json.dumps({"kind": "Status", "code": 404, "message": "pods \"ctl-1\" not found"}))

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.fixture
def proxied(controller, tmp_path):
    """(the server, a kubeconfig that leads to it)"""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.target = controller.metrics_port
        server.leases = [lease("ops", "ctl-0_1a2b")]
        path = tmp_path / "proxied.kubeconfig"
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}), encoding="utf-8")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server, ("--kubeconfig", str(path), "--port", "9000")
        server.shutdown()
        thread.join()


def lease(namespace, holder):
    return {"metadata": {"name": LEASE, "namespace": namespace}, "spec": {"holderIdentity": holder}}


def test_the_leader_is_found_through_the_api_server(client, served, proxied):
    server, flags = proxied
    wait_for(lambda: state(client, served[0]) == "maintenance-required")
    assert f"node {served[0]}: " in run("explain", served[0], *flags)
    assert "profile" in run("status", "--namespace", "ops", *flags)
    assert "there is no node 'nobody'" in run("explain", "nobody", *flags, check=1)
    server.leases = [lease("ops", "ctl-1_9")]
    told = " ".join(run("status", *flags, check=1).split())
    assert "pods \"ctl-1\" not found" in told
    assert "pod 'ctl-1' in namespace 'ops' (--address asks a controller that runs elsewhere)" in told
    server.leases = [lease("ops", "")]
    assert "no maintenance-controller is leading" in run("status", *flags, check=1)
    server.leases = [lease("ops", "ctl-0_1"), lease("other", "x_1")]
    assert "2 namespaces have a controller's Lease" in run("status", *flags, check=1)
    server.leases = []
    assert "there is no Lease" in run("status", *flags, check=1)


# ---- a replica that does not lead ----

@pytest.mark.backend("sandbox")
def test_a_replica_answers_with_what_the_leader_says(backend, client, served, config, tmp_path, namespace):
    host = socket.gethostname()
    install(backend, tmp_path)
    flags = ["--config", str(config), "--enable-leader-election", "--lease-namespace", namespace]
    with Controller(backend.kubeconfig, tmp_path, "leader", flags) as leader:
        leader.wait_ready()
        wait_for(lambda: leader.metric("leader_election_master_status") == 1, "it leads")
        wait_for(lambda: state(client, served[0]) == "maintenance-required")
        flags += ["--leader-port", str(leader.metrics_port)]
        with Controller(backend.kubeconfig, tmp_path, "follower", flags) as follower:
            follower.wait_ready()
            wait_for(lambda: f"the leader is '{host}'" in json.loads(follower.get("/api/v1/info")[2])["error"],
                     what="it knows whom to ask, and cannot reach it")
            assert follower.get("/api/v1/info")[0] == 502
            client.core.create_namespaced_pod(namespace, {
                "metadata": {"name": host}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
            client.core.patch_namespaced_pod_status(host, namespace, {
                "status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}})

            def same(path):
                (status, _, body), theirs = follower.get(path), leader.get(path)[2]
                return status == 200 and strip(body) == strip(theirs)

            for path in ("/api/v1/info", "/api/v1/status", "/api/v1/limits", f"/api/v1/explain?node={served[0]}"):
                wait_for(lambda p=path: same(p), what=f"{path} is the leader's")
            status, _, body = follower.get("/api/v1/info", headers={"X-Drydock-Relayed": "1"})
            assert (status, json.loads(body)) == (503, {"error": "no maintenance-controller is leading"})
            leader.send(signal.SIGKILL)
            leader.wait()
            status, _, body = follower.get("/api/v1/info")
            if status != 200:  # it may lead already
                assert status == 502 and "error" in json.loads(body)


def strip(body):
    """Without what is different at another moment."""
    return re.sub(r'"(now|updated)":"[^"]*"|"remaining_seconds":[0-9.]+', "", body)
