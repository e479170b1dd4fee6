"""Sign-in with tickets of stores: each kind signs in, creates its player once, and survives an outage of the store."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jwt as pyjwt
import pytest

from sso.accounts.api_operations import AUTHENTICATION_DATA
from sso.client import ClientError, SsoClient, TicketLogin
from tests.kit.browser import AuthenticatorApp, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.server import Server, until
from tests.kit.session_tokens import new_application
from tests.upstream.stores import (
    AnyStore,
    AppleStore,
    GoogleStore,
    OidcStore,
    SteamStore,
    add_store,
    link_account,
    opened,
    refusal,
    send,
)

KINDS = {"steam": SteamStore, "google": GoogleStore, "apple": AppleStore, "oidc": OidcStore}
RACERS = 20


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> Iterator[AnyStore]:
    with opened(KINDS[request.param]()) as store:
        yield store


@pytest.fixture
def steam_store() -> Iterator[SteamStore]:
    with opened(store := SteamStore()):
        yield store


def new_linked_account(server: Server, provider_id: str, subject: str, **fields: Any) -> str:
    """Links a store account with a new account, and returns its user id."""
    login = f"{provider_id}-{subject}@example.com"
    server.save_accounts(users=[{"login": login, "password": PASSWORD, "nick": "Ann", **fields}])
    return link_account(server, provider_id, subject, login)


def test_ticket_creates_its_player_and_signs_in_once(server: Server, store: AnyStore) -> None:
    provider_id = add_store(server, store)
    ticket = store.ticket()
    first = send(server, provider_id, ticket, factor="device-1").json()
    assert (first["status"], first["auth"], first["created"]) == ("OK", provider_id, True)
    assert first["nick"] == {"steam": f"Player {first['user_id']}"}.get(
        store.record()["kind"].partition("_")[0], first["nick"]
    )
    claims = pyjwt.decode(first["jwt"], options={"verify_signature": False})
    assert (claims["sub"], claims["auth"], claims["guest"]) == (first["user_id"], "ticket", True)
    # The session token continues the sign-in, like that of any login.
    with server.client() as client:
        renewed = client.post("/proxy/api/login", json={"token": first["token"], "factor": "device-1"}).json()
        assert (renewed["user_id"], renewed["auth"]) == (first["user_id"], "ticket")
        assert renewed["auth"] in AUTHENTICATION_DATA["properties"]["auth"]["enum"]
    replayed = send(server, provider_id, ticket)
    assert (replayed.status_code, replayed.json()["error"]) == (401, "invalid credentials")
    again = send(server, provider_id, store.ticket()).json()
    assert (again["user_id"], again["created"]) == (first["user_id"], False)
    [row] = query(server, "SELECT login, tags, password_hash FROM users WHERE user_id = $1", first["user_id"])
    assert (row["login"], row["tags"], row["password_hash"]) == ("", ["guest"], None)


def test_ticket_can_be_sent_again_after_an_outage(server: Server, store: AnyStore) -> None:
    """The keys of some stores are kept, so all outages come before the first success."""
    provider_id = add_store(server, store)
    tickets = {fault: store.ticket() for fault in ("down", "large", "redirect", "no json")}
    for store.fault, ticket in tickets.items():
        answer = send(server, provider_id, ticket)
        assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "5"), (store.fault, answer.text)
        assert refusal(server, provider_id, "upstream.store_failed")
    store.fault = ""
    created = [send(server, provider_id, ticket).json()["created"] for ticket in tickets.values()]
    assert created == [True, False, False, False]
    assert "/elsewhere" not in store.requests


def test_many_first_tickets_of_a_store_account_create_one_player(server: Server, steam_store: SteamStore) -> None:
    provider_id = add_store(server, steam_store)
    tickets = [steam_store.ticket() for _ in range(RACERS)]
    with ThreadPoolExecutor(RACERS) as pool:
        answers = [answer.json() for answer in pool.map(lambda ticket: send(server, provider_id, ticket), tickets)]
    assert {answer["status"] for answer in answers} == {"OK"}, answers
    assert len({answer["user_id"] for answer in answers}) == 1
    assert [answer["created"] for answer in answers].count(True) == 1
    sql = "SELECT count(*) AS count FROM linked_identities WHERE provider_id = $1"
    assert query(server, sql, provider_id)[0]["count"] == 1


def test_one_ticket_that_is_sent_many_times_signs_in_once(server: Server, steam_store: SteamStore) -> None:
    provider_id = add_store(server, steam_store)
    ticket = steam_store.ticket()
    spellings = [ticket.upper() if number % 2 else ticket for number in range(RACERS)]
    with ThreadPoolExecutor(RACERS) as pool:
        statuses = [one.status_code for one in pool.map(lambda one: send(server, provider_id, one), spellings)]
    assert sorted(statuses) == [200] + [401] * (RACERS - 1)
    sql = "SELECT count(*) AS count FROM sign_ins s JOIN linked_identities l USING (user_id) WHERE provider_id = $1"
    assert query(server, sql, provider_id)[0]["count"] == 1


def test_slow_store_does_not_delay_other_sign_ins(server: Server, steam_store: SteamStore) -> None:
    """More tickets wait for the store than it gets at a time, and a login needs none of what they hold."""
    provider_id = add_store(server, steam_store)
    user_id = new_linked_account(server, provider_id, "76561197960265729")
    steam_store.fault = "slow"
    with ThreadPoolExecutor(48) as pool:
        waiting = [pool.submit(send, server, provider_id, steam_store.ticket()) for _ in range(48)]
        assert until(lambda: len(steam_store.requests) >= 16)
        with server.client() as client:
            fields = {"login": f"{provider_id}-76561197960265729@example.com", "password": PASSWORD}
            assert client.post("/proxy/api/login", json=fields).json()["user_id"] == user_id
        assert len(steam_store.requests) <= 16 * len(server.workers())
        steam_store.is_released.set()
        assert {future.result().status_code for future in waiting} <= {200, 503}


def test_client_signs_in_with_a_ticket(server: Server, steam_store: SteamStore) -> None:
    login = TicketLogin(add_store(server, steam_store), steam_store.ticket())
    with SsoClient(server.base_url, login) as sso:
        session = sso.run(login.sign_in())
        assert (login.created, session.jwt.is_valid) == (True, True)
        with pytest.raises(ClientError):
            sso.run(login.sign_in())


def test_guest_links_a_store_account_that_belongs_to_nobody_else(server: Server, steam_store: SteamStore) -> None:
    """The game has a guest, here by another store, and gets a conflict instead of a store account that moves."""
    provider_id, other_id = add_store(server, steam_store), add_store(server, steam_store)
    guest = send(server, other_id, steam_store.ticket(), factor="device-1").json()
    headers = {"Authorization": f"Bearer {guest['jwt']}", "Factor": "device-1"}

    def link(ticket: str, headers: dict[str, str]) -> httpx.Response:
        with server.client(headers=headers) as client:
            return client.post("/proxy/api/ticket", json={"provider": provider_id, "ticket": ticket, "link": "1"})

    linked = link(steam_store.ticket(), headers).json()
    assert (linked["user_id"], linked["created"]) == (guest["user_id"], False)
    assert send(server, provider_id, steam_store.ticket()).json()["user_id"] == guest["user_id"]
    stranger = send(server, provider_id, steam_store.ticket("76561197960265730")).json()
    ticket = steam_store.ticket("76561197960265730")
    refused = link(ticket, headers)
    expected = {"status": "ERROR", "error": "linked to another account"}
    assert (refused.status_code, refused.json()) == (409, expected)
    for wrong in ({}, {"Authorization": headers["Authorization"]}, headers | {"Factor": "device-2"}):
        assert link(ticket, wrong).status_code == 401
    assert send(server, provider_id, ticket).json()["user_id"] == stranger["user_id"]  # it was not used up
    # The JWT of an account adds no way to sign in to it.
    new_linked_account(server, provider_id, "76561197960265731")
    account = send(server, provider_id, steam_store.ticket("76561197960265731"), factor="device-1").json()
    answer = link(steam_store.ticket("76561197960265732"), headers | {"Authorization": f"Bearer {account['jwt']}"})
    assert (answer.status_code, answer.json()["error"]) == (403, "only a guest can be linked with a ticket")


def test_record_decides_who_may_sign_in(server: Server, steam_store: SteamStore) -> None:
    provider_id = add_store(server, steam_store, create_users=False)
    ticket = steam_store.ticket()
    unknown = send(server, provider_id, ticket)
    assert (unknown.status_code, unknown.json()["error"]) == (403, "no account is linked with this store account")
    user_id = new_linked_account(server, provider_id, "76561197960287930")
    linked = send(server, provider_id, ticket).json()  # it was not used up
    assert (linked["user_id"], linked["created"]) == (user_id, False)
    query(server, "UPDATE users SET disabled = true WHERE user_id = $1", user_id)
    assert send(server, provider_id, steam_store.ticket()).status_code == 401
    server.apply({"identity_providers": [{"id": provider_id, "disabled": True}]})
    for name in (provider_id, "nothing", "Ñ", "x" * 33):
        answer = send(server, name, steam_store.ticket())
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("provider: "), answer.text
    # A provider for tickets has no button, and a browser cannot go there.
    with server.client() as client:
        assert client.get(f"/login/upstream/{provider_id}").status_code == 404


def test_second_factor_is_asked_before_the_ticket_is_used_up(server: Server, steam_store: SteamStore) -> None:
    provider_id = add_store(server, steam_store)
    user_id = new_linked_account(server, provider_id, "76561197960287930", totp_secret=TOTP_SECRET)
    ticket = steam_store.ticket()
    asked = send(server, provider_id, ticket)
    assert (asked.status_code, asked.json()["otp"]) == (401, ["totp"])
    assert send(server, provider_id, ticket, otp="000000").status_code == 401
    answer = send(server, provider_id, ticket, otp=AuthenticatorApp(TOTP_SECRET).code(), factor="device-1").json()
    claims = pyjwt.decode(answer["jwt"], options={"verify_signature": False})
    assert (answer["user_id"], answer["auth"], claims["acr"]) == (user_id, provider_id, "2")
    server.apply({"identity_providers": [{"id": provider_id, "trusted_second_factor": True}]})
    trusted = send(server, provider_id, steam_store.ticket(), factor="device-1").json()
    assert "acr" not in pyjwt.decode(trusted["jwt"], options={"verify_signature": False})


def test_used_ticket_sends_no_code_and_tells_nothing_about_its_user(server: Server, steam_store: SteamStore) -> None:
    """The user has got a second factor since the ticket has signed in, and a guest wants to link the store account."""
    provider_id, other_id = add_store(server, steam_store), add_store(server, steam_store)
    user_id = new_linked_account(server, provider_id, "76561197960287930")
    guest = send(server, other_id, steam_store.ticket(), factor="device-1").json()
    ticket = steam_store.ticket()
    assert send(server, provider_id, ticket).json()["user_id"] == user_id
    query(server, "UPDATE users SET email_2fa = true WHERE user_id = $1", user_id)
    expected = (401, {"status": "ERROR", "error": "invalid credentials"})
    answer = send(server, provider_id, ticket)
    assert (answer.status_code, answer.json()) == expected
    with server.client(headers={"Authorization": f"Bearer {guest['jwt']}", "Factor": "device-1"}) as client:
        answer = client.post("/proxy/api/ticket", json={"provider": provider_id, "ticket": ticket, "link": "1"})
    assert (answer.status_code, answer.json()) == expected
    assert not query(server, "SELECT FROM link_conflicts WHERE user_id = $1", guest["user_id"])
    assert send(server, provider_id, steam_store.ticket()).json()["email_sent"] is True  # the first code


def test_banned_store_account_cannot_start_again(server: Server, steam_store: SteamStore) -> None:
    provider_id = add_store(server, steam_store)
    user_id = send(server, provider_id, steam_store.ticket()).json()["user_id"]
    server.sso("user", "ban", user_id, "--reason", "Cheating")
    for is_erased in (False, True):
        if is_erased:
            server.sso("user", "delete", user_id, "--now", "--yes")
        refused = send(server, provider_id, steam_store.ticket())
        assert (refused.status_code, refused.json()["ban"]["reason"]) == (403, "Cheating"), refused.text
    server.sso("user", "unban", user_id)
    assert send(server, provider_id, steam_store.ticket()).json()["created"] is True


def test_ban_follows_a_store_account_once_and_ends_what_its_next_user_has(
    server: Server, steam_store: SteamStore
) -> None:
    """The store account goes back and forth between two players. Each gets the ban of the application once."""
    provider_id, other_id, application = *(add_store(server, steam_store) for _ in range(2)), new_application(server)
    players = [f"7656119796026573{n}" for n in range(2)]

    def sign_in(player: str, **fields: Any) -> dict[str, Any]:
        return dict(send(server, other_id, steam_store.ticket(player), factor="device-1", **fields).json())

    def link(player: str) -> None:
        query(server, "DELETE FROM linked_identities WHERE provider_id = $1", provider_id)
        headers = {"Authorization": f"Bearer {sign_in(player)['jwt']}", "Factor": "device-1"}
        fields = {"provider": provider_id, "ticket": steam_store.ticket(), "link": "1"}
        with server.client(headers=headers) as client:
            answer = client.post("/proxy/api/ticket", json=fields)
            assert answer.status_code == 200, answer.text

    first, second = (sign_in(player, app_id=application) for player in players)
    link(players[0])
    server.sso("user", "ban", first["user_id"], "--app", str(application))
    link(players[1])
    server.sso("user", "unban", second["user_id"])
    with server.client() as client:  # nothing that the ban ended comes back
        assert client.post("/proxy/api/login", json={"token": second["token"]}).status_code == 401
    for player in (*players, *players):
        link(player)
    counts = "SELECT count(*) AS count FROM user_bans WHERE user_id = ANY ($1::text[]) GROUP BY user_id"
    rows = query(server, counts, [first["user_id"], second["user_id"]])
    assert [row["count"] for row in rows] == [1, 1]
