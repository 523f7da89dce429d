"""replay: plays the recorded answers of tests/data/apiserver against a server.

The rules are those of the README next to the recordings: placeholders are bound by first
appearance, volatile headers, managedFields and the descriptions of columns are left out, discovery
documents are cut down.
"""

import base64
import glob
import http.client
import json
import os
import queue
import re
import threading

from backend import ROOT
from proxy import hang_up

DATA = os.path.join(ROOT, "tests", "data", "apiserver")
KEPT_HEADERS = ("Content-Type", "Retry-After", "Warning", "Allow", "Www-Authenticate")
EXACT_MESSAGES = (409, 422, 429)

PLACEHOLDER = re.compile(
    r"<(uid-\d+|rv-\d+|rv|time|microtime|continue|continue-at-rv-1|suffix-5|age|address)>")
NUMBERED = re.compile(r"(uid|rv)-\d+$")
FORMS = {
    "uid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "rv": r"[0-9]+",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "microtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z",
    "continue": r"[A-Za-z0-9+/=_.-]+",
    "suffix": r"[bcdfghjklmnpqrstvwxz2456789]{5}",
    "age": r"(?:(?:\d+[smhdy]){1,2}|<invalid>|<unknown>)",
    "address": r".*",
}


def case_names():
    return sorted(name for name in
                  (os.path.basename(p)[:-len(".json")] for p in glob.glob(DATA + "/*.json"))
                  if name != "prelude")


def load(name):
    with open(os.path.join(DATA, name + ".json"), encoding="utf-8") as f:
        return json.load(f)


class Mismatch(AssertionError):
    """The server answered something else."""


