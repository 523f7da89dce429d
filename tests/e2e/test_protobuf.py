"""Objects in protobuf: the same object, sent as JSON and as Debian's protobuf library writes it,
gets the same answer."""

import base64
import json
import os
import random
import re

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from backend import ROOT, Sandbox

TABLE = os.path.join(ROOT, "src", "sandbox", "apiserver", "builtin_types_table.c")
PROTOBUF = "application/vnd.kubernetes.protobuf"
SCALARS = {"s": "TYPE_STRING", "y": "TYPE_BYTES", "w": "TYPE_INT32", "i": "TYPE_INT64", "n": "TYPE_DOUBLE",
           "b": "TYPE_BOOL"}
# Messages that JSON writes as one value.
SMALL = {
    "t": [("seconds", 1, "TYPE_INT64"), ("nanos", 2, "TYPE_INT32")],
    "u": [("seconds", 1, "TYPE_INT64"), ("nanos", 2, "TYPE_INT32")],
    "q": [("text", 1, "TYPE_STRING")],
    "x": [("which", 1, "TYPE_INT64"), ("number", 2, "TYPE_INT32"), ("text", 3, "TYPE_STRING")],
    "a": [("raw", 1, "TYPE_BYTES")],
}
KINDS = {  # kind: (apiVersion, collection, type)
    "ConfigMap": ("v1", "/api/v1/namespaces/default/configmaps", "core.v1.ConfigMap"),
    "Secret": ("v1", "/api/v1/namespaces/default/secrets", "core.v1.Secret"),
    "Pod": ("v1", "/api/v1/namespaces/default/pods", "core.v1.Pod"),
    "Node": ("v1", "/api/v1/nodes", "core.v1.Node"),
    "Lease": ("coordination.k8s.io/v1", "/apis/coordination.k8s.io/v1/namespaces/default/leases",
              "coordination.v1.Lease"),
    "CronJob": ("batch/v1", "/apis/batch/v1/namespaces/default/cronjobs", "batch.v1.CronJob"),
    "PodDisruptionBudget": ("policy/v1", "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
                            "policy.v1.PodDisruptionBudget"),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                    "rbac.v1.ClusterRole"),
}


class Field:
    def __init__(self, text):
        name, number, self.type = re.fullmatch(r"([^#:!]+)!?(?:#([\d.]+)\*?)?:(.*)", text).groups()
        self.name = name
        self.path = [int(n) for n in number.split(".")] if number else []
        self.type = re.split(r"[+~]", self.type)[0]
        self.type = re.sub(r"([\]}])=.*$", r"\1", self.type)


def load_table():
    with open(TABLE, encoding="utf-8") as f:
        text = f.read()
    rows = re.findall(r'\{ "([\w.]+)", (?:true|false),\s*((?:"[^"]*"\s*)+)\}', text)
    return {name: [Field(f) for f in "".join(re.findall(r'"([^"]*)"', parts)).split()]
            for name, parts in rows}


TYPES = load_table()


