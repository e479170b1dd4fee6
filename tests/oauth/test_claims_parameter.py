"""The parameter claims: a client requests claims one by one (OpenID Connect Core section 5.5)."""

import json
from typing import Any

import pytest

from tests.kit.fapi import new_fapi_client
from tests.kit.oauth import ACR_MFA, ACR_PASSWORD, PAR, Browser, Site, error_of, new_browser, new_site, query_of
from tests.kit.server import Server

USER_CLAIMS = {"email", "email_verified", "name", "nickname", "preferred_username", "locale", "updated_at"}


def disclosed(site: Site, browser: Browser, claims: dict[str, Any], **changes: str) -> tuple[set[str], set[str]]:
    """Returns the claims about the user in the ID token and in userinfo."""
    code = browser.code(site, **{"claims": json.dumps(claims), "scope": "openid offline_access", **changes})
    first = site.redeem(code, headers=site.basic()).json()
    refreshed = site.refresh(first["refresh_token"], headers=site.basic()).json()
    found = []
    for tokens in (first, refreshed):  # a refresh discloses the same
        id_token, userinfo = site.claims(tokens["id_token"]), site.userinfo(tokens["access_token"]).json()
        found.append((USER_CLAIMS & id_token.keys(), (USER_CLAIMS | {"phone_verified"}) & userinfo.keys()))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("claims", "in_id_token", "in_userinfo"),
    [
        ({"id_token": {"email": None}}, {"email"}, set()),
        ({"userinfo": {"email": {"essential": True}, "name": None}}, set(), {"email", "name"}),
        ({"userinfo": {"nickname": {"value": "Ann"}, "name": {"value": "Bob"}}}, set(), {"nickname"}),
        ({"id_token": {"nickname": {"values": ["Bob", "Ann"]}, "name": {"values": ["Bob"]}}}, {"nickname"}, set()),
        ({"userinfo": {"phone_verified": None}}, set(), {"phone_verified"}),
        ({"id_token": {"phone_verified": None}}, set(), set()),
        ({"userinfo": {"https://example.com/rank": {"essential": True}, "address": None}}, set(), set()),
        ({"other": 5, "id_token": None, "userinfo": {"email": {"unknown": 1}}}, set(), {"email"}),
        ({}, set(), set()),
    ],
)
def test_requested_claims_are_disclosed_where_they_were_requested(
    oidc: Site, browser: Browser, claims: dict[str, Any], in_id_token: set[str], in_userinfo: set[str]
) -> None:
    assert disclosed(oidc, browser, claims) == (in_id_token, in_userinfo)


def test_claims_of_the_scopes_stay(oidc: Site, browser: Browser) -> None:
    with_email = {"email", "email_verified"}
    found = disclosed(oidc, browser, {"userinfo": {"name": None}}, scope="openid offline_access email")
    assert found == (with_email, {*with_email, "name"})


def in_lists(text: str, levels: int = 300) -> str:
    """Returns the text with a value of so many levels."""
    return text % ("[" * levels + "]" * levels)


@pytest.mark.parametrize(
    "text",
    [
        "x", "[]", "5", '"email"', '{"id_token": []}', '{"userinfo": 5}', '{"userinfo": {"email": true}}',
        '{"userinfo": {"email": {"essential": 1}}}', '{"userinfo": {"email": {"values": "a"}}}',
        '{"userinfo": {"email": {"value": 1, "values": []}}}', '{"id_token": {"sub": {"value": 5}}}',
        '{"id_token": {"sub": {"values": ["1", "2"]}}}', '{"id_token": {"acr": {"values": [1]}}}', "[" * 4000,
        '{"id_token": {"é": ' + "9" * 4090, '{"id_token": {"sub": {"value": "\\u0000"}}}',
        '{"id_token": {"acr": {"essential": true, "values": ["a b"]}}}',
        in_lists('{"userinfo": {"email": {"value": %s}}}'),
        in_lists('{"id_token": {"name": {"values": %s}}}'), in_lists('{"other": %s}', 64),
    ],
)  # fmt: skip
def test_malformed_parameter_is_refused(oidc: Site, browser: Browser, text: str) -> None:
    answer = query_of(browser.authorize(oidc, claims=text))
    assert answer["error"] == "invalid_request"
    assert answer["error_description"].startswith("claims")


