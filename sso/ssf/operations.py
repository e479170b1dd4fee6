"""The operations of streams, with their audit entries: for receivers, and for administrators of their clients."""

from collections.abc import Callable, Sequence
from typing import Any

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.encryption import Keyring
from sso.core.errors import Conflict, NotFound
from sso.core.field_errors import FieldError
from sso.core.outgoing_http import AddressRefused, OutgoingClient
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.core.receiver_urls import REFUSED
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.signals.event_types import STREAM_TYPES, SignalType
from sso.signals.recording import PUSH_TOPIC, stream_topic
from sso.ssf import stream_store
from sso.ssf.examples import example_for_stream
from sso.ssf.model import MIN_VERIFICATION_S, NewSettings, SignalStream
from sso.ssf.requests import InvalidServiceToken, TooManyVerifications
from sso.ssf.stream_store import MAX_STREAMS

URL = ("delivery", "endpoint_url")


class StreamOperations:
    """A stream is found by its id and its client, so the id of another client's stream is unknown."""

    def __init__(self, database: Database, keyring: Keyring, client: OutgoingClient, *, allow_http: bool) -> None:
        self._database = database
        self._keyring = keyring
        self._client = client
        self._allow_http = allow_http

    async def list(self, client_id: str) -> Sequence[SignalStream]:
        return await stream_store.list_streams(self._database, client_id)

    async def get(self, client_id: str, stream_id: str) -> SignalStream:
        return _existing(await stream_store.get_stream(self._database, client_id, stream_id))

    async def check_url(self, settings: NewSettings) -> None:
        """Raises FieldError if events must not be sent to this address."""
        if settings.method != "push":
            return
        if not is_outgoing_url(settings.endpoint_url, allow_http=self._allow_http):
            raise FieldError(URL, EXPECTED)
        try:
            await self._client.check_host(settings.endpoint_url)
        except AddressRefused:
            raise FieldError(URL, REFUSED) from None

    async def create(self, actor: AuditActor, client_id: str, settings: NewSettings) -> SignalStream:
        """Adds a stream, which gets the events from now on."""
        await self.check_url(settings)

        async def work(tx: Transaction) -> SignalStream:
            if not await stream_store.lock_client(tx, client_id):
                raise InvalidServiceToken  # its client was deleted during the request
            stream = await stream_store.add_stream(tx, self._keyring, client_id, settings)
            if stream is None:
                raise Conflict(f"the client has {MAX_STREAMS} streams already")
            await trail.write(tx, actor, "signal_stream.create", stream.stream_id, None, stream.record())
            return stream

        return await self._database.transaction(work)

    async def change(
        self, actor: AuditActor, client_id: str, stream_id: str, new_settings: Callable[[SignalStream], NewSettings]
    ) -> SignalStream:
        """Changes the settings of a stream. Events that wait are delivered in the new way.

        ``new_settings`` is called again with the locked stream, so that a concurrent change is kept.
        """
        wanted = new_settings(await self.get(client_id, stream_id))
        if wanted.changes_delivery:
            await self.check_url(wanted)

        async def work(tx: Transaction) -> SignalStream:
            before = await _lock(tx, client_id, stream_id)
            changed = await stream_store.change_stream(tx, self._keyring, stream_id, new_settings(before))
            entries = before.record(), changed.record()
            await trail.write(tx, actor, "signal_stream.save", stream_id, *entries)
            _wake(tx, changed)
            return changed

        return await self._database.transaction(work)

    async def delete(self, actor: AuditActor, client_id: str, stream_id: str) -> None:
        """Deletes a stream, with the events that wait."""
        await forget_users(self._database, client_id, stream_id)
        await self._database.transaction(delete_stream, actor, client_id, stream_id)

    async def set_status(
        self, actor: AuditActor, client_id: str, stream_id: str, status: str, reason: str
    ) -> SignalStream:
        """Sets the status. The receiver gets an event about a change."""
        return await self._database.transaction(set_stream_status, actor, client_id, stream_id, status, reason)

    async def set_excluded(self, client_id: str, stream_id: str, user_id: str, *, excluded: bool) -> None:
        """Excludes a user, or includes the user again. It is not told whether the user exists."""
        stream = await self.get(client_id, stream_id)
        await stream_store.set_excluded(self._database, stream.stream_id, user_id, excluded=excluded)

    async def verify(self, client_id: str, stream_id: str, state: str | None) -> None:
        """Adds an event with the state, after those that wait."""

        async def work(tx: Transaction) -> None:
            stream = await _lock(tx, client_id, stream_id)
            if stream.status == "disabled":
                raise FieldError(("stream_id",), "the stream is disabled")
            if not await stream_store.claim_verification(tx, stream_id):
                raise TooManyVerifications(MIN_VERIFICATION_S)
            data = {} if state is None else {"state": state}
            await stream_store.add_stream_event(tx, stream_id, SignalType.VERIFICATION, data)
            _wake(tx, stream)

        await self._database.transaction(work)


async def set_stream_status(
    tx: Transaction, actor: AuditActor, client_id: str, stream_id: str, status: str, reason: str
) -> SignalStream:
    before = await _lock(tx, client_id, stream_id)
    if (before.status, before.reason) == (status, reason):
        return before
    stream = await stream_store.set_status(tx, stream_id, status, reason)
    await trail.write(tx, actor, "signal_stream.save", stream_id, before.record(), stream.record())
    data: dict[str, Any] = {"status": status} | ({"reason": reason} if reason else {})
    await stream_store.add_stream_event(tx, stream_id, SignalType.STREAM_UPDATED, data)
    _wake(tx, stream)
    return stream


async def send_example(tx: Transaction, actor: AuditActor, client_id: str, stream_id: str, event: str) -> SignalStream:
    """Adds an example of a signal to a stream, which delivers it like any other."""
    stream = await _lock(tx, client_id, stream_id)
    names = (*stream.events, *STREAM_TYPES)
    if event not in names:
        raise FieldError(("event",), f"expected an event of the stream: {', '.join(names)}")
    if not await stream_store.add_example(tx, stream_id, example_for_stream(event, stream.status)):
        raise Conflict("the stream takes no events: it is disabled, or too many events wait")
    await trail.write(tx, actor, "signal_stream.example", stream_id, None, {"client_id": client_id, "event": event})
    _wake(tx, stream)
    return stream


async def forget_users(database: Database, client_id: str, stream_id: str) -> None:
    """Deletes what a stream knows, some thousands of users at a time. Without it, its deletion could take too long."""
    _existing(await stream_store.get_stream(database, client_id, stream_id))
    while await stream_store.forget_some_users(database, stream_id):
        pass


async def delete_stream(tx: Transaction, actor: AuditActor, client_id: str, stream_id: str) -> None:
    """Deletes a stream that was prepared by ``forget_users``."""
    stream = await _lock(tx, client_id, stream_id)
    await trail.write(tx, actor, "signal_stream.delete", stream_id, stream.record(), None)
    await stream_store.delete_stream(tx, stream_id)


async def _lock(tx: Transaction, client_id: str, stream_id: str) -> SignalStream:
    return _existing(await stream_store.lock_stream(tx, client_id, stream_id))


def _existing(stream: SignalStream | None) -> SignalStream:
    if stream is None:
        raise NotFound("stream not found")
    return stream


def _wake(tx: Transaction, stream: SignalStream) -> None:
    tx.publish_after_commit(PUSH_TOPIC if stream.method == "push" else stream_topic(stream.stream_id))
