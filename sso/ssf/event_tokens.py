"""Signs events as Security Event Tokens (RFC 8417)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sso.core.fair_queue import FairQueue, QueueFull
from sso.core.jwt import Signer
from sso.core.thread_pool import ThreadPool
from sso.keys.keyset import KeySet
from sso.signals.event_types import EVENT_URIS, SignalType, is_caep
from sso.ssf.model import StoredSignal
from sso.ssf.requests import TooManySignalPolls

SET_TYPE = "secevent+jwt"
INLINE = 2  # tokens that are signed on the event loop; more take long
MAX_WAITING = 100  # answers to polls, and pages of pushed events


class EventTokens:
    def __init__(self, keys: KeySet, issuer: str) -> None:
        self._keys = keys
        self._issuer = issuer
        self._threads = ThreadPool(1)
        self._queue = FairQueue(1, MAX_WAITING)

    async def sign(self, events: Sequence[StoredSignal]) -> dict[str, str]:
        """Returns the token of each event of a stream by its ``jti``, in the order of the events.

        Clients take turns, so that one that polls all the time does not delay the events of others. Raises
        TooManySignalPolls if too many answers wait, and more of this client than of others.
        """
        work = [(self._keys.signer(event.id_alg), event.jti, event_claims(self._issuer, event)) for event in events]
        sign = partial(_sign, work)
        if len(work) <= INLINE:
            return sign()
        try:
            async with self._queue.slot(events[0].client_id):
                return await self._threads.run(sign)
        except QueueFull:
            raise TooManySignalPolls(1) from None


def event_claims(issuer: str, event: StoredSignal) -> dict[str, Any]:
    """Returns the claims. They are the same at each attempt, so that a receiver recognises a repeated event."""
    moment = int(event.at.timestamp())
    times = {"event_timestamp": moment} if is_caep(event.type) else {}
    return {
        "iss": issuer,
        "aud": event.client_id,
        "iat": moment,
        "jti": event.jti,
        "txn": event.txn,
        "sub_id": _subject(issuer, event),
        "events": {EVENT_URIS[SignalType(event.type)]: {**times, **event.data}},
    }


def _subject(issuer: str, event: StoredSignal) -> dict[str, Any]:
    if event.sub is None:
        return {"format": "opaque", "id": event.stream_id}
    if event.email is not None:
        return {"format": "email", "email": event.email}
    user = {"format": "iss_sub", "iss": issuer, "sub": event.sub}
    if event.sid is None:
        return user
    return {"format": "complex", "user": user, "session": {"format": "opaque", "id": event.sid}}


def _sign(work: Sequence[tuple[Signer, str, dict[str, Any]]]) -> dict[str, str]:
    return {jti: signer.sign(claims, SET_TYPE) for signer, jti, claims in work}
