"""A game client for tests of game sessions: registers, polls, signs and closes.

Each client has its own loopback address, so that rate limits of one test do not affect another."""

import base64
import itertools
import re
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import httpx
import orjson
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.kit.browser import Browser, query
from tests.kit.plain_http import PlainTransport
from tests.kit.server import Server

BASE = "/proxy/api/gameSession"
RECORD = re.compile(r"[0-9a-f]{16}")
_numbers = itertools.count(1)


def public_text(key: rsa.RSAPrivateKey) -> str:
    """Returns the public key as base64 of DER, as most games send it."""
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


def sign(key: rsa.RSAPrivateKey, body: bytes) -> str:
    return base64.b64encode(key.sign(body, padding.PKCS1v15(), hashes.SHA256())).decode()


class Game:
    def __init__(self, server: Server, address: str = "") -> None:
        self.server = server
        number = next(_numbers)
        self.address = address or f"127.77.{number // 250}.{number % 250 + 1}"
        self.http = httpx.Client(base_url=server.base_url, timeout=60, transport=PlainTransport(self.address))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def get_gsid(self, headers: dict[str, str] | None = None, /, **fields: Any) -> httpx.Response:
        return self.http.post(f"{BASE}/getGsid", json=fields, headers=headers)

    def register(self, headers: dict[str, str] | None = None, /, **fields: Any) -> "Session":
        answer = self.get_gsid(headers, **fields)
        assert answer.status_code == 200, answer.text
        data = answer.json()
        return Session(self, data["gsid"], data["match"], answer.headers["Location"])

    def ask(
        self,
        what: str,
        gsid: str,
        headers: dict[str, str] | None = None,
        params: dict[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        return self.send(what, orjson.dumps({"gsid": gsid, **fields}), headers, params)

    def send(
        self, what: str, body: bytes, headers: dict[str, str] | None = None, params: dict[str, str] | None = None
    ) -> httpx.Response:
        all_headers = {"Content-Type": "application/json"} | (headers or {})
        raw = [(name.encode(), value.encode()) for name, value in all_headers.items()]  # UTF-8, as clients do
        return self.http.post(f"{BASE}/{what}", content=body, headers=raw, params=params)


@dataclass(frozen=True)
class Session:
    """A session from the view of the game that registered it."""

    game: Game
    gsid: str
    match: str
    location: str

    @property
    def secret(self) -> str:
        return parse_qs(urlsplit(self.location).query)["Location"][0]

    @property
    def page(self) -> str:
        return f"/?gsid={self.gsid}"

    @property
    def decision(self) -> str:
        return f"/game/{self.gsid}"

    def poll(self, headers: dict[str, str] | None = None, **options: Any) -> httpx.Response:
        return self.game.ask("getGsidResult", self.gsid, headers, **options)

    def close(self, status: Any = "Success", headers: dict[str, str] | None = None, **options: Any) -> httpx.Response:
        return self.game.ask("closeGsid", self.gsid, headers, status=status, **options)

    def signed(self, key: rsa.RSAPrivateKey, what: str = "getGsidResult", **fields: Any) -> httpx.Response:
        body = orjson.dumps({"gsid": self.gsid, **fields})
        return self.game.send(what, body, {"Request-Sign": sign(key, body)})

    def row(self, columns: str = "*") -> Any:
        return query(self.game.server, f"SELECT {columns} FROM game_sessions WHERE gsid = $1", self.gsid)[0]

    def change(self, assignment: str) -> None:
        """Changes columns of the session, for example to let it expire."""
        query(self.game.server, f"UPDATE game_sessions SET {assignment} WHERE gsid = $1", self.gsid)

    @property
    def status(self) -> str:
        return str(self.row("status")["status"])


def outcome(answer: httpx.Response) -> tuple[str, str]:
    """Returns status and error of a response that is not a violation."""
    assert answer.status_code == 200, answer.text
    return answer.json()["status"], answer.json().get("error", "")


def violation(answer: httpx.Response) -> str:
    """Returns the id of the log record, and checks that the response contains nothing else."""
    assert answer.status_code == 403, answer.text
    data = answer.json()
    assert set(data) == {"status", "error"}
    assert data["status"] == "ERROR"
    assert RECORD.fullmatch(data["error"]), data
    return str(data["error"])


def press_continue(browser: Browser, session: Session) -> httpx.Response:
    """Opens the link with a signed-in browser and confirms. Returns the resulting page."""
    browser.follow(browser.get(session.page))
    return browser.follow(browser.submit(f"{session.decision}/continue"))


def sign_in_on_game_page(browser: Browser, session: Session, login: str, password: str) -> httpx.Response:
    """Signs in with the form on the page of the session. Returns the response."""
    assert browser.get(session.page).status_code == 200
    return browser.submit("/login", login=login, password=password)


def violation_log(server: Server, record: str) -> list[dict[str, Any]]:
    """Returns the log entries of a violation record."""
    return [entry for entry in server.log_events("gsid.violation_recorded") if entry["record"] == record]
