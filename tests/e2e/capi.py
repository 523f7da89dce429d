"""capi: the objects of Cluster API as the cases use them, in a management cluster and in its workload clusters.

The same objects are written on both back ends. On the cluster its own manager acts on them; where there is none, a `StandIn`
does the little of it that the bridge can see.
"""

import base64
import collections
import contextlib
import json
import os
import tempfile
import threading
import time
from urllib.parse import quote

import yaml

from backend import ROOT, Access
from wait import wait_for

DATA = os.path.join(ROOT, "tests", "data", "capi")
LAB = os.path.join(ROOT, "tests", "cluster", "lab.yaml")

LEGACY = "runtime-extension-maintenance-controller.cloud.sap/"
OWN = "drydock.dev/"
CAPI = "cluster.x-k8s.io/"
ENABLED, MAINTENANCE = LEGACY + "enabled", LEGACY + "maintenance"
DELETED, MAINTAINED = LEGACY + "machine-deleted", LEGACY + "machine-maintenance"
APPROVE_DELETION, APPROVE_MAINTENANCE = LEGACY + "approve-deletion", LEGACY + "approve-maintenance"
STATE = "cloud.sap/maintenance-state"
PRE_DRAIN, PRE_TERMINATE = (f"pre-{step}.delete.hook.machine.{CAPI}" for step in ("drain", "terminate"))
HOOK, HOOK_VALUE = PRE_DRAIN + "maintenance-controller", "runtime-extension-maintenance-controller"
REBOOT = "reboot.metal3.io/runtime-extension-maintenance-controller"
LEASE = "runtime-extension-maintenance-controller"
PAUSED, SKIP = CAPI + "paused", CAPI + "skip-remediation"
RULES, EXCLUDE = OWN + "drain-rules", "machine.cluster.x-k8s.io/exclude-node-draining"
FINALIZERS = {"Cluster": "cluster.cluster.x-k8s.io", "Machine": "machine.cluster.x-k8s.io"}

