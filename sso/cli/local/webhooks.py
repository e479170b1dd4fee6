"""Webhooks in the database of this machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sso.change_stream.sequencer import TOPIC
from sso.cli.administration import Records
from sso.cli.lookups import unknown_webhook
from sso.webhooks import webhook_changes, webhook_store
from sso.webhooks.webhook_store import MAX_WEBHOOKS

if TYPE_CHECKING:
    from sso.cli.services import CommandServices


class LocalWebhooks:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services
        self._database = services.database

    async def list(self) -> Records:
        webhooks = await webhook_store.list_webhooks(self._database, "", MAX_WEBHOOKS)
        return [webhook.json() | {"delivery": webhook.delivery_json()} for webhook in webhooks]

    async def add(self, url: str, secret: str, events: Sequence[str]) -> str:
        from sso.webhooks.wiring import build_client

        services = self._services
        await webhook_changes.check_url(build_client(services.settings), url, allow_http=services.settings.is_loopback)
        webhook = await self._database.transaction(
            webhook_changes.add, services.actor, services.keyring, url, secret, events
        )
        return webhook.webhook_id

    async def remove(self, webhook_id: str) -> None:
        if not await self._database.transaction(webhook_changes.remove, self._services.actor, webhook_id):
            raise unknown_webhook(webhook_id)

    async def failed_events(self, webhook_id: str, most: int) -> Records:
        if await webhook_store.get_webhook(self._database, webhook_id) is None:
            raise unknown_webhook(webhook_id)
        return await webhook_store.list_failed(self._database, webhook_id, 0, most)

    async def resend(self, webhook_id: str, ids: Sequence[str] | None) -> int:
        count = await self._database.transaction(webhook_changes.resend, self._services.actor, webhook_id, ids)
        if count is None:
            raise unknown_webhook(webhook_id)
        self._services.bus.publish(TOPIC)
        return count
