"""Recorded requests: what a developer sees of a client's requests in each worker, and that no secret is kept."""

import base64
import hashlib
import itertools
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import trio

from sso.core.encryption import Keyring, MasterKey
from sso.db.statement import Statement
from sso.oauth.recording.kept_fields import WORDS, kept_fields
from sso.oauth.recording.observation import Observation, current_observation, observing
from sso.oauth.recording.observed_request import ObservedRequest
from sso.oauth.recording.recorder import (
    MAX_BATCH,
    MAX_OF_NETWORK_PER_MINUTE,
    MAX_PER_MINUTE,
    PAUSE_S,
    RecordedClient,
    RequestRecorder,
)
from sso.oauth.recording.store import (
    MAX_PROVEN,
    MAX_UNPROVEN,
    MAX_UNPROVEN_OF_NETWORK,
    add_requests,
    start_recording,
)
from sso.services import Services
from sso.web.deferred_response import DeferredResponse
from tests.admin.conftest import Administrator, service_token
from tests.kit.browser import each_worker, query, user_id_of
from tests.kit.builders import PASSWORD
from tests.kit.device import begin, new_device_site
from tests.kit.oauth import (
    AUTHORIZE,
    INTROSPECT,
    PAR,
    TOKEN,
    USERINFO,
    Site,
    close_all,
    new_browser,
    new_site,
    pkce,
    query_of,
)
from tests.kit.server import Server, until
from tests.oauth.in_process import apply_client

pytestmark = pytest.mark.two_workers

_numbers = itertools.count(100_000)
COUNT = Statement("SELECT network, proven, count(*) AS count FROM oauth_recorded_requests GROUP BY network, proven")


@pytest.fixture(scope="module")
def administrator(server: Server) -> Iterator[Administrator]:
    with server.client() as client:
        yield Administrator(client, service_token(server, "recording", 1))
    close_all()


@pytest.fixture(scope="module")
def shop(server: Server, administrator: Administrator) -> Site:
    """A client that is recorded."""
    site = new_site(server, profile="oidc")
    record(administrator, site)
    return site


def recorded(administrator: Administrator, site: Site) -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = administrator.data(f"/clients/{site.client_id}/requests", limit=200)
    return requests


def record(administrator: Administrator, site: Site) -> None:
    """Turns the recording on, and waits until each worker records, and lists what the others have recorded."""
    answer = administrator.request("POST", f"/clients/{site.client_id}/recording")
    assert answer.status_code == 200, answer.text
    with each_worker(site.server) as workers:

        def is_recorded() -> bool:
            sent = {send_mark(worker, site) for worker in workers}
            time.sleep(1.2 * PAUSE_S)
            return all(sent <= marks(Administrator(worker, administrator.headers), site) for worker in workers)

        assert until(is_recorded)


def send_mark(worker: httpx.Client, site: Site) -> str:
    """Sends a request that can be told from others. Marks are numbers, because other texts are not kept."""
    mark = str(next(_numbers))
    worker.post(TOKEN, data={"grant_type": "none", "client_id": site.client_id, "max_age": mark})
    return mark


def marks(administrator: Administrator, site: Site) -> set[str]:
    return {request["parameters"].get("max_age", "") for request in recorded(administrator, site)}


def wait_until_written(administrator: Administrator, site: Site) -> None:
    """Waits until each worker has written what it has recorded of all clients until now: it writes in order."""
    with each_worker(site.server) as workers:
        sent = {send_mark(worker, site) for worker in workers}
    assert until(lambda: sent <= marks(administrator, site))


def wait_for(administrator: Administrator, site: Site, **fields: Any) -> dict[str, Any]:
    def find() -> dict[str, Any] | None:
        found = (one for one in recorded(administrator, site) if fields.items() <= one.items())
        return next(found, None)

    request = until(find)
    assert request is not None, recorded(administrator, site)
    return dict(request)


