"""A guest becomes an account, or is merged into one, by a game session with link."""

import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.kit.browser import Browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.game import Game, Session, press_continue
from tests.kit.guest import FACTOR, Device, bearer
from tests.kit.registration import mailed_link, mails_to, new_address, request_mail
from tests.kit.row_locks import changed_when_somebody_waits
from tests.kit.server import Server, until
from tests.kit.session_tokens import claims_of, new_application


@pytest.fixture
def game(server: Server) -> Iterator[Game]:
    with Game(server) as game:
        yield game


def link_session(game: Game, guest: dict[str, Any], **fields: Any) -> Session:
    return game.register(bearer(guest), link="1", factor=FACTOR, **fields)


def register_in(browser: Browser, session: Session) -> str:
    """Registers on the page of the session, and returns the address."""
    address = new_address()
    request_mail(browser, address, f"/register?next={quote(session.page)}")
    browser.get(mailed_link(mails_to(browser.server, address)[0]))
    answer = browser.submit("/register/complete", nick="Ann", password=PASSWORD)
    assert answer.status_code == 303, answer.text
    browser.follow(answer)
    return address


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer x.y.z", "Factor": FACTOR}, "no factor", "wrong factor"]
)
def test_link_needs_the_user_jwt_of_the_guest_and_its_factor(client: httpx.Client, game: Game, headers: Any) -> None:
    guest = Device().sign_in(client)
    if isinstance(headers, str):
        headers = bearer(guest, "other") if headers == "wrong factor" else {"Authorization": f"Bearer {guest['jwt']}"}
    assert game.get_gsid(headers, link="1").status_code == 401


def test_factor_of_the_guest_may_be_any_text(client: httpx.Client, game: Game) -> None:
    guest = Device().sign_in(client, factor="Gerät 1")
    headers: Any = bearer(guest) | {"Factor": "Gerät 1".encode()}  # UTF-8, as clients send it
    answer = game.get_gsid(headers, link="1", factor="Gerät 1")
    assert answer.status_code == 200, answer.text


def test_an_account_cannot_be_linked(server: Server, game: Game, client: httpx.Client) -> None:
    login = new_user(server)
    data = client.post("/proxy/api/login", json={"login": login, "password": PASSWORD, "factor": FACTOR}).json()
    answer = game.get_gsid(bearer(data), link="1")
    assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (400, "link")


def a_day_passes(server: Server, user_id: str) -> None:
    query(server, "UPDATE device_keys SET created = created - interval '1 day' WHERE user_id = $1", user_id)


def test_a_guest_who_registers_keeps_the_user_id_the_key_and_the_data(
    server: Server, client: httpx.Client, game: Game
) -> None:
    device, application = Device(), new_application(server)
    guest = device.sign_in(client, gapp_id=application)
    a_day_passes(server, guest["user_id"])
    own = {"public_data": {"level": {"value": True}}}
    server.apply({"permissions": [{"user_id": guest["user_id"], "application_id": application, "data": own}]})
    session = link_session(game, guest, gapp_id=application)
    with Browser(server) as browser:
        assert "guest" in browser.get(session.page).text
        address = register_in(browser, session)
    data = session.poll().json()
    assert (data["status"], data["linked"], data["user_id"]) == ("OK", "upgraded", guest["user_id"])
    assert "guest" not in data
    assert "merged_from" not in data
    assert "guest" not in claims_of(data)
    again = device.sign_in(client, gapp_id=application)
    assert (again["user_id"], again["tags"], "guest" in again) == (guest["user_id"], "", False)
    assert client.post("/proxy/api/login", json={"login": address, "password": PASSWORD}).json()["auth"] == "login"
    events = query(server, "SELECT type FROM change_events WHERE user_id = $1", guest["user_id"])
    assert "user_upgraded" in {row["type"] for row in events}
    # A reset of the password removes keys from before the address.
    earlier = (
        "SELECT FROM device_keys k JOIN users u USING (user_id) WHERE user_id = $1 AND created < email_verified_at"
    )
    assert not query(server, earlier, guest["user_id"])


