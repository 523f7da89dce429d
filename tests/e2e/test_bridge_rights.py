"""The rights that `drydock rbac` prints: the bridge does all of its work with exactly those, in both clusters."""

import json
import subprocess

import pytest

from backend import Access
from bridge import fixture_serve, fixture_bridge_env, leads
from capi import APPROVE_MAINTENANCE, DELETED, ENABLED, HOOK_VALUE, MAINTAINED, REBOOT, RULES, Objects, status_of
from process import drydock
from wait import holds_for, wait_for

RBAC = "/apis/rbac.authorization.k8s.io/v1"

# The sandbox knows an administrator and nobody else.
pytestmark = pytest.mark.backend("cluster")


def roles(without=""):
    """{(kind, name): object} of all that the program prints."""
    printed = subprocess.run([drydock(), "rbac", "-o", "json", "--without", without], check=True, text=True, capture_output=True,
                             timeout=60)
    return {(o["kind"], o["metadata"]["name"]): o for o in json.loads(printed.stdout)["items"]}


def give(objects, user, name, kind, namespace=None, as_role=None, without=None, unused=""):
    """The user has the rights of the role in that cluster; `as_role`: in this namespace alone; `without`: but for this resource;
    `unused`: what it is not needed for. Where the role is."""
    role = roles(unused)[kind, name]
    for rule in role["rules"]:
        rule["resources"] = [resource for resource in rule["resources"] if resource != without]
    namespace = as_role or namespace
    kind = "Role" if namespace else kind
    role["kind"], role["metadata"] = kind, {"name": f"{user}-{name}"}
    where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    for plural, body in ((f"{kind.lower()}s", role), (f"{kind.lower()}bindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind + "Binding", "metadata": {"name": f"{user}-{name}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": f"{user}-{name}"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})):
        status, answer = objects.send("POST", f"{where}/{plural}", body)
        assert status == 201, answer
    return f"{where}/{kind.lower()}s/{user}-{name}"


@pytest.mark.parametrize("confined", [False, True])
def test_the_rights_of_the_roles_are_enough(bridge_env, bridge_clusters, serve, confined):
    """A deletion, a maintenance with its host, a Machine that is disabled, events, a Lease; once with rights in one namespace
    of the management cluster."""
    user, space = f"{bridge_env.unique}-bridge", bridge_env.space()
    lease = bridge_clusters.management.space(f"{bridge_env.unique}-own")
    home = bridge_clusters.home.access.variant(bridge_env.folder / "home", user={"as": user})
    bridge = serve("--namespace", space, "--enable-metal3-maintenance", "--metal3-require-drained", kubeconfig=home, lease=lease,
                   ready=False)
    wait_for(lambda: "forbidden" in bridge.log(), "it is asked for its rights")
    inside = space if confined else None
    give(bridge_clusters.management, user, "drydock-bridge", "ClusterRole", as_role=inside)
    give(bridge_clusters.management, user, "drydock-bridge", "Role", lease)
    give(bridge_clusters.workloads["one"], user, "drydock-bridge-workload", "ClusterRole",
         unused="workload-requests,workload-account")
    wait_for(lambda: leads(bridge.wait_ready()), "it leads")
    before = bridge.log().count("forbidden")

    # Cluster API itself goes on as the administrator.
    auth_proxy = bridge_env.auth_proxy()
    auth_proxy.impersonate = lambda request: user
    denied = Objects(Access(auth_proxy.file(bridge_env.folder / "denied"))).send("DELETE", "/api/v1/nodes/nobody")
    assert denied[0] == 403, denied
    auth_proxy.impersonate = lambda request: user if "drydock" in request.agent else None
    cluster = bridge_env.cluster(auth_proxy.kubeconfig(), space=space)
    names = [f"{bridge_env.unique}-m{i}" for i in range(3)]
    host = bridge_env.host(space=space, consumer=names[1])
    leaving = bridge_env.pair(cluster)
    maintained = bridge_env.pair(cluster, provider=f"metal3://{space}/{host['name']}/{names[1]}")
    disabled = bridge_env.pair(cluster)
    for pair in (leaving, maintained, disabled):
        pair.wait_hook()
    leaving.delete()
    leaving.wait_node(DELETED)
    leaving.approve()
    leaving.wait_gone()
    for pair in (maintained, disabled):
        pair.ask("requested")
        pair.wait_node(MAINTAINED)
    maintained.workload.patch("Node", None, maintained.node, {"spec": {"unschedulable": True}})
    maintained.approve(APPROVE_MAINTENANCE)
    maintained.wait_maintenance("approved")
    wait_for(lambda: REBOOT in bridge_env.management.annotations("BareMetalHost", space, host["name"]), "the host is switched off")
    maintained.ask(None)
    wait_for(lambda: REBOOT not in bridge_env.management.annotations("BareMetalHost", space, host["name"]), "the host is on")
    disabled.mark({ENABLED: None})
    disabled.wait_node(MAINTAINED, None)
    leaving.wait_event("HookReleased")
    assert bridge.log().count("forbidden") == before, bridge.log()


def test_no_node_is_asked_without_the_right_to_drain_rules(bridge_env, bridge_clusters, serve):
    """Who does not know them cannot tell a Node what its drain is to spare. It says what is missing, and goes on once it may."""
    user, space = f"{bridge_env.unique}-bridge", bridge_env.space()
    lease = bridge_clusters.management.space(f"{bridge_env.unique}-own")
    role = give(bridge_clusters.management, user, "drydock-bridge", "ClusterRole", as_role=space, without="machinedrainrules")
    give(bridge_clusters.management, user, "drydock-bridge", "Role", lease)
    home = bridge_clusters.home.access.variant(bridge_env.folder / "home", user={"as": user})
    bridge = serve("--namespace", space, kubeconfig=home, lease=lease, ready=False)
    wait_for(lambda: leads(bridge), "it leads")
    cluster = bridge_env.cluster(space=space)
    leaving, maintained = bridge_env.pair(cluster), bridge_env.pair(cluster)
    for pair in (leaving, maintained):
        pair.wait_hook()
    leaving.delete()
    maintained.ask("requested")
    for pair in (leaving, maintained):
        wait_for(lambda p=pair: status_of(bridge_clusters.management, p.machine).get("reason") == "DrainRulesUnknown", "the Machine says it")
        said = subprocess.run([drydock(), "explain", "machine", "/".join(pair.machine), "--address",
                               f"http://127.0.0.1:{bridge.metrics_port}"], text=True, capture_output=True, check=True, timeout=60)
        assert "machinedrainrules" in said.stdout and "forbidden" in said.stdout, said.stdout
    status, _, text = bridge.health("/readyz")
    assert status != 200 and "machinedrainrules" in text, text
    holds_for(lambda: not any({DELETED, MAINTAINED} & set(pair.node_labels()) for pair in (leaving, maintained)), 1)
    assert leaving.hook() == HOOK_VALUE

    rules = roles()["ClusterRole", "drydock-bridge"]["rules"]
    status, answer = bridge_clusters.management.send("PATCH", role, {"rules": rules}, "application/merge-patch+json")
    assert status == 200, answer
    leaving.wait_node(DELETED)
    maintained.wait_node(MAINTAINED)
    assert leaving.node_annotations()[RULES] == maintained.node_annotations()[RULES] == "[]"
    bridge.wait_ready()
    leaving.approve()
    leaving.wait_gone()
