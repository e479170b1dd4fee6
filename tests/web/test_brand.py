"""The brand by settings: on every page, in mails, and as files that browsers keep."""

import email
import re
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import default

import pytest

from sso.config import ConfigError, load
from sso.core.brand import Brand
from sso.core.language import Text
from sso.core.logo import check_logo
from sso.mail.content import MailContent, mail_logo, render
from sso.mail.smtp import build_message
from tests.kit.browser import Browser, new_user
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
NAME = "Iron & <Steel>"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63606060f80f00010401005fe5c34b"
    "0000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def branded(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("branded")
    (folder / "logo.svg").write_bytes(SVG)
    settings = {
        "SSO_DATABASE_URL": postgres_server.fresh(),
        "SSO_BRAND_NAME": NAME,
        "SSO_BRAND_LOGO": str(folder / "logo.svg"),
        "SSO_BRAND_ACCENT": "#0F766E",
        "SSO_SUPPORT_URL": "mailto:help@example.com",
        "SSO_PRIVACY_URL": "https://example.com/privacy?a=1&b=2#top",
        "SSO_TERMS_URL": "https://example.com/terms",
        "SSO_SIGNIN_TEXT": "Use your <game> account.",
    }
    with running(folder, **QUICK, **settings) as server:
        yield server


@pytest.fixture
def browser(branded: Server) -> Iterator[Browser]:
    with Browser(branded) as browser:
        yield browser


def last_mail(server: Server, login: str) -> EmailMessage:
    def find() -> EmailMessage | None:
        mails = (
            email.message_from_bytes(path.read_bytes(), policy=default)
            for path in (server.folder / "data" / "mail").glob("*.eml")
        )
        return next((mail for mail in mails if mail["To"] == login), None)

    mail = until(find)
    assert isinstance(mail, EmailMessage)
    return mail


@pytest.mark.parametrize("path", ["/login", "/login?next=/account", "/no/such/page"])
def test_every_page_has_the_brand(browser: Browser, path: str) -> None:
    page = browser.get(path).text
    assert " · Iron &amp; &lt;Steel&gt;</title>" in page
    assert "Nobody from Iron &amp; &lt;Steel&gt; will ask you" in page
    assert re.search(r'<img class="logo" src="/brand/logo-[0-9a-f]{16}\.svg" alt="">', page)
    assert '<link rel="stylesheet" href="/brand/accent-0f766e.css">' in page
    links = re.findall(r'<li><a href="([^"]*)">(\w+)</a></li>', page)
    assert links == [
        ("mailto:help@example.com", "Support"),
        ("https://example.com/privacy?a=1&amp;b=2#top", "Privacy"),
        ("https://example.com/terms", "Terms"),
    ]


def test_sign_in_form_has_the_text(browser: Browser) -> None:
    assert "Use your &lt;game&gt; account." in browser.get("/login").text


def test_logo_is_kept_by_browsers_and_cannot_run_scripts(browser: Browser) -> None:
    (path,) = set(re.findall(r'src="(/brand/logo[^"]*)"', browser.get("/login").text))
    logo = browser.http.get(path)
    assert (logo.status_code, logo.content, logo.headers["Content-Type"]) == (200, SVG, "image/svg+xml")
    assert logo.headers["Content-Security-Policy"].split("; ")[0] == "default-src 'none'"
    assert "sandbox" in logo.headers["Content-Security-Policy"].split("; ")
    assert logo.headers["X-Content-Type-Options"] == "nosniff"
    assert logo.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_accent_is_a_style_sheet(browser: Browser) -> None:
    style = browser.http.get("/brand/accent-0f766e.css")
    assert (style.status_code, style.headers["Content-Type"]) == (200, "text/css; charset=utf-8")
    assert "--accent: #0f766e;" in style.text
    assert style.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    for path in ("accent-ffffff.css", "accent-.css", "accent-x}body{}.css", "accent-0f766e.css/x", "logo-0.svg"):
        assert browser.http.get(f"/brand/{path}").status_code == 404, path


def test_mail_has_the_brand(branded: Server, browser: Browser) -> None:
    login = new_user(branded, email_2fa=True)
    browser.sign_in(login)
    mail = last_mail(branded, login)
    assert mail["Subject"] == f"Your sign-in code for {NAME}"
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    assert text.get_content().endswith(f"\n\n{NAME}\nDo you need help? help@example.com\n")
    assert "Iron &amp; &lt;Steel&gt;" in html.get_content()
    assert "rgb(15, 118, 110)" in html.get_content()
    assert '<a href="mailto:help@example.com"' in html.get_content()
    assert "<img" not in html.get_content()  # mail programs show no SVG


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("SSO_BRAND_ACCENT", "#ffcc00", "must be darker: the white text of buttons has a contrast of 1.5 to 1"),
        ("SSO_BRAND_ACCENT", "blue", "must be a colour such as #3b50cf"),
        ("SSO_BRAND_LOGO", "/etc/passwd", "must be a readable SVG, PNG or WebP file of at most 256 KiB"),
        ("SSO_BRAND_LOGO", "/missing.png", "must be a readable SVG, PNG or WebP file of at most 256 KiB"),
        ("SSO_BRAND_NAME", " ", "must have 1-64 printable characters"),
        ("SSO_BRAND_NAME", "a\nBcc: x@example.com", "must have 1-64 printable characters"),
        ("SSO_SIGNIN_TEXT", "x" * 501, "must have 1-500 printable characters"),
        ("SSO_SUPPORT_URL", "javascript:alert(1)", "must be a URL that begins with https://, http:// or mailto:"),
        ("SSO_PRIVACY_URL", "//example.com", "must be a URL that begins with https://, http:// or mailto:"),
        ("SSO_TERMS_URL", "https://", "must be a URL that begins with https://, http:// or mailto:"),
        ("SSO_TERMS_URL", 'https://example.com/"><script>', "must be a URL that begins with"),
        ("SSO_SUPPORT_URL", "mailto:", "must be a URL that begins with https://, http:// or mailto:"),
        ("SSO_SUPPORT_URL", "https://user:secret@example.com", "must be a URL that begins with"),
    ],
)
def test_invalid_setting_is_an_error_at_the_start(name: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: {re.escape(expected)}"):
        load(None, {name: value})


def test_png_logo_is_a_part_of_the_mail() -> None:
    brand = Brand(logo=check_logo(PNG))
    content = MailContent(Text("Hello"), (Text("A link:"),), link="https://example.com/", link_label=Text("Open"))
    rendered = render(content, "en", brand)
    mail = build_message("sso@example.com", "ann@example.com", "Hello", rendered.text, rendered.html, mail_logo(brand))
    read = email.message_from_bytes(mail.as_bytes(), policy=default)
    html = read.get_body(("html",))
    assert html is not None
    assert re.findall(r'src="([^"]*)"', html.get_content()) == ["cid:logo@sso"]
    (image,) = (part for part in read.walk() if part.get_content_type() == "image/png")
    assert image["Content-ID"] == "<logo@sso>"
    assert image.get_content() == PNG
