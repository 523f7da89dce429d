"""NodeMaintenances, by the controller: what runs on which nodes, in which order, and what is left behind.

Every case has its own nodes, which its NodeMaintenance selects alone, so cases share a cluster.
"""

import http.server
import json
import subprocess
import threading
import urllib.parse

import pytest

from backend import Cluster
from operation_cases import GROUP, make, path
from process import drydock
from requests_api import CLIENT_LABEL, install
from requests_fixture import fixture_serve
from wait import wait_for

FLAGS = ("--runner-image", "localhost/drydock:test", "--unlimited-visits", "0")
CORDON = f"{GROUP}/visit-cordon"


@pytest.fixture(scope="module", autouse=True)
def fixture_installed(backend, tmp_path_factory):
    install(backend, tmp_path_factory.mktemp("crds"))
    for name in ("drydock-system", "drydock-jobs"):
        status, answer = backend.access.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert status in (201, 409), answer


class Operations:
    """NodeMaintenances for nodes of one case; what a test makes goes with it."""

    def __init__(self, backend, client, make_node, unique):
        self.access, self.client, self.make_node, self.unique = backend.access, client, make_node, unique
        self.made = []
        self.plays_kubelet = isinstance(backend, Cluster)

    def nodes(self, count):
        return [self.make_node(f"{self.unique}-n{i}", {"case": self.unique}) for i in range(count)]

    def create(self, plural, name, spec):
        status, answer = self.access.request("POST", path(plural) + "?fieldValidation=Strict", make(plural, name, spec))
        assert status == 201, answer
        self.made.append(path(plural, name))
        return name

    def maintain(self, suffix="", **spec):
        spec = {"nodeSeries": {"selector": {"matchLabels": {"case": self.unique}}}, **spec}
        return self.create("nodemaintenances", self.unique + suffix, spec)

    def get(self, name):
        status, answer = self.access.request("GET", path("nodemaintenances", name))
        assert status == 200, answer
        return answer

    def status(self, name):
        return self.get(name).get("status", {})

    def condition(self, name, kind):
        return next((c for c in self.status(name).get("conditions", ()) if c["type"] == kind), {})

    def wait_phase(self, name, phase):
        self.wait(lambda: self.status(name).get("phase") == phase, f"{name} is {phase}")

    def wait(self, condition, what):
        def played():
            self.end_pods()
            return condition()
        return wait_for(played, what)

    def end_pods(self):
        """The pods of Jobs come to their end, where no kubelet runs them: those of kwok run on at times."""
        if not self.plays_kubelet:
            return
        _, answer = self.access.request("GET", "/api/v1/namespaces/drydock-jobs/pods")
        for pod in answer["items"]:
            if pod.get("status", {}).get("phase") == "Running":
                end = {"name": "run", "image": "i", "imageID": "i", "ready": False, "restartCount": 0,
                       "state": {"terminated": {"exitCode": 0, "message": '{"exitCode":0,"rebootRequired":false}'}}}
                self.access.request("PATCH", f"/api/v1/namespaces/drydock-jobs/pods/{pod['metadata']['name']}/status",
                                    {"status": {"phase": "Succeeded", "containerStatuses": [end]}},
                                    "application/merge-patch+json")

    def patch(self, name, change):
        status, answer = self.access.request("PATCH", path("nodemaintenances", name), change, "application/merge-patch+json")
        assert status == 200, answer

    def jobs(self, name):
        query = f"?labelSelector={GROUP}%2Fmaintenance%3D{name}"
        status, answer = self.access.request("GET", "/apis/batch/v1/namespaces/drydock-jobs/jobs" + query)
        assert status == 200, answer
        return answer["items"]

    def requests(self, name):
        query = f"?labelSelector={CLIENT_LABEL}%3Ddrydock-node-maintenance"
        status, answer = self.access.request("GET", "/apis/repairman.k8s.io/v1/maintenancerequests" + query)
        assert status == 200, answer
        return [r for r in answer["items"] if name in r["spec"].get("reason", "")]

    def clean(self):
        for where in self.made:
            self.access.request("DELETE", where)
        for where in self.made:
            self.wait(lambda where=where: self.access.request("GET", where)[0] == 404, f"{where} is gone")


@pytest.fixture(name="operations")
def fixture_operations(backend, client, make_node, unique, serve):
    """Made after `serve`, so that a controller still runs while it is cleaned up."""
    env = Operations(backend, client, make_node, unique)
    yield env
    env.clean()


SAY = {"name": "say", "type": "one-shot", "script": "echo hello"}


