"""Who may read what a controller serves: TLS, tokens and certificates of clients, and what strangers can do to it."""

import contextlib
import http.client
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading

import pytest
import yaml

from hostile import certificate
from process import Controller, Process, drydock
from wait import wait_for

LEASE = "maintenance-controller-leader-election.cloud.sap"
CONNECTIONS_MAX = 512  # of one port (src/host/http_server.h)
MEMORY_MAX = 64 * 1024 * 1024


class Tls:
    """A certificate in files that a server reads, and requests to that server."""

    def __init__(self, folder, name="serving"):
        self.folder = folder
        self.cert, self.key = certificate(folder, name)
        self.flags = ["--tls-cert-file", self.cert, "--tls-private-key-file", self.key]

    def replace(self, name):
        cert, key = certificate(self.folder, name)
        os.replace(key, self.key)
        os.replace(cert, self.cert)

    def context(self, pair=None):
        context = ssl.create_default_context(cafile=self.cert)
        if pair:
            context.load_cert_chain(*pair)
        return context

    def fetch(self, port, path, token=None, method="GET", headers=None, pair=None):
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=self.context(pair))
        try:
            sent = dict(headers or {})
            if token:
                sent["Authorization"] = f"Bearer {token}"
            connection.request(method, path, headers=sent)
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()


@pytest.fixture
def tls(tmp_path):
    return Tls(tmp_path)


@pytest.fixture
def account(backend, client, namespace):
    """account(name, paths): (name of the user, a token of it); it may get these paths."""
    made = []

    def make(name, *paths, audiences=None):
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        assert backend.access.request("POST", path, {"metadata": {"name": name}})[0] == 201
        unique = f"{namespace}-{name}"
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        if paths:
            assert backend.access.request("POST", f"{rbac}/clusterroles", {
                "metadata": {"name": unique}, "rules": [{"nonResourceURLs": list(paths), "verbs": ["get"]}]})[0] == 201
            assert backend.access.request("POST", f"{rbac}/clusterrolebindings", {
                "metadata": {"name": unique}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": unique},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]})[0] == 201
            made.extend((f"{rbac}/clusterrolebindings/{unique}", f"{rbac}/clusterroles/{unique}"))
        spec = {"spec": {"audiences": audiences}} if audiences else {}
        status, reply = backend.access.request("POST", f"{path}/{name}/token", spec)
        assert status == 201, reply
        return f"system:serviceaccount:{namespace}:{name}", reply["status"]["token"]

    yield make
    for path in made:
        backend.access.request("DELETE", path)


@pytest.fixture
def serve(launch, tls):
    """serve(flags…): a controller behind TLS that asks the cluster who may read."""
    def run(*flags, config="profiles: []\n", name="controller"):
        return launch(config, name=name, flags=[*tls.flags, "--auth=cluster", *flags])
    return run


def error(reply):
    return reply[0], json.loads(reply[2])["error"]


def test_metrics_api_and_dashboard_need_a_token_and_probes_do_not(serve, tls, account):
    everything = account("everything", "*")[1]
    scraper, token = account("scraper", "/metrics")
    controller = serve()
    for path in ("/metrics", "/", "/static/app.js", "/api/v1/info", "/api/v1/status", "/api/v1/events", "/api/v1/limits", "/nowhere"):
        status, headers, _ = tls.fetch(controller.metrics_port, path)
        assert status == 401 and headers["WWW-Authenticate"] == 'Bearer realm="drydock"', path
        assert tls.fetch(controller.metrics_port, path, "made-up")[0] == 401, path
    for path in ("/metrics", "/", "/api/v1/info", "/api/v1/status"):
        assert tls.fetch(controller.metrics_port, path, everything)[0] == 200, path
    assert "drydock_http_auth_total" in tls.fetch(controller.metrics_port, "/metrics", token)[2]
    assert error(tls.fetch(controller.metrics_port, "/api/v1/status", token)) == (
        403, f"'{scraper}' may not get '/drydock/api/v1/status': no ClusterRole of theirs has this verb and nonResourceURL")
    assert tls.fetch(controller.metrics_port, "/metrics", token, method="POST")[0] == 403
    for path in ("/healthz", "/readyz"):
        assert controller.health(path)[0] == 200
    assert token not in controller.log() and everything not in controller.log()


def test_plain_http_on_a_port_with_tls_is_no_answer(serve):
    controller = serve()
    with pytest.raises((http.client.HTTPException, OSError)):
        controller.get("/metrics")
    assert controller.health("/readyz")[0] == 200


def test_tokens_must_be_for_the_audience(serve, tls, account):
    plain = account("plain", "/metrics")[1]
    own = account("own", "/metrics", audiences=["drydock"])[1]
    controller = serve("--auth-token-audiences", "drydock")
    assert tls.fetch(controller.metrics_port, "/metrics", plain)[0] == 401
    assert tls.fetch(controller.metrics_port, "/metrics", own)[0] == 200


def test_a_certificate_of_a_trusted_authority_is_as_good_as_a_token(backend, serve, tls, tmp_path, unique):
    """The organisations of the certificate are groups, the common name is the user."""
    folder = tmp_path / "clients"
    folder.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", f"/O=watchers-{unique}/CN=grafana", "-keyout", folder / "own.key", "-out", folder / "own.crt"],
                   check=True, capture_output=True)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    backend.access.request("POST", f"{rbac}/clusterroles", {
        "metadata": {"name": unique}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]})
    backend.access.request("POST", f"{rbac}/clusterrolebindings", {
        "metadata": {"name": unique}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": unique},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": f"watchers-{unique}"}]})
    try:
        controller = serve("--tls-client-ca-file", str(folder / "own.crt"))
        pair = (folder / "own.crt", folder / "own.key")
        assert tls.fetch(controller.metrics_port, "/metrics", pair=pair)[0] == 200
        assert error(tls.fetch(controller.metrics_port, "/api/v1/info", pair=pair))[1].startswith("'grafana' may not get '/drydock/api/v1/info'")
        assert tls.fetch(controller.metrics_port, "/metrics")[0] == 401
        with pytest.raises(OSError):
            tls.fetch(controller.metrics_port, "/metrics", pair=certificate(tmp_path, "stranger"))
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            backend.access.request("DELETE", f"{rbac}/{kind}/{unique}")


