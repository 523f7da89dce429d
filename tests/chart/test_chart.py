"""What the chart makes of its values: well-formed objects, pods that meet `restricted`, exactly the rights that are asked for."""

import base64
import json
import re

import pytest
import yaml

from conftest import CHART, TOP, find, program, rendered, run, settings

# What needs another use.
PARENTS = {"forcedDrains": "drains", "drainRules": "drains", "workloads": "requests", "volumes": "requests", "watchCrds": "requests"}


def chosen(values):
    """The values of a set over the chart's own, of the parts that decide about rights."""
    own = yaml.safe_load((CHART / f"ci/{values}-values.yaml").read_text(encoding="utf-8")) if values != "defaults" else {}
    every = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return {"uses": every["controller"]["uses"] | own.get("controller", {}).get("uses", {}),
            "crds": every["crds"] | own.get("crds", {}),
            "metal3": every["bridge"]["metal3"] | own.get("bridge", {}).get("metal3", {}),
            "auth": own.get("auth", "none"),
            "leaseNamespaces": own.get("controller", {}).get("leaseNamespaces", [])}


def unused(values):
    """What a set of values does not use, in the words of `drydock rbac`."""
    wanted = chosen(values)
    uses = wanted["uses"]
    names = [name for name, on in uses.items() if not on or not uses.get(PARENTS.get(name), True)]
    words = [re.sub(r"[A-Z]", lambda letter: "-" + letter.group(0).lower(), name) for name in names]
    words += [] if wanted["crds"]["byController"] else ["install-crds"]
    words += [] if wanted["metal3"]["enabled"] else ["metal3"]
    words += [] if wanted["auth"] == "cluster" else ["auth"]
    return ",".join(words)


def spread(roles):
    """{(kind, namespace): {(group, resource, names, verb)}} of roles."""
    found = {}
    for role in roles:
        rights = found.setdefault((role["kind"], role["metadata"].get("namespace")), set())
        for rule in role["rules"]:
            rights |= {(group, resource, name, verb) for group in rule["apiGroups"] for resource in rule["resources"]
                       for name in rule.get("resourceNames", [""]) for verb in rule["verbs"]}
    return found


def pods(items):
    """{name: spec} of all pods that the objects make."""
    found = {item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in items if item["kind"] == "Deployment"}
    return found | {item["metadata"]["name"]: item["spec"] for item in items if item["kind"] == "Pod"}


def test_the_files_that_are_made_are_current():
    done = run(TOP / "tools/manifests", "--check", "--drydock", program("DRYDOCK"), check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_helm_has_nothing_to_say(values):
    done = run(program("HELM"), "lint", "--strict", CHART, *settings(values), check=False)
    assert done.returncode == 0, done.stdout


def test_no_object_is_there_twice_and_each_belongs_to_the_release(values):
    items = rendered(values)
    names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in items]
    assert len(names) == len(set(names)), names
    for item in items:
        labels = item["metadata"]["labels"]
        assert (labels["app.kubernetes.io/instance"], labels["app.kubernetes.io/managed-by"]) == ("drydock", "Helm"), item


def test_every_pod_meets_restricted(values):
    """The level of Pod Security; an API server is asked for its opinion in tests/e2e/test_chart.py."""
    for name, spec in pods(rendered(values)).items():
        assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == 65532, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        assert {kind for volume in spec.get("volumes", []) for kind in volume} <= {"name", "secret"}, name
        for container in spec["containers"]:
            assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                    "capabilities": {"drop": ["ALL"]}}, name


def test_the_rights_are_those_that_the_program_prints(values):
    items = rendered(values)
    for part in ("controller", "bridge"):
        account = next((item["subjects"][0]["name"] for item in items if item["kind"] == "ClusterRoleBinding"
                        and item["metadata"]["name"] == f"drydock-{part}"), None)
        if account is None:
            continue
        bound = {(item["kind"].removesuffix("Binding"), item["metadata"].get("namespace"), item["roleRef"]["name"]) for item in items
                 if item["kind"].endswith("Binding") and item.get("subjects", [{}])[0].get("name") == account}
        given = spread(item for item in items if item["kind"] in ("Role", "ClusterRole") and
                       (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) in bound
                       and "operations" not in item["metadata"]["name"])
        spaces = ",".join(chosen(values)["leaseNamespaces"])
        printed = run(program("DRYDOCK"), "rbac", part, "-o", "json", "--namespace", "here", "--without", unused(values),
                      "--lease-namespaces", spaces)
        assert given == spread(json.loads(printed.stdout)["items"]), part


