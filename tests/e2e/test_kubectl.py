"""kubectl itself on both back ends: what it prints and what it leaves behind."""

import json
import re

import pytest

from objects import budget, daemon_set, deployment, pod
from process import Process
from wait import holds_for, wait_for


def rows(text):
    """A printed table as a list of {column: cell}."""
    lines = text.rstrip("\n").split("\n")
    columns = re.split(r"\s{2,}", lines[0].strip())
    starts = [lines[0].index(c) for c in columns]
    table = []
    for line in lines[1:]:
        cells = [line[a:b].strip() for a, b in zip(starts, starts[1:] + [None])]
        table.append(dict(zip(columns, cells)))
    return table


def running_pods(client, namespace, count):
    """The pods of the namespace, once `count` of them are ready."""
    def ready():
        pods = client.core.list_namespaced_pod(namespace).items
        good = [p for p in pods if not p.metadata.deletion_timestamp
                and any(c.type == "Ready" and c.status == "True" for c in p.status.conditions or [])]
        return good if len(good) == count and len(pods) == count else None
    return wait_for(ready, f"{count} pods of {namespace} are ready", interval=0.1)


def apply(kubectl, namespace, *manifests, flags=()):
    return kubectl("apply", "-n", namespace, "-f", "-", *flags,
                   stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))


# --- looking ---


def test_get_prints_the_columns_of_nodes(kubectl, nodes, unique):
    table = rows(kubectl("get", "nodes", "-l", f"e2e={unique}"))
    assert [list(row) for row in table] == [["NAME", "STATUS", "ROLES", "AGE", "VERSION"]] * 2
    assert [row["NAME"] for row in table] == sorted(nodes)
    assert [row["STATUS"] for row in table] == ["Ready"] * 2
    assert [row["ROLES"] for row in table] == ["<none>"] * 2
    assert all(re.fullmatch(r"\d+[sm].*", row["AGE"]) for row in table)


@pytest.mark.nodes(1)
def test_get_wide_adds_columns(kubectl, nodes):
    columns = list(rows(kubectl("get", "node", nodes[0], "-o", "wide"))[0])
    assert columns == ["NAME", "STATUS", "ROLES", "AGE", "VERSION", "INTERNAL-IP", "EXTERNAL-IP",
                       "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]


@pytest.mark.nodes(1)
def test_get_prints_pods_with_their_node(kubectl, client, namespace, nodes):
    client.core.create_namespaced_pod(namespace, pod("one", node=nodes[0]))
    running_pods(client, namespace, 1)
    row, = rows(kubectl("get", "pods", "-n", namespace, "-o", "wide"))
    assert list(row) == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE",
                         "NOMINATED NODE", "READINESS GATES"]
    assert (row["NAME"], row["READY"], row["STATUS"], row["RESTARTS"], row["NODE"]) == \
        ("one", "1/1", "Running", "0", nodes[0])


def test_get_prints_other_formats(kubectl, nodes, unique):
    selector = ("-l", f"e2e={unique}")
    assert kubectl("get", "nodes", *selector, "-o", "name").split() == \
        [f"node/{n}" for n in sorted(nodes)]
    assert kubectl("get", "nodes", *selector, "-o",
                   "jsonpath={.items[*].metadata.name}").split() == sorted(nodes)
    listed = json.loads(kubectl("get", "nodes", *selector, "-o", "json"))
    assert listed["kind"] == "List" and len(listed["items"]) == 2
    assert kubectl("get", "nodes", *selector, "--no-headers", "-o",
                   "custom-columns=N:.metadata.name").split() == sorted(nodes)


def test_get_says_what_is_missing(kubectl, unique):
    result = kubectl("get", "node", unique, check=False)
    assert (result.returncode, result.stdout, result.stderr) == \
        (1, "", f'Error from server (NotFound): nodes "{unique}" not found\n')
    result = kubectl("get", "nodes", "-l", f"e2e={unique}", check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "No resources found\n")
    result = kubectl("get", "pods", "-n", "default", "-l", f"e2e={unique}", check=False)
    assert (result.returncode, result.stderr) == (0, "No resources found in default namespace.\n")
    result = kubectl("get", "sailboats", check=False)
    assert result.returncode == 1
    assert 'the server doesn\'t have a resource type "sailboats"' in result.stderr


