"""vcenter: a vCenter in Python that speaks as much vim25 as drydock asks for, and fails in all the ways that a test wants.

govmomi's simulator (vcsim.go) is nearer to the real thing; this one has triggered alarms, pages, machines without tools or
that do not end, two machines of one name, and answers that are broken.
"""

import http.server
import re
import ssl
import threading
import uuid
from xml.sax.saxutils import escape

METHOD = re.compile(r"<Body><(\w+) ")
THIS = re.compile(r'<_this type="(\w+)">([^<]*)</_this>')
OBJECT = re.compile(r'<obj type="(\w+)">([^<]*)</obj>')
FIELD = r"<{0}>([^<]*)</{0}>"

ENVELOPE = ('<?xml version="1.0" encoding="UTF-8"?>\n<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
            'xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
            "<soapenv:Body>{}</soapenv:Body></soapenv:Envelope>")


class Fault(Exception):
    """A SOAP fault of vim25."""


class VCenter:
    """Used as a context manager. Change `hosts` and `vms` under `lock`, or by the methods."""

    def __init__(self, hosts=(), vms=(), password="harbour", page=3, tls=None):
        self.lock = threading.RLock()
        self.password = password
        self.page = page
        self.hosts = {}
        self.vms = {}
        self.tasks = {}
        self.alarms = {}  # id → name
        self.sessions = set()
        self.pages = {}
        self.calls = []  # (method, object's name or "")
        self.logins = []  # whether each was accepted
        self.mode = "well"  # or truncate, endless, doctype, html, nonsense, silent
        self.released = threading.Event()
        for name in hosts:
            self.hosts[f"host-{name}"] = {"name": name, "maintenance": False, "alarms": [], "tasks": []}
        for name, host in vms:
            self.add_vm(name, host)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.serve(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    # What an administrator does.

    def add_vm(self, name, host, power="poweredOn", tools=True, obeys=True):
        with self.lock:
            self.vms[f"vm-{len(self.vms) + 1}"] = {"name": name, "host": f"host-{host}", "power": power, "tools": tools,
                                                  "obeys": obeys, "refuses": None, "stuck": False}

    def vm(self, name):
        with self.lock:
            return next(v for v in self.vms.values() if v["name"] == name)

    def power(self, name):
        return self.vm(name)["power"]

    def maintenance(self, host, on):
        with self.lock:
            self.hosts[f"host-{host}"]["maintenance"] = on

    def alarm(self, host, *names):
        """These alarms are triggered on the host, and no other."""
        with self.lock:
            ids = [f"alarm-{len(self.alarms) + i}" for i in range(len(names))]
            self.alarms.update(zip(ids, names))
            self.hosts[f"host-{host}"]["alarms"] = ids

    def task(self, host, name, state):
        """The host has this task, and no other."""
        with self.lock:
            key = f"task-{len(self.tasks) + 1}"
            self.tasks[key] = {"name": name, "state": state, "error": ""}
            self.hosts[f"host-{host}"]["tasks"] = [key]

    def expire(self):
        with self.lock:
            self.sessions.clear()

    def count(self, method):
        with self.lock:
            return sum(1 for name, _ in self.calls if name == method)

    def called(self, method):
        """Names of the objects."""
        with self.lock:
            return [about for name, about in self.calls if name == method]

    # The server.

    def serve(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0))).decode()
        if self.mode == "silent":
            self.released.wait(600)
            return
        if self.mode != "well":
            self.serve_badly(request)
            return
        headers = {}
        try:
            with self.lock:
                text, status = ENVELOPE.format(self.answer(request, body, headers)), 200
        except Fault as fault:
            text = ENVELOPE.format(
                "<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>the server says no</faultstring><detail>"
                f'<{fault}Fault xmlns="urn:vim25" xsi:type="{fault}"/></detail></soapenv:Fault>')
            status = 500
        data = text.encode()
        request.send_response(status)
        request.send_header("Content-Type", "text/xml; charset=utf-8")
        request.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(data)

    def serve_badly(self, request):
        good = ENVELOPE.format('<RetrieveServiceContentResponse xmlns="urn:vim25"><returnval>')
        data = {"truncate": good[:-60], "html": "<html><body>maintenance</body></html>", "nonsense": "\x00\x01 no XML at all",
                "doctype": '<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx">' + "".join(
                    f'<!ENTITY x{i} "&x{i - 1 if i else ""};&x{i - 1 if i else ""};">' for i in range(30)) + "]><a>&x29;</a>",
                "endless": None}[self.mode]
        request.send_response(200)
        request.send_header("Content-Type", "text/xml")
        if data is not None:
            request.send_header("Content-Length", str(len(data)))
        else:
            request.send_header("Connection", "close")
            request.close_connection = True
        request.end_headers()
        try:
            if data is not None:
                request.wfile.write(data.encode())
                return
            request.wfile.write(b"<a>")
            while not self.released.is_set():
                request.wfile.write(b"<b>" + b"x" * 65536 + b"</b>")
        except (OSError, ssl.SSLError):
            pass  # the other side has had enough

    def answer(self, request, body, headers):
        method = METHOD.search(body).group(1)
        this = THIS.search(body).group(2)
        about = self.vms.get(this, {}).get("name", "")
        self.calls.append((method, about))
        if method == "RetrieveServiceContent":
            return ('<RetrieveServiceContentResponse xmlns="urn:vim25"><returnval><rootFolder type="Folder">group-d1</rootFolder>'
                    '<propertyCollector type="PropertyCollector">propertyCollector</propertyCollector>'
                    '<viewManager type="ViewManager">ViewManager</viewManager><about><apiVersion>7.0</apiVersion></about>'
                    '<sessionManager type="SessionManager">SessionManager</sessionManager></returnval>'
                    "</RetrieveServiceContentResponse>")
        if method == "Login":
            good = re.search(FIELD.format("password"), body).group(1) == escape(self.password)
            self.logins.append(good)
            if not good:
                raise Fault("InvalidLogin")
            session = uuid.uuid4().hex
            self.sessions.add(session)
            headers["Set-Cookie"] = f'vmware_soap_session="{session}"; Path=/; HttpOnly; Secure; '
            return '<LoginResponse xmlns="urn:vim25"><returnval><key>k</key></returnval></LoginResponse>'
        cookie = re.search(r'vmware_soap_session="(\w+)"', request.headers.get("Cookie", ""))
        if cookie is None or cookie.group(1) not in self.sessions:
            raise Fault("NotAuthenticated")
        return getattr(self, "on_" + method)(body, this)

    def on_Logout(self, _body, _this):
        self.sessions.clear()
        return '<LogoutResponse xmlns="urn:vim25"/>'

    def on_CreateContainerView(self, _body, _this):
        return ('<CreateContainerViewResponse xmlns="urn:vim25"><returnval type="ContainerView">view-1</returnval>'
                "</CreateContainerViewResponse>")

    def on_RetrievePropertiesEx(self, body, _this):
        asked = OBJECT.findall(body)
        if asked == [("ContainerView", "view-1")]:
            found = [self.object(key) for key in (*self.hosts, *self.vms)]
        else:
            found = [self.object(key) for _, key in asked]
        return self.send_page("RetrievePropertiesEx", [text for text in found if text])

    def on_ContinueRetrievePropertiesEx(self, body, _this):
        return self.send_page("ContinueRetrievePropertiesEx", self.pages.pop(re.search(FIELD.format("token"), body).group(1)))

    def send_page(self, method, objects):
        now, later, token = objects[:self.page], objects[self.page:], ""
        if later:
            token = uuid.uuid4().hex
            self.pages[token] = later
            token = f"<token>{token}</token>"
        return f'<{method}Response xmlns="urn:vim25"><returnval>{token}{"".join(now)}</returnval></{method}Response>'

    def object(self, key):
        if key in self.hosts:
            host = self.hosts[key]
            tasks = "".join(f'<ManagedObjectReference type="Task">{t}</ManagedObjectReference>' for t in host["tasks"])
            alarms = "".join(f'<AlarmState><key>k</key><entity type="HostSystem">{key}</entity><alarm type="Alarm">{escape(a)}'
                             "</alarm><overallStatus>red</overallStatus></AlarmState>" for a in host["alarms"])
            return properties("HostSystem", key, {
                "name": escape(host["name"]), "config.product.version": "8.0.2",
                "runtime.inMaintenanceMode": str(host["maintenance"]).lower(),
                "recentTask": tasks, "triggeredAlarmState": alarms})
        if key in self.vms:
            vm = self.vms[key]
            return properties("VirtualMachine", key, {
                "name": escape(vm["name"]), "runtime.powerState": vm["power"],
                "guest.toolsRunningStatus": "guestToolsRunning" if vm["tools"] else "guestToolsNotRunning"}, {
                    "runtime.host": f'<val type="HostSystem">{vm["host"]}</val>'})
        if key in self.tasks:
            task = self.tasks[key]
            error = f'<fault xsi:type="Timedout"/><localizedMessage>{task["error"]}</localizedMessage>' if task["error"] else ""
            return properties("Task", key, {"info.name": task["name"], "info.state": task["state"], "info.error": error})
        if key in self.alarms:
            return properties("Alarm", escape(key), {"info.name": escape(self.alarms[key])})
        return ""

    def on_ShutdownGuest(self, _body, this):
        vm = self.vms[this]
        if vm["refuses"]:
            raise Fault(vm["refuses"])
        if vm["power"] != "poweredOn":
            raise Fault("InvalidPowerState")
        if not vm["tools"]:
            raise Fault("ToolsUnavailable")
        if vm["obeys"]:
            vm["power"] = "poweredOff"
        return '<ShutdownGuestResponse xmlns="urn:vim25"/>'

    def switch(self, method, this, power):
        vm = self.vms[this]
        key = f"task-{len(self.tasks) + 1}"
        if vm["stuck"]:
            raise Fault("TaskInProgress")
        same = vm["power"] == power
        self.tasks[key] = {"name": method, "state": "error" if same else "success",
                           "error": "it has that power state already" if same else ""}
        vm["power"] = power
        return f'<{method}Response xmlns="urn:vim25"><returnval type="Task">{key}</returnval></{method}Response>'

    def on_PowerOffVM_Task(self, _body, this):
        return self.switch("PowerOffVM_Task", this, "poweredOff")

    def on_PowerOnVM_Task(self, _body, this):
        return self.switch("PowerOnVM_Task", this, "poweredOn")


def properties(kind, key, values, whole=None):
    """An object with properties; those of `whole` bring their own element."""
    sets = [f"<propSet><name>{name}</name><val>{value}</val></propSet>" for name, value in values.items()]
    sets += [f"<propSet><name>{name}</name>{value}</propSet>" for name, value in (whole or {}).items()]
    return f'<objects><obj type="{kind}">{key}</obj>{"".join(sets)}</objects>'
