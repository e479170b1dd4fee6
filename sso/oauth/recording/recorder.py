"""Observes the requests of recorded clients. What it keeps is written later, in batches, by a task of the worker."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any

import structlog
import trio
from msgspec import Struct

from sso.bus.bus import Bus
from sso.bus.reloading import keep_loaded
from sso.bus.subscriptions import Rescans
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.oauth.clients.redirect_uris import is_redirect_uri
from sso.oauth.recording.kept_fields import kept_error, kept_fields
from sso.oauth.recording.observation import Observation, Proof, current_observation, observing
from sso.oauth.recording.observed_request import (
    ObservedRequest,
    observe_request,
    observed_answer,
    observed_error,
    sender_network,
)
from sso.oauth.recording.store import active_recordings, add_requests
from sso.web.deferred_response import DeferredResponse
from sso.web.request import current_request

TOPIC = "recordings"
MAX_WAITING = 200  # requests of all clients that wait to be written
MAX_BATCH = 50
PAUSE_S = 0.2  # between batches, so that a flood of requests is a few statements a second
# Requests of one client with one kind of proof, in one worker. A sender with many requests leaves room for others.
MAX_PER_MINUTE, MAX_OF_NETWORK_PER_MINUTE = 600, 120
CALLER_CHARACTERS = 8
# The step in which the user is sent back, after pages on which the user signed in or consented.
AUTHORIZATION_RESPONSE = "authorization_response"

View = Callable[[], Awaitable[Any]]  # its result is a response
log = structlog.get_logger()


class RecordedClient(Struct, frozen=True):
    until: float
    redirect_hosts: tuple[str, ...]
    redirect_uris: tuple[str, ...]

    def has_redirect_uri(self, uri: str) -> bool:
        return bool(uri) and is_redirect_uri(uri, self.redirect_hosts, self.redirect_uris, allow_http=True)


class RequestRecorder:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring
        self._sender, self._receiver = trio.open_memory_channel[dict[str, Any]](MAX_WAITING)
        self._counts: Counter[tuple[str, ...]] = Counter()
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

    def note_answer(
        self, client_id: str, kind: str, parameters: Mapping[str, str | bytes | None], description: str
    ) -> None:
        """Records what the browser takes to a client: with the authorization request, or as a step of its own."""
        if not self.clients:
            return
        sent = {
            name: value.decode(errors="replace") if isinstance(value, bytes) else value
            for name, value in parameters.items()
            if value is not None
        }
        members = kept_fields(sent, client_id)
        if "error" in sent:
            members |= kept_error(sent["error"], description)
        answer = {"kind": kind, "members": members}
        if (observation := current_observation()) is not None:
            observation.answer = answer
        elif client_id in self._active():
            method = current_request().method
            status = 200 if kind == "form" else 303 if method == "POST" else 302
            request = ObservedRequest(method, sender_network())
            self._keep(AUTHORIZATION_RESPONSE, client_id, "none", request, {"status": status, **answer}, 0)

    async def _observe(self, endpoint: str, view: View) -> Any:
        started = time.perf_counter()
        has_token_in_header = endpoint == "userinfo" and "Authorization" in current_request().headers
        request, observation = await observe_request(with_body=not has_token_in_header), Observation()
        try:
            with observing(observation):
                response = await view()
        except Exception as error:
            self._keep_error(endpoint, request, observation, error, started)
            raise
        if isinstance(response, DeferredResponse):
            if request.client_id not in self.clients:  # thousands of requests may be held, and a body is large
                return response
            return DeferredResponse(self._observe_deferred, endpoint, request, observation, response, started)
        await self._keep_response(endpoint, request, observation, response, started)
        return response

    async def _observe_deferred(
        self,
        endpoint: str,
        request: ObservedRequest,
        observation: Observation,
        deferred: DeferredResponse,
        started: float,
    ) -> Any:
        try:
            with observing(observation):
                response = await deferred.start()[0]
        except Exception as error:
            self._keep_error(endpoint, request, observation, error, started)
            raise
        await self._keep_response(endpoint, request, observation, response, started)
        return response

    async def _keep_response(
        self, endpoint: str, request: ObservedRequest, observation: Observation, response: Any, started: float
    ) -> None:
        clients = list(self._clients_of(endpoint, request, observation, accepted=response.status_code < 400))
        answer = await observed_answer(response, observation.answer) if clients else {}
        for client_id, proof in clients:
            self._keep(endpoint, client_id, proof, request, answer, time.perf_counter() - started)

    def _keep_error(
        self, endpoint: str, request: ObservedRequest, observation: Observation, error: Exception, started: float
    ) -> None:
        for client_id, proof in self._clients_of(endpoint, request, observation, accepted=False):
            answer = observed_error(error, "page" if endpoint == "authorize" else "json")
            self._keep(endpoint, client_id, proof, request, answer, time.perf_counter() - started)

    def _keep(
        self,
        endpoint: str,
        client_id: str,
        proof: Proof,
        request: ObservedRequest,
        answer: dict[str, Any],
        seconds: float,
    ) -> None:
        if not self._admits(client_id, proof, request.network):
            return
        content = {"endpoint": endpoint, "proof": proof, **request.content(client_id)}
        caller = self._keyring.mac("caller of recorded requests", f"{client_id} {request.network}").hex()
        item = {
            "client_id": client_id,
            "network": caller[:CALLER_CHARACTERS],  # keyed: an address could be guessed from a plain digest
            "proven": proof != "none",
            "content": content | {"answer": answer, "ms": round(seconds * 1e3, 1)},
        }
        with suppress(trio.WouldBlock):  # then the database is behind, and the request is not recorded
            self._sender.send_nowait(item)

    def _clients_of(
        self, endpoint: str, request: ObservedRequest, observation: Observation, *, accepted: bool
    ) -> Iterator[tuple[str, Proof]]:
        """Yields the client that the request has proved to be of, or else the one that it names.

        Requests of the profile strict may name none, but have a redirect URI, which several clients may have. An access
        token says whose it is, so a client_id that is sent along to userinfo says nothing.
        """
        clients = self._active()
        if observation.client_id:
            if observation.client_id in clients:
                yield observation.client_id, observation.proof
        elif endpoint == "userinfo":
            return
        elif request.client_id:
            if request.client_id in clients:  # a public client has no secret, but had a code or a refresh token
                yield request.client_id, "token" if endpoint == "token" and accepted else "none"
        else:
            for client_id, client in clients.items():
                if client.has_redirect_uri(request.redirect_uri):
                    yield client_id, "none"

    def _active(self) -> dict[str, RecordedClient]:
        now = self._database.clock.now()
        return {client_id: client for client_id, client in self.clients.items() if client.until > now}

    def _admits(self, client_id: str, proof: Proof, network: str) -> bool:
        """Counts a request. Strangers can send as many as they like, also some with a token of the client."""
        if self._minute != (minute := int(time.monotonic()) // 60):
            self._minute = minute
            self._counts.clear()
        if self._counts[client_id, proof, network] >= MAX_OF_NETWORK_PER_MINUTE:
            return False
        if self._counts[client_id, proof] >= MAX_PER_MINUTE:
            return False
        self._counts[client_id, proof] += 1
        self._counts[client_id, proof, network] += 1
        return True

    async def load(self) -> None:
        self.clients = {
            row["client_id"]: RecordedClient(
                float(row["until"]), tuple(row["redirect_hosts"]), tuple(row["redirect_uris"])
            )
            for row in await active_recordings(self._database)
        }

    async def run(self, bus: Bus, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            await keep_loaded(bus, TOPIC, self.load, _log_failure, rescans=Rescans.RARELY, task_status=task_status)

    async def _write(self) -> None:
        items: list[dict[str, Any]] = []
        while True:
            if not items:
                items.append(await self._receiver.receive())
            await trio.sleep(PAUSE_S)
            if self._database.waiting_calls:  # requests that need a connection come first
                continue
            with suppress(trio.WouldBlock):
                while len(items) < MAX_BATCH:
                    items.append(self._receiver.receive_nowait())
            try:
                await self._database.transaction(add_requests, items)
            except DatabaseError as error:
                log.warning("recordings.write_failed", reason=str(error), requests=len(items))
            items.clear()


def _log_failure(error: DatabaseError) -> None:
    log.warning("recordings.read_failed", reason=str(error))
