"""Webhooks of a server."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sso.cli.administration import Records
from sso.cli.lookups import unknown_webhook
from sso.client import AsyncSsoClient, RecordNotFound, webhooks

PAGE = 200


class RemoteWebhooks:
    def __init__(self, api: AsyncSsoClient) -> None:
        self._api = api

    async def add(self, url: str, secret: str, events: Sequence[str]) -> str:
        fields = {"url": url, "secret": secret, "events": list(events)}
        return str((await self._api.send(webhooks.create(fields)))["id"])

    async def list(self) -> Records:
        return [dict(item) async for item in self._api.pages(webhooks.list(limit=PAGE))]

    async def remove(self, webhook_id: str) -> None:
        with _known(webhook_id):
            await self._api.send(webhooks.delete(webhook_id))

    async def failed(self, webhook_id: str) -> Records:
        with _known(webhook_id):
            return [dict(item) async for item in self._api.pages(webhooks.failed(webhook_id, limit=PAGE))]

    async def retry(self, webhook_id: str, ids: Sequence[str]) -> int:
        with _known(webhook_id):
            return int((await self._api.send(webhooks.retry(webhook_id, list(ids) if ids else None)))["events"])


@contextmanager
def _known(webhook_id: str) -> Iterator[None]:
    try:
        yield
    except RecordNotFound:
        raise unknown_webhook(webhook_id) from None
