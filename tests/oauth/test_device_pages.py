"""The pages of a device's sign-in, over HTTP: the code, the sign-in, and the confirmation with the words."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.kit.browser import AuthenticatorApp, Browser, fresh_browser, new_user
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.device import Device, new_device_site, start_device, type_code
from tests.kit.oauth import ACR_MFA, Site, error_of
from tests.kit.server import Server


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    with fresh_browser(server, new_user(server)) as browser:
        yield browser


def link_of(device: Device) -> str:
    parts = urlsplit(device.answer["verification_uri_complete"])
    return f"{parts.path}?{parts.query}"


def shows_session(page: httpx.Response, device: Device) -> bool:
    return page.status_code == 200 and device.match in page.text


# The code


@pytest.mark.parametrize("change", [str, str.lower, lambda c: c.replace("-", ""), lambda c: f"  {c[:2]} {c[2:]} "])
def test_code_may_be_typed_in_any_case_with_or_without_dashes_and_spaces(
    tv: Site, browser: Browser, change: "type[str]"
) -> None:
    device = start_device(tv)
    assert shows_session(type_code(browser, change(device.user_code)), device)


@pytest.mark.parametrize("typed", ["", "BBBB-BBBB", "x", "A" * 1000, "\u212aBBB-BBBB", "B" * 9, "<script>"])
def test_wrong_code_shows_the_form_again(browser: Browser, typed: str) -> None:
    page = type_code(browser, typed)
    assert page.status_code == 404
    assert "We do not know this code." in browser.problem
    assert "<script>" not in page.text


def test_link_with_the_code_selects_the_session_and_confirms_nothing(tv: Site, browser: Browser) -> None:
    device = start_device(tv)
    page = browser.follow(browser.follow(browser.get(link_of(device))))
    assert shows_session(page, device)
    assert error_of(device.ask()) == (400, "authorization_pending")


def test_form_without_a_session_is_protected_by_the_visit(server: Server, tv: Site) -> None:
    device = start_device(tv)
    with Browser(server) as stranger:
        assert stranger.http.post("/device", data={"user_code": device.user_code}).status_code == 403
        stranger.get("/device")
        answer = stranger.submit("/device", user_code=device.user_code)
        assert answer.status_code == 303


# The sign-in


def test_sign_in_leads_to_the_confirmation_and_confirms_nothing(server: Server, tv: Site) -> None:
    device = start_device(tv)
    with Browser(server) as visitor:
        page = type_code(visitor, device.user_code)
        assert f"Site {tv.client_id}" in page.text
        answer = visitor.submit("/login", login=new_user(server), password=PASSWORD)
        page = visitor.follow(answer)
        assert shows_session(page, device)
        assert error_of(device.ask()) == (400, "authorization_pending")
        visitor.follow(visitor.submit(f"/game/{device.gsid}/continue"))
        assert device.ask().status_code == 200


def test_user_with_second_factor_signs_in_with_it(server: Server, tv: Site) -> None:
    device = start_device(tv)
    with Browser(server) as visitor:
        type_code(visitor, device.user_code)
        login = new_user(server, totp_secret=TOTP_SECRET)
        visitor.follow(visitor.submit("/login", login=login, password=PASSWORD))
        page = visitor.follow(visitor.submit("/login/code", otp=AuthenticatorApp(TOTP_SECRET).code()))
        assert shows_session(page, device)
        visitor.follow(visitor.submit(f"/game/{device.gsid}/continue"))
        claims = tv.claims(device.ask().json()["id_token"])
        assert (claims["amr"], claims["acr"]) == (["pwd", "otp", "mfa"], ACR_MFA)


def test_disabled_user_cannot_confirm(server: Server, tv: Site) -> None:
    device, login = start_device(tv), new_user(server)
    with fresh_browser(server, login) as visitor:
        assert shows_session(type_code(visitor, device.user_code), device)
        fields = visitor.form(f"/game/{device.gsid}/continue")
        server.apply({"users": [{"login": login, "disabled": True}]})
        visitor.post(f"/game/{device.gsid}/continue", fields)
        assert device.row()["status"] == "pending"


# The confirmation


def test_confirmation_names_the_site_its_look_and_its_scopes(server: Server, browser: Browser) -> None:
    site = new_device_site(
        server, name="Films & more", accent="#0f766e", policy_uri="https://films.example.com/privacy"
    )
    device = start_device(site, scope="openid offline_access email")
    page = type_code(browser, device.user_code).text
    assert "Let a device sign in to <bdi>Films &amp; more</bdi>?" in page
    assert "your e-mail address" in page
    assert "even while you are away" in page
    assert "your nickname" not in page
    assert "https://films.example.com/privacy" in page
    assert "/brand/accent-" in page
    assert "your game" not in page.lower()


def test_stranger_cannot_confirm_what_another_user_has_confirmed(server: Server, tv: Site, browser: Browser) -> None:
    device = start_device(tv)
    type_code(browser, device.user_code)
    browser.follow(browser.submit(f"/game/{device.gsid}/continue"))
    with fresh_browser(server, new_user(server)) as other:
        assert "This code was already used" in other.get(f"/game/{device.gsid}").text
        assert "do not know this code" in type_code(other, device.user_code).text
    assert device.ask().status_code == 200


def test_device_that_stopped_asking_is_reported(tv: Site, browser: Browser) -> None:
    device = start_device(tv)
    type_code(browser, device.user_code)
    page = browser.follow(browser.submit(f"/game/{device.gsid}/continue"))
    assert "The device is not responding" in page.text, "it has never asked"
    device.change("held_until = now() + interval '20 s'")
    assert "your device is about to fetch it" in browser.get(f"/game/{device.gsid}").text


def test_visitor_without_account_can_stop_the_sign_in(server: Server, tv: Site) -> None:
    device = start_device(tv)
    with Browser(server) as visitor:
        assert "on a device yourself" in visitor.get(f"/game/{device.gsid}/deny").text
        assert "The device was not signed in" in visitor.submit(f"/game/{device.gsid}/deny").text
    assert error_of(device.ask()) == (400, "access_denied")