class Messages:
    """The table as message classes of the protobuf library."""

    def __init__(self):
        self.file = descriptor_pb2.FileDescriptorProto(name="k8s.proto", package="k8s", syntax="proto2")
        for letter, fields in SMALL.items():
            message = self.file.message_type.add(name="Small_" + letter)
            for name, number, kind in fields:
                self.add(message, name, number, kind)
        for name in TYPES:
            self.message(name)
        envelope = self.file.message_type.add(name="Unknown")
        self.add(envelope, "meta", 1, "TYPE_MESSAGE", type_name=".k8s.TypeMeta")
        self.add(envelope, "raw", 2, "TYPE_BYTES")
        meta = self.file.message_type.add(name="TypeMeta")
        self.add(meta, "apiVersion", 1, "TYPE_STRING")
        self.add(meta, "kind", 2, "TYPE_STRING")
        self.pool = descriptor_pool.DescriptorPool()
        self.pool.Add(self.file)

    def add(self, message, name, number, kind, repeated=False, type_name=None):
        proto = descriptor_pb2.FieldDescriptorProto
        message.field.add(name=name, number=number, type=getattr(proto, kind), type_name=type_name,
                          label=proto.LABEL_REPEATED if repeated else proto.LABEL_OPTIONAL)

    def value(self, letters):
        """(type, type name) of a value that stands for itself."""
        if letters[0] == "@":
            return "TYPE_MESSAGE", ".k8s." + plain(letters[1:])
        if letters[0] in SMALL:
            return "TYPE_MESSAGE", ".k8s.Small_" + letters[0]
        return SCALARS[letters[0]], None

    def message(self, name):
        message = self.file.message_type.add(name=plain(name))
        inner = {}
        for field in TYPES[name]:
            if not field.path or field.type[0] in "ABS" or field.type.startswith(("{S", "{[")):
                continue  # not in protobuf, or in CRDs and reviews alone
            into = message
            if len(field.path) == 2:
                outer = field.path[0]
                if outer not in inner:
                    inner[outer] = self.file.message_type.add(name=f"{plain(name)}_{outer}")
                    self.add(message, f"inline_{outer}", outer, "TYPE_MESSAGE",
                             type_name=f".k8s.{plain(name)}_{outer}")
                into = inner[outer]
            kind = field.type[0]
            letters = field.type[1:-1] if kind in "[{" else field.type
            proto, type_name = self.value(letters)
            if kind == "{":
                entry = self.file.message_type.add(name=f"{plain(name)}_{plain(field.name)}_Entry")
                self.add(entry, "key", 1, "TYPE_STRING")
                self.add(entry, "value", 2, proto, type_name=type_name)
                proto, type_name = "TYPE_MESSAGE", ".k8s." + entry.name
            self.add(into, plain(field.name), field.path[-1], proto, kind in "[{", type_name)

    def new(self, name):
        descriptor = self.pool.FindMessageTypeByName("k8s." + plain(name))
        return message_factory.MessageFactory(self.pool).GetPrototype(descriptor)()


def plain(name):
    return re.sub(r"\W", "_", name)


MESSAGES = Messages()


