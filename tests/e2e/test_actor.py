"""Actors: the command line, the C library's example and the raw protocol, with the controller's part played here.

Whoever approves writes spec.state, so a test can do it by hand: what is under test is the other side.
"""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from requests_api import CLIENT_LABEL, Requests, install
from process import Process, drydock
from wait import wait_for

LONG = 120  # seconds; what is waited for comes at once, unless the machine is busy


@pytest.fixture(scope="module", autouse=True)
def fixture_installed(backend, tmp_path_factory):
    install(backend, tmp_path_factory.mktemp("crds"))


@pytest.fixture(name="objects")
def fixture_objects(backend, unique):
    objects = Requests(backend)
    yield objects
    for request in objects.of(unique):
        objects.keep("maintenancerequests", request["metadata"]["name"])
    objects.clean()


@pytest.fixture(name="node")
def fixture_node(make_node, unique):
    return make_node(f"{unique}-node")


@pytest.fixture(name="cli")
def fixture_cli(backend, tmp_path, unique):
    """cli(argument…): the whole result; the client is the test's own."""
    def run(command, *arguments, client=unique):
        flags = ["--kubeconfig", backend.kubeconfig] + (["--client", client] if client else [])
        return subprocess.run([drydock(), command, *flags, *arguments], text=True, cwd=tmp_path,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=LONG, check=False)
    return run


@pytest.fixture(name="start")
def fixture_start(backend, tmp_path, unique):
    """start(argument…): a command that takes its time."""
    running = []

    def run(command, *arguments):
        process = Process([drydock(), command, "--kubeconfig", backend.kubeconfig, "--client", unique,
                           *arguments], str(tmp_path), f"{command}{len(running)}")
        running.append(process)
        return process

    yield run
    for process in running:
        process.end()


def only(objects, client):
    request, = objects.of(client)
    return request


def asked(objects, client):
    """The name of the client's only request, once it is there."""
    return wait_for(lambda: only(objects, client), "it has asked")["metadata"]["name"]


def in_state(objects, name, state):
    wait_for(lambda: objects.state(name) == state, f"{name} is {state}")


# --- request, complete, withdraw ---


def test_request_makes_one_request_a_target(cli, objects, node, unique):
    result = cli("request", node, "--reason", "new kernel", "--priority", "-5", "--preparation", "None")
    assert result.returncode == 0, result.stderr
    made = only(objects, unique)
    name = made["metadata"]["name"]
    assert result.stdout == f"maintenancerequest.repairman.k8s.io/{name} created\n"
    assert made["metadata"]["labels"] == {CLIENT_LABEL: unique}
    assert made["spec"] == {"name": node, "type": "node", "state": "Pending", "reason": "new kernel",
                            "priority": -5, "preparation": "None"}
    again = cli("request", node)
    assert (again.returncode, again.stdout) == (0, f"maintenancerequest.repairman.k8s.io/{name} unchanged\n")


def test_request_prints_the_object(cli, objects, node, unique):
    result = cli("request", node, "-o", "json")
    assert json.loads(result.stdout)["metadata"]["uid"] == only(objects, unique)["metadata"]["uid"]


def test_request_is_for_workloads_too(cli, objects, unique):
    result = cli("request", "web", "--type", "deployment", "--namespace", "shop")
    assert result.returncode == 0, result.stderr
    spec = only(objects, unique)["spec"]
    assert (spec["type"], spec["namespace"], spec["name"]) == ("deployment", "shop", "web")


@pytest.mark.parametrize("arguments, words", [
    (["n", "--type", "deployment"], "--type deployment needs --namespace"),
    (["n", "--namespace", "x"], "--type node takes no --namespace"),
    (["n", "--priority", "1001"], "want -1000 to 1000"),
    (["n", "--type", "pod"], "want one of"),
    ([], "want NODE"),
])
def test_request_refuses_bad_command_lines(cli, arguments, words):
    result = cli("request", *arguments)
    assert result.returncode == 2
    assert words in result.stderr


