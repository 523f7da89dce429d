"""esx: nodes on ESX hosts, vCenters for them, and a controller that looks after both."""

import json
import os
import ssl
import subprocess
import sys
import urllib.request

import pytest

from contract import PROFILE
from profiles import read
from wait import wait_for

SERVERS = os.path.join(os.path.dirname(__file__), "..", "servers")
sys.path.insert(0, SERVERS)
from servers import make_authority, server_context  # noqa: E402  pylint: disable=wrong-import-position
from vcenter import VCenter  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

HOST = "kubernetes.cloud.sap/host"
ZONE = "failure-domain.beta.kubernetes.io/zone"
MODE = "cloud.sap/esx-in-maintenance"
OK = "cloud.sap/esx-reboot-ok"
VERSION = "cloud.sap/esx-version"
INITIATED = "cloud.sap/esx-reboot-initiated"

NO_PROFILES = "intervals: {requeue: 60s}\n"
CONFIG = """
intervals:
  check: {period: 500ms, jitter: 0.001}
  podDeletion: {period: 1s, timeout: 10m}
  podEviction: {period: 1s, timeout: 10m, force: false}
  vmShutdown: {period: 100ms, timeout: TIMEOUT}
alarms: [Host hardware, "Host <power> & more"]
vCenters:
  templateUrl: URL
  insecure: INSECURE
  credentials: {LOGINS}
"""


def config(url, password="harbour", timeout="60s", insecure=False, zones="a", extra=""):
    logins = ", ".join(f"'{zone}': {{username: drydock, password: {password}}}" for zone in zones)
    text = CONFIG.replace("URL", url).replace("TIMEOUT", timeout).replace("LOGINS", logins)
    return text.replace("INSECURE", str(insecure).lower()) + extra


def place(client, name, host, zone="qa-de-1a"):
    """The node is a machine on that host."""
    client.core.patch_node(name, {"metadata": {"labels": {HOST: host, ZONE: zone, PROFILE: None}}})


def approve(client, *names, value="true"):
    for name in names:
        client.core.patch_node(name, {"metadata": {"labels": {OK: value}}})


def mode(client, name):
    return (read(client, name).metadata.labels or {}).get(MODE)


def wait_mode(client, name, want):
    wait_for(lambda: mode(client, name) == want, f"{name} is {want}", interval=0.02)


def initiated(node):
    return (node.metadata.annotations or {}).get(INITIATED)


def is_back(client, name):
    node = read(client, name)
    return not node.spec.unschedulable and initiated(node) is None and mode(client, name) == "false"


class VcSim:
    """govmomi's simulator as tests/servers/vcsim.go runs it."""

    def __init__(self, folder, layout, authority):
        program = subprocess.run([os.path.join(SERVERS, "vcsim-build")], check=True, text=True,
                                 stdout=subprocess.PIPE, timeout=1200).stdout.strip()
        server_context(authority, "vcsim", "IP:127.0.0.1")
        with open(folder / "vcsim.err", "wb") as err:
            self.popen = subprocess.Popen(
                [program, "-cert", authority / "vcsim.crt", "-key", authority / "vcsim.key"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True)
        self.popen.stdin.write(json.dumps({"hosts": layout}) + "\n")
        self.popen.stdin.flush()
        self.url = self.popen.stdout.readline().strip()
        assert self.url, (folder / "vcsim.err").read_text()
        self.authority = authority / "ca.crt"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.stdin.close()
        self.popen.wait(60)

    def control(self, what="state", **query):
        """Does it, and answers the state of the simulator."""
        context = ssl.create_default_context(cafile=self.authority)
        address = f"{self.url}/control/{what}?" + "&".join(f"{k}={v}" for k, v in query.items())
        with urllib.request.urlopen(address, context=context, timeout=60) as answer:
            return json.load(answer)

    def power(self, name):
        return self.control()["power"][name]

    def maintenance(self, host, on):
        self.control("maintenance", host=host, on=str(on).lower())


@pytest.fixture
def authority(tmp_path):
    folder = tmp_path / "authority"
    folder.mkdir()
    make_authority(folder)
    return folder


@pytest.fixture
def esx(launch, tmp_path):
    """esx(text, flags, env): a controller with that esx.yaml, whose file is `controller.esx`."""

    def run(text, flags=(), profiles=NO_PROFILES, env=None, name="controller"):
        path = tmp_path / (name + "-esx.yaml")
        path.write_text(text, encoding="utf-8")
        controller = launch(profiles, name, ["--enable-esx-maintenance", "--esx-config", str(path), *flags], env)
        controller.esx = path
        return controller

    return run
