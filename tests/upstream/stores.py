"""Stores in this process, on real sockets, with the answers, errors and outages that their makers document."""

import base64
import itertools
import secrets
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import jwt as pyjwt
import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

from tests.kit.browser import query
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server
from tests.upstream import stand_ins
from tests.upstream.stand_ins import Response

APP_ID, BUNDLE_ID, AUDIENCE = "480", "com.example.game", "game-client"
KEY = "a publisher key of Steam"
IDENTITY = "sso.example.com"
_numbers = itertools.count(1)


def _json(value: Any, status: int = 200) -> Response:
    return status, {"Content-Type": "application/json"}, orjson.dumps(value)


@dataclass
class Store:
    """What all stores have: outages, which a test turns on."""

    url: str = ""
    fault: str = ""  # "down", "slow", "large", "redirect", "no json" or "wrong key"
    requests: list[str] = field(default_factory=list)
    is_released: threading.Event = field(default_factory=threading.Event)  # ends "slow"

    def respond(self, path: str, query: dict[str, str], form: dict[str, str], headers: Any) -> Response:
        self.requests.append(path)
        match self.fault:
            case "down":
                return 503, {}, b"down"
            case "slow":
                self.is_released.wait(60)
            case "large":
                return 200, {}, b"[" + b" " * 1_000_000
            case "redirect":
                return 302, {"Location": f"{self.url}/elsewhere"}, b""
            case "no json":
                return 200, {}, b"<html>maintenance</html>"
            case "wrong key":
                return 403, {}, b"<html>Forbidden</html>"
        return self.answer(path, query, form, headers)

    def answer(self, path: str, query: dict[str, str], form: dict[str, str], headers: Any) -> Response:
        raise NotImplementedError


@dataclass
class SteamStore(Store):
    kind = "steam_ticket"
    tickets: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # SteamID, app and identity by ticket
    params: dict[str, Any] = field(default_factory=dict)

    def ticket(self, steam_id: str = "76561197960287930", app_id: str = APP_ID, identity: str = IDENTITY) -> str:
        ticket = secrets.token_hex(120)
        self.tickets[ticket] = steam_id, app_id, identity
        return ticket

    def answer(self, path: str, query: dict[str, str], form: dict[str, str], headers: Any) -> Response:
        assert path == "/ISteamUserAuth/AuthenticateUserTicket/v1/"
        if query.get("key") != KEY:
            return 403, {}, b"<html>Forbidden</html>"
        steam_id, app_id, identity = self.tickets.get(query["ticket"], ("", "", ""))
        if not steam_id or query.get("identity", identity) != identity:
            return _json({"response": {"error": {"errorcode": 101, "errordesc": "Invalid ticket"}}})
        if query["appid"] != app_id:
            return _json({"response": {"error": {"errorcode": 102, "errordesc": "Ticket for other app"}}})
        params = {"result": "OK", "steamid": steam_id, "ownersteamid": steam_id, "vacbanned": False}
        return _json({"response": {"params": params | {"publisherbanned": False} | self.params}})

    def record(self) -> dict[str, Any]:
        fields = {"issuer": self.url, "client_id": APP_ID, "client_secret": KEY, "ticket_identity": IDENTITY}
        return {"kind": self.kind, **fields}


@dataclass
class GoogleStore(Store):
    kind = "google_play"
    codes: dict[str, tuple[str, str]] = field(default_factory=dict)  # the player and the client by code
    tokens: dict[str, str] = field(default_factory=dict)
    player_status: int = 200

    def ticket(self, player_id: str = "a_123", client_id: str = AUDIENCE) -> str:
        code = f"4/{secrets.token_urlsafe(24)}"
        self.codes[code] = player_id, client_id
        return code

    def answer(self, path: str, query: dict[str, str], form: dict[str, str], headers: Any) -> Response:
        if path == "/token":
            if form["client_id"] != AUDIENCE or form["client_secret"] != KEY:
                return _json({"error": "invalid_client", "error_description": "Unauthorized"}, 401)
            player_id, client_id = self.codes.pop(form["code"], ("", ""))
            if not player_id or client_id != form["client_id"]:
                return _json({"error": "invalid_grant", "error_description": "Malformed auth code."}, 400)
            token = secrets.token_hex(16)
            self.tokens[token] = player_id
            return _json({"access_token": token, "expires_in": 3599, "token_type": "Bearer"})
        assert path == "/games/v1/players/me"
        if self.player_status != 200:
            return _json({"error": {"code": self.player_status, "status": "INTERNAL"}}, self.player_status)
        player_id = self.tokens[headers["Authorization"].removeprefix("Bearer ")]
        return _json({"kind": "games#player", "playerId": player_id, "displayName": "Ann Play"})

    def record(self) -> dict[str, Any]:
        addresses = {"token_url": f"{self.url}/token", "userinfo_url": f"{self.url}/games/v1/players/me"}
        return {"kind": self.kind, "client_id": AUDIENCE, "client_secret": KEY, **addresses}


def key_of(name: str) -> rsa.RSAPrivateKey:
    return rsa_key(("authority", "apple", "stranger").index(name))