def test_requests_are_listed_without_any_secret(server: Server, administrator: Administrator) -> None:
    site = new_site(server, profile="oidc", resource_server=True, application_id=1, name="Shop")
    record(administrator, site)
    browser = new_browser(server).sign_in()
    verifier, challenge = pkce()
    secrets = [
        site.secret or "",
        verifier,
        "state-of-the-site",
        "nonce-of-the-site",
        "typed-by-mistake",
        "in-an-address",
    ]
    asked = {"state": "state-of-the-site", "nonce": "nonce-of-the-site", "code_challenge": challenge}
    code = browser.code(site, scope="openid offline_access email", code_challenge_method="S256", **asked)
    form = {"grant_type": "authorization_code", "redirect_uri": site.redirect_uri, "code_verifier": verifier}
    tokens = site.http.post(TOKEN, data={**form, "code": code}, headers=site.basic()).json()
    secrets += [code, *(tokens[name] for name in ("access_token", "refresh_token", "id_token"))]
    renewed = site.refresh(
        tokens["refresh_token"], client_id=site.client_id, client_secret=site.secret, headers={}
    ).json()
    secrets += [renewed["access_token"], renewed["refresh_token"]]
    assert site.userinfo(renewed["access_token"]).status_code == 200
    assert (
        site.userinfo("no-such-token").status_code == 401
    )  # belongs to no client, whatever its connection sent before
    own = {"client_id": site.client_id, "client_secret": site.secret}
    assert site.http.post(INTROSPECT, data={**own, "token": renewed["access_token"]}).status_code == 200
    pushed = site.http.post(PAR, data={**own, **site.query(login_hint=browser.login)}).json()
    secrets += [pushed["request_uri"], browser.login]
    site.revoke(renewed["refresh_token"])
    again = {**form, "code": code, "password": "typed-by-mistake", "typed-by-mistake": "1"}
    again["redirect_uri"] += "?token=in-an-address"
    assert site.http.post(TOKEN, data=again, headers=site.basic()).status_code == 400
    assert site.http.post(INTROSPECT, data={}, headers=site.basic("typed-by-mistake")).status_code == 401
    browser.authorize(site, redirect_uri="https://other.example.com/cb?token=in-an-address")
    secrets += [base64.b64encode(f"{site.client_id}:{site.secret}".encode()).decode(), *browser.http.cookies.values()]

    authorized = wait_for(administrator, site, endpoint="authorize", http_status=302)
    assert authorized["answer"]["code"] == f"({len(code)} characters)"
    assert authorized["parameters"]["redirect_uri"] == site.redirect_uri
    redeemed = wait_for(administrator, site, endpoint="token", http_status=200, authorization="Basic")
    assert redeemed["parameters"]["code"] == f"({len(code)} characters)"
    assert redeemed["answer"]["expires_in"] == str(tokens["expires_in"])
    assert redeemed["answer"]["token_type"] == "Bearer"
    assert wait_for(administrator, site, endpoint="userinfo")["answer"]["email"] == "(not shown)"
    assert wait_for(administrator, site, endpoint="introspect", http_status=200)["answer"]["active"] == "true"
    assert wait_for(administrator, site, endpoint="par", http_status=201)["parameters"]["login_hint"]
    assert wait_for(administrator, site, endpoint="revoke")["http_status"] == 200
    assert [one["http_status"] for one in recorded(administrator, site) if one["endpoint"] == "userinfo"] == [200]
    assert wait_for(administrator, site, http_status=401)["answer"]["error"] == "invalid_client"
    refused = wait_for(administrator, site, http_status=400, authorization="Basic")
    assert refused["answer"]["error"] == "invalid_grant"
    assert refused["parameters"]["others"] == "2"
    assert refused["parameters"]["redirect_uri"] == f"{site.redirect_uri}?…"
    unregistered = wait_for(administrator, site, endpoint="authorize", http_status=400)
    assert unregistered["answer"]["error_description"].startswith("redirect_uri: ")
    stored = str(query(server, "SELECT content, network FROM oauth_recorded_requests"))
    listed = administrator.get(f"/clients/{site.client_id}/requests", limit=200).text
    for secret in secrets:
        assert secret
        assert secret not in stored, secret
        assert secret not in listed, secret


def test_clients_that_a_request_does_not_name_and_devices_are_found(
    server: Server, administrator: Administrator
) -> None:
    strict, device = new_site(server), new_device_site(server)
    record(administrator, strict)
    assert strict.redeem("no-such-code").status_code == 400
    assert wait_for(administrator, strict, authorization="Bearer")["answer"]["error"] == "invalid_grant"
    record(administrator, device)
    codes = begin(device).json()
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "client_id": device.client_id}
    device.http.post(TOKEN, data={**form, "device_code": codes["device_code"]})
    assert wait_for(administrator, device, endpoint="device_authorization")["answer"]["interval"] == "5"
    sent = {**form, "device_code": f"({len(codes['device_code'])} characters)"}
    polled = wait_for(administrator, device, endpoint="token", parameters=sent)
    assert polled["answer"]["error"] == "authorization_pending"