@pytest.mark.nodes(1)
def test_describe_tells_about_a_node(kubectl, client, namespace, nodes):
    client.core.create_namespaced_pod(namespace, pod("one", node=nodes[0]))
    running_pods(client, namespace, 1)
    text = kubectl("describe", "node", nodes[0])
    assert re.search(rf"^Name:\s+{nodes[0]}$", text, re.M)
    assert re.search(r"^Unschedulable:\s+false$", text, re.M)
    assert re.search(r"^\s+Ready\s+True\s", text, re.M)
    assert re.search(r"^Non-terminated Pods:\s+\(1 in total\)$", text, re.M)
    assert re.search(rf"^\s+{namespace}\s+one\s", text, re.M)


@pytest.mark.nodes(1)
def test_describe_tells_about_a_pod(kubectl, client, namespace, nodes):
    client.core.create_namespaced_pod(namespace, pod("one", node=nodes[0]))
    running_pods(client, namespace, 1)
    text = kubectl("describe", "pod", "-n", namespace, "one")
    assert re.search(rf"^Node:\s+{nodes[0]}/", text, re.M)
    assert re.search(r"^Status:\s+Running$", text, re.M)
    assert re.search(r"^\s+Image:\s+registry.example.com/app:1$", text, re.M)


@pytest.mark.nodes(1)
def test_get_w_follows_changes(backend, kubectl, nodes, tmp_path):
    name = nodes[0]
    arguments = backend.kubectl_command("get", "node", name, "-w", "--no-headers")
    with Process(arguments, tmp_path, "watch", backend.kubectl_env()) as watch:
        def statuses():
            lines = [line.split() for line in watch.out().splitlines()]
            return [line[1] for line in lines if line[0] == name]
        # A line for every change of the node, also for those that others make.
        wait_for(lambda: set(statuses()) == {"Ready"}, what="the watch shows the node")
        kubectl("cordon", name)
        wait_for(lambda: statuses()[-1] == "Ready,SchedulingDisabled",
                 what="the watch shows the cordon")
        kubectl("uncordon", name)
        wait_for(lambda: statuses()[-1] == "Ready", what="the watch shows the uncordon")
        assert watch.alive()


def test_api_resources_are_listed(kubectl):
    names = kubectl("api-resources", "-o", "name").split()
    assert {"nodes", "pods", "leases.coordination.k8s.io", "events.events.k8s.io",
            "poddisruptionbudgets.policy", "deployments.apps", "jobs.batch",
            "customresourcedefinitions.apiextensions.k8s.io"} <= set(names)


# --- changing ---


@pytest.mark.nodes(1)
def test_label_sets_overwrites_and_removes(kubectl, client, nodes):
    name = nodes[0]

    def label():
        return client.core.read_node(name).metadata.labels.get("colour")

    assert kubectl("label", "node", name, "colour=red") == f"node/{name} labeled\n"
    assert label() == "red"
    result = kubectl("label", "node", name, "colour=blue", check=False)
    assert result.returncode == 1
    assert "'colour' already has a value (red), and --overwrite is false" in result.stderr
    assert label() == "red"
    kubectl("label", "node", name, "colour=blue", "--overwrite")
    assert label() == "blue"
    kubectl("label", "node", name, "colour-")
    assert label() is None
    result = kubectl("label", "node", name, "colour=not a value", check=False)
    assert result.returncode == 1 and "invalid label" in result.stderr


@pytest.mark.nodes(1)
def test_annotate_sets_and_removes(kubectl, client, nodes):
    name = nodes[0]
    text = 'two words, "quotes" and <brackets>'
    assert kubectl("annotate", "node", name, f"note={text}") in \
        (f"node/{name} annotated\n", f"node/{name} annotate\n")
    assert client.core.read_node(name).metadata.annotations["note"] == text
    kubectl("annotate", "node", name, "note-")
    assert "note" not in (client.core.read_node(name).metadata.annotations or {})


@pytest.mark.nodes(1)
def test_cordon_and_uncordon(kubectl, client, nodes):
    name = nodes[0]
    assert kubectl("cordon", name) == f"node/{name} cordoned\n"
    assert client.core.read_node(name).spec.unschedulable is True
    assert rows(kubectl("get", "node", name))[0]["STATUS"] == "Ready,SchedulingDisabled"
    assert kubectl("cordon", name) == f"node/{name} already cordoned\n"
    assert kubectl("uncordon", name) == f"node/{name} uncordoned\n"
    assert not client.core.read_node(name).spec.unschedulable
    assert kubectl("uncordon", name) == f"node/{name} already uncordoned\n"


