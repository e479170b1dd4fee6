"""The permission sections of `sso export`."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from sso.audit.trail import AuditActor
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.core.field_errors import FieldError
from sso.core.keys import GENERATE, private_pem
from sso.perm.stores.applications import remove_application
from sso.perm.stores.projects import remove_project, save_project
from sso.services import Services, build
from sso.state.export import export
from tests.kit.open_database import open_database
from tests.kit.postgres import Postgres
from tests.state.studio import ANN, BOB, SECRET, TESTERS, apply, studio, traces


@pytest.fixture
def other_dsn(postgres_server: Postgres) -> Iterator[str]:
    dsn = postgres_server.fresh()
    yield dsn
    postgres_server.drop(dsn)


async def test_export_contains_the_applied_document(services: Services) -> None:
    await apply(services, studio())
    exported = await export(services.database)
    expected = studio()
    assert exported["applications"][1:] == expected["applications"]
    assert exported["schemas"]["40"]["private_data"] == expected["schemas"]["40"]["private_data"]
    assert exported["roles"]["40"][0]["meta"] == expected["roles"]["40"][0]["meta"]
    assert exported["groups"] == [expected["groups"][0] | {"description": ""}]
    assert exported["permissions"] == expected["permissions"]
    assert exported["memberships"][0]["users"] == [
        {"user_id": ANN, "roles": {"project": ["admin"]}},
        *expected["memberships"][0]["users"],
    ]
    admins = expected["projects"][0].pop("admins")
    assert admins
    assert exported["projects"] == expected["projects"]


async def test_applying_an_export_changes_nothing(services: Services) -> None:
    await apply(services, studio())
    before = await traces(services)
    counts = await apply(services, orjson.loads(orjson.dumps(await export(services.database))))
    assert (counts.created, counts.changed, counts.warnings) == (0, 0, ())
    assert await traces(services) == before


async def test_export_creates_the_same_state_in_another_database(
    services: Services, settings: Settings, keyring: Keyring, other_dsn: str
) -> None:
    await apply(services, studio())
    document = await export(services.database)
    async with open_database(other_dsn, 2) as database:
        await apply(build(settings, database, keyring), document)
        assert await export(database) == document


async def test_export_has_no_secrets(services: Services) -> None:
    document = studio()
    pem = private_pem(GENERATE["EdDSA"]())
    document["applications"][0]["service_meta"]["private_key"] = pem
    await apply(services, document)
    exported = await export(services.database)
    assert "access_keys" not in exported
    assert "private_key" not in str(exported)
    assert SECRET not in str(exported)


async def test_export_has_only_changes_of_the_central_application(services: Services) -> None:
    await apply(services, studio())
    exported = await export(services.database)
    assert "1" not in exported["schemas"]
    assert "1" not in exported["roles"]
    await apply(services, {"roles": {"1": [{"name": "viewer", "description": "Mine."}, {"name": "mine"}]}})
    exported = await export(services.database)
    assert [role["name"] for role in exported["roles"]["1"]] == ["mine", "viewer"]


async def test_renamed_project_keeps_its_id(services: Services) -> None:
    await apply(services, studio())
    await services.database.transaction(lambda tx: save_project(tx, AuditActor(), "red_dawn", {"title": "Blue Dusk"}))
    exported = await export(services.database)
    assert exported["projects"][0]["id"] == "red_dawn"
    counts = await apply(services, exported)
    assert (counts.created, counts.changed) == (0, 0)


async def test_title_of_a_renamed_project_is_reserved_where_its_export_is_applied(
    services: Services, settings: Settings, keyring: Keyring, other_dsn: str
) -> None:
    await apply(services, {"projects": [{"title": "Red Dawn"}]})
    await services.database.transaction(lambda tx: save_project(tx, AuditActor(), "red_dawn", {"title": "Blue Dusk"}))
    exported = await export(services.database, ["projects"])
    async with open_database(other_dsn, 2) as database:
        other = build(settings, database, keyring)
        await apply(other, exported)
        with pytest.raises(FieldError, match="already used by another project"):
            await apply(other, {"projects": [{"title": "Blue Dusk"}]})


async def test_author_who_was_erased_is_left_out_and_stays_the_author(
    services: Services, settings: Settings, keyring: Keyring, other_dsn: str
) -> None:
    users = [{"user_id": "1000", "login": "eve@example.com"}, {"user_id": "1001", "login": "bob@example.com"}]
    await apply(services, {"users": users, "projects": [{"title": "Red Dawn", "author": "1000"}]})
    before = await export(services.database, ["projects"])
    author = before["projects"][0].pop("author")
    await services.database.run_sql("DELETE FROM users WHERE user_id = $1", [author])
    exported = await export(services.database, ["users", "projects"])
    assert exported["projects"] == before["projects"]
    for document in (exported, {"projects": [exported["projects"][0] | {"author": author}]}):
        counts = await apply(services, document)
        assert (counts.created, counts.changed) == (0, 0)
    for stranger in ("1001", "1002", ""):
        with pytest.raises(FieldError, match="author"):
            await apply(services, {"projects": [exported["projects"][0] | {"author": stranger}]})
    async with open_database(other_dsn, 2) as database:
        await apply(build(settings, database, keyring), {"projects": exported["projects"]})


async def test_export_leaves_out_removed_records(services: Services) -> None:
    await apply(services, studio() | {"memberships": [_member_of_the_application()]})
    await services.database.transaction(lambda tx: remove_application(tx, AuditActor(), 40))
    exported = await export(services.database)
    assert [item["application_id"] for item in exported["applications"]] == [1]
    assert (exported["schemas"], exported["roles"]) == ({}, {})
    assert exported["projects"][0]["settings"]["services"] == {}
    assert exported["memberships"][0]["users"] == [{"user_id": ANN, "roles": {"project": ["admin"]}}]
    counts = await apply(services, exported)
    assert (counts.created, counts.changed) == (0, 0)
    await services.database.transaction(lambda tx: remove_project(tx, AuditActor(), "red_dawn"))
    exported = await export(services.database)
    assert (exported["projects"], exported["groups"], exported["memberships"]) == ([], [], [])


def _member_of_the_application() -> dict[str, Any]:
    roles = {"applications": {"40": ["app_admin"]}, "services": {"40": ["srv_admin"]}}
    return {"id": "red_dawn", "users": [{"user_id": BOB, "roles": roles}], "allow": [TESTERS]}
