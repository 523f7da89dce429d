"""Fixtures of the end-to-end suites. See tests/e2e/README.md."""

import os
import shutil
import signal
import subprocess
import uuid

import kubernetes
import pytest

import share
from backend import Cluster, Sandbox
from bridge import BridgeClusters
from process import Controller
from real_nodes import RealNodes, drydock_image
from wait import wait_for


def pytest_addoption(parser):
    parser.addoption("--backend", choices=("sandbox", "cluster", "nodes"),
                     default=os.environ.get("DRYDOCK_BACKEND", "sandbox"),
                     help="what the cases run against (also: DRYDOCK_BACKEND)")
    parser.addoption("--share", metavar="FOLDER",
                     help="run the modules that no other process with this folder has taken")


def pytest_report_header(config):
    return f"back end: {config.getoption('--backend')}"


def belongs(item, backend):
    """Whether a case exists on that back end. One that uses neither says the same twice: it runs beside the sandbox. Real nodes
    have cases of their own."""
    if item.get_closest_marker("go") and backend == "sandbox" and shutil.which("go") is None:
        return False  # it runs beside the real control plane, which is built with Go
    marker = item.get_closest_marker("backend")
    if marker:
        return backend in marker.args
    if backend == "nodes":
        return False
    return backend == "sandbox" or bool({"backend", "backend_name"} & set(item.fixturenames))


