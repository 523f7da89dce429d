"""What the command line of the bridge changes. Every case has a bridge and a namespace of its own."""

import json
import re
import resource
import subprocess

import pytest
import yaml

from bridge import fixture_serve, fixture_bridge_env, leads, text_of
from capi import (APPROVE_MAINTENANCE, CAPI, DELETED, ENABLED, HOOK_VALUE, LEASE, MAINTAINED, OWN,
                  REBOOT)
from process import Bridge, Port, drydock
from wait import holds_for, wait_for


@pytest.fixture(name="alone")
def fixture_alone(bridge_env, serve):
    """alone(flag…): a bridge for the namespace of the case, and a Cluster in it."""
    def run(*flags, cluster=None, **kwargs):
        space = bridge_env.space()
        bridge = serve("--namespace", space, *flags, **kwargs)
        return bridge, bridge_env.cluster(cluster, space=space)
    return run


def test_an_old_approval_counts_where_that_is_wanted(bridge_env, alone):
    """B15: the rules of the original, to the letter."""
    _, cluster = alone("--strict-legacy-approval")
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    pair.approve()
    pair.wait_free()
    pair.delete()
    pair.wait_gone()
    other = bridge_env.pair(cluster)
    other.wait_hook()
    other.approve(APPROVE_MAINTENANCE)
    other.ask("requested")
    other.wait_maintenance("approved")


def test_eager_protects_before_there_is_a_node(bridge_env, alone):
    _, cluster = alone("--hook-mode", "eager")
    pair = bridge_env.pair(cluster, node=False)
    pair.wait_hook()
    assert pair.hook() == HOOK_VALUE
    other = bridge_env.pair(cluster, state=None)
    other.wait_hook()
    other.mark({ENABLED: None})
    other.wait_free()


def test_a_deletion_is_held_no_longer_than_told(bridge_env, alone):
    _, cluster = alone("--deletion-hold", "2s", "--clock-skew-tolerance", "0s")
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    pair.delete()
    pair.wait_gone()
    pair.wait_event("HookReleased")
    assert pair.wait_event("HoldTimeOver")["type"] == "Warning"


def test_a_machine_says_itself_how_long_it_is_held(bridge_env, alone):
    _, cluster = alone("--clock-skew-tolerance", "0s")
    pair = bridge_env.pair(cluster, annotations={OWN + "deletion-hold-seconds": "2"})
    other = bridge_env.pair(cluster, annotations={OWN + "deletion-hold-seconds": "soon"})
    for each in (pair, other):
        each.wait_hook()
        each.delete()
    pair.wait_gone()
    assert other.hook() == HOOK_VALUE


def test_an_unreachable_cluster_holds_no_longer_than_told(bridge_env, alone):
    auth_proxy = bridge_env.auth_proxy()
    _, cluster = alone("--unreachable-timeout", "3s", "--clock-skew-tolerance", "0s", cluster=auth_proxy.kubeconfig())
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    auth_proxy.shut()
    pair.delete()
    pair.wait_free()
    assert pair.wait_event("ClusterUnreachable")["type"] == "Warning"


def test_a_forged_approval_is_refused_where_that_is_wanted(bridge_env, alone):
    """B18."""
    _, cluster = alone("--refuse-forged-approval")
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    pair.ask("approved")
    pair.wait_event("ForgedApproval")
    pair.wait_maintenance("requested")
    pair.wait_node(MAINTAINED)
    pair.approve(APPROVE_MAINTENANCE)
    pair.wait_maintenance("approved")


def test_only_machines_of_the_filter_are_looked_after(bridge_env, alone):
    label = CAPI + "watch-filter"
    _, cluster = alone("--watch-filter", "mine")
    mine = bridge_env.pair(cluster, labels={label: "mine"})
    others = [bridge_env.pair(cluster, labels={label: "yours"}), bridge_env.pair(cluster)]
    mine.wait_hook()
    holds_for(lambda: not any(pair.hook() for pair in others), 0.5)


