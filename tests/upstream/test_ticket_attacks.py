"""Tickets that are forged, of other games, old or changed are refused, and leave their players as they were."""

import base64
import hmac
from collections.abc import Callable, Iterator
from typing import Any

import jwt as pyjwt
import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.kit.browser import query
from tests.kit.builders import PASSWORD
from tests.kit.server import Server
from tests.upstream import stand_ins
from tests.upstream.stores import (
    BUNDLE_ID,
    KEY,
    AppleStore,
    GoogleStore,
    OidcStore,
    SteamStore,
    add_store,
    certificate,
    link_account,
    refusal,
    send,
)


@pytest.fixture
def steam_store() -> Iterator[SteamStore]:
    with stand_ins.running(store := SteamStore()):
        yield store


@pytest.fixture
def google_store() -> Iterator[GoogleStore]:
    with stand_ins.running(store := GoogleStore()):
        yield store


@pytest.fixture
def apple_store() -> Iterator[AppleStore]:
    with stand_ins.running(store := AppleStore()):
        yield store


@pytest.fixture
def oidc_store() -> Iterator[OidcStore]:
    with stand_ins.running(store := OidcStore()):
        yield store


def assert_refused(server: Server, provider_id: str, ticket: Any, reason: str, **fields: Any) -> None:
    answer = send(server, provider_id, ticket, **fields)
    assert (answer.status_code, answer.json()) == (401, {"status": "ERROR", "error": "invalid credentials"}), reason
    assert refusal(server, provider_id).endswith(reason), refusal(server, provider_id)
    assert not query(server, "SELECT FROM linked_identities WHERE provider_id = $1", provider_id)


def test_steam_ticket_of_another_game_or_service_is_refused(server: Server, steam_store: SteamStore) -> None:
    provider_id = add_store(server, steam_store)
    assert_refused(server, provider_id, steam_store.ticket(app_id="570"), "error 102")
    assert_refused(server, provider_id, steam_store.ticket(identity="another.example.com"), "error 101")
    assert_refused(server, provider_id, "14" * 100, "error 101")
    steam_store.params = {"publisherbanned": True}
    assert_refused(server, provider_id, steam_store.ticket(), "the publisher has banned the player at Steam")


def test_unexpected_answer_of_steam_signs_nobody_in(server: Server, steam_store: SteamStore) -> None:
    provider_id = add_store(server, steam_store)
    answers: list[dict[str, Any]] = [
        {"steamid": 76561197960287930},
        {"steamid": "../1"},
        {"result": "Expired"},
        {"steamid": None},
    ]
    for params in answers:
        steam_store.params = params
        assert send(server, provider_id, steam_store.ticket()).status_code == 503, params


def test_key_of_the_store_is_not_in_the_log(server: Server, steam_store: SteamStore, google_store: GoogleStore) -> None:
    """A wrong key is a mistake of the operator: players get 503, and the log names the provider, not the key."""
    for store in (steam_store, google_store):
        provider_id = add_store(server, store, client_secret="a wrong key")
        ticket = store.ticket()
        assert send(server, provider_id, ticket).status_code == 503
        assert "status 40" in refusal(server, provider_id, "upstream.store_failed")
        assert not [text for text in ("a wrong key", "a+wrong+key", KEY, ticket) if text in server.log()]


def test_code_of_google_play_for_another_client_is_refused(server: Server, google_store: GoogleStore) -> None:
    provider_id = add_store(server, google_store)
    assert_refused(server, provider_id, google_store.ticket(client_id="other-game"), "invalid_grant")
    assert_refused(server, provider_id, "4/unknown", "invalid_grant")
    google_store.player_status = 500
    assert send(server, provider_id, google_store.ticket()).status_code == 503