def server_name(port):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(plain) as secure:
            der = secure.getpeercert(binary_form=True)
    text = subprocess.run(["openssl", "x509", "-inform", "der", "-noout", "-subject"], input=der, capture_output=True, check=True)
    return text.stdout.decode().strip().rsplit(" ", 1)[-1]


def test_a_new_certificate_is_served_without_a_restart(serve, tls, account, tmp_path):
    token = account("scraper", "/metrics")[1]
    controller = serve()
    assert server_name(controller.metrics_port) == "serving"
    tls.replace("renewed")
    wait_for(lambda: server_name(controller.metrics_port) == "renewed", "the new certificate is served")
    body = tls.fetch(controller.metrics_port, "/metrics", token)[2]
    assert "drydock_tls_reload_failures_total" in body and "drydock_tls_not_after_seconds" in body
    shutil.copy(certificate(tmp_path, "other")[1], tls.key)  # of another certificate
    wait_for(lambda: "the new certificate is not used; the one before stays" in controller.log(), "it is told")
    assert server_name(controller.metrics_port) == "renewed"
    assert tls.fetch(controller.metrics_port, "/metrics", token)[0] == 200


@pytest.mark.parametrize("flags, message", (
    (["--auth=cluster"], "--auth=cluster: want --tls-cert-file and --tls-private-key-file"),
    (["--tls-cert-file", "x"], "--tls-cert-file and --tls-private-key-file: want both or none"),
    (["--tls-client-ca-file", "x"], "--tls-client-ca-file: want --tls-cert-file"),
    (["--tls-cert-file", "/nowhere", "--tls-private-key-file", "/nowhere"], "--tls-cert-file: "),
    (["--auth=maybe"], "--auth"),
), ids=("auth-alone", "cert-alone", "ca-alone", "no-file", "no-choice"))
@pytest.mark.parametrize("command", ("controller", "bridge"))
@pytest.mark.backend("sandbox")
def test_flags_that_do_not_fit_are_told_at_the_start(backend, tmp_path, command, flags, message):
    result = subprocess.run([drydock(), command, "--kubeconfig", backend.kubeconfig, "--enable-leader-election=false",
                             "--metrics-addr", "127.0.0.1:0", "--health-addr", "0", *flags],
                            capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert result.returncode in (1, 2) and message in " ".join(result.stderr.split())


@pytest.mark.backend("sandbox")
def test_what_is_open_to_everybody_is_said_at_the_start(launch):
    controller = launch("profiles: []\n")
    assert "whoever reaches this port reads all that it serves; --auth=cluster asks for a token" in controller.log()
    assert controller.get("/metrics")[0] == 200


@pytest.mark.backend("sandbox")
def test_a_bridge_has_the_same_door(backend, tls, account, tmp_path):
    token = account("scraper", "/metrics")[1]
    backend.access.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {})
    with Process([drydock(), "bridge", "--kubeconfig", backend.kubeconfig, "--enable-leader-election=false", "--metrics-addr", "127.0.0.1:0",
                  "--health-addr", "0", "--log-format", "json", *tls.flags, "--auth=cluster"], tmp_path, "bridge") as bridge:
        def port():
            for line in bridge.log().splitlines():
                told = json.loads(line)
                if told.get("msg") == "serving metrics and links":
                    assert told["tls"] is True and told["auth"] == "cluster"
                    return told["port"]
            return None
        wait_for(port, "it serves")
        assert tls.fetch(port(), "/api/v1/links")[0] == 401
        assert tls.fetch(port(), "/api/v1/links", token)[0] == 403
        assert tls.fetch(port(), "/metrics", token)[0] == 200


