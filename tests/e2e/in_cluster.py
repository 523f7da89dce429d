"""in_cluster: programs of the image as pods of real nodes."""

import http.client
import os
import subprocess

import kubernetes
import pytest
import yaml

from backend import CLUSTER
from process import parse_metrics
from wait import wait_for

RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
USER = {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
HOST = "kubernetes.io/hostname"


def workload(name, replicas, image, **spec):
    """A Deployment whose pods have one container; `container` and `spec` are merged into it and into the pod."""
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", **spec.pop("container", {})}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}}}


def account(name, namespace, *roles):
    """A service account, these roles (copies, with the account's name), and their bindings."""
    found = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}]
    for role in roles:
        place = {"name": name, **({"namespace": namespace} if role["kind"] == "Role" else {})}
        found.append({**role, "metadata": place})
        found.append({"apiVersion": role["apiVersion"], "kind": role["kind"] + "Binding", "metadata": place,
                      "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": name},
                      "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]})
    return found


def keep_logs(backend, client, namespace):
    """For whoever looks into a failure."""
    folder = os.path.join(backend.folder, "pods")
    os.makedirs(folder, exist_ok=True)
    for pod in client.core.list_namespaced_pod(namespace).items:
        try:
            text = client.core.read_namespaced_pod_log(pod.metadata.name, namespace)
        except kubernetes.client.ApiException as error:
            text = f"{error.status} {error.body}"  # it has not begun, or is gone
        with open(os.path.join(folder, f"{namespace}-{pod.metadata.name}.log"), "w", encoding="utf-8") as f:
            f.write(text)


@pytest.fixture(name="apply")
def fixture_apply(backend, client, kubectl):
    """apply(namespace, object…): made by kubectl, deleted after the test. Pods do not get their grace period then: some programs
    use it to wait for a last scrape."""
    made = []

    def apply(namespace, *objects):
        text = yaml.safe_dump_all(objects)
        made.append((namespace, text))
        kubectl("apply", "--namespace", namespace, "-f", "-", stdin=text)

    yield apply
    for namespace in {namespace for namespace, _ in made}:
        keep_logs(backend, client, namespace)
    for namespace, text in reversed(made):
        kubectl("delete", "--namespace", namespace, "--ignore-not-found", "--wait=false", "-f", "-", stdin=text)
        kubectl("delete", "pods", "--namespace", namespace, "--all", "--grace-period", "1", "--wait=false")


@pytest.fixture(name="restricted")
def fixture_restricted(client, namespace):
    client.core.patch_namespace(namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    return namespace


@pytest.fixture(name="helm")
def fixture_helm(backend, client, restricted):
    """helm(argument…): what it printed. The release `drydock` is gone after the test."""
    folder = subprocess.run([os.path.join(CLUSTER, "build-helm")], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()

    def run(*arguments, check=True):
        done = subprocess.run([os.path.join(folder, "helm"), "--kubeconfig", backend.kubeconfig, "--namespace", restricted, *arguments],
                              env={**backend.kubectl_env(), "HELM_NO_PLUGINS": "1"}, text=True, capture_output=True, check=False)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    yield run
    keep_logs(backend, client, restricted)
    run("uninstall", "drydock", "--ignore-not-found")


class Pods:
    """The pods of a workload, as seen from beside the nodes."""

    def __init__(self, client, namespace, selector):
        self.core, self.namespace, self.selector = client.core, namespace, selector

    def all(self):
        return [pod for pod in self.core.list_namespaced_pod(self.namespace, label_selector=self.selector).items
                if not pod.metadata.deletion_timestamp]

    def ready(self):
        return [pod for pod in self.all() if {c.type: c.status for c in pod.status.conditions or []}.get("Ready") == "True"]

    def wait_ready(self, count):
        return wait_for(lambda: len(found := self.ready()) == count and found, f"{count} pods with {self.selector} are ready", interval=0.2)

    def named(self, holder):
        """The one that holds a Lease with this identity, "<pod>_<uuid>"."""
        return next(pod for pod in self.all() if holder.startswith(pod.metadata.name + "_"))

    def log(self, pod):
        return self.core.read_namespaced_pod_log(pod.metadata.name, self.namespace)


def get(pod, port, path):
    """One HTTP exchange with a pod: (status, body)."""
    connection = http.client.HTTPConnection(pod.status.pod_ip, port, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def metric(pod, name, /, **labels):
    """Sum of the samples that have (at least) these labels."""
    status, body = get(pod, 8080, "/metrics")
    assert status == 200
    wanted = set(labels.items())
    return sum(value for (found, pairs), value in parse_metrics(body).items() if found == name and wanted <= set(pairs))
