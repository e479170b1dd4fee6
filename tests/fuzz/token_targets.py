"""Parsers of tokens and keys. A payload is signed before it is verified: anybody can sign with a key of their own."""

import base64
import json
from collections.abc import Coroutine
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric import ed25519

from sso.accounts.passkeys import verification
from sso.accounts.passkeys.cbor import decode
from sso.accounts.passkeys.credential import InvalidPasskey, parse_answer
from sso.accounts.passkeys.public_key import used_members
from sso.accounts.passkeys.relying_party import RelyingParty
from sso.core.errors import ApiError
from sso.core.jwk import load_jwk
from sso.core.jwks import read_jwks
from sso.core.jwt import InvalidToken, Verifier, kid_of, peek_claim, unverified_parts
from sso.core.keys import (
    UnusableKey,
    algorithm_of,
    load_der,
    load_private,
    load_public,
    load_rsa_public,
    public_jwk,
    signature_with,
)
from sso.oauth.clients.assertions import ClientAssertions
from sso.oauth.clients.authentication import bearer_token, client_credentials
from sso.oauth.clients.profiles import RULES
from sso.oauth.tokens.dpop import DpopProofs
from sso.perm.credentials.service_jwt import claimed_application_id
from sso.upstream.id_token_verifier import IdTokenVerifier
from sso.web.body import parse_body
from tests.fuzz.target import Target, promise

NOW = 1_700_000_000
KEY = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
PUBLIC = KEY.public_key()
JWK = orjson.dumps({name: value for name, value in public_jwk(PUBLIC, "").items() if name in ("kty", "crv", "x")})


class _Database:
    """Stores nothing: what a token may do once is not asked here."""

    clock = SimpleNamespace(now=lambda: NOW)

    async def value(self, _statement: object, *, digest: bytes, expires: float) -> bytes:
        promise(NOW - 3600 < expires < NOW + 10_000, "an id is kept for too long")
        return digest


_DATABASE: Any = _Database()
_NONE: Any = None
_ASSERTIONS = ClientAssertions(_NONE, _NONE, _DATABASE, _NONE, "https://id.example")
_CLIENT: Any = SimpleNamespace(client_id="client", rules=RULES["oidc"])
_PROOFS = DpopProofs(_DATABASE, "https://id.example", _NONE)
_RELYING_PARTY = RelyingParty("id.example", "https://id.example", _NONE)


