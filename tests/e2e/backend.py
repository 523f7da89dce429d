"""backend: what the cases run against: the sandbox, or a real control plane of tests/cluster."""

import base64
import http.client
import json
import os
import select
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import urllib.parse

import kubernetes
import yaml

from process import Process, drydock
from wait import wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLUSTER = os.path.join(ROOT, "tests", "cluster")


def is_running(pid):
    """Neither gone nor a zombie, which has no program any more."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        return False
    return True


class Access:
    """What a kubeconfig says, for requests that no client library makes."""

    def __init__(self, path, timeout=60):
        self.path, self.timeout = str(path), timeout
        with open(path, encoding="utf-8") as f:
            self.config = yaml.safe_load(f)
        cluster = self.config["clusters"][0]["cluster"]
        user = self.config["users"][0]["user"] if self.config.get("users") else {}
        self.server = cluster["server"]
        self.token = user.get("token")
        self.acts_as = user.get("as")
        url = urllib.parse.urlsplit(self.server)
        self.host, self.port, self.tls = url.hostname, url.port, url.scheme == "https"
        self.authority = cluster.get("certificate-authority-data")
        self.certificate = user.get("client-certificate-data")
        self.key = user.get("client-key-data")
        self._kept = threading.local()

    def connect(self, identified=True, timeout=None):
        """A connection, as the administrator or as nobody."""
        timeout = timeout or self.timeout
        if not self.tls:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        context = ssl.create_default_context(
            cadata=base64.b64decode(self.authority).decode() if self.authority else None)
        if identified and self.certificate:
            with tempfile.NamedTemporaryFile() as pair:
                pair.write(base64.b64decode(self.certificate) + base64.b64decode(self.key))
                pair.flush()
                context.load_cert_chain(pair.name)
        return http.client.HTTPSConnection(self.host, self.port, context=context, timeout=timeout)

    def headers(self):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if self.acts_as:
            headers["Impersonate-User"] = self.acts_as
        return headers

    def request(self, method, path, body=None, content_type="application/json"):
        """One exchange: (status, decoded JSON or text)."""
        headers = {**self.headers(), "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
            body = json.dumps(body)
        connection = self._connection()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode()
        except BaseException:
            connection.close()
            raise
        if response.headers.get_content_type() == "application/json":
            return response.status, json.loads(text)
        return response.status, text

    def _connection(self):
        """The thread's own, kept: whoever asks twenty times a second spends most of both sides' time on handshakes otherwise.
        One that has something to say although it was not asked has been closed by the server."""
        kept = getattr(self._kept, "connection", None)
        if kept is not None and kept.sock is not None:
            poll = select.poll()
            poll.register(kept.sock, select.POLLIN)
            if not poll.poll(0):
                return kept
            kept.close()
        self._kept.connection = self.connect()
        return self._kept.connection

    def variant(self, path, cluster=None, user=None):
        """Writes a kubeconfig with other cluster or user members (None removes one)."""
        config = json.loads(json.dumps(self.config))
        for part, changes in ((config["clusters"][0]["cluster"], cluster),
                              (config["users"][0].setdefault("user", {}), user)):
            for key, value in (changes or {}).items():
                if value is None:
                    part.pop(key, None)
                else:
                    part[key] = value
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump(config, f)
        return path


class Backend:
    """Common to both; `folder` receives all files."""

    def __init__(self, folder):
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.kubeconfig = os.path.join(self.folder, "admin.kubeconfig")
        self._access = (None, None)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def access(self):
        """One for all, until the server has written another kubeconfig."""
        written = os.stat(self.kubeconfig).st_mtime_ns
        if self._access[0] != written:
            self._access = (written, Access(self.kubeconfig))
        return self._access[1]

    def client(self):
        """An ApiClient of the official library."""
        return kubernetes.config.new_client_from_config(self.kubeconfig)

    def kubectl_command(self, *arguments):
        return [self.kubectl_path(), "--kubeconfig", self.kubeconfig, *arguments]

    def kubectl_env(self):
        # kubectl caches discovery below HOME, by address: ports are used again.
        return {**os.environ, "HOME": self.folder, "KUBECONFIG": "", "KUBECTL_KUBERC": "false"}


class Sandbox(Backend):
    """`drydock sandbox`."""

    name = "sandbox"

    def __init__(self, folder, nodes=None, flags=(), world=None, descriptors=None):
        super().__init__(folder)
        self.descriptors = descriptors
        self.flags = [*(["--nodes", str(nodes)] if nodes is not None else []), *flags]
        if world:
            path = os.path.join(self.folder, "world.yaml")
            with open(path, "w", encoding="utf-8") as f:
                yaml.safe_dump(world, f)
            self.flags += ["--world", path]
        self.process = None

    def start(self):
        self.process = Process(
            [os.environ.get("SANDBOX") or drydock(), "sandbox", "--listen", "127.0.0.1:0", "--write-kubeconfig",
             self.kubeconfig, *self.flags], self.folder, "sandbox", descriptors=self.descriptors)

        def ready():
            if not self.process.alive():
                raise SystemExit(f"the sandbox has ended\n{self.process.log()}")
            return self.access.request("GET", "/readyz")[0] == 200

        wait_for(ready, "the sandbox is ready", interval=0.01)

    def stop(self):
        if self.process is not None:
            self.process.end()

    def kubectl_path(self):
        path = os.environ.get("KUBECTL") or shutil.which("kubectl")
        assert path, "kubectl is not in PATH: install kubernetes-client"
        return path


class Cluster(Backend):
    """etcd, kube-apiserver and, unless lean, controllers, scheduler and kwok."""

    name = "cluster"

    def __init__(self, folder, lean=False):
        super().__init__(folder)
        self.lean = lean

    def start(self):
        """Also brings back what a test has killed."""
        subprocess.run([os.path.join(CLUSTER, "up"), self.folder] + ["--lean"] * self.lean,
                       check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        subprocess.run([os.path.join(CLUSTER, "down"), self.folder], check=True)

    def pid(self, program):
        with open(os.path.join(self.folder, "pid", program), encoding="ascii") as f:
            return int(f.read())

    def kill(self, program):
        """Returns when it is gone: `up` would take one that is still dying for alive."""
        pid = self.pid(program)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not is_running(pid), f"{program} is gone", interval=0.01)

    def etcd_port(self):
        return self.access.port + 1

    def kubectl_path(self):
        built = subprocess.run([os.path.join(CLUSTER, "build")], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.strip()
        return os.path.join(built, "kubectl")


class Workload(Cluster):
    """One more API server beside a control plane: a cluster of its own without controllers."""

    def __init__(self, home, name):
        self.home, self.own_name = home, name
        super().__init__(os.path.join(home.folder, "workload", name), lean=True)

    def start(self):
        subprocess.run([os.path.join(CLUSTER, "up-workload"), self.home.folder, self.own_name],
                       check=True, stdout=subprocess.DEVNULL)

    def start_manager(self):
        """Cluster API's; also brings back one that a test has killed."""
        subprocess.run([os.path.join(CLUSTER, "up-capi"), self.folder], check=True, stdout=subprocess.DEVNULL)
