"""The modules of the plans Basic OP and Form Post OP, each in both response modes."""

import base64
import json
from urllib.parse import urlencode

import jwt as pyjwt
import pytest

from tests.conformance.plans import BASIC, Module
from tests.conformance.relying_party import STATE, RelyingParty
from tests.kit.browser import query
from tests.kit.oauth import pkce
from tests.kit.server import Server

DOES_NOT_APPLY = [module for module in BASIC if module.skip_if]


@pytest.mark.parametrize("module", DOES_NOT_APPLY, ids=lambda module: module.name)
def test_module_does_not_apply(rp: RelyingParty, module: Module) -> None:
    """Discovery says that the service does not support what the module tests."""
    assert module.skip_if
    name, value = module.skip_if
    supported = rp.metadata[name]
    assert value not in supported if isinstance(supported, list) else supported != value


def test_oidcc_server(new_visitor: RelyingParty) -> None:
    rp = new_visitor
    tokens = rp.tokens_of(rp.code(rp.sign_in(rp.authorize())))
    userinfo = rp.userinfo(tokens["access_token"])
    assert userinfo["sub"] == rp.claims(tokens["id_token"])["sub"]


def test_oidcc_response_type_missing(rp: RelyingParty) -> None:
    answer = rp.answer(rp.authorize(response_type=None))
    assert answer["error"] == "invalid_request"
    assert answer["state"] == STATE


def test_oidcc_idtoken_signature(rp: RelyingParty) -> None:
    id_token = rp.tokens()["id_token"]
    header = pyjwt.get_unverified_header(id_token)
    assert header["alg"] == "RS256"
    keys = rp.site.http.get(rp.metadata["jwks_uri"]).json()["keys"]
    assert [key["kty"] for key in keys if key["kid"] == header["kid"]] == ["RSA"]


def test_oidcc_claims_essential(rp: RelyingParty) -> None:
    tokens = rp.tokens(claims=json.dumps({"userinfo": {"name": {"essential": True}}}))
    assert rp.userinfo(tokens["access_token"])["name"]


def test_oidcc_userinfo_get(rp: RelyingParty) -> None:
    tokens = rp.tokens()
    assert rp.userinfo(tokens["access_token"])["sub"] == rp.claims(tokens["id_token"])["sub"]


def test_oidcc_userinfo_post_header(rp: RelyingParty) -> None:
    tokens = rp.tokens()
    assert rp.userinfo(tokens["access_token"], "POST")["sub"] == rp.claims(tokens["id_token"])["sub"]


def test_oidcc_userinfo_post_body(rp: RelyingParty) -> None:
    tokens, endpoint = rp.tokens(), rp.metadata["userinfo_endpoint"]
    answer = rp.site.http.post(endpoint, data={"access_token": tokens["access_token"]})
    assert answer.status_code == 200
    assert answer.json()["sub"] == rp.claims(tokens["id_token"])["sub"]
    assert rp.site.http.post(endpoint, data={"access_token": "unknown"}).status_code == 401
    both = {"Authorization": "Bearer unknown"}
    assert rp.site.http.post(endpoint, data={"access_token": tokens["access_token"]}, headers=both).status_code == 401


def test_oidcc_ensure_request_without_nonce_succeeds_for_code_flow(rp: RelyingParty) -> None:
    rp.tokens(nonce=None)


def test_oidcc_scope_profile(rp: RelyingParty) -> None:
    userinfo = rp.userinfo(rp.tokens(scope="openid profile")["access_token"])
    assert isinstance(userinfo["updated_at"], int)
    assert all(isinstance(userinfo[name], str) for name in ("name", "nickname", "preferred_username", "locale"))
    assert "email" not in userinfo


def test_oidcc_scope_email(rp: RelyingParty) -> None:
    userinfo = rp.userinfo(rp.tokens(scope="openid email")["access_token"])
    assert userinfo["email"] == rp.browser.login
    assert userinfo["email_verified"] is True


def test_oidcc_ensure_other_scope_order_succeeds(rp: RelyingParty) -> None:
    assert rp.userinfo(rp.tokens(scope="email openid")["access_token"])["email"] == rp.browser.login


