"""Habits of people who know kubectl: flags, forms of output, completion, and what is told at once."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time

import pytest
import yaml

from process import Controller, drydock
from requests_api import install
from step_config import label, state, step_config, write
from wait import wait_for

SOON = 8  # seconds; what is retried takes 18


def run(*arguments, env=None, program=None):
    return subprocess.run([program or drydock(), *arguments], text=True, capture_output=True, timeout=120,
                          check=False, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})


def out(*arguments, **kwargs):
    result = run(*arguments, **kwargs)
    assert result.returncode == 0, f"{arguments}: {result.stdout}{result.stderr}"
    return result.stdout


def kubeconfig(path, server, user=None, **cluster):
    path.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}), encoding="utf-8")
    return str(path)


# ---- what is wrong with a command line ----

@pytest.mark.parametrize("arguments,message", [
    (["stauts"], "unknown command 'stauts', did you mean 'status'?"),
    (["help", "explian"], "unknown command 'explian', did you mean 'explain'?"),
    (["--context", "x", "status"], "flags stand behind the command, found '--context'"),
    (["status", "--contxt", "x"], "unknown flag '--contxt', did you mean '--context'?"),
    (["status", "-oxml"], "flag '-o': found 'xml', want one of text|wide|json|yaml|name"),
    (["run", "worker-7"], "there is no command to run on 'worker-7': want worker-7 -- COMMAND…"),
    (["run", "--", "echo"], "the node is missing: want NODE before '--', found the command 'echo' alone"),
    (["run"], "want a node and a command: NODE -- COMMAND…"),
    (["run", "a", "b", "--", "echo"], "unexpected argument 'b' before '--'"),
])
def test_a_wrong_command_line_says_what_is_wrong(arguments, message):
    result = run(*arguments)
    assert result.returncode == 2 and message in result.stderr


def test_help_names_flags_as_they_are_written():
    text = out("status", "--help")
    for flag in ("  -o, --output text|wide|json|yaml|name\n", "  -n, --namespace NAME", "  -w, --watch",
                 "  --context, --kubecontext NAME", "  -v N"):
        assert flag in text
    assert not [line for line in text.splitlines() if len(line) > 80]
    assert "usage: drydock completion" in out("completion", "--help")


# ---- what waiting does not mend ----

@pytest.mark.backend("sandbox")
@pytest.mark.parametrize("command", [["limits"], ["request", "a"], ["complete", "a"], ["status"], ["abort", "a"], ["pause"], ["resume"], ["uninstall"]])
@pytest.mark.parametrize("wrong", ["refused", "host", "authority", "plugin"])
def test_a_failure_that_stays_is_told_at_once(command, wrong, backend, tmp_path):
    with open(backend.kubeconfig, encoding="utf-8") as file:
        real = yaml.safe_load(file)["clusters"][0]["cluster"]["server"]
    path = tmp_path / "kubeconfig"
    if wrong == "refused":
        flags, message = kubeconfig(path, "http://127.0.0.1:1"), "Connection refused"
    elif wrong == "host":
        flags, message = kubeconfig(path, "http://nobody.invalid"), "no such host"
    elif wrong == "authority":
        if not real.startswith("https:"):
            pytest.skip("this back end serves no TLS")
        flags, message = kubeconfig(path, real), "unknown authority"
    else:
        plugin = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin",
                           "interactiveMode": "Never"}}
        flags, message = kubeconfig(path, real, plugin), "'no-such-plugin' not found in PATH"
    began = time.monotonic()
    result = run(*command, "--kubeconfig", flags)
    assert result.returncode == 1 and message in " ".join(result.stderr.split())
    assert time.monotonic() - began < SOON


# ---- a controller on this machine ----

@pytest.fixture
def controller(backend, tmp_path):
    config = write(tmp_path / "maintenance.yaml", step_config())
    with Controller(backend.kubeconfig, tmp_path, flags=["--config", str(config)]) as started:
        yield started.wait_ready()


@pytest.fixture
def flags(backend, controller):
    return ("--kubeconfig", str(backend.kubeconfig), "--port", str(controller.metrics_port))


@pytest.mark.backend("sandbox")
def test_a_controller_on_this_machine_is_found(client, nodes, flags, tmp_path, backend):
    name = nodes[0]
    label(client, name, profile="os", due="yes")
    wait_for(lambda: state(client, name) == "maintenance-required")
    assert "nodes: " in out("status", *flags)
    assert f"node {name}: " in out("explain", name, *flags, "--context", "sandbox")
    assert "there is no node 'nobody'" in run("explain", "nobody", *flags).stderr
    assert f"node/{name}\n" in out("status", *flags, "-o", "name")
    assert out("explain", name, *flags, "-oname") == f"node/{name}\n"
    document = yaml.safe_load(out("explain", name, *flags, "-o", "yaml"))
    same = json.loads(out("explain", name, *flags, "-o", "json"))
    assert {**document, "now": 0} == {**same, "now": 0}
    traced = run("status", *flags, "-v", "1").stderr
    assert "GET /api/v1/status?format=text 200 in " in traced

    # Another cluster's controller is not taken for this one's.
    with open(backend.kubeconfig, encoding="utf-8") as file:
        other = yaml.safe_load(file)
    other["contexts"][0]["name"] = other["current-context"] = "other"
    (tmp_path / "other").write_text(yaml.safe_dump(other), encoding="utf-8")
    told = run("status", "--kubeconfig", str(tmp_path / "other"), *flags[2:])
    assert told.returncode == 1 and "is of another cluster, 'sandbox'" in told.stderr


# ---- completion ----

@pytest.mark.backend("sandbox")
def test_names_are_completed_from_the_cluster(backend, client, nodes, tmp_path):
    install(backend, tmp_path)
    where = ("--kubeconfig", str(backend.kubeconfig))
    assert nodes[0] in out("__complete", "explain", *where, "node", nodes[0][:-1]).splitlines()
    assert nodes[0] in out("__complete", "run", *where, "").splitlines()
    made = out("request", nodes[0], *where, "-o", "name").strip().rpartition("/")[2]
    assert {made, nodes[0]} <= set(out("__complete", "complete", *where, "").splitlines())
    assert out("withdraw", nodes[0], *where, "-o", "name").strip().endswith(made)
    # Nobody answers: nothing is offered, and nobody waits for it.
    began = time.monotonic()
    silent = kubeconfig(tmp_path / "silent", "http://127.0.0.1:1")
    assert out("__complete", "run", "--kubeconfig", silent, "") == ":4\n"
    assert time.monotonic() - began < SOON


@pytest.mark.backend("sandbox")
def test_kubectl_completes_the_plugin(backend, nodes, tmp_path):
    for link in ("kubectl-drydock", "kubectl_complete-drydock"):
        (tmp_path / link).symlink_to(drydock())
    env = {**backend.kubectl_env(), "KUBECONFIG": str(backend.kubeconfig), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    kubectl = backend.kubectl_path()
    assert "explain" in out("__complete", "drydock", "ex", program=kubectl, env=env)
    assert nodes[0] in out("__complete", "drydock", "explain", "node", "", program=kubectl, env=env).splitlines()


# ---- at a terminal ----

def at_terminal(arguments, env=None, act=None, columns=80):
    """(exit code, what stood on the terminal) of a command; `act` is called with what is printed so far."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        os.execvpe(drydock(), [drydock(), *arguments], {**os.environ, "TERM": "xterm", **(env or {})})
    text = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            piece = b""
        if not piece:
            break
        text += piece
        if act and act(text.decode(errors="replace"), terminal):
            act = None
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text.decode(errors="replace")


