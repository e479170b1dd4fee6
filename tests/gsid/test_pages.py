"""The pages of a game login: content, confirmation, denial; opening a link changes nothing."""

import html
import re
from typing import Any

import pytest

from tests.kit.browser import (
    OWN_SCRIPTS,
    AuthenticatorApp,
    Browser,
    Forms,
    fresh_browser,
    mailed_codes,
    new_user,
    user_id_of,
)
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game, Session, outcome, press_continue, public_text, sign_in_on_game_page, violation
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

GONE = "This link no longer works"
NEAR, FAR = "same network as this browser", "started on a different network from the one you are using now"
PAYLOADS = (
    "<img src=x onerror=alert(1)>", '"onfocus=alert(1) autofocus="', "</script><script>alert(1)</script>", "{{7*7}}",
    "+ADw-script+AD4-", "\u202eevil\u2066", "javascript:alert(1)", "' onclick='x",
)  # fmt: skip


def text_of(page: str) -> str:
    """Returns the visible text."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", page)))


def buttons(page: str) -> list[str]:
    """Returns the texts of the buttons that are shown without JavaScript."""
    found = re.findall(r"<button([^>]*)>(.*?)</button>", page, re.DOTALL)
    return [text_of(text).strip() for attributes, text in found if not attributes.endswith(" hidden")]


def test_opening_a_link_does_not_confirm(game: Game, browser: Browser) -> None:
    """Not even for a signed-in user who opens a link from an attacker."""
    session = game.register(public_key=public_text(rsa_key()), app_id=10)
    for path in (session.page, session.decision, f"/login?next=/%3Fgsid%3D{session.gsid}"):
        for method in ("GET", "HEAD"):
            answer = browser.http.request(method, path, follow_redirects=True)
            assert answer.status_code == 200
            assert str(answer.url).endswith(session.decision)
    assert browser.http.get(f"{session.decision}/continue").status_code == 405
    assert outcome(session.signed(rsa_key()))[0] == "RETRY"
    assert session.status == "pending"


def test_page_shows_game_distributor_address_and_match_code(game: Game, browser: Browser, server: Server) -> None:
    session = game.register(app_id=10, distr="steam")
    session.change("created = created - interval '150 s'")
    with Browser(server) as anonymous:
        for shown in (anonymous.get(session.page), browser.follow(browser.get(session.page))):
            text = text_of(shown.text)
            for word in ("Tanks", "steam", game.address, "2 min ago", session.match):
                assert word in text, word


def test_page_names_the_game_of_two_applications(game: Game, browser: Browser) -> None:
    session = game.register(app_id=11, gapp_id=10)
    assert "Continue to Tanks?" in text_of(browser.follow(browser.get(session.page)).text)


def test_page_shows_the_age_of_a_new_session(game: Game, browser: Browser) -> None:
    assert "less than a minute ago" in browser.follow(browser.get(game.register().page)).text


def test_page_says_whether_game_and_browser_are_on_the_same_network(
    game: Game, browser: Browser, server: Server
) -> None:
    with Game(server, "127.0.0.1") as near:
        for session, expected, unexpected in ((game.register(), FAR, NEAR), (near.register(), NEAR, FAR)):
            shown = browser.follow(browser.get(session.page)).text
            assert expected in shown
            assert unexpected not in shown


def test_login_form_is_on_the_page_of_the_session(game: Game, server: Server, ann: str) -> None:
    session = game.register(app_id=10)
    with Browser(server) as browser:
        shown = browser.get(session.page)
        assert shown.status_code == 200
        assert buttons(shown.text) == ["Sign in and continue to Tanks"]
        assert "<script>" not in shown.text
        answer = browser.submit("/login", login=ann, password=PASSWORD)
        assert answer.headers["Location"] == session.decision
        assert "The game is not responding" in browser.follow(answer).text  # the game has not polled yet
        assert session.status == "confirmed"
        assert outcome(session.poll())[0] == "OK"
        assert "You are signed in" in browser.get(session.decision).text
        assert browser.is_signed_in


def test_button_of_a_session_without_an_application_says_your_game(game: Game, server: Server) -> None:
    with Browser(server) as browser:
        assert buttons(browser.get(game.register().page).text) == ["Sign in and continue to your game"]


@pytest.mark.parametrize(
    ("language", "button", "decide", "end"),
    [
        ("de", "Anmelden und {} fortsetzen", "Anmeldung für {} bestätigen?", "Geh zurück in {};"),
        ("es", "Iniciar sesión y continuar en {}", "¿Continuar en {}?", "Vuelve a {};"),
        ("fr", "Se connecter et continuer vers {}", "Continuer vers {} ?", "Retournez dans {}"),
    ],
)
def test_pages_are_translated_and_the_match_code_is_not(
    game: Game, server: Server, language: str, button: str, decide: str, end: str
) -> None:
    session, headers = game.register(app_id=10), {"Accept-Language": language}
    with Browser(server, headers=headers) as anonymous:
        anonymous.get(session.page)
        assert buttons(anonymous.page.text) == [button.format("Tanks")]
        assert f'<p class="words" lang="en">{session.match}</p>' in anonymous.page.text
    login = new_user(server)
    with fresh_browser(server, login, headers=headers) as reader:
        assert decide.format("Tanks") in text_of(reader.follow(reader.get(session.page)).text)
        assert session.match in reader.page.text
        press_continue(reader, session)
        assert outcome(session.poll())[0] == "OK"
        shown = reader.get(session.decision)
        assert end.format("Tanks") in text_of(shown.text)
        assert shown.headers["Content-Language"] == language


def test_your_game_is_translated(game: Game, server: Server) -> None:
    with Browser(server, headers={"Accept-Language": "de"}) as browser:
        assert buttons(browser.get(game.register().page).text) == ["Anmelden und dein Spiel fortsetzen"]


def test_wrong_password_confirms_nothing_and_shows_the_page_again(game: Game, server: Server, ann: str) -> None:
    session = game.register(app_id=10)
    with Browser(server) as browser:
        assert sign_in_on_game_page(browser, session, ann, "wrong").status_code == 401
        assert browser.problem
        assert session.match in browser.page.text
        assert session.status == "pending"
        assert browser.submit("/login", login=ann, password=PASSWORD).status_code == 303
    assert session.status == "confirmed"


def test_login_throttle_applies_on_the_page_of_a_session(game: Game, server: Server) -> None:
    login, session = new_user(server), game.register()
    with Browser(server) as browser:
        statuses = {sign_in_on_game_page(browser, session, login, "wrong").status_code for _ in range(15)}
        assert statuses == {401, 429}
        assert sign_in_on_game_page(browser, session, login, PASSWORD).status_code == 429
    assert session.status == "pending"


def test_second_factor_confirms(game: Game, server: Server) -> None:
    login, app = new_user(server, totp_secret=TOTP_SECRET, nick="Bob"), AuthenticatorApp(TOTP_SECRET)
    session = game.register(app_id=10)
    with Browser(server) as browser:
        browser.follow(sign_in_on_game_page(browser, session, login, PASSWORD))
        assert session.status == "pending"
        assert session.match in browser.page.text
        assert buttons(browser.page.text)[0] == "Continue to Tanks"
        assert browser.submit("/login/code", otp=app.wrong()).status_code == 401
        assert session.match in browser.page.text
        assert session.status == "pending"
        answer = browser.submit("/login/code", otp=app.code())
        assert answer.headers["Location"] == session.decision
    assert outcome(session.poll())[0] == "OK"


def test_mailed_code_confirms(game: Game, server: Server) -> None:
    login = new_user(server, email_2fa=True)
    session = game.register()
    with Browser(server) as browser:
        browser.follow(sign_in_on_game_page(browser, session, login, PASSWORD))
        assert browser.submit("/login/code/resend").status_code == 429
        assert session.match in browser.page.text
        code = mailed_codes(server, login)[-1]
        assert browser.submit("/login/code", otp=code).status_code == 303
    assert session.status == "confirmed"


def test_signed_in_user_confirms_with_a_button(game: Game, browser: Browser) -> None:
    session = game.register(app_id=10)
    answer = browser.get(session.page)
    assert (answer.status_code, answer.headers["Location"]) == (303, session.decision)
    assert buttons(browser.follow(answer).text)[-3:] == ["Continue as Ann", "This was not me", "Use another account"]
    assert session.status == "pending"
    answer = browser.submit(f"{session.decision}/continue")
    assert answer.headers["Location"] == session.decision
    assert session.status == "confirmed"
    assert outcome(session.poll())[0] == "OK"


ADMINISTRATOR = "You have administrative rights here. The game will be able to use them in your name."


@pytest.mark.parametrize("right", ["root", "rule", "project", "application"])
def test_administrator_is_warned_that_the_game_gets_administrative_rights(
    game: Game, server: Server, right: str
) -> None:
    login = new_user(server, nick="Root")
    user_id = user_id_of(server, login)
    documents: dict[str, dict[str, Any]] = {
        "root": {"permissions": [{"user_id": user_id, "application_id": 1, "data": {"roles": ["root"]}}]},
        "rule": {
            "permissions": [
                {
                    "user_id": user_id,
                    "application_id": 1,
                    "data": {"private_data": {"can_create_app": {"value": True}}},
                }
            ]
        },
        "project": {"projects": [{"title": f"Of {user_id}", "admins": [user_id]}]},
        "application": {
            "permissions": [
                {
                    "user_id": user_id,
                    "application_id": 10,
                    "data": {"secret_data": {"application": {"canSave": {"value": True}}}},
                }
            ]
        },
    }
    server.apply(documents[right])
    session = game.register(app_id=10)
    with fresh_browser(server, login) as administrator:
        assert ADMINISTRATOR in text_of(administrator.follow(administrator.get(session.page)).text)
        administrator.submit(f"{session.decision}/continue")
        assert ADMINISTRATOR in text_of(administrator.get(session.decision).text)


def test_player_sees_no_warning_about_administrative_rights(game: Game, browser: Browser) -> None:
    session = game.register(app_id=10)
    assert ADMINISTRATOR not in text_of(browser.follow(browser.get(session.page)).text)
    browser.submit(f"{session.decision}/continue")
    assert ADMINISTRATOR not in text_of(browser.get(session.decision).text)


def test_user_can_switch_to_another_account(game: Game, server: Server, ann: str) -> None:
    session = game.register(app_id=10)
    bob = new_user(server, nick="Bob")
    with fresh_browser(server, ann) as browser:
        browser.follow(browser.get(session.page))
        form = Forms(browser.page.text).by_action["/logout"][-1]  # the first one is in the header of every page
        browser.follow(browser.post("/logout", form))
        assert buttons(browser.page.text) == ["Sign in and continue to Tanks"]
        assert browser.submit("/login", login=bob, password=PASSWORD).status_code == 303
    assert session.poll().json()["nick"] == "Bob"


def test_this_was_not_me_denies_the_session(game: Game, browser: Browser) -> None:
    session = game.register()
    browser.follow(browser.get(session.page))
    shown = browser.submit(f"{session.decision}/deny")
    assert shown.status_code == 200
    assert "You were not signed in" in shown.text
    assert outcome(session.poll()) == ("ERROR", "session denied")
    assert outcome(session.poll()) == ("ERROR", "session denied")
    assert browser.get(session.page).status_code == 410


def test_denied_session_cannot_be_confirmed_nor_a_confirmed_one_denied(game: Game, browser: Browser) -> None:
    session = game.register()
    browser.follow(browser.get(session.page))
    go, stop = (browser.form(f"{session.decision}/{what}") for what in ("continue", "deny"))
    browser.post(f"{session.decision}/deny", stop)
    assert browser.follow(browser.post(f"{session.decision}/continue", go)).status_code == 410
    assert session.status == "denied"
    session = game.register()
    press_continue(browser, session)
    browser.post(f"{session.decision}/deny", stop)
    assert session.status == "confirmed"


def test_only_the_first_confirmation_counts(game: Game, server: Server, browser: Browser) -> None:
    session = game.register()
    with fresh_browser(server, new_user(server, nick="Bob")) as bob:
        bob.follow(bob.get(session.page))
        press_continue(browser, session)
        bob.follow(bob.submit(f"{session.decision}/continue"))
        assert "This link was already used" in bob.page.text
        assert "Ann" not in bob.page.text
    assert session.poll().json()["user_id"] == "1001"


def test_user_who_may_not_log_in_sees_an_error_and_the_session_stays_pending(
    game: Game, server: Server, browser: Browser
) -> None:
    session = game.register(app_id=12)
    shown = browser.follow(browser.get(session.page))
    assert "may not sign in to this game" in shown.text
    assert buttons(shown.text)[-2:] == ["Use another account", "This was not me"]
    form = browser.form(f"{session.decision}/deny")
    assert "may not sign in" in browser.follow(browser.post(f"{session.decision}/continue", form)).text
    assert session.status == "pending"
    with Browser(server) as fresh:
        answer = sign_in_on_game_page(fresh, session, new_user(server), PASSWORD)
        assert "may not sign in" in fresh.follow(answer).text
    assert session.status == "pending"
    assert outcome(session.poll())[0] == "RETRY"


def test_allowed_user_can_confirm_after_a_user_who_is_not_allowed(game: Game, server: Server, browser: Browser) -> None:
    server.apply(
        {"applications": [{"application_id": 21, "name": "Inside", "settings": {"restricted_domains": ["in.example"]}}]}
    )
    session = game.register(app_id=21)
    assert "may not sign in" in browser.follow(browser.get(session.page)).text
    with fresh_browser(server, new_user(server, login="one@in.example")) as one:
        press_continue(one, session)
    assert session.status == "confirmed"


def test_url_parameters_do_not_override_values_of_the_session(game: Game, server: Server, browser: Browser) -> None:
    session = game.register(app_id=10, gapp_id=10, distr="steam", factor="device", short_token="1")
    more = "&app_id=11&gapp_id=12&distr=other&short_token=0&nojwt=1&factor=x&user_id=1&match=evil+words"
    with Browser(server) as anonymous:
        shown = anonymous.get(session.page + more)
        assert "Sign in and continue to Tanks" in shown.text
        assert not [word for word in ("other<", "evil", "Studio") if word in shown.text]
    browser.follow(browser.get(session.page + more))
    browser.post(f"{session.decision}/continue?{more}", browser.form(f"{session.decision}/continue") | {"app_id": "11"})
    data = session.poll().json()
    assert list(data["permissions"]) == ["10"]
    assert data["token_exp"] == 300
    assert "jwt" in data


def test_unknown_expired_closed_or_used_link_shows_an_error(game: Game, browser: Browser, server: Server) -> None:
    expired, closed, denied = (game.register() for _ in range(3))
    expired.change("ends = now() - interval '1 s'")
    closed.close()
    denied.change("status = 'denied'")
    with Browser(server) as anonymous:
        for path in (
            expired.page, closed.page, denied.page, "/?gsid=9b2d1c3a-0000-4000-8000-000000000000", "/?gsid=",
            "/?gsid=x", f"/?gsid={expired.gsid.upper()}", f"/?gsid={game.register().gsid}&gsid=x", expired.decision,
            closed.decision, "/?gsid=%00", "/?gsid=%FF", "/?gsid=%0d%0aX:y", f"/?gsid={'x' * 5000}",
            "/game/x", "/game/9b2d1c3a",
        ):  # fmt: skip
            for visitor in (anonymous, browser):
                answer = visitor.http.get(path, follow_redirects=True)
                assert answer.status_code == 410, path
                assert GONE in answer.text, path
                assert "<form" not in answer.text or "/logout" in answer.text, path


@pytest.mark.parametrize(
    "gsid", ["%0d%0aSet-Cookie:x=y", "%C3%A9", "%F0%9F%8E%AE", "%FF", "%00", "x" * 3000, "a%20b", "%E2%80%AE"]
)
def test_malformed_gsid_in_the_path_shows_an_error(server: Server, browser: Browser, gsid: str) -> None:
    csrf = browser.form("/logout") if "/logout" in browser.open_account().text else {}
    with Browser(server) as anonymous:
        for visitor in (anonymous, browser):
            assert visitor.http.get(f"/game/{gsid}", follow_redirects=True).status_code == 410
            for what in ("continue", "deny"):
                answer = visitor.post(f"/game/{gsid}/{what}", csrf)
                assert answer.status_code in (303, 410)
                assert "x=y" not in str(answer.headers)


def test_login_after_the_end_of_the_session_confirms_nothing(game: Game, server: Server, ann: str) -> None:
    session = game.register()
    with Browser(server) as browser:
        browser.get(session.page)
        session.change("ends = now() - interval '1 s'")
        assert browser.submit("/login", login=ann, password=PASSWORD).status_code == 410
        assert not browser.is_signed_in
    row = session.row("status, user_id, ends < now() AS over")
    assert tuple(row) == ("pending", None, True)


def test_used_link_shows_other_users_nothing(game: Game, server: Server, browser: Browser) -> None:
    session = game.register()
    press_continue(browser, session)
    with Browser(server) as anonymous:
        assert anonymous.get(session.page).status_code == 410
    session.poll()
    assert "You are signed in" in browser.get(session.decision).text
    with Browser(server) as anonymous:
        assert anonymous.get(session.page).status_code == 410


def test_page_says_when_the_game_is_not_responding(game: Game, browser: Browser) -> None:
    session = game.register()
    session.change("held_until = now() + interval '30 s'")
    assert "Almost there" in press_continue(browser, session).text
    assert browser.page.headers["Refresh"] == "2"  # refreshes without a script
    session.change("held_until = now() - interval '6 s'")
    assert "The game is not responding" in browser.get(session.decision).text
    assert "Refresh" not in browser.page.headers
    session.change("last_seen = now()")
    assert "Almost there" in browser.get(session.decision).text
    assert outcome(session.poll())[0] == "OK"
    assert "You are signed in" in browser.get(session.decision).text


@pytest.mark.parametrize("payload", PAYLOADS)
def test_values_of_the_session_are_escaped(game: Game, browser: Browser, server: Server, payload: str) -> None:
    session = game.register(distr=payload)
    with Browser(server) as anonymous:
        pages = [
            anonymous.get(session.page),
            browser.follow(browser.get(session.page)),
            anonymous.get(f"/?gsid={payload}"),
        ]
    for shown in pages:
        assert not re.search(r"<[^>]*(alert|onclick|onfocus|javascript:)", shown.text)
        assert not re.search(r"<(img|script)", OWN_SCRIPTS.sub("", shown.text))
        assert "script-src 'self';" in shown.headers["Content-Security-Policy"]
        assert "unsafe" not in shown.headers["Content-Security-Policy"]
        assert ">49<" not in shown.text
    for shown in pages[:2]:
        # A text direction set inside bdi ends with it.
        assert html.unescape(re.findall(r"<dt>Store</dt><dd><bdi>(.*?)</bdi>", shown.text)[0]) == payload
    assert payload not in html.unescape(pages[2].text)


def test_names_of_applications_and_users_are_escaped(game: Game, server: Server) -> None:
    session = game.register(app_id=13)
    login = new_user(server, nick="<b onclick=x>")
    with Browser(server) as browser:
        assert "<img" not in browser.get(session.page).text
        assert "&lt;img src=x onerror=alert(1)&gt;" in browser.page.text
    with fresh_browser(server, login) as browser:
        for shown in (browser.follow(browser.get(session.page)), press_continue(browser, session)):
            assert "<img" not in shown.text
            assert "<b onclick" not in shown.text


def test_form_without_its_csrf_token_confirms_and_denies_nothing(game: Game, browser: Browser) -> None:
    session = game.register()
    browser.follow(browser.get(session.page))
    for what in ("continue", "deny"):
        path = f"{session.decision}/{what}"
        assert browser.post(path, {}).status_code == 403
        assert browser.post(path, {"csrf": "x"}).status_code == 403
        form = browser.form(path)
        assert browser.post(path, form, Origin="https://evil.example").status_code == 403
        assert browser.post(path, form, Sec_Fetch_Site="cross-site").status_code == 403
        assert browser.http.post(path, json=form).status_code == 415
    assert session.status == "pending"


def test_visitor_can_say_that_it_was_someone_else_without_signing_in(game: Game, server: Server) -> None:
    session = game.register(app_id=10)
    with Browser(server) as visitor:
        shown = visitor.get(session.page)
        assert "Cancel" not in shown.text
        (path,) = re.findall(r'<a class="button danger" href="([^"]*)">This was not me</a>', shown.text)
        question = visitor.get(html.unescape(path))
        assert "Stop the sign-in to <bdi>Tanks</bdi>?" in question.text
        assert session.status == "pending"  # the question changes nothing
        stopped = visitor.submit(f"{session.decision}/deny")
        assert stopped.status_code == 200
        assert "this link no longer works" in stopped.text
    assert session.status == "denied"


def test_page_of_a_game_names_store_and_address(game: Game, browser: Browser) -> None:
    shown = browser.follow(browser.get(game.register(distr="steam").page)).text
    assert re.findall(r"<dt>(\w+)</dt>", shown) == ["Game", "Store", "Started", "Address"]


def test_form_without_a_browser_session_leads_to_the_login(game: Game, server: Server) -> None:
    session = game.register()
    with Browser(server) as anonymous:
        for what in ("continue", "deny"):
            answer = anonymous.post(f"{session.decision}/{what}", {"csrf": "x"})
            shown = anonymous.http.get(answer.headers["Location"], follow_redirects=True)
            assert buttons(shown.text) == ["Sign in and continue to your game"]
    assert session.status == "pending"


def test_page_is_neither_cached_nor_framed_nor_sent_as_referrer(game: Game, browser: Browser, server: Server) -> None:
    session = game.register()
    with Browser(server) as anonymous:
        for shown in (anonymous.get(session.page), browser.follow(browser.get(session.page))):
            assert shown.headers["Cache-Control"] == "no-store"
            assert shown.headers["X-Frame-Options"] == "DENY"
            assert shown.headers["Referrer-Policy"] == "same-origin"
            assert session.secret not in shown.text


def test_stages_of_a_login_are_stored(game: Game, server: Server) -> None:
    def stage(session: Session) -> str:
        return str(session.row("stage")["stage"])

    login, app = new_user(server, totp_secret=TOTP_SECRET), AuthenticatorApp(TOTP_SECRET)
    session = game.register()
    assert stage(session) == ""
    with Browser(server) as browser:
        browser.get(session.page)
        assert stage(session) == "opened"
        browser.submit("/login", login=login, password="wrong")
        assert stage(session) == "signing_in"
        browser.get(session.page)
        assert stage(session) == "signing_in"
        browser.follow(browser.submit("/login", login=login, password=PASSWORD))
        assert stage(session) == "second_factor"
        browser.submit("/login/code", otp=app.code())
        assert stage(session) == "confirmed"
    violation(session.poll({"Location": "x"}))
