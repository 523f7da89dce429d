"""real_nodes: a control plane with real worker nodes, which tests/cluster boots inside of tests/cluster/enclose."""

import os
import subprocess

from backend import CLUSTER, ROOT, Cluster
from process import drydock
from wait import wait_for

ADDRESS = "10.77.0.1"  # of the control plane, as `enclose` makes it
NAMES = ("worker-1", "worker-2")
PAUSE = "localhost/pause:1"  # on every node: a program that waits until it is told to end


class RealNodes(Cluster):
    """Each node is a machine: systemd, containerd and kubelet."""

    name = "nodes"

    def __init__(self, folder):
        super().__init__(folder)
        assert os.environ.get("DRYDOCK_LAB"), "real nodes are booted inside of tests/cluster/enclose: run tools/e2e nodes"

    def script(self, name, *arguments):
        subprocess.run([os.path.join(CLUSTER, name), self.folder, *arguments], check=True, stdout=subprocess.DEVNULL)

    def start(self):
        self.script("up", "--nodes", ADDRESS)
        self.boot(*NAMES)

    def stop(self):
        for name in NAMES:
            self.keep_journal(name)
        self.script("node-down")
        super().stop()

    def boot(self, *names):
        """Returns when they are ready; also switches on what was switched off."""
        self.script("node-up", *names)

    def keep_journal(self, name):
        """What went on there, for whoever looks into a failure."""
        said = self.try_on(name, "journalctl", "--no-pager", "--output", "short-precise")
        with open(os.path.join(self.folder, name + ".journal"), "w", encoding="utf-8") as f:
            f.write(said.stdout + said.stderr)

    def try_on(self, name, *command, stdin=None):
        return subprocess.run([os.path.join(CLUSTER, "node-sh"), self.folder, name, *command], check=False, text=True,
                              capture_output=True, input=stdin)

    def on(self, name, *command, stdin=None):
        """Runs a command on the node as its root; what it printed."""
        done = self.try_on(name, *command, stdin=stdin)
        assert done.returncode == 0, f"{name}: {' '.join(command)}: {done.stderr}"
        return done.stdout

    def boot_id(self, name):
        return self.on(name, "cat", "/proc/sys/kernel/random/boot_id").strip()

    def import_image(self, archive):
        """Gives an archive to containerd on every node."""
        for name in NAMES:
            inside = f"/root/{os.path.basename(archive)}"
            subprocess.run(["cp", archive, os.path.join(self.folder, "nodes", name, "root" + inside)], check=True)
            self.on(name, "ctr", "-n", "k8s.io", "images", "import", inside)
            self.on(name, "rm", inside)


def drydock_image(folder):
    """(archive, name) of the image of the program under test."""
    archive, name = os.path.join(folder, "drydock-image.tar"), "localhost/drydock:under-test"
    subprocess.run([os.path.join(ROOT, "tools", "image"), "--binary", drydock(), "--out", archive,
                    "--sbom", os.path.join(folder, "drydock-image.spdx.json"), "--name", name],
                   check=True, stdout=subprocess.DEVNULL)
    return archive, name


def reported_boot_id(client, name):
    """As kubelet has told the API server."""
    return client.core.read_node(name).status.node_info.boot_id


def wait_rebooted(client, name, before):
    """The node, once it is ready after a boot with another ID."""
    def there():
        node = client.core.read_node(name)
        ready = {c.type: c.status for c in node.status.conditions}.get("Ready") == "True"
        return node if ready and node.status.node_info.boot_id != before else None
    return wait_for(there, f"{name} is back", interval=0.2)
