"""Recorded requests: what a developer sees of a client's requests in each worker, and that no secret is kept."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sso.db.database import Database
from sso.db.statement import Statement
from sso.oauth.recording.recorder import MAX_UNPROVEN_PER_MINUTE, RequestRecorder
from sso.oauth.recording.store import MAX_PROVEN, MAX_UNPROVEN_OF_NETWORK, add_requests, start_recording
from sso.services import Services
from tests.admin.conftest import Administrator, service_token
from tests.kit.browser import each_worker, query
from tests.kit.device import begin, new_device_site
from tests.kit.oauth import (
    INTROSPECT,
    PAR,
    TOKEN,
    Site,
    close_all,
    new_browser,
    new_site,
    pkce,
)
from tests.kit.server import Server, until
from tests.oauth.in_process import apply_client

COUNT = Statement("SELECT network, proven, count(*) AS count FROM oauth_recorded_requests GROUP BY network, proven")


@pytest.fixture(scope="module")
def administrator(server: Server) -> Iterator[Administrator]:
    with server.client() as client:
        yield Administrator(client, service_token(server, "recording", 1))
    close_all()


def recorded(administrator: Administrator, site: Site) -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = administrator.data(f"/clients/{site.client_id}/requests", limit=200)
    return requests


def record(administrator: Administrator, site: Site) -> None:
    """Turns the recording on, and waits until each worker records, and lists what the others have recorded."""
    answer = administrator.request("POST", f"/clients/{site.client_id}/recording")
    assert answer.status_code == 200, answer.text
    with each_worker(site.server) as workers:
        for number, worker in enumerate(workers):
            mark = f"worker{number}"

            def is_recorded(worker: httpx.Client = worker, mark: str = mark) -> bool:
                worker.post(TOKEN, data={"grant_type": "none", "client_id": site.client_id, "scope": mark})
                return bool(until(lambda: is_listed(mark), 1.0))

            def is_listed(mark: str) -> bool:
                return all(mark in scopes(Administrator(other, administrator.headers), site) for other in workers)

            assert until(is_recorded)


def scopes(administrator: Administrator, site: Site) -> set[str]:
    return {request["parameters"].get("scope", "") for request in recorded(administrator, site)}


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


async def test_strangers_cannot_push_out_what_a_client_has_proved(services: Services) -> None:
    await apply_client(services)
    await services.database.transaction(start_recording, "shop")
    for network, proven, count in (("site", True, MAX_PROVEN + 20), ("site", False, 10), ("stranger", False, 300)):
        item = {"client_id": "shop", "network": network, "proven": proven, "content": {}}
        await services.database.transaction(add_requests, [item] * count)
    rows = await services.database.rows(COUNT)
    counts = {(row["network"], row["proven"]): row["count"] for row in rows}
    assert counts == {("site", True): MAX_PROVEN, ("site", False): 10, ("stranger", False): MAX_UNPROVEN_OF_NETWORK}


async def test_requests_that_prove_nothing_are_limited_in_each_worker(database: Database) -> None:
    recorder = RequestRecorder(database)
    admitted = sum(recorder._admits("site") for _ in range(MAX_UNPROVEN_PER_MINUTE + 50))
    assert MAX_UNPROVEN_PER_MINUTE <= admitted <= MAX_UNPROVEN_PER_MINUTE + 50  # a minute may begin meanwhile