class Maker:
    """A random object, in both forms at once."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self):
        return "".join(self.random.choice("ab-ü\U0001f6a2 ") for _ in range(self.random.randint(1, 6)))

    def key(self):
        return "k" + "".join(self.random.choice("ab._-") for _ in range(self.random.randint(1, 2)))

    def scalar(self, letter):
        r = self.random
        return {"s": self.text, "y": lambda: r.randbytes(r.randint(1, 9)), "b": lambda: True,
                "w": lambda: r.choice([-2**31, -1, 1, 2**31 - 1]),
                "i": lambda: r.choice([-2**63, -1, 1, 2**63 - 1]), "n": lambda: r.choice([0.25, -3.0, 1e9])}[letter]()

    def small(self, letter, message):
        """Fills the message, answers its JSON."""
        r = self.random
        if letter in "tu":
            message.seconds = 1577836800 + r.randint(0, 59)
            message.nanos = r.choice([0, 123456000])
            stamp = f"2020-01-01T00:00:{message.seconds - 1577836800:02}"
            return stamp + (f".{message.nanos // 1000:06}Z" if letter == "u" else "Z")
        if letter == "q":
            message.text = r.choice(["1", "250m", "4Gi"])
            return message.text
        if letter == "a":
            value = {"f:x": {}, "list": [1, "two", None]}
            message.raw = json.dumps(value).encode()
            return value
        message.which = r.randint(0, 1)
        if message.which == 1:
            message.text = r.choice(["50%", "http"])
            return message.text
        message.number = r.randint(-5, 5)
        return message.number

    def value(self, letters, message, depth):
        if letters[0] == "@":
            return self.object(letters[1:], message, depth + 1)
        return self.small(letters[0], message)

    def field(self, field, into, depth):
        kind, name = field.type[0], plain(field.name)
        letters = field.type[1:-1] if kind in "[{" else field.type
        scalar = letters[0] in SCALARS

        def shown(value):
            return base64.b64encode(value).decode() if letters[0] == "y" else value
        if kind == "[":
            items = []
            for _ in range(self.random.randint(1, 3)):
                if scalar:
                    getattr(into, name).append(self.scalar(letters[0]))
                    items.append(shown(getattr(into, name)[-1]))
                else:
                    items.append(self.value(letters, getattr(into, name).add(), depth))
            return items
        if kind == "{":
            entries = {}
            for _ in range(self.random.randint(1, 3)):
                entry = getattr(into, name).add(key=self.key())
                if scalar:
                    entry.value = self.scalar(letters[0])
                    entries[entry.key] = shown(entry.value)
                else:
                    entry.value.SetInParent()
                    entries[entry.key] = self.value(letters, entry.value, depth)
            return entries
        if scalar:
            setattr(into, name, self.scalar(letters[0]))
            return shown(getattr(into, name))
        getattr(into, name).SetInParent()
        return self.value(letters, getattr(into, name), depth)

    def object(self, name, message, depth=0):
        made = {}
        for field in TYPES[name]:
            unset = not field.path or field.type[0] in "ABS" or field.type.startswith(("{S", "{["))
            deep = depth > 6 and "@" in field.type
            if unset or deep or self.random.random() > (0.9 if depth < 2 else 0.4):
                continue
            into = message
            if len(field.path) == 2:
                into = getattr(message, f"inline_{field.path[0]}")
                into.SetInParent()
            made[field.name] = self.field(field, into, depth)
        return made


def body_of(api_version, kind, message):
    envelope = MESSAGES.new("Unknown")
    envelope.meta.apiVersion, envelope.meta.kind = api_version, kind
    envelope.raw = message.SerializeToString()
    return b"k8s\0" + envelope.SerializeToString()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Sandbox(tmp_path_factory.mktemp("protobuf"), flags=["--bare"]) as sandbox:
        yield sandbox


def send(server, path, kind, body):
    connection = server.access.connect()
    try:
        connection.request("POST", path, body, {"Content-Type": kind, **server.access.headers()})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def without_chance(answer):
    metadata = answer.get("metadata") or {}
    for name in ("uid", "creationTimestamp", "managedFields"):
        metadata.pop(name, None)
    return answer


@pytest.mark.backend("sandbox")
@pytest.mark.parametrize("kind", KINDS)
def test_protobuf_and_json_get_the_same_answer(server, kind):
    """Every field of the kind at some time, with values that most servers would refuse to run: what
    is refused must be refused in the same words."""
    api_version, path, name = KINDS[kind]
    accepted = 0
    for seed in range(25):
        message = MESSAGES.new(name)
        made = Maker(seed).object(name, message)
        # A name and no version, so that some are accepted.
        metadata = made.setdefault("metadata", {})
        message.metadata.name = metadata["name"] = f"object-{seed}"
        for gone in ("resourceVersion", "namespace", "labels", "annotations", "generateName"):
            metadata.pop(gone, None)
            message.metadata.ClearField(gone)
        made = {"apiVersion": api_version, "kind": kind, **made}
        as_json = send(server, path + "?dryRun=All", "application/json", json.dumps(made).encode())
        as_protobuf = send(server, path + "?dryRun=All", PROTOBUF, body_of(api_version, kind, message))
        assert (as_protobuf[0], without_chance(as_protobuf[1])) == \
            (as_json[0], without_chance(as_json[1])), f"seed {seed}"
        accepted += as_json[0] == 201
    assert accepted > 0, "nothing was accepted"


@pytest.mark.backend("sandbox")
def test_hostile_bodies_are_refused(server):
    """Bodies with one byte changed or cut off get an answer, and the server lives."""
    path = KINDS["Pod"][1]
    message = MESSAGES.new("core.v1.Pod")
    Maker(1).object("core.v1.Pod", message)
    body = body_of("v1", "Pod", message)
    chance = random.Random(7)
    statuses = set()
    for _ in range(300):
        at = chance.randrange(4, len(body))
        bad = body[:at] + bytes([chance.randrange(256)]) + body[at + 1:] if chance.random() < 0.7 else body[:at]
        statuses.add(send(server, path + "?dryRun=All", PROTOBUF, bad)[0])
    assert 400 in statuses and statuses <= {201, 400, 422, 500}
    assert send(server, path, PROTOBUF, b"")[0] == 400
