"""The controller from outside: what nodes get, who leads, what it serves, how it ends."""

import datetime
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from backend import ROOT
from contract import DATA, FRESH, LEASE, PROFILE, STATE, annotation, data, is_fresh, state
from process import Controller, drydock, fetch
from wait import holds_for, wait_for

OLD = "2020-01-02T03:04:05.000000006Z"


@pytest.fixture
def nodes(request, make_node, unique):
    """Node objects of this test's own; whether kubelets are behind them does not matter here."""
    marker = request.node.get_closest_marker("nodes")
    return [make_node(f"{unique}-n{i}") for i in range(marker.args[0])]


@pytest.fixture
def start(backend, tmp_path):
    """start(name, flags): a controller that is ready; ended in order after the test."""
    running = []

    def run(name="controller", flags=(), env=None):
        controller = Controller(backend.kubeconfig, tmp_path / name, name, flags, env)
        running.append(controller)
        return controller.wait_ready()

    yield run
    for controller in running:
        controller.end()


@pytest.fixture
def controller(start):
    return start()


def read(client, name):
    return client.core.read_node(name)


def patch_meta(client, name, **meta):
    return client.core.patch_node(name, {"metadata": meta})


def decisions(controller):
    return controller.metric("controller_runtime_reconcile_total")


# --- what a node gets ---


@pytest.mark.nodes(3)
def test_every_node_gets_label_and_annotation(client, nodes, controller):
    for name in nodes:
        node = wait_for(lambda n=name: is_fresh(read(client, n)) and read(client, n),
                        what=f"{name} is labelled")
        when = FRESH.fullmatch(annotation(node)).group(1)
        stamp = datetime.datetime.fromisoformat(re.sub(r"\.\d+", "", when).replace("Z", "+00:00"))
        age = datetime.datetime.now(datetime.timezone.utc) - stamp
        assert abs(age) < datetime.timedelta(minutes=10)
    everyone = client.core.list_node().items
    wait_for(lambda: all(state(n) == "operational" for n in client.core.list_node().items),
             what=f"all {len(everyone)} nodes are labelled")
    assert controller.alive()


@pytest.mark.nodes(1)
def test_other_metadata_is_left_alone(client, make_node, unique, start):
    name = make_node(unique, {"e2e": unique, "keep": "me"}, {"note": "a <b> & \"c\" \u00fc"})
    before = read(client, name)
    start()
    wait_for(lambda: is_fresh(read(client, name)), what="labelled")
    after = read(client, name)
    # Others may have added something meanwhile: a real cluster's controllers annotate new nodes.
    assert before.metadata.labels.items() <= after.metadata.labels.items()
    assert before.metadata.annotations.items() <= after.metadata.annotations.items()
    ours = {key for key in {**after.metadata.labels, **after.metadata.annotations}
            if key.startswith("cloud.sap/")}
    assert ours == {STATE, DATA}
    assert after.spec.unschedulable == before.spec.unschedulable


@pytest.mark.nodes(1)
def test_a_served_node_is_not_written_again(client, nodes, start):
    first = start("first")
    wait_for(lambda: is_fresh(read(client, nodes[0])), what="labelled")
    wait_for(first.idle, what="all nodes are served, those of the cluster too")
    kept = annotation(read(client, nodes[0]))
    first.stop()
    second = start("second")
    wait_for(lambda: decisions(second) >= 1, what="it has decided")
    before = decisions(second)
    patch_meta(client, nodes[0], labels={"poke": "1"})
    wait_for(lambda: decisions(second) > before, what="it has decided again")
    holds_for(lambda: second.metric("drydock_patches_total") == 0, 1)
    assert annotation(read(client, nodes[0])) == kept


@pytest.mark.nodes(1)
@pytest.mark.parametrize("wrong", [None, "in-maintenance", "nonsense"])
def test_a_changed_label_comes_back(client, nodes, controller, wrong):
    wait_for(lambda: is_fresh(read(client, nodes[0])), what="labelled")
    kept = annotation(read(client, nodes[0]))
    patch_meta(client, nodes[0], labels={STATE: wrong})
    wait_for(lambda: state(read(client, nodes[0])) == "operational", what="the label is back")
    assert annotation(read(client, nodes[0])) == kept


@pytest.mark.nodes(1)
def test_a_removed_annotation_begins_anew(client, nodes, controller):
    wait_for(lambda: is_fresh(read(client, nodes[0])), what="labelled")
    old = annotation(read(client, nodes[0]))
    patch_meta(client, nodes[0], annotations={DATA: None})
    wait_for(lambda: is_fresh(read(client, nodes[0])), what="the annotation is back")
    assert annotation(read(client, nodes[0])) != old


