"""The life of a bridge: killed at any time, idle for long, in front of a server that refuses its writes."""

import json
import re
import signal

import pytest

from bridge import fixture_serve, fixture_bridge_env, leads
from capi import APPROVE_MAINTENANCE, DELETED, ENABLED, HOOK_VALUE, MAINTAINED
from wait import holds_for, wait_for


@pytest.fixture(name="reborn")
def fixture_reborn(bridge_env, serve):
    """reborn(): kills the bridge of the case, if there is one, and starts another."""
    running = []

    def run(*flags):
        if running:
            running[-1].send(signal.SIGKILL)
            running[-1].wait()
        running.append(serve("--namespace", bridge_env.space(), *flags))
        return running[-1]
    return run


def test_a_killed_bridge_goes_on_where_it_was(bridge_env, reborn):
    """B5: after each step another one takes over, and nothing is released without a fact."""
    reborn()
    pair, calm = (bridge_env.pair(cluster) for cluster in [bridge_env.cluster(space=bridge_env.space())] * 2)
    for each in (pair, calm):
        each.wait_hook()
    reborn()
    pair.delete()
    calm.ask("requested")
    pair.wait_node(DELETED)
    reborn()
    calm.wait_node(MAINTAINED)
    holds_for(lambda: pair.hook() == calm.hook() == HOOK_VALUE, 0.5)
    calm.approve(APPROVE_MAINTENANCE)
    calm.wait_maintenance("approved")
    reborn()
    holds_for(lambda: pair.hook() == HOOK_VALUE and calm.maintenance() == "approved", 0.5)
    pair.approve()
    pair.wait_gone()
    calm.ask(None)
    calm.wait_node(MAINTAINED, None)


def test_a_bridge_that_is_killed_in_the_middle_of_its_work(bridge_env, reborn):
    """At no particular moment, while some Machines change."""
    bridge = reborn()
    cluster = bridge_env.cluster(space=bridge_env.space())
    pairs = [bridge_env.pair(cluster, wait=False) for _ in range(8)]
    for pair in pairs:
        wait_for(pair.named, "it has its Node")
    for number, pair in enumerate(pairs):
        pair.wait_hook()
        pair.ask("requested")
        if number % 4 == 3:
            bridge = reborn()
    for pair in pairs:
        pair.wait_node(MAINTAINED)
        assert pair.hook() == HOOK_VALUE
    assert bridge.alive()


def test_changes_while_nobody_looked_are_caught_up_with(bridge_env, reborn):
    """A Machine that was disabled, one that asks, one whose Node has lost its engine."""
    bridge = reborn()
    cluster = bridge_env.cluster(space=bridge_env.space())
    disabled, asking = bridge_env.pair(cluster), bridge_env.pair(cluster)
    for pair in (disabled, asking):
        pair.wait_hook()
    disabled.ask("requested")
    disabled.wait_node(MAINTAINED)
    bridge.stop()
    disabled.mark({ENABLED: None})
    asking.ask("requested")
    reborn()
    asking.wait_node(MAINTAINED)
    disabled.wait_free()
    disabled.wait_node(MAINTAINED, None)


def test_nothing_is_written_when_nothing_changes(bridge_env, serve, tmp_path):
    """B29, as far as a test has time for it: what others do on the way is counted, and ours is nothing."""
    home, auth_proxy = bridge_env.auth_proxy("management"), bridge_env.auth_proxy()
    space = bridge_env.space()
    cluster = bridge_env.cluster(auth_proxy.kubeconfig(), space=space)
    pairs = [bridge_env.pair(cluster, enabled=number % 2 == 0, wait=False) for number in range(12)]
    bridge = serve("--namespace", space, "--enable-metal3-maintenance", kubeconfig=home.file(tmp_path / "home"))
    for number, pair in enumerate(pairs):
        wait_for(pair.named, "it has its Node")
        if number % 2 == 0:
            pair.wait_hook()
    seen = []

    def settled():
        seen.append((home.count("PATCH"), auth_proxy.count("PATCH")))
        return len(seen) > 30 and seen[-30] == seen[-1]
    before = wait_for(settled, "nothing is to be done", interval=0.1) and seen[-1]
    for pair in pairs:
        pair.touch()
        pair.mark(annotations={"e2e.example.com/touch": "1"})
    posts = home.count("POST"), auth_proxy.count("POST")
    holds_for(lambda: (home.count("PATCH"), auth_proxy.count("PATCH")) == before, 5, interval=0.2)
    assert (home.count("POST"), auth_proxy.count("POST")) == posts, "nor is anything told"
    assert not any(pair.hook() for pair in pairs[1::2])
    assert bridge.alive()


