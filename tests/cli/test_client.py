"""The commands of `sso client`."""

import json

import pytest

from sso.keys.reseal import Reseal
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from tests.kit.operator_changes import rotate_secret
from tests.kit.server import Server


def test_client_add_prints_the_secret_and_client_show_does_not(server: Server) -> None:
    output = server.sso(
        "client", "add", "cli1", "--profile", "strict", "--name", "Tank Shop", "--host", "shop.example.com"
    ).stdout.split()
    assert output[:3] == ["client_id", "cli1", "client_secret"]
    assert len(output[3]) >= 43
    shown = server.sso("client", "show", "cli1").stdout
    assert output[3] not in shown
    assert json.loads(shown) == {
        "client_id": "cli1",
        "name": "Tank Shop",
        "redirect_hosts": ["shop.example.com"],
        "redirect_uris": [],
        "profile": "strict",
        "id_alg": "",
        "consent": False,
        "first_party": False,
        "disabled": False,
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "",
        "post_logout_redirect_uris": [],
        "backchannel_logout_uri": "",
        "backchannel_logout_session_required": False,
        "origins": [],
        **dict.fromkeys(("logo_uri", "policy_uri", "tos_uri", "support_uri", "accent", "signin_text"), ""),
        "jwks": None,
        "application_id": 0,
        "resource_server": False,
        "require_pushed_authorization_requests": False,
        "dpop_bound_access_tokens": False,
        "token_exchange": False,
        "jwks_uri": "",
        "access_token_format": "opaque",
        "secret_expires": None,
        "client_secret_expires_at": 0,
        "second_expires": None,
        "secrets": 1,
    }
    listed = server.sso("client", "list").stdout
    assert "cli1\tTank Shop\tstrict\tshop.example.com\t\n" in listed
    assert output[3] not in listed


def test_id_alg_option_sets_the_algorithm_of_id_tokens(server: Server) -> None:
    server.sso("client", "add", "cli8", "--profile", "strict", "--host", "a.example.com", "--id-alg", "EdDSA")
    assert json.loads(server.sso("client", "show", "cli8").stdout)["id_alg"] == "EdDSA"
    assert (
        server.sso(
            "client", "add", "cli9", "--profile", "strict", "--host", "a.example.com", "--id-alg", "none", check=False
        ).returncode
        == 2
    )


def test_secret_stdin_option_reads_the_secret(server: Server) -> None:
    result = server.sso(
        "client",
        "add",
        "cli2",
        "--profile",
        "strict",
        "--host",
        "a.example.com",
        "--secret-stdin",
        stdin="a-secret-of-mine-1\n",
    )
    assert "a-secret-of-mine-1" not in result.stdout


def test_public_client_has_no_secret(server: Server) -> None:
    result = server.sso(
        "client", "add", "cli3", "--profile", "oidc", "--public", "--redirect-uri", "http://127.0.0.1/cb"
    )
    assert "secret" not in result.stdout
    assert server.sso("client", "rotate-secret", "cli3", check=False).returncode == 1


def test_rotation_keeps_two_secrets_until_finish(server: Server) -> None:
    server.sso("client", "add", "cli4", "--profile", "strict", "--host", "a.example.com")
    for expected in (2, 2):
        assert server.sso("client", "rotate-secret", "cli4").stdout.startswith("client_secret ")
        assert json.loads(server.sso("client", "show", "cli4").stdout)["secrets"] == expected
    server.sso("client", "rotate-secret", "cli4", "--finish")
    assert json.loads(server.sso("client", "show", "cli4").stdout)["secrets"] == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show", "nobody"], 1),
        (["disable", "nobody"], 1),
        (["enable", "nobody"], 1),
        (["rotate-secret", "nobody"], 1),
        (["rotate-secret", "nobody", "--finish"], 1),
        (["add", "bad id", "--profile", "strict", "--host", "a.example.com"], 1),
        (["add", "x1", "--profile", "strict", "--host", "https://a.example.com/"], 1),
        (["add", "x2", "--profile", "oidc", "--redirect-uri", "javascript:alert(1)"], 1),
        (["add", "x3", "--profile", "oidc"], 2),
        (["add", "x4", "--profile", "strict", "--host", "a.example.com", "--public"], 2),
        (["add", "x5", "--host", "a.example.com", "--profile", "other"], 2),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(server: Server, arguments: list[str], code: int) -> None:
    result = server.sso("client", *arguments, check=False)
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    if code == 1:
        assert len(result.stderr.splitlines()) == 1


def test_adding_an_existing_client_id_fails(server: Server) -> None:
    server.sso("client", "add", "cli5", "--profile", "strict", "--host", "a.example.com")
    assert (
        server.sso("client", "add", "cli5", "--profile", "strict", "--host", "a.example.com", check=False).returncode
        == 1
    )


async def test_reseal_keeps_both_secrets_of_a_rotation(services: Services) -> None:
    from sso.core.encryption import MasterKey

    applier = Applier(services.database, services.hasher, services.operations)
    part = {"client_id": "shop", "client_secret": "the-first-of-all-1", "redirect_hosts": ["a.example.com"]}
    await applier.apply(parse({"clients": [part]}))
    new = await rotate_secret(services, "shop")
    services.keyring.keys = (MasterKey.generate(), *services.keyring.keys)
    await Reseal(services.database, services.keyring).run()
    services.keyring.keys = services.keyring.keys[:1]
    client = await services.oauth.clients.get("shop")
    assert client
    assert [secret for secret, _ in services.oauth.clients.secrets(client)] == [new, "the-first-of-all-1"]


async def test_apply_with_another_secret_replaces_both_secrets(services: Services) -> None:
    applier = Applier(services.database, services.hasher, services.operations)
    part = {"client_id": "shop", "client_secret": "the-first-of-all-1", "redirect_hosts": ["a.example.com"]}
    await applier.apply(parse({"clients": [part]}))
    assert (await applier.apply(parse({"clients": [part]}))).unchanged == 1
    await rotate_secret(services, "shop")
    await applier.apply(parse({"clients": [part]}))
    client = await services.oauth.clients.get("shop")
    assert client
    assert [secret for secret, _ in services.oauth.clients.secrets(client)] == ["the-first-of-all-1"]


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("shop", "--host", "https://a.example"), "--host: must be a host name"),
        (("a shop", "--host", "a.example"), "CLIENT_ID: must be 1 to 64 letters"),
    ],
)
def test_client_add_names_the_option_with_a_wrong_value(
    arguments: tuple[str, ...], option: str, server: Server
) -> None:
    assert server.sso("client", "add", "--profile", "oidc", *arguments, check=False).stderr.startswith(f"sso: {option}")


def test_service_client_names_the_option_that_is_missing_and_warns_about_an_unknown_application(server: Server) -> None:
    command = ("client", "add", "cli-service", "--profile", "oidc", "--grant-types", "client_credentials")
    failed = server.sso(*command, check=False)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == "sso: --grant-types: client_credentials needs application_id\n"
    added = server.sso(*command, "--application-id", "987654")
    assert "client_secret" in added.stdout
    assert added.stderr == "warning: application_id: there is no application 987654 yet\n"
