"""A node changes its state, and those who asked for it are told: by mail, in a Slack thread, by a webhook."""

import hashlib
import hmac
import json
import pathlib
import re
import sys
import types
import urllib.parse

import pytest
import yaml

from contract import PROFILE, STATE
from objects import budget, pod
from process import Controller
from profiles import events
from wait import wait_for

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "servers"))
from servers import MailServer, WebServer, make_authority, server_context  # noqa: E402

DOCUMENTED = re.search(r"```python\n(.*?)```", (pathlib.Path(__file__).parents[2] / "docs/notifications.md").read_text(encoding="utf-8"), re.S)[1]
ONCE = {"type": "oneshot", "config": {"delay": "0s"}}


def config(label, notifications):
    """A profile "p" whose nodes need maintenance while they have the label."""
    return {
        "intervals": {"requeue": "1s"},
        "instances": {
            "check": [{"type": "hasLabel", "name": "asked", "config": {"key": label}}],
            "notify": [{"type": kind, "name": name, "config": settings, "schedule": ONCE}
                       for name, kind, settings in notifications]},
        "profiles": [{
            "name": "p",
            "operational": {"transitions": [{"check": "asked", "next": "maintenance-required"}]},
            "maintenance-required": {"notify": " && ".join(name for name, _, _ in notifications)}}]}


@pytest.fixture
def start(backend, tmp_path):
    """start(configuration, env): a controller that is ready; ended in order after the test."""
    running = []

    def run(configuration, env=None):
        path = tmp_path / "maintenance.yaml"
        path.write_text(yaml.safe_dump(configuration))
        controller = Controller(backend.kubeconfig, tmp_path / "controller",
                                flags=["--config", str(path)], env=env)
        running.append(controller)
        return controller.wait_ready()

    yield run
    for controller in running:
        controller.end()


def check_documented_verification(headers, body):
    """What docs/notifications.md tells receivers to do takes the message, and nothing that was changed or is old."""
    documented = {}
    exec(DOCUMENTED, documented)  # pylint: disable=exec-used
    verify = documented["verify"]
    assert verify(b"key", headers, body) == headers["webhook-id"]
    sent = int(headers["webhook-timestamp"])
    for other in ({"webhook-timestamp": str(sent + 1)}, {"webhook-timestamp": str(sent - 3600)}, {"webhook-id": "msg_other"},
                  {"webhook-signature": "v1,AAAA"}):
        with pytest.raises(ValueError):
            verify(b"key", {**dict(headers.items()), **other}, body)
    for secret, changed in ((b"key", body + b" "), (b"other", body)):
        with pytest.raises(ValueError):
            verify(secret, headers, changed)
    documented["time"] = types.SimpleNamespace(time=lambda: sent + 301)
    with pytest.raises(ValueError):
        verify(b"key", headers, body)


def test_a_change_is_told_by_every_way_once(client, make_node, start, unique, tmp_path):
    make_authority(tmp_path)
    tls = server_context(tmp_path, "local", "IP:127.0.0.1")
    posts = [(200, {}, b'{"ok":true,"ts":"7.1"}')]
    with MailServer(tls=tls, login=("me", "secret")) as mail, WebServer([(200, {}, b"")], tls) as hook, \
            WebServer(posts, tls) as slack:
        message = "{{ .Node.Name }} is {{ .State }} by {{ .Profile }}"
        start(config(unique, [
            ("letter", "mail", {"address": mail.address, "from": "a@b", "to": "c@d", "subject": "s",
                                "message": message, "auth": True, "user": "me", "password": "secret"}),
            ("hook", "webhook", {"url": hook.url + "/x", "secret": "key"}),
            ("thread", "slackThread", {
                "token": "t", "channel": "c", "title": "title", "message": message, "period": "1h",
                "leaseName": unique, "leaseNamespace": "default", "url": slack.url + "/api/chat.postMessage"}),
        ]), {"SSL_CERT_FILE": str(tmp_path / "ca.crt")})
        node = make_node(unique, {unique: "", PROFILE: "p"})
        wait_for(lambda: len(mail.mails) == 1 and len(hook.requests) == 1 and len(slack.requests) == 2,
                 "all three are told")
        told = f"{node} is maintenance-required by p"
        assert mail.mails[0].original_content.endswith(f"\r\n\r\n{told}\r\n".encode())
        assert mail.mails[0].encrypted and mail.logins == [("PLAIN", "me", "secret")]
        body = hook.requests[0][3]
        assert json.loads(body)["node"] == node
        assert hook.requests[0][2]["X-Drydock-Signature"] == "sha256=" + hmac.new(b"key", body, hashlib.sha256).hexdigest()
        check_documented_verification(hook.requests[0][2], body)
        texts = [urllib.parse.parse_qs(request[3].decode())["text"] for request in slack.requests]
        assert texts == [["title"], [told]]
        wait_for(lambda: client.leases.read_namespaced_lease(unique, "default").spec.holder_identity == "7.1",
                 what="the thread is noted")
        client.leases.delete_namespaced_lease(unique, "default")
        assert client.core.read_node(node).metadata.labels[STATE] == "maintenance-required"


