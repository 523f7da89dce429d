"""--workload-rbac=manage: the bridge makes an account in the workload cluster and works with its tokens."""

import json
import subprocess

import pytest

from bridge import fixture_serve, fixture_bridge_env, text_of
from capi import APPROVE_MAINTENANCE, DELETED, MAINTAINED
from process import drydock
from wait import holds_for, wait_for

NAME = "drydock-bridge"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"
THINGS = (f"{ACCOUNTS}/{NAME}", f"{RBAC}/clusterroles/{NAME}", f"{RBAC}/clusterrolebindings/{NAME}")
NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]}


@pytest.fixture(name="workload")
def fixture_workload(bridge_clusters):
    """The cluster `one`, without an account of the bridge before and after."""
    workload = bridge_clusters.workloads["one"]

    def clean():
        for thing in THINGS:
            workload.send("DELETE", thing)
    clean()
    yield workload
    clean()


@pytest.fixture(name="manage")
def fixture_manage(bridge_env, serve):
    """manage(kubeconfig, flag…): a bridge for the namespace of the case, and a Cluster in it."""
    def run(kubeconfig=None, *flags):
        space = bridge_env.space()
        return serve("--namespace", space, "--workload-rbac", "manage", *flags), bridge_env.cluster(kubeconfig, space=space)
    return run


def post(workload, path, body):
    status, answer = workload.send("POST", path, body)
    assert status == 201, answer
    return answer


def somebody(bridge_env, workload, *roles):
    """A kubeconfig of an account that has these roles: (kind, namespace, rules)."""
    name = f"{bridge_env.unique}-somebody"
    post(workload, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    for kind, space, rules in roles:
        where = f"{RBAC}/namespaces/{space}" if space else RBAC
        post(workload, f"{where}/{kind.lower()}s", {"metadata": {"name": name}, "rules": rules})
        post(workload, f"{where}/{kind.lower()}bindings", {
            "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]})
    token = post(workload, f"/api/v1/namespaces/default/serviceaccounts/{name}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})["status"]["token"]
    return text_of(workload.access.variant(bridge_env.folder / name, user={
        "token": token, "client-certificate-data": None, "client-key-data": None}))


def roles(unused):
    """[(kind, namespace, rules)] that `drydock rbac bridge-workload` prints."""
    printed = subprocess.run([drydock(), "rbac", "bridge-workload", "-o", "json", "--without", unused], check=True, text=True,
                             capture_output=True, timeout=60)
    return [(o["kind"], o["metadata"].get("namespace"), o["rules"]) for o in json.loads(printed.stdout)["items"]]


def read(workload, path):
    """None: there is none."""
    status, answer = workload.send("GET", path)
    assert status in (200, 404), answer
    return answer if status == 200 else None


def links(bridge):
    return bridge.get("/api/v1/links")[2]


def crosses(pair):
    """A deletion from its request to its release: Nodes are watched and written to. The rest is Cluster API's, which takes half
    a minute to look at a kubeconfig again that did not let it in."""
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    pair.approve()
    pair.wait_free()


def test_an_account_is_made_and_does_the_work(bridge_env, manage, workload):
    """Whom the kubeconfig names may hand out rights and has none on Nodes."""
    kubeconfig = somebody(
        bridge_env, workload,
        ("ClusterRole", None, [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles", "clusterrolebindings"],
                                "verbs": ["get", "create", "patch", "delete", "escalate", "bind"]}]),
        ("Role", "kube-system", [{"apiGroups": [""], "resources": ["serviceaccounts", "serviceaccounts/token"],
                                  "verbs": ["get", "create"]}]))
    bridge, cluster = manage(kubeconfig)
    pair = bridge_env.pair(cluster, wait=False)
    bridge_env.management.name_node(pair.machine, pair.node)  # nor may Cluster API find it with this kubeconfig
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.approve(APPROVE_MAINTENANCE)
    pair.wait_maintenance("approved")
    role, binding = read(workload, THINGS[1]), read(workload, THINGS[2])
    assert role["rules"] == [NODES]
    assert binding["roleRef"]["name"] == NAME
    assert [(s["kind"], s["namespace"], s["name"]) for s in binding["subjects"]] == [("ServiceAccount", "kube-system", NAME)]
    log = bridge.log()
    assert "account in workload cluster written" in log
    assert "eyJ" not in log, "no token is told"


def test_the_rights_of_the_roles_are_enough(bridge_env, manage, workload):
    bridge, cluster = manage(somebody(bridge_env, workload, *roles("workload-requests")),
                             "--enable-metal3-maintenance", "--metal3-require-drained")
    pair = bridge_env.pair(cluster, wait=False)
    bridge_env.management.name_node(pair.machine, pair.node)
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    assert len(read(workload, THINGS[1])["rules"]) == 2, "pods, too"
    assert "forbidden" not in bridge.log(), bridge.log()


def test_who_may_not_make_an_account_is_told(bridge_env, manage, workload):
    bridge, cluster = manage(somebody(bridge_env, workload, *roles("workload-requests,workload-drained,workload-account")))
    pair = bridge_env.pair(cluster, wait=False)
    bridge_env.management.name_node(pair.machine, pair.node)
    wait_for(lambda: "may not make an account for the bridge: ServiceAccount 'drydock-bridge' cannot be read" in links(bridge),
             "it says what is wrong")
    assert pair.hook() is None
    assert not any(read(workload, thing) for thing in THINGS)
    # Another kubeconfig mends it at once, though it would wait for minutes.
    bridge_env.management.secret(cluster, text_of(bridge_env.bridge_clusters.servers["one"].kubeconfig))
    crosses(pair)


def test_the_administrator_does_nothing_else(bridge_env, manage, workload):
    """Without its binding the account can do nothing, whatever the kubeconfig's certificate could."""
    _, cluster = manage()
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    workload.send("DELETE", THINGS[2])
    wait_for(lambda: read(workload, THINGS[2]) is None, "the binding is gone")
    probe = bridge_env.pair(cluster)  # the watch that is open still tells of it
    probe.wait_hook()
    pair.ask("requested")
    holds_for(lambda: MAINTAINED not in pair.node_labels(), 2)


def test_an_account_that_is_deleted_comes_back(bridge_env, manage, workload):
    _, cluster = manage()
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    first = read(workload, THINGS[0])["metadata"]["uid"]
    workload.send("DELETE", THINGS[0])

    def another():
        """A server remembers tokens for some seconds, so it is given something to refuse."""
        pair.ask(None if pair.maintenance() else "requested")
        found = read(workload, THINGS[0])
        return found and found["metadata"]["uid"] != first
    wait_for(another, "there is another account")
    pair.ask("requested")
    pair.wait_node(MAINTAINED)


def test_requests_carry_the_token_and_the_administrators_none(bridge_env, manage, workload):
    """Seen from an auth_proxy: Nodes are touched with the token only, and nothing else is asked for with it."""
    auth_proxy = bridge_env.auth_proxy()
    _, cluster = manage(auth_proxy.kubeconfig())
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    asked = [(r.path, r.headers.get("authorization", "")) for r in list(auth_proxy.requests) if "drydock" in r.agent]
    with_token = [path for path, who in asked if who.startswith("Bearer eyJ")]
    assert with_token and all(path.startswith("/api/v1/nodes") for path in with_token)
    others = [path for path, who in asked if not who]
    assert others and not any(path.startswith("/api/v1/nodes") for path in others)
    assert workload.send("GET", THINGS[0])[0] == 200
