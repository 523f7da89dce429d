"""Notifications sent to real servers: aiosmtpd with STARTTLS and AUTH, HTTP and HTTPS servers."""

import base64
import hashlib
import hmac
import json
import os
import socket
import subprocess
import urllib.parse

import pytest
import yaml

from servers import MailServer, WebServer, make_authority, server_context

MESSAGE = 'Node {{ .Node.Name }} is {{ .State }}\n.\n{{ index .Node.Annotations "odd" }}\n'
RENDERED = 'Node node-1 is in-maintenance\n.\nü "<&>"\n'


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("authority")
    make_authority(folder)
    return folder


@pytest.fixture
def probe(tmp_path, authority):
    """probe(plugin, config, …): what the probe says of one message, or of `count` of them."""

    def run(plugin, config, count=1, trusted=True, env=None):
        path = tmp_path / "maintenance.yaml"
        path.write_text(yaml.safe_dump({
            "intervals": {"requeue": "1m"},
            "instances": {"notify": [{
                "type": plugin, "name": "it", "config": config,
                "schedule": {"type": "oneshot", "config": {}}}]}}, allow_unicode=True))
        environment = {"PATH": os.environ["PATH"],
                       **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}, **(env or {})}
        if trusted:
            environment["SSL_CERT_FILE"] = str(authority / "ca.crt")
        done = subprocess.run([os.environ["NOTIFY_PROBE"], path, *["it"] * count], env=environment,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def mail(server, **more):
    return {"address": server.address, "from": "drydock@example.org", "to": ["a@example.org", "b@example.org"],
            "subject": "Maintenance ü", "message": MESSAGE, **more}


def lines(text):
    return text.replace("\n", "\r\n").encode()


def test_mail_arrives_as_the_original_sends_it(probe):
    with MailServer() as server:
        assert probe("mail", mail(server)) == ["sent"]
        [envelope] = server.mails
        assert envelope.mail_from == "drydock@example.org"
        assert envelope.rcpt_tos == ["a@example.org", "b@example.org"]
        assert envelope.mail_options == ["BODY=8BITMIME", "SMTPUTF8"]
        assert envelope.original_content == (
            b"From: drydock@example.org\r\nTo: a@example.org,b@example.org\r\n"
            b"Subject: Maintenance \xc3\xbc\r\n\r\n" + lines(RENDERED))
        assert not envelope.encrypted
        assert server.commands == ["QUIT"]


def test_mail_is_encrypted_where_it_can_be(probe, authority):
    with MailServer(tls=server_context(authority, "local", "IP:127.0.0.1"), starttls_first=True) as server:
        assert probe("mail", mail(server)) == ["sent"]
        assert server.mails[0].encrypted


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_mail_logs_in_over_starttls(probe, authority, host):
    with MailServer(host, server_context(authority, host, f"IP:{host}"), login=("me", "secret ü")) as server:
        login = {"auth": True, "user": "me", "password": "secret ü"}
        assert probe("mail", mail(server, **login)) == ["sent"]
        assert server.logins == [("PLAIN", "me", "secret ü")]
        assert server.mails[0].encrypted


def test_mail_with_a_wrong_password_is_refused(probe, authority):
    with MailServer(tls=server_context(authority, "local", "IP:127.0.0.1"), login=("me", "secret")) as server:
        [said] = probe("mail", mail(server, auth=True, user="me", password="guess"))
        assert said.startswith("failed: the mail server answered 535: ")
        assert not server.mails
        # Without a login the server wants one.
        [said] = probe("mail", mail(server))
        assert said.startswith("failed: the mail server answered 530: ")


def test_mail_refuses_a_certificate_for_another_host(probe, authority):
    with MailServer(tls=server_context(authority, "other", "DNS:other.example")) as server:
        [said] = probe("mail", mail(server))
        assert "the certificate is not for this host" in said
        assert not server.mails


def test_mail_refuses_an_unknown_authority(probe, authority):
    with MailServer(tls=server_context(authority, "local", "IP:127.0.0.1"), login=("me", "secret")) as server:
        [said] = probe("mail", mail(server, auth=True, user="me", password="secret"), trusted=False)
        assert "certificate signed by unknown authority" in said
        assert not server.mails and not server.logins


def test_mail_sends_no_password_in_clear_to_another_host(probe):
    with MailServer("127.0.0.2", login=("me", "secret")) as server:
        [said] = probe("mail", mail(server, auth=True, user="me", password="secret"))
        assert "offers no STARTTLS" in said
        assert not server.logins and not server.mails
    with MailServer("127.0.0.1", login=("me", "secret")) as server:
        assert probe("mail", mail(server, auth=True, user="me", password="secret")) == ["sent"]


def test_mail_tells_why_it_was_refused(probe):
    with MailServer(refuse="552 5.2.2 mailbox full") as server:
        assert probe("mail", mail(server)) == [
            "failed: the mail server answered 552: 5.2.2 mailbox full (retry after 0 s)"]


def test_mail_goes_without_a_proxy(probe):
    with MailServer() as server:
        nowhere = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9",
                   "ALL_PROXY": "http://127.0.0.1:9"}
        assert probe("mail", mail(server), env=nowhere) == ["sent"]