def test_cordoned_nodes_get_no_pods(kubectl, client, namespace, nodes, unique):
    kubectl("cordon", nodes[0])
    apply(kubectl, namespace, deployment("web", 3, {"e2e": unique}))
    assert {p.spec.node_name for p in running_pods(client, namespace, 3)} == {nodes[1]}


def test_apply_creates_configures_and_leaves_unchanged(kubectl, client, namespace):
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
                "data": {"a": "1", "b": "2"}}
    assert apply(kubectl, namespace, manifest) == "configmap/c created\n"
    assert apply(kubectl, namespace, manifest) == "configmap/c unchanged\n"
    client.core.patch_namespaced_config_map("c", namespace, {"data": {"other": "kept"}})
    manifest["data"] = {"a": "1", "c": "3"}
    assert apply(kubectl, namespace, manifest) == "configmap/c configured\n"
    data = client.core.read_namespaced_config_map("c", namespace).data
    assert data == {"a": "1", "c": "3", "other": "kept"}


def test_apply_server_side_keeps_owners_apart(kubectl, client, namespace):
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
                "data": {"a": "1", "b": "2"}}
    out = apply(kubectl, namespace, manifest, flags=("--server-side",))
    assert out == "configmap/c serverside-applied\n"
    manifest["data"] = {"a": "other"}
    result = kubectl("apply", "-n", namespace, "-f", "-", "--server-side", "--field-manager=rival",
                     stdin=json.dumps(manifest), check=False)
    assert result.returncode == 1
    assert "Apply failed with 1 conflict" in result.stderr and ".data.a" in result.stderr
    apply(kubectl, namespace, manifest,
          flags=("--server-side", "--field-manager=rival", "--force-conflicts"))
    assert client.core.read_namespaced_config_map("c", namespace).data == {"a": "other", "b": "2"}


# What kubectl makes from flags alone it sends in protobuf: (words, what it prints).
CREATED = [
    ("configmap c --from-literal=a=1", "configmap/c created"),
    ("secret generic s --from-literal=user=root", "secret/s created"),
    ("serviceaccount robot", "serviceaccount/robot created"),
    ("deployment web --image=a:1 --replicas=0", "deployment.apps/web created"),
    ("job once --image=a:1 -- true", "job.batch/once created"),
    ("cronjob nightly --image=a:1 --schedule=@daily -- date", "cronjob.batch/nightly created"),
    ("poddisruptionbudget keep --selector=app=web --min-available=50%",
     "poddisruptionbudget.policy/keep created"),
    ("role reader --verb=get --resource=pods", "role.rbac.authorization.k8s.io/reader created"),
    ("rolebinding read --role=reader --serviceaccount=default:robot",
     "rolebinding.rbac.authorization.k8s.io/read created"),
]


@pytest.mark.parametrize("words, printed", CREATED, ids=[w.split()[0] for w, _ in CREATED])
def test_create_from_flags(kubectl, namespace, words, printed):
    words = words.split()
    if words[0] == "rolebinding":
        kubectl("create", "-n", namespace, "role", "reader", "--verb=get", "--resource=pods")
    assert kubectl("create", "-n", namespace, *words) == printed + "\n"
    name = words[2] if words[0] == "secret" else words[1]
    made = json.loads(kubectl("get", "-n", namespace, words[0], name, "-o", "json"))
    assert made["metadata"]["name"] == name
    # What kubectl prints of the object it sends is in what the server has.
    dry = words.index("--") if "--" in words else len(words)
    sent = json.loads(kubectl("create", "-n", namespace, *words[:dry], "--dry-run=client", "-o", "json",
                              *words[dry:]))
    assert missing(sent.get("spec", sent.get("data", sent.get("rules"))),
                   made.get("spec", made.get("data", made.get("rules")))) == []


def missing(part, whole, where=""):
    """What of a value another one does not have; null and {} stand for nothing."""
    if isinstance(part, dict):
        return [m for k, v in part.items() if v not in (None, {})
                for m in missing(v, (whole or {}).get(k), f"{where}.{k}")]
    if isinstance(part, list) and isinstance(whole, list) and len(part) == len(whole):
        return [m for i, (p, w) in enumerate(zip(part, whole)) for m in missing(p, w, f"{where}[{i}]")]
    return [] if part == whole else [f"{where} is {whole}, want {part}"]


