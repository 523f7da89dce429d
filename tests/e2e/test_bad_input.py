"""What is wrong in files, certificates and answers: a clear message, and life goes on where it can."""

import base64
import json
import os
import re
import stat
import subprocess

import pytest

from contract import is_fresh
from hostile import Hostile, Mute, certificate, node
from process import Controller, Port, drydock
from proxy import Proxy
from wait import Late, holds_for, wait_for

MEMORY_MAX = 96 * 1024 * 1024  # of a controller that is fed endless answers


@pytest.fixture
def start(tmp_path):
    """start(kubeconfig): a controller, not waited for; it must survive the test and end in order."""
    running = []

    def run(kubeconfig, flags=(), env=None):
        controller = Controller(kubeconfig, tmp_path / "controller", flags=flags, env=env)
        running.append(controller)
        return controller

    yield run
    try:
        for controller in running:
            if controller.stopped:
                continue
            assert controller.alive(), f"the controller has ended\n{controller.log()[-4000:]}"
            assert "AddressSanitizer" not in controller.log()
            controller.stop()
    finally:
        for controller in running:
            controller.end()


def says(controller, *words):
    """Waits for one line of the log that has all the words."""
    def found():
        return next((line for line in controller.log().splitlines()
                     if all(re.search(word, line, re.I) for word in words)), None)
    try:
        return wait_for(found, f"the log says {words}")
    except Late as late:
        raise Late(f"{late}\nit says\n{controller.log()[-2000:]}") from None


# --- kubeconfig ---

GOOD = """apiVersion: v1
kind: Config
current-context: c
contexts:
- name: c
  context: {cluster: c, user: u}
clusters:
- name: c
  cluster: {server: "http://127.0.0.1:1"}
users:
- name: u
  user: {}
"""

BAD_FILES = {
    # what is wrong: (text, words of the message)
    "garbage": (GOOD.replace("contexts:", "contexts: ]["), ["line 4"]),
    "tab": (GOOD.replace("  context: {", "\tcontext: {"), ["line 6"]),
    "duplicate-key": (GOOD + "current-context: d\n", ["current-context|duplicate"]),
    "not-a-map": ("- just\n- a list\n", ["kubeconfig|map|object"]),
    "empty": ("", ["."]),
    "no-current-context": (GOOD.replace("current-context: c\n", ""), ["context"]),
    "unknown-context": (GOOD.replace("current-context: c", "current-context: sea"), ["sea"]),
    "unknown-cluster": (GOOD.replace("cluster: c, user", "cluster: lost, user"), ["lost"]),
    "unknown-user": (GOOD.replace("user: u}", "user: ghost}"), ["ghost"]),
    "no-server": (GOOD.replace('{server: "http://127.0.0.1:1"}', "{}"), ["server"]),
    "bad-scheme": (GOOD.replace("http://127.0.0.1:1", "gopher://127.0.0.1"), ["gopher|scheme|server"]),
    "bad-base64": (GOOD.replace("user: {}", "user: {client-certificate-data: '%%%', "
                                            "client-key-data: '%%%'}"),
                   ["client-(certificate|key)-data"]),
    "bad-ca": (GOOD.replace('"}', '", certificate-authority-data: '
                            + base64.b64encode(b"no PEM").decode() + "}").replace("http:", "https:"),
               ["certificate-authority|CA|PEM"]),
    "missing-ca-file": (GOOD.replace('"}', '", certificate-authority: /nowhere/ca.crt}')
                        .replace("http:", "https:"), ["/nowhere/ca.crt"]),
    "missing-key-file": (GOOD.replace("user: {}", "user: {client-certificate: /nowhere/c, "
                                                  "client-key: /nowhere/k}"), ["/nowhere/[ck]"]),
}


def refused(path, *flags, env=None):
    """Runs a controller that cannot start: its message."""
    result = subprocess.run(
        [drydock(), "controller", *(["--kubeconfig", str(path)] if path else []),
         "--metrics-addr", "127.0.0.1:0", "--health-addr", "0", *flags],
        capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **(env or {})})
    assert result.returncode == 1, f"exit status {result.returncode}\n{result.stderr}"
    assert "Sanitizer" not in result.stderr
    return result.stderr


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_bad_kubeconfig_is_refused_with_its_place(what, tmp_path):
    text, words = BAD_FILES[what]
    path = tmp_path / "kube.config"
    path.write_text(text, encoding="utf-8")
    message = refused(path)
    assert str(path) in message or what in ("bad-scheme", "bad-ca"), "the file is named"
    for word in words:
        assert re.search(word, message.replace(str(path), "")), f"{word} is not in: {message}"


