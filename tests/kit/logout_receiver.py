"""A site that receives logout notifications, on a real socket; its answers can be changed."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.kit.server import until


@dataclass
class ReceivedRequest:
    path: str
    headers: dict[str, str]
    form: dict[str, list[str]]

    @property
    def token(self) -> str:
        (token,) = self.form["logout_token"]
        return token


@dataclass
class LogoutReceiver:
    port: int = 0
    scheme: str = "http"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    endless: bool = False  # the body of the answer does not end
    requests: list[ReceivedRequest] = field(default_factory=list)

    @property
    def uri(self) -> str:
        return self.uri_at("127.0.0.1")

    def uri_at(self, host: str) -> str:
        return f"{self.scheme}://{host}:{self.port}/logout?from=sso"

    def wait(self, count: int = 1) -> list[ReceivedRequest]:
        """Waits until so many requests were received, and returns all of them."""
        until(lambda: len(self.requests) >= count)
        return list(self.requests)


@contextmanager
def logout_receiver(certificate: Path | None = None) -> Iterator[LogoutReceiver]:
    """Listens on 127.0.0.1, with TLS if a file with certificate and key is given."""
    receiver = LogoutReceiver(scheme="https" if certificate else "http")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            receiver.requests.append(ReceivedRequest(self.path, dict(self.headers.items()), parse_qs(body)))
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                while receiver.endless:
                    self.wfile.write(b"x" * 65536)

        do_GET = do_POST  # noqa: N815 - the name that the library looks for

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    class QuietServer(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Prints nothing about a client that rejects the certificate."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.endless = False
        server.shutdown()
        server.server_close()
        thread.join()