def test_create_for_the_whole_cluster(kubectl, unique):
    """The namespace last: deleting it takes the controllers of a real cluster a moment."""
    made = [("clusterrole", f"{unique}-look", "--verb=get", "--resource=nodes"),
            ("clusterrolebinding", f"{unique}-looks", f"--clusterrole={unique}-look", "--user=ann"),
            ("priorityclass", f"{unique}-high", "--value=1000", "--description=much"),
            ("namespace", f"{unique}-space")]
    try:
        for words in made:
            assert kubectl("create", *words).endswith(f"/{words[1]} created\n")
        row, = rows(kubectl("get", "priorityclass", f"{unique}-high"))
        assert (row["VALUE"], row["GLOBAL-DEFAULT"], row["PREEMPTIONPOLICY"]) == \
            ("1000", "false", "PreemptLowerPriority")
        assert rows(kubectl("get", "namespace", f"{unique}-space"))[0]["STATUS"] == "Active"
    finally:
        for kind, name, *_ in made:
            kubectl("delete", kind, name, "--ignore-not-found", "--wait=false")


def test_create_token_is_one_that_the_server_takes(kubectl, namespace):
    kubectl("create", "-n", namespace, "serviceaccount", "robot")
    token = kubectl("create", "-n", namespace, "token", "robot", "--duration=20m").strip()
    assert re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", token)
    result = kubectl("create", "-n", namespace, "token", "nobody", check=False)
    assert result.returncode == 1 and 'serviceaccounts "nobody" not found' in result.stderr


def test_auth_says_who_may_do_what(kubectl, namespace, unique):
    user = f"--as={unique}"

    def may(*words):
        result = kubectl("auth", "can-i", *words, check=False)
        assert result.returncode == (0 if result.stdout.strip() == "yes" else 1)
        return result.stdout.strip()

    assert may("delete", "nodes") == "yes"
    assert may("get", "pods", "-n", namespace, user) == "no"
    kubectl("create", "-n", namespace, "role", "look", "--verb=get,list", "--resource=pods,pods/log")
    kubectl("create", "-n", namespace, "rolebinding", "looks", "--role=look", f"--user={unique}")
    # A real server's authorizer learns of a new role in a moment.
    wait_for(lambda: may("get", "pods", "-n", namespace, user) == "yes", "the role counts")
    assert may("get", "pods/log", "-n", namespace, user) == "yes"
    assert may("delete", "pods", "-n", namespace, user) == "no"
    assert may("get", "pods", "-n", "default", user) == "no"
    assert may("get", "/metrics", user) == "no"
    table = kubectl("auth", "can-i", "--list", "-n", namespace, user)
    assert re.search(r"^pods\s+\[\]\s+\[\]\s+\[get list\]$", table, re.M)
    assert re.search(rf"^Username\s+{unique}$", kubectl("auth", "whoami", user), re.M)


def test_configmap_keys_are_checked(kubectl, namespace):
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a key": "1"}}
    result = kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(manifest), check=False)
    assert result.returncode == 1
    assert 'data[a key]: Invalid value: "a key": a valid config key must consist of' in result.stderr


@pytest.mark.parametrize("kind, patch", [
    ("merge", {"metadata": {"labels": {"p": "merge"}}}),
    ("strategic", {"metadata": {"labels": {"p": "strategic"}}}),
    ("json", [{"op": "add", "path": "/metadata/labels/p", "value": "json"}]),
])
@pytest.mark.nodes(1)
def test_patch_of_each_type(kubectl, client, nodes, kind, patch):
    out = kubectl("patch", "node", nodes[0], "--type", kind, "-p", json.dumps(patch))
    assert out == f"node/{nodes[0]} patched\n"
    assert client.core.read_node(nodes[0]).metadata.labels["p"] == kind
    # kubectl compares what it read with what came back: a change that somebody else makes in
    # between, as a real cluster's controllers do with a new node, is not told apart from its own.
    wait_for(lambda: kubectl("patch", "node", nodes[0], "--type", kind, "-p", json.dumps(patch)) ==
             f"node/{nodes[0]} patched (no change)\n", what="the same patch changes nothing")