def test_a_missing_token_file_is_named_and_waited_for(start, tmp_path):
    token = tmp_path / "token"
    with Hostile() as server:
        server.token = "new"
        controller = start(server.kubeconfig(tmp_path / "k", user={"tokenFile": str(token)}))
        says(controller, str(token), "no such file")
        token.write_text("new\n", encoding="ascii")
        wait_for(lambda: server.labelled("good"), "labelled")


def test_a_missing_kubeconfig_is_named(tmp_path):
    message = refused(tmp_path / "none")
    assert str(tmp_path / "none") in message and "no such file" in message.lower()


def test_a_folder_is_no_kubeconfig(tmp_path):
    assert str(tmp_path) in refused(tmp_path)


def test_an_unreadable_kubeconfig_is_named(tmp_path):
    path = tmp_path / "kube.config"
    path.write_bytes(b"\xff\xfe\x00binary")
    assert str(path) in refused(path)


def test_no_access_at_all_says_what_was_looked_for(tmp_path):
    message = refused(None, env={"KUBECONFIG": "", "HOME": str(tmp_path),
                                 "KUBERNETES_SERVICE_HOST": ""})
    assert "kubeconfig" in message.lower()


def test_an_unknown_kubecontext_is_named(tmp_path):
    path = tmp_path / "kube.config"
    path.write_text(GOOD, encoding="utf-8")
    assert "harbour" in refused(path, "--kubecontext", "harbour")


# --- connections and credentials ---


def test_a_refused_connection_is_tried_until_the_server_is_there(backend, client, make_node, unique,
                                                                 start, tmp_path):
    access = backend.access
    with Proxy(access.host, access.port) as proxy:
        proxy.refuse()
        scheme = "https" if access.tls else "http"
        path = access.variant(tmp_path / "k", {"server": f"{scheme}://127.0.0.1:{proxy.port}"})
        name = make_node(unique)
        controller = start(path)
        # Reset at once: how far the client got before it noticed is chance.
        says(controller, "connect|reset|refused|handshake|Broken pipe|SSL|eof", "127.0.0.1")
        assert controller.health("/readyz")[0] != 200
        proxy.resume()
        wait_for(lambda: is_fresh(client.core.read_node(name)), "labelled")
        controller.wait_ready()


def test_a_server_that_is_not_there_yet(start, tmp_path):
    with Port() as port:
        path = tmp_path / "k"
        path.write_text(GOOD.replace("127.0.0.1:1", f"127.0.0.1:{port.number}"), encoding="utf-8")
        controller = start(path)
        says(controller, "refused|connect", f"127.0.0.1.*{port.number}")
        holds_for(controller.alive, 1)


def test_a_wrong_authority_is_not_trusted(start, tmp_path):
    tls, other = certificate(tmp_path, "server"), certificate(tmp_path, "other")
    with Hostile(tls=tls) as server:
        path = server.kubeconfig(tmp_path / "k", **{"certificate-authority": other[0]})
        controller = start(path)
        says(controller, "certificate|SSL|TLS")
        assert server.seen == []
        # And the right one is.
        controller.stop()
        controller = start(server.kubeconfig(tmp_path / "k2", **{"certificate-authority": tls[0]}))
        wait_for(lambda: server.labelled("good"), what="labelled")


def test_an_expired_token_is_reported_and_a_new_one_used(start, tmp_path):
    token = tmp_path / "token"
    token.write_text("old", encoding="ascii")
    with Hostile() as server:
        server.token = "new"
        controller = start(server.kubeconfig(tmp_path / "k", user={"tokenFile": str(token)}))
        says(controller, "401|Unauthorized")
        assert controller.health("/readyz")[0] != 200
        token.write_text("new", encoding="ascii")
        wait_for(lambda: server.labelled("good"), "labelled")


def test_an_invalid_token_on_the_real_thing(backend, start, tmp_path):
    path = backend.access.variant(tmp_path / "k", user={
        "token": "invalid", "client-certificate-data": None, "client-key-data": None})
    says(start(path), "401|Unauthorized")


def script(path, text):
    path.write_text("#!/bin/sh\n" + text, encoding="ascii")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def exec_user(command, **more):
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command,
                     "interactiveMode": "Never", **more}}


