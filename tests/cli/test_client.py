"""The commands of `sso client`."""

import json

import pytest

from sso.core.encryption import MasterKey
from sso.keys.reseal import Reseal
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from tests.cli.conftest import Sso
from tests.kit.operator_changes import rotate_secret
from tests.kit.server import Server


@pytest.fixture(scope="module")
def environment(server: Server) -> dict[str, str]:
    return server.settings


def test_client_add_prints_the_secret_and_client_show_does_not(sso: Sso) -> None:
    output = sso(
        "client", "add", "cli1", "--profile", "strict", "--name", "Tank Shop", "--host", "shop.example.com"
    ).output.split()
    assert output[:3] == ["client_id", "cli1", "client_secret"]
    assert len(output[3]) >= 43
    shown = sso("client", "show", "cli1").output
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
        "registered_by": "",
        "approved": True,
        "access_token_format": "opaque",
        "secret_expires": None,
        "client_secret_expires_at": 0,
        "second_expires": None,
        "secrets": 1,
    }
    listed = sso("client", "list").output
    assert "cli1\tTank Shop\tstrict\tshop.example.com\t\n" in listed
    assert output[3] not in listed


def test_id_alg_option_sets_the_algorithm_of_id_tokens(sso: Sso) -> None:
    assert sso("client", "add", "cli8", "--profile", "strict", "--host", "a.example.com", "--id-alg", "EdDSA").code == 0
    assert json.loads(sso("client", "show", "cli8").output)["id_alg"] == "EdDSA"
    assert sso("client", "add", "cli9", "--profile", "strict", "--host", "a.example.com", "--id-alg", "none").code == 2


def test_secret_stdin_option_reads_the_secret(sso: Sso) -> None:
    result = sso(
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
    assert "a-secret-of-mine-1" not in result.output


def test_public_client_has_no_secret(sso: Sso) -> None:
    result = sso("client", "add", "cli3", "--profile", "oidc", "--public", "--redirect-uri", "http://127.0.0.1/cb")
    assert "secret" not in result.output
    assert sso("client", "rotate-secret", "cli3").code == 1


def test_rotation_keeps_two_secrets_until_finish(sso: Sso) -> None:
    assert sso("client", "add", "cli4", "--profile", "strict", "--host", "a.example.com").code == 0
    for expected in (2, 2):
        assert sso("client", "rotate-secret", "cli4").output.startswith("client_secret ")
        assert json.loads(sso("client", "show", "cli4").output)["secrets"] == expected
    assert sso("client", "rotate-secret", "cli4", "--finish").code == 0
    assert json.loads(sso("client", "show", "cli4").output)["secrets"] == 1


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
def test_invalid_arguments_are_reported_in_one_line(sso: Sso, arguments: list[str], code: int) -> None:
    result = sso("client", *arguments)
    assert result.code == code
    assert "Traceback" not in result.err
    if code == 1:
        assert len(result.err.splitlines()) == 1


def test_adding_an_existing_client_id_fails(sso: Sso) -> None:
    assert sso("client", "add", "cli5", "--profile", "strict", "--host", "a.example.com").code == 0
    assert sso("client", "add", "cli5", "--profile", "strict", "--host", "a.example.com").code == 1


async def test_both_secrets_of_a_rotation_are_resealed_and_replaced_by_apply(services: Services) -> None:
    applier = Applier(services.database, services.hasher, services.operations)
    part = {"client_id": "shop", "client_secret": "the-first-of-all-1", "redirect_hosts": ["a.example.com"]}
    await applier.apply(parse({"clients": [part]}))
    assert (await applier.apply(parse({"clients": [part]}))).unchanged == 1
    new = await rotate_secret(services, "shop")
    services.keyring.keys = (MasterKey.generate(), *services.keyring.keys)
    await Reseal(services.database, services.keyring).run()
    services.keyring.keys = services.keyring.keys[:1]
    assert await secrets_of(services, "shop") == [new, "the-first-of-all-1"]
    await applier.apply(parse({"clients": [part]}))
    assert await secrets_of(services, "shop") == ["the-first-of-all-1"]


async def secrets_of(services: Services, client_id: str) -> list[str]:
    client = await services.oauth.clients.get(client_id)
    assert client
    return [secret for secret, _ in services.oauth.clients.secrets(client)]


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("shop", "--host", "https://a.example"), "--host: must be a host name"),
        (("a shop", "--host", "a.example"), "CLIENT_ID: must be 1 to 64 letters"),
    ],
)
def test_client_add_names_the_option_with_a_wrong_value(arguments: tuple[str, ...], option: str, sso: Sso) -> None:
    assert sso("client", "add", "--profile", "oidc", *arguments).err.startswith(f"sso: {option}")


def test_service_client_names_the_option_that_is_missing_and_warns_about_an_unknown_application(sso: Sso) -> None:
    command = ("client", "add", "cli-service", "--profile", "oidc", "--grant-types", "client_credentials")
    failed = sso(*command)
    assert (failed.code, failed.out) == (1, "")
    assert failed.err == "sso: --grant-types: client_credentials needs application_id\n"
    added = sso(*command, "--application-id", "987654")
    assert "client_secret" in added.output
    assert added.err == "warning: application_id: there is no application 987654 yet\n"


def test_registration_tokens_and_approvals(sso: Sso, server: Server) -> None:
    assert len(sso("client", "registration-token", "--uses", "3", "--days", "1").output.strip()) == 43
    token = json.loads(sso("client", "registration-tokens", "--json").output)
    assert (token["uses"], token["uses_left"]) == (3, 3)
    assert sso("client", "registration-tokens", "--revoke", token["id"]).code == 0
    assert sso("client", "registration-tokens", "--json").output == ""
    assert sso("client", "registration-tokens", "--revoke", token["id"]).code == 1
    for client_id in ("cli-waits", "cli-refused"):
        server.apply({"clients": [{"client_id": client_id, "profile": "oidc", "public": True, "approved": False}]})
    assert "waits for approval" in sso("client", "list").output
    assert sso("client", "enable", "cli-waits").code == 1
    assert sso("client", "approve", "cli-waits").code == 0
    shown = json.loads(sso("client", "show", "cli-waits").output)
    assert (shown["approved"], shown["disabled"]) == (True, False)
    assert sso("client", "refuse", "cli-waits").code == 1
    assert sso("client", "refuse", "cli-refused").code == 0
    assert sso("client", "show", "cli-refused").code == 1
