"""A game login in Chromium: from `sso play` to its greeting, and every page on the way."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Screenshot, open_signed_in
from tests.kit.browser import AuthenticatorApp, fresh_browser, new_user, query
from tests.kit.browser_pages import sign_in
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.long_tests import takes_long
from tests.kit.play import playing
from tests.kit.server import Server

pytestmark = pytest.mark.browser

GAME = {"app_id": 7001, "distr": "store.example"}
CLOSED_GAME = {"app_id": 7002}


@pytest.fixture(scope="module")
def games(server: Server) -> None:
    server.apply(
        {
            "applications": [
                {"application_id": 7001, "name": "Tanks of the Red Dawn"},
                {"application_id": 7002, "name": "Closed Test"},
            ],
            "schemas": {"7002": {"login": {"can": {"value": False}}}},
        }
    )


@pytest.fixture
def ann(server: Server) -> str:
    return new_user(server, nick="Ann Wanderer")


@pytest.fixture
def bob(server: Server) -> str:
    return new_user(server, nick="Bob")


@pytest.fixture
def with_app(server: Server) -> str:
    return new_user(server, nick="Ann Wanderer", totp_secret=TOTP_SECRET)


def change(server: Server, sql: str, gsid: str) -> None:
    """Runs SQL in another thread, because this one has Playwright's event loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(query, server, sql, gsid).result()


def register(server: Server, **fields: object) -> str:
    """Registers a session and returns its gsid."""
    with server.client() as http:
        return str(http.post("/proxy/api/gameSession/getGsid", json=fields).json()["gsid"])


def poll(server: Server, gsid: str) -> httpx.Response:
    with server.client() as http:
        return http.post("/proxy/api/gameSession/getGsidResult", json={"gsid": gsid})


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


@pytest.mark.usefixtures("games")
def test_sso_play_greets_the_user_after_the_login(
    page: Page, server: Server, with_app: str, screenshot: Screenshot
) -> None:
    with playing(server, "--app-id", "7001", "--distr", "store.example") as game:
        page.goto(f"{server.base_url}{game.path}")
        words = game.out.split("these words:\n\n    ")[1].splitlines()[0]
        expect(page.locator(".words")).to_have_text(words)
        heading(page, "Sign in to Tanks of the Red Dawn")
        screenshot("sign-in")
        page.get_by_label("E-mail").fill(with_app)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in and continue to Tanks of the Red Dawn").click()
        expect(page.locator(".words")).to_have_text(words)
        screenshot("second-factor")
        page.get_by_label("Code").fill(AuthenticatorApp(TOTP_SECRET).code())
        page.get_by_role("button", name="Continue to Tanks of the Red Dawn").click()
        assert game.ended() == 0, game.err
        assert "Signed in as Ann Wanderer" in game.out
        page.reload()
        heading(page, "You are signed in")
        screenshot("done")


@pytest.mark.usefixtures("games")
def test_every_page_of_a_signed_in_user(page: Page, server: Server, ann: str, bob: str, screenshot: Screenshot) -> None:
    open_signed_in(page, server, ann)
    gsid = register(server, **GAME)
    link = f"{server.base_url}/?gsid={gsid}"

    page.goto(link)
    expect(page.get_by_text("same network as this browser")).to_be_visible()
    heading(page, "Continue to Tanks of the Red Dawn?")
    yes = page.get_by_role("button", name="Continue as Ann Wanderer").bounding_box()
    no = page.get_by_role("button", name="This was not me").bounding_box()
    assert yes
    assert no
    assert (yes["width"], yes["height"]) == pytest.approx((no["width"], no["height"]), abs=2)
    screenshot("continue-as")

    change(server, "UPDATE game_sessions SET address = '192.0.2.7' WHERE gsid = $1", gsid)
    page.reload()
    expect(page.get_by_text("started on a different network")).to_be_visible()
    screenshot("different-network")
    change(server, "UPDATE game_sessions SET address = '127.0.0.1' WHERE gsid = $1", gsid)

    page.get_by_role("button", name="Continue as Ann Wanderer").click()
    heading(page, "The game is not responding")
    screenshot("not-responding")
    change(server, "UPDATE game_sessions SET held_until = now() + interval '1 min' WHERE gsid = $1", gsid)
    page.reload()
    heading(page, "Almost there")
    screenshot("waiting")
    assert poll(server, gsid).json()["nick"] == "Ann Wanderer"
    heading(page, "You are signed in")  # refreshed automatically

    used = register(server, **GAME)
    with fresh_browser(server, bob) as other:
        other.follow(other.get(f"/?gsid={used}"))
        other.submit(f"/game/{used}/continue")
    page.goto(f"{server.base_url}/?gsid={used}")
    heading(page, "This link was already used")
    screenshot("used")

    page.goto(f"{server.base_url}/?gsid={register(server, **CLOSED_GAME)}")
    heading(page, "Not with this account")
    expect(page.get_by_role("alert")).to_contain_text("may not sign in to this game")
    expect(page.get_by_role("button", name="Use another account")).to_be_visible()
    expect(page.get_by_role("button", name="Continue as")).to_have_count(0)
    screenshot("not-allowed")

    page.get_by_role("button", name="This was not me").click()
    heading(page, "Sign-in stopped")
    screenshot("stopped")

    late = register(server, **GAME)
    change(server, "UPDATE game_sessions SET ends = now() - interval '1 s' WHERE gsid = $1", late)
    answer = page.goto(f"{server.base_url}/?gsid={late}")
    assert answer
    assert answer.status == 410
    screenshot("expired")


@takes_long
@pytest.mark.usefixtures("games")
def test_translated_pages_fit(page: Page, server: Server, ann: str, screenshot: Screenshot) -> None:
    gsid, languages = register(server, **GAME), ("de", "es", "fr")
    for language in languages:
        page.set_extra_http_headers({"Accept-Language": language})
        page.goto(f"{server.base_url}/?gsid={gsid}")
        screenshot(f"sign-in-{language}")
    page.set_extra_http_headers({})
    sign_in(page, server, ann)
    for language in languages:
        page.set_extra_http_headers({"Accept-Language": language})
        page.goto(f"{server.base_url}/?gsid={gsid}")
        expect(page.locator("html")).to_have_attribute("lang", language)
        screenshot(f"continue-as-{language}")
