"""Roles, and their assignments to users."""

from typing import Any

from msgspec.structs import replace

from sso.cli.lookups import require_role, unknown_application
from sso.cli.records.api import PAGE, CommandApi, with_present_version
from sso.cli.records.types import AssignmentChange, RoleChange
from sso.client import MissingRight, Record, RecordNotFound, assign_roles, read_assignments, roles
from sso.perm.engine.records import Assignment, RoleRecord


class ManagedRoles:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def list(self, application_id: int) -> dict[str, RoleRecord]:
        try:
            found = [item async for item in self._api.pages(roles.list(limit=PAGE, application_id=application_id))]
        except RecordNotFound:
            raise unknown_application(application_id) from None
        return {item["name"]: _role(item) for item in found}

    async def require(self, application_id: int, name: str) -> None:
        """The server checks the role too, so an account that may not list roles can go on."""
        try:
            known = await self.list(application_id)
        except MissingRight:
            return
        require_role(known, name, application_id)

    async def change(self, application_id: int, name: str, change: RoleChange) -> bool:
        return await with_present_version(lambda: self._change(application_id, name, change))

    async def _change(self, application_id: int, name: str, change: RoleChange) -> bool:
        from sso.perm.input.roles import read_role

        known = await self.list(application_id)
        stored: Record | None = None
        if name in known:
            stored = await self._api.send(roles.get(application_id, name))
            known[name] = _role(stored)
        fields = change(known)
        if fields is None:
            await self._api.send(roles.delete(application_id, name, if_match=stored.etag if stored else None))
            return True
        changes, _ = read_role({"name": name, **fields})
        if stored is None:
            await self._api.send(roles.create({"application_id": application_id, **changes}))
        elif replace(known[name], **changes) == known[name]:
            return False
        else:
            del changes["name"]
            await self._api.send(roles.update(application_id, name, fields=changes, if_match=stored.etag))
        return True

    async def assign(self, user_id: str, application_id: int, role: str, change: AssignmentChange) -> bool:
        await self.require(application_id, role)
        return await with_present_version(lambda: self._assign(user_id, application_id, change))

    async def _assign(self, user_id: str, application_id: int, change: AssignmentChange) -> bool:
        stored = await self._api.send(read_assignments(user_id, application_id))
        old = [_assignment(item) for item in stored.get("roles", ())]
        new = change(list(old))
        if new == old:
            return False
        assigned = [{"name": item.name, "expired": item.expired, "ttl": item.ttl} for item in new]
        await self._api.send(assign_roles(user_id, application_id, assigned, if_match=stored.etag))
        return True


def _role(item: dict[str, Any]) -> RoleRecord:
    return RoleRecord(**{name: item[name] for name in RoleRecord.__struct_fields__})


def _assignment(item: str | dict[str, Any]) -> Assignment:
    return Assignment(item) if isinstance(item, str) else Assignment(**item)
