"""Webhooks."""

from collections.abc import Sequence

from sso.cli.lookups import unknown_webhook
from sso.cli.records.api import PAGE, CommandApi
from sso.cli.records.types import Records
from sso.client import RecordNotFound, webhooks


class ManagedWebhooks:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def list(self) -> Records:
        return [dict(item) async for item in self._api.pages(webhooks.list(limit=PAGE))]

    async def add(self, url: str, secret: str, events: Sequence[str]) -> str:
        created = await self._api.send(webhooks.create({"url": url, "secret": secret, "events": list(events)}))
        return str(created["id"])

    async def delete(self, webhook_id: str) -> None:
        try:
            await self._api.send(webhooks.delete(webhook_id))
        except RecordNotFound:
            raise unknown_webhook(webhook_id) from None

    async def failed_events(self, webhook_id: str, limit: int) -> Records:
        try:
            return list(await self._api.records(webhooks.failed(webhook_id, limit=min(PAGE, limit)), limit))
        except RecordNotFound:
            raise unknown_webhook(webhook_id) from None

    async def resend(self, webhook_id: str, ids: Sequence[str] | None) -> int:
        try:
            return int((await self._api.send(webhooks.retry(webhook_id, ids)))["events"])
        except RecordNotFound:
            raise unknown_webhook(webhook_id) from None
