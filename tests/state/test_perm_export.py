"""`sso export` of the permission model: what `sso apply` reads, without secrets."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from sso.config import Settings
from sso.core.encryption import Keyring
from sso.core.keys import GENERATE, private_pem
from sso.db.database import Database
from sso.perm.stores.applications import remove_application
from sso.perm.stores.audit import AuditActor
from sso.perm.stores.projects import remove_project, save_project
from sso.services import Services, build
from sso.state.export import export
from tests.kit.postgres import Postgres
from tests.state.studio import ANN, BOB, SECRET, TESTERS, apply, studio, traces


@pytest.fixture
def other_dsn(postgres_server: Postgres) -> Iterator[str]:
    dsn = postgres_server.fresh()
    yield dsn
    postgres_server.drop(dsn)


async def test_the_export_holds_what_was_applied(services: Services) -> None:
    await apply(services, studio())
    found = await export(services.database)
    wanted = studio()
    assert found["applications"][1:] == wanted["applications"]
    assert found["schemas"]["40"]["private_data"] == wanted["schemas"]["40"]["private_data"]
    assert found["roles"]["40"][0]["meta"] == wanted["roles"]["40"][0]["meta"]
    assert found["groups"] == [wanted["groups"][0] | {"description": ""}]
    assert found["permissions"] == wanted["permissions"]
    assert found["memberships"][0]["users"] == [
        {"user_id": ANN, "roles": {"project": ["admin"]}},
        *wanted["memberships"][0]["users"],
    ]
    admins = wanted["projects"][0].pop("admins")
    assert admins
    assert found["projects"] == wanted["projects"]


async def test_applying_an_export_changes_nothing(services: Services) -> None:
    await apply(services, studio())
    before = await traces(services)
    counts = await apply(services, orjson.loads(orjson.dumps(await export(services.database))))
    assert (counts.created, counts.changed, counts.warnings) == (0, 0, ())
    assert await traces(services) == before


async def test_an_export_makes_the_same_state_elsewhere(
    services: Services, settings: Settings, keyring: Keyring, other_dsn: str
) -> None:
    await apply(services, studio())
    document = await export(services.database)
    async with Database.open(other_dsn, 2) as database:
        await apply(build(settings, database, keyring), document)
        assert await export(database) == document


async def test_secrets_are_not_in_it(services: Services) -> None:
    document = studio()
    pem = private_pem(GENERATE["EdDSA"]())
    document["applications"][0]["service_meta"]["private_key"] = pem
    await apply(services, document)
    found = await export(services.database)
    assert "access_keys" not in found
    assert "private_key" not in str(found)
    assert SECRET not in str(found)


async def test_the_central_application_is_there_only_where_it_was_changed(services: Services) -> None:
    await apply(services, studio())
    found = await export(services.database)
    assert "1" not in found["schemas"]
    assert "1" not in found["roles"]
    await apply(services, {"roles": {"1": [{"name": "viewer", "description": "Mine."}, {"name": "mine"}]}})
    found = await export(services.database)
    assert [role["name"] for role in found["roles"]["1"]] == ["mine", "viewer"]


async def test_a_renamed_project_keeps_its_id(services: Services) -> None:
    await apply(services, studio())
    await services.database.transaction(lambda tx: save_project(tx, AuditActor(), "red_dawn", {"title": "Blue Dusk"}))
    found = await export(services.database)
    assert found["projects"][0]["id"] == "red_dawn"
    counts = await apply(services, found)
    assert (counts.created, counts.changed) == (0, 0)


async def test_what_is_removed_is_left_out(services: Services) -> None:
    await apply(services, studio() | {"memberships": [_member_of_the_application()]})
    await services.database.transaction(lambda tx: remove_application(tx, AuditActor(), 40))
    found = await export(services.database)
    assert [item["application_id"] for item in found["applications"]] == [1]
    assert (found["schemas"], found["roles"]) == ({}, {})
    assert found["projects"][0]["settings"]["services"] == {}
    assert found["memberships"][0]["users"] == [{"user_id": ANN, "roles": {"project": ["admin"]}}]
    counts = await apply(services, found)
    assert (counts.created, counts.changed) == (0, 0)
    await services.database.transaction(lambda tx: remove_project(tx, AuditActor(), "red_dawn"))
    found = await export(services.database)
    assert (found["projects"], found["groups"], found["memberships"]) == ([], [], [])


def _member_of_the_application() -> dict[str, Any]:
    roles = {"applications": {"40": ["app_admin"]}, "services": {"40": ["srv_admin"]}}
    return {"id": "red_dawn", "users": [{"user_id": BOB, "roles": roles}], "allow": [TESTERS]}
