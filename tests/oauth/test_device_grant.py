"""The grant of devices (RFC 8628), over HTTP with two workers: the endpoint, all errors, and the tokens."""

import time

import httpx
import jwt as pyjwt
import pytest

from sso.core.ids import digest
from tests.kit.browser import Browser, each_worker, query
from tests.kit.device import (
    DEVICE_AUTHORIZATION,
    DEVICE_CODE,
    begin,
    confirm,
    new_device_site,
    refuse,
    start_device,
    tokens_of,
    type_code,
)
from tests.kit.dpop import DpopKey, is_stored
from tests.kit.oauth import ACR_PASSWORD, INTROSPECT, TOKEN, USERINFO, Site, error_of, new_site
from tests.kit.server import Server

pytestmark = pytest.mark.two_workers

# The device authorization endpoint


def test_discovery_document_names_the_endpoint_and_the_grant_type(server: Server, tv: Site) -> None:
    document = tv.http.get("/.well-known/openid-configuration").json()
    assert document["device_authorization_endpoint"] == server.base_url + DEVICE_AUTHORIZATION
    assert DEVICE_CODE in document["grant_types_supported"]


def test_device_gets_codes_words_and_times(server: Server, tv: Site) -> None:
    answer = begin(tv)
    assert answer.headers["Cache-Control"] == "no-store"
    data = answer.json()
    assert data.keys() == {
        "device_code", "user_code", "verification_uri", "verification_uri_complete", "expires_in", "interval", "match"
    }  # fmt: skip
    assert data["verification_uri"] == f"{server.base_url}/device"
    assert data["verification_uri_complete"] == f"{server.base_url}/device?user_code={data['user_code']}"
    assert (data["expires_in"], data["interval"]) == (600, 5)
    assert len(data["match"].split()) == 2
    letters = data["user_code"].replace("-", "")
    assert data["user_code"] == f"{letters[:4]}-{letters[4:]}"
    assert set(letters) <= set("BCDFGHJKLMNPQRSTVWXZ")


def test_confidential_client_authenticates_as_at_the_token_endpoint(server: Server, anns_browser: Browser) -> None:
    site = new_device_site(server, public=False)
    assert error_of(begin(site)) == (401, "invalid_client")
    assert error_of(begin(site, client_secret="wrong")) == (401, "invalid_client")
    basic = site.http.post(DEVICE_AUTHORIZATION, data={"scope": "openid"}, headers=site.basic())
    assert basic.status_code == 200, basic.text
    device = start_device(site, client_secret=site.secret)
    confirm(anns_browser, device)
    assert error_of(device.ask()) == (401, "invalid_client")
    assert device.ask(client_secret=site.secret).status_code == 200


def test_unknown_client_and_client_without_the_grant_type_are_refused(server: Server, tv: Site) -> None:
    assert error_of(begin(tv, client_id="nobody")) == (401, "invalid_client")
    assert error_of(begin(tv, client_id=None)) == (401, "invalid_client")
    site = new_site(server, public=True, profile="oidc")
    assert error_of(begin(site)) == (400, "unauthorized_client")
    strict = new_site(server)
    assert error_of(begin(strict, client_secret=strict.secret)) == (401, "invalid_client")
    refused = strict.http.post(DEVICE_AUTHORIZATION, data={"scope": "openid"}, headers=strict.bearer(""))
    assert error_of(refused) == (401, "invalid_client")


@pytest.mark.parametrize("scope", [None, "", "email", "openid admin", "openid\temail"])
def test_scope_is_checked_as_at_the_authorization_endpoint(tv: Site, scope: str | None) -> None:
    assert error_of(begin(tv, scope=scope)) == (400, "invalid_scope")


def test_body_of_another_type_is_refused(tv: Site) -> None:
    answer = tv.http.post(DEVICE_AUTHORIZATION, content=b"client_id=x", headers={"Content-Type": "text/plain"})
    assert error_of(answer) == (415, "invalid_request")
    assert tv.http.get(DEVICE_AUTHORIZATION).status_code == 405


