"""servers: a mail server (aiosmtpd) and an HTTP server on loopback that keep what they are sent."""

import asyncio
import http.server
import ssl
import subprocess
import threading

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


def make_authority(folder):
    """A private authority; answers the file of its certificate."""
    key, cert = folder / "ca.key", folder / "ca.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=test authority",
         "-addext", "basicConstraints=critical,CA:TRUE"],
        check=True, capture_output=True)
    return cert


def server_context(folder, name, san):
    """A TLS context with a certificate of folder's authority for `san`."""
    key, request, cert, extensions = (folder / f"{name}.{end}" for end in ("key", "csr", "crt", "ext"))
    subprocess.run(
        ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
         "-out", request, "-subj", f"/CN={name}"], check=True, capture_output=True)
    extensions.write_text(f"subjectAltName={san}\n")
    subprocess.run(
        ["openssl", "x509", "-req", "-in", request, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
         "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


class MailServer:
    """aiosmtpd on a thread of its own; `mails` are the envelopes it took."""

    def __init__(self, host="127.0.0.1", tls=None, login=None, refuse=None, starttls_first=False):
        self.host = host
        self.mails = []
        self.logins = []
        self.commands = []
        self.refuse = refuse
        self.login = login
        self.loop = asyncio.new_event_loop()
        self.options = {"hostname": "mail.test", "enable_SMTPUTF8": True, "tls_context": tls,
                        "require_starttls": starttls_first, "loop": self.loop,
                        "auth_require_tls": tls is not None, "auth_required": login is not None,
                        "authenticator": self.authenticate if login else None}
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.ready = threading.Event()

    def authenticate(self, _server, _session, _envelope, mechanism, data):
        assert isinstance(data, LoginPassword)
        self.logins.append((mechanism, data.login.decode(), data.password.decode()))
        known = (data.login.decode(), data.password.decode()) == self.login
        return AuthResult(success=known, handled=known)  # aiosmtpd answers 535 where nobody else has

    async def handle_DATA(self, _server, session, envelope):
        if self.refuse:
            return self.refuse
        envelope.encrypted = session.ssl is not None
        self.mails.append(envelope)
        return "250 Message accepted"

    async def handle_QUIT(self, _server, _session, _envelope):
        self.commands.append("QUIT")
        return "221 Bye"

    def run(self):
        asyncio.set_event_loop(self.loop)
        listen = self.loop.create_server(lambda: SMTP(self, **self.options), self.host, 0)
        self.server = self.loop.run_until_complete(listen)
        self.port = self.server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()
        self.server.close()
        self.loop.run_until_complete(self.server.wait_closed())
        self.loop.close()

    def __enter__(self):
        self.thread.start()
        assert self.ready.wait(120)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    @property
    def address(self):
        return f"{self.host}:{self.port}"


class WebServer:
    """Keeps (method, path, headers, body) of every request; `answers` are given in turn, the last for ever."""

    def __init__(self, answers, tls=None):
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                n = min(len(outer.requests), len(answers) - 1)
                outer.requests.append((self.command, self.path, self.headers, body))
                status, headers, answer = answers[n]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_PUT = do_GET = serve

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https" if tls else "http"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server.server_address[1]}"