def test_a_script_runs_once_on_every_node_one_at_a_time(operations, serve, client, kubectl, backend):
    nodes = operations.nodes(3)
    serve(*FLAGS)
    name = operations.maintain(disruption={"cordon": "Always"}, rollout={"minReady": "1s"}, operations=[SAY])
    seen = set()

    def done():
        cordoned = [n for n in nodes if CORDON in (client.core.read_node(n).metadata.annotations or {})]
        seen.add(len(cordoned))
        return operations.status(name).get("phase") == "Complete"

    operations.wait(done, "it is complete")
    assert max(seen) <= 1, seen
    assert operations.status(name)["progress"] == "3/3"
    assert not any(client.core.read_node(n).spec.unschedulable for n in nodes)
    assert len(operations.requests(name)) == 3
    assert "True" in kubectl("get", "nodemaintenance", name, "-o",
                             "jsonpath={.status.conditions[?(@.type=='Complete')].status}")
    table = kubectl("get", "ndm", name).splitlines()
    assert table[0].split() == ["NAME", "PHASE", "DONE", "FAILED", "REASON", "NEXT", "AGE"]
    assert "3/3" in table[1]

    def history(*arguments):
        return subprocess.run([drydock(), "history", *arguments, "--kubeconfig", backend.kubeconfig], text=True, capture_output=True,
                              timeout=60, check=False)
    wait_for(lambda: history("ndm", name).stdout.count(f"{name}/say Succeeded") == 3, "its runs are kept")
    assert history(nodes[0]).stdout.count("Succeeded") == 1
    assert history("nobody").stderr == "drydock history: nothing is kept of 'nobody' in namespace 'drydock-system'\n"
    assert history("pod", "x").returncode == 2


def test_kubectl_waits_for_it(operations, serve, kubectl):
    operations.nodes(1)
    serve(*FLAGS)
    name = operations.maintain(rollout={"minReady": "1s"}, operations=[SAY])
    operations.wait_phase(name, "Complete")
    kubectl("wait", f"nodemaintenances.{GROUP}/{name}", "--for=condition=Finished", "--timeout=120s", timeout=180)
    assert operations.condition(name, "Finished")["reason"] == "Succeeded"


def test_two_objects_share_a_visit(operations, serve):
    operations.nodes(1)
    serve(*FLAGS)
    one = operations.maintain("-a", suspend=True, rollout={"minReady": "1s"}, operations=[SAY])
    two = operations.maintain("-b", suspend=True, rollout={"minReady": "1s"}, operations=[SAY])
    for name in (one, two):
        operations.wait_phase(name, "Suspended")
    for name in (one, two):
        operations.patch(name, {"spec": {"suspend": False}})
    for name in (one, two):
        operations.wait_phase(name, "Complete")
    # Whoever comes while the request of the first waits joins it; who is too late has a visit of its own.
    assert 1 <= len(operations.requests(operations.unique)) <= 2


