"""Sign-in with real OpenID providers: Authlib in a process of its own, and another instance of this service."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit import postgres
from tests.kit.browser import Forms
from tests.kit.builders import PASSWORD
from tests.kit.ports import free_port
from tests.kit.server import QUICK, Server, running
from tests.upstream.player import follow, go, is_signed_in, link, player, press, sign_in, sign_out, to_provider

SECRET = "the secret of this service at Authlib"


@pytest.fixture(scope="module")
def authlib(server: Server) -> Iterator[str]:
    """The issuer of an Authlib provider, which is registered as ``authlib``."""
    command = [sys.executable, "-m", "tests.upstream.authlib_provider", "sso", SECRET]
    environment = {**os.environ, "AUTHLIB_INSECURE_TRANSPORT": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            issuer = process.stdout.readline().strip()
            options = ("--kind", "oidc", "--name", "Authlib", "--issuer", issuer, "--client-id", "sso")
            server.sso(
                "idp", "add", "authlib", *options, "--trusted-email", "--client-secret-stdin", stdin=f"{SECRET}\n"
            )
            yield issuer
        finally:
            process.terminate()


def test_authlib_signs_in(server: Server, authlib: str) -> None:
    browser = player(server)
    assert finish_at_authlib(browser, "nobody").status_code == 401
    answer = finish_at_authlib(browser, "gordon")
    page = follow(browser, answer)
    assert "gordon@elsewhere.example" in page.text
    press(browser, "/login/identity", "/login/identity/create", nick="Gordon")
    assert "Gordon" in browser.http.get("/account").text
    sign_out(browser)
    assert "gordon@elsewhere.example" in follow(browser, finish_at_authlib(browser, "gordon")).text
    assert is_signed_in(browser)


def finish_at_authlib(browser: Any, name: str) -> Any:
    """Enters a name at Authlib and opens the callback."""
    url = to_provider(browser, "authlib")
    assert "<form" in go(browser, url).text
    answer = go(browser, f"{url}&name={name}")
    assert answer.status_code == 302, answer.text
    return go(browser, answer.headers["Location"])


@pytest.fixture(scope="module")
def other_server(
    server: Server, postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Another instance of this service, at another host name, so that its cookies are separate."""
    port = free_port()
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_RATE_LOGIN": "0", "SSO_WORKERS": "1"}
    settings |= {"SSO_BIND": f"127.0.0.1:{port}", "SSO_BASE_URL": f"http://localhost:{port}"}
    with running(tmp_path_factory.mktemp("other"), **settings) as other:
        yield other


def test_another_instance_signs_in(server: Server, other_server: Server) -> None:
    issuer = other_server.settings["SSO_BASE_URL"]
    secret = "a secret of sixteen characters"
    client: dict[str, Any] = {"client_id": "first", "client_secret": secret, "profile": "oidc"}
    client |= {"redirect_uris": [f"{server.base_url}/login/upstream/other/callback"]}
    login = "ann@other.example"
    other_server.apply({"clients": [client], "users": [{"login": login, "password": PASSWORD, "nick": "Ann"}]})
    record = {"id": "other", "kind": "oidc", "issuer": issuer, "client_id": "first", "client_secret": secret}
    server.apply({"identity_providers": [record]})
    browser = player(server)
    page = go(browser, to_provider(browser, "other"))
    form = Forms(page.text).by_action["/login"][0]
    answer = browser.http.post(f"{issuer}/login", data=form | {"login": login, "password": PASSWORD})
    assert answer.headers["Location"].startswith(f"{server.base_url}/login/upstream/other/callback?"), answer.text
    assert "No account yet" in follow(browser, go(browser, answer.headers["Location"])).text
    link(browser, "other")
    browser.http.cookies.delete("sso_session", domain="127.0.0.1")
    assert not is_signed_in(browser)
    assert browser.login in follow(browser, sign_in(browser, "other")).text


def test_closed_registration_has_a_friendly_page(server: Server, other_server: Server, authlib: str) -> None:
    options = ("--kind", "oidc", "--issuer", authlib, "--client-id", "sso", "--client-secret-stdin")
    other_server.sso("idp", "add", "authlib", *options, stdin=f"{SECRET}\n")
    browser = player(other_server)
    page = follow(browser, finish_at_authlib(browser, "alyx"))
    assert page.status_code == 200
    assert "No account yet" in page.text
    assert "/register" not in page.text
    assert "/login/identity/create" not in page.text