def test_a_message_that_fails_is_tried_again_and_holds_up_nobody(client, make_node, start, unique):
    with WebServer([(503, {"Retry-After": "1"}, b"busy"), (503, {}, b"busy"), (200, {}, b"")]) as hook:
        start(config(unique, [("hook", "webhook", {"url": hook.url, "body": "{{ .Node.Name }}", "secret": "key"})]))
        first = make_node(unique + "-a", {unique: "", PROFILE: "p"})
        wait_for(lambda: hook.requests, "the first try")
        second = make_node(unique + "-b", {unique: "", PROFILE: "p"})
        for node in (first, second):
            wait_for(lambda: client.core.read_node(node).metadata.labels.get(STATE) == "maintenance-required",
                     f"{node} moves on")
        wait_for(lambda: {request[3].decode() for request in hook.requests[2:]} == {first, second},
                 "both are told")
        ids = {(request[3].decode(), request[2]["webhook-id"]) for request in hook.requests}
        assert len(ids) == 2, "every try of a message has its id"


def test_a_hook_that_is_down_does_not_keep_a_node_in_maintenance(client, make_node, start, unique):
    with WebServer([(503, {}, b"down")]) as hook:
        settings = config(unique, [("hook", "webhook", {"url": hook.url, "body": "{{ .State }}"})])
        settings["profiles"][0] = {
            "name": "p",
            "operational": {"transitions": [{"check": "asked", "next": "in-maintenance"}]},
            "in-maintenance": {"notify": "hook", "transitions": [{"check": "!asked", "next": "operational"}]}}
        controller = start(settings)
        node = make_node(unique, {unique: "", PROFILE: "p"})
        wait_for(lambda: controller.metric("drydock_notifications_unsent") == 1, "the message fails")
        shown = json.loads(controller.get("/api/v1/explain?node=" + node)[2])
        assert [(u["instance"], u["state"]) for u in shown["unsent"]] == [("hook", "in-maintenance")]
        assert "503" in shown["unsent"][0]["error"] and shown["unsent"][0]["next"]
        assert shown["profiles"][0]["transitions"][0]["checks"]
        client.core.patch_node(node, {"metadata": {"labels": {unique: None}}})
        wait_for(lambda: client.core.read_node(node).metadata.labels[STATE] == "operational", "its work is done")
        wait_for(lambda: any("503" in note for note in events(client, node, "NotificationFailed")), "an Event says why")


@pytest.mark.nodes(1)
def test_a_drain_that_stays_blocked_is_told_once(client, nodes, namespace, start, unique):
    with WebServer([(200, {}, b"")]) as hook:
        settings = config(unique, [("hook", "webhook", {"url": hook.url})])
        settings["instances"]["trigger"] = [{"type": "eviction", "name": "drain", "config": {"action": "drain"}}]
        settings["notify"] = {"drainBlocked": {"after": "1s", "instances": "hook"}}
        settings["profiles"][0] = {
            "name": "p", "operational": {"transitions": [{"check": "asked", "next": "in-maintenance", "trigger": "drain"}]}}
        client.core.create_namespaced_pod(namespace, pod("held", node=nodes[0]))
        wait_for(lambda: client.core.read_namespaced_pod("held", namespace).status.phase == "Running", "the pod runs")
        for name in ("one", "two"):  # no pod under two budgets can be evicted, so the drain is blocked at once
            client.policy.create_namespaced_pod_disruption_budget(namespace, budget(name, "held", minAvailable=1))
        start(settings)
        client.core.patch_node(nodes[0], {"metadata": {"labels": {PROFILE: "p", unique: ""}}})
        wait_for(lambda: hook.requests, "somebody is told")
        told = json.loads(hook.requests[0][3])
        assert (told["node"], told["state"]) == (nodes[0], "drainBlocked")
        assert told["reason"].startswith(f"pod {namespace}/held: several budgets cover it")
        for name in ("one", "two"):
            client.policy.delete_namespaced_pod_disruption_budget(name, namespace)
        wait_for(lambda: client.core.read_node(nodes[0]).metadata.labels[STATE] == "in-maintenance", "the drain goes on")
        assert len(hook.requests) == 1
