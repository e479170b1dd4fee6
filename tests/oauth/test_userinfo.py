"""GET and POST /proxy/oauth/userinfo."""

from typing import Any

import httpx
import pytest

from tests.kit.oauth import USERINFO, Browser, Site, error_of


@pytest.mark.parametrize(
    ("scope", "more"),
    [
        ("openid", {}),
        ("openid email", {"email": "{login}"}),
        ("openid profile", {"nickname": "Ann"}),
        ("openid trust", {"email_verified": True, "phone_verified": False}),
        (
            "openid email profile trust",
            {"email": "{login}", "nickname": "Ann", "email_verified": True, "phone_verified": False},
        ),
    ],
)
def test_scopes_determine_the_claims_of_userinfo(
    site: Site, browser: Browser, scope: str, more: dict[str, Any]
) -> None:
    data = site.tokens(browser, scope=scope)
    response = site.userinfo(data["access_token"])
    sub = site.claims(data["id_token"])["sub"]
    expected = {name: browser.login if value == "{login}" else value for name, value in more.items()}
    assert response.json() == {"status": "ok", "sub": sub, **expected}
    assert response.headers["Cache-Control"] == "no-store"


def test_userinfo_accepts_post(site: Site, browser: Browser) -> None:
    headers = {"Authorization": f"Bearer {site.tokens(browser)['access_token']}"}
    assert site.http.post(USERINFO, headers=headers).json()["status"] == "ok"


def test_userinfo_refuses_everything_but_a_valid_access_token(site: Site, browser: Browser) -> None:
    data = site.tokens(browser)
    token = data["access_token"]
    for bad in (
        None, "", "Bearer", token, f"Basic {token}", f"Bearer {token[:-1]}", f"Bearer {token}x",
        f"Bearer {token.swapcase()}", f"Bearer {token} {token}", f"Bearer  x{token}", f"Bearer {data['id_token']}",
        f"Bearer {data['refresh_token']}", f'Bearer "{token}"', f"Bearer {token}%20", "Bearer é",
        f"Bearer {'x' * 9000}",
    ):  # fmt: skip
        headers = {b"Authorization": bad.encode()} if bad is not None else {}
        response = site.http.get(USERINFO, headers=headers)
        assert error_of(response) == (401, "invalid_token"), bad
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert error_of(site.http.get(f"{USERINFO}?access_token={token}")) == (401, "invalid_token")
    assert site.userinfo(token).status_code == 200


def test_userinfo_with_two_authorization_headers_is_refused(site: Site, browser: Browser) -> None:
    token = site.tokens(browser)["access_token"]
    headers = httpx.Headers([("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")])
    assert site.http.get(USERINFO, headers=headers).status_code == 400
