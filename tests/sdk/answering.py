"""A service of which a test says what it answers, for what no scenario of the contract can play."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from select import select
from threading import Event, Thread

LOGIN = {"status": "OK", "user_id": "1000", "nick": "Ann", "token": "long"}


@contextmanager
def signing_out() -> Iterator[tuple[str, list[str]]]:
    """Returns the result of a sign-in when the player has signed out. Yields the address and the paths of requests."""
    paths: list[str] = []
    signed_out = Event()

    def answer(path: str) -> tuple[int, str]:
        paths.append(path)
        if path == "/proxy/api/logout":
            signed_out.set()
        elif path.endswith("/getGsidResult"):
            signed_out.wait(60)
        return 200, json.dumps({**LOGIN, "gsid": "1", "match": "brave otter"})

    with answering(answer) as base_url:
        yield base_url, paths


@contextmanager
def answering(
    answer: Callable[[str], tuple[int, str]],
    left: Callable[[str, bool], None] = lambda path, has_waited: None,
    pause_s: float = 0,
) -> Iterator[str]:
    """Answers each POST with the status and the text for its path, after a pause before the text. Yields the address.

    When a program closes a connection, `left` gets the last path on it and whether the program has waited for the text.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        path = ""
        has_waited = True

        def handle(self) -> None:
            with suppress(ConnectionError):
                super().handle()
            left(self.path, self.has_waited)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, text = answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.has_waited = select([self.connection], [], [], pause_s)[0] == []
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