KEPT = [
    ("operational", data({"default": (OLD, "operational", "operational")})),
    ("in-maintenance", data({"default": (OLD, "in-maintenance", "in-maintenance")})),
    ("maintenance-required",
     data({"default": (OLD, "maintenance-required", "maintenance-required")})),
    ("operational", data({"default": ("2020-01-02T03:04:05+02:00", "operational", "operational")},
                         {"mail": "0001-01-01T00:00:00Z", "a<b": OLD}).replace("<", "\\u003c")),
]


@pytest.mark.parametrize("label, text", KEPT)
def test_a_valid_annotation_is_kept_to_the_byte(client, make_node, unique, start, label, text):
    name = make_node(unique, annotations={DATA: text})
    start()
    wait_for(lambda: state(read(client, name)) == label, what=f"the label is {label}")
    assert annotation(read(client, name)) == text


CHANGED = [
    # (profile label, annotation before, annotation after)
    pytest.param(None, data({"default": (OLD, "in-maintenance", "operational")}),
                 data({"default": (OLD, "in-maintenance", "in-maintenance")}),
                 id="previous-moves-up"),
    pytest.param(None, '{ "profiles": {"default": {"current": "operational", "previous": '
                 f'"operational", "transition": "{OLD}"}}}}}} trailing',
                 data({"default": (OLD, "operational", "operational")}), id="spelt-otherwise"),
    pytest.param(None, data({"default": (OLD, "operational", "operational"),
                             "gone": (OLD, "in-maintenance", "in-maintenance")}),
                 data({"default": (OLD, "operational", "operational")}), id="profile-not-in-label"),
    pytest.param(None, f'{{"LastTransition":"{OLD}","LastNotificationTimes":{{"mail":"{OLD}"}},'
                 '"ProfileStates":{"default":"in-maintenance"},"PreviousStates":{}}',
                 data({"default": (OLD, "in-maintenance", "in-maintenance")}, {"mail": OLD}),
                 id="format-of-2025"),
    pytest.param("unknown", None, '{"Profiles":{},"Notifications":{}}', id="unknown-profile"),
    pytest.param("unknown--other", data({"default": (OLD, "operational", "operational")}),
                 '{"Profiles":{},"Notifications":{}}', id="unknown-profiles-drop-default"),
    pytest.param("unknown--default", data({"default": (OLD, "operational", "operational"),
                                           "unknown": (OLD, "in-maintenance", "in-maintenance")},
                                          {"mail": OLD}),
                 data({"default": (OLD, "operational", "operational"),
                       "unknown": (OLD, "in-maintenance", "in-maintenance")}, {"mail": OLD}),
                 id="frozen-entry-of-a-listed-profile"),
]


@pytest.mark.parametrize("profiles, before, after", CHANGED)
def test_the_annotation_follows_the_contract(client, make_node, unique, start, profiles, before,
                                             after):
    name = make_node(unique, {PROFILE: profiles} if profiles else {},
                     {DATA: before} if before else {})
    start()
    wait_for(lambda: state(read(client, name)) and annotation(read(client, name)) == after,
             what=f"the annotation is {after}, not {annotation(read(client, name))}")
    want = "in-maintenance" if profiles is None and "in-maintenance" in after else "operational"
    assert state(read(client, name)) == want


BROKEN = ["garbage", "{{}", '{"Profiles":{},"Extra":1}', " ", '{"Profiles":[]}']


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_annotation_stops_that_node_alone(client, make_node, unique, start, text):
    bad = make_node(unique + "-bad", annotations={DATA: text})
    good = make_node(unique + "-good")
    controller = start()
    wait_for(lambda: is_fresh(read(client, good)), what="the other node is labelled")
    wait_for(lambda: controller.metric("drydock_nodes_unreadable") >= 1, what="the metric tells")
    line = wait_for(lambda: [entry for entry in controller.log().splitlines()
                             if "Failed to reconcile. Skipping node patching." in entry
                             and bad in entry], what="the log tells")[0]
    assert "failed to parse json value in data annotation" in line
    assert state(read(client, bad)) is None and annotation(read(client, bad)) == text
    wait_for(lambda: [event for event in client.core.list_namespaced_event("default").items
                      if event.reason == "MaintenanceDataUnreadable"
                      and event.involved_object.name == bad], what="the node tells")

    patch_meta(client, bad, annotations={DATA: None})
    wait_for(lambda: is_fresh(read(client, bad)), what="the repaired node is labelled")
    wait_for(lambda: controller.metric("drydock_nodes_unreadable") == 0, what="the metric is back")


def test_a_new_node_is_labelled(client, make_node, unique, controller):
    name = make_node(unique)
    wait_for(lambda: is_fresh(read(client, name)), "the new node is labelled")


