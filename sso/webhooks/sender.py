"""Sends events to webhooks: in order, at least once. All workers run it, and one at a time sends to a webhook.

A webhook that fails is tried again after growing pauses, and its later events wait. An event that fails a day after it
happened is given up: it goes to the list of failed events, and the next one is tried. If that one fails as well, all
events of that age are given up with it, so that a receiver that is back after a week does not get a week of events.
"""

import random
from collections import Counter
from dataclasses import replace

import orjson
import structlog
import trio

from sso.bus.bus import Bus
from sso.change_stream.reader import ChangeReader, ExpiredCursor, StreamEvent, StreamPage
from sso.change_stream.sequencer import TOPIC
from sso.core.encryption import EncryptionError
from sso.core.outgoing_http import AddressRefused, NoAnswer, OutgoingClient, OutgoingLimits
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.db.clock import DatabaseClock
from sso.db.errors import DatabaseError
from sso.webhooks.delivery_store import DeliveryStore
from sso.webhooks.model import ClaimedWebhook
from sso.webhooks.signature import signature

LIMITS = OutgoingLimits(timeout_s=10.0, max_bytes=0, max_requests=32)
FIRST_PAUSE_S, LAST_PAUSE_S = 15.0, 3600.0
JITTER = 0.2
GIVE_UP_S = 86400.0
PAGE = 50
MERGE_S = 0.02  # events that follow each other quickly are read together
RELEASE_S = 2.0

log = structlog.get_logger()


