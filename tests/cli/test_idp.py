"""`sso idp`: adding, listing and removing identity providers; errors name the option."""

from pathlib import Path

import pytest

from sso.core.encryption import MasterKey
from tests.cli.conftest import Sso
from tests.kit.server import Server

OIDC = ("--kind", "oidc", "--issuer", "https://id.example.com", "--client-id", "sso")


@pytest.fixture(scope="module")
def environment(server: Server) -> dict[str, str]:
    return server.settings


def test_provider_is_added_listed_and_removed(sso: Sso, server: Server) -> None:
    options = ("--name", "Studio", "--client-secret-stdin", "--trusted-email")
    added = sso("idp", "add", "studio", *OIDC, *options, stdin="a secret\n")
    assert added.lines == [f"callback {server.base_url}/login/upstream/studio/callback"]
    assert sso("idp", "add", "studio", *OIDC).failure == "there is already an identity provider studio"
    listed = sso("idp", "list")
    assert "https://id.example.com" in listed.out
    assert "a secret" not in listed.out
    assert "a secret" not in sso("export").out + sso("audit").out
    assert sso("idp", "delete", "studio", "--yes").lines == ["studio is deleted"]
    ticket = ("--kind", "steam_ticket", "--client-id", "480", "--create-users", "--ticket-identity", "sso")
    assert sso("idp", "add", "game", *ticket).lines == ["game is added"]
    assert "create_users" in sso("idp", "list").out
    assert sso("idp", "delete", "game", "--yes").code == 0
    assert sso("idp", "delete", "studio", "--yes").failure == "there is no identity provider studio"


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        (("A", *OIDC), "ID: must be 1 to 32 characters of a-z, 0-9 and -, without - at the ends"),
        (("x", "--kind", "oidc", "--client-id", "sso"), "--issuer: is required for the kind oidc"),
        (("x", "--kind", "oidc", "--issuer", "https://id.example.com"), "--client-id: is required for the kind oidc"),
        (
            ("x", "--kind", "oidc", "--issuer", "http://id.example.com", "--client-id", "sso"),
            "--issuer: must be an address that begins with https:// (http:// for this machine only, while SSO_BASE_URL "
            "is http)",
        ),
        (
            ("x", "--kind", "steam_ticket", "--client-id", "no number"),
            "--client-id: expected the App ID of the game at Steam, a number",
        ),
        (("x", *OIDC, "--claim", "subject"), "--claim: expected NAME=MEMBER, such as subject=id"),
        (("x", *OIDC, "--claim", "sub=id"), "--claim: expected the names subject, name, email, email_verified"),
    ],
)
def test_wrong_option_is_named(sso: Sso, arguments: tuple[str, ...], failure: str) -> None:
    assert sso("idp", "add", *arguments).failure == failure


def test_missing_secret_is_an_error(sso: Sso) -> None:
    failure = sso("idp", "add", "x", *OIDC, "--client-secret-stdin", stdin="").failure
    assert failure == "--client-secret-stdin: expected the secret on standard input"


def test_http_on_this_machine_needs_an_http_base_url(sso: Sso, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loopback = ("--kind", "oidc", "--issuer", "http://127.0.0.1:9000", "--client-id", "sso")
    assert sso("idp", "add", "local", *loopback).lines
    assert sso("idp", "delete", "local", "--yes").code == 0
    # A command that finds no running service has its own settings.
    monkeypatch.setenv("SSO_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("SSO_SECRET_KEY", MasterKey.generate().text())
    monkeypatch.setenv("SSO_BASE_URL", "https://sso.example.com")
    assert sso("idp", "add", "local", *loopback).failure.startswith("--issuer: must be an address")
