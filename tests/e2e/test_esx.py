"""ESX: hosts go into maintenance mode, their nodes leave with them and come back, and vCenters fail in many ways."""

import json
import subprocess

import pytest

from esx import (INITIATED, VERSION, VCenter, VcSim, approve, authority, config, esx, initiated, is_back,  # noqa: F401
                 place, server_context, wait_mode)
from objects import budget, pod
from process import drydock
from profiles import ELECT, annotate, read
from wait import holds_for, wait_for


def pods_on(client, name, namespace):
    return [p for p in client.core.list_namespaced_pod(namespace).items if p.spec.node_name == name]


def run_pod(client, namespace, name, node, grace=1):
    client.core.create_namespaced_pod(namespace, pod(name, node=node, grace=grace))
    wait_for(lambda: client.core.read_namespaced_pod(name, namespace).status.phase == "Running", f"{name} runs")


@pytest.mark.go
@pytest.mark.nodes(3)
def test_vcsim_nodes_leave_with_their_host_and_come_back(client, nodes, namespace, esx, tmp_path, authority):
    one, two, other = nodes
    with VcSim(tmp_path, {"esx-1": [one, two], "esx-2": [other]}, authority) as vcenter:
        for name, host in ((one, "esx-1"), (two, "esx-1"), (other, "esx-2")):
            place(client, name, host)
        run_pod(client, namespace, "web", one)
        controller = esx(config(vcenter.url), env={"SSL_CERT_FILE": str(authority / "ca.crt")})
        for name in nodes:
            wait_mode(client, name, "false")
            assert read(client, name).metadata.labels[VERSION] == "8.0.2"

        vcenter.maintenance("esx-1", True)
        wait_mode(client, one, "true")
        wait_mode(client, two, "true")
        assert not read(client, one).spec.unschedulable, "nobody has approved it"
        approve(client, one, other)
        wait_for(lambda: vcenter.power(one) == "poweredOff", f"{one} is off")
        node = read(client, one)
        assert node.spec.unschedulable and initiated(node) == "true"
        assert not pods_on(client, one, namespace), "it was drained before"
        assert vcenter.power(two) == "poweredOn" and not read(client, two).spec.unschedulable
        assert vcenter.power(other) == "poweredOn" and not read(client, other).spec.unschedulable
        approve(client, two)
        wait_for(lambda: vcenter.power(two) == "poweredOff", f"{two} is off")

        vcenter.control("power", vm=one, state="poweredOn")
        wait_for(lambda: vcenter.power(one) == "poweredOff", "it is kept off while its host is in maintenance")

        vcenter.maintenance("esx-1", False)
        for name in (one, two):
            wait_for(lambda n=name: is_back(client, n), f"{name} is back")
            assert vcenter.power(name) == "poweredOn"
        state = vcenter.control()
        assert state["logins"] == 1, "one session is kept"
        assert state["requests"]["CreateContainerView"] == 1, "and one view"
        assert controller.metric("drydock_esx_vcenter_up", zone="a") == 1


@pytest.mark.go
@pytest.mark.nodes(1)
def test_vcsim_a_session_that_has_expired_is_renewed(client, nodes, esx, tmp_path, authority):
    name = nodes[0]
    with VcSim(tmp_path, {"esx-1": [name]}, authority) as vcenter:
        place(client, name, "esx-1")
        esx(config(vcenter.url), env={"SSL_CERT_FILE": str(authority / "ca.crt")})
        wait_mode(client, name, "false")
        vcenter.control("expire")
        vcenter.maintenance("esx-1", True)
        wait_mode(client, name, "true")
        assert vcenter.control()["logins"] == 2


@pytest.mark.nodes(2)
def test_nodes_of_a_host_leave_and_return_page_by_page(client, nodes, namespace, esx):
    one, other = nodes
    machines = [(one, "esx-1"), (other, "esx-2"), *((f"filler-{i}", "esx-2") for i in range(7))]
    with VCenter(["esx-1", "esx-2"], machines) as vcenter:
        place(client, one, "esx-1")
        place(client, other, "esx-2")
        run_pod(client, namespace, "web", one)
        run_pod(client, namespace, "elsewhere", other)
        esx(config(vcenter.url))
        wait_mode(client, one, "false")
        approve(client, one, other)
        vcenter.maintenance("esx-1", True)
        wait_for(lambda: vcenter.power(one) == "poweredOff", f"{one} is off")
        assert not pods_on(client, one, namespace) and pods_on(client, other, namespace)
        assert vcenter.called("ShutdownGuest") == [one] and not vcenter.called("PowerOffVM_Task")
        assert vcenter.power(other) == "poweredOn" and not read(client, other).spec.unschedulable
        vcenter.maintenance("esx-1", False)
        wait_for(lambda: is_back(client, one), f"{one} is back")
        assert vcenter.power(one) == "poweredOn"
        assert vcenter.count("ContinueRetrievePropertiesEx") > 0