@pytest.mark.backend("sandbox")
def test_a_terminal_has_colours_unless_they_are_not_wanted(client, nodes, flags):
    label(client, nodes[0], profile="os", due="yes")
    wait_for(lambda: state(client, nodes[0]) == "maintenance-required")
    code, text = at_terminal(["explain", nodes[0], *flags])
    assert code == 0 and "\033[1mnode " in text
    assert "\033" not in at_terminal(["explain", nodes[0], *flags], env={"NO_COLOR": "1"})[1]
    assert "\033" not in out("explain", nodes[0], *flags)


@pytest.mark.backend("sandbox")
def test_a_terminal_that_is_wide_is_used(client, nodes, flags):
    label(client, nodes[0], profile="os", due="yes", approved="yes")
    wait_for(lambda: state(client, nodes[0]) == "in-maintenance")

    def widest(columns):
        text = at_terminal(["explain", nodes[0], *flags], env={"NO_COLOR": "1"}, columns=columns)[1]
        return max(len(line) for line in text.splitlines())
    assert widest(80) <= 80 < widest(160) <= 160


@pytest.mark.backend("sandbox")
@pytest.mark.parametrize("served", [True, False])
def test_ctrl_c_ends_a_controller_at_once(backend, served, tmp_path):
    """Without waiting for a scrape: --metrics-timeout is an hour here."""
    where = str(backend.kubeconfig) if served else kubeconfig(tmp_path / "nobody", "http://127.0.0.1:1")
    sign = "nodes are known" if served else "watch failed"  # signals are taken by then

    def press(text, terminal):
        if sign not in text:
            return False
        os.write(terminal, b"\x03")
        return True
    code, text = at_terminal(["controller", "--kubeconfig", where, "--metrics-addr", "127.0.0.1:0", "--health-addr",
                              "0", "--metrics-timeout", "1h"], act=press)
    assert code == 0 and "See you later" in text


@pytest.mark.backend("sandbox")
def test_sigterm_ends_a_controller_that_never_served(tmp_path):
    nobody = kubeconfig(tmp_path / "nobody", "http://127.0.0.1:1")
    with Controller(nobody, tmp_path, flags=["--metrics-timeout", "1h"]) as started:
        wait_for(lambda: "watch failed" in started.log(), what="it has tried")
        started.send(signal.SIGTERM)
        assert started.wait() == 0