@pytest.mark.nodes(1)
def test_a_deleted_node_is_forgotten(client, nodes, controller):
    wait_for(lambda: is_fresh(read(client, nodes[0])), what="labelled")

    def known():
        return nodes[0] in {entry["node"] for entry in json.loads(controller.get("/api/v1/info")[2])}

    wait_for(known, what="the controller shows the node")
    client.core.delete_node(nodes[0])
    wait_for(lambda: not known(), what="the controller forgets the node")


def test_a_node_on_its_way_out_is_still_served(client, make_node, unique, start):
    name = make_node(unique)
    patch_meta(client, name, finalizers=["e2e.example.com/hold"])
    try:
        client.core.delete_node(name)
        start()
        wait_for(lambda: is_fresh(read(client, name)), what="labelled")
    finally:
        patch_meta(client, name, finalizers=None)


# --- who leads ---


ELECT = ("--enable-leader-election", "--lease-namespace", "default")


def lease(client):
    found = [item for item in client.leases.list_lease_for_all_namespaces().items
             if item.metadata.name == LEASE]
    return found[0] if found else None


def holder(client):
    found = lease(client)
    return (found.spec.holder_identity or "") if found else ""


def leading(controller):
    return controller.metric("leader_election_master_status", name=LEASE) == 1


@pytest.fixture
def no_lease(client):
    """A test begins and ends without a leader's lease."""
    def remove():
        found = lease(client)
        if found:
            client.leases.delete_namespaced_lease(LEASE, found.metadata.namespace)
    remove()
    yield
    remove()


@pytest.mark.usefixtures("no_lease")
def test_without_election_there_is_no_lease(client, controller):
    wait_for(lambda: leading(controller), what="it leads from the start")
    assert lease(client) is None


@pytest.mark.usefixtures("no_lease")
def test_the_lease_says_who_leads(client, start):
    leader = start(flags=ELECT)
    wait_for(lambda: leading(leader), what="it leads")
    spec = lease(client).spec
    assert re.fullmatch(re.escape(socket.gethostname()) + r"_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
                        spec.holder_identity)
    assert spec.lease_duration_seconds == 15
    assert spec.lease_transitions == 0
    assert spec.acquire_time <= spec.renew_time
    first = spec.renew_time
    wait_for(lambda: lease(client).spec.renew_time > first, "the lease is renewed")
    assert lease(client).spec.acquire_time == spec.acquire_time
    leader.stop()
    wait_for(lambda: holder(client) == "", "the lease is given back on exit")


@pytest.mark.usefixtures("no_lease")
def test_one_acts_and_an_orderly_exit_hands_over(client, make_node, unique, start):
    one = start("one", ELECT)
    wait_for(lambda: leading(one), what="the first leads")
    other = start("other", ELECT)
    name = make_node(unique + "-a")
    wait_for(lambda: is_fresh(read(client, name)), what="labelled")
    assert not leading(other) and other.metric("drydock_patches_total") == 0
    assert other.health("/readyz")[0] == 200

    before = holder(client)
    one.stop()
    # The lease is free before the process has ended: nobody has to wait until it expires.
    assert holder(client) != before
    wait_for(lambda: leading(other), "the second takes over")
    assert holder(client) not in ("", before)
    assert lease(client).spec.lease_transitions >= 1
    name = make_node(unique + "-b")
    wait_for(lambda: is_fresh(read(client, name)), what="labelled by the second")


# --- what it serves ---


def test_probes_answer(controller):
    for path in ("/healthz", "/readyz", "/healthz/", "/readyz/"):
        if path.endswith("/"):
            continue
        status, _, body = controller.health(path)
        assert (status, body.strip()) == (200, "ok"), path
    status, _, body = controller.health("/healthz?verbose")
    assert status == 200 and "[+]" in body and "healthz check passed" in body
    assert controller.health("/nope")[0] == 404