@pytest.mark.nodes(1)
def test_delete_waits_until_the_pod_is_gone(kubectl, client, namespace, nodes):
    client.core.create_namespaced_pod(namespace, pod("one", node=nodes[0]))
    running_pods(client, namespace, 1)
    out = kubectl("delete", "pod", "-n", namespace, "one")
    assert out.startswith('pod "one" deleted')
    assert client.core.list_namespaced_pod(namespace).items == []
    result = kubectl("delete", "pod", "-n", namespace, "one", check=False)
    assert result.returncode == 1 and 'pods "one" not found' in result.stderr
    assert kubectl("delete", "pod", "-n", namespace, "one", "--ignore-not-found") == ""


def test_delete_of_a_deployment_takes_its_pods(kubectl, client, namespace, nodes, unique):
    apply(kubectl, namespace, deployment("web", 2, {"e2e": unique}))
    running_pods(client, namespace, 2)
    kubectl("delete", "deployment", "-n", namespace, "web")
    wait_for(lambda: not client.core.list_namespaced_pod(namespace).items,
             "the pods are gone")


@pytest.mark.nodes(1)
def test_wait_for_conditions(kubectl, client, namespace, nodes, unique):
    apply(kubectl, namespace, deployment("web", 1, {"e2e": unique}))
    assert kubectl("wait", "-n", namespace, "--for=condition=Available", "deployment/web",
                   "--timeout=120s") == "deployment.apps/web condition met\n"
    name = running_pods(client, namespace, 1)[0].metadata.name
    assert kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod", "-l", "app=web",
                   "--timeout=120s") == f"pod/{name} condition met\n"
    assert kubectl("wait", "--for=condition=Ready", "node", nodes[0], "--timeout=120s") == \
        f"node/{nodes[0]} condition met\n"
    result = kubectl("wait", "--for=condition=Drained", "node", nodes[0], "--timeout=1s",
                     check=False)
    assert result.returncode == 1 and "timed out waiting for the condition" in result.stderr


@pytest.mark.nodes(1)
def test_wait_for_deletion(backend, kubectl, client, namespace, nodes, tmp_path):
    client.core.create_namespaced_pod(namespace, pod("one", node=nodes[0]))
    running_pods(client, namespace, 1)
    arguments = backend.kubectl_command("wait", "-n", namespace, "--for=delete", "pod/one",
                                        "--timeout=120s", "-v", "6")
    with Process(arguments, tmp_path, "wait", backend.kubectl_env()) as waiting:
        wait_for(lambda: "watch=true" in waiting.log(), what="kubectl watches")
        kubectl("delete", "pod", "-n", namespace, "one")
        assert waiting.wait() == 0
        assert "pod/one condition met" in waiting.out()


def test_custom_resources_with_columns(kubectl, client, unique):
    group = f"{unique}.example.com"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"boats.{group}"},
        "spec": {"group": group, "scope": "Cluster",
                 "names": {"kind": "Boat", "plural": "boats", "singular": "boat"},
                 "versions": [{
                     "name": "v1", "served": True, "storage": True,
                     "additionalPrinterColumns": [
                         {"name": "Length", "type": "integer", "jsonPath": ".spec.length"}],
                     "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                         "spec": {"type": "object", "required": ["length"], "properties": {
                             "length": {"type": "integer", "minimum": 1}}}}}}}]}}
    boat = {"apiVersion": f"{group}/v1", "kind": "Boat", "metadata": {"name": "b"},
            "spec": {"length": 12}}
    try:
        kubectl("apply", "-f", "-", stdin=json.dumps(definition))
        kubectl("wait", "--for=condition=Established", f"crd/boats.{group}", "--timeout=120s")
        wait_for(lambda: kubectl("apply", "-f", "-", stdin=json.dumps(boat), check=False)
                 .returncode == 0, "boats are served")
        assert rows(kubectl("get", f"boats.{group}"))[0] == {"NAME": "b", "LENGTH": "12"}
        boat["spec"]["length"] = 0
        result = kubectl("apply", "-f", "-", stdin=json.dumps(boat), check=False)
        assert result.returncode == 1
        assert "spec.length: Invalid value: 0: spec.length in body should be greater than or " \
            "equal to 1" in result.stderr
    finally:
        kubectl("delete", "crd", f"boats.{group}", "--ignore-not-found")


# --- drain ---


def ends(nodes, pods):
    """(a node that has pods, the other one): a scheduler spreads pods as it likes."""
    full = pods[0].spec.node_name
    return full, next(name for name in nodes if name != full)


