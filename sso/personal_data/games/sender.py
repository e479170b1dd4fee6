"""Sends requests about personal data to games. All workers run it, and one of them at a time sends a request.

A removal is repeated until each address of the application has accepted it, or 30 days have passed.
"""

from collections.abc import Mapping
from typing import Any

import orjson
import structlog
from msgspec import Struct

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.outgoing_http import AddressRefused, NoAnswer, OutgoingClient, OutgoingLimits, UnusableAnswer
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.delivery.due_queue import Due, DueQueue, Failure, QueuedDelivery, RetryPolicy
from sso.delivery.signature import signature
from sso.personal_data.games.answers import UnusableDocument, read_characters, read_text
from sso.personal_data.games.model import (
    ANSWER_DAYS,
    MAX_ANSWER,
    MAX_EXPORT,
    REMOVAL_DAYS,
    TOPIC,
    ClaimedRequest,
    RequestKind,
    RequestState,
)
from sso.personal_data.games.queue_store import DataQueue, finish_removal, store_failure
from sso.telemetry.counters import DELIVERIES

LIMITS = OutgoingLimits(timeout_s=30.0, max_bytes=MAX_ANSWER, max_requests=8)
REMOVAL_LIMITS = OutgoingLimits(timeout_s=10.0, max_bytes=0, max_requests=8)
MAX_PER_APPLICATION = 2
RETRIED_STATUS = (408, 425, 429)  # besides those of errors of the game

log = structlog.get_logger()


class ClaimedCall(Struct, frozen=True):
    request: ClaimedRequest
    link: str


class GameCall:
    """The signed request that an address of a game gets."""

    def __init__(self, database: Database, queue: DataQueue, *, allow_http: bool) -> None:
        self._database = database
        self._queue = queue
        self._allow_http = allow_http

    async def send(
        self, client: OutgoingClient, request: ClaimedRequest, url: str, members: Mapping[str, Any]
    ) -> tuple[int, bytes] | Failure:
        if not is_outgoing_url(url, allow_http=self._allow_http):
            return Failure(f"url: {EXPECTED}")
        body = orjson.dumps({"user_id": request.subject_id, "request_id": request.request_id, **members})
        secret, now = await self._queue.secret(request), int(self._database.clock.now())
        headers = {
            "Content-Type": "application/json",
            "Webhook-Id": request.request_id,
            "Webhook-Event": f"user_data.{request.kind}",
            "Webhook-Signature": signature(secret, now, body),
        }
        try:
            answer = await client.send("POST", url, headers, content=body)
        except AddressRefused as error:
            return Failure(str(error), can_be_retried=False)
        except NoAnswer as error:
            return Failure(str(error))
        except UnusableAnswer as error:
            return Failure(f"the answer is unusable: {error}", can_be_retried=False)
        return answer.status, answer.body


class FetchDelivery(QueuedDelivery[ClaimedCall]):
    """Asks a source of an export. An answer that no repetition would change is not asked for again."""

    name = "data"
    retries = RetryPolicy(first_pause_s=10.0, factor=4.0, max_tries=5, jitter=0.2)  # a quarter of an hour
    max_per_receiver = MAX_PER_APPLICATION

    def __init__(self, queue: DataQueue, call: GameCall, client: OutgoingClient, database: Database, base_url: str):
        self._queue = queue
        self._call = call
        self._client = client
        self._database = database
        self._base_url = base_url

    async def claim(self, busy: list[str]) -> Due[ClaimedCall] | None:
        return _due(await self._queue.claim(busy, is_removal=False))

    async def send(self, item: ClaimedCall) -> Failure | None:
        request = item.request
        if request.state == RequestState.WAITING:
            return Failure(f"the game has not sent the data within {ANSWER_DAYS} days", can_be_retried=False)
        sources = request.sources.data if request.kind == RequestKind.DATA else request.sources.characters
        if request.url not in sources:
            return Failure("the application no longer has this source", can_be_retried=False)
        members = {"kind": request.kind, "callback_url": answer_url(self._base_url, item.link)}
        answer = await self._call.send(self._client, request, request.url, members)
        if isinstance(answer, Failure):
            return answer
        status, body = answer
        if status == 200:
            return await self._store(request, body)
        if status != 202:
            return Failure(f"status {status}", can_be_retried=status >= 500 or status in RETRIED_STATUS)
        await self._queue.wait(request)
        return None

    async def _store(self, request: ClaimedRequest, body: bytes) -> Failure | None:
        try:
            document = read_text(body)
        except UnusableDocument as error:
            return Failure(str(error), can_be_retried=False)
        if not await self._queue.is_json(document):
            return Failure("the answer is not JSON", can_be_retried=False)
        characters = read_characters(document) if request.kind == RequestKind.CHARACTERS else []
        if not await self._queue.store_answer(request, document, characters):
            return Failure(f"the export would have more than {MAX_EXPORT} bytes", can_be_retried=False)
        return None

    async def finish(self, due: Due[ClaimedCall]) -> None:
        """The answer was stored when it came."""
        DELIVERIES.add(self.name, "delivered")

    async def store_failure(self, item: ClaimedCall, failure: Failure, retry_after_s: float | None) -> None:
        await store_failure(self._database, item.request, failure.reason, retry_after_s)


