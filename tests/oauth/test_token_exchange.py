"""Token exchange (RFC 8693): a service exchanges a user's access token for a narrower one and acts for the user."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.kit.browser import query
from tests.kit.dpop import DpopKey
from tests.kit.oauth import (
    ACR_PASSWORD,
    AUTHORIZE,
    INTROSPECT,
    REVOKE,
    TOKEN,
    Browser,
    Site,
    error_of,
    new_browser,
    new_site,
    query_of,
)
from tests.kit.server import Server

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
INACTIVE = {"active": False}
APPLICATION = 701
SERVICE: dict[str, Any] = {
    "profile": "oidc",
    "token_exchange": True,
    "resource_server": True,
    "application_id": APPLICATION,
}


@pytest.fixture(scope="module")
def shop(server: Server) -> Site:
    server.apply({"applications": [{"application_id": APPLICATION, "name": "Harbour"}]})
    return new_site(server, profile="oidc", application_id=APPLICATION)


@pytest.fixture(scope="module")
def chat(server: Server) -> Site:
    return new_site(server, **SERVICE)


@pytest.fixture(scope="module")
def mail(server: Server) -> Site:
    """A service whose access tokens are JWTs."""
    return new_site(server, **SERVICE, access_token_format="jwt")


@pytest.fixture(scope="module")
def stranger(server: Server) -> Site:
    """A service of another application."""
    return new_site(server, **{**SERVICE, "application_id": APPLICATION + 1})


@pytest.fixture(scope="module")
def token(shop: Site, browser: Browser) -> str:
    return player_token(shop, browser)


def player_token(shop: Site, browser: Browser, *resources: str, scope: str = "openid email offline_access") -> str:
    answer = browser.http.get(AUTHORIZE, params={**shop.query(scope=scope), "resource": list(resources)})
    assert answer.status_code == 302, answer.text
    token: str = shop.redeem(query_of(answer)["code"], headers=shop.basic()).json()["access_token"]
    return token


def ask(service: Site, token: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    form = {"grant_type": GRANT, "subject_token": token, "subject_token_type": ACCESS_TOKEN, **fields}
    return service.http.post(TOKEN, data=form, headers={**service.basic(), **(headers or {})})


def exchange(service: Site, token: str, **fields: Any) -> dict[str, Any]:
    answer = ask(service, token, **fields)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()
    return data


def introspect(service: Site, token: str) -> dict[str, Any]:
    data: dict[str, Any] = service.http.post(INTROSPECT, data={"token": token}, headers=service.basic()).json()
    return data


def test_exchanged_token_is_narrower_and_names_who_acts_for_the_user(
    server: Server, shop: Site, chat: Site, mail: Site
) -> None:
    token = player_token(shop, new_browser(server).sign_in())  # of a user without other entries
    before = introspect(chat, token)
    answer = exchange(chat, token, audience=mail.client_id, scope="openid")
    assert set(answer) == {"access_token", "issued_token_type", "token_type", "expires_in", "scope"}
    assert (answer["issued_token_type"], answer["token_type"], answer["scope"]) == (ACCESS_TOKEN, "Bearer", "openid")
    claims = introspect(mail, answer["access_token"])
    assert claims["act"] == {"sub": chat.client_id}
    assert (claims["sub"], claims["client_id"], claims["scope"]) == (before["sub"], chat.client_id, "openid")
    assert claims["aud"] == [server.base_url, mail.client_id]
    assert claims["exp"] <= before["exp"]
    assert (claims["auth_time"], claims["acr"]) == (before["auth_time"], ACR_PASSWORD)
    assert introspect(chat, answer["access_token"]) == INACTIVE
    # The chain grows: the newest client is outside. A JWT has the same claims.
    second = exchange(mail, answer["access_token"])["access_token"]
    expected = {"sub": mail.client_id, "act": {"sub": chat.client_id}}
    assert introspect(mail, second)["act"] == expected
    claims = mail.claims(second)
    assert (claims["act"], claims["scope"], claims["acr"]) == (expected, "openid", ACR_PASSWORD)
    assert claims["aud"] == [server.base_url, mail.client_id]
    # Userinfo answers by scope; the endpoint that gives the rights of the user refuses the token.
    assert set(shop.userinfo(second).json()) == {"status", "sub"}
    refused = shop.http.post("/proxy/oauth/exchangeToken", headers={"Authorization": f"Bearer {second}"})
    assert error_of(refused) == (401, "invalid_token")
    assert exchange(chat, token, audience=mail.client_id, scope="openid")  # a repetition writes no further entry
    sql = "SELECT client_id, after FROM audit WHERE operation = 'user.token_exchange' AND target = $1 ORDER BY id"
    entries = [(row["client_id"], json.loads(row["after"])["act"]) for row in query(server, sql, before["sub"])]
    chain = [mail.client_id, chat.client_id]
    assert entries == [(chat.client_id, chain[1:]), (mail.client_id, chain)]


def test_token_without_openid_does_not_read_userinfo(shop: Site, chat: Site, browser: Browser) -> None:
    answer = exchange(chat, player_token(shop, browser), scope="email")
    refused = shop.userinfo(answer["access_token"])
    assert error_of(refused) == (403, "insufficient_scope")
    assert introspect(chat, answer["access_token"])["scope"] == "email"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"scope": "openid profile"}, "invalid_scope"),
        ({"scope": "openid offline_access"}, "invalid_scope"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"audience": "https://elsewhere.example.org"}, "invalid_target"),
        ({"audience": "{stranger}"}, "invalid_target"),
        ({"resource": "{stranger}"}, "invalid_target"),
        ({"audience": ["{chat}", "{stranger}"]}, "invalid_target"),
        ({"audience": "a b"}, "invalid_target"),
        ({"audience": [f"x{n}" for n in range(6)]}, "invalid_target"),
        ({"subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}, "invalid_request"),
        ({"subject_token_type": ""}, "invalid_request"),
        ({"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}, "invalid_request"),
        ({"actor_token": "x"}, "invalid_request"),
        ({"subject_token": ""}, "invalid_request"),
        ({"subject_token": "x"}, "invalid_request"),
    ],
)
def test_exchange_never_widens(stranger: Site, chat: Site, token: str, fields: dict[str, Any], error: str) -> None:
    names = {"stranger": stranger.client_id, "chat": chat.client_id}
    values: dict[str, Any] = {
        name: [text.format(**names) for text in value] if isinstance(value, list) else value.format(**names)
        for name, value in fields.items()
    }
    assert error_of(ask(chat, token, **values)) == (400, error)


def test_named_resources_are_the_widest_audience(shop: Site, chat: Site, mail: Site, browser: Browser) -> None:
    token = player_token(shop, browser, chat.client_id, mail.client_id)
    narrow = exchange(chat, token, resource=[mail.client_id])["access_token"]
    assert introspect(mail, narrow)["aud"][1:] == [mail.client_id]
    # The way back is closed: the narrower token is not for the first service, which is in its chain already, too.
    assert error_of(ask(chat, narrow)) == (400, "invalid_request")
    assert error_of(ask(mail, narrow, audience=chat.client_id)) == (400, "invalid_target")
    only_mail = player_token(shop, browser, mail.client_id)
    assert error_of(ask(chat, only_mail)) == (400, "invalid_request")


def test_only_clients_that_the_token_is_for_exchange_it(
    server: Server, shop: Site, chat: Site, stranger: Site, browser: Browser, token: str
) -> None:
    assert error_of(ask(shop, token)) == (400, "unauthorized_client")
    assert error_of(ask(stranger, token)) == (400, "invalid_request")
    without_application = new_site(server, profile="oidc", token_exchange=True)
    assert error_of(ask(without_application, token)) == (400, "invalid_request")
    own = player_token(without_application, browser)  # its own tokens it may exchange
    assert exchange(without_application, own, scope="openid")["scope"] == "openid"
    foreign = new_site(server, profile="oidc")  # neither has an application
    assert error_of(ask(without_application, player_token(foreign, browser))) == (400, "invalid_request")
    assert error_of(ask(chat, token, headers=chat.basic("wrong"))) == (401, "invalid_client")
    assert error_of(ask(chat, token, headers={"Authorization": f"Bearer {token}"})) == (401, "invalid_client")
    service = new_site(server, **{**SERVICE, "grant_types": ["client_credentials"]})
    form = {"grant_type": "client_credentials"}
    own_token = service.http.post(TOKEN, data=form, headers=service.basic()).json()["access_token"]
    assert error_of(ask(chat, own_token)) == (400, "invalid_request")  # it is not the token of a user
    for fields in ({"profile": "strict"}, {"public": True, "client_secret": None}):
        record = {"client_id": "bad", "profile": "oidc", "client_secret": "0123456789abcdef", "token_exchange": True}
        document = {"clients": [{name: value for name, value in {**record, **fields}.items() if value is not None}]}
        refused = server.sso("apply", "-", stdin=json.dumps(document), check=False)
        assert "token_exchange" in refused.stderr


def test_chain_has_at_most_five_links_and_no_client_twice(server: Server, shop: Site, browser: Browser) -> None:
    token = player_token(shop, browser)
    services = [new_site(server, **SERVICE) for _ in range(6)]
    for service in services[:5]:
        token = exchange(service, token)["access_token"]
        assert error_of(ask(services[0], token)) == (400, "invalid_request")
    assert error_of(ask(services[5], token)) == (400, "invalid_request")
    act, depth = introspect(services[0], token)["act"], 0
    while act:
        act, depth = act.get("act"), depth + 1
    assert depth == 5


def revoke(shop: Site, token: str) -> int:
    return shop.http.post(REVOKE, data={"token": token}, headers=shop.basic()).status_code


def _revoke_subject(server: Server, shop: Site, service: Site, user_id: str, token: str) -> None:
    assert revoke(shop, token) == 200


def _disable_user(server: Server, shop: Site, service: Site, user_id: str, token: str) -> None:
    server.sso("user", "disable", user_id)


def _end_sessions(server: Server, shop: Site, service: Site, user_id: str, token: str) -> None:
    server.sso("user", "end-sessions", user_id)


def _ban(server: Server, shop: Site, service: Site, user_id: str, token: str) -> None:
    server.sso("user", "ban", user_id, "--reason", "Cheating")


def _disable_service(server: Server, shop: Site, service: Site, user_id: str, token: str) -> None:
    server.apply({"clients": [{"client_id": service.client_id, "disabled": True}]})


def _take_right(server: Server, shop: Site, service: Site, user_id: str, token: str) -> None:
    server.sso("client", "set", service.client_id, "--no-token-exchange")


def _disable_site(server: Server, shop: Site, service: Site, user_id: str, token: str) -> None:
    server.apply({"clients": [{"client_id": shop.client_id, "disabled": True}]})


@pytest.mark.parametrize(
    "end", [_revoke_subject, _disable_user, _end_sessions, _ban, _disable_service, _take_right, _disable_site]
)
def test_exchanged_tokens_end_with_what_they_depend_on(
    server: Server, mail: Site, end: Callable[[Server, Site, Site, str, str], None]
) -> None:
    shop = new_site(server, profile="oidc", application_id=APPLICATION)
    service, browser = new_site(server, **SERVICE), new_browser(server).sign_in()
    token = player_token(shop, browser)
    first = exchange(service, token)["access_token"]
    second = exchange(mail, first)["access_token"]
    user_id = introspect(mail, second)["sub"]
    end(server, shop, service, user_id, token)
    assert introspect(mail, first) == INACTIVE
    assert introspect(mail, second) == INACTIVE
    assert shop.userinfo(second).status_code == 401
    assert error_of(ask(mail, first)) == (400, "invalid_request")


def test_bound_token_needs_its_key_and_the_exchanged_one_is_bound(
    server: Server, shop: Site, chat: Site, browser: Browser
) -> None:
    key, other = DpopKey(), DpopKey()
    answer = shop.redeem(browser.code(shop), headers={**shop.basic(), **key.headers(shop)}).json()
    assert error_of(ask(chat, answer["access_token"])) == (400, "invalid_request")
    assert error_of(ask(chat, answer["access_token"], headers=other.headers(chat))) == (400, "invalid_request")
    headers = key.headers(chat)
    bound = ask(chat, answer["access_token"], headers=headers).json()
    assert bound["token_type"] == "DPoP"
    assert introspect(chat, bound["access_token"])["cnf"] == {"jkt": key.jkt}
    assert error_of(ask(chat, answer["access_token"], headers=headers)) == (400, "invalid_dpop_proof")
    # A proof binds the exchanged token of an unbound one. Some clients must always send one.
    answer = ask(chat, player_token(shop, browser), headers=other.headers(chat)).json()
    assert introspect(chat, answer["access_token"])["cnf"] == {"jkt": other.jkt}
    careful = new_site(server, **SERVICE, dpop_bound_access_tokens=True)
    assert error_of(ask(careful, player_token(shop, browser))) == (400, "invalid_dpop_proof")


def test_no_exchange_survives_a_concurrent_revocation(server: Server, shop: Site, chat: Site, browser: Browser) -> None:
    for _ in range(3):
        token = player_token(shop, browser)
        with ThreadPoolExecutor(9) as threads:
            jobs = [threads.submit(ask, chat, token) for _ in range(4)]
            revocation = threads.submit(revoke, shop, token)
            jobs += [threads.submit(ask, chat, token) for _ in range(4)]
            assert revocation.result() == 200
            answers = [job.result() for job in jobs]
        assert {answer.status_code for answer in answers} <= {200, 400}
        for answer in answers:
            if answer.status_code == 200:
                assert introspect(chat, answer.json()["access_token"]) == INACTIVE


def test_a_token_is_not_exchanged_without_end(server: Server, shop: Site, chat: Site, browser: Browser) -> None:
    token = player_token(shop, browser)
    kept = exchange(chat, token)["access_token"]
    query(
        server,
        """INSERT INTO oauth_access_tokens (digest, grant_id, expires, subject_digest)
        SELECT decode(md5(a.grant_id || n), 'hex'), a.grant_id, a.expires, a.subject_digest
        FROM oauth_access_tokens a, generate_series(1, 999) n WHERE a.digest = sha256($1::bytea)""",
        kept.encode(),
    )
    assert error_of(ask(chat, token)) == (429, "temporarily_unavailable")
    assert introspect(chat, kept)["active"] is True