WRONG_KEY_URLS = [
    "https://evil.example/public-key/gc-prod-10.cer",
    "{origin}.evil.example/public-key/gc-prod-10.cer",
    "http://user@{host}/public-key/gc-prod-10.cer",
    "http://{host}@evil.example/public-key/gc-prod-10.cer",
    "http://evil.example#{host}/public-key/gc-prod-10.cer",
    "http://evil.example\\@{host}/public-key/gc-prod-10.cer",
    "http://127.0.0.1:1/public-key/gc-prod-10.cer",
    "https://{host}/public-key/gc-prod-10.cer",
    "http://{host}/public-key/../elsewhere.cer",
    "http://{host}/public-key/gc-prod-10.cer?next=1",
    "http://{host}/public-key/%2e%2e/x.cer",
    "http://{host}:99999/public-key/gc-prod-10.cer",
    "http://{host}/elsewhere/gc-prod-10.cer",
    "//{host}/public-key/gc-prod-10.cer",
    "http://[/public-key/gc-prod-10.cer",
]


def test_key_of_game_center_is_read_from_apple_only(server: Server, apple_store: AppleStore) -> None:
    provider_id = add_store(server, apple_store)
    host = apple_store.url.removeprefix("http://")
    for url in WRONG_KEY_URLS:
        ticket = apple_store.ticket(public_key_url=url.format(origin=apple_store.url, host=host))
        assert_refused(server, provider_id, ticket, "public_key_url: not an address of Apple's keys")
        assert not apple_store.requests, url


def test_signature_of_game_center_covers_player_game_time_and_salt(server: Server, apple_store: AppleStore) -> None:
    provider_id = add_store(server, apple_store)
    signed = apple_store.ticket()
    wrong = base64.b64encode(b"x" * 8).decode()
    for fields in (
        {"player_id": "T:_" + "2".zfill(32)},
        {"timestamp": signed["timestamp"] + 1},
        {"salt": wrong},
        {"signature": wrong},
    ):
        assert_refused(server, provider_id, signed | fields, "signature: wrong")
    for name in ("salt", "signature"):
        answer = send(server, provider_id, signed | {name: "\u00e9"})
        assert (answer.status_code, f"ticket.{name}: expected base64" in answer.text) == (400, True)
    assert_refused(server, provider_id, apple_store.ticket(bundle_id="com.example.other"), "signature: wrong")
    assert_refused(server, provider_id, apple_store.ticket(age_s=301), "timestamp: too old, or in the future")
    assert_refused(server, provider_id, apple_store.ticket(age_s=-90), "timestamp: too old, or in the future")
    missing = apple_store.ticket(public_key_url=f"{apple_store.url}/public-key/gc-prod-1.cer")
    assert_refused(server, provider_id, missing, "status 404")
    # The bundle id of the other game ends like ours: its first letter must not become a part of the player's id.
    moved = apple_store.ticket(bundle_id=f"a{BUNDLE_ID}")
    answer = send(server, provider_id, moved | {"player_id": moved["player_id"] + "a"})
    assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (400, "ticket.player_id")


def test_certificate_of_game_center_must_be_apples(server: Server, apple_store: AppleStore) -> None:
    for published, reason in (
        (certificate("apple", "authority", days=-1), "expired or not valid yet"),
        (certificate("apple", "authority", "Another Customer"), "expected the organization Apple Inc."),
        (certificate("apple", "stranger"), "not issued by one of the trusted certificates"),
        (certificate("apple", "stranger", issuer="authority"), "not issued by one of the trusted certificates"),
    ):
        with stand_ins.running(store := AppleStore(published=published)):
            provider_id = add_store(server, store)
            assert send(server, provider_id, store.ticket()).status_code == 503
            assert refusal(server, provider_id, "upstream.store_failed").endswith(reason)


def without_signature(store: OidcStore) -> str:
    header = base64.urlsafe_b64encode(orjson.dumps({"alg": "none", "kid": "k1"})).decode().rstrip("=")
    return f"{header}.{store.ticket().split('.')[1]}."


def keyed_with_public_key(store: OidcStore) -> str:
    public = store.key.public_key()
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    header = base64.urlsafe_b64encode(orjson.dumps({"alg": "HS256", "kid": "k1"})).decode().rstrip("=")
    text = f"{header}.{store.ticket().split('.')[1]}"
    mac = base64.urlsafe_b64encode(hmac.digest(der, text.encode(), "sha256")).decode().rstrip("=")
    return f"{text}.{mac}"


