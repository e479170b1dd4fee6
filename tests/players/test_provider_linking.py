"""Identity providers and players: newcomers on the page of a link session, and store accounts of two accounts."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from sso.core.ids import digest, secret_token
from sso.upstream.link_conflict_store import masked_login
from tests.kit.browser import Browser, Forms, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.game import Game
from tests.kit.guest import FACTOR, Device, bearer
from tests.kit.oauth import Browser as AccountBrowser
from tests.kit.oauth import close_all
from tests.kit.registration import mailed_link, mails_to, new_address
from tests.kit.row_locks import changed_when_somebody_waits
from tests.kit.server import Server, until
from tests.upstream.conftest import provider
from tests.upstream.player import add_provider, follow, go, is_signed_in, link, player, press, sign_in, start_link
from tests.upstream.stand_ins import CodeProvider, Person
from tests.upstream.stores import SteamStore, add_store, link_account, opened

__all__ = ["provider"]


@pytest.fixture
def game(server: Server) -> Iterator[Game]:
    with Game(server) as game:
        yield game
    close_all()


@pytest.mark.parametrize("trusted", [True, False])
def test_a_newcomer_of_a_provider_keeps_the_user_id_of_the_guest(
    server: Server, client: httpx.Client, game: Game, provider: CodeProvider, trusted: bool
) -> None:
    """With a verified address the newcomer confirms a nickname, without one the usual registration comes first."""
    provider_id = add_provider(server, provider, trusted_email=trusted)
    address = new_address()
    provider.person = Person(subject=f"newcomer {trusted}", email=address, name="Newcomer")
    device = Device()
    guest = device.sign_in(client)
    session = game.register(bearer(guest), link="1", factor=FACTOR)
    browser = player(server)
    page = follow(browser, sign_in(browser, provider_id, session.page))
    assert session.match in page.text  # somebody who did not start the game must notice
    if trusted:
        answer = press(browser, "/login/identity", "/login/identity/create", nick="Newcomer")
    else:
        answer = _register(browser, address)
        assert answer.headers["Location"] == "/login/identity/link"
        answer = press(browser, "/login/identity/link", "/login/identity/link")
    follow(browser, answer)
    press(browser, session.decision, f"{session.decision}/continue")
    data = session.poll().json()
    assert (data["status"], data["linked"], data["user_id"]) == ("OK", "upgraded", guest["user_id"])
    assert device.sign_in(client)["user_id"] == guest["user_id"]
    (row,) = query(server, "SELECT user_id FROM linked_identities WHERE provider_id = $1", provider_id)
    assert row["user_id"] == guest["user_id"]
    assert len(query(server, "SELECT FROM users WHERE lower(login) = lower($1)", address)) == 1


def _register(browser: Any, address: str) -> httpx.Response:
    path = f"/register?next={quote('/login/identity/link')}"
    press(browser, path, "/register", email=address)
    link = mailed_link(mails_to(browser.server, address)[0])
    return press(browser, link, "/register/complete", nick="Ann", password=PASSWORD)


CONFLICT = "/login/identity/conflict"


@dataclass
class Conflict:
    """A browser in which ``ann`` wanted to link an account at a provider that belongs to ``bob``."""

    browser: AccountBrowser
    ann: str
    bob: str
    provider_id: str

    @property
    def owner(self) -> str:
        (row,) = query(
            self.browser.server,
            "SELECT u.login FROM linked_identities JOIN users u USING (user_id) WHERE provider_id = $1",
            self.provider_id,
        )
        return str(row["login"])

    def sign_in_as(self, login: str) -> str:
        """Signs in where the page asks for it, and returns the page that follows."""
        path = f"/login?next={CONFLICT}"
        return follow(self.browser, press(self.browser, path, "/login", login=login, password=PASSWORD)).text

    def send(self, decision: str) -> httpx.Response:
        """Sends a decision with the CSRF token of the session, also where the page has no such form."""
        return self.browser.http.post(f"{CONFLICT}/{decision}", data={"csrf": self.csrf()})

    def csrf(self) -> str:
        return Forms(self.browser.http.get("/account").text).by_action["/logout"][0]["csrf"]


@pytest.fixture
def conflict(server: Server, provider: CodeProvider) -> Iterator[Conflict]:
    provider_id = add_provider(server, provider)
    bob, browser = player(server), player(server)
    link(bob, provider_id)
    browser.sign_in()
    url = start_link(browser, provider_id).headers["Refresh"].partition("url=")[2]
    page = follow(browser, go(browser, go(browser, url).headers["Location"]))
    assert page.status_code == 200
    assert masked_login(bob.login) in page.text
    assert bob.login not in page.text
    yield Conflict(browser, browser.login, bob.login, provider_id)
    close_all()


def test_whoever_holds_only_one_of_the_accounts_moves_and_merges_nothing(conflict: Conflict) -> None:
    for decision in ("move", "merge"):
        assert conflict.send(decision).headers["Location"] == CONFLICT
    stranger = new_user(conflict.browser.server)
    assert "Sign in to the other account" in conflict.sign_in_as(stranger)
    assert conflict.send("move").headers["Location"] == CONFLICT
    with Browser(conflict.browser.server) as other:  # the owner, in a browser that has proven nothing else
        other.sign_in(conflict.bob)
        assert other.get(CONFLICT).headers["Location"] == "/account"
        other.open_account()
        csrf = other.form("/logout")["csrf"]
        assert other.post(f"{CONFLICT}/move", {"csrf": csrf}).status_code == 303
    assert conflict.owner == conflict.bob


def test_owner_of_both_moves_the_link(conflict: Conflict) -> None:
    page = conflict.sign_in_as(conflict.bob)
    assert "Both accounts are yours" in page
    assert conflict.owner == conflict.bob  # the sign-in alone moves nothing
    assert press(conflict.browser, CONFLICT, f"{CONFLICT}/move").status_code == 200
    assert conflict.owner == conflict.ann
    assert conflict.send("move").headers["Location"] == CONFLICT  # the question was answered
    for login, text in ((conflict.bob, "can no longer be used with"), (conflict.ann, "can now be used with")):
        until(lambda login=login, text=text: any(text in mail for mail in mails_to(conflict.browser.server, login)))
    assert is_signed_in(conflict.browser)


def test_page_is_about_the_last_question_of_the_browser(conflict: Conflict) -> None:
    server = conflict.browser.server
    earlier = new_user(server, nick="Earlier")
    sql = "DELETE FROM link_conflicts c USING users u WHERE u.user_id = c.user_id AND u.login = $1 RETURNING c.*"
    (last,) = query(server, sql, conflict.ann)
    insert = """INSERT INTO link_conflicts (user_id, link_id, browser, valid_from, expires)
        SELECT user_id, $2, $3, valid_from, $4 FROM users WHERE login = $1"""
    of_browser = (last["link_id"], last["browser"])
    query(server, insert, earlier, *of_browser, last["expires"] - timedelta(minutes=1))
    query(server, insert, conflict.ann, *of_browser, last["expires"])
    assert "Earlier" not in conflict.sign_in_as(conflict.bob)
    assert press(conflict.browser, CONFLICT, f"{CONFLICT}/move").status_code == 200
    assert conflict.owner == conflict.ann


def test_last_way_to_sign_in_is_not_moved(conflict: Conflict) -> None:
    conflict.sign_in_as(conflict.bob)
    query(conflict.browser.server, "UPDATE users SET password_hash = NULL WHERE login = $1", conflict.bob)
    assert press(conflict.browser, CONFLICT, f"{CONFLICT}/move").status_code == 409
    assert conflict.owner == conflict.bob


def test_owner_of_both_merges_the_accounts(conflict: Conflict) -> None:
    server = conflict.browser.server
    conflict.sign_in_as(conflict.bob)
    assert "Merge the accounts" in conflict.browser.http.get(CONFLICT).text
    assert press(conflict.browser, CONFLICT, f"{CONFLICT}/merge").status_code == 200
    assert conflict.owner == conflict.ann
    (row,) = query(
        server, "SELECT i.login FROM users u JOIN users i ON i.user_id = u.merged_into WHERE u.login = $1", conflict.bob
    )
    assert row["login"] == conflict.ann
    assert not is_signed_in(conflict.browser)


def test_merge_is_mailed_to_both_owners_and_to_the_address_before_a_change(conflict: Conflict) -> None:
    server, old, merged = conflict.browser.server, new_address(), "was merged into the account"
    new_undo_link(server, conflict.bob, old)
    conflict.sign_in_as(conflict.bob)
    assert press(conflict.browser, CONFLICT, f"{CONFLICT}/merge").status_code == 200
    for login in (conflict.bob, conflict.ann, old):
        assert until(lambda login=login: any(merged in mail for mail in mails_to(server, login)))


def test_link_that_undoes_a_change_of_the_address_waits_until_the_merge_is_undone(conflict: Conflict) -> None:
    """A thief has changed the address and merged the account. The owner opens the link of the mail about the change."""
    server, old = conflict.browser.server, new_address()
    path = new_undo_link(server, conflict.bob, old)
    conflict.sign_in_as(conflict.bob)
    with Browser(server) as owner:
        owner.get(path)
        form = owner.form("/email/undo")
        assert press(conflict.browser, CONFLICT, f"{CONFLICT}/merge").status_code == 200
        for answer in (owner.get(path), owner.post("/email/undo", form)):
            assert (answer.status_code, "ask support soon to separate the accounts" in answer.text) == (409, True)
        server.sso("user", "unmerge", conflict.ann, conflict.bob)
        assert owner.post("/email/undo", form).headers["Location"] == "/reset"
    assert query(server, "SELECT merged_into FROM users WHERE login = $1", old)[0]["merged_into"] is None


def new_undo_link(server: Server, login: str, old_login: str) -> str:
    """Creates the link of the mail about a change of the address from ``old_login`` to ``login``, returns its path."""
    secret = secret_token()
    sql = """INSERT INTO mailed_links (digest, purpose, user_id, data, expires)
        SELECT $1, 'email_undo', user_id, jsonb_build_object('login', $3::text), now() + interval '7 days'
        FROM users WHERE login = $2"""
    query(server, sql, digest(secret), login, old_login)
    return f"/email/undo?token={secret}"


def test_revocation_of_the_account_ends_the_question(conflict: Conflict) -> None:
    conflict.sign_in_as(conflict.bob)
    query(conflict.browser.server, "UPDATE users SET valid_from = valid_from + 1 WHERE login = $1", conflict.ann)
    assert conflict.browser.http.get(CONFLICT).headers["Location"] == "/account"
    conflict.send("move")
    assert conflict.owner == conflict.bob


@pytest.mark.parametrize("decision", ["move", "merge"])
def test_owner_who_was_signed_out_meanwhile_decides_nothing(conflict: Conflict, decision: str) -> None:
    """The decision waits for a change of the password, which ends the session of the browser that has sent it."""
    conflict.sign_in_as(conflict.bob)
    form = {"csrf": conflict.csrf()}
    answers: list[int] = []
    http = conflict.browser.http
    send = threading.Thread(target=lambda: answers.append(http.post(f"{CONFLICT}/{decision}", data=form).status_code))
    revoke = f"UPDATE users SET valid_from = valid_from + 1 WHERE login = '{conflict.bob}'"
    with changed_when_somebody_waits(conflict.browser.server, revoke):
        send.start()
    send.join()
    assert answers == [409]
    assert conflict.owner == conflict.bob


def test_guest_in_a_game_gets_a_conflict_and_the_owner_of_both_decides(
    server: Server, client: httpx.Client, game: Game
) -> None:
    with opened(store := SteamStore()):
        provider_id, login, device = add_store(server, store), new_user(server), Device()
        link_account(server, provider_id, "76561197960265731", login)
        guest = device.sign_in(client)
        body = {"provider": provider_id, "ticket": store.ticket("76561197960265731"), "link": "1"}
        refused = client.post("/proxy/api/ticket", json=body, headers=bearer(guest))
        assert (refused.status_code, refused.json()["error"]) == (409, "linked to another account")
        session = game.register(bearer(guest), link="1", factor=FACTOR)
        path = f"{CONFLICT}?gsid={session.gsid}"
        with Browser(server) as browser:
            assert path in browser.get(session.page).text
            page = browser.get(path).text
            assert masked_login(login) in page
            assert session.match in page
            browser.get(f"/login?next={quote(path)}")
            page = browser.follow(browser.submit("/login", login=login, password=PASSWORD)).text
            assert "Both accounts are yours" in page
            assert session.match in page  # the session may be that of another player
            assert browser.submit(f"{CONFLICT}/move").status_code == 200
        moved = client.post("/proxy/api/ticket", json=body | {"ticket": store.ticket("76561197960265731"), "link": "0"})
        assert moved.json()["user_id"] == guest["user_id"]
    assert session.status == "pending"  # the guest can still become an account
