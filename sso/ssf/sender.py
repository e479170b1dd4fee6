"""Pushes events to receivers (RFC 8935): in order, at least once. One worker at a time pushes the events of a stream.

A receiver that fails is retried after growing pauses, and its later events wait. An event that the receiver rejects as
invalid is not sent again.
"""

import structlog

from sso.core.outgoing_http import OutgoingClient
from sso.delivery.due_queue import Due, DueQueue, Failure, QueuedDelivery, RetryPolicy
from sso.signals.recording import PUSH_TOPIC
from sso.ssf.delivery_store import ClaimedStream, SignalDeliveries
from sso.ssf.event_tokens import EventTokens
from sso.ssf.push import LIMITS, push_event
from sso.telemetry.counters import DELIVERIES

PAGE = 20

log = structlog.get_logger()


class SignalDelivery(QueuedDelivery[ClaimedStream]):
    name = "signal"
    retries = RetryPolicy(first_pause_s=1.0, factor=2.0, max_pause_s=600.0, jitter=0.2)

    def __init__(
        self, deliveries: SignalDeliveries, tokens: EventTokens, client: OutgoingClient, *, allow_http: bool
    ) -> None:
        self._deliveries = deliveries
        self._tokens = tokens
        self._client = client
        self._allow_http = allow_http

    async def claim(self, busy: list[str]) -> Due[ClaimedStream] | None:
        stream = await self._deliveries.claim()
        if stream is None:
            return None
        fields = {"stream": stream.stream_id, "client": stream.client_id}
        return Due(stream, stream.stream_id, stream.tries + 1, fields)

    async def send(self, item: ClaimedStream) -> Failure | None:
        """Sends the events until there are no more, one is to be retried, or the lease is lost."""
        tries = item.tries + 1
        while events := await self._deliveries.next_events(item, PAGE):
            tokens = await self._tokens.sign(events)
            for event in events:
                failure = await push_event(
                    self._client,
                    item.endpoint_url,
                    tokens[event.jti],
                    item.authorization,
                    allow_http=self._allow_http,
                )
                if failure is not None and failure.can_be_retried:
                    return Failure(failure.reason, tries=tries, log_fields={"jti": event.jti})
                self._count(item, event.jti, failure)
                if not await self._deliveries.finish(item, event.id, failure.reason if failure else ""):
                    return None
                tries = 1
        return None

    def _count(self, stream: ClaimedStream, jti: str, rejection: Failure | None) -> None:
        DELIVERIES.add(self.name, "failed" if rejection else "delivered")
        if rejection:
            fields = {"stream": stream.stream_id, "client": stream.client_id, "jti": jti}
            log.warning("signals.event_rejected", reason=rejection.reason, **fields)

    async def finish(self, due: Due[ClaimedStream]) -> None:
        """Each event was removed when it was accepted."""

    async def store_failure(self, item: ClaimedStream, failure: Failure, retry_after_s: float | None) -> None:
        assert retry_after_s is not None
        await self._deliveries.postpone(item, failure.tries or item.tries + 1, retry_after_s, failure.reason)

    async def release(self, item: ClaimedStream) -> None:
        await self._deliveries.release(item)


def build_signal_sender(delivery: SignalDelivery) -> DueQueue:
    return DueQueue(PUSH_TOPIC, delivery, max_deliveries=LIMITS.max_requests)
