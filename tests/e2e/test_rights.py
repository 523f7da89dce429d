"""The list of rights, from both sides: the controller does its work with exactly the rights that the chart gives, and there is none
among them that nothing asks for. Rights are judged by a proxy, so that the sandbox can be asked, and one right be taken away at a time."""

import collections
import json
import re
import subprocess
import urllib.parse

import pytest

from auth_proxy import AuthProxy
from contract import PROFILE, STATE
from objects import budget, daemon_set, deployment, pod
from process import Controller, drydock
from requests_fixture import ASKS, LIMITS, fixture_installed, fixture_objects, fixture_requests_env
from wait import wait_for

Right = collections.namedtuple("Right", "namespace group resource verb")
PATH = re.compile(r"^/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
                  r"(?:/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[a-z]+))?)?)?$")
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
# Uses whose own suites show that they need their rights (test_crds.py, those of integrations and of the port).
ELSEWHERE = "install-crds,watch-crds,hypervisors,auth"
GROUP = "repairman.k8s.io"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# The world is the sandbox's own: what it answers is the same as a server's, and a case takes a second.
pytestmark = pytest.mark.backend("sandbox")


def printed(*arguments):
    """{Right} of the roles that the program prints."""
    items = json.loads(subprocess.run([drydock(), "rbac", "-o", "json", *arguments], check=True, text=True, capture_output=True,
                                      timeout=60).stdout)["items"]
    return {Right(role["metadata"].get("namespace"), group, resource, verb) for role in items for rule in role["rules"]
            for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}


def wanted(request):
    """What a request asks for; None: everybody may."""
    url = urllib.parse.urlsplit(request.path)
    found = PATH.match(url.path)
    if not found or not (found["resource"] or found["namespace"]):
        return None
    group, resource, name = found["group"] or "", found["resource"], found["name"]
    space = found["namespace"]
    if resource is None:
        group, resource, name, space = "", "namespaces", space, None
    if group == "authorization.k8s.io":
        return None
    if found["sub"]:
        resource += "/" + found["sub"]
    query = urllib.parse.parse_qs(url.query)
    verb = VERBS.get(request.method) or ("watch" if query.get("watch", ["0"])[0] in ("1", "true") else "get" if name else "list")
    return Right(space, group, resource, verb)


class Judge:
    """A proxy that lets pass what these rights allow, and notes by which of them. A server that cannot stream lists is one of the
    older ones; one that stumbles answers the first write of each kind with an error, so that the object is read again."""

    def __init__(self, backend, folder, rights, old=False, stumbles=False):
        self.rights, self.used, self.missed = rights, set(), set()
        self.old, self.stumbles, self.stumbled = old, stumbles, set()
        self.proxy = AuthProxy(backend.access, folder)
        self.proxy.answer = self._judge

    def _judge(self, request):
        asked = wanted(request)
        if asked is None:
            return None
        right = next(iter({asked, asked._replace(namespace=None)} & self.rights), None)
        if right is None:
            self.missed.add(asked)
            return 403
        if self.old and "sendInitialEvents" in request.path:
            return 400
        self.used.add(right)
        if self.stumbles and asked.verb == "patch" and asked.group == GROUP and asked not in self.stumbled:
            self.stumbled.add(asked)
            return 500
        return None


CONFIG = """
instances:
  check:
  - {type: hasLabel, name: wanted, config: {key: update, value: needed}}
  - {type: hasLabel, name: done, config: {key: update, value: done}}
  - {type: stagger, name: turns, config: {duration: 1s, leaseName: turns, leaseNamespace: LEASES}}
  - {type: affinity, name: free, config: {minOperational: 0}}
  trigger:
  - {type: eviction, name: drain, config: {action: drain, forceEviction: true, evictionTimeout: 1s}}
  - {type: eviction, name: back, config: {action: uncordon}}
  notify:
  - {type: webhook, name: nobody, config: {url: "http://127.0.0.1:1/"}, schedule: {type: oneshot, config: {delay: 0s}}}
  - {type: webhook, name: noone, config: {url: "http://127.0.0.1:1/"}, schedule: {type: oneshot, config: {delay: 0s}}}
profiles:
- name: cycle
  operational: {transitions: [{check: wanted, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: "turns && free", trigger: drain, next: in-maintenance}]}
  in-maintenance: {notify: "nobody && noone", transitions: [{check: done, trigger: back, next: operational}]}
"""


def limits_of_everything(requests_env, objects, namespace, unique):
    """Limits and a selector that need every watch that there is."""
    requests_env.limit("-works", type="deployment", limit=100, selector={}, namespaceSelector={"matchLabels": {"tier": unique}})
    for kind in ("daemonset", "statefulset"):
        requests_env.limit("-" + kind, type=kind, limit=100)
    status, answer = objects.create("maintenanceselectors", unique, {"selector": {"matchLabels": {"case": unique}}}, namespace=namespace)
    assert status == 201, answer
    status, answer = objects.create(LIMITS, unique, {
        "type": "node", "limit": 100, "selectorRef": {"namespace": namespace, "name": unique},
        "drain": {"evictUnmanaged": True, "timeoutSeconds": 1, "onTimeout": "Force"}, "infraDrain": {},
        "safetyChecks": ["PodDisruptionBudgets", "ControlPlaneQuorum", "WorkloadLimits"]})
    assert status == 201, answer


