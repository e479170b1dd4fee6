"""Rotation of client secrets: two are valid at the same time, each with an end."""

import json
from datetime import datetime

import pytest

from tests.kit.oauth import REVOKE, Browser, Site, error_of, new_site
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


@pytest.mark.parametrize("options", [["--overlap", "0d"], ["--expires-in", "soon"], ["--finish", "--overlap", "1d"]])
def test_wrong_options_are_reported(server: Server, options: list[str]) -> None:
    site = new_site(server, profile="oidc")
    assert server.sso("client", "rotate-secret", site.client_id, *options, check=False).returncode == 2
