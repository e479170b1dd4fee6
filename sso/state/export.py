"""Writes the current state as a document for `sso apply`, without secrets, access keys and private keys."""

from typing import Any

from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.state.apply import APPLY_SECONDS
from sso.state.sections import (
    applications,
    clients,
    groups,
    identity_providers,
    memberships,
    permissions,
    projects,
    schemas,
    users,
)


async def export(database: Database) -> dict[str, Any]:
    async def read(tx: Transaction) -> dict[str, Any]:
        application_schemas, roles = await schemas.export(tx)
        return {
            "users": await users.export(tx),
            "clients": await clients.export(tx),
            "identity_providers": await identity_providers.export(tx),
            "applications": await applications.export(tx),
            "schemas": application_schemas,
            "roles": roles,
            "projects": await projects.export(tx),
            "permissions": await permissions.export(tx),
            "groups": await groups.export(tx),
            "memberships": await memberships.export(tx),
        }

    return await database.long_transaction(APPLY_SECONDS, read)
