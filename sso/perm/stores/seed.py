"""Writes the built-in central application: at the first start, and after an upgrade that adds roles or rules."""

from typing import Any

from msgspec.structs import asdict, replace

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.stores.applications import read_application_row
from sso.perm.stores.builtin_roles import CENTRAL_NAME, ROLES, ROOT_RULES, SCHEMA
from sso.perm.stores.roles import put_role, read_roles, role_json
from sso.perm.stores.schemas import put_schema, schema_of

_IS_COMPLETE = Statement(
    """SELECT updated_at > 0 AND private_data ?& CAST(:rules AS text[]) AND :roles = (
        SELECT count(*) FROM roles r WHERE r.application_id = a.application_id AND r.name = ANY(CAST(:names AS text[])))
    FROM applications a WHERE application_id = :application_id"""
)
_LOCK_IS_NEW = Statement(
    "SELECT updated_at = 0 AS is_new FROM applications WHERE application_id = :application_id FOR UPDATE"
)
_SET_NAME = Statement("UPDATE applications SET name = :name WHERE application_id = :application_id")


async def seed_central_application(database: Database) -> None:
    """Creates the schema if none was ever saved, missing built-in roles and root rules. Other changes stay."""
    names = [role.name for role in ROLES]
    wanted = {"names": names, "roles": len(ROLES), "rules": list(ROOT_RULES)}
    if await database.value(_IS_COMPLETE, application_id=CENTRAL_APPLICATION_ID, **wanted):
        return  # the usual case takes no lock
    await database.transaction(seed)


async def seed(tx: Transaction) -> None:
    """Like `seed_central_application`, in a transaction."""
    is_new = await tx.value(_LOCK_IS_NEW, application_id=CENTRAL_APPLICATION_ID)
    stored = await read_roles(tx, CENTRAL_APPLICATION_ID)
    for role in ROLES:
        if role.name not in stored:
            await put_role(tx, CENTRAL_APPLICATION_ID, role)
            if not is_new:
                await _audit(tx, "role.save", f"{CENTRAL_APPLICATION_ID}/{role.name}", None, role_json(role))
    if is_new:
        await tx.value(_SET_NAME, application_id=CENTRAL_APPLICATION_ID, name=CENTRAL_NAME)
        await put_schema(tx, CENTRAL_APPLICATION_ID, SCHEMA)
    else:
        await _add_missing_rules(tx)


async def _add_missing_rules(tx: Transaction) -> None:
    """Adds the root rules of a newer release to the stored schema."""
    row = await read_application_row(tx, CENTRAL_APPLICATION_ID)
    assert row is not None
    stored = schema_of(row)
    missing = {name: SCHEMA.private_data[name] for name in ROOT_RULES if name not in stored.private_data}
    if missing:
        schema = replace(stored, private_data={**stored.private_data, **missing})
        await put_schema(tx, CENTRAL_APPLICATION_ID, schema)
        await _audit(tx, "schema.save", str(CENTRAL_APPLICATION_ID), asdict(stored), asdict(schema))


async def _audit(tx: Transaction, operation: str, target: str, before: Any, after: Any) -> None:
    """Writes an entry without an author: an upgrade has changed the application, or a start after a deletion."""
    await trail.write(tx, AuditActor(), operation, target, before, after, application_id=CENTRAL_APPLICATION_ID)