def test_request_needs_a_node_that_exists(cli, unique):
    result = cli("request", f"{unique}-none")
    assert result.returncode == 1
    words = result.stderr.split()
    assert " ".join(words[2:8]) == f"node {unique}-none: invalid node name in" and words[9:] == ["node", "list"]
    assert words[8].isdigit()


def test_request_waits_for_the_approval(start, objects, node, unique):
    process = start("request", node, "--wait")
    name = asked(objects, unique)
    objects.patch("maintenancerequests", name, {"status": {
        "phase": "Pending", "reason": "LimitReached", "message": "2 of 2 nodes are out", "queuePosition": 3}}, "status")
    wait_for(lambda: "LimitReached" in process.log(), "it tells what it waits for")
    assert process.alive()
    objects.move(name, "Approved")
    assert process.wait(LONG) == 0
    assert process.out().splitlines() == [f"maintenancerequest.repairman.k8s.io/{name} {verb}"
                                          for verb in ("created", "approved")]
    told = " ".join(process.log().split())
    assert f"node {node}: Pending, number 3 in the queue, LimitReached: 2 of 2 nodes are out" in told
    assert all(len(line) <= 80 for line in process.log().splitlines())


def test_request_leaves_its_request_when_time_is_over(cli, objects, node, unique):
    result = cli("request", node, "--wait", "--timeout", "300ms")
    assert result.returncode == 3
    assert "not approved in time" in " ".join(result.stderr.split())
    assert only(objects, unique)["spec"]["state"] == "Pending"


def test_request_ends_when_it_is_closed(start, objects, node, unique):
    process = start("request", node, "--wait")
    objects.move(asked(objects, unique), "Completed")
    assert process.wait(LONG) == 4
    assert "was closed before its approval" in " ".join(process.log().split())


def test_complete_and_withdraw_keep_to_the_states(cli, objects, node, unique):
    cli("request", node)
    name = only(objects, unique)["metadata"]["name"]
    result = cli("complete", node)
    assert (result.returncode, result.stderr) == (4, "drydock complete: request is not yet approved\n")
    objects.move(name, "Approved", "InProgress")
    result = cli("withdraw", name)
    assert (result.returncode, result.stderr) == \
        (4, "drydock withdraw: request is in progress: complete it instead\n")
    result = cli("complete", node)
    assert (result.returncode, result.stdout) == \
        (0, f"maintenancerequest.repairman.k8s.io/{name} completed\n")
    result = cli("complete", name)
    assert (result.returncode, result.stderr) == (4, "drydock complete: request is already completed\n")
    assert objects.state(name) == "Completed"
    assert cli("complete", node).returncode == 1  # there is none any more
    cli("request", node)
    second = [r for r in objects.of(unique) if r["metadata"]["name"] != name][0]
    result = cli("withdraw", node, "-o", "json")
    assert json.loads(result.stdout)["metadata"]["name"] == second["metadata"]["name"]
    assert json.loads(result.stdout)["spec"]["state"] == "Completed"


def test_complete_does_not_guess_among_strangers(cli, objects, node, unique):
    for client in ("one", "two"):
        status, _ = objects.create("maintenancerequests", f"{unique}-{client}",
                                   {"name": node, "type": "node"}, {CLIENT_LABEL: f"{unique}-{client}"})
        assert status == 201
    result = cli("withdraw", node)
    assert result.returncode == 1
    assert "2 clients ask for" in " ".join(result.stderr.split())
    assert cli("withdraw", node, client=f"{unique}-one").returncode == 0
    assert objects.state(f"{unique}-one") == "Completed"
    assert cli("withdraw", node).returncode == 0  # one is left
    assert objects.state(f"{unique}-two") == "Completed"


# --- limits ---


