"""bridge: a management cluster with workload clusters, Machines with their Nodes, and the bridge between them; fixtures of its
suites.

A suite imports the fixtures that it uses by their names. Clusters are shared, so every case has Machines of its own; what a
case does to a connection it does to that of a Cluster of its own.
"""

import concurrent.futures
import contextlib
import itertools
import os

import pytest

from backend import Sandbox, Workload
from capi import (APPROVE_DELETION, DATA, ENABLED, HOOK, LAB, MAINTENANCE, PAUSED, PRE_DRAIN, PRE_TERMINATE, STATE, Management,
                  Objects, Ref, StandIn)
from auth_proxy import AuthProxy
from process import Bridge
from wait import wait_for

HOLD = PRE_DRAIN + "e2e"  # somebody else's, which keeps a Machine before its drain
STAY = PRE_TERMINATE + "e2e"  # and after it


class BridgeClusters:
    """`management`, and workload clusters by their names; on the cluster with the manager of Cluster API. The one that is
    called live has kubelets: it is the cluster that all suites share."""

    def __init__(self, backend, folder):
        self.real = backend.name == "cluster"
        self.live = backend
        names = ("management", "one", "two")
        if self.real:
            self.servers = {name: Workload(backend, f"{name}-{os.path.basename(folder)}") for name in names}
        else:
            self.servers = {name: Sandbox(os.path.join(folder, name), flags=["--tls", "--bare"]) for name in names}
        self.home = self.servers["management"]
        self.stand_in = None

    def __enter__(self):
        try:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                list(pool.map(lambda server: server.start(), self.servers.values()))
            self.servers["live"] = self.live
            self.management = Management(self.home.access)
            self.workloads = {name: Objects(self.servers[name].access) for name in ("one", "two", "live")}
            self.management.install(os.path.join(DATA, "metal3.yaml"))
            if self.real:
                self.home.start_manager()
            else:
                self.management.install(os.path.join(DATA, "v1beta2.yaml"), LAB)
                self.stand_in = StandIn(self.management)
                self.stand_in.__enter__()
            self.clusters = {name: self.management.cluster("default", name, text_of(self.servers[name].kubeconfig))
                             for name in self.workloads}
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.stand_in:
            self.stand_in.__exit__()
        self.servers.pop("live", None)
        for server in self.servers.values():
            server.stop()


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Pair:
    """A Machine, and the Node that it names (or will)."""

    def __init__(self, management, workload, machine, node):
        self.management, self.workload, self.machine, self.node = management, workload, machine, node
        self.touches = itertools.count()

    def report(self, ready=True):
        """The Node says how it is, as its kubelet would; Cluster API makes the Machine's condition NodeHealthy of it."""
        truth = {"Ready": ready, "MemoryPressure": False, "DiskPressure": False, "PIDPressure": False}
        self.workload.patch("Node", None, self.node, {"status": {"conditions": [
            {"type": name, "status": str(value), "reason": "Kubelet", "message": "as told"} for name, value in truth.items()]}},
            sub="status")

    # The Machine.

    def read(self):
        return self.management.get("Machine", *self.machine)

    def labels(self):
        return self.management.labels("Machine", *self.machine)

    def annotations(self):
        return self.management.annotations("Machine", *self.machine)

    def hook(self):
        """Its value; None: there is none, or no Machine."""
        return (self.annotations() or {}).get(HOOK)

    def maintenance(self):
        return (self.labels() or {}).get(MAINTENANCE)

    def mark(self, labels=None, annotations=None):
        # Where the manager cannot be reached nobody can write to a Machine.
        wait_for(lambda: self.management.mark("Machine", *self.machine, labels, annotations) or True, "the Machine is marked")

    def ask(self, value):
        self.mark({MAINTENANCE: value})

    def delete(self):
        self.management.delete("Machine", *self.machine)

    def deleting(self):
        return "deletionTimestamp" in self.read()["metadata"]

    def gone(self):
        return self.read() is None

    def reason(self):
        """Of the condition that tells how far its deletion is; None: it does not say, or is gone."""
        return next((c["reason"] for c in (self.read() or {}).get("status", {}).get("conditions", ()) if c["type"] == "Deleting"), None)

    def named(self):
        return self.read().get("status", {}).get("nodeRef", {}).get("name")

    def events(self, reason):
        return self.management.events(self.machine.space, self.machine.name, reason)

    def wait_hook(self):
        wait_for(lambda: self.hook() is not None, f"{self.machine.name} has the hook")

    def wait_free(self):
        wait_for(lambda: self.hook() is None, f"{self.machine.name} has no hook")

    def wait_gone(self):
        wait_for(self.gone, f"{self.machine.name} is gone: {self.reason()}")

    def wait_maintenance(self, value):
        wait_for(lambda: self.maintenance() == value, f"{self.machine.name} has maintenance={value}")

    def wait_event(self, reason):
        return wait_for(lambda: self.events(reason), f"{self.machine.name} has the event {reason}")[-1]

    # The Node.

    def node_labels(self):
        return self.workload.labels("Node", None, self.node) or {}

    def node_annotations(self):
        return self.workload.annotations("Node", None, self.node) or {}

    def mark_node(self, labels=None, annotations=None):
        return self.workload.mark("Node", None, self.node, labels, annotations)

    def touch(self):
        """An event of the Node that means nothing."""
        self.mark_node(annotations={"e2e.example.com/touch": str(next(self.touches))})

    def approve(self, key=APPROVE_DELETION):
        self.mark_node({key: "true"})

    def wait_node(self, key, value="true"):
        """The label has that value; None: it is not there."""
        wait_for(lambda: self.node_labels().get(key) == value, f"{self.node} has {key}={value}")


