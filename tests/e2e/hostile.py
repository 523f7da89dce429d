"""hostile: an API server of a few lines that answers what a test tells it to, however wrong.

It knows nodes: list, watch and merge patch, enough for a controller. A test overrides one answer at
a time and can put everything right again, to see that the controller recovers.
"""

import json
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import yaml


def node(name, version, annotations=None):
    return {"kind": "Node", "apiVersion": "v1", "metadata": {
        "name": name, "uid": f"00000000-0000-0000-0000-{abs(hash(name)) % 10**12:012d}",
        "resourceVersion": str(version), "annotations": annotations or {}, "labels": {}},
        "spec": {}, "status": {}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # the client has every right to go away

    def answer(self, status, body, content_type="application/json", headers=None):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def begin(self, content_type="application/json"):
        """A stream; its pieces are given to `chunk`."""
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

    def finish_stream(self):
        self.wfile.write(b"0\r\n\r\n")

    def dispatch(self):
        server = self.server.owner
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        kind = "other"
        if url.path == "/api/v1/nodes":
            kind = "watch" if query.get("watch", ["0"])[0] in ("1", "true") else "list"
        elif url.path.startswith("/api/v1/nodes/") and self.command == "PATCH":
            kind = "patch"
        elif url.path.startswith("/api/v1/nodes/") and self.command == "GET":
            kind = "node"
        with server.lock:
            server.seen.append((kind, self.command, self.path))
            self.answers = server.answers
            answer = self.answers.get(kind) or self.answers.get("any")
        if server.token and self.headers.get("Authorization") != f"Bearer {server.token}":
            self.answer(401, {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                              "message": "Unauthorized", "reason": "Unauthorized", "code": 401})
        elif answer:
            answer(self)
        else:
            getattr(server, "good_" + kind)(self, url, query, body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = dispatch


class Hostile:
    """`answers` maps watch, list, node, patch, other or any to a function of the handler."""

    def __init__(self, names=("good",), tls=None):
        self.lock = threading.RLock()
        self.version = 1000
        self.nodes = {n: node(n, 1000) for n in names}
        self.answers = {}
        self.token = None  # what a client must show
        self.seen = []
        self.closing = threading.Event()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.owner = self
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True,
                                                   do_handshake_on_connect=False)
        self.tls = bool(tls)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()

    def behave(self):
        """From now on every answer is good. Streams that are open end."""
        with self.lock:
            self.answers = {}

    def count(self, kind):
        with self.lock:
            return sum(1 for entry in self.seen if entry[0] == kind)

    def labelled(self, name):
        with self.lock:
            return "cloud.sap/maintenance-state" in self.nodes[name]["metadata"]["labels"]

    def kubeconfig(self, path, user=None, **cluster):
        scheme = "https" if self.tls else "http"
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                  "clusters": [{"name": "c", "cluster": {
                      "server": f"{scheme}://127.0.0.1:{self.port}", **cluster}}],
                  "users": [{"name": "u", "user": user or {}}]}
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump(config, f)
        return path

    # Good answers.

    def good_list(self, handler, url, query, body):
        with self.lock:
            answer = {"kind": "NodeList", "apiVersion": "v1",
                      "metadata": {"resourceVersion": str(self.version)},
                      "items": list(self.nodes.values())}
        handler.answer(200, answer)

    def events(self):
        """What a stream begins with, all nodes and the bookmark that ends them, and its version."""
        with self.lock:
            lines = [{"type": "ADDED", "object": n} for n in self.nodes.values()]
            lines.append({"type": "BOOKMARK", "object": {
                "kind": "Node", "apiVersion": "v1", "metadata": {
                    "resourceVersion": str(self.version),
                    "annotations": {"k8s.io/initial-events-end": "true"}}}})
            return b"".join(json.dumps(line).encode() + b"\n" for line in lines), self.version

    def good_watch(self, handler, url, query, body):
        handler.begin()
        since = int(query.get("resourceVersion", ["0"])[0] or 0)
        if "sendInitialEvents" in query:
            lines, since = self.events()
            handler.chunk(lines)
        self.hold(handler, since)

    def touch(self, name):
        """A change by somebody else."""
        with self.lock:
            self.version += 1
            self.nodes[name]["metadata"]["resourceVersion"] = str(self.version)

    def hold(self, handler, since=None):
        """Keeps a stream open until the answers are others than when it was asked for; tells of
        later versions."""
        while self.answers is handler.answers and not self.closing.wait(0.02):
            if since is None:
                continue
            with self.lock:
                news = [n for n in self.nodes.values()
                        if int(n["metadata"]["resourceVersion"]) > since]
                since = self.version
            handler.chunk(b"".join(json.dumps({"type": "MODIFIED", "object": n}).encode() + b"\n"
                                   for n in news))
        handler.finish_stream()

    def good_patch(self, handler, url, query, body):
        name = url.path.rsplit("/", 1)[1]
        patch = json.loads(body)
        with self.lock:
            self.version += 1
            meta = self.nodes[name]["metadata"]
            for key in ("labels", "annotations"):
                meta[key].update(patch["metadata"].get(key, {}))
            meta["resourceVersion"] = str(self.version)
            answer = self.nodes[name]
        handler.answer(200, answer)

    def good_node(self, handler, url, query, body):
        with self.lock:
            answer = self.nodes[url.path.rsplit("/", 1)[1]]
        handler.answer(200, answer)

    def good_other(self, handler, url, query, body):
        handler.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                             "message": "not here", "reason": "NotFound", "code": 404})


def certificate(folder, name):
    """A self-signed certificate for loopback: (certificate file, key file)."""
    cert, key = str(folder / f"{name}.crt"), str(folder / f"{name}.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    return cert, key


class Mute:
    """Accepts connections and says what it is told to, which is no HTTP: by default nothing."""

    def __init__(self, words=b""):
        self.words = words
        self.peers = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.peers.append(peer)
            try:
                peer.sendall(self.words)
            except OSError:
                pass  # it has gone already

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for peer in self.peers:
            peer.close()
