"""The account pages in Chromium, without JavaScript, on a desktop and on a phone."""

import hashlib

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Window, assert_fits, open_signed_in
from tests.kit.browser import SESSION, AuthenticatorApp, forget_authentication, mailed_codes, new_user, query
from tests.kit.browser_pages import desktop_only, sign_in
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.long_tests import takes_long, usual_part
from tests.kit.server import Server

pytestmark = pytest.mark.browser


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server, nick="Ann Wanderer")


@pytest.fixture
def with_app(server: Server) -> str:
    return new_user(server, totp_secret=TOTP_SECRET)


@pytest.fixture
def with_mail(server: Server) -> str:
    return new_user(server, email_2fa=True)


@pytest.fixture
def throttled_user(server: Server) -> str:
    login = new_user(server)
    sql = "INSERT INTO throttle VALUES ($1, 9, now(), now() + interval '40 s', now() + interval '1 hour')"
    query(server, sql, hashlib.sha256(f"account:{login}".encode()).digest())
    return login


def test_user_signs_in_and_out(page: Page, server: Server, login: str) -> None:
    page.goto(server.base_url)
    expect(page).to_have_title("Sign in · 127.0.0.1")
    expect(page.get_by_label("E-mail")).to_be_focused()
    assert_fits(page)
    sign_in(page, server, login)
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
    expect(page.get_by_role("link", name="Ann Wanderer")).to_be_visible()
    assert_fits(page)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.goto(f"{server.base_url}/account")
    expect(page).to_have_url(f"{server.base_url}/login?next=/account")


def test_wrong_password_shows_an_error(page: Page, server: Server, login: str) -> None:
    sign_in(page, server, login, "wrong")
    expect(page.get_by_role("alert")).to_have_text("The e-mail address or password is incorrect.")
    expect(page).to_have_title("Problem: Sign in · 127.0.0.1")
    expect(page.get_by_label("E-mail")).to_have_value(login)
    expect(page.get_by_label("Password")).to_be_focused()
    assert_fits(page)
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")


@takes_long
def test_too_many_attempts_show_an_error(page: Page, server: Server, throttled_user: str) -> None:
    sign_in(page, server, throttled_user)
    expect(page.get_by_role("alert")).to_contain_text("Too many attempts. Please wait")
    assert_fits(page)


@takes_long
def test_user_signs_in_with_a_code_of_the_app(page: Page, server: Server, with_app: str) -> None:
    app = AuthenticatorApp(TOTP_SECRET)
    sign_in(page, server, with_app)
    expect(page.get_by_role("heading", level=1)).to_have_text("Enter your code")
    expect(page.get_by_label("Code")).to_be_focused()
    assert_fits(page)
    page.get_by_label("Code").fill(app.wrong())
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_have_text("This code is incorrect or has already been used.")
    page.get_by_label("Code").fill(app.code())
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")


@takes_long
def test_user_signs_in_with_a_mailed_code(page: Page, server: Server, with_mail: str) -> None:
    sign_in(page, server, with_mail)
    expect(page.get_by_text("We sent a code to p…@example.com.")).to_be_visible()
    page.get_by_role("button", name="Send the code again").click()
    expect(page.get_by_role("alert")).to_contain_text("You can ask for another e-mail in")
    assert_fits(page)
    page.get_by_label("Code").fill(mailed_codes(server, with_mail)[0])
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")


