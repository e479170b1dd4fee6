"""Projects, and their members."""

from collections.abc import Iterable, Sequence

from sso.cli.lookups import unknown_project
from sso.cli.records.api import PAGE, CommandApi, with_present_version
from sso.cli.records.types import Fields, MemberChange, RecordChange, Records
from sso.client import RecordNotFound, members, projects
from sso.perm.engine.reserved_names import project_key

_LISTED = ("id", "title", "display_name", "removed", "applications", "groups", "members")


class ManagedProjects:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def list(self) -> Records:
        found = [
            {name: item[name] for name in _LISTED}
            for removed in (False, True)
            async for item in self._api.pages(projects.list(limit=PAGE, counts=True, removed=removed))
        ]
        return sorted(found, key=lambda item: str(item["id"]))

    async def find(self, name: str) -> Fields:
        key = project_key(name.replace(" ", "_"))
        for removed in (False, True):
            for record in await self._api.records(projects.list(name=key[:64], removed=removed), 1):
                return dict(record)
        raise unknown_project(name)

    async def add(self, project_id: str, fields: Fields, admins: Sequence[str]) -> None:
        await self._api.send(projects.create({**fields, "admins": list(admins)}))

    async def change(self, project_id: str, change: RecordChange, applications: Iterable[int] = ()) -> None:
        async def attempt() -> None:
            record = await self._api.send(projects.get(project_id))
            await self._api.send(projects.update(project_id, fields=change(dict(record)), if_match=record.etag))

        await with_present_version(attempt)

    async def delete(self, project_id: str) -> None:
        await self._api.send(projects.delete(project_id))

    async def members(self, project_id: str) -> Records:
        found = [
            {"user_id": item["user_id"], "login": item.get("login") or None, "roles": item["roles"]}
            async for item in self._api.pages(members(project_id).list(limit=PAGE))
        ]
        return sorted(found, key=lambda item: (len(item["user_id"]), item["user_id"]))

    async def change_member(self, project_id: str, user_id: str, change: MemberChange) -> bool:
        return await with_present_version(lambda: self._change_member(project_id, user_id, change))

    async def _change_member(self, project_id: str, user_id: str, change: MemberChange) -> bool:
        resource = members(project_id)
        try:
            stored = await self._api.send(resource.get(user_id))
        except RecordNotFound:
            new = change({})
            if new:
                await self._api.send(resource.create({"user_id": user_id, "roles": new}))
            return bool(new)
        new = change(dict(stored["roles"]))
        if new == stored["roles"]:
            return False
        if new:
            await self._api.send(resource.update(user_id, fields={"roles": new}, if_match=stored.etag))
        else:
            await self._api.send(resource.delete(user_id, if_match=stored.etag))
        return True
