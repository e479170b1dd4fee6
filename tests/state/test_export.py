"""`sso export`: users and clients without secrets; applying an export changes nothing."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from sso.core.field_errors import FieldError
from sso.db.statement import Statement
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from sso.state.export import export
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.open_database import open_database
from tests.kit.postgres import Postgres

SECRET = "a-secret-of-the-shop"
DOCUMENT: dict[str, list[dict[str, Any]]] = {
    "users": [
        {
            "user_id": "1001",
            "login": "Ann@example.com",
            "password": PASSWORD,
            "nick": "Ann 🎮 Ünï",
            "country": "DE",
            "lang": "de",
            "level": "7",
            "tags": ["beta", "vip"],
            "purchases": ["full_game"],
            "email_verified": True,
            "phone": "+490000000",
            "phone_verified": True,
            "totp_secret": TOTP_SECRET,
            "email_2fa": True,
            "meta": {"geo": "DE", "deep": {"list": [1, None, 2.5, True, "x"]}},
        },
        {"user_id": "9223372036854775807", "login": "bob@example.com", "disabled": True},
    ],
    "clients": [
        {"client_id": "public", "redirect_hosts": ["localhost"]},
        {
            "client_id": "shop",
            "client_secret": SECRET,
            "name": "Shop",
            "redirect_hosts": ["shop.example.com"],
            "redirect_uris": ["https://shop.example.com/callback"],
            "profile": "oidc",
            "consent": True,
            "first_party": True,
            "disabled": True,
        },
    ],
}


@pytest.fixture
async def filled(services: Services) -> Services:
    await Applier(services.database, services.hasher, services.operations).apply(parse(DOCUMENT))
    return services


@pytest.fixture
def other_dsn(postgres_server: Postgres) -> Iterator[str]:
    """Another, empty database."""
    dsn = postgres_server.fresh()
    yield dsn
    postgres_server.drop(dsn)


async def test_export_has_everything_except_secrets(filled: Services) -> None:
    document = await export(filled.database)
    assert {"users", "clients"} <= set(document)
    for section in ("users", "clients"):
        for given, exported in zip(DOCUMENT[section], document[section], strict=True):
            shown = {name: value for name, value in given.items() if "secret" not in name and name != "password"}
            assert shown.items() <= exported.items()
            assert not {"password", "totp_secret", "client_secret"} & set(exported)


async def test_export_has_no_secret_in_any_form(filled: Services) -> None:
    text = orjson.dumps(await export(filled.database)).decode()
    for secret in (PASSWORD, TOTP_SECRET, SECRET, "$argon2", filled.keyring.keys[0].id, "sealed", "hash", "valid_from"):
        assert secret not in text


CLOSE = Statement(
    """UPDATE users SET disabled = true, deletion_by = 'user', deletion_due = now() + interval '9 days'
    WHERE user_id = '1001'"""
)


async def test_account_that_its_user_has_closed_can_be_kept_after_applying_an_export(filled: Services) -> None:
    await filled.database.value(CLOSE)
    document = orjson.loads(orjson.dumps(await export(filled.database)))
    counts = await Applier(filled.database, filled.hasher, filled.operations).apply(parse(document))
    user = await filled.users.get("1001")
    assert user is not None
    assert (user.disabled, user.can_be_kept) == (True, True)
    assert (counts.created, counts.changed) == (0, 0)


async def test_closed_account_is_not_revived_where_its_export_is_applied(filled: Services, other_dsn: str) -> None:
    await filled.database.value(CLOSE)
    document = await export(filled.database, ["users"])
    async with open_database(other_dsn, 2) as elsewhere:
        await Applier(elsewhere, filled.hasher, filled.operations).apply(parse(document))
        disabled = await elsewhere.run_sql("SELECT user_id FROM users WHERE disabled", [])
    assert {row["user_id"] for row in disabled} == {"1001", "9223372036854775807"}


async def test_applying_an_export_changes_nothing(filled: Services) -> None:
    document = await export(filled.database)
    applier = Applier(filled.database, filled.hasher, filled.operations)
    as_read = orjson.loads(orjson.dumps(document))
    counts = await applier.apply(parse(as_read))
    assert (counts.created, counts.changed) == (0, 0)
    assert await export(filled.database) == document


async def test_confidential_client_cannot_be_imported_without_its_secret(filled: Services, other_dsn: str) -> None:
    document = await export(filled.database)
    async with open_database(other_dsn, 2) as elsewhere:
        with pytest.raises(FieldError, match="client_secret: is required"):
            await Applier(elsewhere, filled.hasher, filled.operations).apply(parse(document))


async def test_export_creates_the_same_state_in_another_database(filled: Services, other_dsn: str) -> None:
    document = await export(filled.database)
    for client in document["clients"]:
        client |= {"client_secret": SECRET} if client["client_id"] == "shop" else {}
    async with open_database(other_dsn, 2) as elsewhere:
        await Applier(elsewhere, filled.hasher, filled.operations).apply(parse(document))
        there = await export(elsewhere)
    for section in ("users", "clients"):
        key = "user_id" if section == "users" else "client_id"
        for part in document[section]:
            part.pop("client_secret", None)
        assert sorted(there[section], key=lambda part: part[key]) == sorted(
            document[section], key=lambda part: part[key]
        )


async def test_export_of_an_empty_database_is_empty(services: Services) -> None:
    assert not any(section for name, section in (await export(services.database)).items() if name != "applications")
