"""POST /proxy/api/guest: who gets in, who does not, and what a guest can never do."""

import base64
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

import httpx
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sso.accounts.model import LoginOptions
from sso.core.device_key import parse_device_key
from sso.core.keys import UnusableKey
from sso.core.net import parse_address
from sso.db.statement_monitor import StatementMonitor
from sso.players.guests import GuestRequest
from sso.services import Services
from tests.kit.browser import query
from tests.kit.builders import PASSWORD
from tests.kit.game import violation
from tests.kit.guest import FACTOR, GUEST, Device, Key, bearer, key_text, signature
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import QUICK, Server, running
from tests.kit.session_tokens import LOGIN, claims_of, new_application

T = TypeVar("T")
KEYS: dict[str, Key] = {
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    "P-256": ec.generate_private_key(ec.SECP256R1()),
    "RSA": rsa_key(),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_first_call_creates_a_guest_and_later_calls_sign_the_same_user_in(client: httpx.Client, key: Any) -> None:
    device = Device(key)
    first, second = device.sign_in(client), device.sign_in(client, meta="1")
    assert first["user_id"] == second["user_id"]
    assert (first["auth"], first["guest"], first["tags"]) == ("guest", True, "guest")
    assert first["token"] != second["token"]
    assert "meta" in second
    claims = claims_of(first)
    assert (claims["guest"], claims["auth"], claims["sub"]) == (True, "guest", first["user_id"])
    renewed = client.post(LOGIN, json={"token": first["token"], "factor": FACTOR}).json()
    assert (renewed["auth"], renewed["guest"], claims_of(renewed)["guest"]) == ("guest", True, True)


def test_device_that_signs_in_again_and_again_has_one_event_an_hour(client: httpx.Client, server: Server) -> None:
    """For each game. Other sign-ins, and those after an hour, have their own."""
    device, application = Device(), new_application(server)
    user_id = device.sign_in(client)["user_id"]
    for fields in ({}, {}, {"app_id": application}, {"app_id": application}):
        device.sign_in(client, **fields)
    events = "SELECT detail ->> 'app_id' AS app_id FROM account_events WHERE user_id = $1 ORDER BY id"
    expected = ["0", str(application)]
    assert [row["app_id"] for row in query(server, events, user_id)] == expected
    query(server, "UPDATE account_events SET at = at - interval '1 hour' WHERE user_id = $1", user_id)
    device.sign_in(client)
    assert [row["app_id"] for row in query(server, events, user_id)] == [*expected, "0"]


def test_wrong_proofs_are_refused_with_a_record_and_create_nobody(client: httpx.Client, server: Server) -> None:
    """A signature of another key, over another body, of another kind of key; stale times; a repeated nonce."""
    before = query(server, "SELECT count(*) FROM users")[0][0]
    device, other = Device(), Device()
    body = device.body()
    sent = {"Content-Type": "application/json"}
    for sign in (
        signature(other.key, body),
        signature(device.key, body + b" "),
        signature(KEYS["RSA"], body),
        signature(KEYS["P-256"], body),
        "",
        "x" * 2000,
    ):
        violation(client.post(GUEST, content=body, headers=sent | {"Request-Sign": sign}))
    for ts in (int(time.time()) - 310, int(time.time()) + 310):
        violation(device.call(client, ts=ts))
    assert query(server, "SELECT count(*) FROM users")[0][0] == before
    headers = device.headers(body)
    assert client.post(GUEST, content=body, headers=headers).status_code == 200
    violation(client.post(GUEST, content=body, headers=headers))  # a replay
    nonce = "n" * 16
    device.sign_in(client, nonce=nonce)
    violation(device.call(client, nonce=nonce))
    other.sign_in(client, nonce=nonce)  # another key may use it
    # Key substitution: the attacker's own key in a body that the victim has signed.
    stolen = device.body(public_key=key_text(other.key))
    violation(client.post(GUEST, content=stolen, headers=device.headers(stolen)))


def test_malformed_fields_are_named(client: httpx.Client) -> None:
    malformed: list[tuple[str, Any]] = [
        ("public_key", None),
        ("public_key", "bm8="),
        ("public_key", "x" * 2000),
        ("ts", None),
        ("ts", "now"),
        ("nonce", "short"),
        ("nonce", "n" * 65),
        ("app_id", 2**31 - 1),
        ("jwt_public_key", "no"),
    ]
    for name, value in malformed:
        answer = Device().call(client, **{name: value})
        assert answer.status_code == 400, (name, value)
        assert answer.json()["error"].startswith(name)


def test_only_the_documented_keys_in_their_one_encoding_are_accepted() -> None:
    accepted = [*KEYS.values(), rsa_key(bits=4096)]
    assert [parse_device_key(key_text(key)).algorithm for key in accepted] == ["EdDSA", "ES256", "RS256", "RS256"]
    pkcs1 = KEYS["RSA"].public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)
    spki = base64.b64decode(key_text(KEYS["Ed25519"]))
    small_exponent = rsa.RSAPublicNumbers(3, rsa_key().public_key().public_numbers().n).public_key()
    refused = [
        key_text(ec.generate_private_key(ec.SECP384R1())),
        key_text(ec.generate_private_key(ec.SECP256K1())),
        key_text(rsa.generate_private_key(65537, 1024)),
        base64.b64encode(small_exponent.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode(),
        base64.b64encode(pkcs1).decode(),
        base64.b64encode(spki + b"\0").decode(),  # the same key with another digest
        key_text(KEYS["P-256"]) + "\n",
    ]
    for text in refused:
        with pytest.raises(UnusableKey):
            parse_device_key(text)


def test_forms_and_missing_signatures_are_malformed(client: httpx.Client) -> None:
    assert client.post(GUEST, data={"nonce": "n" * 16}).status_code in (400, 415)
    assert client.post(GUEST, content=Device().body(), headers={"Content-Type": "application/json"}).status_code == 400


def test_a_guest_may_sign_in_to_a_game_and_not_where_the_game_forbids_it(client: httpx.Client, server: Server) -> None:
    game = new_application(server)
    closed = new_application(server, settings={"restricted_domains": ["example.com"]})
    device = Device()
    assert device.sign_in(client, gapp_id=game)["permissions"] == {str(game): []}
    refused = device.call(client, gapp_id=closed)
    assert (refused.status_code, refused.json()["error"]) == (403, "login not allowed")
    user_id = device.sign_in(client)["user_id"]
    live = query(server, "SELECT gapp_id FROM sign_ins WHERE user_id = $1 AND NOT ended", user_id)
    assert sorted(row["gapp_id"] for row in live) == [0, game]


def test_a_guest_cannot_hold_administrative_rights(client: httpx.Client, server: Server) -> None:
    """Neither by condition nor by assignment nor by membership; roles of games are for guests, too."""
    game = new_application(server)
    role = {"name": "guests", "condition": {"tag": "guest"}}
    server.apply(
        {
            "users": [{"login": "owner@example.com", "password": PASSWORD}],
            "roles": {
                str(game): [{**role, "meta": {"private_data": {"play": {"value": True}}}}],
                "1": [{**role, "meta": {"private_data": {"can_view_users": {"value": True}}}}],
            },
            "projects": [{"title": "Arena", "author": "owner@example.com"}],
        }
    )
    device = Device()
    data = device.sign_in(client, app_id=1, gapp_id=game)
    assert data["permissions"] == {"1": [], str(game): ["play"]}
    admin = client.get("/api/admin/users", headers=bearer(data))
    assert admin.status_code == 403
    for document in (
        {"permissions": [{"user_id": data["user_id"], "application_id": 1, "data": {"roles": ["root"]}}]},
        {
            "permissions": [
                {
                    "user_id": data["user_id"],
                    "application_id": game,
                    "data": {"secret_data": {"meta": {"private": {"canRead": {"value": "all"}}}}},
                }
            ]
        },
        {"memberships": [{"id": "arena", "users": [{"user_id": data["user_id"], "roles": {"project": ["admin"]}}]}]},
    ):
        with pytest.raises(Exception, match="guest"):
            server.apply(document)
    server.apply(
        {
            "permissions": [
                {"user_id": data["user_id"], "application_id": game, "data": {"public_data": {"a": {"value": True}}}}
            ]
        }
    )


def test_administrators_cannot_change_what_makes_a_guest(client: httpx.Client, server: Server) -> None:
    data = Device().sign_in(client)
    server.apply({"users": [{"login": "plain@example.com"}]})
    user_id = data["user_id"]
    for record, named in (
        ({"login": "new@example.com", "user_id": user_id}, "login"),
        ({"login": "plain@example.com", "tags": ["guest"]}, "tags"),
        ({"login": "other@example.com", "tags": ["guest"]}, "tags"),
    ):
        with pytest.raises(Exception, match=named):
            server.apply({"users": [record]})
    exported = server.sso("export").stdout
    assert f'"{user_id}"' not in exported


def test_guests_can_be_off(postgres_server: Any, tmp_path: Any) -> None:
    with running(tmp_path, **QUICK | {"SSO_DATABASE_URL": postgres_server.fresh()}) as server, server.client() as http:
        assert Device().call(http).status_code == 404


def test_banned_key_cannot_start_again(client: httpx.Client, server: Server) -> None:
    """Not as a new guest after the banned one is erased, and not at the application of a narrower ban."""
    device, application = Device(), new_application(server)
    user_id = device.sign_in(client)["user_id"]
    server.sso("user", "ban", user_id, "--reason", "Cheating")
    refused = device.call(client)
    assert (refused.status_code, refused.json()["error"], refused.json()["ban"]["reason"]) == (
        403,
        "banned",
        "Cheating",
    )
    server.sso("user", "delete", user_id, "--now", "--yes")
    assert query(server, "SELECT note, user_id FROM user_bans WHERE user_id = $1", user_id)
    assert device.call(client).json()["error"] == "banned"
    server.sso("user", "unban", user_id)
    other = device.sign_in(client)["user_id"]
    assert other != user_id
    server.sso("user", "ban", other, "--app", str(application))
    assert device.sign_in(client)["user_id"] == other
    assert device.call(client, app_id=application).json()["error"] == "banned"
    server.sso("user", "delete", other, "--now", "--yes")
    assert device.call(client, app_id=application).json()["error"] == "banned"
    again = device.sign_in(client)["user_id"]  # elsewhere; the ban follows the key
    assert device.call(client, app_id=application).json()["ban"]["scope"] == {"application_id": application}
    assert again not in (user_id, other)


async def test_known_key_signs_in_with_one_statement(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the check of the signature. The permissions at applications, if some are named, come in addition."""
    device, address = Device(), parse_address("127.0.0.1")
    guests, statements = services.players.guests, []

    async def sign_in() -> dict[str, Any]:
        body = device.body()
        fields = orjson.loads(body)
        key = parse_device_key(fields["public_key"])
        request = GuestRequest(key, fields["ts"], fields["nonce"], device.headers(body)["Request-Sign"], body)
        await guests.check_proof(request, address)
        return await guests.sign_in(request, LoginOptions(address, factor=FACTOR), address)

    class Recorder(StatementMonitor):
        async def run(self, name: str, running: Awaitable[T], items: int = 0) -> T:
            statements.append(name)
            return await running

    first = await sign_in()
    monkeypatch.setattr(services.database, "_monitor", Recorder(0))
    assert (await sign_in())["user_id"] == first["user_id"]
    assert statements == ["players.device_key_store.SIGN_IN"]
