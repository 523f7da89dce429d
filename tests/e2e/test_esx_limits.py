"""ESX under MaintenanceLimits: a node that leaves with its host counts like any other, and counts once."""

import pytest

from esx import VCenter, approve, config, esx, initiated, is_back, place, wait_mode  # noqa: F401
from profiles import read, wait_state
from requests_fixture import LIMITS, fixture_installed, fixture_objects, fixture_requests_env  # noqa: F401
from wait import holds_for, wait_for

PROFILE_TEXT = """
intervals: {requeue: 60s}
instances:
  check:
  - {type: hasLabel, name: host-goes, config: {key: cloud.sap/esx-in-maintenance, value: "true"}}
  - {type: hasLabel, name: host-is-back, config: {key: cloud.sap/esx-in-maintenance, value: "false"}}
  trigger:
  - {type: alterLabel, name: allow, config: {key: cloud.sap/esx-reboot-ok, value: "true"}}
  - {type: alterLabel, name: forbid, config: {key: cloud.sap/esx-reboot-ok, remove: true}}
profiles:
- name: esx
  operational:
    transitions: [{check: host-goes, next: in-maintenance, trigger: allow}]
  in-maintenance:
    transitions: [{check: host-is-back, next: operational, trigger: forbid}]
"""


def places(env, limit):
    """How many nodes hold a place under the limit."""
    return len(env.status(limit, LIMITS).get("reservations") or [])


@pytest.fixture(name="hosts")
def fixture_hosts(requests_env, client):
    """Two nodes on two hosts, one of which may be away."""
    names = requests_env.nodes(2)
    limit = requests_env.limit(maxCount=1)
    machines = [(name, f"esx-{i}") for i, name in enumerate(names)]
    for name, host in machines:
        place(client, name, host)
    with VCenter(["esx-0", "esx-1"], machines) as vcenter:
        yield names, limit, vcenter


def test_one_place_lets_one_node_go_at_a_time(client, requests_env, hosts, esx):
    names, limit, vcenter = hosts
    esx(config(vcenter.url))
    approve(client, *names)
    vcenter.maintenance("esx-0", True)
    vcenter.maintenance("esx-1", True)
    first = wait_for(lambda: next((n for n in names if vcenter.power(n) == "poweredOff"), None), "one is off")
    other = names[1 - names.index(first)]
    wait_mode(client, other, "true")
    holds_for(lambda: vcenter.power(other) == "poweredOn" and initiated(read(client, other)) is None, 2, "the other waits")
    assert places(requests_env, limit) == 1
    vcenter.maintenance(f"esx-{names.index(first)}", False)
    wait_for(lambda: is_back(client, first), f"{first} is back")
    wait_for(lambda: vcenter.power(other) == "poweredOff", "the other one's turn has come")
    vcenter.maintenance("esx-0", False)
    vcenter.maintenance("esx-1", False)
    wait_for(lambda: is_back(client, other), f"{other} is back")
    wait_for(lambda: places(requests_env, limit) == 0, "nothing is held any more")


def test_a_profile_and_the_shutdown_share_one_place(client, requests_env, hosts, esx):
    names, limit, vcenter = hosts
    name = names[0]
    controller = esx(config(vcenter.url), profiles=PROFILE_TEXT)
    client.core.patch_node(name, {"metadata": {"labels": {"cloud.sap/maintenance-profile": "esx"}}})
    wait_mode(client, name, "false")
    vcenter.maintenance("esx-0", True)
    wait_state(client, name, "in-maintenance")
    wait_for(lambda: vcenter.power(name) == "poweredOff", f"{name} is off")
    assert places(requests_env, limit) == 1
    # The machine does not come back at once: the profile leaves, and the place stays.
    vcenter.vm(name)["stuck"] = True
    vcenter.maintenance("esx-0", False)
    wait_state(client, name, "operational")
    holds_for(lambda: places(requests_env, limit) == 1, 1, "it still counts")
    vcenter.vm(name)["stuck"] = False
    wait_for(lambda: is_back(client, name), f"{name} is back")
    wait_for(lambda: places(requests_env, limit) == 0, "nothing is held any more")
    assert controller.alive()
