"""requests_api: the kinds of repairman.k8s.io as the cases use them."""

import json
import os
import shutil
import subprocess

import yaml

from process import drydock
from wait import wait_for

GROUP = "repairman.k8s.io"
KINDS = {"maintenancelimits": "MaintenanceLimit", "maintenancerequests": "MaintenanceRequest",
         "maintenanceselectors": "MaintenanceSelector"}
CLIENT_LABEL = "maintenancerequests.repairman.k8s.io/clientname"


def install(backend, folder, *flags):
    """The CRDs, by kubectl from what the program prints; found again by whoever comes second."""
    text = subprocess.run([drydock(), "crds", *flags], check=True, text=True, capture_output=True,
                          timeout=60).stdout
    result = subprocess.run(
        backend.kubectl_command("apply", "-f", "-"), input=text, text=True, cwd=folder,
        capture_output=True, timeout=120, check=False, env=backend.kubectl_env())
    assert result.returncode == 0, result.stderr
    installed = ["/apis/{group}/{versions[0][name]}/{names[plural]}".format(**crd["spec"]) for crd in yaml.safe_load_all(text)]
    wait_for(lambda: all(backend.access.request("GET", where)[0] == 200 for where in installed), "the kinds are served")
    # Debian's kubectl (1.20) does not look again for short names that its cache does not have.
    shutil.rmtree(os.path.join(backend.kubectl_env()["HOME"], ".kube", "cache"), ignore_errors=True)


def path(plural, name=None, namespace=None, sub=None):
    parts = ["", "apis", GROUP, "v1"]
    parts += ["namespaces", namespace] if namespace else []
    parts += [plural] + ([name] if name else []) + ([sub] if sub else [])
    return "/".join(parts)


def make(plural, name, spec=None, labels=None):
    body = {"apiVersion": f"{GROUP}/v1", "kind": KINDS[plural], "metadata": {"name": name}}
    if spec is not None:
        body["spec"] = spec
    if labels:
        body["metadata"]["labels"] = labels
    return body


class Requests:
    """MaintenanceRequests and MaintenanceLimits by plain HTTP; what a test makes goes with it."""

    def __init__(self, backend):
        self.access = backend.access
        self.made = []

    def send(self, method, where, body=None, content_type="application/json"):
        return self.access.request(method, where, body, content_type)

    def create(self, plural, name, spec=None, labels=None, namespace=None, strict=True):
        """(status, answer). Strict: an unknown field is refused, as kubectl has it."""
        where = path(plural, namespace=namespace)
        where += "?fieldValidation=Strict" if strict else ""
        status, answer = self.send("POST", where, make(plural, name, spec, labels))
        if status == 201:
            self.made.append(path(plural, name, namespace))
        return status, answer

    def get(self, plural, name, namespace=None):
        status, answer = self.send("GET", path(plural, name, namespace))
        assert status == 200, answer
        return answer

    def patch(self, plural, name, change, sub=None):
        return self.send("PATCH", path(plural, name, sub=sub), change,
                         "application/merge-patch+json")

    def state(self, name):
        return self.get("maintenancerequests", name).get("spec", {}).get("state")

    def move(self, name, *states):
        """As drydock and actors do; anybody may."""
        for state in states:
            status, answer = self.patch("maintenancerequests", name, {"spec": {"state": state}})
            assert status == 200, answer

    def of(self, client):
        """The requests of one actor, oldest name first."""
        selector = f"{CLIENT_LABEL}%3D{client}".replace("/", "%2F")
        status, answer = self.send("GET", path("maintenancerequests") + f"?labelSelector={selector}")
        assert status == 200, answer
        return answer["items"]

    def keep(self, plural, name):
        """It was made by a program, and goes with the test."""
        self.made.append(path(plural, name))

    def clean(self):
        for where in self.made:
            self.send("DELETE", where)


def causes(answer):
    """What the server says is wrong, as {field: message}."""
    assert answer["reason"] == "Invalid", json.dumps(answer)
    return {cause.get("field"): cause["message"] for cause in answer["details"]["causes"]}