def test_slack_posts_to_its_hook(probe, authority):
    with WebServer([(200, {}, b"ok"), (404, {}, b"channel_not_found")],
                   server_context(authority, "slack", "IP:127.0.0.1")) as server:
        config = {"hook": server.url + "/services/T/B/X", "channel": "#ops", "message": MESSAGE}
        assert probe("slack", config, count=2) == [
            "sent", "failed: slack webhook response is not ok: it answered 404: channel_not_found (retry after 0 s)"]
        method, path, headers, body = server.requests[0]
        assert (method, path, headers["Content-Type"]) == ("POST", "/services/T/B/X", "application/json")
        assert json.loads(body) == {"text": RENDERED, "channel": "#ops"}
        assert b"\\u003c\\u0026\\u003e" in body


def test_slack_keeps_its_hook_out_of_messages(probe, authority):
    with WebServer([(200, {}, b"ok")], server_context(authority, "wrong", "DNS:other.example")) as server:
        [said] = probe("slack", {"hook": server.url + "/services/SECRET", "channel": "c", "message": "m"})
        assert said.startswith(f"failed: slack: server '{server.url}': the certificate is not for this host")
        assert "SECRET" not in said


def test_slack_threads_go_on(probe):
    answers = [(200, {}, b'{"ok":true,"ts":"171.5"}'), (200, {}, b'{"ok":true,"ts":"172.5"}'),
               (200, {}, b'{"ok":true,"ts":"173.5"}'), (429, {"Retry-After": "7"}, b"")]
    with WebServer(answers) as server:
        config = {"token": "xoxb", "channel": "#ops", "title": "Updates", "message": MESSAGE, "period": "1h",
                  "leaseName": "thread", "leaseNamespace": "default", "url": server.url + "/api/chat.postMessage"}
        assert probe("slackThread", config, count=3) == [
            "sent", "sent", "failed: slack rate limit exceeded, retry after 7s (retry after 7 s)"]
        posts = [dict(urllib.parse.parse_qsl(body.decode())) for _, _, _, body in server.requests]
        escaped = RENDERED.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        reply = {"channel": "#ops", "text": escaped, "thread_ts": "171.5", "token": "xoxb"}
        assert posts == [{"channel": "#ops", "text": "Updates", "token": "xoxb"}, reply, reply, reply]


def test_webhook_sends_a_signed_document(probe, authority):
    with WebServer([(204, {}, b"")], server_context(authority, "hook", "IP:127.0.0.1")) as server:
        assert probe("webhook", {"url": server.url + "/hook?a=b", "secret": "s3cret",
                                 "headers": ["Authorization: Bearer x"]}) == ["sent"]
        method, path, headers, body = server.requests[0]
        assert (method, path) == ("POST", "/hook?a=b")
        assert headers["Content-Type"] == "application/json"
        assert headers["Authorization"] == "Bearer x"
        assert headers["User-Agent"].startswith("drydock/")
        assert headers["X-Drydock-Signature"] == "sha256=" + hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        assert headers["webhook-signature"] == "v1," + base64.b64encode(hmac.new(b"s3cret", signed, hashlib.sha256).digest()).decode()
        assert json.loads(body) == {"node": "node-1", "profile": "reboot", "state": "in-maintenance",
                                    "inMaintenance": True, "lastTransition": "2026-03-02T08:00:00Z"}


def test_webhook_passes_on_when_to_come_back_and_follows_nothing(probe):
    with WebServer([(503, {"Retry-After": "30"}, b"busy"), (307, {"Location": "/other"}, b"")]) as server:
        assert probe("webhook", {"url": server.url, "method": "PUT", "body": "x"}, count=2) == [
            "failed: the webhook answered 503: busy (retry after 30 s)",
            "failed: the webhook answered 307 (retry after 0 s)"]
        assert [request[:2] for request in server.requests] == [("PUT", "/"), ("PUT", "/")]


def test_webhook_that_never_answers_is_given_up(probe):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        assert probe("webhook", {"url": url, "timeout": "3s"}) == [
            f"failed: server '{url}': no answer in 3000 ms, from the server (retry after 0 s)"]