def test_limits_show_holders_and_the_queue(cli, objects, node, unique):
    assert objects.create("maintenancelimits", unique, {"type": "node", "limit": 10})[0] == 201
    status, answer = objects.patch("maintenancelimits", unique, {"status": {
        "type": "node", "limit": 1, "nominal": 1, "population": 12, "granted": 1, "waiting": 1, "unavailableCount": 0,
        "reservations": [{"requestUID": "u", "requestName": "profile/flatcar", "target": "n-7", "state": "Approved",
                          "grantedTime": "2026-01-02T03:04:05Z"}]}}, "status")
    assert status == 200, answer
    cli("request", node)
    objects.patch("maintenancerequests", asked(objects, unique), {"status": {
        "reason": "LimitReached", "message": "1 of 1", "queuePosition": 1, "limits": [unique]}}, "status")
    result = cli("limits", client=None)
    assert result.returncode == 0, result.stderr
    text = " ".join(result.stdout.split())  # lines may be wrapped: others have longer names
    assert f"{unique} node 1 of 12 1 0 1 full" in text
    assert re.search(rf"n-7 profile flatcar, Approved for [0-9dhms]+; under {unique}", text), text
    assert re.search(rf"{node} 1\. \S+ of {unique} for [0-9dhms]+: 1 of 1", text), text
    assert f"until the one held under limit {unique} ends; longest held: n-7 by profile flatcar" in text
    listed = json.loads(cli("limits", "-o", "json", client=None).stdout)["items"]
    assert {unique, asked(objects, unique)} <= {item["metadata"]["name"] for item in listed}


# --- run ---


def test_run_works_only_when_in_progress_is_written(start, objects, node, unique, tmp_path, backend):
    """The command itself looks at the cluster: that is what the state was when it began."""
    look = " ".join(backend.kubectl_command("get", "mreq", "-l", f"{CLIENT_LABEL}={unique}", "-o",
                                            "jsonpath={.items[0].spec.state}"))
    process = start("run", node, "--", "sh", "-c", f"HOME={tmp_path} {look} > seen; echo out; echo err >&2")
    name = asked(objects, unique)
    assert only(objects, unique)["spec"]["reason"].startswith("sh -c HOME=")
    assert not (tmp_path / "seen").exists()
    objects.move(name, "Approved")
    assert process.wait(LONG) == 0, process.log()
    assert (tmp_path / "seen").read_text() == "InProgress"
    assert process.out() == "out\n" and "err\n" in process.log()
    done = only(objects, unique)
    assert done["spec"]["state"] == "Completed"
    assert done["metadata"]["annotations"]["drydock.dev/exit-code"] == "0"


@pytest.mark.parametrize("command, code", [
    (["sh", "-c", "exit 7"], 7),
    (["sh", "-c", "kill -9 $$"], 137),
    (["/no/such/program"], 127),
    (["/dev/null"], 126),
])
def test_run_tells_how_the_command_ended(start, objects, node, unique, command, code):
    process = start("run", node, "--", *command)
    name = asked(objects, unique)
    objects.move(name, "Approved")
    assert process.wait(LONG) == code, process.log()
    done = only(objects, unique)
    assert done["spec"]["state"] == "Completed"
    assert done["metadata"]["annotations"]["drydock.dev/exit-code"] == str(code)