class Bindings:
    """Values that placeholders stand for, within one case."""

    def __init__(self):
        self.values = {}

    def fill(self, value):
        """A request's value with every placeholder replaced by what it is bound to."""
        if isinstance(value, dict):
            return {self.fill(k): self.fill(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.fill(v) for v in value]
        if isinstance(value, str):
            return PLACEHOLDER.sub(lambda m: self.values[m.group(1)], value)
        return value

    def match_text(self, expected, actual):
        """Whether a text is the recorded one; binds what it shows for the first time."""
        pattern, new, end = "", {}, 0
        for m in PLACEHOLDER.finditer(expected):
            name = m.group(1)
            kind = name.split("-")[0]
            pattern += re.escape(expected[end:m.start()])
            end = m.end()
            if name in self.values and name != "continue":
                pattern += re.escape(self.values[name])
            elif name in new:
                pattern += f"(?P={new[name]})"
            elif name == "continue" or NUMBERED.match(name):
                new[name] = f"p{len(new)}"
                pattern += f"(?P<{new[name]}>{FORMS[kind]})"
            else:
                pattern += FORMS[kind]
        found = re.fullmatch(pattern + re.escape(expected[end:]), actual, re.S)
        return found is not None and all(self.bind(k, found.group(g)) for k, g in new.items())

    def bind(self, name, value):
        """Another number stands for another value; a continue token is always the latest."""
        kind = name.split("-")[0]
        taken = {v for k, v in self.values.items() if k.split("-")[0] == kind}
        self.values[name] = value
        return name == "continue" or value not in taken

    def compare(self, expected, actual, where="", loose_message=False):
        """The differences, as sentences."""
        if isinstance(expected, dict) and isinstance(actual, dict):
            found = []
            for key in expected:
                if key not in actual:
                    found.append(f"{where}.{key} is missing, want {short(expected[key])}")
                elif not (loose_message and where == "body" and key == "message"):
                    found += self.compare(expected[key], actual[key], f"{where}.{key}",
                                          loose_message)
            return found + [f"{where}.{key} should not be there: {short(actual[key])}"
                            for key in actual if key not in expected]
        if isinstance(expected, list) and isinstance(actual, list):
            found = []
            for i, (want, have) in enumerate(zip(expected, actual)):
                found += self.compare(want, have, f"{where}[{i}]", loose_message)
            if len(expected) != len(actual):
                found.append(f"{where} has {len(actual)} elements, want {len(expected)}")
            return found
        if isinstance(expected, str) and isinstance(actual, str):
            same = self.match_text(expected, actual)
        else:
            same = type(expected) is type(actual) and expected == actual
        return [] if same else [f"{where} is {short(actual)}, want {short(expected)}"]


def short(value):
    text = json.dumps(value)
    return text if len(text) <= 300 else text[:300] + "…"


def without_managed_fields(value):
    """Nor the sentences that describe a table's columns, which are each server's own."""
    if isinstance(value, dict):
        return {k: without_descriptions(v) if k == "columnDefinitions" else without_managed_fields(v)
                for k, v in value.items() if k != "managedFields"}
    if isinstance(value, list):
        return [without_managed_fields(v) for v in value]
    return value


def without_descriptions(columns):
    return columns and [{k: v for k, v in c.items() if k != "description"} for c in columns]


def entry_name(entry):
    if "metadata" in entry:
        return entry["metadata"].get("name")
    return entry.get("name") or entry.get("resource") or entry.get("subresource")


def cut_down(expected, actual):
    """Leaves of a discovery document only the entries that the recording names, in the server's
    order of them."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {k: cut_down(expected.get(k), v) for k, v in actual.items()}
    if isinstance(expected, list) and isinstance(actual, list) and expected \
            and isinstance(expected[0], dict) and entry_name(expected[0]):
        wanted = {entry_name(e): e for e in expected}
        order = list(wanted)
        kept = [cut_down(wanted[entry_name(e)], e) for e in actual if entry_name(e) in wanted]
        return sorted(kept, key=lambda e: order.index(entry_name(e)))
    return actual


class Replay:
    """Plays one case at a time against the server of an Access."""

    def __init__(self, access):
        self.access = access

    def play(self, case, exact=False):
        """Raises Mismatch. `exact` compares every message; otherwise only those users read."""
        bindings = Bindings()
        if "<continue-at-rv-1>" in case["request"]["path"]:
            bindings.values["continue-at-rv-1"] = self.token_for_version_1(case, bindings)
        for number, step in enumerate(case.get("setup", [])):
            self.step(case, bindings, step, f"setup {number}")
        if "events" in case["response"]:
            found = self.play_watch(case, bindings)
        else:
            found = self.play_request(case, bindings, exact)
        if found:
            raise Mismatch("\n".join(found[:20]))

    def token_for_version_1(self, case, bindings):
        """A continue token is opaque; both servers happen to write the same JSON in base64."""
        token = {"v": "meta.k8s.io/v1", "rv": 1, "start": "n1\u0000"}
        return base64.urlsafe_b64encode(json.dumps(token, separators=(",", ":")).encode()) \
            .decode().rstrip("=")

    def step(self, case, bindings, step, where):
        """A step around the request in question: its status counts, its values are bound."""
        status, _, body = self.exchange(bindings, step["request"])
        want = step["response"]["status"]
        if status != want:
            raise Mismatch(f"{where}: status {status}, want {want}: {short(body)}")
        bindings.compare(self.trim(case, step["response"].get("body")), self.trim(case, body))

    def trim(self, case, body):
        return body if case["case"].startswith("apply-") else without_managed_fields(body)

    def open(self, bindings, request, timeout=60):
        headers = {"Accept": "application/json", "User-Agent": "conformance",
                   **request.get("headers", {})}
        body = bindings.fill(request.get("body"))
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        identified = "Authorization" not in headers
        if identified:
            headers.update(self.access.headers())
        connection = self.access.connect(identified, timeout)
        connection.request(request["method"], bindings.fill(request["path"]), body, headers)
        return connection, connection.getresponse()

    def exchange(self, bindings, request):
        connection, response = self.open(bindings, request)
        try:
            text = response.read().decode()
        finally:
            connection.close()
        return response.status, kept(response.headers), decoded(response.headers, text)

    def play_request(self, case, bindings, exact):
        want = case["response"]
        status, headers, body = self.exchange(bindings, case["request"])
        found = []
        if status != want["status"]:
            found.append(f"status is {status}, want {want['status']}")
        if headers != want["headers"]:
            found.append(f"headers are {headers}, want {want['headers']}")
        expected, actual = self.trim(case, want.get("body")), self.trim(case, body)
        if case["case"].startswith("discovery-"):
            actual = cut_down(expected, actual)
        if case["case"] == "version":
            # Belongs to the machine that built the server.
            for name in ("goVersion", "platform", "gitCommit", "gitTreeState", "compiler"):
                if isinstance(actual, dict) and actual.get(name) is not None:
                    expected.pop(name, None)
                    actual.pop(name)
        loose = not exact and want["status"] not in EXACT_MESSAGES
        return found + bindings.compare(expected, actual, "body", loose)

    def play_watch(self, case, bindings):
        want, request, during = case["response"], case["request"], case.get("during", [])
        if during:
            # The recorded second or two may be over before a busy machine has written everything.
            request = {**request, "path": re.sub(r"timeoutSeconds=\d+", "timeoutSeconds=60",
                                                 request["path"])}
        connection, response = self.open(bindings, request)
        events = queue.Queue()
        reader = threading.Thread(target=read_events, args=(response, events), daemon=True)
        reader.start()
        try:
            found = []
            if response.status != want["status"]:
                return [f"status is {response.status}, want {want['status']}"]
            if kept(response.headers) != want["headers"]:
                found.append(f"headers are {kept(response.headers)}, want {want['headers']}")
            expected = [self.trim(case, e) for e in want["events"]]
            actual = []
            # What exists already comes first: the writes follow when it has been seen.
            caused = min(len(during), len(expected))
            if during:
                actual += take(events, len(expected) - caused)
            for number, step in enumerate(during):
                self.step(case, bindings, step, f"during {number}")
            if during:
                actual += take(events, len(expected) - len(actual))
                actual += take(events, len(expected) + len(during), 1)  # what should not come
            else:
                reader.join(60)
                if reader.is_alive():
                    return found + ["the stream does not end"]
                actual += take(events, events.qsize())
            actual = [self.trim(case, e) for e in actual]
            return found + bindings.compare(expected, actual, "events")
        finally:
            if connection.sock is not None:
                hang_up(connection.sock)  # the reader wakes; close would wait for it
            reader.join(60)
            connection.close()


def take(events, count, seconds=60):
    """At most that many, as far as each comes in time."""
    taken = []
    try:
        while len(taken) < count:
            taken.append(events.get(timeout=seconds))
    except queue.Empty:
        pass
    return taken


def read_events(response, events):
    """Lines of the stream, without the bookmarks that a server sends whenever it likes."""
    try:
        for line in response:
            event = json.loads(line)
            annotations = event["object"].get("metadata", {}).get("annotations", {})
            if event["type"] == "BOOKMARK" and "k8s.io/initial-events-end" not in annotations:
                continue
            events.put(event)
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        events.put({"broken": repr(error)})


def kept(headers):
    return {name: headers[name] for name in KEPT_HEADERS if headers.get(name) is not None}


def decoded(headers, text):
    if headers.get_content_type() == "application/json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


class Cleaner:
    """Takes back what a case has left, so that the next one finds an empty cluster."""

    SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

    def __init__(self, access):
        self.access = access

    def prelude(self):
        for request in load("prelude")["requests"]:
            status, answer = self.access.request(request["method"], request["path"],
                                                 request["body"])
            assert status in (201, 409), answer

    def defined(self):
        """The collections of the kinds that the prelude defines."""
        specs = [r["body"]["spec"] for r in load("prelude")["requests"]
                 if r["path"].endswith("/customresourcedefinitions")]
        return [f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
                for spec in specs for version in spec["versions"] if version["served"]]

    def collections(self, case):
        """The collections that the case's writes touch."""
        steps = case.get("setup", []) + case.get("during", []) + [case]
        found = set()
        for step in steps:
            path = step["request"]["path"].split("?")[0]
            m = re.match(r"(/api/v1|/apis/[^/]+/[^/]+)/(namespaces/[^/]+/)?([a-z]+)", path)
            if m and step["request"]["method"] != "GET":
                found.add(m.group(1) + "/" + m.group(3))
        return sorted(found)

    def clean(self, case):
        for collection in self.collections(case):
            status, answer = self.access.request("GET", collection)
            if status != 200:
                continue
            for item in answer["items"]:
                self.remove(collection, item["metadata"])

    def remove(self, collection, metadata):
        name, namespace = metadata["name"], metadata.get("namespace")
        if collection.endswith("/namespaces"):
            if name not in self.SYSTEM_NAMESPACES:
                self.access.request("DELETE", f"{collection}/{name}")
                # The namespace controller's part; here is none.
                self.access.request("PUT", f"{collection}/{name}/finalize", {
                    "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
                    "spec": {"finalizers": []}})
            return
        if namespace in self.SYSTEM_NAMESPACES[1:] or "serviceaccounts" in collection \
                or "customresourcedefinitions" in collection:
            return
        group, plural = collection.rsplit("/", 1)
        path = f"{group}/namespaces/{namespace}/{plural}/{name}" if namespace \
            else f"{collection}/{name}"
        if metadata.get("finalizers"):
            self.access.request("PATCH", path, {"metadata": {"finalizers": None}},
                                "application/merge-patch+json")
        self.access.request("DELETE", path, {"gracePeriodSeconds": 0})
