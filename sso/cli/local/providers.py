"""Identity providers in the database of this machine."""

from typing import TYPE_CHECKING

from sso.cli.administration import Fields, Records
from sso.cli.context import write_audit_entry
from sso.cli.lookups import provider_exists, unknown_provider
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.upstream.provider_store import TOPIC, count_links, delete_provider
from sso.upstream.sign_in import callback_url

if TYPE_CHECKING:
    from sso.cli.services import CommandServices

_URLS = ("issuer", "authorization_url", "token_url", "userinfo_url")


class LocalProviders:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def add(self, fields: Fields) -> str:
        from sso.state.document import parse

        services, provider_id = self._services, fields["id"]
        if await services.identity_providers.get(provider_id):
            raise provider_exists(provider_id)
        for name in _URLS:
            if name in fields and not is_outgoing_url(fields[name], allow_http=not services.settings.https):
                raise ApiError(f"{name}: {EXPECTED}")
        try:
            await services.applier.apply(parse({"identity_providers": [fields]}))
        except FieldError as error:
            raise ApiError(str(error)) from None
        services.bus.publish(TOPIC)
        return callback_url(services.settings.base_url, provider_id)

    async def list(self) -> Records:
        providers = await self._services.identity_providers.list()
        return [{**vars(provider), "id": provider.provider_id} for provider in providers]

    async def count_links(self, provider_id: str) -> tuple[int, int]:
        if await self._services.identity_providers.get(provider_id) is None:
            raise unknown_provider(provider_id)
        return await count_links(self._services.database, provider_id)

    async def remove(self, provider_id: str) -> None:
        services = self._services
        await write_audit_entry(services, "identity_provider.delete", provider_id, {"removed": True})
        if not await delete_provider(services.database, provider_id):
            raise unknown_provider(provider_id)
        services.bus.publish(TOPIC)