def told(controller, *arguments, code=0):
    """What a command says that asks the controller."""
    done = subprocess.run([drydock(), *arguments, "--address", f"http://127.0.0.1:{controller.metrics_port}"], text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def test_a_window_that_is_closed_starts_nothing(operations, serve):
    [node] = operations.nodes(1)
    controller = serve(*FLAGS)
    name = operations.maintain(rollout={"minReady": "1s"}, window={"recurrences": [{"at": {"from": "2030-01-01T00:00:00Z", "to": "2030-01-01T04:00:00Z"}}]},
                               operations=[SAY])
    wait_for(lambda: operations.status(name).get("reason") == "WaitingWindow", "it waits for its window")
    assert operations.status(name)["next"] == "01-01 00:00Z"
    assert operations.jobs(name) == [] and operations.requests(name) == []
    assert f"node maintenance {name}: Waiting, WaitingWindow" in told(controller, "explain", "ndm", name)
    row = f"{node}  waits: the window opens next: 2030-01-01T00:00:00Z"
    wait_for(lambda: row in told(controller, "explain", "nodemaintenance", name, "-o", "wide"), "the node is Ready and waits")
    assert f"work     {name}: waits: the window opens next" in told(controller, "explain", node)
    assert any(line.split()[:3] == [name, "Waiting", "0/1"] for line in told(controller, "status", "-o", "wide").splitlines())
    assert "there is no NodeMaintenance 'nobody'" in told(controller, "explain", "ndm", "nobody", code=1)
    operations.patch(name, {"spec": {"window": {"override": {"until": "2030-01-02T00:00:00Z", "reason": "CVE-2030-0001"}}}})
    operations.wait_phase(name, "Complete")


def test_a_successor_goes_on_where_the_leader_died(operations, serve):
    operations.nodes(2)
    first = serve(*FLAGS)
    name = operations.maintain(disruption={"cordon": "Always"}, rollout={"minReady": "1s"}, operations=[SAY])
    wait_for(lambda: operations.status(name).get("visits"), "a visit has begun")
    first.send(9)
    first.wait()
    serve(*FLAGS)
    operations.wait_phase(name, "Complete")
    succeeded = [j["metadata"]["name"] for j in operations.jobs(name) if j["status"].get("succeeded")]
    assert len(succeeded) == 2, succeeded


@pytest.mark.parametrize("spec, reason, field", [
    ({"window": {"refs": ["nowhere"]}, "operations": [SAY]}, "RefNotFound", "spec.window.refs[0]"),
    ({"operations": [{"name": "a", "type": "one-shot", "template": {"name": "nowhere"}}]}, "RefNotFound", "template.name"),
    ({"operations": [{"name": "a", "type": "realtime", "resources": [{"name": "f", "type": "file", "path": "/x"}]}]},
     "Unsupported", "operation 'a'"),
])
def test_what_cannot_be_done_names_the_field(operations, serve, spec, reason, field):
    operations.nodes(1)
    serve(*FLAGS)
    name = operations.maintain(**spec)
    accepted = wait_for(lambda: operations.condition(name, "Accepted").get("status") == "False" and
                        operations.condition(name, "Accepted"), "it is not accepted")
    assert accepted["reason"] == reason
    assert field in accepted["message"]
    assert operations.jobs(name) == []


def test_deleting_the_object_leaves_nothing_behind(operations, serve, client):
    nodes = operations.nodes(2)
    serve(*FLAGS)
    name = operations.maintain(disruption={"cordon": "Always"}, rollout={"minReady": "1s"}, operations=[SAY])
    wait_for(lambda: any(client.core.read_node(n).spec.unschedulable for n in nodes), "a node is cordoned")
    operations.clean()
    operations.wait(lambda: not any(client.core.read_node(n).spec.unschedulable for n in nodes), "no node is cordoned")
    wait_for(lambda: all(r["spec"]["state"] == "Completed" for r in operations.requests(name)), "requests have ended")


def test_people_tell_it_by_commands(operations, serve, client, backend):
    nodes = operations.nodes(2)
    serve(*FLAGS)

    def command(*arguments):
        return subprocess.run([drydock(), *arguments, "--kubeconfig", backend.kubeconfig], text=True, capture_output=True,
                              timeout=60, check=False)

    assert command("hold", nodes[0]).returncode == 0
    name = operations.maintain(rollout={"minReady": "1s", "waves": [{"name": "all", "size": "100%", "approval": "Manual"}]},
                               operations=[SAY])
    wait_for(lambda: operations.status(name).get("reason") == "WaitingApproval", "it waits for an approval")
    approved = command("approve", name)
    assert approved.stdout == f"nodemaintenance/{name}: wave all is approved\n", approved.stderr
    operations.wait(lambda: operations.status(name)["counts"]["succeeded"] == 1, "the node that is not held is done")
    assert operations.status(name)["counts"]["held"] == 1
    assert command("hold", nodes[0], "--release").returncode == 0
    operations.wait_phase(name, "Complete")
    again = command("rerun", name, "say", "--node", nodes[1])
    assert again.stdout == f"nodemaintenance/{name}: operation say runs again on {nodes[1]}\n", again.stderr
    operations.wait(lambda: len(operations.requests(name)) == 3, "it runs again")
    assert command("pause", name).returncode == 0
    wait_for(lambda: operations.condition(name, "Paused").get("reason") == "Hold", "it is held")
    assert command("resume", name).returncode == 0
    wait_for(lambda: operations.condition(name, "Paused").get("reason") == "Active", "it goes on")
    wrong = command("rerun", name, "sing")
    assert (wrong.returncode, "has no operation 'sing'" in wrong.stderr) == (1, True), wrong.stderr


@pytest.fixture(name="prometheus")
def fixture_prometheus():
    """A server whose query has the results of `results`; `asked` is what came."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # pylint: disable=invalid-name
            form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.server.asked.append((self.path, form["query"][0]))
            body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": self.server.results}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.results = [], []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_query_keeps_a_visit_from_beginning(operations, serve, prometheus):
    operations.nodes(1)
    prometheus.results = [{"metric": {}, "value": [1, "1"]}]
    serve(*FLAGS, "--allow-url", prometheus.url)
    gate = {"query": {"url": prometheus.url, "query": "errors > 0"}, "interval": "5s"}
    name = operations.maintain(rollout={"minReady": "1s", "gates": {"beforeNode": [gate]}}, operations=[SAY])
    operations.wait(lambda: operations.status(name).get("reason") == "WaitingGate", "it waits at the gate")
    waits = operations.status(name)["gate"]
    assert waits["place"] == "rollout.gates.beforeNode[0].query" and waits["next"] > waits["since"]
    assert "the query has 1 results, and none is wanted" in waits["message"]
    assert prometheus.asked[0] == ("/api/v1/query", "errors > 0")
    assert not operations.requests(name)
    prometheus.results = []
    operations.wait_phase(name, "Complete")
    assert "gate" not in operations.status(name)
    other = operations.maintain("-other", rollout={"gates": {"beforeNode": [
        {"alerts": {"url": "http://127.0.0.1:1"}}]}}, operations=[SAY])
    operations.wait(lambda: operations.condition(other, "Accepted").get("reason") == "DestinationNotAllowed", "it is refused")