def _part(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def _signed(data: bytes) -> str:
    """Returns a token whose header is the first line and whose payload is the rest."""
    header, _, payload = data.partition(b"\n")
    text = b"%b.%b" % (_part(header), _part(payload))
    return (b"%b.%b" % (text, _part(KEY.sign(text)))).decode()


def _finish(coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine that never waits."""
    with suppress(StopIteration):
        coroutine.send(None)


def _encode(value: object) -> None:
    """Texts of tokens are stored, hashed and compared as UTF-8."""
    json.dumps(value, ensure_ascii=False).encode()


def jwt_text(data: bytes) -> None:
    """A token as it is sent, before its key is known."""
    token = data.decode("latin1")
    claimed_application_id(token)
    kid, name = peek_claim(token, "app_id")
    _encode([kid, unverified_parts(token, 16 * 1024), name])
    Verifier("service_token", audience="sso").verify(token, lambda _: PUBLIC, NOW)
    promise(False, "a token is accepted that was not signed")


def jwt_claims(data: bytes) -> None:
    """A token with a valid signature."""
    token = _signed(data)
    kid_of(token).encode()
    try:
        claims = Verifier("service_token", audience="sso").verify(token, lambda _: PUBLIC, NOW)
        promise(claims["typ"] == "service_token" and claims["exp"] > NOW, "a wrong token is accepted")
    except InvalidToken:
        claims = IdTokenVerifier("https://idp.example", "client").verify(token, PUBLIC, "nonce", NOW)
    _encode(claims)


def client_assertion(data: bytes) -> None:
    token = _signed(data)
    _kid, claims = unverified_parts(token, 4096)
    _finish(_ASSERTIONS._check(claims, _CLIENT, "/proxy/oauth/par"))


def dpop_proof(data: bytes) -> None:
    proof = _PROOFS.read([_signed(data.replace(b"JWK", JWK))], "POST", "/proxy/oauth/token", "access")
    promise(proof is not None, "no proof is read")
    if proof is not None:
        _finish(_PROOFS.use(proof, RULES["oidc"]))


def client_header(data: bytes) -> None:
    text = data.decode("latin1")
    header, _, rest = text.partition("\n")
    bearer_token([header])
    credentials = client_credentials([header], rest, "")
    promise(len(credentials.client_id) <= 64, "the client's id is too long")
    orjson.dumps([credentials.client_id, credentials.secrets, credentials.bearer])


def jwk(data: bytes) -> None:
    fields = parse_body(data, None).fields
    key = load_jwk(fields) if "keys" not in fields else next((jwk.key for jwk in read_jwks(fields).values()), PUBLIC)
    promise(load_jwk(public_jwk(key, "")) == key, "a key is read differently when it is written")


def key_text(data: bytes) -> None:
    """PEM, or base64 of DER; DER itself after a zero byte."""
    if data.startswith(b"\0"):
        algorithm_of(load_der(data[1:]))
        return
    text = data.decode("latin1")
    try:
        algorithm_of(load_public(text))
    except UnusableKey:
        load_rsa_public(text)


def private_key(data: bytes) -> None:
    """Keys that are stored for applications. Numbers that belong together can be used."""
    signature_with(load_private(data.decode("latin1")))(b"text")


def passkey_data(data: bytes) -> None:
    """The CBOR of a passkey, as each of the structures in which it arrives."""
    for parse in (decode, used_members, verification.check_attestation_object, verification.check_assertion_data):
        try:
            parse(data)
        except (TypeError, ValueError):
            continue


def passkey_answer(data: bytes) -> None:
    answer = parse_answer(data.decode("latin1"))
    answer.check_page()
    verification._verify_registration(_RELYING_PARTY, answer)


_CLAIMS = (
    b'"exp":1700000300',
    b'"iat":1699999990',
    b'"nbf":',
    b'"typ":"service_token"',
    b'"aud":"sso"',
    b'"aud":["client"]',
    b'"iss":"https://idp.example"',
    b'"nonce":"nonce"',
    b'"\\ud800"',
    b"\\u0000",
    b"1e400",
    b"-1",
    b"[[[[",
    b'{"a":1,"a":2}',
    b'"alg":"EdDSA"',
    b'"alg":"none"',
    b'"kid":"',
    b'"crit":["b64"]',
    b'"zip":"DEF"',
    b'"jti":"',
    b'"sub":"client"',
    b"\n",
    b'"htu":"https://id.example/proxy/oauth/token"',
    b'"htm":"POST"',
    b'"ath":"',
    b'"jwk":JWK',
    b'"typ":"dpop+jwt"',
)
_KEY_WORDS = (
    b"-----BEGIN PUBLIC KEY-----\n",
    b"-----END PUBLIC KEY-----",
    b"-----BEGIN RSA PUBLIC KEY-----\n",
    b"PRIVATE KEY",
    b"\0\x30\x2a\x30\x05\x06\x03\x2b\x65\x70",
    b"\x02\x82\x01\x01",
    b"\x02\x03\x01\x00\x01",
    b"\x03\x82",
    b"\xff" * 64,
)
_JWK_WORDS = (
    b'"kty":"RSA"',
    b'"kty":"EC"',
    b'"crv":"P-256"',
    b'"x":"',
    b'"n":"',
    b'"e":"AQAB"',
    b'"keys":[',
    b'"d":""',
    b'"use":"enc"',
)
_CBOR_WORDS = (
    b"\xa3\x63fmt\x64none",
    b"\xbf\xff",
    b"\x5f",
    b"\xc2\x49",
    b"\x9b\xff",
    b"\xfb",
    b"\xa1\x01\x02",
    b"\x80",
    b"\x84" * 5,
)
TARGETS = (
    Target(jwt_text, (InvalidToken,), (b".", b"e30", b"=", b"eyJhbGciOiJFZERTQSJ9", b"-", b"_"), 20 * 1024),
    Target(jwt_claims, (InvalidToken,), _CLAIMS, 12 * 1024),
    Target(client_assertion, (InvalidToken,), _CLAIMS, 3000),
    Target(dpop_proof, (ApiError,), _CLAIMS, 3000),
    Target(client_header, (ApiError,), (b"Basic ", b"Bearer ", b"Og==", b"OmE=", b"%25", b" ", b"\t", b"\n"), 8192),
    Target(jwk, (ApiError, UnusableKey), _JWK_WORDS, 8192),
    Target(key_text, (UnusableKey,), _KEY_WORDS, 16 * 1024),
    Target(private_key, (UnusableKey,), _KEY_WORDS, 16 * 1024),
    Target(passkey_data, (), _CBOR_WORDS, 9 * 1024),
    Target(
        passkey_answer,
        (InvalidPasskey,),
        (b'"rawId":"', b'"response":{', b'"clientDataJSON":"', b"AAAA", b"e30"),
        24 * 1024,
    ),
)