def pytest_collection_modifyitems(config, items):
    """A case that exists on the other back end alone is no skipped case: it is not selected."""
    backend = config.getoption("--backend")
    kept, dropped = [], []
    for item in items:
        (kept if belongs(item, backend) else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    folder = session.config.getoption("--share")
    if folder is None or session.testsfailed or session.config.option.collectonly:
        return None  # as pytest has it
    return share.run(session, folder)


def fail_skipped(report):
    """A skipped test proves nothing, so here it is a failure."""
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as a failure: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    outcome = yield
    fail_skipped(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    outcome = yield
    fail_skipped(outcome.get_result())


@pytest.fixture(scope="session")
def backend_name(request):
    return request.config.getoption("--backend")


# As fast as kwok: the cases are not about waiting.
WORLD = {"heartbeats": "both", "delays": {
    "react": "10ms", "startMin": "50ms", "startMax": "200ms", "stop": "200ms", "run": "1s"}}


@pytest.fixture(scope="session")
def backend(backend_name, tmp_path_factory):
    """The cluster that most suites share."""
    folder = tmp_path_factory.mktemp(backend_name)
    with make_backend(backend_name, folder) as server:
        yield server


def make_backend(name, folder):
    if name == "cluster":
        return Cluster(folder)
    if name == "nodes":
        return RealNodes(folder)
    return Sandbox(folder, nodes=3, flags=["--tls"], world=WORLD)


@pytest.fixture(scope="session")
def image(backend, tmp_path_factory):
    """The name of the image of the program under test, which all real nodes have."""
    archive, name = drydock_image(str(tmp_path_factory.mktemp("image")))
    backend.import_image(archive)
    return name


@pytest.fixture(scope="session")
def bridge_clusters(backend, tmp_path_factory):
    """Management and workload clusters, which the suites about the bridge share."""
    with BridgeClusters(backend, str(tmp_path_factory.mktemp("bridge-clusters"))) as started:
        yield started


@pytest.fixture(scope="session")
def client(backend):
    """The official client library."""
    with backend.client() as api_client:
        yield Client(api_client)


class Client:
    """The parts of the official library that the cases use."""

    def __init__(self, api_client):
        self.api = api_client
        self.core = kubernetes.client.CoreV1Api(api_client)
        self.apps = kubernetes.client.AppsV1Api(api_client)
        self.policy = kubernetes.client.PolicyV1Api(api_client)
        self.batch = kubernetes.client.BatchV1Api(api_client)
        self.rbac = kubernetes.client.RbacAuthorizationV1Api(api_client)
        self.leases = kubernetes.client.CoordinationV1Api(api_client)
        self.custom = kubernetes.client.CustomObjectsApi(api_client)


@pytest.fixture
def unique():
    """A name that no other test uses."""
    return "t" + uuid.uuid4().hex[:8]


@pytest.fixture
def kubectl(backend):
    """kubectl(argument…): runs it and returns what it printed; check=False: the whole result."""
    path, env = backend.kubectl_path(), backend.kubectl_env()

    def run(*arguments, stdin=None, check=True, timeout=180):
        result = subprocess.run([path, "--kubeconfig", backend.kubeconfig, *arguments],
                                input=stdin, env=env, text=True, capture_output=True,
                                timeout=timeout, check=False)
        if not check:
            return result
        assert result.returncode == 0, f"kubectl {' '.join(arguments)}: {result.stderr}"
        return result.stdout

    return run


@pytest.fixture
def namespace(backend, client, unique):
    client.core.create_namespace({"metadata": {"name": unique}})
    if backend.name != "sandbox":
        # Admission refuses pods until a controller has made it.
        wait_for(lambda: client.core.read_namespaced_service_account("default", unique),
                 what="the namespace has its service account")
    yield unique
    client.core.delete_namespace(unique)


@pytest.fixture
def make_node(client):
    """make_node(name, labels, annotations): a Node object, gone after the test. On the cluster kwok
    gives it a kubelet, on the sandbox it has none."""
    made = []

    def make(name, labels=None, annotations=None):
        client.core.create_node({
            "metadata": {"name": name, "annotations": annotations or {},
                         "labels": {"kubernetes.io/hostname": name, **(labels or {})}}})
        made.append(name)
        return name

    yield make
    for name in made:
        try:
            client.core.delete_node(name)
        except kubernetes.client.ApiException as error:
            if error.status != 404:
                raise


@pytest.fixture
def launch(backend, tmp_path):
    """launch(config, name, flags): a controller with that configuration that is ready, ended in
    order after the test. The text is in `launched.config`, a file that may be changed."""
    running = []

    def run(config, name="controller", flags=(), env=None):
        path = tmp_path / (name + ".yaml")
        path.write_text(config, encoding="utf-8")
        controller = Controller(backend.kubeconfig, tmp_path / name, name,
                                ["--config", str(path), *flags], env)
        controller.config = path
        running.append(controller)
        return controller.wait_ready()

    yield run
    failure = None
    for controller in running:
        try:
            if controller.alive():
                controller.stop()
        except AssertionError as error:
            failure = error
        finally:
            controller.end()
    if failure:
        raise failure


@pytest.fixture
def kubelets(backend):
    """pause(): no kubelet acts until the test ends; kwok takes away even what a finalizer holds."""
    stopped = []

    class Kubelets:
        def pause(self):
            if backend.name == "cluster":
                stopped.append(backend.pid("kwok"))
                os.kill(stopped[0], signal.SIGSTOP)

    yield Kubelets()
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)


def node_ready(node):
    conditions = {c.type: c.status for c in node.status.conditions or []}
    return conditions.get("Ready") == "True" and not any(
        t.key == "node.kubernetes.io/not-ready" for t in node.spec.taints or [])


@pytest.fixture
def nodes(request, backend, client, make_node, unique):
    """Names of ready nodes with kubelets, labelled e2e=<unique>; two unless marked. The sandbox
    lends machines of its world and has them back as they were."""
    marker = request.node.get_closest_marker("nodes")
    count = marker.args[0] if marker else 2
    if backend.name == "cluster":
        names = [make_node(f"{unique}-n{i}", {"e2e": unique}) for i in range(count)]
    else:
        names = [f"node-{i + 1:03}" for i in range(count)]
        # The test before has deleted its namespace, which takes a moment.
        wait_for(lambda: not client.core.list_pod_for_all_namespaces().items,
                 "the machines are empty", interval=0.02)
    before = {}
    for name in names:
        before[name] = wait_for(lambda n=name: node_ready(client.core.read_node(n)) and
                                client.core.read_node(n), f"{name} is ready")
        client.core.patch_node(name, {"metadata": {"labels": {"e2e": unique}}})
    yield names
    if backend.name == "sandbox":
        for name in names:
            give_back(client, before[name])


def give_back(client, before):
    now = client.core.read_node(before.metadata.name)
    restored = {}
    for kind in ("labels", "annotations"):
        old, new = getattr(before.metadata, kind) or {}, getattr(now.metadata, kind) or {}
        restored[kind] = {**{key: None for key in new}, **old}
    client.core.patch_node(before.metadata.name,
                           {"metadata": restored, "spec": {"unschedulable": None}})
    # Of a profile that had it in maintenance: as long as that might be going on, nobody else gets the machine.
    for lock in client.leases.list_lease_for_all_namespaces(label_selector="repairman.k8s.io/lock=target").items:
        if lock.spec.holder_identity == before.metadata.uid:
            try:
                client.leases.delete_namespaced_lease(lock.metadata.name, lock.metadata.namespace)
            except kubernetes.client.ApiException as error:
                if error.status != 404:  # it has ended meanwhile
                    raise