def test_run_passes_signals_on(start, objects, node, unique, tmp_path):
    process = start("run", node, "--", "sh", "-c",
                    "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    name = asked(objects, unique)
    objects.move(name, "Approved")
    wait_for(lambda: "ready" in process.out(), "the command runs")
    assert objects.state(name) == "InProgress"
    process.send(signal.SIGTERM)
    assert process.wait(LONG) == 5
    assert process.out() == "ready\ncaught\n"
    assert objects.state(name) == "Completed"


def test_run_that_is_interrupted_while_it_waits_leaves_nothing(start, objects, node, unique, tmp_path):
    process = start("run", node, "--", "touch", "ran")
    name = asked(objects, unique)
    process.send(signal.SIGINT)
    assert process.wait(LONG) == 130
    assert objects.state(name) == "Completed"
    assert not (tmp_path / "ran").exists()


def test_run_that_is_out_of_time_leaves_nothing(cli, objects, node, unique, tmp_path):
    result = cli("run", node, "--timeout", "300ms", "--", "touch", "ran")
    assert result.returncode == 3
    assert only(objects, unique)["spec"]["state"] == "Completed"
    assert not (tmp_path / "ran").exists()


def test_run_does_not_join_a_run(cli, start, objects, node, unique, tmp_path):
    """Two of one name share a request; only one may be at work."""
    go = tmp_path / "go"
    first = start("run", node, "--", "sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done")
    name = asked(objects, unique)
    objects.move(name, "Approved")
    in_state(objects, name, "InProgress")
    second = cli("run", node, "--", "touch", "ran")
    assert second.returncode == 4
    assert "is in progress already" in " ".join(second.stderr.split())
    assert not (tmp_path / "ran").exists()
    go.touch()
    assert first.wait(LONG) == 0
    assert objects.state(name) == "Completed"


def test_run_ends_well_when_its_request_is_deleted(start, objects, node, unique):
    process = start("run", node, "--", "sh", "-c", "echo ready; read x < pipe; exit 3")
    os.mkfifo(os.path.join(os.path.dirname(process.out_path), "pipe"))
    name = asked(objects, unique)
    objects.move(name, "Approved")
    wait_for(lambda: "ready" in process.out(), "the command runs")
    assert objects.send("DELETE", f"/apis/repairman.k8s.io/v1/maintenancerequests/{name}")[0] == 200
    with open(os.path.join(os.path.dirname(process.out_path), "pipe"), "w", encoding="ascii") as f:
        f.write("x\n")
    assert process.wait(LONG) == 3
    assert "could not be completed" in " ".join(process.log().split())


# --- the library ---


def build_folder():
    return os.path.dirname(os.path.realpath(drydock()))


@pytest.fixture(name="actor")
def fixture_actor(backend, tmp_path, unique):
    """actor(node, command…): the example of examples/actor.c, started."""
    running = []

    def run(node, *command, program=os.path.join(build_folder(), "example-actor")):
        process = Process([program, unique, node, *command], str(tmp_path), f"actor{len(running)}",
                          env={"KUBECONFIG": backend.kubeconfig})
        running.append(process)
        return process

    yield run
    for process in running:
        process.end()


def test_the_example_actor_takes_its_turn(actor, objects, node, unique, tmp_path):
    process = actor(node, "sh", "-c", "touch ran")
    name = asked(objects, unique)
    assert not (tmp_path / "ran").exists()
    objects.move(name, "Approved")
    assert process.wait(LONG) == 0, process.log()
    assert process.out().splitlines() == [f"{node}: working", f"{node}: done, exit code 0"]
    assert (tmp_path / "ran").exists()
    assert objects.state(name) == "Completed"


def test_the_example_actor_gives_up_when_it_is_told_to(actor, objects, node, unique, tmp_path):
    process = actor(node, "touch", "ran")
    name = asked(objects, unique)
    process.send(signal.SIGTERM)
    assert process.wait(LONG) == 130
    assert objects.state(name) == "Completed"
    assert not (tmp_path / "ran").exists()


def test_the_example_actor_says_what_is_wrong(actor, unique):
    process = actor(f"{unique}-none", "true")
    assert process.wait(LONG) == 1
    words = process.log().split()
    assert words[:5] == ["actor:", "invalid", "node", "name", "in"] and words[6:] == ["node", "list"]


def library():
    return os.path.join(build_folder(), "libdrydock.so")


def sanitized(path):
    listed = subprocess.run(["nm", "-D", "--undefined-only", path], check=True, text=True,
                            capture_output=True, timeout=LONG).stdout
    return "__asan_init" in listed


@pytest.fixture(name="call")
def fixture_call(backend, unique):
    """call(name, argument…): one call of the library: (result, value, message)."""
    env = dict(os.environ)
    if sanitized(library()):
        env["LD_PRELOAD"] = subprocess.run(["cc", "-print-file-name=libasan.so"], check=True, text=True,
                                           capture_output=True, timeout=LONG).stdout.strip()
        env["ASAN_OPTIONS"] = "detect_leaks=0"  # Python's own

    def run(name, *arguments, client=unique):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "library.py")
        result = subprocess.run(["/usr/bin/python3", script, library(), backend.kubeconfig, client, name, *arguments],
                                env=env, text=True, capture_output=True, timeout=LONG, check=False)
        assert result.returncode == 0, result.stderr
        return tuple(json.loads(result.stdout))

    return run


