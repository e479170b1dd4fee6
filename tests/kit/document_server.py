"""A server of a client, on a real socket, that publishes documents such as its keys. Its answers can be changed."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sso.core.keys import PrivateKey, public_jwk


@dataclass
class DocumentServer:
    port: int = 0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    repeats: int = 1  # how often the body is sent
    hanging: threading.Event | None = None  # the body ends when it is set
    requests: list[str] = field(default_factory=list)  # the paths

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/jwks.json"

    def publish(self, **keys: PrivateKey) -> None:
        """Publishes a JWK set with these keys by their kids."""
        self.body = json.dumps({"keys": [public_jwk(key.public_key(), kid) for kid, key in keys.items()]}).encode()


@contextmanager
def document_server(**settings: Any) -> Iterator[DocumentServer]:
    documents = DocumentServer(**settings)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            documents.requests.append(self.path)
            self.send_response(documents.status)
            for name, value in documents.headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                for _ in range(documents.repeats):
                    self.wfile.write(documents.body)
                if documents.hanging:
                    documents.hanging.wait(60)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        documents.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield documents
        finally:
            if documents.hanging:
                documents.hanging.set()
            server.shutdown()
            thread.join()