def sets_something(metadata):
    return any(value is not None for part in metadata.values() for value in part.values())


def test_one_round_costs_few_writes(bridge_env, serve, tmp_path):
    """The hook, the wait, the release, and the request at the Node; each says which version it was decided on."""
    home, auth_proxy = bridge_env.auth_proxy("management"), bridge_env.auth_proxy()
    space = bridge_env.space()
    cluster = bridge_env.cluster(auth_proxy.kubeconfig(), space=space)
    serve("--namespace", space, kubeconfig=home.file(tmp_path / "home"))
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    pair.approve()
    pair.wait_gone()
    patches = [r for r in (*home.requests, *auth_proxy.requests) if r.method == "PATCH" and "drydock" in r.agent]
    written = [(r.path, json.loads(r.body)["metadata"]) for r in patches if "/machines/" in r.path or "/nodes/" in r.path]
    assert all(meta.pop("resourceVersion") for _, meta in written)
    # Whoever hears of the Machine's end before that of its Node takes the request off the Node once more.
    written = [(path, meta) for path, meta in written if "/machines/" in path or sets_something(meta)]
    # What meets a write of Cluster API's is refused, decided anew and sent again.
    different = {(path, re.sub(r'"since[^}]*', "", json.dumps(meta))) for path, meta in written}
    assert sum("/machines/" in path for path, _ in different) == 3, different
    assert sum("/nodes/" in path for path, _ in different) == 1, different


def test_a_hook_is_taken_away_as_soon_as_it_can_be(bridge_env, serve, tmp_path):
    """While Cluster API's webhooks are down every write to a Machine fails; the release is tried until it is taken."""
    home = bridge_env.auth_proxy("management")
    cluster = bridge_env.cluster(space=bridge_env.space())
    bridge = serve("--namespace", cluster.space, kubeconfig=home.file(tmp_path / "home"))
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    pair.delete()
    pair.wait_node(DELETED)
    home.answer = lambda request: 500 if request.method == "PATCH" and "/machines/" in request.path else None
    pair.approve()
    wait_for(lambda: home.rejected(500) >= 3, "it tries, and tries again")
    assert pair.hook() == HOOK_VALUE and bridge.health("/healthz")[0] == 200
    home.answer = lambda request: None
    pair.wait_gone()


def test_a_management_server_that_comes_back_is_heard_again(bridge_env, serve, tmp_path):
    home = bridge_env.auth_proxy("management")
    cluster = bridge_env.cluster(space=bridge_env.space())
    serve("--namespace", cluster.space, kubeconfig=home.file(tmp_path / "home"))
    pair = bridge_env.pair(cluster)
    pair.wait_hook()
    for value in ("requested", None):
        home.cut()
        pair.ask(value)
        pair.wait_node(MAINTAINED, "true" if value else None)


def test_a_bridge_that_is_told_to_end_gives_its_lease_back(bridge_env, serve):
    space = bridge_env.space()
    lease = bridge_env.management.space(f"{bridge_env.unique}-l")
    first = serve("--namespace", space, lease=lease)
    wait_for(lambda: leads(first), "it leads")
    first.stop()
    second = serve("--namespace", space, lease=lease)
    wait_for(lambda: leads(second), "the next one leads")
