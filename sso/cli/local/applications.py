"""Applications in the database of this machine."""

from typing import TYPE_CHECKING

from sso.cli.administration import Fields, Records
from sso.cli.local.lookups import require_application
from sso.cli.local.permission_write import write_permissions
from sso.cli.lookups import unknown_application
from sso.core import keys as material
from sso.db.statement import Statement
from sso.perm.changes.scope import Scope
from sso.perm.stores.access_keys import list_access_keys
from sso.perm.stores.application_keys import add_custom_key, delete_custom_key
from sso.perm.stores.applications import application_name_conflicts, create_application, private_key
from sso.perm.stores.email_secret import get_or_create_email_secret

if TYPE_CHECKING:
    from sso.cli.services import CommandServices
    from sso.db.transaction import Transaction

_LIST = Statement(
    """SELECT a.application_id, a.name, a.project_id, a.removed OR coalesce(p.removed, false) AS removed
    FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE CAST(:project_id AS text) IS NULL OR a.project_id = :project_id ORDER BY a.application_id"""
)
_SHOWN = ("application_id", "name", "description", "project_id", "removed", "settings", "service_meta")


class LocalApplications:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services
        self._database = services.database

    async def list(self, project_id: str | None) -> Records:
        return [dict(row) for row in await self._database.rows(_LIST, project_id=project_id)]

    async def require(self, application_id: int) -> None:
        await require_application(self._database, application_id)

    async def get(self, application_id: int) -> Fields:
        row = await require_application(self._database, application_id)
        return {
            **{name: row[name] for name in _SHOWN},
            "schema_version": row["version"],
            "private_key": "held" if row["private_key_sealed"] else "none",
            "public_keys": await self._services.complete.permissions.application_keys.published(application_id),
            "access_keys": await list_access_keys(self._database, application_id),
        }

    async def add(self, fields: Fields) -> int:
        services, scope = self._services, Scope.project(fields.get("project_id"))
        with application_name_conflicts():
            row = await write_permissions(
                services, scope, create_application, services.actor, services.keyring, fields, None
            )
        return int(row["application_id"])

    async def service_jwt(self, application_id: int) -> str:
        from sso.keys.shared_settings import require_shared_settings

        require_shared_settings(self._services.settings)  # the base URL is the audience
        row = await require_application(self._database, application_id)
        permissions, now = self._services.complete.permissions, await self._services.database_time()
        return await permissions.service_jwts.issue(application_id, private_key(self._services.keyring, row), now)

    async def email_secret(self, application_id: int) -> str:
        secret = await self._database.transaction(
            get_or_create_email_secret, self._services.actor, self._services.keyring, application_id
        )
        if secret is None:
            raise unknown_application(application_id)
        return secret

    async def public_keys(self, application_id: int) -> Records:
        await require_application(self._database, application_id)
        keys = await self._services.complete.permissions.application_keys.published(application_id)
        return [
            {"kid": key["id"], "algorithm": material.algorithm_of(material.load_public(key["data"]))} for key in keys
        ]

    async def add_public_key(self, application_id: int, pem: str) -> str:
        async def add(tx: "Transaction") -> str:
            row = await require_application(tx, application_id)
            return await add_custom_key(tx, self._services.actor, row, pem)

        return await self._database.transaction(add)

    async def remove_public_key(self, application_id: int, kid: str) -> bool:
        async def remove(tx: "Transaction") -> bool:
            row = await require_application(tx, application_id)
            return await delete_custom_key(tx, self._services.actor, row, kid)

        return await self._database.transaction(remove)
