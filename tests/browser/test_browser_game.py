"""A game in the browser: a page of another origin signs its player in with the package for games."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from sdk.contract.packages import SDK
from tests.kit.browser import new_user
from tests.kit.builders import PASSWORD
from tests.kit.oauth import new_site
from tests.kit.page_server import serving_pages
from tests.kit.server import Server

pytestmark = pytest.mark.browser
PAGE = Path(__file__).with_name("browser_game.html").read_bytes()
DIST = SDK / "typescript/dist"


def _content(path: str) -> bytes:
    return PAGE if path == "/" else (DIST / path.removeprefix("/dist/")).read_bytes()


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """The origin of the game: a web server that has nothing but the page and the package."""
    if not DIST.exists():
        pytest.skip("the package typescript is not built: run scripts/sdk")
    with serving_pages(_content) as origin:
        yield origin


@pytest.fixture
def player(server: Server, origin: str) -> str:
    new_site(server, public=True, profile="oidc", first_party=True, origins=[origin])
    role = {"name": "member", "meta": {"private_data": {"chat": {"write": {"value": True}}}}, "default": True}
    server.apply({"applications": [{"application_id": 10, "name": "Tanks"}], "roles": {"10": [role]}})
    return new_user(server, nick="Ann Wanderer")


def play(page: Page, server: Server, origin: str, how: str, **options: str) -> None:
    page.goto(f"{origin}/?{urlencode({'service': server.base_url, 'how': how, **options})}")


def result(page: Page) -> Any:
    expect(page.locator("#result")).not_to_be_empty()
    text = page.locator("#result").inner_text()
    return json.loads(text) if text.startswith("{") else text


def test_player_of_a_browser_game_signs_in_and_comes_back(
    scripted: Page, server: Server, origin: str, player: str
) -> None:
    page = scripted
    play(page, server, origin, "browser", sign="1")
    with page.context.expect_page() as opened:
        page.locator("#link").click()
    tab = opened.value
    expect(tab.locator(".words")).to_have_text(page.locator("#words").inner_text())
    expect(page.locator("#stage")).not_to_be_empty()  # by a WebSocket to another origin
    tab.locator("#login").fill(player)
    tab.locator("#password").fill(PASSWORD)
    tab.get_by_role("button", name="Sign in", exact=False).first.click()
    signed_in = result(page)
    tab.close()
    assert (signed_in["nick"], signed_in["guest"], signed_in["may"]) == ("Ann Wanderer", False, True)
    play(page, server, origin, "stored", out="1")
    assert result(page)["userId"] == signed_in["userId"]
    play(page, server, origin, "stored")
    assert result(page) == "sign_in_needed"
    play(page, server, origin, "guest")
    assert result(page) == "no_guests"