def test_only_objects_of_the_namespace_are_looked_after(bridge_env, alone):
    _, cluster = alone()
    elsewhere = bridge_env.pair()
    mine = bridge_env.pair(cluster)
    mine.wait_hook()
    holds_for(lambda: elsewhere.hook() is None, 0.5)


def test_a_certificate_that_nobody_checks_where_that_is_wanted(bridge_env, alone):
    auth_proxy = bridge_env.auth_proxy()
    config = yaml.safe_load(auth_proxy.kubeconfig())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    _, cluster = alone("--allow-insecure-kubeconfig", cluster=yaml.safe_dump(config))
    pair = bridge_env.pair(cluster, wait=False)
    bridge_env.management.name_node(pair.machine, pair.node)
    pair.wait_hook()
    assert auth_proxy.count() > 0


def trouble(bridge, cluster):
    """What is wrong with the connection to a Cluster, as /api/v1/links has it; empty: nothing, or it is not there."""
    status, _, body = bridge.get("/api/v1/links")
    assert status == 200
    return next((link.get("trouble", "") for link in json.loads(body)["links"] if link["cluster"] == cluster.name), "")


def test_servers_of_this_machine_only_where_that_is_wanted(bridge_env, alone):
    auth_proxy = bridge_env.auth_proxy()
    bridge, cluster = alone("--allow-local-servers=false", cluster=auth_proxy.kubeconfig())
    pair = bridge_env.pair(cluster, wait=False)
    bridge_env.management.name_node(pair.machine, pair.node)
    wait_for(lambda: "server: host '127.0.0.1' is a loopback or link-local address" in trouble(bridge, cluster), "it is refused")
    assert auth_proxy.count() == 0
    assert "which is not allowed here" in bridge.log()


def test_a_proxy_of_the_kubeconfig_only_where_that_is_wanted(bridge_env, alone):
    auth_proxy = bridge_env.auth_proxy()
    config = yaml.safe_load(auth_proxy.kubeconfig())
    config["clusters"][0]["cluster"]["proxy-url"] = "socks5://localhost/run/docker.sock"
    for flags, says in (((), "proxy-url: is not allowed here"), (("--allow-kubeconfig-proxy",), "without a path")):
        bridge, cluster = alone(*flags, cluster=yaml.safe_dump(config))
        pair = bridge_env.pair(cluster, wait=False)
        bridge_env.management.name_node(pair.machine, pair.node)
        wait_for(lambda b=bridge, c=cluster, s=says: s in trouble(b, c), "it is refused")
        bridge.stop()


@pytest.mark.parametrize("flag, off", [("--metal3-require-enabled=false", True), ("--metal3-require-enabled=true", False)])
def test_hosts_as_the_original_had_them(bridge_env, alone, flag, off):
    """B10 to the letter: whoever's label says approved."""
    _, cluster = alone("--enable-metal3-maintenance", flag)
    host = bridge_env.host(space=cluster.space)
    pair = bridge_env.pair(cluster, enabled=False, provider=f"metal3://{cluster.space}/{host['name']}/m")
    pair.ask("approved")

    def told():
        return REBOOT in bridge_env.management.annotations("BareMetalHost", cluster.space, host["name"])
    if off:
        wait_for(told, "the host is to be switched off")
        pair.ask(None)
        wait_for(lambda: not told(), "the host is to be on")
    else:
        holds_for(lambda: not told(), 0.5)


def test_a_host_waits_for_the_drain_where_that_is_wanted(bridge_env, alone):
    _, cluster = alone("--enable-metal3-maintenance", "--metal3-require-drained")
    name = f"{bridge_env.unique}-m0"
    host = bridge_env.host(space=cluster.space, consumer=name)
    pair = bridge_env.pair(cluster, provider=f"metal3://{cluster.space}/{host['name']}/{name}")
    pair.wait_hook()
    pair.ask("requested")
    pair.wait_node(MAINTAINED)
    pair.approve(APPROVE_MAINTENANCE)
    pair.wait_maintenance("approved")

    def told():
        return REBOOT in bridge_env.management.annotations("BareMetalHost", cluster.space, host["name"])
    holds_for(lambda: not told(), 0.5)
    pair.workload.patch("Node", None, pair.node, {"spec": {"unschedulable": True}})
    wait_for(told, "the host is to be switched off")


