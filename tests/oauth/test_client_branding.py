"""The look of a client on the pages of its sign-in."""

import base64
import re
from typing import Any

import pyotp
import pytest

from sso.core.field_errors import FieldError
from tests.kit.browser import Browser, new_user
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.oauth import AUTHORIZE, Site, new_site
from tests.kit.server import Server

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
DATA = "data:image/svg+xml;base64," + base64.b64encode(SVG).decode()
HOST = "shop.example.com"
LOOK = {
    "logo_uri": f"https://{HOST}/logo.png?a=1&b=2",
    "accent": "#7C2D12",
    "signin_text": "Sign in to <buy> tanks.",
    "support_uri": "mailto:help@shop.example.com",
    "policy_uri": f"https://{HOST}/privacy",
    "tos_uri": f"https://{HOST}/terms",
}


def branded_site(server: Server, **changes: Any) -> Site:
    look = {**LOOK, **changes}
    return new_site(server, redirect_uri=f"https://{HOST}/cb", consent=True, name="Tank Shop", **look)


def refusal(server: Server, client: dict[str, Any]) -> str:
    """Applies the client and returns the error."""
    with pytest.raises(FieldError) as caught:
        server.apply({"clients": [client]})
    return str(caught.value)


def assert_branded(page: str, policy: str) -> None:
    assert (
        f'<img class="site-logo" src="https://{HOST}/logo.png?a=1&amp;b=2" alt="" referrerpolicy="no-referrer">' in page
    )
    assert '<link rel="stylesheet" href="/brand/accent-7c2d12.css">' in page
    assert re.findall(r'<li><a href="([^"]*)">(\w+)</a></li>', page)[:3] == [
        ("mailto:help@shop.example.com", "Support"),
        (f"https://{HOST}/privacy", "Privacy"),
        (f"https://{HOST}/terms", "Terms"),
    ]
    assert f"img-src 'self' data: https://{HOST};" in policy


def test_all_pages_of_the_sign_in_have_the_look_of_the_client(server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    with Browser(server) as browser:
        page = browser.get(AUTHORIZE, params=branded_site(server).query())
        assert_branded(page.text, page.headers["Content-Security-Policy"])
        assert "Sign in to &lt;buy&gt; tanks." in page.text
        page = browser.follow(browser.submit("/login", login=login, password=PASSWORD))
        assert_branded(page.text, page.headers["Content-Security-Policy"])
        page = browser.follow(browser.submit("/login/code", otp=pyotp.TOTP(TOTP_SECRET).now()))
        assert "Let <bdi>Tank Shop</bdi> know who you are?" in page.text
        assert_branded(page.text, page.headers["Content-Security-Policy"])
        account = browser.get("/account")
        assert "site-logo" not in account.text
        assert HOST not in account.headers["Content-Security-Policy"]


def test_embedded_logo_needs_no_exception_in_the_policy(server: Server) -> None:
    with Browser(server) as browser:
        page = browser.get(AUTHORIZE, params=branded_site(server, logo_uri=DATA).query())
    assert f'src="{DATA.replace("+", "&#43;")}"' in page.text or f'src="{DATA}"' in page.text
    assert "img-src 'self' data:;" in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("logo_uri", "https://tracker.example/pixel.png", "must be a data URI"),
        ("logo_uri", f"http://{HOST}/logo.png", "must be a data URI"),
        ("logo_uri", f"https://x.{HOST}/logo.png", "must be a data URI"),
        ("logo_uri", f"https://{HOST}@evil.example/", "must be a data URI"),
        ("logo_uri", f"https://{HOST}/a; script-src *", "must be a data URI"),
        ("logo_uri", "javascript:alert(1)", "must be a data URI"),
        ("logo_uri", "mailto:logo@example.com", "must be a data URI"),
        ("logo_uri", "data:text/html;base64,PGI+", "must be a data URI"),
        ("logo_uri", DATA.replace("svg+xml", "png"), "must be a data URI"),
        ("logo_uri", DATA + "A" * 40_000, "must be a data URI"),
        ("accent", "#ffee00", "must be darker"),
        ("accent", "blue", "must be a colour such as"),
        ("policy_uri", "javascript:alert(1)", "must be a URL that begins with"),
        ("tos_uri", "/terms", "must be a URL that begins with"),
        ("support_uri", 'https://a"b', "must be a URL that begins with"),
        ("signin_text", "x" * 501, "must have at most 500 printable characters"),
        ("signin_text", "a\nb", "must have at most 500 printable characters"),
    ],
)
def test_invalid_value_is_refused(server: Server, field: str, value: str, expected: str) -> None:
    site = branded_site(server)
    problem = refusal(server, {"client_id": site.client_id, field: value})
    assert problem.startswith(f"clients[0].{field}: {expected}")


def test_logo_must_stay_at_a_host_of_the_client(server: Server) -> None:
    site = branded_site(server)
    moved = {"client_id": site.client_id, "redirect_hosts": ["other.example"], "redirect_uris": []}
    assert refusal(server, moved).startswith("clients[0].logo_uri: must be a data URI")
    server.apply({"clients": [moved | {"logo_uri": ""}]})


def test_malformed_redirect_uri_of_a_client_with_a_logo_is_refused(server: Server) -> None:
    site = branded_site(server)
    for uri in ("https://[x", "https://[1.2.3.4]/cb"):
        problem = refusal(server, {"client_id": site.client_id, "redirect_uris": [uri]})
        assert problem.startswith("clients[0].redirect_uris[0]: expected an absolute")