# ---- the command line ----

def run(*arguments, check=0, env=None):
    result = subprocess.run([drydock(), *arguments], capture_output=True, text=True, timeout=120, check=False, env=env)
    assert result.returncode == check, result.stderr
    return " ".join((result.stderr if check else result.stdout).split())


def test_status_speaks_to_a_controller_behind_the_door(backend, serve, tls, account, tmp_path):
    token = account("viewer", "/drydock/api/*")[1]
    (tmp_path / "token").write_text(token + "\n", encoding="utf-8")
    controller = serve()
    address = ("--address", f"https://127.0.0.1:{controller.metrics_port}")
    trust = ("--certificate-authority", tls.cert)
    assert "profile" in run("status", *address, *trust, "--token-file", str(tmp_path / "token"))

    own = backend.access.variant(tmp_path / "viewer.kubeconfig", user={
        "token": token, "client-certificate-data": None, "client-key-data": None})
    assert "profile" in run("status", *address, *trust, "--kubeconfig", str(own))
    (tmp_path / "wrong").write_text("made-up", encoding="utf-8")
    assert "the cluster does not know this token" in run("status", *address, *trust, "--token-file", str(tmp_path / "wrong"), check=1)
    nobody = backend.access.variant(tmp_path / "nobody.kubeconfig", user={
        "token": None, "client-certificate-data": None, "client-key-data": None})
    assert "this needs a bearer token" in run("status", *address, *trust, "--kubeconfig", str(nobody), check=1)
    assert "certificate" in run("status", *address, "--token-file", str(tmp_path / "token"), check=1)
    plain = ("--address", f"http://127.0.0.1:{controller.metrics_port}")
    assert "want --address https://" in run("status", *plain, "--token-file", str(tmp_path / "token"), check=1)
    name = ("--tls-server-name", "drydock.example.com")
    assert "drydock.example.com" in run("status", *address, *trust, *name, "--token-file", str(tmp_path / "token"), check=1)


