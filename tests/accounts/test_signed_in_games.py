"""Games on the account page: the list, and signing out of one or of all."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sso.accounts.session_token_statements import MAX_USER_SIGN_INS
from tests.kit.browser import Browser, Forms, each_worker, fresh_browser, new_user, query
from tests.kit.server import Server
from tests.kit.session_tokens import claims_of, is_valid_jwt, is_valid_token, new_application, renew, sign_in

pytestmark = pytest.mark.two_workers

LOGOUT = "/proxy/api/logout"


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


def sid_of(data: dict[str, Any]) -> str:
    return str(claims_of(data)["sid"])


def forms(browser: Browser, action: str) -> list[dict[str, str]]:
    return Forms(browser.page.text).by_action.get(action, [])


@pytest.mark.parametrize("worker", [0, 1])
def test_sign_out_everywhere_else_ends_session_tokens_and_jwts(server: Server, login: str, worker: int) -> None:
    with each_worker(server) as workers, fresh_browser(server, login) as browser:
        first = sign_in(workers[0], login)
        data = renew(workers[1], first["token"])
        browser.open_account()
        browser.follow(browser.submit("/account/sessions/end-others"))
        assert browser.notice == "You have been signed out everywhere else."
        assert browser.is_signed_in
        for made in (first, data):
            assert not is_valid_token(workers[worker], made["token"])
            assert not is_valid_token(workers[worker], made["stoken"])
            assert not is_valid_jwt(workers[worker], made["jwt"])
        later = sign_in(workers[worker], login)
        assert is_valid_jwt(workers[1 - worker], later["jwt"])


def test_sign_out_everywhere_else_is_offered_if_only_a_game_is_signed_in(
    client: httpx.Client, server: Server, login: str
) -> None:
    with fresh_browser(server, login) as browser:
        assert "/account/sessions/end-others" not in browser.open_account().text
        sign_in(client, login)
        assert "/account/sessions/end-others" in browser.open_account().text


def test_account_page_lists_games_and_signs_out_one_of_them(server: Server, login: str) -> None:
    game, other = new_application(server), new_application(server)
    with each_worker(server) as workers, fresh_browser(server, login) as browser:
        one, two = sign_in(workers[0], login, app_id=game), sign_in(workers[0], login, app_id=other)
        derived = renew(workers[1], one["token"])
        page = browser.open_account().text
        assert page.count(f"<bdi>Game {game}</bdi></h3>") == page.count(f"<bdi>Game {other}</bdi></h3>") == 1
        assert re.search(r"First used <time datetime=\"[^\"]+\">just now</time>", page)
        fields = next(form for form in forms(browser, "/account/games/end") if sid_of(one) in form["ids"])
        browser.follow(browser.post("/account/games/end", fields))
        assert browser.notice == "You have been signed out of that game."
        assert f"<bdi>Game {game}</bdi></h3>" not in browser.open_account().text
        for worker in workers:
            for made in (one, derived):
                assert not is_valid_token(worker, made["token"])
                assert not is_valid_token(worker, made["stoken"])
                assert not is_valid_jwt(worker, made["jwt"])
            assert is_valid_jwt(worker, two["jwt"])
            assert is_valid_token(worker, two["token"])
        assert browser.is_signed_in


def test_account_page_shows_one_entry_for_sign_ins_of_one_game_from_one_address(
    client: httpx.Client, server: Server, login: str
) -> None:
    made = [sign_in(client, login) for _ in range(3)]
    with fresh_browser(server, login) as browser:
        browser.open_account()
        (form,) = forms(browser, "/account/games/end")
        assert set(form["ids"].split()) == {sid_of(data) for data in made}
        browser.submit("/account/games/end")
        assert not any(is_valid_token(client, data["token"]) for data in made)


def test_sign_ins_that_have_ended_are_limited(client: httpx.Client, server: Server, login: str) -> None:
    """Each sign-in of the user reads them: a program that signs in and out all day must not make that slow."""
    ended = """INSERT INTO sign_ins (id, user_id, last_used, expires, ended)
        SELECT 'ended ' || user_id || n, user_id, now() - n * interval '1 s', now() + interval '1 day', true
        FROM users, generate_series(1, $2) n WHERE login = $1"""
    query(server, ended, login, MAX_USER_SIGN_INS + 5)
    data = sign_in(client, login)
    rows = query(server, "SELECT s.ended FROM sign_ins s JOIN users USING (user_id) WHERE login = $1", login)
    assert [row["ended"] for row in rows].count(True) == MAX_USER_SIGN_INS - 1
    assert is_valid_jwt(client, data["jwt"])


def test_user_cannot_sign_out_a_game_of_another_user(client: httpx.Client, server: Server, login: str) -> None:
    data = sign_in(client, new_user(server))
    sign_in(client, login)
    with fresh_browser(server, login) as browser:
        browser.open_account()
        assert browser.submit("/account/games/end", ids=sid_of(data)).status_code == 303
    assert is_valid_jwt(client, data["jwt"])
    assert is_valid_token(client, data["token"])


@pytest.mark.parametrize("kind", ["token", "stoken"])
def test_game_signs_its_player_out(server: Server, login: str, kind: str) -> None:
    with each_worker(server) as workers, fresh_browser(server, login) as browser:
        one, two = sign_in(workers[0], login), sign_in(workers[0], login)
        derived = renew(workers[1], one["token"])
        for _ in range(2):
            assert workers[1].post(LOGOUT, json={"token": derived[kind]}).json() == {"status": "OK"}
        browser.open_account()
        assert [form["ids"] for form in forms(browser, "/account/games/end")] == [sid_of(two)]
        for worker in workers:
            for made in (one, derived):
                assert not is_valid_token(worker, made["token"])
                assert not is_valid_jwt(worker, made["jwt"])
            assert is_valid_jwt(worker, two["jwt"])
            assert is_valid_token(worker, two["token"])
        assert browser.get("/account/history").text.count("Signed out of a game") == 1


def test_signing_out_needs_a_token_and_does_not_tell_which_are_known(client: httpx.Client) -> None:
    for token in ("x", "\N{PILE OF POO}", "x" * 256):
        assert client.post(LOGOUT, data={"token": token}).json() == {"status": "OK"}
    for body in ({}, {"token": ""}, {"token": 1}, {"token": "x" * 257}, {"token": None}):
        refused = client.post(LOGOUT, json=body)
        assert refused.status_code == 400
        assert "token: " in refused.json()["error"]


def test_signing_out_of_no_game_is_no_error(client: httpx.Client, server: Server, login: str) -> None:
    sign_in(client, login)
    with fresh_browser(server, login) as browser:
        browser.open_account()
        for ids in ("", " ", "x", "'", "x " * 500, "\N{PILE OF POO}"):
            assert browser.submit("/account/games/end", ids=ids).status_code == 303, ids
