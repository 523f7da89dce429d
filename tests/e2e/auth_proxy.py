"""auth_proxy: a proxy in front of an API server that knows who asks.

It serves HTTPS with a certificate of its own and passes every request on as the administrator. A test sees what was asked, and
by whom; it can ask for a password, answer in the server's place, put up another certificate, or stop listening.
"""

import base64
import json
import select
import socket
import ssl
import threading

import yaml

from hostile import certificate
from proxy import hang_up, reset

REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 500: "InternalError", 503: "ServiceUnavailable"}


class Request:
    """One request as it came in; `agent` is what its sender calls itself."""

    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.path, _ = lines[0].split(" ", 2)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in
                        (line.partition(":") for line in lines[1:] if line)}
        self.agent = self.headers.get("user-agent", "")
        self.body = b""

    def bytes(self, user=None):
        """As it goes on: whoever it was, the administrator asks, perhaps for somebody."""
        lines = [f"{self.method} {self.path} HTTP/1.1", *([f"impersonate-user: {user}"] if user else [])]
        lines += [f"{name}: {value}" for name, value in self.headers.items() if name != "authorization"]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body


def refusal(status):
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
                       "reason": REASONS[status], "message": REASONS[status]}).encode()
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class AuthProxy:
    def __init__(self, access, folder, token=None, name="auth-proxy"):
        self.access, self.folder, self.name = access, folder, name
        self.token = token  # what one must show; None: nothing
        self.answer = lambda request: None  # a status: the request goes no further
        self.impersonate = lambda request: None  # for whom it is asked
        self.requests = []  # those that went through
        self.refused = []  # (status, request)
        self._lock = threading.Lock()
        self._links = {}  # near socket: the agent of its latest request
        self._shut = self._closed = False
        self._certificates = 0
        self.renew()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._closed = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def renew(self):
        """Another certificate, which only those trust who have a kubeconfig of afterwards."""
        self._certificates += 1
        self._pair = certificate(self.folder, f"{self.name}-{self._certificates}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._pair)
        self._context = context

    def kubeconfig(self, token=None, user=None, **cluster):
        """As text, with the certificate and the password of this moment."""
        with open(self._pair[0], "rb") as f:
            authority = base64.b64encode(f.read()).decode()
        token = token or self.token
        return yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {
                "server": f"https://127.0.0.1:{self.port}", "certificate-authority-data": authority, **cluster}}],
            "users": [{"name": "u", "user": user or ({"token": token} if token else {})}]})

    def file(self, path, **kwargs):
        path.write_text(self.kubeconfig(**kwargs), encoding="utf-8")
        return str(path)

    def cut(self):
        """Resets every connection; new ones are served."""
        with self._lock:
            links, self._links = list(self._links), {}
        for near in links:
            reset(near)

    def shut(self):
        """Nobody gets in until `open`."""
        self._shut = True
        self.cut()

    def open(self):
        self._shut = False

    def count(self, method=None, word="", agent="drydock"):
        """How many requests went through: of a sender, with a word in their path."""
        with self._lock:
            return sum(1 for r in self.requests if method in (None, r.method) and word in r.path and agent in r.agent)

    def rejected(self, status, agent="drydock"):
        with self._lock:
            return sum(1 for s, r in self.refused if s == status and agent in r.agent)

    def present(self, agent="drydock"):
        """How many connections of that sender are up."""
        with self._lock:
            return sum(1 for name in self._links.values() if agent in name)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._closed or self._shut:
                reset(near)
                continue
            threading.Thread(target=self._serve, args=(near, self._context), daemon=True).start()

    def _serve(self, near, context):
        far = None
        try:
            near.settimeout(60)
            near = context.wrap_socket(near, server_side=True)
            with self._lock:
                self._links[near] = ""
            far = self._connect()
            self._pass(near, far)
        except (OSError, ValueError):
            pass  # either side may go at any time
        with self._lock:
            self._links.pop(near, None)
        for side in (near, far):
            if side is not None:
                hang_up(side)

    def _connect(self):
        connection = self.access.connect()
        connection.connect()
        return connection.sock

    def _pass(self, near, far):
        """One thread for both ways: a TLS connection must not be read and written at once."""
        for side in (near, far):
            side.setblocking(False)
        waiting = b""
        while True:
            select.select([near, far], [], [])
            for side in (near, far):
                while (chunk := receive(side)) is not None:
                    if not chunk:
                        return
                    if side is far:
                        send(near, chunk)
                    else:
                        waiting = self._forward(near, far, waiting + chunk)

    def _forward(self, near, far, data):
        """Passes on the requests that are whole; the rest is returned."""
        while b"\r\n\r\n" in data:
            head, rest = data.split(b"\r\n\r\n", 1)
            request = Request(head)
            length = int(request.headers.get("content-length", "0"))
            if len(rest) < length:
                break
            request.body, data = rest[:length], rest[length:]
            status = self._judge(near, request)
            if status:
                send(near, refusal(status))
            else:
                send(far, request.bytes(self.impersonate(request)))
        return data

    def _judge(self, near, request):
        status = self.answer(request)
        if not status and self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            status = 401
        with self._lock:
            self._links[near] = request.agent
            if status:
                self.refused.append((status, request))
            else:
                self.requests.append(request)
        return status


def receive(side):
    """What is there; None: nothing at the moment; empty: it has ended."""
    try:
        return side.recv(65536)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None


def send(side, data):
    view = memoryview(data)
    while view:
        try:
            view = view[side.send(view):]
        except (BlockingIOError, ssl.SSLWantWriteError):
            select.select([], [side], [], 60)