def test_oidcc_alternate_happy_flow(rp: RelyingParty) -> None:
    parameters = dict(reversed(rp.parameters(scope="email openid").items()))
    response = rp.browser.http.get(f"{rp.metadata['authorization_endpoint']}?{urlencode(parameters)}")
    tokens = rp.tokens_of(rp.code(response))
    assert rp.userinfo(tokens["access_token"])["email"] == rp.browser.login


def test_oidcc_display_page(rp: RelyingParty) -> None:
    rp.tokens(display="page")


def test_oidcc_display_popup(rp: RelyingParty) -> None:
    rp.tokens(display="popup")


def test_oidcc_prompt_login(server: Server, new_visitor: RelyingParty) -> None:
    rp = new_visitor
    first = rp.claims(rp.tokens_of(rp.code(rp.sign_in(rp.authorize())))["id_token"])
    move_sign_in(server, rp, 2)
    second = rp.claims(rp.tokens_of(rp.code(rp.sign_in(rp.authorize(prompt="login"))))["id_token"])
    assert second["sub"] == first["sub"]
    assert second["auth_time"] >= first["auth_time"]  # that of the moved session would be earlier


def test_oidcc_prompt_none_not_logged_in(new_visitor: RelyingParty) -> None:
    answer = new_visitor.answer(new_visitor.authorize(prompt="none"))
    assert answer["error"] == "login_required"
    assert answer["state"] == STATE
    assert "code" not in answer


def test_oidcc_prompt_none_logged_in(rp: RelyingParty) -> None:
    first, second = (rp.claims(rp.tokens(prompt=prompt)["id_token"]) for prompt in (None, "none"))
    assert (second["sub"], second["auth_time"]) == (first["sub"], first["auth_time"])


def test_oidcc_max_age_1(server: Server, new_visitor: RelyingParty) -> None:
    rp = new_visitor
    first = rp.claims(rp.tokens_of(rp.code(rp.sign_in(rp.authorize())))["id_token"])
    move_sign_in(server, rp, 10)
    second = rp.claims(rp.tokens_of(rp.code(rp.sign_in(rp.authorize(max_age="1"))))["id_token"])
    assert second["sub"] == first["sub"]
    assert second["auth_time"] >= first["auth_time"]  # that of the moved session would be earlier


def test_oidcc_max_age_10000(rp: RelyingParty) -> None:
    first, second = (rp.claims(rp.tokens(max_age=age)["id_token"]) for age in (None, "10000"))
    assert (second["sub"], second["auth_time"]) == (first["sub"], first["auth_time"])


def test_oidcc_ensure_request_with_unknown_parameter_succeeds(rp: RelyingParty) -> None:
    rp.tokens(extra="foobar")


def test_oidcc_id_token_hint(rp: RelyingParty) -> None:
    hint = rp.tokens()["id_token"]
    assert rp.claims(rp.tokens(prompt="none", id_token_hint=hint)["id_token"])["sub"] == rp.claims(hint)["sub"]


def test_oidcc_login_hint(new_visitor: RelyingParty) -> None:
    rp = new_visitor
    page = rp.authorize(login_hint=rp.browser.login)
    assert f'value="{rp.browser.login}"' in page.text
    rp.tokens_of(rp.code(rp.sign_in(page)))


def test_oidcc_ui_locales(new_visitor: RelyingParty) -> None:
    rp = new_visitor
    page = rp.authorize(ui_locales="se fr")
    assert page.headers["Content-Language"] == "fr"
    rp.tokens_of(rp.code(rp.sign_in(page)))


def test_oidcc_claims_locales(rp: RelyingParty) -> None:
    rp.tokens(claims_locales="se")


def test_oidcc_ensure_request_with_acr_values_succeeds(rp: RelyingParty) -> None:
    values = " ".join(rp.metadata["acr_values_supported"])
    assert rp.claims(rp.tokens(acr_values=values)["id_token"])["acr"] in rp.metadata["acr_values_supported"]


