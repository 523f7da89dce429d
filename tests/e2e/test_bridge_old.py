"""A management server that serves v1beta1 of Cluster API and nothing newer: the cases of the original, once more."""

import os

import pytest

from backend import Sandbox, Workload
from bridge import BridgeEnv, leads
from capi import DATA, LAB, Management, StandIn
from process import Bridge
# pylint: disable=unused-import
from test_bridge import (  # noqa: F401
    test_a_deletion_is_told_to_the_node_held_and_approved, test_a_machine_that_is_not_enabled_any_more_is_free,
    test_a_machine_without_a_node_is_not_held, test_a_maintenance_is_told_to_the_node_and_taken_back,
    test_a_node_that_comes_later_is_found, test_a_node_that_gets_an_engine_protects_its_machine,
    test_an_approved_maintenance_comes_back, test_an_engine_that_leaves_takes_requests_with_it_and_no_label_of_the_machine,
    test_nothing_is_attached_before_an_engine_looks_after_the_node, test_the_hook_has_the_value_of_the_original)
from wait import wait_for


class Past:
    """The bridge's clusters, with an old server in the middle; the workload clusters are the shared ones."""

    def __init__(self, bridge_clusters, home, management):
        self.servers, self.workloads = {**bridge_clusters.servers, "management": home}, bridge_clusters.workloads
        self.home, self.management = home, management


@pytest.fixture(scope="module", name="past")
def fixture_past(bridge_clusters, backend, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("past"))
    with (Workload(backend, "past-" + os.path.basename(os.path.dirname(folder))) if bridge_clusters.real
          else Sandbox(folder, flags=["--tls", "--bare"])) as home:
        management = Management(home.access, "v1beta1")
        management.install(os.path.join(DATA, "v1beta1.yaml"), LAB)
        past = Past(bridge_clusters, home, management)
        with StandIn(management):
            with open(bridge_clusters.servers["one"].kubeconfig, encoding="utf-8") as f:
                past.clusters = {"one": management.cluster("default", "one", f.read())}
            yield past


@pytest.fixture(scope="module", autouse=True)
def fixture_bridge(past, tmp_path_factory):
    """It is to look after hosts, too, of which this server knows nothing: that holds nothing else up."""
    flags = ["--lease-namespace", "default", "--enable-metal3-maintenance"]
    with Bridge(past.home.kubeconfig, str(tmp_path_factory.mktemp("bridge")), flags=flags) as bridge:
        wait_for(lambda: leads(bridge), "it leads")
        yield bridge


@pytest.fixture(name="bridge_env")
def fixture_bridge_env(past, unique, tmp_path):
    bridge_env = BridgeEnv(past, unique, tmp_path)
    yield bridge_env
    bridge_env.clean()


def test_the_server_knows_nothing_newer(past):
    for path in ("/apis/cluster.x-k8s.io/v1beta2/machines", "/apis/metal3.io/v1alpha1/baremetalhosts"):
        assert past.management.send("GET", path)[0] == 404