def test_the_library_speaks_the_protocol_of_the_original(call, client, objects, node, unique):
    """A new handle for each step: nothing is remembered but in the cluster."""
    result, _, message = call("enabled", "node", client="")
    assert (result, message) == (-1, "client name required")
    assert call("enabled", "node")[:2] == (0, True)
    assert call("enabled", "sailboat")[:2] == (0, False)
    result, value, message = call("is_approved", "")
    assert (result, value) == (-1, False)
    assert message.startswith("invalid node name in ") and message.endswith(" node list")
    assert call("find", node)[0] == -2
    assert call("update", node, "Completed") == (-2, None, "request must exist before state can be updated")
    assert call("is_approved", node)[:2] == (0, False)
    name = asked(objects, unique)
    objects.patch("maintenancerequests", name, {"status": {"reason": "LimitReached", "queuePosition": 4}}, "status")
    assert call("find", node)[:2] == (0, [name, 0, "LimitReached", 4])
    assert call("update", node, "InProgress") == (-3, None, "request is not yet approved")
    assert call("update", node, "Approved") == (-1, None, "cannot set state as approved")
    assert call("wait", node, "0")[0] == -5
    objects.move(name, "Approved")
    assert call("wait", node, str(LONG))[0] == 0
    assert call("is_approved", node)[:2] == (0, True)
    assert call("update", node, "InProgress")[0] == 0
    assert call("is_approved", node)[:2] == (0, False)
    assert call("wait", node, "0")[0] == -4
    assert call("withdraw", node) == (-3, None, "request is in progress: complete it instead")
    client.core.delete_node(node)  # it is replaced; that must not keep the slot
    assert call("update", node, "Completed")[0] == 0
    assert objects.state(name) == "Completed"
    assert call("withdraw", node)[0] == -2
    assert [r["metadata"]["name"] for r in objects.of(unique)] == [name]


def test_the_library_exports_what_its_header_declares():
    with open(os.path.join(os.path.dirname(__file__), "../../include/drydock.h"), encoding="utf-8") as f:
        declared = {line.split("(")[0].split()[-1].lstrip("*")
                    for line in f.read().replace("\n", " ").split("DRYDOCK_API ")[2:]}
    listed = subprocess.run(["nm", "-D", "--defined-only", library()], check=True, text=True,
                            capture_output=True, timeout=LONG).stdout
    exported = {line.split()[-1] for line in listed.splitlines() if " T " in line}
    assert exported == declared


def test_the_library_is_found_by_pkg_config(actor, objects, node, unique, tmp_path):
    """Installed as packages are, and used as its example says."""
    stage = tmp_path / "stage"
    subprocess.run(["meson", "install", "-C", build_folder(), "--no-rebuild", "--destdir", str(stage)],
                   check=True, capture_output=True, timeout=LONG)
    found = [os.path.join(folder, name) for folder, _, names in os.walk(stage) for name in names]
    pc, = [path for path in found if path.endswith("libdrydock.pc")]
    assert any(path.endswith("man3/libdrydock.3") for path in found)
    environment = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(pc), "PKG_CONFIG_SYSROOT_DIR": str(stage)}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libdrydock"], check=True, text=True,
                           capture_output=True, env=environment, timeout=LONG).stdout.split()
    program = str(tmp_path / "own")
    source = os.path.join(os.path.dirname(__file__), "../../examples/actor.c")
    folder = os.path.dirname([path for path in found if path.endswith("libdrydock.so")][0])
    sanitizers = ["-fsanitize=address,undefined"] if sanitized(library()) else []
    subprocess.run([shutil.which("cc"), "-Wall", "-Werror", *sanitizers, source, "-o", program, *flags,
                    f"-Wl,-rpath,{folder}"], check=True, timeout=LONG)
    process = actor(node, "true", program=program)
    objects.move(asked(objects, unique), "Approved")
    assert process.wait(LONG) == 0, process.log()