def test_oidcc_codereuse(rp: RelyingParty) -> None:
    code = rp.code(rp.authorize())
    rp.tokens_of(code)
    answer = rp.redeem(code)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_oidcc_codereuse_30seconds(server: Server, rp: RelyingParty) -> None:
    code = rp.code(rp.authorize())
    tokens = rp.tokens_of(code)
    moved = query(
        server,
        """UPDATE oauth_codes SET redeemed = redeemed - interval '31 seconds', expires = expires - interval '31 seconds'
        WHERE digest = sha256($1::bytea) RETURNING digest""",
        code.encode(),
    )
    assert len(moved) == 1
    answer = rp.redeem(code)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert rp.site.userinfo(tokens["access_token"]).status_code == 401  # the access token is revoked


def test_oidcc_ensure_registered_redirect_uri(rp: RelyingParty) -> None:
    page = rp.authorize(redirect_uri="https://rp.example.com/test/a/sso/other")
    assert page.status_code == 400
    assert "Location" not in page.headers
    assert 'id="form-post"' not in page.text


def test_oidcc_ensure_post_request_succeeds(rp: RelyingParty) -> None:
    response = rp.browser.http.post(
        rp.metadata["authorization_endpoint"], data=rp.parameters(), headers={"Origin": "https://rp.example.com"}
    )
    assert response.status_code == 303
    rp.tokens_of(rp.code(rp.browser.http.get(response.headers["Location"])))


def test_oidcc_server_client_secret_post(rp: RelyingParty) -> None:
    credentials = {"client_id": rp.site.client_id, "client_secret": rp.site.secret}
    answer = rp.site.redeem(rp.code(rp.authorize()), headers={}, **credentials)
    assert answer.status_code == 200
    assert rp.userinfo(answer.json()["access_token"])["sub"] == rp.claims(answer.json()["id_token"])["sub"]


def test_oidcc_request_uri_unsigned_supported_correctly_or_rejected_as_unsupported(rp: RelyingParty) -> None:
    assert rp.metadata["request_uri_parameter_supported"] is False
    answer = rp.answer(rp.authorize(request_uri="https://rp.example.com/request.jwt"))
    assert answer["error"] == "request_uri_not_supported"
    assert answer["state"] == STATE


def test_oidcc_unsigned_request_object_supported_correctly_or_rejected_as_unsupported(rp: RelyingParty) -> None:
    header, payload = ({"alg": "none"}, {"iss": rp.site.client_id, "state": "other"})
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, payload)]
    assert rp.metadata["request_parameter_supported"] is False
    answer = rp.answer(rp.authorize(request=f"{'.'.join(parts)}."))
    assert answer["error"] == "request_not_supported"
    assert answer["state"] == STATE


def test_oidcc_refresh_token(rp: RelyingParty) -> None:
    tokens = rp.tokens(scope="openid offline_access")
    answer = rp.site.refresh(tokens["refresh_token"], headers=rp.site.basic(), redirect_uri=None)
    assert answer.status_code == 200
    old, new = (rp.claims(token) for token in (tokens["id_token"], answer.json()["id_token"]))
    for name in ("iss", "sub", "aud", "auth_time", "azp"):
        assert new[name] == old[name]
    assert new["iat"] >= old["iat"]
    assert rp.userinfo(answer.json()["access_token"])["sub"] == old["sub"]


def test_oidcc_ensure_request_with_valid_pkce_succeeds(rp: RelyingParty) -> None:
    verifier, challenge = pkce()
    code = rp.code(rp.authorize(code_challenge=challenge, code_challenge_method="S256"))
    assert rp.redeem(code, code_verifier=verifier).status_code == 200


def move_sign_in(server: Server, rp: RelyingParty, seconds: int) -> None:
    """Moves the sign-in of the user into the past, by so many seconds."""
    query(
        server,
        """UPDATE browser_sessions s SET created = s.created - make_interval(secs => $2)
        FROM users u WHERE u.user_id = s.user_id AND u.login = $1""",
        rp.browser.login,
        float(seconds),
    )
