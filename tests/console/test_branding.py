"""Previews of brands: the branding of a client before and after it is saved, and the brand of the service."""

import base64
import html
import re
from collections.abc import Iterator
from typing import Any

import pytest

from sso.web.brand import theme_css
from tests.console.conftest import ConsoleBrowser, console_browser
from tests.kit.browser import Browser, new_user, query
from tests.kit.console_pages import PAYLOAD, undo_last
from tests.kit.registration import mails_to
from tests.kit.server import Server, until
from tests.perm.endpoints.conftest import Studio

CLIENT = "branded-in-console"
BRANDING = "/console/branding"
PATH = f"/console/clients/{CLIENT}/branding"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8"/></svg>'
LOGO = f"data:image/svg+xml;base64,{base64.b64encode(SVG.encode()).decode()}"


@pytest.fixture(scope="module", autouse=True)
def client(server: Server) -> None:
    server.apply(
        {
            "clients": [
                {
                    "client_id": CLIENT,
                    "client_secret": "a secret of sixteen",
                    "name": "Arena",
                    "profile": "oidc",
                    "redirect_uris": ["https://arena.example/callback"],
                }
            ]
        }
    )


@pytest.fixture(scope="module")
def browser(studio: Studio) -> Iterator[ConsoleBrowser]:
    with console_browser(studio, "can_manage_clients") as browser:
        yield browser


def stored(server: Server) -> Any:
    return query(
        server, "SELECT accent, logo_uri, signin_text, tos_uri FROM oauth_clients WHERE client_id = $1", CLIENT
    )


def preview(browser: ConsoleBrowser, **fields: str) -> str:
    """The text of the page after the button "Preview"."""
    browser.open(PATH)
    answer = browser.submit(PATH, preview="1", **fields)
    assert answer.status_code == 200, browser.problem
    return html.unescape(html.unescape(answer.text))


def test_stored_redirect_uri_that_is_malformed_does_not_break_the_pages(browser: ConsoleBrowser) -> None:
    """Older versions accepted some hosts in brackets that are no IPv6 addresses."""
    change = "UPDATE oauth_clients SET redirect_uris = $1 WHERE client_id = $2 RETURNING 1"
    try:
        for uri in ("https://[::::]/cb", "https://[x"):
            assert query(browser.server, change, [uri], CLIENT)
            assert "Arena" in preview(browser, accent="#aa2211")
            answer = browser.submit(PATH, logo_uri="https://arena.example/logo.png")
            assert (answer.status_code, "a host of the redirect URIs" in answer.text) == (422, True)
            assert "https://[" in browser.open(f"/console/clients/{CLIENT}/quickstart/other")
            assert "https://[" in browser.open(f"/console/clients/{CLIENT}")
    finally:
        query(browser.server, change, ["https://arena.example/callback"], CLIENT)


def test_preview_shows_the_real_pages_in_both_themes_and_widths(browser: ConsoleBrowser) -> None:
    before = stored(browser.server)
    for page, words in {
        "sign-in": "to continue to",
        "consent": "know who you are?",
        "confirmation": "Let a device sign in to",
    }.items():
        text = preview(browser, page=page, accent="#aa2211", signin_text="Use your arena account.")
        assert text.count("<iframe") == text.count('sandbox="allow-same-origin"') == 4
        for theme in ("light", "dark"):
            assert text.count(f'href="/brand/theme-{theme}-aa2211.css"') == 2, theme
        assert words in text
        assert "Arena" in text
        assert "form-fields.js" not in text.partition("srcdoc")[2]  # no script in the previews
    assert text.count("Use your arena account.") >= 1
    assert stored(browser.server) == before


