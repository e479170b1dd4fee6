"""The language of the pages: ui_locales, then Accept-Language, then the language of the user, then English."""

import re
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import httpx
import pyotp
import pytest

from tests.kit.browser import mail_text
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.oauth import AUTHORIZE, Browser, Site, new_browser, new_site
from tests.kit.server import Server, until

GERMAN = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.5"}


def language(page: httpx.Response) -> str:
    """Returns the language of the page, and asserts that the headers agree with it."""
    match = re.search(r'<html lang="([A-Za-z-]+)">', page.text)
    assert match
    assert page.headers["Content-Language"] == match[1]
    assert page.headers["Vary"] == "Accept-Language"
    return match[1]


def follow(browser: Browser, response: httpx.Response) -> httpx.Response:
    assert response.is_redirect, response.text
    return browser.http.get(response.headers["Location"])


def test_ui_locales_applies_to_every_page_of_the_login(server: Server) -> None:
    site = new_site(server, consent=True, name="Tank Shop")
    browser = new_browser(server, totp_secret=TOTP_SECRET)
    page = browser.authorize(site, ui_locales="de-AT fr")
    assert language(page) == "de"
    assert "Anmelden" in page.text
    wrong = browser.submit(page, {"login": browser.login, "password": "wrong"})
    assert language(wrong) == "de"
    assert "Die E-Mail-Adresse oder das Passwort ist falsch." in wrong.text
    page = follow(browser, browser.submit(page, {"login": browser.login, "password": PASSWORD}))
    assert language(page) == "de"
    assert "Gib deinen Code ein" in page.text
    page = follow(browser, browser.submit(page, {"otp": pyotp.TOTP(TOTP_SECRET).now()}, form=0))
    assert language(page) == "de"
    assert "Darf <bdi>Tank Shop</bdi> erfahren, wer du bist?" in page.text
    assert "<title>Weiter · " in page.text


@pytest.mark.parametrize(
    ("ui_locales", "expected"), [("fr", "fr"), ("se es-419", "es"), ("en", "en"), ("pt", "pt-BR"), ("zh-CN", "zh-Hans")]
)
def test_ui_locales_takes_precedence_over_accept_language(
    server: Server, site: Site, ui_locales: str, expected: str
) -> None:
    browser = new_browser(server)
    browser.http.headers.update(GERMAN)
    assert language(browser.authorize(site, ui_locales=ui_locales)) == expected


@pytest.mark.parametrize("ui_locales", ["se", "", "\0", "é", "%%", "de" * 4000, "de_DE", "<script>"])
def test_malformed_ui_locales_is_ignored(server: Server, site: Site, ui_locales: str) -> None:
    browser = new_browser(server)
    browser.http.headers.update(GERMAN)
    assert language(browser.authorize(site, ui_locales=ui_locales)) == "de"
    assert language(browser.http.get(f"{AUTHORIZE}?{_query(site)}&ui_locales=%ff%fe")) == "de"


def test_accept_language_takes_precedence_over_the_language_of_the_user(server: Server) -> None:
    browser = new_browser(server, lang="fr").sign_in()
    assert language(browser.http.get("/account")) == "fr"
    assert "Votre compte" in browser.http.get("/account").text
    assert language(browser.http.get("/account", headers=GERMAN)) == "de"
    assert language(browser.http.get("/account", headers={"Accept-Language": "se"})) == "fr"
    assert language(new_browser(server, lang="xx").sign_in().http.get("/account")) == "en"


@pytest.mark.parametrize("header", ["", "*", "se", "zh-TW", "x" * 9000, "de;q=0", "\u00ff", ",;=" * 300])
def test_unsupported_accept_language_gives_english(server: Server, header: str) -> None:
    browser = new_browser(server)
    assert language(browser.http.get("/login", headers={b"Accept-Language": header.encode("latin-1")})) == "en"


def test_error_pages_are_translated(server: Server, site: Site) -> None:
    browser = new_browser(server)
    missing = browser.http.get("/nowhere", headers=GERMAN)
    assert language(missing) == "de"
    assert "Seite nicht gefunden" in missing.text
    unknown = browser.authorize(site, client_id="unknown", ui_locales="es")
    assert language(unknown) == "es"
    assert "No conocemos el sitio" in unknown.text
    forged = browser.http.post("/login", data={"csrf": "x"}, headers=GERMAN)
    assert forged.status_code == 403
    assert "Dieses Formular ist abgelaufen" in forged.text


def test_ui_locales_applies_to_the_logout_pages(server: Server) -> None:
    browser = new_browser(server).sign_in()
    page = browser.http.get("/proxy/oauth/logout", params={"ui_locales": "fr-BE"})
    assert language(page) == "fr"
    page = browser.submit(page, {})
    assert language(page) == "fr"
    assert "Vous êtes déconnecté" in page.text


def test_api_errors_are_not_translated(server: Server) -> None:
    browser = new_browser(server)
    response = browser.http.post("/proxy/oauth/token", json={}, headers=GERMAN)
    assert response.json()["error_description"] == "grant_type is required"
    assert "Content-Language" not in response.headers


@pytest.mark.parametrize(("headers", "lang"), [(GERMAN, "en"), ({}, "de")])
def test_mailed_code_is_in_the_language_of_the_page(server: Server, headers: dict[str, str], lang: str) -> None:
    browser = new_browser(server, email_2fa=True, lang=lang)
    browser.http.headers.update(headers)
    browser.submit(browser.http.get("/login"), {"login": browser.login, "password": PASSWORD})

    def mail() -> EmailMessage | None:
        read = (message_from_bytes(path.read_bytes(), policy=default) for path in mails.glob("*.eml"))
        return next((message for message in read if message["To"] == browser.login), None)

    mails = server.folder / "data" / "mail"
    message = until(mail)
    assert message["Subject"] == "Dein Anmeldecode für 127.0.0.1"
    assert re.search(r"Dein Anmeldecode lautet \d{6}\n", mail_text(message))


def test_discovery_lists_the_languages(site: Site) -> None:
    languages = site.http.get("/.well-known/openid-configuration").json()["ui_locales_supported"]
    assert languages == ["en", "de", "es", "fr", "ja", "ko", "pl", "pt-BR", "ru", "zh-Hans"]


def _query(site: Site) -> str:
    return str(httpx.QueryParams(site.query()))
