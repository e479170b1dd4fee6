"""Rotation of client secrets: two are valid at the same time, each with an end."""

import json
import time
from datetime import datetime
from typing import Any

import pytest

from tests.kit.oauth import REVOKE, TOKEN, Browser, Site, error_of, new_site
from tests.kit.postgres import execute
from tests.kit.server import Server


def rotate(server: Server, site: Site, *options: str) -> str:
    return server.sso("client", "rotate-secret", site.client_id, *options).stdout.split()[-1]


def let_expire(server: Server, site: Site, column: str) -> None:
    change = f"UPDATE oauth_clients SET {column} = now() - interval '1 second' WHERE client_id = '{site.client_id}'"
    execute(server.settings["SSO_DATABASE_URL"], change)


def test_both_secrets_work_until_their_ends(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc")
    new = rotate(server, site, "--overlap", "7d", "--expires-in", "90d")
    shown = json.loads(server.sso("client", "show", site.client_id).stdout)
    ends = [datetime.fromisoformat(shown[name]) for name in ("secret_expires", "second_expires")]
    assert (ends[0] - ends[1]).days == 83
    assert shown["secrets"] == 2
    for secret in (site.secret, new):
        tokens = site.redeem(browser.code(site), headers=site.basic(secret)).json()
        assert site.refresh(tokens["refresh_token"], headers=site.basic(secret)).status_code == 200
    token = site.redeem(browser.code(site), headers=site.basic()).json()["refresh_token"]
    let_expire(server, site, "second_expires")
    assert error_of(site.refresh(token, headers=site.basic())) == (401, "invalid_client")
    assert error_of(site.redeem(browser.code(site), headers=site.basic())) == (401, "invalid_client")
    assert error_of(site.http.post(REVOKE, data={"token": "x"}, headers=site.basic())) == (401, "invalid_client")
    assert site.refresh(token, headers=site.basic(new)).status_code == 200
    let_expire(server, site, "secret_expires")
    assert error_of(site.redeem(browser.code(site), headers=site.basic(new))) == (401, "invalid_client")
    # A confidential client whose secrets have ended is not a public one.
    answer = site.redeem(browser.code(site), headers={}, client_id=site.client_id)
    assert error_of(answer) == (401, "invalid_client")


def test_overlap_never_extends_the_end_of_the_old_secret(server: Server) -> None:
    site = new_site(server, profile="oidc")
    rotate(server, site, "--expires-in", "1h")
    rotate(server, site, "--overlap", "7d")
    shown = json.loads(server.sso("client", "show", site.client_id).stdout)
    assert shown["secret_expires"] is None
    end = datetime.fromisoformat(shown["second_expires"])
    assert 0 < (end - datetime.now(end.tzinfo)).total_seconds() <= 3600


def test_without_options_the_old_secret_stays_until_finish(server: Server, browser: Browser) -> None:
    site = new_site(server, profile="oidc")
    new = rotate(server, site)
    assert site.redeem(browser.code(site), headers=site.basic()).status_code == 200
    server.sso("client", "rotate-secret", site.client_id, "--finish")
    assert error_of(site.redeem(browser.code(site), headers=site.basic())) == (401, "invalid_client")
    assert site.redeem(browser.code(site), headers=site.basic(new)).status_code == 200


def service_token(server: Server, client_id: str, secret: str) -> str:
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    with server.client() as client:
        return str(client.post(TOKEN, data=form).json()["access_token"])


def service_token_works(server: Server, token: str) -> bool:
    with server.client() as client:
        return client.get("/api/admin/projects", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_rotation_without_overlap_ends_everything_that_was_issued_under_the_old_secret(
    server: Server, browser: Browser
) -> None:
    site = new_site(server, profile="oidc")
    tokens = site.redeem(browser.code(site), headers=site.basic()).json()
    code = browser.code(site)
    assert site.userinfo(tokens["access_token"]).status_code == 200
    new = rotate(server, site, "--overlap", "0")
    assert json.loads(server.sso("client", "show", site.client_id).stdout)["secrets"] == 1
    assert site.userinfo(tokens["access_token"]).status_code == 401
    assert site.refresh(tokens["refresh_token"], headers=site.basic(new)).status_code == 400
    assert error_of(site.redeem(code, headers=site.basic(new))) == (400, "invalid_grant")
    assert site.redeem(browser.code(site), headers=site.basic(new)).status_code == 200


def test_token_of_a_service_client_ends_with_an_immediate_rotation_and_with_disabling(server: Server) -> None:
    client_id, secret = "leaked-service", "a secret that will leak"
    fields = {"profile": "oidc", "grant_types": ["client_credentials"], "application_id": 1}
    server.apply({"clients": [{"client_id": client_id, "client_secret": secret, **fields}]})
    leaked = service_token(server, client_id, secret)
    assert service_token_works(server, leaked)
    new = server.sso("client", "rotate-secret", client_id, "--overlap", "0").stdout.split()[-1]
    assert not service_token_works(server, leaked)
    token = service_token(server, client_id, new)
    server.sso("client", "rotate-secret", client_id, "--overlap", "1d")
    assert service_token_works(server, token)
    server.sso("client", "disable", client_id)
    server.sso("client", "enable", client_id)
    assert not service_token_works(server, token)


@pytest.mark.parametrize("options", [["--overlap", "0d"], ["--expires-in", "soon"], ["--finish", "--overlap", "1d"]])
def test_wrong_options_are_reported(server: Server, options: list[str]) -> None:
    site = new_site(server, profile="oidc")
    assert server.sso("client", "rotate-secret", site.client_id, *options, check=False).returncode == 2


def test_end_of_a_secret_is_shown_and_exported_as_client_secret_expires_at(server: Server) -> None:
    site = new_site(server, profile="oidc")
    rotated = server.sso("client", "rotate-secret", site.client_id, "--expires-in", "90d")
    secret = rotated.stdout.removeprefix("client_secret ").strip()
    (line,) = (line for line in rotated.stderr.splitlines() if line.startswith("client_secret_expires_at "))
    expires_at = int(line.split()[1])
    assert abs(expires_at - time.time() - 90 * 86400) < 3600
    shown = json.loads(server.sso("client", "show", site.client_id).stdout)
    assert shown["client_secret_expires_at"] == expires_at
    record = exported(server, site)
    assert record["client_secret_expires_at"] == expires_at
    assert "changed 0" in server.sso("apply", "-", stdin=json.dumps({"clients": [record]})).stdout
    server.apply({"clients": [{"client_id": site.client_id, "client_secret_expires_at": 0}]})
    assert "client_secret_expires_at" not in exported(server, site)
    assert site.http.post(REVOKE, data={"token": "x"}, headers=site.basic(secret)).status_code == 200
    server.apply({"clients": [{"client_id": site.client_id, "client_secret_expires_at": 1}]})
    answer = site.http.post(REVOKE, data={"token": "x"}, headers=site.basic(secret))
    assert error_of(answer) == (401, "invalid_client")


def exported(server: Server, site: Site) -> dict[str, Any]:
    clients = json.loads(server.sso("export").stdout)["clients"]
    record: dict[str, Any] = next(client for client in clients if client["client_id"] == site.client_id)
    return record


def test_public_client_has_no_end_of_a_secret(server: Server) -> None:
    record = {"client_id": "public-end", "profile": "oidc", "redirect_hosts": ["a.example.com"]}
    document = {"clients": [record | {"client_secret_expires_at": 5}]}
    result = server.sso("apply", "-", stdin=json.dumps(document), check=False)
    assert "clients[0].client_secret_expires_at: the client has no client_secret" in result.stderr
