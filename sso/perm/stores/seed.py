"""Puts the central application, as it ships, into the database: at the first start, and when a version ships more."""

from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.records import RoleRecord
from sso.perm.stores import roles as role_store
from sso.perm.stores.builtin_roles import NAME, ROLES, SCHEMA

_COMPLETE = Statement(
    """SELECT updated_at > 0 AND :roles = (
        SELECT count(*) FROM roles r WHERE r.application_id = a.application_id AND r.name = ANY(CAST(:names AS text[])))
    FROM applications a WHERE application_id = :application_id"""
)
_FRESH = Statement("SELECT updated_at = 0 AS fresh FROM applications WHERE application_id = :application_id FOR UPDATE")
_NAME = Statement("UPDATE applications SET name = :name WHERE application_id = :application_id")


async def seed_central_application(database: Database) -> None:
    """The schema if none was ever saved, and those roles that are missing; what an administrator changed stays."""
    if await database.value(
        _COMPLETE, application_id=CENTRAL_APPLICATION_ID, names=[role.name for role in ROLES], roles=len(ROLES)
    ):
        return  # as nearly always: no lock is taken then

    async def work(tx: Transaction) -> None:
        fresh = await tx.value(_FRESH, application_id=CENTRAL_APPLICATION_ID)
        known: dict[str, RoleRecord] = await role_store.read_roles(tx, CENTRAL_APPLICATION_ID)
        for role in ROLES:
            if role.name not in known:
                await role_store.put_role(tx, CENTRAL_APPLICATION_ID, role)
        if fresh:
            await tx.value(_NAME, application_id=CENTRAL_APPLICATION_ID, name=NAME)
            sections = {name: getattr(SCHEMA, name) for name in ("login", "public_data", "private_data", "secret_data")}
            await role_store.save_schema(tx, CENTRAL_APPLICATION_ID, sections)

    await database.transaction(work)
