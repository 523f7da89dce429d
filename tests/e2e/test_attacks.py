"""Whoever reaches a port may ask, and may be hostile: what he does costs little, and does not keep others out.

Every case is an attack that once worked. It goes on until the end of the case, and meanwhile the process does its work.
"""

import contextlib
import os
import resource
import socket

import pytest

from attacks import release_build
from backend import Sandbox
from process import Bridge, Controller, fetch
from wait import wait_for

pytestmark = pytest.mark.backend("sandbox")

NODES = 3000
MEMORY_MAX = 64 * 1024 * 1024
CONNECTIONS_MAX = 512  # of one port


@pytest.fixture(scope="module", autouse=True)
def descriptors():
    """The attacker has enough of them."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def connections():
    """connect(port, request): one more connection, on which nothing is read; all are closed in the end."""
    with contextlib.ExitStack() as opened:
        def connect(port, request=b""):
            client = opened.enter_context(socket.socket())
            client.settimeout(60)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the answer stays with who sends it
            client.connect(("127.0.0.1", port))
            client.sendall(request)
            return client

        yield connect


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A controller of many nodes that has nothing to do."""
    folder = tmp_path_factory.mktemp("fleet")
    with Sandbox(folder / "sandbox", nodes=NODES) as sandbox:
        with release_build():
            controller = Controller(sandbox.kubeconfig, folder)
        with controller:
            controller.wait_ready()
            wait_for(controller.idle, "all nodes are served")
            yield controller


class Lease:
    """Somebody's, as the API server has it."""

    def __init__(self, sandbox, name):
        self.sandbox = sandbox
        self.path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}"

    def read(self):
        spec = self.sandbox.access.request("GET", self.path)[1]["spec"]
        return spec["holderIdentity"], spec["leaseTransitions"], spec["renewTime"]

    def held(self):
        return bool(self.read()[0])

    def renewed_since(self, before):
        holder, transitions, at = self.read()
        assert (holder, transitions) == before[:2], "somebody else took it"
        return at > before[2]


# Descriptors used up


def use_up(process):
    """Leaves it four more descriptors than it has open, fewer than it would give to visitors."""
    used = len(os.listdir(f"/proc/{process.pid}/fd"))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + 4, used + 4))


@pytest.mark.parametrize("kind, lease, flags", (
    (Controller, "maintenance-controller-leader-election.cloud.sap", ["--enable-leader-election"]),
    (Bridge, "runtime-extension-maintenance-controller", []),
), ids=("controller", "bridge"))
@pytest.mark.parametrize("tight", (False, True), ids=("few", "none"))
def test_a_daemon_without_descriptors_keeps_its_lease(tmp_path, kind, lease, flags, tight):
    flags = [*flags, "--lease-namespace", "kube-system"]
    with Sandbox(tmp_path / "sandbox", nodes=1) as sandbox, \
            kind(sandbox.kubeconfig, tmp_path, flags=flags, descriptors=64) as daemon, connections() as connect:
        lease = Lease(sandbox, lease)
        wait_for(lease.held, "it leads")
        if tight:
            use_up(daemon)
        for _ in range(100):
            connect(daemon.metrics_port)
            connect(daemon.health_port)
        before = lease.read()
        assert daemon.health("/healthz")[0] == 200
        assert daemon.get("/metrics")[0] == 200
        wait_for(lambda: daemon.alive_or_fail() and lease.renewed_since(before), "its Lease is renewed")
        assert daemon.health("/healthz")[0] == 200


@pytest.mark.parametrize("tight", (False, True), ids=("few", "none"))
def test_a_sandbox_without_descriptors_serves(tmp_path, tight):
    with Sandbox(tmp_path / "sandbox", nodes=1, descriptors=64) as sandbox, connections() as connect:
        if tight:
            use_up(sandbox.process)
        for _ in range(100):
            connect(sandbox.access.port)
        assert fetch(sandbox.access.port, "/readyz")[0] == 200
        assert sandbox.access.request("GET", "/api/v1/nodes/node-001")[0] == 200
        assert sandbox.process.alive()


# Connections that ask for nothing