def test_recording_ends_and_belongs_to_those_who_may_change_the_client(
    server: Server, administrator: Administrator
) -> None:
    site = new_site(server, profile="oidc")
    path = f"/clients/{site.client_id}"
    record(administrator, site)
    listed = administrator.get(f"{path}/requests").json()
    assert listed["recorded_until"] is not None
    assert administrator.request("DELETE", f"{path}/recording").status_code == 200
    assert administrator.get(f"{path}/requests").json()["recorded_until"] is None
    assert recorded(administrator, site)
    query(server, "UPDATE oauth_recorded_requests SET expires = now() WHERE client_id = $1", site.client_id)
    assert recorded(administrator, site) == []
    operations = query(server, "SELECT operation FROM audit WHERE target = $1 ORDER BY id", site.client_id)
    assert [row["operation"] for row in operations][-2:] == ["client.start_recording", "client.stop_recording"]
    assert administrator.request("POST", "/clients/no-such/recording").status_code == 404


async def keep(services: Services, *counts: tuple[str, bool, int]) -> dict[tuple[str, bool], int]:
    """Stores requests: their networks, whether they are proven, and how many. Returns how many are kept."""
    await apply_client(services)
    await services.database.transaction(start_recording, "shop")
    for network, proven, count in counts:
        item = {"client_id": "shop", "network": network, "proven": proven, "content": {}}
        await services.database.transaction(add_requests, [item] * count)
    return {(row["network"], row["proven"]): row["count"] for row in await services.database.rows(COUNT)}


async def test_strangers_cannot_push_out_what_a_client_has_proved(services: Services) -> None:
    counts = await keep(services, ("site", True, MAX_PROVEN + 20), ("site", False, 10), ("stranger", False, 300))
    assert counts == {("site", True): MAX_PROVEN, ("site", False): 10, ("stranger", False): MAX_UNPROVEN_OF_NETWORK}


async def test_networks_share_the_room_of_a_client(services: Services) -> None:
    strangers = [f"stranger{number}" for number in range(19)]
    floods = [(network, False, 50) for network in strangers]
    counts = await keep(services, ("site", False, 10), ("site", True, 10), ("player", True, 300), *floods)
    assert counts["site", False] == MAX_UNPROVEN // (len(strangers) + 1)
    assert (counts["site", True], counts["player", True]) == (10, MAX_PROVEN - 10)


async def test_requests_of_one_network_are_limited_in_each_worker(services: Services) -> None:
    recorder = services.oauth.recorder
    for network, count in (("flood", MAX_OF_NETWORK_PER_MINUTE), ("site", 1)):
        admitted = sum(recorder._admits("shop", "none", network) for _ in range(count + 50))
        assert count <= admitted  # a minute may begin meanwhile
    recorder._minute = int(time.monotonic()) // 60
    recorder._counts.clear()
    networks = [f"network{number}" for number in range(2 * MAX_PER_MINUTE)]
    for network in networks:
        recorder._admits("shop", "none", network)
    assert len(recorder._counts) <= MAX_PER_MINUTE + 1
    assert recorder._admits("shop", "client", "site")


async def test_nothing_is_read_of_a_request_while_no_client_is_recorded(services: Services) -> None:
    async def view() -> str:
        assert current_observation() is None
        return "answer"

    assert await services.oauth.recorder.observed("token")(view)() == "answer"  # there is no request to read