def test_drain_evicts_and_pods_move(kubectl, client, namespace, nodes, unique):
    apply(kubectl, namespace, deployment("web", 4, {"e2e": unique}))
    before = running_pods(client, namespace, 4)
    full, other = ends(nodes, before)
    moved = sorted(p.metadata.name for p in before if p.spec.node_name == full)
    lines = kubectl("drain", full).splitlines()
    assert lines[0] == f"node/{full} cordoned"
    assert sorted(re.findall(r"^evicting pod (\S+)$", "\n".join(lines), re.M)) in \
        ([], [f"{namespace}/{n}" for n in moved])  # printed to stderr by newer ones
    assert sorted(re.findall(r"^pod/(\S+) evicted$", "\n".join(lines), re.M)) == moved
    assert re.fullmatch(rf"node/{full} (drained|evicted)", lines[-1])
    after = running_pods(client, namespace, 4)
    assert {p.spec.node_name for p in after} == {other}


def test_drain_waits_for_a_budget_until_a_replica_is_ready(backend, kubectl, client, namespace,
                                                           nodes, unique, tmp_path):
    """Two pods, both needed: the drain is refused and tries again every five seconds. A third
    replica becomes ready elsewhere, the budget allows one disruption, the drain ends."""
    apply(kubectl, namespace, deployment("web", 2, {"e2e": unique}),
          budget("keep", "web", minAvailable=2))
    pods = running_pods(client, namespace, 2)
    full, other = ends(nodes, pods)
    victims = [p.metadata.name for p in pods if p.spec.node_name == full]

    def allowed():
        status = client.policy.read_namespaced_pod_disruption_budget("keep", namespace).status
        return status.observed_generation == 1 and status.current_healthy, \
            status.disruptions_allowed

    wait_for(lambda: allowed() == (2, 0), what="the budget is exhausted")
    arguments = backend.kubectl_command("drain", full, "--timeout=300s")
    with Process(arguments, tmp_path, "drain", backend.kubectl_env()) as drain:
        refused = f'error when evicting pods?/"({"|".join(victims)})" -n "{namespace}" ' \
            r"\(will retry after 5s\): Cannot evict pod as it would violate the pod's disruption " \
            "budget."
        wait_for(lambda: re.search(refused, drain.log()), what="the eviction is refused")
        holds_for(drain.alive, 1)
        assert all(client.core.read_namespaced_pod(name, namespace).metadata
                   .deletion_timestamp is None for name in victims)
        kubectl("patch", "deployment", "-n", namespace, "web", "-p", '{"spec":{"replicas":3}}')
        assert drain.wait() == 0
        lines = drain.out().splitlines()
        assert lines[0] == f"node/{full} cordoned"
        assert {f"pod/{name} evicted" for name in victims} <= set(lines)
        assert re.fullmatch(rf"node/{full} (drained|evicted)", lines[-1])
    after = running_pods(client, namespace, 3)
    assert {p.spec.node_name for p in after} == {other}


@pytest.mark.nodes(1)
def test_drain_asks_before_it_takes_what_nobody_replaces(kubectl, client, namespace, nodes, unique):
    client.core.create_namespaced_pod(namespace, pod("lonely", node=nodes[0]))
    apply(kubectl, namespace, daemon_set("agent", {"e2e": unique}))
    running_pods(client, namespace, 2)
    agent = next(p.metadata.name for p in client.core.list_namespaced_pod(namespace).items
                 if p.metadata.name != "lonely")
    result = kubectl("drain", nodes[0], check=False)
    assert result.returncode == 1
    assert "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): " \
        f"{namespace}/{agent}" in result.stderr
    assert re.search(r"cannot delete (Pods that|Pods not managed|Pods declare no).*"
                     rf"\(use --force to override\): {namespace}/lonely", result.stderr)
    kubectl("drain", nodes[0], "--ignore-daemonsets", "--force")
    left = [p.metadata.name for p in client.core.list_namespaced_pod(namespace).items]
    assert left == [agent]


@pytest.mark.nodes(1)
def test_drain_dry_run_changes_nothing(kubectl, client, namespace, nodes, unique):
    apply(kubectl, namespace, deployment("web", 1, {"e2e": unique}))
    name = running_pods(client, namespace, 1)[0].metadata.name
    out = kubectl("drain", nodes[0], "--dry-run=client")
    assert re.search(rf"^node/{nodes[0]} cordoned \(dry run\)$", out, re.M)
    assert not client.core.read_node(nodes[0]).spec.unschedulable
    assert client.core.read_namespaced_pod(name, namespace).metadata.deletion_timestamp is None
