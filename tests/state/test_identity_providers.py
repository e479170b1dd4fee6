"""Section `identity_providers` of `sso apply` and `sso export`."""

from typing import Any

import pytest
from msgspec.structs import replace

from sso.audit.trail import AuditFilter, read
from sso.core.field_errors import FieldError
from sso.db.statement import Statement
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from sso.state.export import export
from sso.state.summary import ApplyCounts

SECRET = "a secret of the provider"
GOOGLE: dict[str, Any] = {
    "id": "google", "kind": "oidc", "name": "Google", "issuer": "https://accounts.google.com", "client_id": "1234",
    "client_secret": SECRET, "position": 2, "trusted_email": True,
}  # fmt: skip
DISCORD: dict[str, Any] = {
    "id": "discord", "kind": "oauth2", "client_id": "5678", "client_secret": SECRET, "scopes": ["identify", "email"],
    "authorization_url": "https://discord.com/oauth2/authorize", "token_url": "https://discord.com/api/oauth2/token",
    "userinfo_url": "https://discord.com/api/users/@me", "claims": {"name": "username", "email_verified": "verified"},
}  # fmt: skip
STEAM = {"id": "steam", "kind": "steam"}
GAME: dict[str, Any] = {
    "id": "game", "kind": "steam_ticket", "client_id": "480", "client_secret": SECRET, "ticket_identity": "sso",
    "create_users": True,
}  # fmt: skip
CENTER: dict[str, Any] = {"id": "center", "kind": "game_center", "client_id": "com.example.game", "max_age": 60}


async def apply(services: Services, *records: dict[str, Any]) -> ApplyCounts:
    applier = Applier(services.database, services.hasher, services.operations)
    return await applier.apply(parse({"identity_providers": list(records)}))


async def test_applying_again_changes_nothing(services: Services) -> None:
    assert (await apply(services, GOOGLE, DISCORD, STEAM, GAME, CENTER)).created == 5
    assert (await apply(services, GOOGLE, DISCORD, STEAM, GAME, CENTER)).unchanged == 5
    assert (await apply(services, {"id": "google", "name": "G"})).changed == 1
    assert [provider.provider_id for provider in await services.upstream.providers.list()] == [
        "center",
        "game",
        "steam",
        "discord",
        "google",
    ]
    # Only providers for browsers have buttons.
    await services.upstream.provider_list.load()
    assert [button.provider_id for button in services.upstream.provider_list.buttons] == ["steam", "discord", "google"]


async def test_export_has_no_secret_and_can_be_applied(services: Services) -> None:
    await apply(services, GOOGLE, DISCORD, STEAM, GAME, CENTER)
    document = await export(services.database)
    assert SECRET not in str(document)
    assert (await apply(services, *document["identity_providers"])).unchanged == 5
    await services.database.value(Statement("DELETE FROM identity_providers"))
    assert (await apply(services, *document["identity_providers"])).created == 5


async def test_export_gives_a_new_installation_the_same_providers(services: Services) -> None:
    oidc = {"kind": "oidc", "issuer": "https://a.example", "client_id": "c"}
    play = {"id": "play", "kind": "google_play", "client_id": "c", "token_url": "", "userinfo_url": ""}
    await apply(
        services,
        {"id": "trusted", **oidc},
        {"id": "untrusted", **oidc, "trusted_email": False, "scopes": []},
        {**DISCORD, "trusted_email": False},
        {**CENTER, "id": "ios"},
        {**STEAM, "issuer": "", "name": "Valve"},
        play,
        GAME,
        {**oidc, "id": "ticket", "kind": "oidc_ticket"},
    )
    document = await export(services.database)
    providers = await services.upstream.providers.list()
    await services.database.value(Statement("DELETE FROM identity_providers"))
    await apply(services, *document["identity_providers"])
    assert await services.upstream.providers.list() == [replace(p, secret_sealed=None) for p in providers]
    assert (await apply(services, *document["identity_providers"])).unchanged == len(providers)