class WebhookSender:
    def __init__(
        self,
        deliveries: DeliveryStore,
        reader: ChangeReader,
        client: OutgoingClient,
        clock: DatabaseClock,
        *,
        allow_http: bool,
    ) -> None:
        self._deliveries = deliveries
        self._reader = reader
        self._client = client
        self._clock = clock
        self._allow_http = allow_http
        self._in_flight = 0
        self._retrying: Counter[str] = Counter()  # given-up events that are being sent again, by webhook
        self._wake_up = trio.Event()
        self.delivered = self.failed = self.given_up = 0  # since the start of this worker

    async def run(self, bus: Bus, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self._listen, bus)
            task_status.started()
            while True:
                self._wake_up = trio.Event()
                try:
                    await self._start_due(nursery)
                except (DatabaseError, EncryptionError) as error:
                    log.warning("webhooks.queue_failed", reason=str(error))
                await self._wake_up.wait()
                await trio.sleep(MERGE_S)

    async def _listen(self, bus: Bus, *, task_status: trio.TaskStatus[None]) -> None:
        with bus.subscribe(TOPIC) as signals:
            task_status.started()
            async for _ in signals:
                self._wake_up.set()

    async def _start_due(self, nursery: trio.Nursery) -> None:
        while self._in_flight < LIMITS.max_requests and (webhook := await self._deliveries.claim()):
            self._in_flight += 1
            nursery.start_soon(self._deliver, webhook)
        while self._in_flight < LIMITS.max_requests and (failed := await self._deliveries.claim_failed(self._retrying)):
            self._in_flight += 1
            self._retrying[failed[1].webhook_id] += 1
            nursery.start_soon(self._deliver_again, *failed)

    async def _deliver(self, webhook: ClaimedWebhook) -> None:
        try:
            await self._send_events(webhook)
        except DatabaseError as error:  # another attempt follows when the lease is over
            log.warning("webhooks.queue_failed", reason=str(error))
        finally:
            self._in_flight -= 1
            with trio.move_on_after(RELEASE_S, shield=True):  # also if the worker stops: another one continues
                await self._release(webhook)
            self._wake_up.set()

    async def _release(self, webhook: ClaimedWebhook) -> None:
        try:
            await self._deliveries.release(webhook)
        except DatabaseError as error:
            log.warning("webhooks.queue_failed", reason=str(error))

    async def _send_events(self, webhook: ClaimedWebhook) -> None:
        """Sends the events until there are no more, one fails, or the lease is lost."""
        cursor, gave_up = str(webhook.position), False
        while (page := await self._read(webhook, cursor)).next != cursor:
            for event in (event for event in page.events if event.type in webhook.types):
                problem = await self._send(webhook, event)
                if problem is None:
                    self.delivered += 1
                    if not await self._deliveries.mark_delivered(webhook, event.cursor):
                        return
                    webhook = replace(webhook, tries=0)
                elif gave_up or not await self._give_up_old(webhook, event, problem):
                    await self._postpone(webhook, problem, event)
                    return
                else:
                    gave_up = True
            cursor = page.next
            if not await self._deliveries.skip_to(webhook, cursor):
                return

    async def _read(self, webhook: ClaimedWebhook, cursor: str) -> StreamPage:
        try:
            return await self._reader.read(cursor, PAGE)
        except ExpiredCursor:
            log.error("webhooks.events_lost", webhook=webhook.webhook_id)
            return await self._reader.read("", PAGE)

    async def _send(self, webhook: ClaimedWebhook, event: StreamEvent) -> str | None:
        """Returns None if the receiver has accepted the event, else what went wrong."""
        if not is_outgoing_url(webhook.url, allow_http=self._allow_http):
            return f"url: {EXPECTED}"
        body = orjson.dumps(event.content)
        headers = {
            "Content-Type": "application/json",
            "Webhook-Id": event.cursor,
            "Webhook-Event": event.type,
            "Webhook-Signature": signature(webhook.secret, int(self._clock.now()), body),
        }
        try:
            answer = await self._client.send("POST", webhook.url, headers, content=body)
        except (AddressRefused, NoAnswer) as error:
            return str(error)
        except Exception as error:  # one webhook must not stop the others
            return type(error).__name__
        return None if 200 <= answer.status < 300 else f"status {answer.status}"

    async def _give_up_old(self, webhook: ClaimedWebhook, event: StreamEvent, problem: str) -> bool:
        """Gives the event up if it happened long ago. Returns False if it is to be tried again."""
        if int(event.cursor) > self._oldest_position():
            return False
        await self._record_given_up(webhook, event.cursor, problem)
        return True

    async def _record_given_up(self, webhook: ClaimedWebhook, until: str, problem: str) -> None:
        count = await self._deliveries.give_up(webhook, until, webhook.tries + 1, problem)
        self.given_up += count
        if count:
            log.error("webhooks.events_abandoned", webhook=webhook.webhook_id, events=count, reason=problem)

    async def _postpone(self, webhook: ClaimedWebhook, problem: str, event: StreamEvent) -> None:
        oldest = self._oldest_position()
        if int(event.cursor) <= oldest:
            await self._record_given_up(webhook, str(oldest), problem)
        self.failed += 1
        tries = webhook.tries + 1
        pause_s = retry_pause_s(tries)
        fields = {"webhook": webhook.webhook_id, "id": event.cursor, "tries": tries, "retry_after_s": round(pause_s)}
        log.warning("webhooks.delivery_failed", reason=problem, **fields)
        await self._deliveries.postpone(webhook, tries, pause_s, problem)

    def _oldest_position(self) -> int:
        """The events up to this position are not tried again after a failure. Positions are times in microseconds."""
        return int((self._clock.now() - GIVE_UP_S) * 1_000_000)

    async def _deliver_again(self, failure_id: int, webhook: ClaimedWebhook, event: StreamEvent) -> None:
        try:
            problem = await self._send(webhook, event)
            self.delivered += problem is None
            self.failed += problem is not None
            await self._deliveries.finish_failed(failure_id, problem)
        except DatabaseError as error:  # it is sent again when the lease is over
            log.warning("webhooks.queue_failed", reason=str(error))
        finally:
            self._in_flight -= 1
            self._retrying[webhook.webhook_id] -= 1
            self._retrying += Counter()  # removes the webhooks without any
            self._wake_up.set()


def retry_pause_s(tries: int) -> float:
    """Returns the pause after so many failures in a row. It varies, so that webhooks do not all come at once."""
    pause_s = min(LAST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(tries - 1, 20))
    return pause_s * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - not a secret
