"""Hosts of Metal3: switched off while their Machine's maintenance is approved, and never left off."""

import pytest

from bridge import fixture_bridge_env, module_bridge
from capi import APPROVE_MAINTENANCE, DELETED, ENABLED, MAINTAINED, OWN, REBOOT
from wait import holds_for, wait_for

fixture_bridge = module_bridge("--enable-metal3-maintenance")

OWNER, POWER = OWN + "reboot-owner", OWN + "power"


class Hosted:
    """A Machine on a host."""

    def __init__(self, bridge_env, provider=None, enabled=True, consumer=True, annotations=None, **host):
        self.bridge_env = bridge_env
        name = f"{bridge_env.unique}-m{len(bridge_env.made)}"
        self.host = bridge_env.host(consumer=name if consumer else None, **host)
        provider = provider or "metal3://{namespace}/{name}/" + name
        self.pair = bridge_env.pair(provider=provider.format(**self.host), enabled=enabled, annotations=annotations)

    def annotations(self):
        return self.bridge_env.management.annotations("BareMetalHost", self.host["namespace"], self.host["name"])

    def change(self, **change):
        self.bridge_env.management.patch("BareMetalHost", self.host["namespace"], self.host["name"], change)

    def status(self, **status):
        self.bridge_env.management.patch("BareMetalHost", self.host["namespace"], self.host["name"], {"status": status}, sub="status")

    def wait_off(self):
        wait_for(lambda: REBOOT in self.annotations(), "the host is to be switched off")
        return self

    def wait_on(self):
        wait_for(lambda: REBOOT not in self.annotations() and OWNER not in self.annotations(), "the host is to be on")

    def approve(self):
        """By the whole way, so that nothing about it is forged."""
        self.pair.wait_hook()
        self.pair.ask("requested")
        self.pair.wait_node(MAINTAINED)
        self.pair.approve(APPROVE_MAINTENANCE)
        self.pair.wait_maintenance("approved")
        return self


def test_a_host_is_off_while_the_maintenance_is_approved(bridge_env):
    """14, 15 and 16."""
    it = Hosted(bridge_env)
    it.pair.wait_hook()
    it.pair.ask("requested")
    it.pair.wait_node(MAINTAINED)
    holds_for(lambda: REBOOT not in it.annotations(), 0.5)
    it.pair.approve(APPROVE_MAINTENANCE)
    it.wait_off()
    assert it.annotations()[REBOOT] == ""
    assert it.annotations()[OWNER] == it.pair.read()["metadata"]["uid"]
    it.pair.ask(None)
    it.wait_on()


def test_a_machine_that_is_deleted_while_approved_leaves_its_host_on(bridge_env):
    """B33; the deletion is still held for its own approval."""
    it = Hosted(bridge_env).approve().wait_off()
    it.pair.delete()
    it.pair.wait_node(DELETED)
    it.wait_on()
    it.pair.approve()
    it.pair.wait_gone()


def test_a_host_whose_machine_is_gone_is_switched_on(bridge_env):
    """B33: nobody of that UID is there."""
    owner = {REBOOT: "", OWNER: "00000000-0000-4000-8000-000000000000"}
    host = bridge_env.host(annotations=owner)
    others = bridge_env.host(annotations={"reboot.metal3.io/somebody": "", "reboot.metal3.io": ""})
    wait_for(lambda: not {REBOOT, OWNER} & set(bridge_env.management.annotations("BareMetalHost", "default", host["name"])),
             "the host is to be on")
    assert len(bridge_env.management.annotations("BareMetalHost", "default", others["name"])) == 2


@pytest.mark.parametrize("provider", ["aws:///zone/i-1", "metal3://", "metal3://default", "metal3:/default/{name}/m", "{name}"])
def test_other_provider_ids_concern_no_host(bridge_env, provider):
    """B35."""
    it = Hosted(bridge_env, provider=provider + "?{uid}" if "{name}" not in provider else provider + "{uid}")
    it.approve()
    holds_for(lambda: not it.annotations(), 0.5)


def test_the_old_form_of_a_provider_id_names_a_host_by_its_uid(bridge_env):
    """B35."""
    it = Hosted(bridge_env, provider="metal3://{uid}")
    it.approve().wait_off()
    it.pair.ask(None)
    it.wait_on()


def test_only_a_provisioned_host_is_switched(bridge_env):
    """B31."""
    it = Hosted(bridge_env, state="available")
    it.approve()
    holds_for(lambda: REBOOT not in it.annotations(), 0.5)
    it.status(provisioning={"state": "provisioned"})
    it.wait_off()


def test_a_host_that_somebody_else_uses_is_not_touched(bridge_env):
    it = Hosted(bridge_env, consumer=False)
    it.change(spec={"consumerRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "LabMachine",
                                    "namespace": "default", "name": "somebody-else"}})
    it.approve()
    holds_for(lambda: REBOOT not in it.annotations(), 0.5)


def test_a_machine_that_is_not_enabled_switches_nothing(bridge_env):
    it = Hosted(bridge_env, enabled=False)
    it.pair.ask("approved")
    witness = Hosted(bridge_env).approve()
    witness.wait_off()
    holds_for(lambda: REBOOT not in it.annotations(), 0.3)
    witness.pair.mark({ENABLED: None})
    witness.wait_on()


def test_what_vanishes_while_approved_comes_back(bridge_env):
    """B32."""
    it = Hosted(bridge_env).approve().wait_off()
    it.change(metadata={"annotations": {REBOOT: None}})
    it.wait_off()
    it.pair.ask(None)
    it.wait_on()


def test_the_power_is_told_at_the_machine(bridge_env):
    """B32."""
    it = Hosted(bridge_env).approve().wait_off()
    wait_for(lambda: it.pair.annotations().get(POWER) == "on", "it is still on")
    it.status(poweredOn=False)
    wait_for(lambda: it.pair.annotations().get(POWER) == "off", "it is off")
    it.pair.ask(None)
    wait_for(lambda: POWER not in it.pair.annotations(), "nothing is told any more")


def test_hard_is_hard(bridge_env):
    """B34."""
    it = Hosted(bridge_env, annotations={OWN + "power-mode": "hard"})
    it.approve().wait_off()
    assert it.annotations()[REBOOT] == '{"mode":"hard"}'


def test_a_paused_host_is_not_written_to(bridge_env):
    paused = "baremetalhost.metal3.io/paused"
    it = Hosted(bridge_env)
    it.change(metadata={"annotations": {paused: ""}})
    it.approve()
    holds_for(lambda: REBOOT not in it.annotations(), 0.5)
    it.change(metadata={"annotations": {paused: None}})
    it.wait_off()


def test_a_host_of_another_namespace_is_not_switched(bridge_env):
    """Its consumer is of the host's namespace, whatever the Machine's provider id says."""
    it = Hosted(bridge_env, space=bridge_env.space())
    it.approve()
    holds_for(lambda: REBOOT not in it.annotations(), 0.5)
