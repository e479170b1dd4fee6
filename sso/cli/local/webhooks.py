"""Webhooks in the database of this machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sso.admin.webhooks import NewWebhook, RetriedEvents
from sso.change_stream.sequencer import TOPIC
from sso.cli.administration import Fields, Records
from sso.cli.context import command_line_actor
from sso.cli.lookups import unknown_webhook
from sso.core.errors import ApiError
from sso.db.transaction import Transaction
from sso.perm.stores import audit
from sso.web.body import InvalidBody, ParsedBody
from sso.web.request_model import M, validate
from sso.webhooks import webhook_store
from sso.webhooks.model import Webhook
from sso.webhooks.url_check import check_webhook_url
from sso.webhooks.webhook_store import MAX_WEBHOOKS
from sso.webhooks.wiring import build_client

if TYPE_CHECKING:
    from sso.cli.services import CommandServices

MAX_LISTED = 10_000


class LocalWebhooks:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services
        self._actor = command_line_actor()

    async def add(self, url: str, secret: str, events: Sequence[str]) -> str:
        settings = self._services.settings
        new = _read(NewWebhook, {"url": url, "secret": secret, "events": list(events)})
        await check_webhook_url(build_client(settings), url, allow_http=settings.is_loopback)

        async def work(tx: Transaction) -> str:
            keyring = self._services.keyring
            webhook = await webhook_store.add_webhook(tx, keyring, new.url, new.secret, new.events, disabled=False)
            if webhook is None:
                raise ApiError(f"there are {MAX_WEBHOOKS} webhooks already")
            after = webhook.json() | {"secret": secret}
            await audit.write(tx, self._actor, "webhook.create", webhook.webhook_id, None, after)
            return webhook.webhook_id

        return await self._services.database.transaction(work)

    async def list(self) -> Records:
        webhooks = await webhook_store.list_webhooks(self._services.database, "", MAX_WEBHOOKS)
        return [webhook.json() | {"delivery": webhook.delivery_json()} for webhook in webhooks]

    async def remove(self, webhook_id: str) -> None:
        async def work(tx: Transaction) -> None:
            before = await _lock(tx, webhook_id)
            await audit.write(tx, self._actor, "webhook.delete", webhook_id, before.json(), None)
            await webhook_store.delete_webhook(tx, webhook_id)

        await self._services.database.transaction(work)

    async def failed(self, webhook_id: str) -> Records:
        if await webhook_store.get_webhook(self._services.database, webhook_id) is None:
            raise unknown_webhook(webhook_id)
        return await webhook_store.list_failed(self._services.database, webhook_id, 0, MAX_LISTED)

    async def retry(self, webhook_id: str, ids: Sequence[str]) -> int:
        chosen = _read(RetriedEvents, {"ids": list(ids)}).ids if ids else None

        async def work(tx: Transaction) -> int:
            await _lock(tx, webhook_id)
            numbers = None if chosen is None else [int(text) for text in chosen]
            count = await webhook_store.retry_failed(tx, webhook_id, numbers)
            await audit.write(tx, self._actor, "webhook.retry", webhook_id, None, {"ids": chosen, "events": count})
            return count

        count = await self._services.database.transaction(work)
        self._services.bus.publish(TOPIC)
        return count


async def _lock(tx: Transaction, webhook_id: str) -> Webhook:
    webhook = await webhook_store.lock_webhook(tx, webhook_id)
    if webhook is None:
        raise unknown_webhook(webhook_id)
    return webhook


def _read(model: type[M], fields: Fields) -> M:
    try:
        return validate(model, ParsedBody(fields))
    except InvalidBody as error:
        raise ApiError(error.message) from None