class PodProxy(http.server.BaseHTTPRequestHandler):
    """An API server with a Lease and the proxy to one pod. As a real one it takes the credentials for itself."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        prefix = "/api/v1/namespaces/ops/pods/https:ctl-0:8080/proxy"
        if self.path.startswith("/apis/coordination.k8s.io/v1/leases?"):
            self.answer(200, json.dumps({"kind": "LeaseList", "items": [
                {"metadata": {"name": LEASE, "namespace": "ops"}, "spec": {"holderIdentity": "ctl-0_1a2b"}}]}))
        elif self.path.startswith(prefix):
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ("authorization", "host")}
            status, _, body = self.server.tls.fetch(self.server.target, self.path[len(prefix):], headers=headers)
            self.answer(status, body)
        else:
            self.answer(503, json.dumps({"kind": "Status", "code": 503, "message": "error trying to reach service: EOF"}))

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.mark.backend("sandbox")
def test_through_the_api_server_a_token_is_given_by_file(serve, tls, account, tmp_path):
    token = account("viewer", "/drydock/api/*")[1]
    (tmp_path / "token").write_text(token, encoding="utf-8")
    controller = serve()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), PodProxy) as server:
        server.target, server.tls = controller.metrics_port, tls
        path = tmp_path / "proxied.kubeconfig"
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}), encoding="utf-8")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            told = run("status", "--kubeconfig", str(path), check=1)
            assert "pod 'ctl-0' in namespace 'ops' wants to know who asks" in told and "--token-file" in told
            assert "profile" in run("status", "--kubeconfig", str(path), "--token-file", str(tmp_path / "token"))
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.backend("sandbox")
def test_a_replica_asks_the_leader_as_who_asks_it(backend, client, serve, tls, account, namespace, tmp_path):
    """The leader is known by its key, which both have, and decides by itself who may read."""
    token = account("viewer", "/drydock/api/*", "/metrics")[1]
    host = socket.gethostname()
    flags = ["--enable-leader-election", "--lease-namespace", namespace]
    leader = serve(*flags, name="leader")
    wait_for(lambda: "leader_election_master_status{" in (body := tls.fetch(leader.metrics_port, "/metrics", token)[2]) and
             [line for line in body.splitlines() if line.startswith("leader_election_master_status{")][0].endswith(" 1"), "it leads")
    follower = serve(*flags, "--leader-port", str(leader.metrics_port), name="follower")
    wait_for(lambda: tls.fetch(follower.metrics_port, "/api/v1/status", token)[0] == 502, "it knows whom to ask, and cannot reach it")
    client.core.create_namespaced_pod(namespace, {
        "metadata": {"name": host}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    client.core.patch_namespaced_pod_status(host, namespace, {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}})
    wait_for(lambda: tls.fetch(follower.metrics_port, "/api/v1/status", token)[0] == 200, "the leader answers")
    assert tls.fetch(follower.metrics_port, "/api/v1/status")[0] == 401
    # Whoever has another key is not the leader, whatever address it has.
    other = Tls(tmp_path, "impostor")
    odd = Controller(backend.kubeconfig, tmp_path, "odd", [*other.flags, "--auth=cluster", *flags, "--leader-port", str(leader.metrics_port)])
    with odd:
        odd.wait_ready()
        wait_for(lambda: "cannot be reached" in other.fetch(odd.metrics_port, "/api/v1/status", token)[2], "it does not trust the leader")
        assert other.fetch(odd.metrics_port, "/api/v1/status", token)[0] == 502


# ---- attacks ----

@contextlib.contextmanager
def connections():
    opened = []

    def connect(port, words=b""):
        peer = socket.create_connection(("127.0.0.1", port), timeout=30)
        opened.append(peer)
        if words:
            with contextlib.suppress(OSError):  # it is dropped for the next one
                peer.sendall(words)
        return peer

    try:
        yield connect
    finally:
        for peer in opened:
            peer.close()


@pytest.mark.backend("sandbox")
def test_unfinished_handshakes_keep_nobody_out(serve, tls, account):
    token = account("scraper", "/metrics")[1]
    controller = serve()
    begun = bytes((0x16, 3, 1, 2, 0, 1))  # the head of a record with a ClientHello, and a byte of it
    with connections() as connect:
        for i in range(CONNECTIONS_MAX + 100):
            connect(controller.health_port)
            connect(controller.metrics_port, (b"", begun, b"GET / HTTP/1.1\r\n\r\n")[i % 3])
        for _ in range(13):
            assert controller.health("/readyz")[0] == 200
            assert tls.fetch(controller.metrics_port, "/metrics", token)[0] == 200
        assert controller.usage()[2] < MEMORY_MAX


@pytest.mark.backend("sandbox")
def test_tokens_without_end_and_without_number_keep_nobody_out(serve, tls, account):
    token = account("scraper", "/metrics")[1]
    controller = serve()
    assert tls.fetch(controller.metrics_port, "/metrics", token)[0] == 200
    with contextlib.suppress(OSError):  # the server need not read to the end of it
        assert tls.fetch(controller.metrics_port, "/metrics", "a" * 1024 * 1024)[0] in (400, 401, 413, 431)
    statuses = set()

    def strangers(first):
        for i in range(first, first + 50):
            statuses.add(tls.fetch(controller.metrics_port, "/metrics", f"stranger-{i}")[0])

    threads = [threading.Thread(target=strangers, args=(n * 50,)) for n in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert tls.fetch(controller.metrics_port, "/metrics", token)[0] == 200
        assert controller.health("/healthz")[0] == 200
    for thread in threads:
        thread.join()
    assert statuses <= {401, 503} and 401 in statuses
    body = tls.fetch(controller.metrics_port, "/metrics", token)[2]
    reviews = float(next(line for line in body.splitlines() if line.startswith('drydock_http_auth_reviews_total{review="token"}')).split()[1])
    assert reviews < 450  # one for each at most, and those for the good one
    assert controller.usage()[2] < MEMORY_MAX


def test_while_the_cluster_cannot_be_asked_nobody_reads(backend, tls, account, tmp_path, client, namespace):
    """A controller whose account may not make reviews refuses everybody, and says once why."""
    token = account("scraper", "/metrics")[1]
    weak = account("weak")[1]
    own = backend.access.variant(tmp_path / "weak.kubeconfig", user={
        "token": weak, "client-certificate-data": None, "client-key-data": None})
    with Controller(own, tmp_path, "weak", [*tls.flags, "--auth=cluster"]) as controller:
        wait_for(lambda: "serving metrics and dashboard" in controller.log(), "it serves")
        assert error(tls.fetch(controller.metrics_port, "/metrics", token)) == (
            503, "the cluster cannot be asked who may read this; try again")
        assert "requests are refused: the cluster does not say whose a token is" in controller.log()
        assert "tokenreviews" in controller.log()