def test_metrics_name_clusters_where_that_is_wanted(bridge_env, alone):
    bridge, cluster = alone("--per-cluster-metrics")
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    assert [labels for (name, labels) in bridge.metrics() if name.startswith("drydock_bridge") and
            ("cluster", cluster.name) in labels]


def test_a_role_that_was_widened_is_narrow_again(bridge_env, alone):
    """The rest of an account of its own is test_bridge_warrant.py's."""
    workload, roles = bridge_env.bridge_clusters.workloads["two"], "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    status, answer = workload.send("POST", roles, {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "drydock-bridge"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]})
    assert status in (201, 409), answer
    wait_for(lambda: workload.get("Namespace", None, "kube-system"), "the account has a place")
    _, cluster = alone("--workload-rbac", "manage", cluster=text_of(bridge_env.bridge_clusters.servers["two"].kubeconfig))
    pair = bridge_env.pair(cluster, workload="two")
    pair.wait_hook()
    rules = workload.send("GET", f"{roles}/drydock-bridge")[1]["rules"]
    assert [(r["apiGroups"], r["resources"], sorted(r["verbs"])) for r in rules] == [
        ([""], ["nodes"], ["get", "list", "patch", "watch"])]


# --- several of them ---


def test_shards_share_the_clusters(bridge_env, serve):
    """Each has its Lease, and touches its own Machines alone."""
    space = bridge_env.space()
    lease = bridge_env.management.space(f"{bridge_env.unique}-shards")
    pairs = [bridge_env.pair(bridge_env.cluster(space=space), wait=False) for _ in range(6)]
    for pair in pairs:
        wait_for(pair.named, "it has its Node")
    first = serve("--namespace", space, "--shard", "0/2", lease=lease)
    wait_for(lambda: leads(first), "the first leads")
    seen = []

    def settled():
        seen.append([pair.hook() is not None for pair in pairs])
        return len(seen) > 20 and all(s == seen[-1] for s in seen[-20:])
    wait_for(settled, "the first has done its part")
    ours = [pair for pair in pairs if pair.hook()]
    second = serve("--namespace", space, "--shard", "1/2", lease=lease)
    wait_for(lambda: leads(second), "the second leads beside it")
    for pair in pairs:
        pair.wait_hook()
    # By chance all may be of one shard, once in 32 runs; then there is nothing more to see.
    if 0 < len(ours) < len(pairs):
        first.stop()
        for pair in pairs:
            pair.delete()
        for pair in pairs:
            if pair not in ours:
                pair.wait_node(DELETED)
        assert not any(DELETED in pair.node_labels() for pair in ours)
    assert len(bridge_env.management.list("Lease", lease)) == 2


def test_one_of_two_replicas_acts_and_the_other_takes_over(bridge_env, serve):
    space = bridge_env.space()
    lease = bridge_env.management.space(f"{bridge_env.unique}-pair")
    replicas = [serve("--namespace", space, lease=lease) for _ in range(2)]
    wait_for(lambda: any(leads(r) for r in replicas), "one leads")
    leader, other = replicas if leads(replicas[0]) else replicas[::-1]
    assert bridge_env.management.get("Lease", lease, LEASE)["spec"]["holderIdentity"]
    cluster = bridge_env.cluster(space=space)
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    assert not leads(other) and other.metric("drydock_bridge_patches_total") == 0
    leader.stop()
    wait_for(lambda: leads(other), "the other leads")
    pair.delete()
    pair.wait_node(DELETED)
    pair.approve()
    pair.wait_gone()


# --- what it is asked, and how it is asked wrongly ---


