"""The rights that `drydock rbac` prints: the controller and an actor do all of their work with exactly those."""

import json
import subprocess

import pytest

from backend import Access
from objects import deployment, pod
from process import Process, drydock
from requests_api import CLIENT_LABEL, path
from requests_fixture import ASKS, LIMITS, fixture_installed, fixture_objects, fixture_requests_env, fixture_serve
from test_requests import PROFILE, STATE
from wait import wait_for

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def roles():
    """{(kind, name): object} of all that the program prints; Roles of one name and several namespaces as one."""
    printed = subprocess.run([drydock(), "rbac", "-o", "json", "--without", "install-crds,watch-crds"], check=True, text=True,
                             capture_output=True, timeout=60)
    found = {}
    for role in json.loads(printed.stdout)["items"]:
        found.setdefault((role["kind"], role["metadata"]["name"]), {**role, "rules": []})["rules"] += role["rules"]
    return found


@pytest.fixture(name="give")
def fixture_give(backend, objects, tmp_path):
    """give(user, role…): the kubeconfig of a user who has the rights of these roles and no others."""
    made = []

    def create(where, body):
        status, answer = objects.send("POST", where, body)
        assert status == 201, answer
        made.append(f"{where}/{body['metadata']['name']}")

    def give(user, names, namespace=None):
        for kind, name in names:
            own = kind == "Role"
            where = f"{RBAC}/namespaces/{namespace}" if own else RBAC
            role = roles()[kind, name]
            role["metadata"] = {"name": f"{user}-{name}"}
            create(f"{where}/{kind.lower()}s", role)
            create(f"{where}/{kind.lower()}bindings", {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind + "Binding",
                "metadata": {"name": f"{user}-{name}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": f"{user}-{name}"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})
        return str(backend.access.variant(tmp_path / f"{user}.kubeconfig", user={"as": user}))

    yield give
    for where in made:
        objects.send("DELETE", where)


# The sandbox knows an administrator and nobody else.
@pytest.mark.backend("cluster")
@pytest.mark.nodes(2)
def test_the_rights_of_the_roles_are_enough(requests_env, serve, give, client, objects, kubectl, nodes, namespace, unique, tmp_path):
    node, profiled = nodes
    controller_user, actor_user = f"{unique}-controller", f"{unique}-actor"
    config = give(controller_user, [(kind, name) for kind in ("ClusterRole", "Role") for name in (
        "drydock-controller", "drydock-operations")], namespace)
    actor = give(actor_user, [("ClusterRole", "drydock-actor")])
    refused = kubectl("auth", "can-i", "list", "secrets", "--as", controller_user, check=False)
    assert refused.stdout.strip() == "no", "rights are asked for on this server"

    # Something of everything: a drain with a budget, volumes, workloads, namespaces, a selector, all safety checks.
    client.core.patch_namespace(namespace, {"metadata": {"labels": {"tier": unique}}})
    client.core.create_namespaced_pod(namespace, pod("goes", node=node))
    client.apps.create_namespaced_deployment(namespace, deployment("web", 1, {"e2e": unique}))
    wait_for(lambda: client.apps.read_namespaced_deployment("web", namespace).status.available_replicas, "web serves")
    requests_env.limit("-works", type="deployment", limit=100, selector={}, namespaceSelector={
        "matchLabels": {"tier": unique}})
    for kind in ("daemonset", "statefulset"):
        requests_env.limit("-" + kind, type=kind, limit=100)
    status, answer = objects.create("maintenanceselectors", unique, {"names": nodes}, namespace=namespace)
    assert status == 201, answer
    status, answer = objects.create(LIMITS, unique, {
        "type": "node", "limit": 100, "selectorRef": {"namespace": namespace, "name": unique},
        "drain": {"evictUnmanaged": True}, "infraDrain": {},
        "safetyChecks": ["PodDisruptionBudgets", "ControlPlaneQuorum", "WorkloadLimits"]})
    assert status == 201, answer
    profile = tmp_path / "maintenance.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    controller = serve("--config", str(profile), "--enable-leader-election",
                       "--lease-namespace", namespace, "--system-namespace", namespace, "--jobs-namespace", namespace,
                       "--finished-ttl", "1s", kubeconfig=config)
    requests_env.wait_limit(unique, population=2, nominal=2)

    with Process([drydock(), "run", "--kubeconfig", actor, "--client", unique, node, "--", "true"],
                 str(tmp_path), "run") as run:
        assert run.wait() == 0, run.log() + controller.log()
    wait_for(lambda: not objects.of(unique), "the finished request is deleted")
    work = requests_env.ask("web", type="deployment", namespace=namespace)
    requests_env.act(work)
    client.core.patch_node(profiled, {"metadata": {"labels": {
        "cloud.sap/maintenance-profile": "cycle", "update": "needed"}}})
    wait_for(lambda: client.core.read_node(profiled).metadata.labels.get(STATE) == "in-maintenance", "it is in maintenance")
    client.core.patch_node(profiled, {"metadata": {"labels": {"update": "done"}}})
    wait_for(lambda: client.core.read_node(profiled).metadata.labels.get(STATE) == "operational", "it is back")
    requests_env.nothing_is_left(unique, nodes=[node])
    assert wait_for(lambda: client.core.list_event_for_all_namespaces(
        field_selector="reason=MaintenanceApproved,involvedObject.kind=MaintenanceRequest").items, "an event is there")
    assert controller.metric("rest_client_requests_total", code="403") == 0, controller.log()
    assert "forbidden" not in controller.log()


POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
CREATED_BY = "drydock.dev/created-by"


@pytest.fixture(name="policy")
def fixture_policy(objects, unique):
    """The policy that the program prints, in force for the requests of this case alone."""
    printed = json.loads(subprocess.run([drydock(), "crds", "--policies", "-o", "json"], check=True, text=True,
                                        capture_output=True, timeout=60).stdout)["items"]
    policy, binding = printed
    assert (policy["kind"], binding["kind"]) == ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = unique
    binding["spec"]["matchResources"] = {"objectSelector": {"matchLabels": {CLIENT_LABEL: unique}}}
    for where, body in ((POLICIES, policy), (POLICIES[:-3] + "ybindings", binding)):
        status, answer = objects.send("POST", where, body)
        assert status == 201, answer
    wait_for(lambda: "typeChecking" in objects.send("GET", f"{POLICIES}/{unique}")[1].get("status", {}), "it was checked")
    checked = objects.send("GET", f"{POLICIES}/{unique}")[1]["status"]["typeChecking"]
    yield checked
    objects.send("DELETE", f"{POLICIES[:-3]}ybindings/{unique}")
    objects.send("DELETE", f"{POLICIES}/{unique}")


@pytest.mark.backend("cluster")
@pytest.mark.nodes(1)
def test_only_its_creator_changes_a_request(policy, give, objects, nodes, unique, tmp_path):
    users = {who: f"{unique}-{who}" for who in ("owner", "other", "controller")}
    configs = {who: give(user, [("ClusterRole", "drydock-controller" if who == "controller" else "drydock-actor")])
               for who, user in users.items()}
    access = {who: Access(config) for who, config in configs.items()}
    assert not policy.get("expressionWarnings")

    def send(who, method, where, body):
        kind = "application/json" if method == "POST" else "application/merge-patch+json"
        return access[who].request(method, where, body, kind)

    def change(who, name, body):
        status, answer = send(who, "PATCH", path("maintenancerequests", name), body)
        return status, answer.get("message", "")

    unsigned = {"apiVersion": "repairman.k8s.io/v1", "kind": "MaintenanceRequest",
                "metadata": {"name": f"{unique}-x", "labels": {CLIENT_LABEL: unique}},
                "spec": {"name": nodes[0], "type": "node"}}
    where = path("maintenancerequests") + "?dryRun=All"
    wait_for(lambda: send("other", "POST", where, unsigned)[0] == 403, "the policy is in force")
    assert f"drydock.dev/created-by: {users['other']}" in send("other", "POST", where, unsigned)[1]["message"]
    unsigned["metadata"]["annotations"] = {CREATED_BY: users["owner"]}
    assert send("other", "POST", where, unsigned)[0] == 403, "nobody signs for another"

    with Process([drydock(), "request", "--kubeconfig", configs["owner"], "--client", unique, nodes[0]], str(tmp_path), "ask") as ask:
        assert ask.wait() == 0, ask.log()
    made = objects.of(unique)[0]["metadata"]
    name = made["name"]
    objects.made.append(path("maintenancerequests", name))
    assert made["annotations"][CREATED_BY] == users["owner"]

    status, message = change("other", name, {"spec": {"state": "Completed"}})
    assert status == 403 and "only its creator" in message
    for who in ("owner", "other"):
        assert change(who, name, {"metadata": {"annotations": {CREATED_BY: users["other"]}}})[0] == 403
    status, message = change("owner", name, {"spec": {"state": "Approved"}})
    assert status == 403 and "only the controller approves" in message
    assert change("controller", name, {"spec": {"state": "Approved"}})[0] == 200
    assert change("other", name, {"spec": {"state": "InProgress"}})[0] == 403
    assert change("owner", name, {"spec": {"state": "InProgress"}})[0] == 200
    assert change("owner", name, {"spec": {"state": "Completed"}})[0] == 200
