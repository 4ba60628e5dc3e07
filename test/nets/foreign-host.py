"""
Hosts that others choose, for foreign-hosts.spec.ts: OIDC issuers below /<kind>/<number> and webhook endpoints at /hook/<kind>,
where <kind> is `whole` or `pieces` (each byte of the body is an HTTP chunk). Over TLS it sends as many session tickets as the
port was asked for: Node.js cannot.

Usage: foreign-host.py CERTIFICATE KEY TICKETS... ; prints the ports: of http, and one of https for each TICKETS.
"""
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DOCUMENT = 100_000
HOOK_BODY = 64 * 1024
deliveries = 0
counting = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        # In the thread of the connection: a handshake takes as long as the peer takes to read it.
        if self.server.tls:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def do_GET(self):
        if self.path == "/deliveries":
            return self.answer("whole", str(deliveries).encode())
        kind, number, *rest = self.path[1:].split("/")
        scheme = "https" if self.server.tls else "http"
        issuer = f"{scheme}://{self.headers['host']}/{kind}/{number}"
        document = {"keys": []} if rest == ["jwks"] else {"issuer": issuer, "jwks_uri": f"{issuer}/jwks"}
        self.answer(kind, json.dumps(document).encode().ljust(DOCUMENT))

    def do_POST(self):
        global deliveries
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(self.path.split("/")[2], b"x" * HOOK_BODY)
        with counting:
            deliveries += 1

    def answer(self, kind, body):
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        if kind == "pieces":
            chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
            whole = head + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
        else:
            whole = head + b"content-length: %d\r\n\r\n" % len(body) + body
        try:
            self.wfile.write(whole)
        except OSError:
            # The peer has read enough.
            self.close_connection = True

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, tls):
        self.tls = tls
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass


def secure(certificate, key, tickets):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(certificate, key)
    context.num_tickets = tickets
    return context


certificate, key, *tickets = sys.argv[1:]
servers = [Server(tls) for tls in [None, *(secure(certificate, key, int(count)) for count in tickets)]]
print(json.dumps([server.server_address[1] for server in servers]), flush=True)
sys.stdin.read()