@takes_long
def test_user_sets_up_an_app_and_removes_it(page: Page, server: Server, login: str) -> None:
    open_signed_in(page, server, login)
    page.get_by_role("link", name="Set up").click()
    expect(page.get_by_role("img", name="QR code with the key below")).to_be_visible()
    app = AuthenticatorApp(page.locator(".key code").inner_text())
    assert_fits(page)
    for code, outcome in (
        (app.wrong(), "This code is incorrect."),
        (app.code(), "Your authenticator app has been set up."),
    ):
        page.get_by_label("Code from the app").fill(code)
        page.get_by_role("button", name="Turn on").click()
        expect(page.locator(".box")).to_contain_text(outcome)
    session = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == SESSION)
    page.context.clear_cookies()
    sign_in(page, server, login)
    expect(page.get_by_role("heading", level=1)).to_have_text("Enter your code")
    # Back to the session: the service would accept a third code seconds later only.
    page.context.add_cookies([{"name": SESSION, "value": session, "url": server.base_url}])
    forget_authentication(server)
    page.goto(f"{server.base_url}/account")
    page.locator("summary").filter(has_text="Remove").click()
    form = page.locator("form[action='/account/totp/remove']")
    expect(form).to_be_visible()
    assert_fits(page)
    form.get_by_label("Current password").fill(PASSWORD)
    form.get_by_label("Current code").fill(app.wrong())
    form.get_by_role("button").click()
    expect(form.locator("..").get_by_role("alert")).to_have_text("This code is incorrect or has already been used.")
    assert_fits(page)
    form.get_by_label("Current password").fill(PASSWORD)
    form.get_by_label("Current code").fill(app.code())
    form.get_by_role("button").click()
    expect(page.get_by_role("status")).to_contain_text("The authenticator app has been removed.")


@takes_long
def test_user_turns_mailed_codes_on(page: Page, server: Server, login: str) -> None:
    open_signed_in(page, server, login)
    forget_authentication(server)
    page.reload()
    row = page.locator(".row").filter(has_text="Codes by e-mail")
    row.locator("summary").click()
    row.get_by_label("Current password").fill("wrong")
    row.get_by_role("button").click()
    expect(row.get_by_role("alert")).to_have_text("Your current password is incorrect.")
    expect(row.get_by_label("Current password")).to_be_focused()
    assert_fits(page)
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Your change has been saved.")
    expect(row.locator(".badge")).to_have_text("On")


@takes_long
def test_user_turns_mailed_codes_off(page: Page, server: Server, with_mail: str) -> None:
    sign_in(page, server, with_mail)
    page.get_by_label("Code").fill(mailed_codes(server, with_mail)[0])
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
    forget_authentication(server)
    page.reload()
    row = page.locator(".row").filter(has_text="Codes by e-mail")
    row.locator("summary").click()
    row.get_by_role("button", name="Send me a code by e-mail").click()
    expect(row.get_by_role("status")).to_have_text("We have sent you a code. Check your e-mail.")
    assert_fits(page)
    row.get_by_label("Current password").fill(PASSWORD)
    row.get_by_label("Current code").fill(mailed_codes(server, with_mail, 2)[1])
    row.get_by_role("button", name="Turn off e-mail codes").click()
    expect(page.get_by_role("status")).to_contain_text("Your change has been saved.")
    expect(row.locator(".badge")).to_have_text("Off")


@takes_long
def test_user_signs_out_other_sessions(page: Page, chromium: Browser, server: Server, login: str) -> None:
    others = [Window(chromium, user_agent=f"Mozilla/5.0 ({name}) Firefox/130.0") for name in ("Android", "Windows")]
    for other in others:
        sign_in(other.page, server, login)
    open_signed_in(page, server, login)
    expect(page.locator(".sessions h3")).to_have_count(3)
    assert_fits(page)
    page.locator(".sessions .row").filter(has_text="Firefox on Android").get_by_role("button").click()
    expect(page.get_by_role("status")).to_have_text("That session has been signed out.")
    expect(page.locator(".sessions h3")).to_have_count(2)
    page.get_by_role("button", name="Sign out everywhere else").click()
    expect(page.get_by_role("status")).to_have_text("You have been signed out everywhere else.")
    expect(page.get_by_text("You are not signed in anywhere else.")).to_be_visible()
    for other in others:
        other.page.reload()
        expect(other.page.get_by_role("heading", level=1)).to_have_text("Sign in")
        other.context.close()
        assert other.errors == []


