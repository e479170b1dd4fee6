"""A program that receives webhooks, on a real socket. It verifies signatures by itself; its answers can be changed."""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.kit.server import until


@dataclass
class Delivery:
    path: str
    headers: dict[str, str]
    body: bytes
    received: float

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event

    def is_signed_with(self, secret: str) -> bool:
        fields = dict(item.split("=") for item in self.headers["Webhook-Signature"].split(","))
        signed = fields["t"].encode() + b"." + self.body
        expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
        return hmac.compare_digest(expected, fields["v1"]) and abs(time.time() - int(fields["t"])) < 300


@dataclass
class WebhookReceiver:
    port: int = 0
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    hanging: threading.Event | None = None  # requests are not answered until it is set
    endless: bool = False  # the body of the answer does not end
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # the status and body of a path
    refused: set[str] = field(default_factory=set)  # ids of users whose events get status 500
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def address(self, path: str, status: int = 200, answer: bytes = b"") -> str:
        """Returns the URL of a path that answers so."""
        self.answers[path] = status, answer
        return f"http://127.0.0.1:{self.port}{path}"

    def requests_to(self, path: str) -> list[Delivery]:
        return [delivery for delivery in list(self.deliveries) if delivery.path == path]

    def events_of(self, user_id: str) -> list[dict[str, Any]]:
        return [delivery.event for delivery in list(self.deliveries) if delivery.event.get("user_id") == user_id]

    def wait_for(self, user_id: str, count: int, seconds: float = 60) -> list[dict[str, Any]]:
        """Waits until so many events of a user were received, and returns all of them."""
        until(lambda: len(self.events_of(user_id)) >= count, seconds)
        return self.events_of(user_id)


@contextmanager
def webhook_receiver() -> Iterator[WebhookReceiver]:
    receiver = WebhookReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            delivery = Delivery(self.path, dict(self.headers.items()), body, time.monotonic())
            receiver.deliveries.append(delivery)
            if receiver.hanging is not None:
                receiver.hanging.wait()
            is_refused = delivery.event.get("user_id") in receiver.refused
            status, answer = receiver.answers.get(self.path, (receiver.status, b""))
            with suppress(OSError):
                self.send_response(500 if is_refused else status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)
                while receiver.endless:
                    self.wfile.write(b"x" * 65536)

        do_GET = do_POST  # noqa: N815 - the name that the library looks for

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Prints nothing about clients that leave."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.endless = False
        if receiver.hanging is not None:
            receiver.hanging.set()
        server.shutdown()
        server.server_close()
        thread.join()