def certificate(
    name: str, signer: str, organization: str = "Apple Inc.", issuer: str = "", days: int = 30
) -> x509.Certificate:
    """A certificate for the key of ``name``, issued by ``signer``; it has expired if ``days`` is negative."""
    now = datetime.now(UTC)
    begin = now + timedelta(days=min(days, 0) - 60)

    def named(common: str, of: str) -> x509.Name:
        return x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, common), x509.NameAttribute(NameOID.ORGANIZATION_NAME, of)]
        )

    builder = x509.CertificateBuilder().subject_name(named(name, organization)).serial_number(1)
    builder = builder.issuer_name(named(issuer or signer, "Signing Authority")).public_key(key_of(name).public_key())
    builder = builder.not_valid_before(begin).not_valid_after(now + timedelta(days=days))
    return builder.sign(key_of(signer), hashes.SHA256())


def authority() -> str:
    own = certificate("authority", "authority", "Signing Authority")
    return own.public_bytes(serialization.Encoding.PEM).decode()


@dataclass
class AppleStore(Store):
    kind = "game_center"
    published: x509.Certificate = field(default_factory=lambda: certificate("apple", "authority"))

    def ticket(self, player: str = "1", bundle_id: str = BUNDLE_ID, age_s: float = 0, **fields: Any) -> dict[str, Any]:
        player_id = f"T:_{player.zfill(32)}"
        timestamp, salt = int((time.time() - age_s) * 1000), secrets.token_bytes(8)
        text = player_id.encode() + bundle_id.encode() + struct.pack(">Q", timestamp) + salt
        return {
            "player_id": player_id,
            "public_key_url": f"{self.url}/public-key/gc-prod-10.cer",
            "timestamp": timestamp,
            "salt": base64.b64encode(salt).decode(),
            "signature": base64.b64encode(key_of("apple").sign(text, padding.PKCS1v15(), hashes.SHA256())).decode(),
            "name": "Ann Apple",
            **fields,
        }

    def answer(self, path: str, query: dict[str, str], form: dict[str, str], headers: Any) -> Response:
        if path != "/public-key/gc-prod-10.cer":
            return 404, {}, b""
        return 200, {}, self.published.public_bytes(serialization.Encoding.DER)

    def record(self) -> dict[str, Any]:
        fields = {"issuer": self.url, "client_id": BUNDLE_ID, "certificates": authority()}
        return {"kind": self.kind, **fields}


@dataclass
class OidcStore(Store):
    kind = "oidc_ticket"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def ticket(self, subject: str = "epic-1", **claims: Any) -> str:
        now = int(time.time())
        own = {"iss": self.url, "sub": subject, "aud": AUDIENCE, "iat": now, "exp": now + 600, "name": "Ann Epic"}
        own |= {"jti": secrets.token_hex(8)} | claims
        return pyjwt.encode(own, self.key, "ES256", headers={"kid": "k1"})

    def answer(self, path: str, query: dict[str, str], form: dict[str, str], headers: Any) -> Response:
        assert path == "/jwks"
        numbers = self.key.public_key().public_numbers()
        x, y = (base64.urlsafe_b64encode(n.to_bytes(32, "big")).decode().rstrip("=") for n in (numbers.x, numbers.y))
        return _json({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k1", "use": "sig", "x": x, "y": y}]})

    def record(self) -> dict[str, Any]:
        return {"kind": self.kind, "issuer": self.url, "client_id": AUDIENCE, "jwks_uri": f"{self.url}/jwks"}


AnyStore = SteamStore | GoogleStore | AppleStore | OidcStore


@contextmanager
def opened(store: AnyStore) -> Iterator[AnyStore]:
    with stand_ins.running(store):
        try:
            yield store
        finally:
            store.is_released.set()


def add_store(server: Server, store: AnyStore, **fields: Any) -> str:
    """Adds a provider for the store, which creates users, and returns its id."""
    provider_id = f"store-{next(_numbers)}"
    server.apply({"identity_providers": [{"id": provider_id, "create_users": True, **store.record(), **fields}]})
    return provider_id


def send(server: Server, provider_id: str, ticket: Any, **fields: Any) -> httpx.Response:
    with server.client() as client:
        return client.post("/proxy/api/ticket", json={"provider": provider_id, "ticket": ticket, **fields})


def refusal(server: Server, provider_id: str, event: str = "upstream.ticket_refused") -> str:
    """Returns the reason of the last ticket that was refused, or of the last failure of the store."""
    return str([entry for entry in server.log_events(event) if entry["provider"] == provider_id][-1]["reason"])


def link_account(server: Server, provider_id: str, subject: str, login: str) -> str:
    """Links a store account with the account that has this login, and returns its user id."""
    user_id = str(query(server, "SELECT user_id FROM users WHERE login = $1", login)[0]["user_id"])
    sql = "INSERT INTO linked_identities (id, provider_id, subject, user_id, last_used) VALUES ($1, $2, $3, $4, now())"
    query(server, sql, login, provider_id, subject, user_id)
    return user_id