def test_idle_connections_keep_no_probe_out(fleet):
    with connections() as connect:
        for i in range(CONNECTIONS_MAX + 100):
            connect(fleet.health_port)
            connect(fleet.metrics_port, b"" if i % 2 else b"GET /metr")
        for _ in range(13):
            assert fleet.health("/readyz")[0] == 200
            assert fleet.get("/metrics")[0] == 200


# Readers that do not read


def test_slow_readers_of_documents_share_their_memory(fleet):
    with connections() as connect:
        for _ in range(300):
            connect(fleet.metrics_port, get("/api/v1/info"))
        for _ in range(100):  # one after the other, so that each has a document of its own
            assert connect(fleet.metrics_port, get("/api/v1/info")).recv(1)
        status, _, body = fleet.get("/api/v1/info")
        assert status == 200 and body.count('"node":') >= NODES
        assert fleet.usage()[2] < MEMORY_MAX


def test_slow_readers_of_event_streams_share_their_memory(fleet):
    with connections() as connect:
        for _ in range(100):
            assert connect(fleet.metrics_port, get("/api/v1/events")).recv(1)
        assert fleet.get("/metrics")[0] == 200
        assert fleet.health("/readyz")[0] == 200
        assert fleet.usage()[2] < MEMORY_MAX


def test_requests_that_do_not_end_take_little(fleet):
    request = b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 10000
    with connections() as connect:
        for _ in range(CONNECTIONS_MAX):
            with contextlib.suppress(ConnectionError):  # it is dropped for the next one
                connect(fleet.metrics_port, request)
        assert fleet.get("/metrics")[0] == 200
        assert fleet.usage()[2] < MEMORY_MAX


# Keys in memory


def core_limit(process):
    with open(f"/proc/{process.pid}/limits", encoding="ascii") as f:
        return next(line.split()[4:6] for line in f if line.startswith("Max core file size"))


@pytest.mark.parametrize("kind", (Controller, Bridge), ids=("controller", "bridge"))
def test_a_daemon_leaves_no_core_file_unless_told_to(tmp_path, kind):
    flags = ["--enable-leader-election=false"]
    with Sandbox(tmp_path / "sandbox", nodes=1) as sandbox:
        with kind(sandbox.kubeconfig, tmp_path, flags=flags) as daemon:
            wait_for(lambda: daemon.health("/healthz")[0] == 200, "it runs")
            assert core_limit(daemon) == ["0", "0"]
        with kind(sandbox.kubeconfig, tmp_path, flags=[*flags, "--allow-core-dumps"]) as daemon:
            wait_for(lambda: daemon.health("/healthz")[0] == 200, "it runs")
            assert core_limit(daemon) == core_limit(sandbox.process)


# A page whose name points here


def test_a_name_of_somebody_else_is_not_answered(fleet, tmp_path):
    def ask(daemon, host, **headers):
        return daemon.get("/api/v1/status", headers={"Host": host, **headers})

    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example"):
        status, _, text = ask(fleet, host)
        assert status == 421 and f"--allowed-hosts={host.partition(':')[0]} " in text
    for host in ("10.1.2.3:8080", "[::1]:8080", "localhost:9090", "drydock", "drydock.kube-system.svc", "drydock.x.svc.cluster.local:80"):
        assert ask(fleet, host)[0] == 200, host
    assert ask(fleet, "api.example.com:6443", **{"Sec-Drydock-Client": "1"})[0] == 200, "the client, through the API server"
    assert fetch(fleet.health_port, "/readyz", headers={"Host": "evil.example"})[0] == 200
    with Sandbox(tmp_path / "sandbox", nodes=1) as sandbox:
        for kind in (Controller, Bridge):
            with kind(sandbox.kubeconfig, tmp_path, flags=["--enable-leader-election=false", "--allowed-hosts", "a.example,*.b.example"]) as daemon:
                wait_for(lambda: daemon.health("/healthz")[0] == 200, "it runs")
                answers = [daemon.get("/metrics", headers={"Host": host})[0] for host in ("a.example", "x.b.example", "b.example")]
                assert answers == [200, 200, 421]
