"""profiles: nodes with profiles, and what becomes of them, for the suites about configurations."""

import http.server
import json
import threading

import kubernetes
import urllib3

from contract import annotation, state
from wait import wait_for

ELECT = ("--enable-leader-election", "--lease-namespace", "default")


def read(client, name):
    return client.core.read_node(name)


def label(client, name, **labels):
    """label(client, n, update="needed", approved=None): None removes one; `__` stands for a dash."""
    return client.core.patch_node(name, {"metadata": {"labels": {
        key.replace("__", "-"): value for key, value in labels.items()}}})


def annotate(client, name, **pairs):
    return client.core.patch_node(name, {"metadata": {"annotations": pairs}})


def entries(node):
    """{profile: state} of the data annotation."""
    text = annotation(node)
    return {name: entry["Current"] for name, entry in
            (json.loads(text)["Profiles"] if text else {}).items()}


def wait_state(client, name, want):
    """The node, once its label says so."""
    def there():
        node = read(client, name)
        return node if state(node) == want else None
    return wait_for(there, f"{name} is {want}", interval=0.02)


def wait_entries(client, name, want):
    def there():
        node = read(client, name)
        return node if entries(node) == want else None
    return wait_for(there, f"{name} has {want}, not {entries(read(client, name))}", interval=0.02)


def events(client, name, reason, space="default"):
    """Notes of the events about an object, oldest first."""
    found = [e for e in client.core.list_namespaced_event(space).items
             if e.involved_object.name == name and e.reason == reason]
    return [e.message for e in sorted(found, key=lambda e: e.event_time or e.last_timestamp)]


class History:
    """Every version of every node while it is open, as a watch shows them."""

    def __init__(self, client):
        self.api = client.core
        self.watch = kubernetes.watch.Watch()
        self.steps = []  # (node, state, {profile: state}), in the server's order
        self.ended = False
        self.thread = threading.Thread(target=self.follow, daemon=True)

    def __enter__(self):
        listed = self.api.list_node()
        for item in listed.items:
            self.note(item)
        self.since = listed.metadata.resource_version
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.watch.stop()

    def note(self, node):
        self.steps.append((node.metadata.name, state(node), entries(node)))

    def follow(self):
        while not self.ended:
            try:
                self.follow_once()
            except (urllib3.exceptions.HTTPError, OSError):
                pass  # a stream may break; the next one begins where it ended

    def follow_once(self):
        for event in self.watch.stream(self.api.list_node, resource_version=self.since,
                                       timeout_seconds=120):
            node = event["object"]
            if event["type"] == "DELETED":
                self.steps.append((node.metadata.name, None, {}))
            elif event["type"] in ("ADDED", "MODIFIED"):
                self.note(node)
            self.since = node.metadata.resource_version

    def peak(self, names):
        """How many of them were in maintenance at once, at most."""
        now, most = {}, 0
        for name, is_state, _ in list(self.steps):
            now[name] = is_state
            most = max(most, sum(now.get(n) == "in-maintenance" for n in names))
        return most

    def arrivals(self, names):
        """In which order they came into maintenance."""
        order, now = [], {}
        for name, is_state, _ in list(self.steps):
            if is_state == "in-maintenance" and now.get(name) != is_state and name in names:
                order.append(name)
            now[name] = is_state
        return order


class Inbox:
    """A local HTTP server that keeps what it is sent, and answers as it is told."""

    def __init__(self):
        self.requests = []  # (path, headers, body)
        self.answer = lambda path, body: (200, "ok")
        inbox = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                inbox.requests.append((self.path, self.headers, body))
                status, text = inbox.answer(self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def bodies(self, path=None):
        return [body for at, _, body in self.requests if path in (None, at)]