def test_a_guest_is_merged_into_an_account_after_a_preview(server: Server, client: httpx.Client, game: Game) -> None:
    device, application = Device(), new_application(server)
    server.apply(
        {"roles": {str(application): [{"name": "founder", "meta": {"private_data": {"vip": {"value": True}}}}]}}
    )
    guest = device.sign_in(client, gapp_id=application)
    server.apply(
        {"permissions": [{"user_id": guest["user_id"], "application_id": application, "data": {"roles": ["founder"]}}]}
    )
    login = new_user(server)
    a_day_passes(server, guest["user_id"])
    session = link_session(game, guest, gapp_id=application)
    with Browser(server) as browser:
        browser.get(session.page)
        answer = browser.submit("/login", login=login, password=PASSWORD)
        page = browser.follow(answer)
        assert session.status == "pending"  # signing in alone merges nothing
        assert session.match in page.text
        assert "founder" in page.text
        assert "vip" in page.text
        browser.follow(browser.submit(f"{session.decision}/continue"))
    data = session.poll().json()
    assert (data["linked"], data["merged_from"]) == ("merged", guest["user_id"])
    assert data["user_id"] != guest["user_id"]
    assert data["permissions"] == {str(application): ["vip"]}
    assert device.sign_in(client)["user_id"] == data["user_id"]
    recent = "SELECT FROM device_keys WHERE user_id = $1 AND created > now() - interval '1 hour'"
    assert query(server, recent, data["user_id"]), "for the account, the key is new"
    assert until(lambda: any("guest of a game was added" in mail for mail in mails_to(server, login)))
    # The guest's own tokens have ended.
    assert client.post("/proxy/api/login", json={"token": guest["token"]}).status_code == 401


def test_nobody_merges_a_guest_without_both(server: Server, client: httpx.Client, game: Game) -> None:
    """The browser alone cannot name a guest, and the game alone cannot choose an account."""
    guest, victim = Device().sign_in(client), new_user(server)
    ordinary = game.register(factor=FACTOR)
    with Browser(server) as browser:
        browser.sign_in(victim)
        press_continue(browser, ordinary)
    data = ordinary.poll().json()
    assert "linked" not in data
    # A link session that the player denies leaves both as they are.
    session = link_session(game, guest)
    with Browser(server) as browser:
        browser.sign_in(victim)
        browser.follow(browser.get(session.page))
        browser.submit(f"{session.decision}/deny")
    assert session.poll().json()["status"] == "ERROR"
    assert query(server, "SELECT merged_into FROM users WHERE user_id = $1", guest["user_id"])[0][0] is None


def test_guest_who_cannot_be_merged_is_refused_while_the_session_goes_on(
    server: Server, client: httpx.Client, game: Game
) -> None:
    """The guest is banned at another game. The player may use another account, or stop the sign-in."""
    guest, login, applications = Device().sign_in(client), new_user(server), [new_application(server) for _ in "12"]
    server.sso("user", "ban", guest["user_id"], "--app", str(applications[0]))
    session = link_session(game, guest, gapp_id=applications[1])
    with Browser(server) as browser:
        browser.sign_in(login)
        page = browser.get(session.page)
        page = browser.follow(page) if page.is_redirect else page
        assert (page.status_code, "cannot be added to the account" in page.text) == (200, True), page.text
        assert f"{session.decision}/continue" not in page.text
        assert "Use another account" in page.text
        assert session.status == "pending"
        browser.submit(f"{session.decision}/deny")
    assert session.poll().json()["status"] == "ERROR"