@pytest.mark.nodes(1)
def test_a_host_on_its_way_into_maintenance_counts(client, nodes, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        vcenter.task("esx-1", "EnterMaintenanceMode_Task", "running")
        place(client, name, "esx-1")
        esx(config(vcenter.url))
        wait_mode(client, name, "true")
        vcenter.task("esx-1", "EnterMaintenanceMode_Task", "error")
        wait_mode(client, name, "false")


@pytest.mark.nodes(1)
def test_an_alarm_takes_its_nodes_without_grace(client, nodes, namespace, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1")
        run_pod(client, namespace, "slow", name, grace=600)
        esx(config(vcenter.url))
        vcenter.alarm("esx-1", "nobody asked for this one")
        wait_mode(client, name, "false")
        vcenter.alarm("esx-1", "nobody asked for this one", "Host <power> & more")
        wait_mode(client, name, "alarm")
        approve(client, name)
        wait_for(lambda: vcenter.power(name) == "poweredOff", f"{name} is off")
        assert not pods_on(client, name, namespace)
        vcenter.alarm("esx-1")
        wait_for(lambda: is_back(client, name), f"{name} is back")


@pytest.mark.nodes(1)
def test_a_machine_goes_only_when_its_node_is_drained(client, nodes, namespace, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1")
        run_pod(client, namespace, "held", name)
        client.policy.create_namespaced_pod_disruption_budget(namespace, budget("held", "held", minAvailable=1))
        esx(config(vcenter.url))
        approve(client, name)
        vcenter.maintenance("esx-1", True)
        wait_for(lambda: initiated(read(client, name)) == "true", "it begins")
        holds_for(lambda: vcenter.count("ShutdownGuest") == 0, 2, "its machine stays on")
        client.policy.delete_namespaced_pod_disruption_budget("held", namespace)
        wait_for(lambda: vcenter.power(name) == "poweredOff", f"{name} is off")


@pytest.mark.nodes(2)
def test_machines_that_do_not_end_and_machines_without_tools_are_switched_off(client, nodes, esx):
    deaf, bare = nodes
    with VCenter(["esx-1"]) as vcenter:
        vcenter.add_vm(deaf, "esx-1", obeys=False)
        vcenter.add_vm(bare, "esx-1", tools=False)
        for name in nodes:
            place(client, name, "esx-1")
        esx(config(vcenter.url, timeout="8s"))  # from the note in whole seconds on; before that both are asked
        approve(client, *nodes)
        vcenter.maintenance("esx-1", True)
        for name in nodes:
            wait_for(lambda n=name: vcenter.power(n) == "poweredOff", f"{name} is off")
        assert sorted(vcenter.called("PowerOffVM_Task")) == sorted(nodes)
        assert sorted(vcenter.called("ShutdownGuest")) == sorted(nodes), "each was asked once"


@pytest.mark.nodes(2)
def test_two_machines_of_one_name_are_left_alone(client, nodes, esx):
    twice, once = nodes
    with VCenter(["esx-1"], [(twice, "esx-1"), (twice, "esx-1"), (once, "esx-1")]) as vcenter:
        for name in nodes:
            place(client, name, "esx-1")
        controller = esx(config(vcenter.url))
        approve(client, *nodes)
        vcenter.maintenance("esx-1", True)
        wait_for(lambda: vcenter.power(once) == "poweredOff", "the other one goes")
        wait_for(lambda: "several virtual machines" in controller.log(), "it is said")
        assert vcenter.called("ShutdownGuest") == [once]


@pytest.mark.nodes(2)
def test_a_vcenter_out_of_reach_is_unknown_and_holds_up_nobody(client, nodes, esx):
    """Zone 1 is at 127.0.0.1, zone 2 at 127.0.0.2, where nobody listens."""
    near, far = nodes
    with VCenter(["esx-1"], [(near, "esx-1"), (far, "esx-1")]) as vcenter:
        place(client, near, "esx-1", zone="qa-de-1")
        place(client, far, "esx-1", zone="qa-de-2")
        approve(client, *nodes)
        controller = esx(config("http://127.0.0.$AZ:" + vcenter.url.rsplit(":", 1)[1], zones="12"))
        wait_mode(client, near, "false")
        wait_mode(client, far, "unknown")
        vcenter.maintenance("esx-1", True)
        wait_for(lambda: vcenter.power(near) == "poweredOff", "the near one goes")
        vcenter.maintenance("esx-1", False)
        wait_for(lambda: is_back(client, near), "and returns")
        assert not read(client, far).spec.unschedulable and vcenter.power(far) == "poweredOn"
        assert controller.metric("drydock_esx_vcenter_up", zone="1") == 1
        assert controller.metric("drydock_esx_vcenter_up", zone="2") == 0


@pytest.mark.nodes(1)
def test_a_zone_without_credentials_is_unknown(client, nodes, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1", zone="qa-de-1x")
        controller = esx(config(vcenter.url))
        wait_mode(client, name, "unknown")
        assert "no credentials for the zone" in controller.log()
        assert vcenter.calls == []


@pytest.mark.nodes(1)
def test_a_vcenter_that_stops_answering_is_unknown_until_it_is_back(client, nodes, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1")
        controller = esx(config(vcenter.url))
        wait_mode(client, name, "false")
        for bad in ("truncate", "html", "nonsense", "doctype", "endless"):
            vcenter.mode = bad
            wait_mode(client, name, "unknown")
            assert controller.metric("drydock_esx_vcenter_up", zone="a") == 0
            vcenter.mode = "well"
            wait_mode(client, name, "false")
        assert "harbour" not in controller.log()


@pytest.mark.nodes(1)
def test_a_wrong_password_is_not_tried_again_and_again(client, nodes, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1")
        controller = esx(config(vcenter.url, password="wrong-one"))
        wait_mode(client, name, "unknown")
        holds_for(lambda: vcenter.logins == [False], 3, "one try")
        assert "InvalidLogin" in controller.log() and "wrong-one" not in controller.log()
        controller.esx.write_text(config(vcenter.url), encoding="utf-8")
        wait_mode(client, name, "false")
        assert vcenter.logins == [False, True]


@pytest.mark.nodes(1)
def test_sessions_are_kept_and_renewed(client, nodes, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1")
        esx(config(vcenter.url))
        wait_mode(client, name, "false")
        before = vcenter.count("RetrievePropertiesEx")
        wait_for(lambda: vcenter.count("RetrievePropertiesEx") >= before + 3, "three more readings")
        assert vcenter.count("Login") == 1
        vcenter.expire()
        vcenter.maintenance("esx-1", True)
        wait_mode(client, name, "true")
        assert vcenter.logins == [True, True]


@pytest.mark.nodes(2)
def test_a_whole_host_where_it_is_asked_for(client, nodes, esx):
    one, two = nodes
    with VCenter(["esx-1"], [(one, "esx-1"), (two, "esx-1")]) as vcenter:
        for name in nodes:
            place(client, name, "esx-1")
        esx(config(vcenter.url, extra="wholeHost: true\n"))
        vcenter.maintenance("esx-1", True)
        approve(client, one)
        wait_mode(client, one, "true")
        holds_for(lambda: initiated(read(client, one)) is None, 2, "it waits for the other one")
        approve(client, two)
        for name in nodes:
            wait_for(lambda n=name: vcenter.power(n) == "poweredOff", f"{name} is off")


@pytest.mark.nodes(1)
def test_a_cordon_of_somebody_else_stays(client, nodes, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1")
        client.core.patch_node(name, {"spec": {"unschedulable": True}})
        esx(config(vcenter.url))
        approve(client, name)
        vcenter.maintenance("esx-1", True)
        wait_for(lambda: vcenter.power(name) == "poweredOff", f"{name} is off")
        vcenter.maintenance("esx-1", False)
        wait_for(lambda: initiated(read(client, name)) is None, f"{name} is back")
        assert read(client, name).spec.unschedulable
        assert vcenter.power(name) == "poweredOn"


@pytest.mark.nodes(1)
def test_what_the_original_has_begun_is_finished(client, nodes, esx):
    """Its annotation and its cordon are on the node, the machine is off, and the host is back."""
    name = nodes[0]
    with VCenter(["esx-1"]) as vcenter:
        vcenter.add_vm(name, "esx-1", power="poweredOff")
        place(client, name, "esx-1")
        client.core.patch_node(name, {"metadata": {"annotations": {INITIATED: "true"}}, "spec": {"unschedulable": True}})
        esx(config(vcenter.url))
        wait_for(lambda: is_back(client, name), f"{name} is back")
        assert vcenter.power(name) == "poweredOn"
        annotate(client, name, **{INITIATED: "garbage"})
        holds_for(lambda: vcenter.count("PowerOnVM_Task") == 1, 1, "no other value counts")


@pytest.mark.nodes(1)
def test_a_controller_that_dies_on_the_way_is_followed_by_one_that_goes_on(client, nodes, namespace, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1")
        run_pod(client, namespace, "held", name)
        client.policy.create_namespaced_pod_disruption_budget(namespace, budget("held", "held", minAvailable=1))
        first = esx(config(vcenter.url), name="first", flags=ELECT)
        approve(client, name)
        vcenter.maintenance("esx-1", True)
        wait_for(lambda: initiated(read(client, name)) == "true", "it begins")
        first.end()
        client.policy.delete_namespaced_pod_disruption_budget("held", namespace)
        esx(config(vcenter.url), name="second", flags=ELECT)
        wait_for(lambda: vcenter.power(name) == "poweredOff", f"{name} is off")
        vcenter.maintenance("esx-1", False)
        wait_for(lambda: is_back(client, name), f"{name} is back")


def test_the_file_is_checked_with_line_and_column(tmp_path):
    path = tmp_path / "esx.yaml"
    path.write_text("intervals:\n  check: {period: 5s}\n  vmShutdown: {period: 1s, timeout: fast}\n"
                    "vCenters:\n  templateUrl: vcenter\n  credentials:\n    a: {password: secret-one}\n", encoding="utf-8")
    result = subprocess.run([drydock(), "check", path], capture_output=True, text=True, check=False, timeout=60)
    text = result.stdout + result.stderr
    assert result.returncode == 1
    for part in ("esx.yaml:2:", "intervals.check.jitter", "esx.yaml:3:", "intervals.vmShutdown.timeout",
                 "intervals.podEviction.period", "vCenters.templateUrl", "vCenters.credentials.a.username"):
        assert part in text, text
    assert "secret-one" not in text
    path.write_text(config("https://vcenter-$AZ.example"), encoding="utf-8")
    assert subprocess.run([drydock(), "check", path], capture_output=True, check=False, timeout=60).returncode == 0


@pytest.mark.nodes(1)
def test_a_broken_file_changes_nothing_and_is_said(client, nodes, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1")
        controller = esx(config(vcenter.url))
        wait_mode(client, name, "false")
        controller.esx.write_text("intervals: 3\n", encoding="utf-8")
        wait_for(lambda: controller.metric("drydock_integration_config_valid", integration="esx") == 0, "it is refused")
        vcenter.maintenance("esx-1", True)
        wait_mode(client, name, "true")


@pytest.mark.nodes(1)
def test_certificates_are_verified_unless_somebody_says_otherwise(client, nodes, esx, authority):
    name = nodes[0]
    tls = server_context(authority, "other", "DNS:other.example")
    with VCenter(["esx-1"], [(name, "esx-1")], tls=tls) as vcenter:
        place(client, name, "esx-1")
        controller = esx(config(vcenter.url), env={"SSL_CERT_FILE": str(authority / "ca.crt")})
        wait_mode(client, name, "unknown")
        assert vcenter.calls == []
        controller.esx.write_text(config(vcenter.url, insecure=True), encoding="utf-8")
        wait_mode(client, name, "false")


@pytest.mark.nodes(1)
def test_explain_and_the_api_show_what_is_done(client, nodes, esx):
    name = nodes[0]
    with VCenter(["esx-1"], [(name, "esx-1")]) as vcenter:
        place(client, name, "esx-1")
        controller = esx(config(vcenter.url))
        vcenter.maintenance("esx-1", True)
        wait_mode(client, name, "true")

        def shown():
            status, _, body = controller.get(f"/api/v1/explain?node={name}")
            return status == 200 and "waits for its approval" in json.dumps(json.loads(body))
        wait_for(shown, "explain says what it waits for")