def test_endpoint_has_no_headers_for_browsers(tv: Site) -> None:
    form = {"client_id": tv.client_id, "scope": "openid"}
    answer = tv.http.post(DEVICE_AUTHORIZATION, data=form, headers={"Origin": "https://game.example.com"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_new_device_sessions_are_limited_by_address(server: Server, tv: Site) -> None:
    """They count like sessions of games, which have a limit of 600 in a minute."""
    transport = httpx.HTTPTransport(local_address="127.66.0.9", verify=False)
    with httpx.Client(base_url=server.base_url, transport=transport, timeout=60) as http:
        form = {"client_id": tv.client_id, "scope": "openid"}
        assert http.post(DEVICE_AUTHORIZATION, data=form).status_code == 200
        key = digest("getgsid:127.66.0.9")
        query(server, "UPDATE throttle SET failures = 600, since = now() WHERE key = $1", key)
        answer = http.post(DEVICE_AUTHORIZATION, data=form)
        assert error_of(answer)[0] == 429
        assert int(answer.headers["Retry-After"]) > 0


# The token endpoint


def test_confirmed_device_gets_tokens_once(server: Server, tv: Site, ann: str, anns_browser: Browser) -> None:
    device = start_device(tv)
    assert error_of(device.ask()) == (400, "authorization_pending")
    before = int(time.time())
    page = confirm(anns_browser, device)
    assert "ready" in page.text
    device.let_interval_pass()
    answer = device.ask()
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    data = answer.json()
    assert data.keys() == {"access_token", "id_token", "refresh_token", "token_type", "expires_in"}
    claims = tv.claims(data["id_token"])
    assert (claims["email"], claims["email_verified"]) == (ann, True)
    assert claims["aud"] == [server.base_url, tv.client_id]
    assert claims["auth_time"] <= before
    assert (claims["amr"], claims["acr"]) == (["pwd"], ACR_PASSWORD)
    assert "nonce" not in claims
    assert tv.userinfo(data["access_token"]).json()["sub"] == claims["sub"]
    assert error_of(device.ask()) == (400, "invalid_grant")
    assert error_of(device.ask(wait=1)) == (400, "invalid_grant")
    assert tv.userinfo(data["access_token"]).status_code == 200, "a repeat does not end the tokens"
    assert "signed in" in anns_browser.get(f"/game/{device.gsid}").text
    refreshed = tv.refresh(data["refresh_token"], {}, client_id=tv.client_id, redirect_uri=None)
    assert refreshed.status_code == 200, refreshed.text
    assert error_of(tv.refresh(data["refresh_token"], {}, client_id=tv.client_id, redirect_uri=None))[0] == 400


def test_auth_time_is_that_of_the_sign_in(server: Server, tv: Site, ann: str, anns_browser: Browser) -> None:
    rows = query(
        server,
        "SELECT extract(epoch FROM s.created)::bigint AS t FROM browser_sessions s JOIN users USING (user_id)"
        " WHERE login = $1 ORDER BY s.created",
        ann,
    )
    claims = tv.claims(tokens_of(start_device(tv), anns_browser)["id_token"])
    assert abs(claims["auth_time"] - rows[0]["t"]) <= 1


def test_device_without_offline_access_gets_no_refresh_token(tv: Site, anns_browser: Browser) -> None:
    assert "refresh_token" not in tokens_of(start_device(tv, scope="openid"), anns_browser)


def test_client_without_the_grant_refresh_token_gets_none(server: Server, anns_browser: Browser) -> None:
    site = new_device_site(server, grant_types=[DEVICE_CODE])
    assert "refresh_token" not in tokens_of(start_device(site), anns_browser)


def test_client_may_have_jwt_access_tokens(server: Server, anns_browser: Browser) -> None:
    site = new_device_site(server, access_token_format="jwt")
    tokens = tokens_of(start_device(site), anns_browser)
    assert pyjwt.get_unverified_header(tokens["access_token"])["typ"] == "at+jwt"
    assert site.userinfo(tokens["access_token"]).status_code == 200


def test_refusal_of_the_user_is_access_denied(tv: Site, anns_browser: Browser) -> None:
    device = start_device(tv)
    page = refuse(anns_browser, device)
    assert "The device was not signed in" in page.text
    assert error_of(device.ask()) == (400, "access_denied")
    assert error_of(device.ask(wait=1)) == (400, "access_denied")
    assert "do not know this code" in type_code(anns_browser, device.user_code).text


def test_expired_device_code_is_expired_token(tv: Site, anns_browser: Browser) -> None:
    device = start_device(tv)
    device.change("ends = now() - interval '1 s'")
    assert error_of(device.ask()) == (400, "expired_token")
    assert type_code(anns_browser, device.user_code).status_code == 404
    assert anns_browser.get(f"/game/{device.gsid}").status_code == 410


def test_requests_do_not_extend_the_life_of_a_device_code(tv: Site) -> None:
    device = start_device(tv)
    ends = device.row()["ends"]
    device.ask()
    device.ask(wait=1)
    assert device.row()["ends"] == ends


@pytest.mark.parametrize("device_code", ["x", "A" * 4000, "\u00e9", "00000000-0000-4000-8000-000000000000." + "A" * 43])
def test_unknown_device_code_is_invalid_grant(tv: Site, device_code: str) -> None:
    assert error_of(start_device(tv).ask(device_code=device_code)) == (400, "invalid_grant")


def test_device_code_is_required(tv: Site) -> None:
    assert error_of(start_device(tv).ask(device_code=None)) == (400, "invalid_request")


def test_device_code_of_another_client_is_invalid_grant_and_stays_usable(
    server: Server, tv: Site, anns_browser: Browser
) -> None:
    device, other = start_device(tv), new_device_site(server)
    confirm(anns_browser, device)
    assert error_of(device.ask(client_id=other.client_id)) == (400, "invalid_grant")
    wrong = device.device_code[:-1] + ("A" if device.device_code[-1] != "A" else "B")
    assert error_of(device.ask(device_code=wrong)) == (400, "invalid_grant")
    assert device.ask().status_code == 200


@pytest.mark.parametrize("wait", ["-1", "x", "1.5", ""])
def test_wait_must_be_a_number_of_seconds(tv: Site, wait: str) -> None:
    assert error_of(start_device(tv).ask(wait=wait)) == (400, "invalid_request")


def test_early_requests_slow_the_device_down_on_every_worker(server: Server, tv: Site, anns_browser: Browser) -> None:
    device = start_device(tv)
    with each_worker(server) as (first, second):
        assert error_of(device.ask(first)) == (400, "authorization_pending")
        assert error_of(device.ask(second)) == (400, "slow_down")
        assert device.row()["interval_s"] == 10
        device.change("polled_at = now() - interval '7 s'")
        assert error_of(device.ask(first)) == (400, "slow_down")
        assert device.row()["interval_s"] == 15
        device.change("polled_at = now() - interval '15 s'")
        assert error_of(device.ask(second)) == (400, "authorization_pending")
        confirm(anns_browser, device)
        assert device.ask(first).status_code == 200, "a confirmed device gets its tokens at once"


def test_held_requests_do_not_count_for_slow_down(tv: Site) -> None:
    device = start_device(tv)
    for _ in range(2):
        assert error_of(device.ask(wait=1)) == (400, "authorization_pending")
    assert error_of(device.ask()) == (400, "authorization_pending")
    assert device.row()["interval_s"] == 5


def test_too_many_held_requests_of_a_session_are_slowed_down(tv: Site) -> None:
    device = start_device(tv)
    device.change("burst = 30, burst_since = now() + interval '1 minute'")
    assert error_of(device.ask(wait=1)) == (400, "slow_down")
    assert device.row()["interval_s"] == 10


def test_browser_app_can_ask_for_the_tokens_of_a_device(server: Server, anns_browser: Browser) -> None:
    site = new_device_site(server, origins=["https://tv.example.com"])
    device = start_device(site)
    headers = {"Origin": "https://tv.example.com"}
    answer = site.http.post(TOKEN, data=device.form(wait=1), headers=headers)
    assert error_of(answer) == (400, "authorization_pending")
    confirm(anns_browser, device)
    answer = site.http.post(TOKEN, data=device.form(), headers=headers)
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "https://tv.example.com"


# Tokens bound to a key, and tokens for a resource server


def test_tokens_are_bound_to_the_key_of_the_proof(server: Server, anns_browser: Browser) -> None:
    site, key = new_device_site(server, dpop_bound_access_tokens=True), DpopKey("ES256")
    device = start_device(site)
    confirm(anns_browser, device)
    assert error_of(device.ask()) == (400, "invalid_dpop_proof")
    headers = key.headers(site)
    answer = site.http.post(TOKEN, data=device.form(), headers=headers)
    assert answer.status_code == 200, answer.text
    tokens = answer.json()
    assert tokens["token_type"] == "DPoP"
    assert site.userinfo(tokens["access_token"]).status_code == 401
    bound = site.http.get(USERINFO, headers=key.at_userinfo(site, tokens["access_token"]))
    assert bound.status_code == 200
    stolen = site.refresh(
        tokens["refresh_token"], DpopKey("ES256").headers(site), client_id=site.client_id, redirect_uri=None
    )
    assert error_of(stolen) == (400, "invalid_grant")
    another = start_device(site)
    confirm(anns_browser, another)
    used = site.http.post(TOKEN, data=another.form(), headers=headers)
    assert error_of(used) == (400, "invalid_dpop_proof")
    another.let_interval_pass()
    answer = site.http.post(TOKEN, data=another.form(), headers=key.headers(site, nonce="of an earlier answer"))
    assert (answer.status_code, "DPoP-Nonce" in answer.headers) == (200, True)


def test_proof_is_stored_only_with_tokens(server: Server, anns_browser: Browser) -> None:
    """A public client does not authenticate, so anyone can send proofs for it."""
    site, key = new_device_site(server, dpop_bound_access_tokens=True), DpopKey("ES256")
    device = start_device(site)
    headers = key.headers(site)
    for code in ("0" * 36 + "." + "x" * 43, device.device_code, device.device_code):
        assert site.http.post(TOKEN, data=device.form(device_code=code), headers=headers).status_code == 400
    assert not is_stored(server, key, headers)
    confirm(anns_browser, device)
    device.let_interval_pass()
    assert site.http.post(TOKEN, data=device.form(), headers=headers).status_code == 200
    assert is_stored(server, key, headers)


def test_access_token_is_for_the_resource_that_the_device_names(server: Server, anns_browser: Browser) -> None:
    site = new_device_site(server)
    api = new_site(server, profile="oidc", resource_server=True, application_id=4712)
    device = start_device(site)
    confirm(anns_browser, device)
    assert error_of(device.ask(resource="https://nobody.example.com")) == (400, "invalid_target")
    token = device.ask(resource=api.client_id).json()["access_token"]
    answer = api.http.post(INTROSPECT, data={"token": token}, headers=api.basic())
    assert answer.json()["aud"] == [server.base_url, api.client_id]


def test_resource_server_can_introspect_the_token_of_a_device(server: Server, anns_browser: Browser) -> None:
    server.apply({"applications": [{"application_id": 4711, "name": "Films"}]})
    site = new_device_site(server, application_id=4711)
    api = new_site(server, profile="oidc", application_id=4711, resource_server=True)
    token = tokens_of(start_device(site), anns_browser)["access_token"]
    answer = api.http.post(INTROSPECT, data={"token": token}, headers=api.basic())
    assert answer.json()["active"] is True
    assert answer.json()["client_id"] == site.client_id