def test_branding_is_saved(browser: ConsoleBrowser) -> None:
    browser.open(PATH)
    assert "saved" in browser.act(PATH, accent="#0F766E", logo_uri=LOGO, signin_text="Hello", tos_uri="")
    assert dict(stored(browser.server)[0]) == {
        "accent": "#0f766e", "logo_uri": LOGO, "signin_text": "Hello", "tos_uri": ""
    }  # fmt: skip
    assert "theme-dark-0f766e.css" in html.unescape(browser.open(PATH))
    assert browser.act(PATH, accent="", logo_uri="", signin_text="")
    assert stored(browser.server)[0]["logo_uri"] == ""


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"accent": "yellow"}, "Must be a colour"),
        ({"accent": "yellow", "preview": "1"}, "Must be a colour"),
        ({"accent": "#ffff00"}, "Must be darker"),
        ({"logo_uri": "https://elsewhere.example/logo.svg"}, "Must be a data URI"),
        ({"logo_uri": "https://elsewhere.example/logo.svg", "preview": "1"}, "Must be a data URI"),
        ({"logo_uri": "javascript:alert(1)"}, "Must be a data URI"),
        ({"logo_uri": "https://[x/logo.svg"}, "Must be a data URI"),
        ({"policy_uri": "javascript:alert(1)"}, "Must be a URL"),
        ({"signin_text": "x" * 501}, "Must have at most 500"),
    ],
)
def test_bad_values_are_named_and_change_nothing(browser: ConsoleBrowser, fields: dict[str, str], words: str) -> None:
    before = stored(browser.server)
    browser.open(PATH)
    answer = browser.submit(PATH, **fields)
    assert (answer.status_code, words in html.unescape(browser.problem)) == (422, True), browser.problem
    assert "elsewhere.example" not in answer.headers["Content-Security-Policy"]
    assert "<iframe" not in answer.text
    browser.open(PATH)
    part = browser.post(f"{PATH}/preview", browser.form(PATH) | fields)
    assert (part.status_code, words in html.unescape(part.text)) == (200, True)  # htmx shows it in place
    assert stored(browser.server) == before


def test_older_version_is_not_overwritten(browser: ConsoleBrowser, root_browser: ConsoleBrowser) -> None:
    browser.open(PATH)
    root_browser.open(PATH)
    assert root_browser.act(PATH, signin_text="By root")
    answer = browser.submit(PATH, signin_text="By the other")
    assert (answer.status_code, "Someone else has changed" in browser.problem) == (409, True)
    assert stored(browser.server)[0]["signin_text"] == "By root"


@pytest.mark.parametrize("path", [PATH, BRANDING])
def test_preview_keeps_the_version_so_that_later_changes_of_others_stay(
    studio: Studio, root_browser: ConsoleBrowser, path: str
) -> None:
    with console_browser(studio, "can_manage_clients") as browser:
        browser.open(path)
        root_browser.open(path)
        assert root_browser.act(path, signin_text="Changed by root")
        assert browser.submit(path, preview="1", signin_text="By the other").status_code == 200
        for _ in range(2):
            answer = browser.submit(path, signin_text="By the other")
            assert (answer.status_code, "Someone else has changed" in browser.problem) == (409, True)
        assert root_browser.act(path, signin_text="")


def test_logo_of_the_site_is_the_only_foreign_image(browser: ConsoleBrowser) -> None:
    browser.open(PATH)
    answer = browser.submit(PATH, preview="1", logo_uri="https://arena.example/logo.svg")
    policy = answer.headers["Content-Security-Policy"]
    assert "img-src 'self' data: https://arena.example;" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_texts_of_previews_are_escaped_twice(browser: ConsoleBrowser) -> None:
    browser.open(PATH)
    answer = browser.submit(PATH, preview="1", signin_text=PAYLOAD)
    assert "<img src=x" not in answer.text
    assert "<img src=x" not in html.unescape(answer.text.partition("srcdoc=")[2])  # the documents in the frames
    assert "&amp;lt;script&amp;gt;alert(1)" in answer.text


def test_viewer_sees_previews_and_no_form(studio: Studio) -> None:
    with console_browser(studio, "can_view_clients") as browser:
        text = browser.open(PATH, params={"page": "consent"})
        assert text.count("<iframe") == 4
        assert f'action="{PATH}"' not in text
        assert "/branding" in browser.open(f"/console/clients/{CLIENT}")
        assert f'action="{BRANDING}"' not in browser.open(BRANDING)


