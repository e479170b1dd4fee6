"""Identity providers."""

from sso.cli.lookups import provider_exists, unknown_provider
from sso.cli.records.api import PAGE, CommandApi
from sso.cli.records.types import Fields, Records
from sso.client import RecordNotFound, RequestRefused, identity_providers


class ManagedProviders:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def add(self, fields: Fields) -> str:
        try:
            return str((await self._api.send(identity_providers.create(fields)))["callback_url"])
        except RequestRefused as error:
            if error.status == 409:
                raise provider_exists(fields["id"]) from None
            raise

    async def list(self) -> Records:
        found: Records = [dict(item) async for item in self._api.pages(identity_providers.list(limit=PAGE))]
        return sorted(found, key=lambda item: (item["position"], item["name"], item["id"]))

    async def count_links(self, provider_id: str) -> tuple[int, int]:
        try:
            users = await self._api.send(identity_providers.linked_users(provider_id))
        except RecordNotFound:
            raise unknown_provider(provider_id) from None
        return users["linked"], users["without_other_sign_in"]

    async def delete(self, provider_id: str) -> None:
        try:
            await self._api.send(identity_providers.delete(provider_id))
        except RecordNotFound:
            raise unknown_provider(provider_id) from None
