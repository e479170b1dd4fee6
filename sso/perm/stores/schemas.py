"""Schemas of applications in the database (§2.8). Every change is written to the audit trail."""

from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.engine.reserved_names import SECTIONS
from sso.perm.input.protected_rules import check_schema_protection
from sso.perm.stores.applications import read_application_row
from sso.perm.stores.builtin_roles import complete_schema
from sso.perm.stores.roles import read_roles, role_json

_SAVE = Statement(
    """UPDATE applications SET login = :login, public_data = :public_data, private_data = :private_data,
        secret_data = :secret_data, version = version + 1, revision = revision + 1,
        updated_at = floor(extract(epoch FROM clock_timestamp()))
    WHERE application_id = :application_id RETURNING *"""
)


async def read_schema_json(runner: Runner, application_id: int) -> dict[str, Any]:
    """Returns the schema record of an application that exists, with its roles."""
    row = await read_application_row(runner, application_id)
    assert row is not None  # applications are never deleted
    return schema_json(row, await read_roles(runner, application_id))


async def save_schema(
    tx: Transaction, actor: AuditActor, old: Row, schema: Schema, roles: dict[str, RoleRecord]
) -> Row:
    """Saves the schema of a locked application; ``roles``, as they are now, must be valid with it."""
    await tx.run_in_thread(check_schema_protection, schema, list(roles.values()))
    application_id: int = old["application_id"]
    row = await put_schema(tx, application_id, schema)
    await trail.write(
        tx,
        actor,
        "schema.save",
        str(application_id),
        {name: old[name] for name in SECTIONS},
        {name: row[name] for name in SECTIONS},
        project_id=old["project_id"],
        application_id=application_id,
    )
    return row


async def put_schema(tx: Runner, application_id: int, schema: Schema) -> Row:
    """Stores a schema without checks or audit entry."""
    row = await tx.row(_SAVE, application_id=application_id, **{name: getattr(schema, name) for name in SECTIONS})
    assert row is not None
    return row


def schema_of(row: Row) -> Schema:
    """Returns the schema as it is stored in the row of an application."""
    return Schema(**{name: row[name] for name in SECTIONS})


def schema_json(row: Row, roles: dict[str, RoleRecord]) -> dict[str, Any]:
    schema = complete_schema(row)
    return {
        "application_id": row["application_id"],
        **{name: getattr(schema, name) for name in SECTIONS},
        "roles": {name: role_json(role) for name, role in sorted(roles.items())},
        "version": row["version"],
        "updated_at": row["updated_at"],
    }