@pytest.mark.parametrize("text, words", [
    ("echo no credentials today >&2; exit 3\n", ["no credentials today|exit|status|3"]),
    ("echo not json\n", ["exec|credential|json"]),
    ("kill -9 $$\n", ["signal|killed|9"]),
    ("head -c 100000000 /dev/zero\n", ["exec|credential|too|output|limit"]),
], ids=["exit-3", "no-json", "killed", "endless"])
def test_a_failing_exec_plugin_is_reported_and_tried_again(start, tmp_path, text, words):
    plugin = tmp_path / "plugin"
    script(plugin, text)
    with Hostile() as server:
        controller = start(server.kubeconfig(tmp_path / "k", user=exec_user(str(plugin))))
        says(controller, "plugin", *words)
        good = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                "status": {"token": "t"}}
        script(tmp_path / "next", f"echo '{json.dumps(good)}'\n")
        os.replace(tmp_path / "next", plugin)
        wait_for(lambda: server.labelled("good"), "labelled")


def test_a_missing_exec_plugin_is_named(start, tmp_path):
    with Hostile() as server:
        path = server.kubeconfig(tmp_path / "k", user=exec_user("/nowhere/plugin"))
        says(start(path), "/nowhere/plugin")


# --- answers ---


def lines(*texts):
    """A watch that says these lines after a good beginning, then stays open."""
    def answer(handler):
        owner = handler.server.owner
        handler.begin()
        for text in texts:
            handler.chunk(text if isinstance(text, bytes) else text.encode() + b"\n")
        owner.hold(handler)
    return answer


BAD_LINES = {
    "cut-off": '{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"x"',
    "no-json": "<html>gateway</html>",
    "no-object": "[1,2,3]",
    "no-type": '{"object":{"kind":"Node","metadata":{"name":"x","resourceVersion":"5"}}}',
    "unknown-type": '{"type":"SUNK","object":{"kind":"Node","metadata":{"name":"x","resourceVersion":"5"}}}',
    "no-name": '{"type":"ADDED","object":{"kind":"Node","metadata":{"resourceVersion":"5"}}}',
    "name-is-number": '{"type":"ADDED","object":{"kind":"Node","metadata":{"name":5,"resourceVersion":"5"}}}',
    "bad-version": '{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"x","resourceVersion":"many"}}}',
    "labels-are-text": '{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"x","labels":"a",'
                       '"resourceVersion":"5"}}}',
    "deep": "[" * 100000,
    "name-not-utf8": b'{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"\xff\xfe\x80",'
                     b'"uid":"u","resourceVersion":"5"}}}\n',
    "name-with-slash": '{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"../../x",'
                       '"uid":"u","resourceVersion":"5"}}}',
    "nul": b'{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"a\x00b",'
           b'"resourceVersion":"5"}}}\n',
    "error-event": '{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":500,'
                   '"message":"sunk"}}',
}


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_malformed_watch_line_is_reported_and_survived(what, start, tmp_path):
    with Hostile() as server:
        server.answers = {"watch": lines(server.events()[0], BAD_LINES[what])}
        controller = start(server.kubeconfig(tmp_path / "k"))
        says(controller, "cannot be read|watch failed|expired|not valid|invalid|Failed")
        controller.log().encode("utf-8")  # whatever came in, the log is text
        assert "\\xff" not in controller.log()
        assert "../" not in "".join(p for _, method, p in server.seen if method == "PATCH")
        server.behave()
        wait_for(lambda: server.labelled("good"), "the good node is labelled")
        wait_for(lambda: controller.health("/readyz")[0] == 200, "ready again")


def test_a_large_annotation_is_no_trouble(start, tmp_path):
    with Hostile(("big", "good")) as server:
        server.nodes["big"] = node("big", 1000, {"blob": "x" * 1024 * 1024})
        controller = start(server.kubeconfig(tmp_path / "k"))
        wait_for(lambda: server.labelled("good") and server.labelled("big"), "labelled")
        assert controller.usage()[2] < MEMORY_MAX


def test_an_annotation_no_server_would_store_is_reported(start, tmp_path):
    """10 MB: a real server refuses 256 KiB. It is not read, and work goes on when it is gone."""
    with Hostile(("big", "good")) as server:
        server.nodes["big"] = node("big", 1000, {"blob": "x" * 10 * 1024 * 1024})
        controller = start(server.kubeconfig(tmp_path / "k"))
        says(controller, "longer than|too (large|long|big)", "bytes|MiB")
        assert controller.health("/healthz")[0] == 200
        assert controller.usage()[2] < MEMORY_MAX
        server.nodes["big"] = node("big", 1001)
        server.behave()
        wait_for(lambda: server.labelled("good") and server.labelled("big"), "labelled")


def endless(prefix, piece):
    def answer(handler):
        handler.begin()
        handler.chunk(prefix)
        while not handler.server.owner.closing.is_set():
            handler.chunk(piece)  # ends with an OSError when the client has had enough
    return answer