def test_subject_must_be_the_one_who_signs_in(server: Server, oidc: Site, browser: Browser) -> None:
    user_id = oidc.claims(oidc.redeem(browser.code(oidc), headers=oidc.basic()).json()["id_token"])["sub"]
    own = json.dumps({"id_token": {"sub": {"value": user_id}}})
    assert "code" in query_of(browser.authorize(oidc, claims=own, prompt="none"))
    other = json.dumps({"userinfo": {"sub": {"value": "424242"}}})
    assert query_of(browser.authorize(oidc, claims=other, prompt="none"))["error"] == "login_required"


def test_essential_acr_is_required_and_a_voluntary_one_is_not(oidc: Site, browser: Browser) -> None:
    for acr, error in [
        ({"essential": True, "values": [ACR_MFA]}, "unmet_authentication_requirements"),
        ({"essential": True, "value": ACR_PASSWORD}, None),
        ({"values": [ACR_MFA]}, None),
    ]:
        answer = query_of(browser.authorize(oidc, claims=json.dumps({"id_token": {"acr": acr}}), prompt="none"))
        assert answer.get("error") == error


def test_users_are_asked_for_claims_as_for_their_scopes(server: Server) -> None:
    site = new_site(server, profile="oidc", consent=True)
    browser = new_browser(server).sign_in()
    allowed = browser.submit(browser.authorize(site), {"decision": "allow"})
    assert "code" in query_of(allowed)
    assert "code" in query_of(browser.authorize(site))
    claims = json.dumps({"userinfo": {"email": None}})
    asked = browser.authorize(site, claims=claims)
    assert asked.status_code == 200
    assert "e-mail" in asked.text
    code = query_of(browser.submit(asked, {"decision": "allow"}))["code"]
    tokens = site.redeem(code, headers=site.basic()).json()
    assert site.userinfo(tokens["access_token"]).json()["email"] == browser.login
    assert "code" in query_of(browser.authorize(site, claims=claims))


def test_account_page_says_what_the_claims_of_a_site_without_consent_disclose(server: Server) -> None:
    site = new_site(server, profile="oidc", name="Claiming Shop")
    browser = new_browser(server).sign_in()
    for claims in ({"userinfo": {"email": None}}, {"id_token": {"nickname": None}, "userinfo": {"name": None}}):
        code = browser.code(site, scope="openid offline_access", claims=json.dumps(claims))
        assert site.redeem(code, headers=site.basic()).status_code == 200
    page = browser.http.get("/account").text
    assert "Claiming Shop" in page
    assert ("your e-mail address" in page, "your nickname" in page) == (True, True)
    assert "whether your contact details are verified" not in page


def test_strict_client_has_no_such_parameter(site: Site, browser: Browser) -> None:
    tokens = site.tokens(browser, claims="malformed")
    assert "email" not in site.userinfo(tokens["access_token"]).json()


def test_deeply_nested_parameter_cannot_be_pushed(server: Server) -> None:
    site = new_site(server, profile="oidc")
    claims = in_lists('{"userinfo": {"email": {"value": %s}}}')
    answer = site.http.post(PAR, data=site.query(claims=claims), headers=site.basic())
    assert error_of(answer) == (400, "invalid_request"), answer.text


def test_parameter_can_be_pushed(server: Server, browser: Browser) -> None:
    client = new_fapi_client(server)
    tokens = client.tokens(browser, claims=json.dumps({"id_token": {"email": None}}))
    assert client.site.claims(tokens["id_token"])["email"] == browser.login
