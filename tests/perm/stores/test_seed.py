"""Seeding of the built-in application: once, and what an upgrade adds is in the audit trail."""

from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.stores.builtin_roles import ROLES as BUILTIN_ROLES
from sso.perm.stores.seed import seed_central_application

ENTRIES = Statement("SELECT operation, target, before, after FROM audit ORDER BY id")
ROLES = Statement("SELECT count(*) FROM roles")
FORGET_ROLES = Statement("DELETE FROM roles")
FORGET_SCHEMA = Statement("UPDATE applications SET updated_at = 0, private_data = '{}'")
FORGET_ROLE = Statement("DELETE FROM roles WHERE name = 'auditor'")
FORGET_RULE = Statement("UPDATE applications SET private_data = private_data - 'can_view_audit'")


async def test_new_installation_needs_no_entries(database: Database) -> None:
    await database.value(FORGET_ROLES)
    await database.value(FORGET_SCHEMA)
    await seed_central_application(database)
    await seed_central_application(database)
    assert await database.value(ROLES) == len(BUILTIN_ROLES)
    assert await database.rows(ENTRIES) == []


async def test_roles_and_rules_of_an_upgrade_are_audited(database: Database) -> None:
    await database.value(FORGET_ROLE)
    await database.value(FORGET_RULE)
    await seed_central_application(database)
    role, schema = await database.rows(ENTRIES)
    assert (role["operation"], role["target"], role["before"]) == ("role.save", "1/auditor", None)
    assert role["after"]["meta"]["private_data"]
    assert (schema["operation"], schema["target"]) == ("schema.save", "1")
    assert "can_view_audit" not in schema["before"]["private_data"]
    assert schema["after"]["private_data"]["can_view_audit"]["value"] is False
