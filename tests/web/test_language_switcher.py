"""The language switcher of the pages: it is remembered, comes first, and keeps the page where it is."""

import html
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pyotp
import pytest

from sso.core.language_names import NAMES
from tests.kit.browser import Browser, new_user
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.oauth import AUTHORIZE, new_site
from tests.kit.server import Server


@pytest.fixture
def browser(server: Server) -> Iterator[Browser]:
    with Browser(server) as browser:
        yield browser


def language(page: httpx.Response) -> str:
    match = re.search(r'<html lang="([A-Za-z-]+)">', page.text)
    assert match
    assert page.headers["Content-Language"] == match[1]
    return match[1]


def links(page: httpx.Response) -> dict[str, str]:
    found = re.findall(r'<li><a class="button plain" href="(/language\?[^"]*)" lang="([^"]*)"', page.text)
    return {tag: html.unescape(href) for href, tag in found}


def switch(browser: Browser, tag: str) -> httpx.Response:
    """Follows the link on the current page, like a browser."""
    answer = browser.http.get(links(browser.page)[tag], headers={"Sec-Fetch-Site": "same-origin"})
    return browser.follow(answer)


def test_every_page_has_a_link_for_each_language(browser: Browser) -> None:
    for path in ("/login", "/no/such/page"):
        assert links(browser.get(path)).keys() == NAMES.keys()
        assert 'lang="en" rel="nofollow" aria-current="true">English</a>' in browser.page.text


def test_choice_is_remembered_and_comes_before_the_browser(browser: Browser) -> None:
    browser.http.headers["Accept-Language"] = "fr"
    assert language(browser.get("/login")) == "fr"
    assert language(switch(browser, "de")) == "de"
    assert "Anmelden" in browser.page.text
    assert language(browser.get("/login")) == "de"
    assert language(switch(browser, "pt-BR")) == "pt-BR"
    assert language(browser.get("/no/such/page")) == "pt-BR"


def test_cookie_lasts_and_is_not_readable_by_scripts(browser: Browser) -> None:
    browser.get("/login")
    cookie = browser.http.get(links(browser.page)["de"]).headers["Set-Cookie"]
    assert cookie.startswith("sso_language=de;")
    assert {"Max-Age=31536000", "HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))


@pytest.mark.parametrize("tag", ["", "xx", "DE", "de-AT", "zh", "../x", "de;a=b", "x" * 5000])
def test_unknown_language_changes_nothing(browser: Browser, tag: str) -> None:
    answer = browser.http.get("/language", params={"lang": tag, "back": "/login"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/login")
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("value", ["xx", "<script>", "de de", "é", "x" * 5000])
def test_malformed_cookie_is_ignored(browser: Browser, value: str) -> None:
    page = browser.http.get("/login", headers={b"Cookie": f"sso_language={value}".encode("latin-1")})
    assert language(page) == "en"


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "/%2fevil.example", ""])
def test_foreign_target_is_ignored(browser: Browser, back: str) -> None:
    answer = browser.http.get("/language", params={"lang": "de", "back": back})
    assert answer.headers["Location"] == "/account"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_link_on_a_foreign_page_changes_nothing(browser: Browser, site: str) -> None:
    answer = browser.http.get("/language?lang=de&back=/login", headers={"Sec-Fetch-Site": site})
    assert answer.status_code == 303
    assert "Set-Cookie" not in answer.headers


def test_choice_comes_before_ui_locales_and_keeps_the_sign_in_of_a_site(server: Server, browser: Browser) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    site = new_site(server)
    browser.page = browser.http.get(AUTHORIZE, params=site.query(ui_locales="fr", state="keep"))
    assert language(browser.page) == "fr"
    assert language(switch(browser, "de")) == "de"
    assert browser.submit("/login", login=login, password="wrong").status_code == 401
    assert language(browser.page) == "de"
    assert language(switch(browser, "es")) == "es"  # from the answer to a form
    code_page = browser.submit("/login", login=login, password=PASSWORD)
    assert language(browser.follow(code_page)) == "es"
    assert browser.submit("/login/code", otp="000000").status_code == 401
    assert language(switch(browser, "ko")) == "ko"
    done = browser.submit("/login/code", otp=pyotp.TOTP(TOTP_SECRET).now())
    target = urlsplit(done.headers["Location"])
    assert done.headers["Location"].startswith(site.redirect_uri)
    assert parse_qs(target.query)["state"] == ["keep"]


def test_page_after_a_form_without_a_page_of_its_own_leads_to_the_page_with_the_form(
    server: Server, browser: Browser
) -> None:
    browser.sign_in(new_user(server))
    browser.open_account()
    fields = {"current_password": "wrong", "new_password": "x" * 20, "repeat_password": "x" * 20}
    assert browser.submit("/account/password", **fields).status_code == 422
    assert switch(browser, "de").url.path == "/account"
    assert language(browser.page) == "de"


def test_next_of_another_site_is_not_on_the_page(browser: Browser) -> None:
    page = browser.get("/login?next=//evil.example&x=1")
    assert "evil.example" not in page.text
    assert "evil.example" not in browser.get(f"{AUTHORIZE}?client_id=x&redirect_uri=https://evil.example/").text