def test_explain_tells_what_holds_a_machine(bridge_env, alone):
    bridge, cluster = alone()
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    name = f"{pair.machine.space}/{pair.machine.name}"

    def explain(*arguments, check=True):
        address = f"http://127.0.0.1:{bridge.metrics_port}"
        return subprocess.run([drydock(), "explain", "machine", *arguments, "--address", address], text=True,
                              capture_output=True, check=check, timeout=60)
    text = wait_for(lambda: (t := explain(name).stdout) and "approve-deletion" in t and t, "it says what is waited for")
    assert pair.machine.name in text and pair.node in text
    document = json.loads(explain(name, "-o", "json").stdout)
    assert pair.machine.name in json.dumps(document)
    missing = explain(f"{pair.machine.space}/nobody", check=False)
    assert missing.returncode == 1 and "nobody" in missing.stderr


@pytest.mark.parametrize("arguments, words", [
    (["--shard", "2/2"], "2/2"), (["--shard", "x"], "shard"), (["--shard", "0/0"], "0/0"), (["--shard", "-1/2"], "-1/2"),
    (["--hook-mode", "lazy"], "lazy"), (["--on-missing-node", "maybe"], "maybe"),
    (["--unreachable-timeout", "soon"], "soon"), (["--deletion-hold", "-5s"], "--deletion-hold"),
    (["--workload-rbac", "root"], "root"), (["--nonsense"], "nonsense")])
def test_a_wrong_command_line_is_refused(arguments, words):
    result = subprocess.run([drydock(), "bridge", *arguments], text=True, capture_output=True, check=False, timeout=60)
    assert result.returncode == 2, result
    assert words in result.stderr and len(result.stderr.splitlines()) <= 4, result.stderr


def test_a_kubeconfig_that_is_not_there_ends_it(tmp_path):
    with Bridge(str(tmp_path / "none"), str(tmp_path)) as bridge:
        assert bridge.wait() == 1
        assert "none" in bridge.log()


def test_health_and_the_end(bridge_env, serve):
    """It is alive before it can work, and ready when it knows the Machines."""
    with Port() as nobody:
        path = bridge_env.bridge_clusters.home.access.variant(bridge_env.folder / "nobody", {"server": f"https://127.0.0.1:{nobody.number}"})
        bridge = serve(kubeconfig=path, ready=False)
        wait_for(lambda: bridge.health("/healthz")[0] == 200, "it lives")
        assert bridge.health("/readyz")[0] != 200
        bridge.stop()
    bridge = serve("--namespace", bridge_env.space())
    assert bridge.health("/healthz")[0] == 200
    wait_for(lambda: leads(bridge), "it leads")
    bridge.stop()
    assert not bridge_env.management.get("Lease", f"{bridge_env.unique}-bridge1", LEASE)["spec"].get("holderIdentity")


def test_help_names_every_flag():
    text = subprocess.run([drydock(), "bridge", "--help"], text=True, capture_output=True, check=True, timeout=60).stdout
    flags = set(re.findall(r"--[a-z0-9-]+", text))
    assert flags >= {
        "--kubeconfig", "--kubecontext", "--lease-namespace", "--metrics-addr", "--health-addr",
        "--enable-metal3-maintenance", "--hook-mode", "--on-missing-node", "--unreachable-timeout", "--deletion-hold",
        "--strict-legacy-approval", "--refuse-forged-approval", "--namespace", "--watch-filter", "--shard",
        "--metal3-require-enabled", "--metal3-require-drained", "--workload-rbac", "--allow-insecure-kubeconfig",
        "--allow-kubeconfig-proxy", "--allow-local-servers",
        "--per-cluster-metrics", "--clock-skew-tolerance", "--zap-devel", "--zap-encoder", "--zap-log-level",
        "--zap-stacktrace-level", "--zap-time-encoding"}


def test_it_may_have_as_many_connections_as_the_system_allows(serve):
    """Thousands of clusters have a connection each; what a process gets at first is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        bridge = serve()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert resource.prlimit(bridge.pid, resource.RLIMIT_NOFILE) == (hard, hard)