class RemovalDelivery(QueuedDelivery[ClaimedCall]):
    """Asks an application to remove the data of an erased user, at each of the addresses that it has now."""

    name = "removal"
    retries = RetryPolicy(first_pause_s=60.0, factor=2.0, max_pause_s=6 * 3600.0, jitter=0.2)
    max_per_receiver = MAX_PER_APPLICATION

    def __init__(self, queue: DataQueue, call: GameCall, client: OutgoingClient, database: Database):
        self._queue = queue
        self._call = call
        self._client = client
        self._database = database

    async def claim(self, busy: list[str]) -> Due[ClaimedCall] | None:
        return _due(await self._queue.claim(busy, is_removal=True))

    async def send(self, item: ClaimedCall) -> Failure | None:
        request, problem = item.request, ""
        if not request.sources.remove:
            problem = "the application no longer has an address for removals"
        for url in request.sources.remove:
            if url in request.accepted:
                continue
            answer = await self._call.send(self._client, request, url, {"kind": request.kind})
            is_accepted = not isinstance(answer, Failure) and 200 <= answer[0] < 300
            if not is_accepted:
                problem = answer.reason if isinstance(answer, Failure) else f"status {answer[0]}"
            if not await self._queue.renew(request, *([url] if is_accepted else [])):
                return Failure("another worker has the request")
        if not problem:
            return None
        return Failure(problem, can_be_retried=self._database.clock.utc() < request.deadline)

    async def finish(self, due: Due[ClaimedCall]) -> None:
        if await self._database.transaction(_finish_audited, due.item.request):
            DELIVERIES.add(self.name, "delivered")
            log.info("removal.accepted", tries=due.tries, **due.log_fields)

    async def store_failure(self, item: ClaimedCall, failure: Failure, retry_after_s: float | None) -> None:
        await self._database.transaction(_fail_audited, item.request, failure.reason, retry_after_s)


def build_data_sender(
    database: Database,
    queue: DataQueue,
    base_url: str,
    client: OutgoingClient,
    removal_client: OutgoingClient,
    *,
    allow_http: bool,
) -> DueQueue:
    call = GameCall(database, queue, allow_http=allow_http)
    return DueQueue(
        TOPIC,
        FetchDelivery(queue, call, client, database, base_url),
        RemovalDelivery(queue, call, removal_client, database),
        max_deliveries=LIMITS.max_requests,
    )


def answer_url(base_url: str, link: str) -> str:
    return f"{base_url}/proxy/api/data/{link}"


def _due(claimed: tuple[ClaimedRequest, str] | None) -> Due[ClaimedCall] | None:
    if claimed is None:
        return None
    request, _ = claimed
    fields = {"id": request.id, "application": request.application_id}
    return Due(ClaimedCall(*claimed), str(request.application_id), request.tries, fields)


async def _finish_audited(tx: Transaction, request: ClaimedRequest) -> bool:
    if not await finish_removal(tx, request):
        return False
    await _audit(tx, "user.data_removed", request, {"tries": request.tries})
    return True


async def _fail_audited(tx: Transaction, request: ClaimedRequest, problem: str, pause_s: float | None) -> None:
    if await store_failure(tx, request, problem, pause_s) and pause_s is None:
        after = {"problem": problem, "tries": request.tries, "days": REMOVAL_DAYS}
        await _audit(tx, "user.data_removal_failed", request, after)


async def _audit(tx: Transaction, operation: str, request: ClaimedRequest, after: dict[str, Any]) -> None:
    await trail.write(
        tx,
        AuditActor(),
        operation,
        request.subject_id,
        None,
        after,
        project_id=request.project_id,
        application_id=request.application_id,
    )