KINDS = {  # kind: (group, version, plural)
    "Secret": ("", "v1", "secrets"),
    "Event": ("", "v1", "events"),
    "Namespace": ("", "v1", "namespaces"),
    "Node": ("", "v1", "nodes"),
    "Lease": ("coordination.k8s.io", "v1", "leases"),
    "LabCluster": ("infrastructure.cluster.x-k8s.io", "v1", "labclusters"),
    "LabMachine": ("infrastructure.cluster.x-k8s.io", "v1", "labmachines"),
    "LabControlPlane": ("controlplane.cluster.x-k8s.io", "v1", "labcontrolplanes"),
    "BareMetalHost": ("metal3.io", "v1alpha1", "baremetalhosts"),
    "Cluster": ("cluster.x-k8s.io", "v1beta2", "clusters"),
    "Machine": ("cluster.x-k8s.io", "v1beta2", "machines"),
    "MachineDrainRule": ("cluster.x-k8s.io", "v1beta2", "machinedrainrules"),
    "ValidatingWebhookConfiguration": ("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
}
CLUSTERED = ("Node", "Namespace", "ValidatingWebhookConfiguration")
Ref = collections.namedtuple("Ref", "space name")


class Objects:
    """One cluster's objects by plain HTTP; `version` is that of Cluster API's kinds."""

    def __init__(self, access, version="v1beta2"):
        self.access, self.version = access, version

    def api(self, kind):
        group, version, _ = KINDS[kind]
        if group == "cluster.x-k8s.io":
            version = self.version
        return f"{group}/{version}" if group else version

    def path(self, kind, space=None, name=None, sub=None):
        parts = ["", "apis" if KINDS[kind][0] else "api", self.api(kind)]
        parts += ["namespaces", space] if space and kind not in CLUSTERED else []
        parts += [part for part in (KINDS[kind][2], name, sub) if part]
        return "/".join(parts)

    def send(self, method, path, body=None, content_type="application/json"):
        return self.access.request(method, path, body, content_type)

    def create(self, kind, space, name, **parts):
        """parts: labels, annotations, finalizers, spec, status, data, type."""
        meta = {"name": name, **{key: parts.pop(key) for key in ("labels", "annotations", "finalizers") if key in parts}}
        body = {"apiVersion": self.api(kind), "kind": kind, "metadata": meta, **parts}
        status, answer = self.send("POST", self.path(kind, space), body)
        assert status == 201, f"{kind} {space}/{name}: {status} {answer}"
        return answer

    def get(self, kind, space, name):
        """None: there is none."""
        status, answer = self.send("GET", self.path(kind, space, name))
        assert status in (200, 404), f"{kind} {space}/{name}: {status} {answer}"
        return answer if status == 200 else None

    def list(self, kind, space=None):
        status, answer = self.send("GET", self.path(kind, space))
        assert status == 200, f"{kind}: {status} {answer}"
        return answer["items"]

    def patch(self, kind, space, name, change, sub=None):
        """None: there is none any more."""
        status, answer = self.send("PATCH", self.path(kind, space, name, sub), change, "application/merge-patch+json")
        assert status in (200, 404), f"{kind} {space}/{name}: {status} {answer}"
        return answer if status == 200 else None

    def mark(self, kind, space, name, labels=None, annotations=None):
        """Labels and annotations; None takes one away."""
        meta = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
        return self.patch(kind, space, name, {"metadata": meta})

    def apply(self, kind, space, name, manager, labels):
        """Server-side, as Cluster API's own controllers keep what a template says."""
        where = self.path(kind, space, name) + f"?fieldManager={quote(manager)}&force=true"
        body = {"apiVersion": self.api(kind), "kind": kind, "metadata": {"name": name, "namespace": space, "labels": labels}}
        status, answer = self.send("PATCH", where, body, "application/apply-patch+yaml")
        assert status == 200, answer

    def delete(self, kind, space, name):
        status, answer = self.send("DELETE", self.path(kind, space, name))
        assert status in (200, 202, 404), answer

    def labels(self, kind, space, name):
        found = self.get(kind, space, name)
        return found["metadata"].get("labels", {}) if found else None

    def annotations(self, kind, space, name):
        found = self.get(kind, space, name)
        return found["metadata"].get("annotations", {}) if found else None

    def events(self, space, name, reason):
        return [event for event in self.list("Event", space)
                if event["involvedObject"].get("name") == name and event["reason"] == reason]

    def install(self, *files):
        """Definitions, and waits until they are served."""
        for file in files:
            with open(file, encoding="utf-8") as f:
                for definition in filter(None, yaml.safe_load_all(f)):
                    status, answer = self.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
                    assert status in (201, 409), answer
                    spec = definition["spec"]
                    where = f"/apis/{spec['group']}/{spec['versions'][-1]['name']}/{spec['names']['plural']}"
                    wait_for(lambda p=where: self.send("GET", p)[0] == 200, f"{where} is served", interval=0.02)


class Management(Objects):
    """A management cluster: Clusters, their kubeconfigs, Machines and hosts."""

    def space(self, name):
        if not self.get("Namespace", None, name):
            self.create("Namespace", None, name)
        return name

    def secret(self, ref, kubeconfig, key="value"):
        """The kubeconfig of a Cluster; once more: another one."""
        data = {key: base64.b64encode(kubeconfig.encode()).decode()}
        labels = {CAPI + "cluster-name": ref.name}
        name = f"{ref.name}-kubeconfig"
        if self.get("Secret", ref.space, name):
            self.patch("Secret", ref.space, name, {"data": {"value": None, **data}})
        else:
            self.create("Secret", ref.space, name, labels=labels, type="cluster.x-k8s.io/secret", data=data)

    def cluster(self, space, name, kubeconfig, external=True):
        """A Cluster whose infrastructure is there. `external`: its control plane says that it is run elsewhere; without that
        and without control plane Machines Cluster API honours no pre-drain hook."""
        ref = Ref(space, name)
        if kubeconfig:
            self.secret(ref, kubeconfig)
        self.create("LabCluster", space, name, status={"initialization": {"provisioned": True}, "ready": True},
                    spec={"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}})
        self.create("LabControlPlane", space, name, status={
            "externalManagedControlPlane": external, "initialization": {"controlPlaneInitialized": True}, "initialized": True})
        self.create("Cluster", space, name, spec={
            "infrastructureRef": self.reference("LabCluster", space, name),
            "controlPlaneRef": self.reference("LabControlPlane", space, name)})
        return ref

    def machine(self, cluster, name, provider, labels=None, annotations=None, finalizers=()):
        """A Machine whose infrastructure is there."""
        self.create("LabMachine", cluster.space, name, spec={"providerID": provider},
                    status={"initialization": {"provisioned": True}, "ready": True})
        self.create("Machine", cluster.space, name, labels={CAPI + "cluster-name": cluster.name, **(labels or {})},
                    annotations=annotations or {}, finalizers=list(finalizers),
                    spec={"clusterName": cluster.name, "bootstrap": {"dataSecretName": "none"},
                          "infrastructureRef": self.reference("LabMachine", cluster.space, name)})
        return Ref(cluster.space, name)

    def reference(self, kind, space, name):
        group, version, _ = KINDS[kind]
        if self.version == "v1beta1":
            return {"apiVersion": f"{group}/{version}", "kind": kind, "name": name, "namespace": space}
        return {"apiGroup": group, "kind": kind, "name": name}

    def rule(self, space, name, behavior, order=None, **of):
        """A MachineDrainRule; of: machines, pods."""
        drain = {"behavior": behavior, **({} if order is None else {"order": order})}
        return self.create("MachineDrainRule", space, name, spec={"drain": drain, **of})

    @contextlib.contextmanager
    def unchecked(self, space):
        """Nobody refuses a MachineDrainRule in that namespace, whatever it says. Where there is no manager nobody does."""
        status, answer = self.send("GET", self.path("ValidatingWebhookConfiguration"))
        if status == 404 or not answer["items"]:
            yield
            return
        name, hook = answer["items"][0]["metadata"]["name"], "validation.machinedrainrule.cluster.x-k8s.io"

        def ask(spaces):
            found = self.get("ValidatingWebhookConfiguration", None, name)
            next(w for w in found["webhooks"] if w["name"] == hook)["namespaceSelector"] = spaces
            status, answer = self.send("PUT", self.path("ValidatingWebhookConfiguration", None, name), found)
            assert status == 200, answer

        ask({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [space]}]})
        try:
            yield
        finally:
            ask({})

    def name_node(self, machine, node):
        """nodeRef, where nobody else can find it out."""
        ref = {"name": node} if self.version == "v1beta2" else {"apiVersion": "v1", "kind": "Node", "name": node}
        self.patch("Machine", *machine, {"status": {"nodeRef": ref}}, sub="status")


class StandIn:
    """Plays the manager where there is none: names the Nodes of Machines, holds deletions for hooks, deletes Nodes.

    Of what Cluster API does it knows: no hook holds without a Node, or when the Cluster is being deleted.
    """

    def __init__(self, management):
        self.objects = management
        self._done = threading.Event()
        self._workloads = {}  # kubeconfig: Objects
        self._away = {}  # Objects: until when its server is not asked again
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join(60)

    def _run(self):
        while not self._done.wait(0.05):
            try:
                clusters = {Ref(c["metadata"]["namespace"], c["metadata"]["name"]): c for c in self.objects.list("Cluster")}
                machines = self.objects.list("Machine")
            except (AssertionError, OSError, ValueError):
                continue  # the server is being mistreated
            for work, arguments in ((self._machine, [(m, clusters) for m in machines]),
                                    (self._cluster, [(r, c, machines) for r, c in clusters.items()])):
                for each in arguments:
                    try:
                        work(*each)
                    except Exception:  # pylint: disable=broad-except
                        pass  # somebody was faster, or cannot be reached, or writes nonsense: next time

    def _workload(self, ref):
        secret = self.objects.get("Secret", ref.space, f"{ref.name}-kubeconfig")
        text = base64.b64decode(secret["data"]["value"]).decode()
        if text not in self._workloads:
            with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                self._workloads[text] = Objects(Access(file.name, timeout=1))
        return self._workloads[text]

    def _ask(self, ref, work):
        """Has the workload cluster do something. One that does not answer is left alone for a while: there is one thread."""
        workload = self._workload(ref)
        if self._away.get(workload, 0) > time.monotonic():
            raise OSError("it did not answer")
        try:
            return work(workload)
        except OSError:
            self._away[workload] = time.monotonic() + 3
            raise

    def _adopt(self, kind, object_):
        meta = object_["metadata"]
        if FINALIZERS[kind] not in meta.get("finalizers", ()):
            self.objects.patch(kind, meta["namespace"], meta["name"], {"metadata": {
                "resourceVersion": meta["resourceVersion"], "finalizers": [*meta.get("finalizers", ()), FINALIZERS[kind]]}})
            return True
        return False

    def _release(self, kind, object_):
        meta = object_["metadata"]
        self.objects.patch(kind, meta["namespace"], meta["name"], {"metadata": {
            "resourceVersion": meta["resourceVersion"],
            "finalizers": [f for f in meta["finalizers"] if f != FINALIZERS[kind]]}})

    def _cluster(self, ref, cluster, machines):
        if "deletionTimestamp" in cluster["metadata"]:
            mine = [m for m in machines if Ref(m["metadata"]["namespace"], m["spec"]["clusterName"]) == ref]
            for machine in mine:
                if "deletionTimestamp" not in machine["metadata"]:
                    self.objects.delete("Machine", ref.space, machine["metadata"]["name"])
            if not mine:
                self._release("Cluster", cluster)
        elif not self._adopt("Cluster", cluster) and not cluster.get("status"):
            self.objects.patch("Cluster", *ref, {"status": {
                "initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True},
                "infrastructureReady": True, "phase": "Provisioned"}}, sub="status")

    def _machine(self, machine, clusters):
        meta = machine["metadata"]
        ref = Ref(meta["namespace"], machine["spec"]["clusterName"])
        cluster = clusters.get(ref)
        annotations = meta.get("annotations", {})
        if PAUSED in annotations or cluster is None or cluster.get("spec", {}).get("paused"):
            return
        if "deletionTimestamp" in meta:
            if FINALIZERS["Machine"] in meta.get("finalizers", ()):
                self._delete(machine, cluster, ref)
        elif not self._adopt("Machine", machine):
            self._join(machine, ref)

    def _join(self, machine, ref):
        meta = machine["metadata"]
        lab = self.objects.get("LabMachine", ref.space, meta["name"])
        provider = lab["spec"]["providerID"]
        if machine["spec"].get("providerID") != provider:
            self.objects.patch("Machine", ref.space, meta["name"], {"spec": {"providerID": provider}})
        if machine.get("status", {}).get("nodeRef"):
            return
        for node in self._ask(ref, lambda workload: workload.list("Node")):
            if node["spec"].get("providerID") == provider:
                name = node["metadata"]["name"]
                self._ask(ref, lambda workload: workload.mark("Node", None, name, annotations={
                    CAPI + "cluster-name": ref.name, CAPI + "cluster-namespace": ref.space, CAPI + "machine": meta["name"]}))
                self.objects.name_node(Ref(ref.space, meta["name"]), name)

    def _delete(self, machine, cluster, ref):
        annotations = machine["metadata"].get("annotations", {})
        node = machine.get("status", {}).get("nodeRef", {}).get("name")
        held = node and "deletionTimestamp" not in cluster["metadata"]
        if held and any(key.startswith(PRE_DRAIN) for key in annotations):
            self._waiting(machine, "WaitingForPreDrainHook")
        elif any(key.startswith(PRE_TERMINATE) for key in annotations):
            self._waiting(machine, "WaitingForPreTerminateHook")
        else:
            if held:
                self._ask(ref, lambda workload: workload.delete("Node", None, node))
            self._release("Machine", machine)

    def _waiting(self, machine, reason):
        meta, status = machine["metadata"], machine.get("status", {})
        if any(c["reason"] == reason for c in status.get("conditions", ())):
            return
        condition = {"type": "Deleting", "status": "True", "reason": reason, "message": reason,
                     "lastTransitionTime": meta["deletionTimestamp"]}
        change = {"conditions": [condition]}
        if self.objects.version == "v1beta2" and reason == "WaitingForPreDrainHook":
            change["deletion"] = {"waitForPreDrainHookStartTime": meta["deletionTimestamp"]}
        self.objects.patch("Machine", meta["namespace"], meta["name"], {"status": change}, sub="status")


def status_of(management, machine):
    """{phase, reason, since} as the bridge tells it at the Machine; empty: nothing."""
    return json.loads((management.annotations("Machine", *machine) or {}).get(OWN + "bridge-status", "{}"))
