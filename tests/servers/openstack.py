"""openstack: Keystone v3 and v2.0, Nova and the Kubernikus API on one loopback port, as far as drydock speaks to them.

They answer as the real ones do: versions with 300, a token in a header and a catalogue of several regions, 401 for a token that is
unknown or has expired, pages of servers with a link to the next one, a name that is searched as a regular expression, a deletion that
is accepted before the server is gone.
"""

import datetime
import http.server
import json
import re
import threading
import urllib.parse
import uuid

PROJECT, REGION, USER, DOMAIN, PASSWORD = "0123456789abcdef", "qa-de-1", "robot", "kubernikus", 'pa"ss\\word#1'


def stamp(at):
    return at.strftime("%Y-%m-%dT%H:%M:%S.000000Z")


class Handler(http.server.BaseHTTPRequestHandler):
    """One exchange; the state is the cloud's."""

    protocol_version = "HTTP/1.1"
    cloud = None

    def log_message(self, *_):
        pass

    def answer(self, status, body=None, headers=None):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if status != 204:
            self.wfile.write(text)

    def handle_it(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        with self.cloud.lock:
            self.cloud.requests.append((self.command, url.path, query))
            status = self.cloud.broken(url.path)
            if status:
                self.answer(status, {"error": {"code": status, "message": PASSWORD}}, {"Retry-After": "1"} if status == 429 else None)
                return
            self.answer(*self.cloud.route(self.command, url.path, query, body, self.headers))

    do_GET = do_POST = do_DELETE = handle_it


class OpenStack:
    """`servers` are (id, name) that exist; `requests` all that was asked; `faults` {part of a path: status}."""

    def __init__(self, page=2, token_life=3600, versions=("v3", "v2.0"), region=REGION):
        self.lock = threading.RLock()
        self.page, self.token_life, self.versions, self.region = page, token_life, versions, region
        self.servers, self.deleted, self.requests, self.faults = [], [], [], {}
        self.tokens, self.pools, self.password = {}, {}, PASSWORD
        handler = type("CloudHandler", (Handler,), {"cloud": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    # What a test does.

    def add(self, name, tenant=PROJECT):
        one = {"id": str(uuid.uuid4()), "name": name, "tenant_id": tenant, "status": "ACTIVE"}
        with self.lock:
            self.servers.append(one)
        return one["id"]

    def expire_tokens(self):
        with self.lock:
            self.tokens.clear()

    def names(self):
        with self.lock:
            return [one["name"] for one in self.servers]

    def asked(self, method, part):
        with self.lock:
            return [entry for entry in self.requests if entry[0] == method and part in entry[1]]

    def conf(self, path="/identity/v3", **changes):
        values = {"auth-url": self.url + path, "username": USER, "password": self.password, "region": self.region,
                  "domain-name": DOMAIN, "tenant-id": PROJECT, **changes}
        quoted = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in values.items()}
        return "[Global]\n" + "".join(f'{key} = "{value}"\n' for key, value in quoted.items()) + "\n[LoadBalancer]\nsubnet-id=x\n"

    # What the services do.

    def broken(self, path):
        return next((status for part, status in self.faults.items() if part in path), None)

    def route(self, method, path, query, body, headers):
        if path.rstrip("/") == "/identity" and method == "GET":
            return 300, {"versions": {"values": [
                {"id": "v3.14" if version == "v3" else version, "status": "stable" if version == "v3" else "deprecated",
                 "links": [{"rel": "self", "href": f"{self.url}/identity/{version}/"}]} for version in self.versions]}}
        if path == "/identity/v3/auth/tokens" and method == "POST" and "v3" in self.versions:
            return self.login_v3(body)
        if path == "/identity/v2.0/tokens" and method == "POST" and "v2.0" in self.versions:
            return self.login_v2(body)
        if not self.knows(headers.get("X-Auth-Token")):
            return 401, {"error": {"code": 401, "message": "The request you have made requires authentication."}}
        match = re.fullmatch(r"/compute/v2\.1/(\w+)/servers/([\w-]+)", path)
        if match and match.group(1) == PROJECT:
            return self.list(query) if method == "GET" and match.group(2) == "detail" else self.remove(match.group(2))
        match = re.fullmatch(r"/kubernikus/api/v1/clusters/([\w-]+)", path)
        if match and match.group(1) in self.pools:
            return 200, {"name": match.group(1), "spec": {"nodePools": [
                {"name": f"p{i}", "size": size} for i, size in enumerate(self.pools[match.group(1)])]}}
        return 404, {"message": "not found", "code": 404}

    def knows(self, token):
        return token in self.tokens and self.tokens[token] > datetime.datetime.now(datetime.timezone.utc)

    def new_token(self):
        token = "gAAAA-" + uuid.uuid4().hex
        self.tokens[token] = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.token_life)
        return token, stamp(self.tokens[token])

    def refuse(self):
        return 401, {"error": {"code": 401, "message": "The request you have made requires authentication."}}

    def login_v3(self, body):
        user = body["auth"]["identity"]["password"]["user"]
        good = body["auth"]["identity"]["methods"] == ["password"] and user == {
            "name": USER, "domain": {"name": DOMAIN}, "password": self.password}
        if not good or body["auth"]["scope"] != {"project": {"id": PROJECT}}:
            return self.refuse()
        token, expires = self.new_token()
        compute = f"{self.url}/compute/v2.1/{PROJECT}"
        endpoints = [
            {"interface": "internal", "region": self.region, "region_id": self.region, "url": self.url + "/internal"},
            {"interface": "public", "region": "other", "region_id": "other", "url": self.url + "/elsewhere"},
            {"interface": "public", "region": self.region, "region_id": self.region, "url": compute}]
        return 201, {"token": {"expires_at": expires, "catalog": [
            {"type": "identity", "name": "keystone", "endpoints": [{"interface": "public", "region": self.region, "url": self.url}]},
            {"type": "compute", "name": "nova", "endpoints": endpoints}]}}, {"X-Subject-Token": token}

    def login_v2(self, body):
        if body["auth"] != {"passwordCredentials": {"username": USER, "password": self.password}, "tenantId": PROJECT}:
            return self.refuse()
        token, expires = self.new_token()
        return 200, {"access": {"token": {"id": token, "expires": expires}, "serviceCatalog": [
            {"type": "compute", "name": "nova", "endpoints": [
                {"region": self.region, "publicURL": f"{self.url}/compute/v2.1/{PROJECT}/", "internalURL": self.url + "/internal"}]}]}}

    def list(self, query):
        found = [one for one in self.servers
                 if re.search(query.get("name", ""), one["name"]) and query.get("tenant_id", one["tenant_id"]) == one["tenant_id"]]
        at = 0
        if "marker" in query:
            ids = [one["id"] for one in found]
            if query["marker"] not in ids:
                return 400, {"badRequest": {"code": 400, "message": "marker not found"}}
            at = ids.index(query["marker"]) + 1
        page = found[at:at + self.page]
        answer = {"servers": page}
        if at + self.page < len(found):
            following = urllib.parse.urlencode({**query, "marker": page[-1]["id"]})
            answer["servers_links"] = [{"rel": "next", "href": f"http://nova.internal/v2.1/servers/detail?{following}"}]
        return 200, answer

    def remove(self, server):
        for one in self.servers:
            if one["id"] == server:
                self.servers.remove(one)
                self.deleted.append(one["name"])
                return 204, None
        return 404, {"itemNotFound": {"code": 404, "message": f"Instance {server} could not be found."}}
