"""A stream of signals as it is stored, and as its receiver sees it."""

import re
from datetime import datetime
from typing import Any

from msgspec import Struct

from sso.core.encryption import column_purpose
from sso.core.moments import rfc3339
from sso.db.transaction import Row
from sso.signals.event_types import EVENT_URIS, REQUESTABLE, SignalType

PUSH, POLL = "urn:ietf:rfc:8935", "urn:ietf:rfc:8936"
METHODS = {"push": PUSH, "poll": POLL}
MIN_VERIFICATION_S = 10  # between two verifications of a stream
MAX_WAITING = 10_000  # events of a stream; then it is paused
POLL_PATH = "/ssf/poll"


def is_stream_id(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text) is not None


def authorization_purpose(stream_id: str) -> str:
    return column_purpose("signal_streams.authorization_sealed", stream_id)


class SignalStream(Struct, frozen=True):
    stream_id: str
    client_id: str
    created: datetime
    description: str
    method: str  # push or poll
    endpoint_url: str
    requested: tuple[str, ...]
    events: tuple[str, ...]
    status: str
    reason: str
    tries: int
    next_try: datetime
    failing_since: datetime | None
    problem: str
    last_delivery: datetime | None

    @classmethod
    def from_row(cls, row: Row) -> "SignalStream":
        values = {name: row[name] for name in cls.__struct_fields__}
        return cls(**values | {"requested": tuple(row["requested"]), "events": tuple(row["events"])})

    def configuration(self, issuer: str) -> dict[str, Any]:
        """The stream as its receiver sees it. The header for pushed events is a secret and is not returned."""
        url = self.endpoint_url or f"{issuer}{POLL_PATH}?stream_id={self.stream_id}"
        return {
            "stream_id": self.stream_id,
            "iss": issuer,
            "aud": self.client_id,
            "events_supported": list(REQUESTABLE),
            "events_requested": list(self.requested),
            "events_delivered": [EVENT_URIS[SignalType(name)] for name in self.events],
            "delivery": {"method": METHODS[self.method], "endpoint_url": url},
            "min_verification_interval": MIN_VERIFICATION_S,
            **({"description": self.description} if self.description else {}),
        }

    def status_json(self) -> dict[str, Any]:
        return {
            "stream_id": self.stream_id,
            "status": self.status,
            **({"reason": self.reason} if self.reason else {}),
        }

    def record(self) -> dict[str, Any]:
        """The stream as administrators see it, and as the audit trail has it."""
        return {
            "id": self.stream_id,
            "client_id": self.client_id,
            "method": self.method,
            "url": self.endpoint_url,
            "events": list(self.events),
            "description": self.description,
            "status": self.status,
            "reason": self.reason,
            "created": rfc3339(self.created),
        }

    def delivery_json(self) -> dict[str, Any]:
        """Whether deliveries succeed."""
        return {
            "failing_since": rfc3339(self.failing_since) if self.failing_since else None,
            "problem": self.problem,
            "last_delivery": rfc3339(self.last_delivery) if self.last_delivery else None,
        }


class NewSettings(Struct, frozen=True):
    """What a receiver sets. ``authorization`` None keeps the header of a stream that exists, "" removes it."""

    method: str
    endpoint_url: str
    authorization: str | None
    requested: tuple[str, ...]
    description: str

    @property
    def changes_delivery(self) -> bool:
        return self.authorization is not None

    @property
    def events(self) -> list[str]:
        """The short names of the types that the stream gets; unknown ones are not sent."""
        return [REQUESTABLE[uri] for uri in dict.fromkeys(self.requested) if uri in REQUESTABLE]


class StoredSignal(Struct, frozen=True):
    """An event that waits for its receiver, with what its token needs of the client."""

    id: int
    jti: str
    at: datetime
    type: str
    sub: str | None
    sid: str | None
    email: str | None
    data: dict[str, Any]
    txn: str
    stream_id: str
    client_id: str
    id_alg: str

    @classmethod
    def from_row(cls, row: Row) -> "StoredSignal":
        return cls(**{name: row[name] for name in cls.__struct_fields__})