def test_metrics_are_well_formed(controller):
    status, headers, body = controller.get("/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    samples = controller.metrics()
    names = {name for name, _ in samples}
    assert {"leader_election_master_status", "rest_client_requests_total",
            "controller_runtime_reconcile_total", "drydock_nodes"} <= names
    typed = set(re.findall(r"^# TYPE (\S+) (?:counter|gauge|histogram)$", body, re.M))
    assert {re.sub(r"_(bucket|sum|count)$", "", n) if re.sub(r"_(bucket|sum|count)$", "", n) in typed
            else n for n in names} <= typed


ORIGINAL_METRICS = """
maintenance_controller_transition_failure_count maintenance_controller_pod_shuffle_count maintenance_controller_pod_shuffles_per_replica
controller_runtime_reconcile_total controller_runtime_reconcile_errors_total controller_runtime_reconcile_panics_total
controller_runtime_terminal_reconcile_errors_total controller_runtime_reconcile_timeouts_total controller_runtime_reconcile_time_seconds
controller_runtime_max_concurrent_reconciles controller_runtime_active_workers
workqueue_depth workqueue_adds_total workqueue_queue_duration_seconds workqueue_work_duration_seconds workqueue_unfinished_work_seconds
workqueue_longest_running_processor_seconds workqueue_retries_total rest_client_requests_total leader_election_master_status
process_cpu_seconds_total process_resident_memory_bytes process_start_time_seconds go_*
""".split()


def test_the_page_about_migration_names_every_metric_of_the_original(controller):
    with open(os.path.join(ROOT, "docs", "migration.md"), encoding="utf-8") as f:
        page = f.read()
    here, = re.findall(r"^\| metrics \| (.*) \|$", page, re.M)
    gone, = re.findall(r"^Metrics of the original that are not there: (.*?)\. `", page, re.M | re.S)
    served = set(re.findall(r"^# TYPE (\S+) ", controller.get("/metrics")[2], re.M))
    named = set(re.findall(r"`([^`]+)`", here))
    assert {name for name in named if not name.startswith("maintenance_controller_")} <= served  # these come with profiles
    assert not served & set(re.findall(r"`([^`]+)`", gone))
    assert [name for name in ORIGINAL_METRICS if name not in named and f"`{name}`" not in gone] == []


@pytest.mark.nodes(1)
def test_info_shows_what_was_decided(client, nodes, controller):
    wait_for(lambda: is_fresh(read(client, nodes[0])), what="labelled")

    def entry():
        status, _, body = controller.get("/api/v1/info")
        assert status == 200
        return next((e for e in json.loads(body) if e["node"] == nodes[0]), None)

    want = [{"applied": {"next": "operational", "transitions": [], "error": ""},
             "name": "default", "state": "operational"}]
    found = wait_for(lambda: (e := entry()) and e["profiles"] == want and e,
                     what=f"the node is shown with {want}")
    assert list(found) == ["node", "profiles", "labels", "updated"]
    assert isinstance(found["labels"], dict)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", found["updated"])


def test_log_lines_as_json(start):
    controller = start(flags=("--zap-encoder=json", "--zap-log-level=debug"))
    wait_for(lambda: controller.log().count("\n") >= 1, what="it logs")
    whole = controller.log().rpartition("\n")[0]  # the last line may still be written
    entries = [json.loads(line) for line in whole.splitlines()]
    assert all("msg" in entry and "level" in entry for entry in entries)


# --- how it ends ---


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(controller, number):
    controller.send(number)
    assert controller.wait() == 0
    assert "See you later" in controller.log()
    with pytest.raises(OSError):
        fetch(controller.metrics_port, "/metrics")


def test_a_second_signal_ends_it_at_once(start):
    controller = start(flags=("--metrics-timeout=1h",))
    controller.send(signal.SIGTERM)
    wait_for(lambda: re.search("SIGTERM|signal", controller.log()), what="the first was heard")
    holds_for(controller.alive, 0.5, "it waits for a last scrape")
    controller.send(signal.SIGTERM)
    assert controller.wait() == 1


def test_a_last_scrape_ends_the_wait(start):
    controller = start(flags=("--metrics-timeout=1h",))
    controller.send(signal.SIGTERM)
    wait_for(lambda: re.search("SIGTERM|signal", controller.log()), what="the first was heard")
    assert controller.get("/metrics")[0] == 200
    assert controller.wait() == 0


def run(*arguments, env=None):
    return subprocess.run([drydock(), *arguments], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, **(env or {})})


@pytest.mark.parametrize("arguments, named", [
    (["controller", "--no-such-flag"], "no-such-flag"),
    (["controller", "--metrics-timeout", "soon"], "metrics-timeout"),
    (["controller", "--zap-encoder", "xml"], "zap-encoder"),
    (["controller", "--kubeconfig"], "kubeconfig"),
    (["sail"], "sail"),
    ([], ""),
])
def test_bad_usage_is_exit_2(arguments, named):
    result = run(*arguments)
    assert result.returncode == 2
    assert named in result.stderr
    assert result.stdout == ""


def test_help_names_every_flag():
    result = run("controller", "--help")
    assert result.returncode == 0
    for flag in ("metrics-addr", "health-addr", "pprof-addr", "metrics-timeout",
                 "enable-leader-election", "enable-esx-maintenance",
                 "enable-kubernikus-maintenance", "kubecontext", "kubeconfig", "zap-devel",
                 "zap-encoder", "zap-log-level", "zap-stacktrace-level", "zap-time-encoding"):
        assert f"--{flag}" in result.stdout, flag
    assert all(len(line) <= 100 for line in result.stdout.splitlines())


def test_a_port_in_use_is_a_clear_message(backend):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        result = run("controller", "--kubeconfig", backend.kubeconfig, "--metrics-addr", address,
                     "--health-addr", "0")
    assert result.returncode == 1
    assert address in result.stderr and "in use" in result.stderr.lower()
