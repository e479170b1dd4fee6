"""Groups of the projects."""

from sso.cli.lookups import only_group
from sso.cli.records.api import PAGE, CommandApi, with_present_version
from sso.cli.records.projects import ManagedProjects
from sso.cli.records.types import Fields, RecordChange, Records
from sso.client import Record, RecordNotFound, groups


class ManagedGroups:
    def __init__(self, api: CommandApi, projects: ManagedProjects) -> None:
        self._api = api
        self._projects = projects

    async def list(self, project_id: str | None) -> Records:
        return await self._list(project_id=project_id)

    async def find(self, name: str, project: str | None) -> Fields:
        project_id = (await self._projects.find(project))["id"] if project else None
        return only_group(await self._with_name(name, project_id), name, project_id)

    async def add(self, project_id: str, fields: Fields) -> str:
        return str((await self._api.send(groups.create({"project_id": project_id, **fields})))["group_id"])

    async def change(self, group: Fields, change: RecordChange) -> None:
        async def attempt() -> None:
            record = await self._api.send(groups.get(group["id"]))
            await self._api.send(groups.update(group["id"], fields=change(_group(record)), if_match=record.etag))

        await with_present_version(attempt)

    async def delete(self, group: Fields) -> None:
        await self._api.send(groups.delete(group["id"]))

    async def _with_name(self, name: str, project_id: str | None) -> Records:
        try:
            by_id = _group(await self._api.send(groups.get(name)))
        except RecordNotFound:
            pass
        else:
            if project_id in (None, by_id["project_id"]):
                return [by_id]
        found = await self._list(project_id=project_id, search=name)
        return [group for group in found if group["title"].lower() == name.lower()]

    async def _list(self, **filters: str | None) -> Records:
        found = [_group(item) async for item in self._api.pages(groups.list(limit=PAGE, **filters))]
        return sorted(found, key=lambda group: (group["project_id"], group["title"], group["id"]))


def _group(record: Record) -> Fields:
    """Returns the group with the names of local records."""
    fields = dict(record)
    return {"id": fields.pop("group_id"), **fields}