def test_a_bridge_for_one_namespace_has_rights_there_alone():
    items = rendered("bridge")
    assert not [item for item in items if item["kind"] in ("ClusterRole", "ClusterRoleBinding")]
    role = find(items, "Role", "drydock-bridge-machines")
    assert role["metadata"]["namespace"] == "tenants"
    assert ("", "secrets", "", "get") in spread([role])["Role", "tenants"]
    assert "--namespace=tenants" in pods(items)["drydock-bridge"]["containers"][0]["args"]


def test_nobody_is_bound_to_the_roles_of_people():
    items = rendered("everything")
    for kind, name in (("ClusterRole", "drydock-actor"), ("ClusterRole", "drydock-override"), ("Role", "drydock-viewer"),
                       ("ClusterRole", "drydock-viewer")):
        find(items, kind, name)
    assert not [item for item in items if item["kind"].endswith("RoleBinding") and
                item["roleRef"]["name"] in ("drydock-actor", "drydock-override", "drydock-viewer")]


def test_the_program_knows_every_argument(values):
    for name, spec in pods(rendered(values)).items():
        args = spec["containers"][0]["args"]
        known = run(program("DRYDOCK"), args[0], "--help").stdout
        for arg in args[1:]:
            flag = arg.partition("=")[0]
            assert not flag.startswith("-") or re.search(rf"^ *{flag}\b", known, re.M), f"{name}: {flag}"


def test_the_configuration_arrives_as_it_was_written():
    def config(values):
        return base64.b64decode(find(rendered(values), "Secret", "drydock-config")["data"]["maintenance.yaml"]).decode()
    as_mapping = yaml.safe_load(config("everything"))["instances"]["notify"][0]["config"]
    assert as_mapping["body"] == "{{ .State }} of {{ .Node.Name }}", "a mapping is no template of Helm's"
    as_text = yaml.safe_load(config("original"))["instances"]["notify"][0]["config"]
    assert (as_text["channel"], as_text["message"]) == ("#drydock", "{{ .State }}"), "a text is one, as with the original"
    spec = pods(rendered("original"))["drydock-controller"]
    container = spec["containers"][0]
    assert container["envFrom"] == [{"secretRef": {"name": "drydock-secrets"}}]
    assert container["resources"]["limits"] == container["resources"]["requests"] == {"cpu": "200m", "memory": "256Mi"}
    assert container["image"] == "registry.example/tools/drydock:0.4.0"
    assert spec["serviceAccountName"] == "maintenance-controller"
    assert set(find(rendered("original"), "Secret", "drydock-config")["data"]) == {"maintenance.yaml", "esx.yaml", "kubernikus.yaml"}
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
        "config": "/config", "cloudconfig": "/provider", "tls": "/tls"}
    assert {"--enable-esx-maintenance", "--enable-kubernikus-maintenance"} < set(container["args"])


def test_a_secret_of_ones_own_is_mounted():
    items = rendered("crds-by-controller")
    spec = pods(items)["drydock-controller"]
    assert spec["volumes"] == [{"name": "config", "secret": {"secretName": "mine"}}]
    assert "--install-crds" in spec["containers"][0]["args"]
    assert not [item for item in items if item["kind"] in ("CustomResourceDefinition", "Secret")]


def test_one_replica_has_no_budget_that_would_block_its_drain():
    assert not [item for item in rendered("least") if item["kind"] == "PodDisruptionBudget"]
    assert find(rendered("defaults"), "PodDisruptionBudget")["spec"]["minAvailable"] == 1


def test_uninstalling_leaves_the_crds_unless_told_otherwise():
    keep = "helm.sh/resource-policy"
    kept = [item for item in rendered("defaults") if item["kind"] == "CustomResourceDefinition"]
    assert len(kept) == 3 and all(item["metadata"]["annotations"][keep] == "keep" for item in kept)
    gone = [item for item in rendered("defaults", "--set", "crds.keep=false") if item["kind"] == "CustomResourceDefinition"]
    assert len(gone) == 3 and not any(keep in item["metadata"].get("annotations", {}) for item in gone)


@pytest.mark.parametrize("setting, said", [
    ("controler.enabled=true", "controler"),
    ("replicaCount=many", "replicaCount"),
    ("controller.uses.drain=true", "drain"),
    ("image.pullPolicy=Sometimes", "pullPolicy"),
    ("podAntiAffinity=maybe", "podAntiAffinity"),
    ("bridge.namespace=Not_A_Name", "namespace"),
    ("logLevel=loud", "logLevel"),
    ("extraArgs={serve}", "extraArgs"),
    ("auth=cluster", "tls.secretName"),
])
def test_a_value_that_is_wrong_is_refused_by_name(setting, said):
    done = run(program("HELM"), "template", "drydock", CHART, "--set", setting, check=False)
    assert done.returncode != 0 and said in done.stderr, done.stderr
