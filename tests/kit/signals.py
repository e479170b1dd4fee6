"""Receivers of signals (Shared Signals Framework): a client with streams, which polls them or gets them on a socket."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import jwt as pyjwt

from tests.kit.oauth import TOKEN, Site, new_site
from tests.kit.server import Server, until

PUSH, POLL = "urn:ietf:rfc:8935", "urn:ietf:rfc:8936"
CAEP = "https://schemas.openid.net/secevent/caep/event-type/"
RISC = "https://schemas.openid.net/secevent/risc/event-type/"
SSF = "https://schemas.openid.net/secevent/ssf/event-type/"
SITE_GRANTS = ["authorization_code", "refresh_token", "client_credentials"]
_applications = itertools.count(7_100)


@dataclass
class PushReceiver:
    port: int = 0
    status: int = 202
    answer: bytes = b""
    answer_headers: dict[str, str] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/events"


@contextmanager
def push_receiver(continued: PushReceiver | None = None) -> Iterator[PushReceiver]:
    """Listens on a free port, or continues a receiver that was stopped, on its port."""
    receiver = continued or PushReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            token = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, answer = receiver.status, receiver.answer
            if status == 202:
                receiver.headers.append(dict(self.headers.items()))
                receiver.tokens.append(token)
            with suppress(OSError):
                self.send_response(status)
                for name, value in receiver.answer_headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", receiver.port), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class SignalClient:
    """A client of an application, as the receiver of its streams."""

    site: Site
    acknowledged: dict[str, list[str]] = field(default_factory=dict)  # the ids to be acknowledged, by stream
    _headers: dict[str, dict[str, str]] = field(default_factory=dict)  # by scope

    @property
    def http(self) -> httpx.Client:
        return self.site.http

    def headers(self, scope: str = "ssf.manage") -> dict[str, str]:
        """Returns headers with a new token."""
        form = {"grant_type": "client_credentials", "scope": scope}
        answer = self.http.post(TOKEN, data=form, headers=self.site.basic())
        assert answer.status_code == 200, answer.text
        assert answer.json().get("scope", "") == scope
        return {"Authorization": f"Bearer {answer.json()['access_token']}"}

    def call(self, method: str, path: str, *, scope: str = "ssf.manage", **options: Any) -> httpx.Response:
        if scope not in self._headers:
            self._headers[scope] = self.headers(scope)
        return self.http.request(method, f"/ssf/{path}", headers=self._headers[scope], **options)

    def add_stream(self, **fields: Any) -> str:
        answer = self.call("POST", "stream", json=fields)
        assert answer.status_code == 201, answer.text
        stream_id: str = answer.json()["stream_id"]
        return stream_id

    def poll(self, stream_id: str, **fields: Any) -> httpx.Response:
        return self.call("POST", f"poll?stream_id={stream_id}", scope="ssf.read", json=fields, timeout=90)

    def take(self, stream_id: str, **fields: Any) -> list[dict[str, Any]]:
        """Polls, acknowledges what it has got before, and returns the claims of the next events in their order."""
        answer = self.poll(stream_id, ack=self.acknowledged.pop(stream_id, []), **fields)
        assert answer.status_code == 200, answer.text
        sets = answer.json()["sets"]
        self.acknowledged[stream_id] = list(sets)
        claims = [self.claims(token) for token in sets.values()]
        assert [item["jti"] for item in claims] == list(sets)
        return claims

    def claims(self, token: str) -> dict[str, Any]:
        """Verifies a token as RFC 8417 and the framework ask for, and returns its claims."""
        assert pyjwt.get_unverified_header(token)["typ"] == "secevent+jwt"
        claims = self.site.claims(token)
        assert claims["iss"] == self.site.server.base_url
        assert claims["aud"] == self.site.client_id
        assert "sub" not in claims
        assert "exp" not in claims
        assert len(claims["events"]) == 1
        return claims


def new_application(server: Server) -> int:
    number = next(_applications)
    server.apply({"applications": [{"application_id": number, "name": f"Signals {number}"}]})
    return number


def signal_client(server: Server, application_id: int | None = None, **fields: Any) -> SignalClient:
    application_id = application_id or new_application(server)
    defaults: dict[str, Any] = {"profile": "oidc", "grant_types": SITE_GRANTS, "application_id": application_id}
    site = new_site(server, **defaults | fields)
    site.bearer = lambda *_: site.basic()  # type: ignore[method-assign]
    return SignalClient(site)


def event_of(claims: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the short name of an event and its members."""
    ((uri, members),) = claims["events"].items()
    return uri.rpartition("/")[2], members


def names_of(events: list[dict[str, Any]]) -> list[str]:
    return [event_of(claims)[0] for claims in events]


def wait_for_tokens(receiver: PushReceiver, count: int) -> list[str]:
    until(lambda: len(receiver.tokens) >= count)
    return list(receiver.tokens)