async def test_secret_is_encrypted_and_not_audited(services: Services) -> None:
    await apply(services, GOOGLE)
    provider = await services.upstream.providers.get("google")
    assert provider
    assert provider.secret_sealed
    assert SECRET not in provider.secret_sealed
    assert services.upstream.providers.secret(provider) == SECRET
    await apply(services, {**GOOGLE, "client_secret": "another secret"})
    entries = await read(services.database, AuditFilter(target="google"))
    assert [entry["operation"] for entry in entries] == ["identity_provider.save", "identity_provider.create"]
    assert "secret_sealed" not in str(entries)
    assert {entry["after"]["client_secret"] for entry in entries} == {"…"}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kind": "oidc"}, "id: is required"),
    ({**STEAM, "id": "-x"}, "id: must be 1 to 32 characters of a-z, 0-9 and -, without - at the ends"),
    ({**STEAM, "id": "a/b"}, "id: must be 1 to 32 characters of a-z, 0-9 and -, without - at the ends"),
    ({**STEAM, "kind": "saml"}, "kind: must be 'oidc', 'oauth2', 'steam', 'steam_ticket', "),
    ({**GAME, "client_id": "Half-Life"}, "client_id: expected the App ID of the game at Steam, a number"),
    ({**GAME, "client_id": ""}, "client_id: is required for the kind steam_ticket"),
    ({**CENTER, "max_age": 0}, "max_age: must be at least 1 second"),
    ({**CENTER, "max_age": 86401}, "max_age: must be 0 to 86400 seconds"),
    ({**CENTER, "certificates": "-----BEGIN NOTHING-----"}, "certificates: must be certificates in PEM"),
    ({"id": "x", "kind": "oidc_ticket", "client_id": "c"}, "issuer: is required for the kind oidc_ticket"),
    ({"id": "x"}, "kind: is required for a new provider"),
    ({"id": "x", "kind": "oidc", "client_id": "c"}, "issuer: is required for the kind oidc"),
    ({**DISCORD, "token_url": ""}, "token_url: is required for the kind oauth2"),
    ({**GOOGLE, "issuer": "http://accounts.google.com"}, "issuer: must be an address that begins with https://"),
    ({**GOOGLE, "issuer": "https://a@b.example"}, "issuer: must be an address that begins with https://"),
    ({**GOOGLE, "issuer": "https://b.example?x=1"}, "issuer: must be an address that begins with https://"),
    ({**DISCORD, "token_url": "javascript:alert(1)"}, "token_url: must be an address that begins with https://"),
    ({**DISCORD, "claims": {"sub": "id"}}, "claims: expected the names subject, name, email, email_verified"),
    ({**DISCORD, "claims": {"name": 7}}, "claims.name: must be a string"),
    ({**GOOGLE, "scopes": ["a b"]}, "scopes[0]: must not contain spaces, quotes or backslashes"),
    ({**GOOGLE, "position": -1}, "position: must not be negative"),
    ({**GOOGLE, "trusted_email": 1}, "trusted_email: must be true or false"),
    ({**GOOGLE, "name": ""}, "name: must not be empty"),
    ({**GOOGLE, "secret": "x"}, "secret: unknown field"),
]


async def test_wrong_record_is_refused(services: Services) -> None:
    for record, problem in WRONG:
        with pytest.raises(FieldError) as error:
            await apply(services, record)
        assert str(error.value).startswith(f"identity_providers[0].{problem}")
    with pytest.raises(FieldError, match=r"identity_providers\[1\].id: appears twice"):
        await apply(services, STEAM, STEAM)
    assert await services.upstream.providers.list() == []


async def test_issuer_and_kind_cannot_be_changed(services: Services) -> None:
    """The links would belong to other people."""
    await apply(services, GOOGLE)
    for change in ({"issuer": "https://other.example"}, {"kind": "oauth2"}):
        with pytest.raises(FieldError, match="cannot be changed: remove the provider and its links first"):
            await apply(services, {**GOOGLE, **change})


async def test_provider_that_tells_whether_an_address_is_verified_is_trusted(services: Services) -> None:
    oidc = {"kind": "oidc", "issuer": "https://a.example", "client_id": "c"}
    await apply(
        services,
        {"id": "oidc", **oidc},
        {"id": "untrusted", **oidc, "trusted_email": False},
        DISCORD,
        {**DISCORD, "id": "unverified", "claims": {"name": "username"}},
        STEAM,
    )
    trusted = {provider.provider_id for provider in await services.upstream.providers.list() if provider.trusted_email}
    assert trusted == {"oidc", "discord"}