async def test_held_requests_of_other_clients_are_not_kept_in_memory(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = iter(("other", "shop"))

    async def observe_request(*, with_body: bool) -> ObservedRequest:
        return ObservedRequest("POST", "", f"client_id={next(clients)}".encode(), "application/x-www-form-urlencoded")

    async def view() -> DeferredResponse:
        return held

    async def wait() -> Any:
        raise AssertionError("nothing waits for it")

    held = DeferredResponse(wait)
    monkeypatch.setattr("sso.oauth.recording.recorder.observe_request", observe_request)
    recorder = services.oauth.recorder
    recorder.clients = {"shop": RecordedClient(services.database.clock.now() + 60, (), ())}
    handle = recorder.observed("token")(view)
    assert await handle() is held
    assert await handle() is not held


async def test_observation_ends_with_the_handler() -> None:
    with observing(Observation()):
        assert current_observation() is not None
    assert current_observation() is None


class SlowDatabase:
    def __init__(self) -> None:
        self.waiting_calls = 1
        self.written: list[int] = []

    async def transaction(self, _function: object, items: list[object]) -> None:
        self.written.append(len(items))


async def test_writer_waits_while_requests_wait_for_a_connection(autojump_clock: object) -> None:
    database: Any = SlowDatabase()
    recorder = RequestRecorder(database, Keyring([MasterKey.generate()]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recorder._write)
        for _ in range(MAX_BATCH + 5):
            recorder._sender.send_nowait({})
        await trio.sleep(10 * PAUSE_S)
        assert database.written == []
        database.waiting_calls = 0
        await trio.sleep(10 * PAUSE_S)
        assert database.written == [MAX_BATCH, 5]
        nursery.cancel_scope.cancel()


def test_request_that_only_names_a_client_is_marked(server: Server, administrator: Administrator) -> None:
    site, other = (new_site(server, profile="oidc", application_id=1) for _ in range(2))
    record(administrator, site)
    record(administrator, other)
    token = other.tokens(new_browser(server).sign_in())["access_token"]
    header = {"Authorization": f"Bearer {token}"}
    for client_id in (site.client_id, other.client_id):
        assert other.http.get(USERINFO, params={"client_id": client_id}, headers=header).status_code == 200
        assert other.http.post(USERINFO, data={"client_id": client_id}, headers=header).status_code == 200
        assert other.http.get(USERINFO, params={"client_id": client_id, "access_token": "x"}).status_code == 401
    refresh = {"grant_type": "refresh_token", "refresh_token": "none"}
    assert site.http.post(TOKEN, data=refresh, headers=site.basic()).status_code == 400
    assert site.http.post(TOKEN, data=refresh, headers=site.basic("wrong")).status_code == 401
    wait_until_written(administrator, site)
    wait_until_written(administrator, other)
    assert {"userinfo"}.isdisjoint(one["endpoint"] for one in recorded(administrator, site))
    proofs = [one["proof"] for one in recorded(administrator, other) if one["endpoint"] == "userinfo"]
    assert proofs == ["token"] * 4
    assert wait_for(administrator, site, endpoint="token", http_status=400, authorization="Basic")["proof"] == "client"
    assert wait_for(administrator, site, endpoint="token", http_status=401, authorization="Basic")["proof"] == "none"


def test_request_of_a_client_is_not_shown_to_another_one_with_its_redirect_uri(
    server: Server, administrator: Administrator
) -> None:
    site, other = new_site(server), new_site(server)
    record(administrator, other)
    site.tokens(new_browser(server).sign_in())
    wait_until_written(administrator, other)
    assert all(one["authorization"] == "" for one in recorded(administrator, other))


def test_networks_cannot_be_guessed_from_callers(server: Server, administrator: Administrator, shop: Site) -> None:
    other = new_site(server, profile="oidc")
    record(administrator, other)
    callers = [{one["caller"] for one in recorded(administrator, site)} for site in (shop, other)]
    assert all(callers)
    assert callers[0].isdisjoint(callers[1])
    addresses = ("127.0.0.1", "127.0.0.1/32", "::1", "::/64", "::/48")
    assert {hashlib.sha256(address.encode()).hexdigest()[:8] for address in addresses}.isdisjoint(
        callers[0] | callers[1]
    )
    stored = {row["network"] for row in query(server, "SELECT network FROM oauth_recorded_requests")}
    assert stored.isdisjoint(addresses)


def test_many_and_odd_parameters_get_the_usual_answers(
    server: Server, administrator: Administrator, shop: Site
) -> None:
    browser = new_browser(server).sign_in()
    odd = "&".join("a" for _ in range(150))
    answer = browser.authorize(shop, redirect_uri=f"{shop.redirect_uri}?{odd}")
    assert (answer.status_code, "code=" in answer.headers["Location"]) == (302, True)
    good = urlencode(shop.query())
    for query_text in (f"{good}&{odd}", f"{good}&x=%ff%00%zz", f"{good}&client_id=%ff", "%", "client_id[]=a&=&&=b"):
        assert browser.http.get(f"{AUTHORIZE}?{query_text}").status_code in (302, 400)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (b"%", b"a=%ff", b"&".join([b"a"] * 2000), b"client_id=a&client_id=b", b"\0"):
        assert shop.http.post(TOKEN, content=body, headers=form | shop.basic()).status_code in (400, 401)
    shop.http.post(TOKEN, json={"client_id": shop.client_id, "scope": ["a"], "code": {"a": 1}, "max_age": True})
    sent = wait_for(administrator, shop, content_type="application/json")["parameters"]
    assert (sent["scope"], sent["code"], sent["max_age"]) == ("(not one text)", "(not one text)", "(not a number)")


SECRET = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.s3cr3t-Value"


@pytest.mark.parametrize("name", [*sorted(WORDS), "client_id", "ui_locales", "audience"])
def test_secrets_in_other_parameters_are_not_kept(name: str) -> None:
    assert SECRET not in str(kept_fields({name: SECRET}, "shop"))
    assert SECRET not in str(kept_fields({name: f"openid {SECRET}"}, "shop"))
    assert SECRET not in str(kept_fields({name: ["openid", SECRET]}, "shop"))


@pytest.mark.parametrize(
    "address",
    [
        SECRET,
        f"https://ann:{SECRET}@game.example.com/cb",
        f"https://game.example.com/{SECRET}/cb",
        f"https://game.example.com/cb?x={SECRET}",
        f"https://game.example.com/cb#{SECRET}",
        f"game:{SECRET}",
        f"https://[{SECRET}",
        f"//{SECRET}",
    ],
)
def test_secrets_in_addresses_are_not_kept(address: str) -> None:
    for name in ("redirect_uri", "resource", "iss"):
        assert SECRET not in str(kept_fields({name: address}, "shop"))
        assert SECRET not in str(kept_fields({name: [address, address]}, "shop"))


def test_answers_after_sign_in_and_consent_are_recorded(server: Server, administrator: Administrator) -> None:
    site = new_site(server, profile="oidc", consent=True)
    record(administrator, site)
    browser = new_browser(server)
    page = browser.authorize(site, state="state-of-the-site")
    signed_in = browser.submit(page, {"login": browser.login, "password": PASSWORD}, form=0)
    consent = browser.http.get(signed_in.headers["Location"])
    code = query_of(browser.submit(consent, {"decision": "allow"}))["code"]
    allowed = wait_for(administrator, site, endpoint="authorization_response", kind="redirect")
    assert allowed["answer"]["code"] == f"({len(code)} characters)"
    assert (allowed["proof"], allowed["parameters"], allowed["http_status"]) == ("none", {}, 303)
    page = browser.authorize(site, prompt="consent")
    assert query_of(browser.submit(page, {"decision": "deny"}))["error"] == "access_denied"
    wait_until_written(administrator, site)
    denied = next(one for one in recorded(administrator, site) if one["endpoint"] == "authorization_response")
    assert denied["answer"]["error"] == "access_denied"
    assert denied["answer"]["error_description"] == "the user denied the request"
    page = browser.authorize(site, prompt="consent", response_mode="form_post")
    assert wait_for(administrator, site, endpoint="authorize", kind="page")["http_status"] == 200
    browser.submit(page, {"decision": "allow"})
    posted = wait_for(administrator, site, endpoint="authorization_response", kind="form")
    assert (posted["http_status"], posted["answer"]["state"]) == (200, denied["answer"]["state"])
    stored = str(query(server, "SELECT content, network FROM oauth_recorded_requests"))
    for secret in (code, "state-of-the-site", browser.login, PASSWORD):
        assert secret not in stored


def test_answer_right_after_the_sign_in_is_recorded(server: Server, administrator: Administrator, shop: Site) -> None:
    browser = new_browser(server)
    signed_in = browser.submit(browser.authorize(shop), {"login": browser.login, "password": PASSWORD}, form=0)
    code = query_of(signed_in)["code"]
    answer = wait_for(administrator, shop, endpoint="authorization_response")
    assert answer["answer"]["code"] == f"({len(code)} characters)"


def test_texts_about_users_and_what_was_sent_are_not_kept(
    server: Server, administrator: Administrator, shop: Site
) -> None:
    browser = new_browser(server).sign_in()
    tokens = shop.tokens(browser, scope="openid offline_access")
    for claims in ('{"id_token": {"Ann of Elm Street": 1}}', '{"id_token": {"Ann of Elm Street": {"values": 1}}}'):
        assert "Elm" in query_of(browser.authorize(shop, claims=claims))["error_description"]
        own = {"client_id": shop.client_id, "client_secret": shop.secret}
        assert "Elm" in shop.http.post(PAR, data={**own, **shop.query(claims=claims)}).text
    essential = query_of(browser.authorize(shop, acr_values="Ann_of_Elm_Street", prompt="none"))
    assert "Elm" in essential["error_description"]
    code = browser.code(shop)
    server.sso("user", "ban", user_id_of(server, browser.login), "--reason", "Cheating on Elm Street")
    refused = [shop.redeem(code, headers=shop.basic()), shop.refresh(tokens["refresh_token"], headers=shop.basic())]
    assert any("Elm" in answer.json()["error_description"] for answer in refused), refused
    wait_until_written(administrator, shop)
    texts = {one["answer"].get("error_description", "") for one in recorded(administrator, shop)}
    assert {"the user is banned", "claims: expected a JSON object", "claims: expected a list"} <= texts
    assert "Elm" not in str(query(server, "SELECT content FROM oauth_recorded_requests"))