def test_unknown_page_shows_an_error(page: Page, server: Server) -> None:
    page.goto(f"{server.base_url}/nothing")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    assert_fits(page)
    page.get_by_role("link", name="Go to the start page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@desktop_only
def test_form_of_another_site_has_no_effect(page: Page, server: Server, login: str) -> None:
    """The browser sends its own headers and withholds the cookies."""
    open_signed_in(page, server, login)
    before = page.context.cookies()
    actions = usual_part(("/account/password", "/account/sessions/end-others", "/logout"), 1, 0)
    site = "".join(f'<form method="post" action="{server.base_url}{it}"><button>{it}</button></form>' for it in actions)
    page.route("http://evil.example/", lambda route: route.fulfill(body=site, content_type="text/html"))
    for action in actions:
        page.goto("http://evil.example/")
        page.get_by_role("button", name=action).click()
        page.wait_for_url(f"{server.base_url}/**")
        page.goto(f"{server.base_url}/account")
        expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
        assert page.context.cookies() == before, action


@desktop_only
def test_pages_cannot_be_framed(page: Page, window: Window, server: Server) -> None:
    site = f'<iframe src="{server.base_url}/login"></iframe>'
    page.route("http://evil.example/", lambda route: route.fulfill(body=site, content_type="text/html"))
    with page.expect_console_message(lambda message: "frame-ancestors 'none'" in message.text):
        page.goto("http://evil.example/")
    expect(page.frame_locator("iframe").get_by_label("Password")).to_have_count(0)
    window.errors.clear()


@desktop_only
def test_violation_of_the_content_security_policy_is_reported(page: Page, window: Window, server: Server) -> None:
    """Otherwise an empty list of errors would prove nothing."""

    def inject(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("<form", '<p style="color: red">x</p><form'))

    page.route("**/login", inject)
    page.goto(f"{server.base_url}/login")
    assert any("Content Security Policy" in error for error in window.errors)
    window.errors.clear()


@desktop_only
def test_session_cookie_is_hidden_from_scripts(scripted: Page, server: Server, login: str) -> None:
    """With JavaScript on, the policy blocks nothing that the pages need."""
    sign_in(scripted, server, login)
    assert {cookie["name"] for cookie in scripted.context.cookies()} == {SESSION, "sso_device"}
    assert scripted.evaluate("document.cookie") == ""
    for path in ("/account", "/account/totp", "/nothing", "/static/logo.svg"):
        scripted.goto(f"{server.base_url}{path}")


@takes_long
def test_games_are_listed_and_signed_out(page: Page, server: Server, login: str) -> None:
    server.apply({"applications": [{"application_id": 800_001, "name": "Red Dawn"}]})
    fields = {"login": login, "password": PASSWORD}
    with server.client() as game:
        token = game.post("/proxy/api/login", json={**fields, "app_id": 800_001}).json()["token"]
        game.post("/proxy/api/login", json=fields)
        open_signed_in(page, server, login)
        games = page.get_by_role("region", name="Games you are signed in to")
        expect(games.get_by_role("heading", level=3)).to_have_text(["GGame or app", "RRed Dawn"])  # with monograms
        expect(games.get_by_role("listitem").last).to_contain_text("127.0.0.1 Last used just now First used just now")
        assert_fits(page)
        games.get_by_role("button", name="Sign out of Red Dawn").click()
        expect(page.get_by_role("status")).to_have_text("You have been signed out of that game.")
        expect(games.get_by_role("heading", level=3)).to_have_text(["GGame or app"])
        assert game.post("/proxy/api/login", json={"token": token}).status_code == 401
    page.get_by_role("button", name="Sign out everywhere else").click()
    expect(page.get_by_role("status")).to_have_text("You have been signed out everywhere else.")
    expect(games).to_contain_text("You are not signed in to any games.")
    assert_fits(page)
