"""Parameters of the link to a game login: the confirmation stores them in fields that getGsid left empty."""

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.gsid.conftest import META
from tests.kit.browser import AuthenticatorApp, Browser, Forms, fresh_browser, new_user, query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import Game, Session, outcome, violation
from tests.kit.long_tests import usual_part
from tests.kit.server import Server
from tests.perm.endpoints.tokens import ip_headers

COLUMNS = "app_id, gapp_id, distr, with_meta"
EMPTY = (0, 0, "", False)


def link(session: Session, **parameters: Any) -> str:
    return f"{session.page}&{urlencode(parameters)}"


def stored(session: Session) -> tuple[Any, ...]:
    return tuple(session.row(COLUMNS))


def press(browser: Browser, session: Session) -> None:
    browser.follow(browser.submit(f"{session.decision}/continue"))


def test_link_parameters_fill_empty_fields_when_a_signed_in_user_confirms(game: Game, browser: Browser) -> None:
    session = game.register(factor="device")
    shown = browser.follow(browser.get(link(session, app_id=11, gapp_id=10, distr="steam <b>", meta=1))).text
    assert "Continue to <bdi>Tanks</bdi>?" in shown
    assert "<bdi>Tanks Studio</bdi>" in shown
    assert "steam &lt;b&gt;" in shown
    assert stored(session) == EMPTY  # opening a link stores nothing
    press(browser, session)
    assert stored(session) == (11, 10, "steam <b>", True)
    data = session.poll().json()
    assert data["status"] == "OK"
    assert sorted(data["permissions"]) == ["10", "11"]
    assert data["meta"] == META


def test_link_parameters_fill_empty_fields_when_a_user_signs_in_on_the_page(
    game: Game, server: Server, ann: str
) -> None:
    session = game.register()
    with Browser(server) as fresh:
        shown = fresh.get(link(session, app_id=10, distr="é & ü=", utm_source="x"))
        assert "Sign in and continue to Tanks" in shown.text
        assert fresh.submit("/login", login=ann, password="wrong").status_code == 401
        assert "Sign in and continue to Tanks" in fresh.page.text
        assert stored(session) == EMPTY
        fresh.submit("/login", login=ann, password=PASSWORD)
    assert stored(session) == (10, 0, "é & ü=", False)
    assert list(session.poll().json()["permissions"]) == ["10"]


def test_link_parameters_survive_the_second_factor(game: Game, server: Server) -> None:
    session, login = game.register(), new_user(server, totp_secret=TOTP_SECRET)
    with Browser(server) as fresh:
        fresh.get(link(session, gapp_id=10, lang="de"))
        asked = fresh.follow(fresh.submit("/login", login=login, password=PASSWORD))
        assert "Tanks" in asked.text
        assert '<html lang="de"' in asked.text
        fresh.submit("/login/code", otp=AuthenticatorApp(TOTP_SECRET).code())
    assert stored(session) == (0, 10, "", False)


def test_link_parameters_never_override_a_field_of_the_session(game: Game, browser: Browser) -> None:
    session = game.register(app_id=10, gapp_id=11, distr="store", meta="0")
    path = link(session, app_id=12, gapp_id=13, distr="elsewhere", meta=1)
    shown = browser.follow(browser.get(path)).text
    assert "Continue to <bdi>Tanks Studio</bdi>?" in shown
    assert "elsewhere" not in shown
    form = browser.form(f"{session.decision}/continue")
    assert set(form) == {"csrf"}
    browser.post(f"{session.decision}/continue", form | {"app_id": "12", "distr": "elsewhere", "meta": "1"})
    assert stored(session) == (10, 11, "store", False)
    assert sorted(session.poll().json()["permissions"]) == ["10", "11"]


def test_link_opened_in_another_browser_has_no_effect(game: Game, server: Server, browser: Browser) -> None:
    """Every client that knows the gsid can open the page; only the values that the confirming user saw are stored."""
    session = game.register()
    with Browser(server) as stranger:
        assert stranger.get(link(session, app_id=12, distr="evil")).status_code == 200
    with fresh_browser(server, new_user(server)) as bob:
        bob.follow(bob.get(link(session, app_id=11)))
    assert "evil" not in browser.follow(browser.get(session.page)).text
    press(browser, session)
    assert stored(session) == EMPTY


def test_parameters_in_the_url_of_the_post_are_ignored(game: Game, browser: Browser) -> None:
    session = game.register()
    browser.follow(browser.get(link(session, app_id=10)))
    form = browser.form(f"{session.decision}/continue")
    browser.post(f"{session.decision}/continue?app_id=11&distr=x", form)
    assert stored(session) == (10, 0, "", False)


