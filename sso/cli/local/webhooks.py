"""Webhooks in the database of this machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sso.change_stream.sequencer import TOPIC
from sso.cli.administration import Records
from sso.cli.lookups import unknown_webhook
from sso.webhooks import operations, webhook_store
from sso.webhooks.webhook_store import MAX_WEBHOOKS

if TYPE_CHECKING:
    from sso.cli.services import CommandServices
    from sso.db.transaction import Transaction
    from sso.webhooks.model import Webhook


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
        await operations.check_url(build_client(services.settings), url, allow_http=services.settings.is_loopback)
        webhook = await self._database.transaction(
            operations.create_webhook, services.actor, services.keyring, url, secret, events
        )
        return webhook.webhook_id

    async def remove(self, webhook_id: str) -> None:
        async def work(tx: "Transaction") -> None:
            await operations.delete_webhook(tx, self._services.actor, await _locked(tx, webhook_id))

        await self._database.transaction(work)

    async def failed_events(self, webhook_id: str, most: int) -> Records:
        if await webhook_store.get_webhook(self._database, webhook_id) is None:
            raise unknown_webhook(webhook_id)
        return await webhook_store.list_failed(self._database, webhook_id, 0, most)

    async def resend(self, webhook_id: str, ids: Sequence[str] | None) -> int:
        async def work(tx: "Transaction") -> int:
            return await operations.retry_failed(tx, self._services.actor, await _locked(tx, webhook_id), ids)

        count = await self._database.transaction(work)
        self._services.bus.publish(TOPIC)
        return count


async def _locked(tx: "Transaction", webhook_id: str) -> "Webhook":
    webhook = await webhook_store.lock_webhook(tx, webhook_id)
    if webhook is None:
        raise unknown_webhook(webhook_id)
    return webhook
