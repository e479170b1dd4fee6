"""Applications."""

from sso.cli.lookups import unknown_application
from sso.cli.records.api import PAGE, CommandApi
from sso.cli.records.types import Fields, Records
from sso.client import (
    ApiCall,
    RecordNotFound,
    RequestRefused,
    access_keys,
    applications,
    projects,
    schemas,
)
from sso.client.call import T

_SHOWN = ("application_id", "name", "description", "project_id", "removed", "settings", "service_meta")


class ManagedApplications:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def list(self, project_id: str | None) -> Records:
        removed_projects = {item["id"] async for item in self._api.pages(projects.list(limit=PAGE, removed=True))}
        found = [
            {
                "application_id": item["application_id"],
                "name": item["name"],
                "project_id": item["project_id"],
                "removed": item["removed"] or item["project_id"] in removed_projects,
            }
            for removed in (False, True)
            async for item in self._api.pages(applications.list(limit=PAGE, project_id=project_id, removed=removed))
        ]
        return sorted(found, key=lambda item: int(item["application_id"]))

    async def require(self, application_id: int) -> None:
        await self._send(application_id, applications.get(application_id))

    async def get(self, application_id: int) -> Fields:
        record = await self._send(application_id, applications.get(application_id))
        keys = await self._send(application_id, applications.keys(application_id))
        schema = await self._send(application_id, schemas.get(application_id))
        accesses = await self._api.records(access_keys.list(application_id=application_id), PAGE)
        return {
            **{name: record.get(name) for name in _SHOWN},
            "schema_version": schema["version"],
            "private_key": keys["private_key"],
            "public_keys": [{"id": key["kid"], "data": key["public_key"]} for key in keys["data"]],
            "access_keys": sorted(accesses, key=lambda key: (key["created"], key["id"])),
        }

    async def add(self, fields: Fields) -> int:
        return int((await self._api.send(applications.create(fields)))["application_id"])

    async def service_jwt(self, application_id: int) -> str:
        return str((await self._send(application_id, applications.service_jwt(application_id)))["service_jwt"])

    async def email_secret(self, application_id: int) -> str:
        return str((await self._send(application_id, applications.email_secret(application_id)))["email_secret"])

    async def data_secret(self, application_id: int) -> str:
        return str((await self._send(application_id, applications.data_secret(application_id)))["data_secret"])

    async def public_keys(self, application_id: int) -> Records:
        keys = await self._send(application_id, applications.keys(application_id))
        return [{"kid": key["kid"], "algorithm": key["algorithm"]} for key in keys["data"]]

    async def add_public_key(self, application_id: int, pem: str) -> str:
        return str((await self._send(application_id, applications.add_key(application_id, pem)))["kid"])

    async def delete_public_key(self, application_id: int, kid: str) -> bool:
        await self.require(application_id)
        try:
            await self._api.send(applications.remove_key(application_id, kid))
        except RequestRefused as error:
            if error.status not in (404, 409):  # no such key, or not one that was added
                raise
            return False
        return True

    async def _send(self, application_id: int, call: ApiCall[T]) -> T:
        try:
            return await self._api.send(call)
        except RecordNotFound:
            raise unknown_application(application_id) from None