def test_login_rules_of_the_application_from_the_link_apply(game: Game, server: Server, browser: Browser) -> None:
    session = game.register()
    for name in ("app_id", "gapp_id"):
        shown = browser.follow(browser.get(link(session, **{name: 12})))
        assert "may not sign in to this game" in shown.text
        form = browser.form(f"{session.decision}/deny")
        answer = browser.follow(browser.post(f"{session.decision}/continue", form))
        assert "may not sign in to this game" in answer.text
        with Browser(server) as fresh:
            fresh.get(link(session, **{name: 12}))
            fresh.submit("/login", login=new_user(server), password=PASSWORD)
    assert (session.status, stored(session)) == ("pending", EMPTY)


WRONG = {
    "app_id": ["x", "-1", "1.5", "2147483648", "99999", "", " 10", "１０", "%00"],
    "gapp_id": ["x", "99999"],
    "meta": ["2", "true", "", "%FF"],
    "distr": ["x" * 257, "%00", "%FF", "%EF%BF%BF", "%zz"],
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_value_for_an_empty_field_is_an_error_that_names_it(
    game: Game, server: Server, browser: Browser, name: str
) -> None:
    session, full = game.register(), game.register(app_id=10, gapp_id=10, distr="x", meta="1")
    with Browser(server) as fresh:
        for number, text in enumerate(WRONG[name]):
            for visitor in usual_part((fresh, browser), 1, number):
                answer = visitor.http.get(f"{session.page}&{name}={text}", follow_redirects=True)
                assert answer.status_code == 400, text
                assert f"invalid value for “{name}”" in answer.text
                assert visitor.http.get(f"{full.page}&{name}={text}", follow_redirects=True).status_code == 200
        assert fresh.http.get(f"{session.page}&{name}=1&{name}=1").status_code == 400
    assert stored(session) == EMPTY


def test_invalid_value_in_the_form_is_refused_and_confirms_nothing(game: Game, browser: Browser) -> None:
    session = game.register()
    browser.follow(browser.get(session.page))
    form = browser.form(f"{session.decision}/continue")
    assert browser.post(f"{session.decision}/continue", form | {"app_id": "99999"}).status_code == 400
    assert (session.status, stored(session)) == ("pending", EMPTY)


def test_lang_sets_the_language_of_the_pages(game: Game, server: Server, browser: Browser) -> None:
    session = game.register()
    with Browser(server) as fresh:
        assert '<html lang="de"' in fresh.get(link(session, lang="de-AT")).text
        for ignored in ("xx", "%00", "de\r\nX: y", "d" * 300, ""):
            assert '<html lang="en"' in fresh.get(link(session, lang=ignored)).text
    assert '<html lang="fr"' in browser.follow(browser.get(link(session, lang="fr"))).text
    assert browser.form(f"{session.decision}/continue")["lang"] == "fr"
    assert '<html lang="fr"' in browser.follow(browser.submit(f"{session.decision}/continue")).text


def test_use_another_account_keeps_the_parameters(game: Game, server: Server) -> None:
    session = game.register()
    with fresh_browser(server, new_user(server)) as bob:
        bob.follow(bob.get(link(session, app_id=10, distr="a b")))
        again = next(form for form in Forms(bob.page.text).by_action["/logout"] if form.get("next"))
        assert bob.get(again["next"]).status_code == 303
        assert "distr=a+b" in bob.page.headers["Location"]


def test_application_from_the_link_cannot_sign_client_addresses(game: Game, other: Game, browser: Browser) -> None:
    """An access key signs addresses of its application's clients. A link must not add a session to them."""
    secret = "s" * 40
    game.server.apply({"access_keys": [{"application_id": 10, "hash": secret}]})
    key_id = query(game.server, "SELECT id FROM access_keys WHERE application_id = 10")[0]["id"]
    signed = ip_headers({"id": key_id, "hash": secret}, game.address)
    session = game.register()
    browser.follow(browser.get(link(session, app_id=10)))
    press(browser, session)
    assert stored(session) == (10, 0, "", False)
    taken = Session(other, session.gsid, session.match, session.location)
    violation(taken.poll(signed))
    assert outcome(session.poll())[0] == "OK"
    registered = game.register(app_id=10)
    browser.follow(browser.get(link(registered, gapp_id=11)))
    press(browser, registered)
    acting = Session(other, registered.gsid, registered.match, registered.location)
    assert outcome(acting.poll(signed))[0] == "OK"
