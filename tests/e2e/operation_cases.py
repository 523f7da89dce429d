"""operation_cases: the tables of tests/data/operations, as objects to send and what the API server says to them."""

import glob
import os

import yaml

from backend import ROOT

GROUP = "drydock.dev"
KINDS = {"maintenancewindows": "MaintenanceWindow", "nodemaintenances": "NodeMaintenance",
         "nodeoperationtemplates": "NodeOperationTemplate", "nodeseries": "NodeSeries", "nodestates": "NodeState"}
FOLDER = os.path.join(ROOT, "tests", "data", "operations")
OPERATION = {"name": "a", "type": "one-shot", "script": "true"}


def path(plural, name=None, sub=None, namespace="default"):
    parts = ["", "apis", GROUP, "v1alpha1"]
    parts += ["namespaces", namespace] if plural == "nodestates" else []
    return "/".join(parts + [plural] + ([name] if name else []) + ([sub] if sub else []))


def make(plural, name, spec):
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": KINDS[plural], "metadata": {"name": name}, "spec": spec}


class Case:
    """One row of a table."""

    def __init__(self, plural, row):
        unknown = set(row) - {"case", "spec", "operation", "metadata", "refused", "loose"}
        assert not unknown, f"{row['case']}: {unknown}"
        self.plural, self.name = plural, row["case"]
        self.refused, self.loose = row.get("refused", []), row.get("loose", False)
        spec = row.get("spec", {})
        if "operation" in row:
            spec = {"operations": [{"name": "a", **row["operation"]}]}
        elif plural == "nodemaintenances" and "operations" not in spec:
            spec = {**spec, "operations": [OPERATION]}
        self.body = make(plural, "x", spec)
        self.body["metadata"].update(row.get("metadata", {}))

    def send(self, access):
        """(status, answer). Nothing is stored."""
        validation = "Ignore" if self.loose else "Strict"
        return access.request("POST", path(self.plural) + f"?dryRun=All&fieldValidation={validation}", self.body)


def cases():
    for file in sorted(glob.glob(os.path.join(FOLDER, "*.yaml"))):
        table = os.path.basename(file).removesuffix(".yaml")
        with open(file, encoding="utf-8") as f:
            for row in yaml.safe_load(f):
                yield Case("nodemaintenances" if table == "newcomers" else table, row)
