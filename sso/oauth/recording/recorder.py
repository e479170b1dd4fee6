"""Observes the requests of recorded clients. What it keeps is written later, in batches, by a task of the worker."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any

import structlog
import trio

from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.oauth.clients.redirect_uris import is_redirect_uri
from sso.oauth.recording.observed_request import ObservedRequest, observe_request, observed_answer, observed_error
from sso.oauth.recording.store import active_recordings, add_requests
from sso.web.deferred_response import DeferredResponse

TOPIC = "recordings"
MAX_WAITING = 200  # requests of all clients that wait to be written
MAX_BATCH = 50
PAUSE_S = 0.2  # between batches, so that a flood of requests is a few statements a second
MAX_UNPROVEN_PER_MINUTE = 120  # of one client, in one worker
# Answers that prove something even if the client has no secret: a code or a token was needed for them.
_PROOFS = frozenset({"token", "userinfo"})

View = Callable[[], Awaitable[Any]]  # its result is a response
log = structlog.get_logger()
_token_client: ContextVar[str] = ContextVar("token_client", default="")


@dataclass(frozen=True)
class RecordedClient:
    until: float
    is_public: bool
    redirect_hosts: tuple[str, ...]
    redirect_uris: tuple[str, ...]

    def has_redirect_uri(self, uri: str) -> bool:
        return bool(uri) and is_redirect_uri(uri, self.redirect_hosts, self.redirect_uris, allow_http=True)


class RequestRecorder:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sender, self._receiver = trio.open_memory_channel[dict[str, Any]](MAX_WAITING)
        self._unproven: Counter[str] = Counter()
        self._minute = 0
        self.clients: dict[str, RecordedClient] = {}

    def observed(self, endpoint: str) -> Callable[[View], View]:
        """Decorates the handler of an endpoint."""

        def decorate(view: View) -> View:
            @wraps(view)
            async def handle() -> Any:
                return await (self._observe(endpoint, view) if self.clients else view())

            return handle

        return decorate

    def note_client(self, client_id: str) -> None:
        """Says which client the access token of the current request belongs to."""
        if self.clients:
            _token_client.set(client_id)

    async def _observe(self, endpoint: str, view: View) -> Any:
        started = time.perf_counter()
        _token_client.set("")  # the requests of a connection share their context
        request = await observe_request()
        try:
            response = await view()
        except Exception as error:
            self._keep(endpoint, request, observed_error(error), started)
            raise
        if isinstance(response, DeferredResponse):
            return DeferredResponse(self._observe_deferred, endpoint, request, response, started)
        self._keep(endpoint, request, await observed_answer(response), started)
        return response

    async def _observe_deferred(
        self, endpoint: str, request: ObservedRequest, deferred: DeferredResponse, started: float
    ) -> Any:
        try:
            response = await deferred.start()[0]
        except Exception as error:
            self._keep(endpoint, request, observed_error(error), started)
            raise
        self._keep(endpoint, request, await observed_answer(response), started)
        return response

    def _keep(self, endpoint: str, request: ObservedRequest, answer: dict[str, Any], started: float) -> None:
        ms = round((time.perf_counter() - started) * 1e3, 1)
        content = {"endpoint": endpoint, **request.content, "answer": answer, "ms": ms}
        for client_id, client in self._clients_of(request):
            is_proof = endpoint in _PROOFS or (endpoint != "authorize" and not client.is_public)
            proven = is_proof and answer["status"] < 400
            if proven or self._admits(client_id):
                item = {"client_id": client_id, "network": request.network, "proven": proven, "content": content}
                with suppress(trio.WouldBlock):  # then the database is behind, and the request is not recorded
                    self._sender.send_nowait(item)

    def _clients_of(self, request: ObservedRequest) -> Iterator[tuple[str, RecordedClient]]:
        """Yields the client that the request names.

        Requests of the profile strict may name none, but have a redirect URI, which several clients may have.
        """
        now, named = self._database.clock.now(), request.client_id or _token_client.get()
        for client_id, client in self.clients.items():
            if client.until > now and (client_id == named if named else client.has_redirect_uri(request.redirect_uri)):
                yield client_id, client

    def _admits(self, client_id: str) -> bool:
        """Counts a request that proves nothing. Strangers who know the id of a client can send as many as they like."""
        if self._minute != (minute := int(time.monotonic()) // 60):
            self._minute = minute
            self._unproven.clear()
        self._unproven[client_id] += 1
        return self._unproven[client_id] <= MAX_UNPROVEN_PER_MINUTE

    async def load(self) -> None:
        self.clients = {
            row["client_id"]: RecordedClient(
                float(row["until"]), row["is_public"], tuple(row["redirect_hosts"]), tuple(row["redirect_uris"])
            )
            for row in await active_recordings(self._database)
        }

    async def run(self, bus: Bus, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            with bus.subscribe(TOPIC, Rescans.RARELY) as signals:
                await self.load()
                task_status.started()
                while True:
                    await signals.receive()
                    try:
                        await self.load()
                    except DatabaseError as error:
                        log.warning("recordings.read_failed", reason=str(error))

    async def _write(self) -> None:
        while True:
            items = [await self._receiver.receive()]
            await trio.sleep(PAUSE_S)
            with suppress(trio.WouldBlock):
                while len(items) < MAX_BATCH:
                    items.append(self._receiver.receive_nowait())
            try:
                await self._database.transaction(add_requests, items)
            except DatabaseError as error:
                log.warning("recordings.write_failed", reason=str(error), requests=len(items))
