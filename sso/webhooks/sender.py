"""Sends events to webhooks: in order, at least once. One worker at a time sends to a webhook.

A webhook that fails is retried after growing pauses, and its later events wait. An event that cannot be delivered a day
after it happened has failed: it goes to the list of failed events, and the next one is tried. If that one cannot be
delivered either, all events of that age have failed with it, so that a receiver that is back after a week does not get
a week of events. Administrators can send failed events again.
"""

import orjson
import structlog
from msgspec import Struct
from msgspec.structs import replace

from sso.change_stream.reader import ChangeReader, ExpiredCursor, StreamEvent, StreamPage
from sso.change_stream.sequencer import TOPIC
from sso.core.outgoing_http import OutgoingClient, OutgoingLimits
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.db.clock import DatabaseClock
from sso.delivery.due_queue import Due, DueQueue, Failure, QueuedDelivery, RetryPolicy
from sso.delivery.http import post
from sso.delivery.signature import signature
from sso.telemetry.counters import DELIVERIES
from sso.webhooks.delivery_store import DeliveryStore
from sso.webhooks.model import ClaimedWebhook

LIMITS = OutgoingLimits(timeout_s=10.0, max_bytes=0, max_requests=32)
FIRST_PAUSE_S, LAST_PAUSE_S = 15.0, 3600.0
JITTER = 0.2
MAX_AGE_S = 86400.0
PAGE = 50
MERGE_S = 0.02  # events that follow each other quickly are read together

log = structlog.get_logger()


class EventPost:
    """The request that a webhook gets for an event."""

    def __init__(self, client: OutgoingClient, clock: DatabaseClock, *, allow_http: bool) -> None:
        self._client = client
        self._clock = clock
        self._allow_http = allow_http

    async def send(self, webhook: ClaimedWebhook, event: StreamEvent) -> Failure | None:
        if not is_outgoing_url(webhook.url, allow_http=self._allow_http):
            return Failure(f"url: {EXPECTED}")
        body = orjson.dumps(event.content)
        headers = {
            "Content-Type": "application/json",
            "Webhook-Id": event.cursor,
            "Webhook-Event": event.type,
            "Webhook-Signature": signature(webhook.secret, int(self._clock.now()), body),
        }
        failure = await post(self._client, webhook.url, headers, content=body)
        if failure is None:
            DELIVERIES.add(WebhookDelivery.name, "delivered")
        return failure


class WebhookDelivery(QueuedDelivery[ClaimedWebhook]):
    """The new events of a webhook."""

    name = "webhook"

    def __init__(
        self, deliveries: DeliveryStore, reader: ChangeReader, event_post: EventPost, clock: DatabaseClock
    ) -> None:
        self.retries = retry_policy()
        self._deliveries = deliveries
        self._reader = reader
        self._event_post = event_post
        self._clock = clock

    async def claim(self, busy: list[str]) -> Due[ClaimedWebhook] | None:
        webhook = await self._deliveries.claim()
        if webhook is None:
            return None
        return Due(webhook, webhook.webhook_id, webhook.tries + 1, {"webhook": webhook.webhook_id})

    async def send(self, item: ClaimedWebhook) -> Failure | None:
        """Sends the events until there are no more, one is to be retried, or the lease is lost."""
        cursor, tries, has_failed = str(item.position), item.tries + 1, False
        while (page := await self._read(item, cursor)).next != cursor:
            for event in (event for event in page.events if event.type in item.types):
                failure = await self._event_post.send(item, event)
                if failure is None:
                    if not await self._deliveries.mark_delivered(item, event.cursor):
                        return None
                    tries, has_failed = 1, False
                    continue
                is_old = int(event.cursor) <= (oldest := self._oldest_position())
                if is_old:
                    await self._store_failed(item, str(oldest) if has_failed else event.cursor, tries, failure.reason)
                if has_failed or not is_old:
                    return Failure(failure.reason, tries=tries, log_fields={"id": event.cursor})
                has_failed = True
            cursor = page.next
            if not await self._deliveries.skip_to(item, cursor):
                return None
        return None

    async def _read(self, webhook: ClaimedWebhook, cursor: str) -> StreamPage:
        try:
            return await self._reader.read(cursor, PAGE)
        except ExpiredCursor:
            log.error("webhooks.events_lost", webhook=webhook.webhook_id)
            return await self._reader.read("", PAGE)

    async def _store_failed(self, webhook: ClaimedWebhook, until: str, tries: int, reason: str) -> None:
        count = await self._deliveries.store_failed(webhook, until, tries, reason)
        DELIVERIES.add(self.name, "failed", count=count)
        if count:
            log.error("webhooks.events_failed", webhook=webhook.webhook_id, events=count, reason=reason)

    def _oldest_position(self) -> int:
        """The events up to this position are not retried. Positions are times in microseconds."""
        return int((self._clock.now() - MAX_AGE_S) * 1_000_000)

    async def finish(self, due: Due[ClaimedWebhook]) -> None:
        """Each event was stored when it was accepted."""

    async def store_failure(self, item: ClaimedWebhook, failure: Failure, retry_after_s: float | None) -> None:
        assert retry_after_s is not None
        await self._deliveries.postpone(item, failure.tries or item.tries + 1, retry_after_s, failure.reason)

    async def release(self, item: ClaimedWebhook) -> None:
        await self._deliveries.release(item)


class FailedEvent(Struct, frozen=True):
    failure_id: int
    webhook: ClaimedWebhook
    event: StreamEvent


class FailedEventDelivery(QueuedDelivery[FailedEvent]):
    """Failed events that an administrator sends again. They are tried once."""

    name = "webhook"
    max_per_receiver = 1

    def __init__(self, deliveries: DeliveryStore, event_post: EventPost) -> None:
        self.retries = retry_policy()
        self._deliveries = deliveries
        self._event_post = event_post

    async def claim(self, busy: list[str]) -> Due[FailedEvent] | None:
        claimed = await self._deliveries.claim_failed(busy)
        if claimed is None:
            return None
        failed = FailedEvent(*claimed)
        webhook_id = failed.webhook.webhook_id
        return Due(failed, webhook_id, 1, {"webhook": webhook_id, "id": failed.event.cursor})

    async def send(self, item: FailedEvent) -> Failure | None:
        failure = await self._event_post.send(item.webhook, item.event)
        return failure and replace(failure, can_be_retried=False)

    async def finish(self, due: Due[FailedEvent]) -> None:
        await self._deliveries.finish_failed(due.item.failure_id, None)

    async def store_failure(self, item: FailedEvent, failure: Failure, retry_after_s: float | None) -> None:
        await self._deliveries.finish_failed(item.failure_id, failure.reason)


def retry_policy() -> RetryPolicy:
    return RetryPolicy(FIRST_PAUSE_S, 2.0, LAST_PAUSE_S, JITTER)


def build_webhook_sender(
    deliveries: DeliveryStore, reader: ChangeReader, client: OutgoingClient, clock: DatabaseClock, *, allow_http: bool
) -> DueQueue:
    event_post = EventPost(client, clock, allow_http=allow_http)
    return DueQueue(
        TOPIC,
        WebhookDelivery(deliveries, reader, event_post, clock),
        FailedEventDelivery(deliveries, event_post),
        max_deliveries=LIMITS.max_requests,
        merge_s=MERGE_S,
    )