@pytest.fixture(name="world")
def fixture_world(backend, client, objects, requests_env, nodes, namespace, unique, tmp_path):
    """world(rights, …): two controllers behind a judge, and work for them that needs every right there is."""
    ended = []

    def world(rights, count=2, **manners):
        folder = tmp_path / f"w{len(ended)}"
        folder.mkdir()
        judge = Judge(backend, folder, rights, **manners)
        config = folder / "maintenance.yaml"
        config.write_text(CONFIG.replace("LEASES", namespace), encoding="utf-8")
        flags = ["--config", str(config), "--enable-leader-election", "--lease-namespace", namespace, "--finished-ttl", "1s"]
        controllers = [Controller(judge.proxy.file(folder / f"kubeconfig{i}"), folder / f"c{i}", flags=flags) for i in range(count)]
        ended.append((judge, controllers))
        return judge, controllers

    client.core.patch_namespace(namespace, {"metadata": {"labels": {"tier": unique}}})
    for name in nodes:
        client.core.patch_node(name, {"metadata": {"labels": {"case": unique}}})
    limits_of_everything(requests_env, objects, namespace, unique)
    client.core.create_namespaced_persistent_volume_claim(namespace, {"metadata": {"name": "disk"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": f"{unique}-disk"}})
    attachment = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": unique}, "spec": {
        "attacher": "disks", "nodeName": nodes[0], "source": {"persistentVolumeName": f"{unique}-disk"}}}
    status, answer = objects.send("POST", ATTACHMENTS, attachment)
    assert status == 201, answer
    stays = pod("stays", {"app": "stays", "cluster.x-k8s.io/drain": "skip"}, node=nodes[0])
    stays["spec"]["volumes"] = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
    client.core.create_namespaced_pod(namespace, stays)
    client.core.create_namespaced_pod(namespace, pod("guarded", node=nodes[0]))
    client.policy.create_namespaced_pod_disruption_budget(namespace, budget("guard", "guarded", minAvailable=1))
    client.apps.create_namespaced_deployment(namespace, deployment("web", 1, {"e2e": unique}))
    client.apps.create_namespaced_daemon_set(namespace, daemon_set("agent", {"no": "where"}))
    client.apps.create_namespaced_stateful_set(namespace, {
        "metadata": {"name": "store"}, "spec": {**deployment("store", 0)["spec"], "serviceName": "store"}})
    yield world
    objects.send("DELETE", f"{ATTACHMENTS}/{unique}")
    for judge, controllers in ended:
        for controller in controllers:
            controller.end()
        judge.proxy.__exit__()


def work(requests_env, client, nodes, namespace, controllers):
    """Everything that the controller is asked for in its life, once."""
    asked = requests_env.ask(nodes[0])
    for kind, name in (("deployment", "web"), ("daemonset", "agent"), ("statefulset", "store")):
        requests_env.act(requests_env.ask(name, type=kind, namespace=namespace))
    requests_env.act(asked)
    for _ in range(2):
        client.core.patch_node(nodes[1], {"metadata": {"labels": {PROFILE: "cycle", "update": "needed"}}})
        wait_for(lambda: client.core.read_node(nodes[1]).metadata.labels.get(STATE) == "in-maintenance", "it is in maintenance")
        client.core.patch_node(nodes[1], {"metadata": {"labels": {"update": "done"}}})
        wait_for(lambda: client.core.read_node(nodes[1]).metadata.labels.get(STATE) == "operational", "it is back")
    for controller in controllers:
        controller.get("/api/v1/status")  # who does not lead asks who does


@pytest.mark.nodes(2)
def test_the_controller_uses_every_right_and_no_other(world, requests_env, client, nodes, namespace):
    """On a server that streams lists, and on one that does not. The CRDs of operations are there, and nobody has operations to do."""
    given = printed("controller", "--namespace", namespace, "--lease-namespaces", namespace, "--without", ELSEWHERE)
    used = set()
    for manners in ({"stumbles": True}, {"old": True}):
        judge, controllers = world(given | printed("operations"), **manners)
        work(requests_env, client, nodes, namespace, controllers)
        requests_env.nothing_is_left(nodes=nodes)
        wait_for(lambda: manners.get("old") is None or not requests_env.uids(), "finished requests are deleted")
        assert not judge.missed
        used |= judge.used
        for controller in controllers:
            controller.end()
    assert sorted(given - used) == [], "nothing asks for it"


@pytest.mark.nodes(2)
def test_a_controller_without_one_right_misses_it_and_lives_on(world, requests_env, client, nodes, namespace, unique):
    """What a start needs, taken away one by one: to follow each kind, and to lead."""
    given = printed("controller", "--namespace", namespace, "--lease-namespaces", namespace, "--without", ELSEWHERE)
    allowed = given | printed("operations")

    def start(rights):
        client.leases.delete_collection_namespaced_lease(namespace)
        judge, controllers = world(rights, count=1, old=True)
        return judge, controllers[0]
    judge, controller = start(allowed)
    requests_env.wait_limit(unique, population=len(nodes))
    wait_for(lambda: judge.used >= {Right(namespace, "coordination.k8s.io", "leases", verb) for verb in ("get", "create", "update")}, "it leads")
    controller.end()
    needed = [right for right in sorted(judge.used & given, key=str) if right.verb in ("list", "watch") or right.resource == "leases"]
    assert len(needed) > 20, needed
    for right in needed:
        judge, controller = start(allowed - {right})
        wait_for(lambda j=judge: j.missed, f"{right} is missed")
        assert {missed if right.namespace else missed._replace(namespace=None) for missed in judge.missed} == {right}
        assert controller.alive(), controller.log()
        controller.end()
