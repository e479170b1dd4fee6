"""Identity providers in this process, on real sockets: their answers can be changed, as an attacker would."""

import base64
import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt as pyjwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec

CLIENT_ID, SECRET = "sso", "a secret of the provider / %"
Response = tuple[int, dict[str, str], bytes]


class StandIn(Protocol):
    url: str

    def respond(self, path: str, query: dict[str, str], form: dict[str, str], headers: Any) -> Response: ...


@contextmanager
def running(stand_in: StandIn) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            form = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            status, headers, body = stand_in.respond(parts.path, query, dict(parse_qsl(form)), self.headers)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name that the library looks for

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Person:
    subject: str = field(default_factory=lambda: secrets.token_hex(8))
    email: str = "ann@example.com"
    email_verified: bool = True
    name: str = "Ann of Elsewhere"


@dataclass
class CodeProvider:
    """OpenID Connect, and OAuth 2.0 with userinfo. Whoever comes is signed in as ``person`` at once."""

    person: Person = field(default_factory=Person)
    url: str = ""
    wrong_claims: dict[str, Any] = field(default_factory=dict)  # of the ID token
    wrong_metadata: dict[str, Any] = field(default_factory=dict)
    wrong_answer: dict[str, str] = field(default_factory=dict)  # parameters of the authorization response
    algorithm: str = "ES256"
    down: bool = False
    large: bool = False
    token_error: str = ""  # of the token endpoint
    requests: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: dict[str, Person] = field(default_factory=dict)
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    kid: str = "k1"

    def respond(self, path: str, query: dict[str, str], form: dict[str, str], headers: Any) -> Response:
        self.requests.append(path)
        if self.down:
            return 503, {}, b"down"
        if path == "/authorize":
            return self._authorize(query)
        answers: dict[str, Callable[[], dict[str, Any]]] = {
            "/.well-known/openid-configuration": self._metadata,
            "/jwks": lambda: {"keys": [self._jwk()]},
            "/token": lambda: self._token(form, headers),
            "/userinfo": lambda: self._userinfo(headers),
            "/api/me": lambda: self._userinfo(headers),
        }
        value = answers[path]()
        body = orjson.dumps(value) + (b" " * 1_000_000 if self.large else b"")
        return (400 if "error" in value else 200), {"Content-Type": "application/json"}, body

    def code(self, **request: str) -> str:
        """Issues a code for an authorization request."""
        code = secrets.token_hex(8)
        self.codes[code] = request
        return code

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/jwks",
            "authorization_response_iss_parameter_supported": True,
            **self.wrong_metadata,
        }

    def _authorize(self, query: dict[str, str]) -> Response:
        assert query["code_challenge_method"] == "S256"
        answer = {"code": self.code(**query), "state": query["state"], "iss": self.url} | self.wrong_answer
        return 302, {"Location": f"{query['redirect_uri']}?{urlencode(answer)}"}, b""

    def _token(self, form: dict[str, str], headers: Any) -> dict[str, Any]:
        if self.token_error:
            return {"error": self.token_error}
        request = self.codes.pop(form.get("code", ""), None)
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            request is None
            or _base64url(challenge) != request["code_challenge"]
            or form["redirect_uri"] != request["redirect_uri"]
        ):
            return {"error": "invalid_grant"}
        pair = base64.b64encode(b"sso:a%20secret%20of%20the%20provider%20%2F%20%25").decode()
        if headers.get("Authorization") != f"Basic {pair}" and form.get("client_secret") != SECRET:
            return {"error": "invalid_client"}
        access_token = secrets.token_hex(16)
        self.tokens[access_token] = self.person
        return {"access_token": access_token, "token_type": "bearer", "id_token": self._id_token(request)}

    def _id_token(self, request: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": self.person.subject,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": request.get("nonce"),
            **self.wrong_claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.algorithm == "none":
            header = _base64url(orjson.dumps({"alg": "none", "kid": self.kid}))
            return f"{header}.{_base64url(orjson.dumps(claims))}."
        key: Any = SECRET.ljust(32) if self.algorithm == "HS256" else self.key
        return pyjwt.encode(claims, key, self.algorithm, headers={"kid": self.kid})

    def _userinfo(self, headers: Any) -> dict[str, Any]:
        person = self.tokens.get(headers.get("Authorization", "").removeprefix("Bearer "))
        if person is None:
            return {"error": "invalid_token"}
        return {
            "sub": person.subject,
            "id": person.subject,
            "username": person.name,
            "name": person.name,
            "email": person.email,
            "verified": person.email_verified,
            "email_verified": person.email_verified,
        }

    def _jwk(self) -> dict[str, Any]:
        numbers = self.key.public_key().public_numbers()
        x, y = (_base64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": "P-256", "kid": self.kid, "use": "sig", "x": x, "y": y}


@dataclass
class SteamStandIn:
    """Steam, as far as OpenID 2.0 goes: it signs assertions and confirms each of them once."""

    steam_id: str = "76561197960287930"
    url: str = ""
    wrong_fields: dict[str, str] = field(default_factory=dict)  # before the assertion is signed
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    confirmed: set[str] = field(default_factory=set)
    is_careless: bool = False  # confirms everything

    def respond(self, path: str, query: dict[str, str], form: dict[str, str], headers: Any) -> Response:
        assert path == "/openid/login"
        if query:
            location = f"{query['openid.return_to']}&{urlencode(self.assertion(query['openid.return_to']))}"
            return 302, {"Location": location}, b""
        nonce = form.get("openid.response_nonce", "")
        valid = form.get("openid.sig") == self._signature(form) and nonce not in self.confirmed
        self.confirmed.add(nonce)
        verdict = "true" if valid or self.is_careless else "false"
        return 200, {}, f"ns:http://specs.openid.net/auth/2.0\nis_valid:{verdict}\n".encode()

    def assertion(self, return_to: str) -> dict[str, str]:
        now = datetime.now(UTC)
        claimed_id = f"{self.url}/openid/id/{self.steam_id}"
        fields = {
            "openid.ns": "http://specs.openid.net/auth/2.0",
            "openid.mode": "id_res",
            "openid.op_endpoint": f"{self.url}/openid/login",
            "openid.claimed_id": claimed_id,
            "openid.identity": claimed_id,
            "openid.return_to": return_to,
            "openid.response_nonce": now.strftime("%Y-%m-%dT%H:%M:%SZ") + secrets.token_hex(8),
            "openid.assoc_handle": "1234567890",
            "openid.signed": "signed,op_endpoint,claimed_id,identity,return_to,response_nonce,assoc_handle",
            **self.wrong_fields,
        }
        return {**fields, "openid.sig": self._signature(fields)}

    def _signature(self, fields: dict[str, str]) -> str:
        names = fields.get("openid.signed", "").split(",")
        text = "".join(f"{name}:{fields.get(f'openid.{name}', '')}\n" for name in names)
        return base64.b64encode(hmac.digest(self.key, text.encode(), "sha256")).decode()


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
