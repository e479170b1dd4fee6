"""Writes the current state as a document for `sso apply`, without secrets, access keys and private keys."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from sso.accounts.user_directory_store import list_users
from sso.accounts.user_record import exported_user
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.oauth.clients.record import exported_client
from sso.oauth.clients.store import list_client_rows
from sso.state.apply import APPLY_SECONDS
from sso.state.sections import (
    applications,
    groups,
    memberships,
    permissions,
    projects,
    schemas,
)
from sso.upstream.provider_record import exported_provider
from sso.upstream.provider_store import list_providers

# In the order in which a document has them.
SECTIONS = (
    "users", "clients", "identity_providers", "applications", "schemas", "roles", "projects", "permissions", "groups",
    "memberships",
)  # fmt: skip


async def _export_users(tx: Transaction) -> list[dict[str, Any]]:
    return [exported_user(user) for user in await list_users(tx)]


async def _export_clients(tx: Transaction) -> list[dict[str, Any]]:
    return [exported_client(row) for row in await list_client_rows(tx) if not row["registered_by"]]


async def _export_providers(tx: Transaction) -> list[dict[str, Any]]:
    return [exported_provider(provider) for provider in await list_providers(tx)]


_EXPORTS: dict[str, Callable[[Transaction], Awaitable[Any]]] = {
    "users": _export_users,
    "clients": _export_clients,
    "identity_providers": _export_providers,
    "applications": applications.export,
    "projects": projects.export,
    "permissions": permissions.export,
    "groups": groups.export,
    "memberships": memberships.export,
}


async def export(
    database: Database, sections: Collection[str] = SECTIONS, actor: AuditActor | None = None
) -> dict[str, Any]:
    """Returns the document with these sections. The export is audited."""
    return await database.long_transaction(APPLY_SECONDS, _export_audited, actor or AuditActor(), sections)


async def _export_audited(tx: Transaction, actor: AuditActor, sections: Collection[str]) -> dict[str, Any]:
    document = await export_in(tx, sections)
    records = {name: len(records) for name, records in document.items()}
    await trail.write(tx, actor, "state.export", "", None, {"records": records})
    return document


async def export_in(tx: Transaction, sections: Collection[str] = SECTIONS) -> dict[str, Any]:
    """Like `export`, in a transaction."""
    values = {name: await section(tx) for name, section in _EXPORTS.items() if name in sections}
    if "schemas" in sections or "roles" in sections:
        values["schemas"], values["roles"] = await schemas.export(tx)
    return {name: values[name] for name in SECTIONS if name in sections}
