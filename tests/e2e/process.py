"""process: programs under test: started, watched, asked over HTTP, and always ended."""

import http.client
import os
import re
import signal
import socket
import subprocess

from wait import PATIENCE, wait_for


def drydock():
    """The program under test."""
    path = os.path.abspath(os.environ.get("DRYDOCK", "build/drydock"))
    assert os.access(path, os.X_OK), f"{path} is not there: build first, or set DRYDOCK"
    return path


class Port:
    """A free port, kept until a program listens on it, and while it does, and afterwards.

    A number that was free a moment ago may be somebody's by the time the program binds it: every
    connection on this machine takes one. A socket that is bound and does not listen keeps it from
    all but those who name it and allow its reuse, as drydock and Go's listeners do. Nobody answers
    on it then, so it is also an address where there is certainly no server.
    """

    def __init__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", 0))
        self.number = self.socket.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()


def fetch(port, path, method="GET", timeout=30, headers=None):
    """One HTTP exchange with a program on loopback: (status, headers, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


# What ends a program that did something wrong, and what nobody sends it here.
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSYS)


class Process:
    """A child whose two outputs go to files; used as a context manager. It may open so many descriptors; None: as many as the test."""

    def __init__(self, arguments, folder, name, env=None, cwd=None, descriptors=None):
        os.makedirs(folder, exist_ok=True)
        if descriptors is not None:
            arguments = ["/bin/sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh", *arguments]
        self.name = name
        self.out_path = os.path.join(folder, name + ".out")
        self.err_path = os.path.join(folder, name + ".err")
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.popen = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd or folder,
                env={**os.environ, **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    @property
    def pid(self):
        return self.popen.pid

    def out(self):
        with open(self.out_path, encoding="utf-8", errors="backslashreplace") as f:
            return f.read()

    def log(self):
        with open(self.err_path, encoding="utf-8", errors="backslashreplace") as f:
            return f.read()

    def alive(self):
        return self.popen.poll() is None

    def send(self, number):
        self.popen.send_signal(number)

    def wait(self, timeout=PATIENCE):
        """The exit status; a process that does not end is a failure that shows its log."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{self.name} still runs after {timeout:g} s\n{self.log()[-4000:]}") from None

    def end(self):
        """Nothing outlives its test."""
        if self.alive():
            self.send(signal.SIGCONT)
            self.send(signal.SIGKILL)
        status = self.popen.wait()
        assert -status not in CRASHES, f"{self.name} has crashed: {signal.Signals(-status).name}\n{self.log()[-4000:]}"


SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


def parse_metrics(text):
    """{(name, ((label, value), …)): float} of a Prometheus text exposition."""
    samples = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = SAMPLE.match(line)
        assert match, f"not a sample of the text format: {line!r}"
        name, labels, value = match.groups()
        samples[(name, tuple(sorted(LABEL.findall(labels or ""))))] = float(value)
    return samples


class Service(Process):
    """A subcommand that serves metrics and health on ports of its own."""

    command = None
    always = ()

    def __init__(self, kubeconfig, folder, name=None, flags=(), env=None, descriptors=None):
        self.ports = (Port(), Port())
        self.metrics_port, self.health_port = (port.number for port in self.ports)
        arguments = [drydock(), self.command]
        if kubeconfig is not None:
            arguments += ["--kubeconfig", str(kubeconfig)]
        arguments += ["--metrics-addr", f"127.0.0.1:{self.metrics_port}",
                      "--health-addr", f"127.0.0.1:{self.health_port}", *self.always, *flags]
        self.stopped = False
        super().__init__(arguments, folder, name or self.command, env, descriptors=descriptors)

    def __exit__(self, kind, *_):
        # It must be able to end in order after whatever the test did to it.
        if kind is None and self.alive():
            self.stop()
        self.end()

    def end(self):
        for port in self.ports:
            port.close()
        super().end()

    def stop(self):
        self.send(signal.SIGTERM)
        self.stopped = True
        status = self.wait()
        assert status == 0, f"exit status {status} after SIGTERM\n{self.log()[-4000:]}"

    def get(self, path, **kwargs):
        return self.ask(self.metrics_port, path, **kwargs)

    def health(self, path):
        return self.ask(self.health_port, path)

    def ask(self, port, path, **kwargs):
        """Who waits for an answer of one that has crashed is told so at once."""
        try:
            return fetch(port, path, **kwargs)
        except OSError:
            if -(self.popen.poll() or 0) in CRASHES:
                self.alive_or_fail()
            raise

    def wait_ready(self):
        wait_for(lambda: self.alive_or_fail() and self.health("/readyz")[0] == 200,
                 f"{self.name} is ready")
        return self

    def alive_or_fail(self):
        status = self.popen.poll()
        if status is not None:
            raise SystemExit(f"{self.name} has ended with {status}\n{self.log()[-4000:]}")
        return True

    def metrics(self):
        status, _, body = self.get("/metrics")
        assert status == 200
        return parse_metrics(body)

    def metric(self, name, /, **labels):
        """Sum of the samples that have (at least) these labels."""
        wanted = set(labels.items())
        return sum(v for (n, pairs), v in self.metrics().items()
                   if n == name and wanted <= set(pairs))

    def usage(self):
        """(CPU seconds so far, resident bytes now, resident bytes at most)."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(") ", 1)[1].split()
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            sizes = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", f.read(), re.M))
        ticks = os.sysconf("SC_CLK_TCK")
        return ((int(fields[11]) + int(fields[12])) / ticks,
                int(sizes["VmRSS"]) * 1024, int(sizes["VmHWM"]) * 1024)


class Controller(Service):
    """`drydock controller`."""

    command = "controller"
    always = ("--metrics-timeout", "0s")

    def patches_taken(self):
        """Node patches that the server took, from one scrape. Where others write to nodes too, some
        are sent in vain: they meet a newer node and are decided anew."""
        samples = self.metrics()
        return samples[("drydock_patches_total", ())] \
            - samples[("drydock_patch_conflicts_total", ())] \
            - samples[("drydock_patch_errors_total", ())]

    def idle(self):
        """Whether it has nothing to do: all nodes are decided, nothing is on its way."""
        return self.metric("drydock_queue_nodes") == 0


class Bridge(Service):
    """`drydock bridge`; all servers of the suites are at loopback."""

    command = "bridge"
    always = ("--allow-local-servers",)
