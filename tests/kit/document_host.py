"""A host with documents, on a real socket: key sets and metadata of clients, and answers that must not be accepted."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class DocumentHost:
    port: int = 0
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)  # of a path
    requests: list[str] = field(default_factory=list)  # the paths that were asked for
    slow: threading.Event = field(default_factory=threading.Event)  # ends the bodies of slow answers

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def put(self, path: str, document: Any, status: int = 200, **headers: str) -> str:
        """Answers the path with the document, or with these bytes. Returns its address."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        self.answers[path] = status, {"Content-Type": "application/json", **named}, body
        return self.url(path)


@contextmanager
def document_host() -> Iterator[DocumentHost]:
    host = DocumentHost()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host.requests.append(self.path)
            status, headers, body = host.answers.get(self.path, (404, {}, b""))
            with suppress(OSError):
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()
                if "X-Slow" in headers:
                    host.slow.wait()

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Prints nothing about clients that leave."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    host.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield host
    finally:
        host.slow.set()
        server.shutdown()
        server.server_close()
        thread.join()