class BridgeEnv:
    """What one case makes; it goes with the case."""

    def __init__(self, bridge_clusters, unique, folder, management=None):
        self.bridge_clusters, self.unique, self.folder = bridge_clusters, unique, folder
        self.management = management or bridge_clusters.management
        self.made, self.clusters, self.auth_proxies, self.others = [], [], [], []

    def space(self):
        return self.management.space(self.unique)

    def cluster(self, kubeconfig=None, space="default", name=None, workload="one", external=True):
        """One of the case's own; its kubeconfig is the workload's own unless told."""
        if kubeconfig is None:
            kubeconfig = text_of(self.bridge_clusters.servers[workload].kubeconfig)
        ref = self.management.cluster(space, name or f"{self.unique}-c{len(self.clusters)}", kubeconfig, external)
        self.clusters.append(ref)
        return ref

    def auth_proxy(self, workload="one", token=None):
        """A door to a workload cluster (or to `management`) that counts."""
        auth_proxy = AuthProxy(self.bridge_clusters.servers[workload].access, self.folder, token, f"auth-proxy{len(self.auth_proxies)}")
        self.auth_proxies.append(auth_proxy)
        return auth_proxy

    def pair(self, cluster=None, workload="one", state="operational", enabled=True, node=True, provider=None, labels=None,
             annotations=None, wait=True, **machine):
        """A Machine and its Node, which says that an engine looks after it, unless `state` is None. `node` False: there is
        none yet. `wait`: until the Machine names it."""
        cluster = cluster or self.bridge_clusters.clusters[workload]
        name = f"{self.unique}-m{len(self.made)}"
        provider = provider or f"lab://{cluster.space}/{cluster.name}/{name}"
        pair = Pair(self.management, self.bridge_clusters.workloads[workload], Ref(cluster.space, name), name)
        self.made.append(pair)
        if node:
            self.add_node(pair, provider, state)
        self.management.machine(cluster, name, provider, {**({ENABLED: "true"} if enabled else {}), **(labels or {})},
                                annotations, **machine)
        if node and wait:
            wait_for(lambda: pair.named() == name, f"{name} has its Node")
        return pair

    @staticmethod
    def add_node(pair, provider, state="operational"):
        pair.workload.create("Node", None, pair.node, spec={"providerID": provider}, labels={STATE: state} if state else {})

    def host(self, name=None, consumer=None, state="provisioned", powered=True, annotations=None, space="default"):
        """A BareMetalHost, used by a Machine."""
        name = name or f"{self.unique}-h{len(self.others)}"
        spec = {"online": True}
        if consumer:
            spec["consumerRef"] = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "LabMachine",
                                   "namespace": space, "name": consumer}
        made = self.management.create("BareMetalHost", space, name, spec=spec, annotations=annotations or {})
        self.management.patch("BareMetalHost", space, name, {
            "status": {"provisioning": {"state": state}, "poweredOn": powered}}, sub="status")
        self.others.append(("BareMetalHost", space, name))
        return made["metadata"]

    def rule(self, name, behavior, order=None, space=None, **of):
        """A MachineDrainRule of the case's own namespace, unless told; of: machines, pods."""
        space = space or self.space()
        self.management.rule(space, name, behavior, order, **of)
        self.others.append(("MachineDrainRule", space, name))
        return Ref(space, name)

    def clean(self):
        for pair in self.made:
            machine = pair.read()
            if machine:
                hooks = {key: None for key in machine["metadata"].get("annotations", {})
                         if "delete.hook.machine" in key or key == PAUSED}
                pair.mark({ENABLED: None, MAINTENANCE: None}, hooks)
                pair.delete()
            pair.workload.delete("Node", None, pair.node)
        for ref in self.clusters:
            self.management.patch("Cluster", *ref, {"spec": {"paused": None}})
            self.management.delete("Cluster", *ref)
        for kind, space, name in self.others:
            self.management.delete(kind, space, name)
        for auth_proxy in self.auth_proxies:
            auth_proxy.__exit__()


@pytest.fixture(name="bridge_env")
def fixture_bridge_env(bridge_clusters, unique, tmp_path):
    bridge_env = BridgeEnv(bridge_clusters, unique, tmp_path)
    yield bridge_env
    bridge_env.clean()


@pytest.fixture(name="serve")
def fixture_serve(bridge_clusters, unique, tmp_path):
    """serve(flag…, lease=…): a bridge that is ready, ended in order after the test. Its Lease is its own, unless told."""
    running = []

    def run(*flags, kubeconfig=None, lease=None, ready=True):
        name = f"bridge{len(running)}"
        lease = bridge_clusters.management.space(lease or f"{unique}-{name}")
        bridge = Bridge(kubeconfig or bridge_clusters.home.kubeconfig, str(tmp_path / name), name, ["--lease-namespace", lease, *flags])
        running.append(bridge)
        return bridge.wait_ready() if ready else bridge

    yield run
    end_all(running)


def end_all(running):
    failure = None
    for bridge in running:
        try:
            if bridge.alive():
                bridge.stop()
        except AssertionError as error:
            failure = error
        finally:
            bridge.end()
    if failure:
        raise failure


def module_bridge(*flags, build=contextlib.nullcontext):
    """A fixture: one bridge for all cases of a module, which all namespaces are served by; `build` chooses its program."""
    @pytest.fixture(scope="module", name="bridge", autouse=True)
    def fixture(bridge_clusters, tmp_path_factory):
        folder = str(tmp_path_factory.mktemp("bridge"))
        with build():
            bridge = Bridge(bridge_clusters.home.kubeconfig, folder, flags=["--lease-namespace", "default", *flags])
        with bridge:
            bridge.wait_ready()
            wait_for(lambda: leads(bridge), "it leads")
            yield bridge
    return fixture


def leads(bridge):
    return bridge.metric("leader_election_master_status") == 1