ENDLESS = {
    "line": endless(b'{"type":"ADDED","object":{"metadata":{"name":"', b"x" * 65536),
    "blanks": endless(b"", b" " * 65536),
    "nesting": endless(b"", b"[" * 65536),
    "numbers": endless(b'{"type":', b"9" * 65536),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_endless_answer_is_cut_off(what, start, tmp_path):
    with Hostile() as server:
        server.answers = {"watch": ENDLESS[what], "list": ENDLESS[what]}
        controller = start(server.kubeconfig(tmp_path / "k"))
        says(controller, "longer than|too (large|long|big|deep)|cannot be read")
        assert controller.usage()[2] < MEMORY_MAX
        server.behave()
        wait_for(lambda: server.labelled("good"), "the good node is labelled")


ANSWERS = {
    "html": lambda h: h.answer(200, b"<html>please log in</html>", "text/html"),
    "error-page": lambda h: h.answer(502, b"<html>bad gateway</html>", "text/html"),
    "redirect": lambda h: h.answer(302, b"", headers={"Location": "http://127.0.0.1:1/"}),
    "forbidden": lambda h: h.answer(403, {
        "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": 'nodes is forbidden: User "u" cannot watch resource "nodes"'}),
    "empty": lambda h: h.answer(200, b""),
    "no-content": lambda h: h.answer(204, b""),
    "wrong-kind": lambda h: h.answer(200, {"kind": "PodList", "items": [{"metadata": {"name": "p"}}]}),
    "busy": lambda h: h.answer(429, {"kind": "Status", "status": "Failure", "code": 429,
                                     "message": "too many requests"}, headers={"Retry-After": "1"}),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_a_wrong_answer_is_reported_and_survived(what, start, tmp_path):
    with Hostile() as server:
        server.answers = {"any": ANSWERS[what]}
        controller = start(server.kubeconfig(tmp_path / "k"))
        says(controller, "warn|error")
        assert controller.health("/readyz")[0] != 200
        # It backs off: no more than a few requests a second.
        seen = len(server.seen)
        holds_for(lambda: len(server.seen) - seen < 20, 1, "it backs off")
        server.behave()
        wait_for(lambda: server.labelled("good"), "the good node is labelled")


PATCH_ANSWERS = {
    "garbage": lambda h: h.answer(200, b"}{", "application/json"),
    "invalid": lambda h: h.answer(422, {"kind": "Status", "status": "Failure", "code": 422,
                                        "reason": "Invalid", "message": "no"}),
    "forbidden": lambda h: h.answer(403, {"kind": "Status", "status": "Failure", "code": 403,
                                          "reason": "Forbidden", "message": "no patch for you"}),
}


@pytest.mark.parametrize("what", PATCH_ANSWERS)
def test_a_patch_that_fails_is_not_repeated_in_a_storm(what, start, tmp_path):
    with Hostile() as server:
        server.answers = {"patch": PATCH_ANSWERS[what]}
        controller = start(server.kubeconfig(tmp_path / "k"))
        wait_for(lambda: server.count("patch") >= 1, what="a patch was tried")
        before = server.count("patch")
        holds_for(lambda: server.count("patch") - before < 20, 1, "no storm")
        assert controller.alive()
        server.behave()
        wait_for(lambda: server.labelled("good"), "labelled when patches work again")


def conflict(handler):
    """Somebody else was faster: the node has changed, and its watchers are told."""
    handler.server.owner.touch("good")
    handler.answer(409, {"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict",
                         "message": "changed"})


def test_a_conflict_is_decided_anew_on_what_changed(start, tmp_path):
    with Hostile() as server:
        server.answers = {"patch": conflict}
        controller = start(server.kubeconfig(tmp_path / "k"))
        wait_for(lambda: server.count("patch") >= 3, what="it tries again on the new version")
        server.behave()
        wait_for(lambda: server.labelled("good"), "labelled when nobody else is faster")
        assert controller.metric("drydock_patch_conflicts_total") >= 3


@pytest.mark.parametrize("words", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\n"],
                         ids=["silent", "other-protocol", "half-a-header"])
def test_a_peer_that_speaks_no_http(words, start, tmp_path):
    with Mute(words) as peer:
        path = tmp_path / "k"
        path.write_text(GOOD.replace("127.0.0.1:1", f"127.0.0.1:{peer.port}"), encoding="utf-8")
        controller = start(path)
        wait_for(lambda: peer.peers, what="it connects")
        wait_for(lambda: controller.health("/healthz")[0] == 200, what="it is alive")
        assert controller.health("/readyz")[0] != 200
        if words.startswith(b"SSH"):
            says(controller, "warn|error", "127.0.0.1|http|answer")