@pytest.mark.parametrize("ended", ["everything", "its sign-in"])
@pytest.mark.parametrize("registers", [True, False])
def test_link_session_does_not_outlive_the_revocation_of_its_guest(
    server: Server, client: httpx.Client, game: Game, registers: bool, ended: str
) -> None:
    """A thief of the guest's user JWT has started the session, and what was issued to the guest was ended since."""
    guest, login = Device().sign_in(client), new_user(server)
    session = link_session(game, guest)
    if ended == "everything":
        server.sso("user", "end-sessions", guest["user_id"])
    else:
        assert client.post("/proxy/api/logout", json={"token": guest["token"]}).status_code == 200
    with Browser(server) as thief:
        if registers:
            register_in(thief, session)
        else:
            thief.sign_in(login)
            thief.open_account()
            csrf = {"csrf": thief.form("/logout")["csrf"]}
            assert thief.get(session.decision).status_code == 410
            thief.follow(thief.post(f"{session.decision}/continue", csrf))
    (row,) = query(server, "SELECT login, merged_into FROM users WHERE user_id = $1", guest["user_id"])
    assert tuple(row) == ("", None)
    assert session.row("linked")["linked"] is None


def test_link_session_of_another_sign_in_of_the_guest_goes_on(server: Server, client: httpx.Client, game: Game) -> None:
    device, login = Device(), new_user(server)
    ended, guest = device.sign_in(client), device.sign_in(client)
    session = link_session(game, guest)
    assert client.post("/proxy/api/logout", json={"token": ended["token"]}).status_code == 200
    with Browser(server) as browser:
        browser.sign_in(login)
        press_continue(browser, session)
    assert session.poll().json()["linked"] == "merged"


def test_browser_that_was_signed_out_meanwhile_merges_nothing(server: Server, client: httpx.Client, game: Game) -> None:
    """The merge waits for a change of the password, which ends the session of the browser that has confirmed it."""
    guest, login = Device().sign_in(client), new_user(server)
    session = link_session(game, guest)
    with Browser(server) as browser:
        browser.sign_in(login)
        browser.follow(browser.get(session.page))
        merge = threading.Thread(target=lambda: browser.submit(f"{session.decision}/continue"))
        revoke = f"UPDATE users SET valid_from = valid_from + 1 WHERE login = '{login}'"
        with changed_when_somebody_waits(server, revoke):
            merge.start()
        merge.join()
    assert query(server, "SELECT merged_into FROM users WHERE user_id = $1", guest["user_id"])[0][0] is None
    assert session.status == "pending"


def test_a_new_key_does_not_bring_a_banned_player_back(server: Server, client: httpx.Client, game: Game) -> None:
    """A new key is a new guest, who gets nothing of the banned account: neither by a link nor by a merge."""
    login, banned = new_user(server), Device()
    server.sso("user", "ban", login, "--reason", "Cheating")
    guest = Device().sign_in(client)
    session = link_session(game, guest)
    with Browser(server) as browser:
        browser.get(session.page)
        refused = browser.submit("/login", login=login, password=PASSWORD)
        assert (refused.status_code, "Cheating" in refused.text) == (403, True)
    user_id = banned.sign_in(client)["user_id"]
    server.sso("user", "ban", user_id)
    assert "banned" in server.sso("user", "merge", user_id, guest["user_id"], "--yes", check=False).stderr
    merged = "SELECT FROM users WHERE user_id = ANY ($1) AND merged_into IS NOT NULL"
    assert not query(server, merged, [guest["user_id"], user_id])


def test_undoing_the_merge_of_a_link_session_signs_the_device_out_of_the_account(
    server: Server, client: httpx.Client, game: Game
) -> None:
    """The device of somebody else keeps neither the login of the session nor what its key has obtained since."""
    device, login = Device(), new_user(server)
    guest = device.sign_in(client)
    session = link_session(game, guest)
    with Browser(server) as browser:
        browser.sign_in(login)
        press_continue(browser, session)
    obtained = [session.poll().json(), device.sign_in(client)]
    account = obtained[0]["user_id"]
    assert [data["user_id"] for data in obtained] == [account, account] != [guest["user_id"]] * 2
    server.sso("user", "unmerge", login, guest["user_id"])
    for data in obtained:
        for name in ("token", "stoken"):
            assert client.post("/proxy/api/login", json={"token": data[name]}).status_code == 401
        assert game.get_gsid(bearer(data), link="1").status_code == 401
    assert device.sign_in(client)["user_id"] == guest["user_id"]
    assert client.post("/proxy/api/login", json={"login": login, "password": PASSWORD}).status_code == 200