def test_brand_of_the_service_is_saved_shown_everywhere_and_undone(
    browser: ConsoleBrowser, root_browser: ConsoleBrowser
) -> None:
    browser.open(BRANDING)
    fields = browser.form(BRANDING) | {
        "name": 'Iron "Forge"',
        "accent": "#aa2211",
        "support_url": "mailto:a@iron.example",
    }
    fields.pop("logo_file")
    preview_part = browser.http.post(
        f"{BRANDING}/preview", data=fields, files={"logo_file": ("x.html", SVG, "text/html")}
    )
    text = html.unescape(html.unescape(preview_part.text))
    assert "White text on this colour is very easy to read: its contrast is 7." in text
    assert "theme-dark-aa2211.css" in text
    assert "Iron" not in browser.open("/console/branding")  # nothing is stored
    saved = browser.http.post(BRANDING, data=fields, files={"logo_file": ("logo.svg", SVG, "image/svg+xml")})
    assert saved.headers["Location"].endswith("done=brand-saved"), saved.text

    def shown() -> str:
        page = browser.http.get("/forgot").text
        return page if "Iron" in page else ""

    page = until(shown)
    assert " · Iron &#34;Forge&#34;</title>" in page
    assert ("/brand/accent-aa2211.css" in page, "mailto:a@iron.example" in page) == (True, True)
    path = re.search(r'<img class="logo" src="(/brand/logo-[0-9a-f]{16}\.svg)"', page)
    assert path
    logo = browser.http.get(path[1])
    assert (logo.text, "sandbox" in logo.headers["Content-Security-Policy"]) == (SVG, True)

    def is_in_mails() -> bool:
        login = new_user(browser.server, email_2fa=True)
        with Browser(browser.server) as other:
            other.sign_in(login)
        return 'Iron "Forge"' in mails_to(browser.server, login)[0]

    until(is_in_mails)  # the worker that answers may take up the change a moment later
    browser.open(BRANDING)
    answer = browser.submit(BRANDING, name="Other")
    assert answer.is_redirect
    browser.forget_authentication()
    browser.open(BRANDING)
    answer = browser.submit(BRANDING, name="Thief")
    assert (answer.status_code, "Confirm that it is you" in answer.text) == (403, True)
    undo_last(root_browser, "brand.save")
    until(lambda: "Iron" in browser.http.get("/forgot").text)
    root_browser.open(BRANDING)
    assert root_browser.act(BRANDING, name="", accent="#3b50cf", support_url="", remove_logo="1")
    until(lambda: "/brand/logo-" not in browser.http.get("/forgot").text)
    assert "Iron" not in browser.http.get("/forgot").text


def test_bad_values_of_the_brand_are_named_and_change_nothing(root_browser: ConsoleBrowser) -> None:
    huge = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (5000).to_bytes(4) * 2
    for fields, words in (
        ({"accent": "#ffff00"}, "Must be darker"),
        ({"name": "x" * 65}, "Must have 1-64"),
        ({"support_url": "javascript:alert(1)"}, "ust "),
        ({"terms_url": "http://studio.example/terms"}, "Must be a URL that begins with https://"),
        ({"logo_data": "https://elsewhere.example/logo.svg"}, "ust be an SVG"),
        ({"logo_data": "data:text/html;base64,eA=="}, "ust be an SVG"),
        ({"logo_data": f"data:image/png;base64,{base64.b64encode(huge).decode()}"}, "4096 pixels"),
    ):
        root_browser.open(BRANDING)
        answer = root_browser.submit(BRANDING, **fields)
        assert (answer.status_code, words in html.unescape(root_browser.problem)) == (422, True), fields
        assert "logo_data" not in root_browser.form(BRANDING)  # a refused logo is not sent again
    assert not query(root_browser.server, "SELECT FROM stored_brand WHERE texts ? 'terms_url'")
    for content_type in ("multipart/form-data", "multipart/form-data; boundary=x"):
        answer = root_browser.http.post(BRANDING, content=b"--y\r\n", headers={"Content-Type": content_type})
        assert answer.status_code in (400, 415), content_type


def test_theme_style_sheets_have_the_colours_of_both_themes(server: Server) -> None:
    with server.client() as client:
        dark = client.get("/brand/theme-dark-0f766e.css")
        assert (dark.status_code, dark.headers["Content-Type"]) == (200, "text/css; charset=utf-8")
        assert "--page: #101219" in dark.text
        assert "color-scheme: dark" in dark.text
        assert "--page: #f3f4f8" in client.get("/brand/theme-light.css").text
        for name in ("blue", "dark-zz", "dark-ffff00", "..%2f..%2fsso", ""):
            assert client.get(f"/brand/theme-{name}.css").status_code == 404, name
    assert theme_css("light", None).count("--accent:") == 1