def with_embedded_key(store: OidcStore) -> str:
    """The header brings the attacker's key along, and says where others are."""
    key = ec.generate_private_key(ec.SECP256R1())
    claims = pyjwt.decode(store.ticket(), options={"verify_signature": False})
    jwk = orjson.loads(pyjwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
    return pyjwt.encode(claims, key, "ES256", headers={"kid": "k1", "jwk": jwk, "jku": "https://evil.example/jwks"})


FORGED: list[tuple[Callable[[OidcStore], Any], str]] = [
    (without_signature, "id_token: not a JWT"),
    (keyed_with_public_key, "id_token: InvalidAlgorithmError"),
    (with_embedded_key, "id_token: InvalidSignatureError"),
    (lambda store: store.ticket(aud="another-game"), "id_token: wrong aud"),
    (lambda store: store.ticket(aud=["game-client", "other"], azp="other"), "id_token: wrong azp"),
    (lambda store: store.ticket(iss="https://evil.example"), "id_token: wrong iss"),
    (lambda store: store.ticket(iat=1, exp=2**40), "id_token: bad iat"),
    (lambda store: store.ticket(exp=1), "id_token: bad iat"),
    (lambda store: store.ticket(sub=""), "id_token: bad sub"),
    (lambda store: {"id_token": store.ticket(nonce="theirs"), "nonce": "ours"}, "id_token: wrong nonce"),
    (lambda store: {"id_token": store.ticket(), "nonce": "ours"}, "id_token: wrong nonce"),
]


def test_forged_id_token_is_refused(server: Server, oidc_store: OidcStore) -> None:
    provider_id = add_store(server, oidc_store)
    for forge, reason in FORGED:
        assert_refused(server, provider_id, forge(oidc_store), reason)


def test_ticket_of_one_provider_is_refused_by_another(
    server: Server, steam_store: SteamStore, oidc_store: OidcStore
) -> None:
    own, other = add_store(server, oidc_store), add_store(server, oidc_store, client_id="another-game")
    ticket = oidc_store.ticket()
    assert_refused(server, other, ticket, "id_token: wrong aud")
    assert send(server, own, ticket).status_code == 200
    for provider_id, wrong in (
        (add_store(server, steam_store), ticket),
        (add_store(server, steam_store), {"ticket": "14"}),
        (add_store(server, steam_store), "14" * 5000),
        (own, {"token": ticket}),
        (own, {"id_token": ticket, "nonce": 1}),
        (own, ["14"]),
        (own, None),
    ):
        answer = send(server, provider_id, wrong)
        assert (answer.status_code, answer.json()["error"][:6]) == (400, "ticket"), answer.text


def test_ticket_of_an_administrator_gives_no_administrative_right(server: Server, oidc_store: OidcStore) -> None:
    """A ticket asks nobody, so whoever has started the game would act as the administrator."""
    provider_id = add_store(server, oidc_store)
    login = f"{provider_id}@example.com"
    roles = {"permissions": [{"user_id": login, "application_id": 1, "data": {"roles": ["root"]}}]}
    server.apply({"users": [{"login": login, "password": PASSWORD}], **roles})
    link_account(server, provider_id, "epic-1", login)
    jwt = send(server, provider_id, oidc_store.ticket(), factor="device-1").json()["jwt"]
    with server.client(headers={"Authorization": f"Bearer {jwt}", "Factor": "device-1"}) as client:
        for answer in (client.get("/api/admin/users"), client.post("/api/permissions/audit", json={})):
            assert answer.status_code == 403, answer.text
            assert "the ticket of a store is not accepted" in answer.json()["error"]


def test_replay_after_all_sign_ins_have_ended_is_refused(server: Server, oidc_store: OidcStore) -> None:
    """What remembers a used ticket does not end with the sign-in."""
    provider_id = add_store(server, oidc_store)
    ticket = oidc_store.ticket()
    user_id = send(server, provider_id, ticket).json()["user_id"]
    query(server, "DELETE FROM sign_ins WHERE user_id = $1", user_id)
    assert send(server, provider_id, ticket).status_code == 401
    assert refusal(server, provider_id) == "the ticket was used before"
