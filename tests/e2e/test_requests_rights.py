"""What the documentation says about rights: the controller and an actor do all of their work with exactly those."""

import os
import re

import pytest
import yaml

from objects import deployment, pod
from process import Process, drydock
from requests_fixture import ASKS, LIMITS, fixture_installed, fixture_objects, fixture_requests_env, fixture_serve
from test_requests import PROFILE, STATE
from wait import wait_for

RBAC = "/apis/rbac.authorization.k8s.io/v1"
DOCS = os.path.join(os.path.dirname(__file__), "../../docs/requests.md")


def documented():
    """{(kind, name): object} of all that the page shows."""
    with open(DOCS, encoding="utf-8") as f:
        found = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", f.read(), re.S)]
    return {(o["kind"], o["metadata"]["name"]): o for o in found}


@pytest.fixture(name="give")
def fixture_give(backend, objects, unique, tmp_path):
    """give(user, role…): the kubeconfig of a user who has the rights of these pages and no others."""
    made = []

    def create(where, body):
        status, answer = objects.send("POST", where, body)
        assert status == 201, answer
        made.append(f"{where}/{body['metadata']['name']}")

    def give(user, roles, namespace=None):
        for kind, name in roles:
            own = kind == "Role"
            where = f"{RBAC}/namespaces/{namespace}" if own else RBAC
            role = documented()[kind, name]
            role["metadata"] = {"name": f"{unique}-{name}"}
            create(f"{where}/{kind.lower()}s", role)
            create(f"{where}/{kind.lower()}bindings", {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind + "Binding",
                "metadata": {"name": f"{unique}-{name}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": f"{unique}-{name}"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})
        return str(backend.access.variant(tmp_path / f"{user}.kubeconfig", user={"as": user}))

    yield give
    for where in made:
        objects.send("DELETE", where)


# The sandbox knows an administrator and nobody else.
@pytest.mark.backend("cluster")
@pytest.mark.nodes(2)
def test_the_rights_on_the_page_are_enough(requests_env, serve, give, client, objects, kubectl, nodes, namespace, unique, tmp_path):
    node, profiled = nodes
    controller_user, actor_user = f"{unique}-controller", f"{unique}-actor"
    config = give(controller_user, [("ClusterRole", "drydock-controller"), ("Role", "drydock-controller")], namespace)
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
                       "--lease-namespace", namespace, "--finished-ttl", "1s", kubeconfig=config)
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
