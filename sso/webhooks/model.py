"""A webhook as it is stored, and as the sender has claimed it."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from sso.core.encryption import column_purpose
from sso.core.moments import rfc3339
from sso.db.transaction import Row
from sso.webhooks.event_filter import selected_types


def secret_purpose(webhook_id: str) -> str:
    return column_purpose("webhooks.secret_sealed", webhook_id)


class Webhook(Struct, frozen=True):
    webhook_id: str
    url: str
    events: tuple[str, ...]
    disabled: bool
    created: datetime
    tries: int
    next_try: datetime
    failing_since: datetime | None
    problem: str

    @classmethod
    def from_row(cls, row: Row) -> "Webhook":
        values = {name: row[name] for name in cls.__struct_fields__}
        return cls(**values | {"events": tuple(row["events"])})

    def json(self) -> dict[str, Any]:
        """The fields that administrators have chosen, without the secret."""
        return {
            "id": self.webhook_id,
            "url": self.url,
            "events": list(self.events),
            "disabled": self.disabled,
            "created": rfc3339(self.created),
        }

    def delivery_json(self) -> dict[str, Any]:
        """Whether deliveries succeed."""
        if self.failing_since is None:
            return {"failing": False}
        return {
            "failing": True,
            "failing_since": rfc3339(self.failing_since),
            "tries": self.tries,
            "next_try": rfc3339(self.next_try),
            "problem": self.problem,
        }


class ClaimedWebhook(Struct, frozen=True):
    """A webhook that this worker sends to until the lease ends."""

    webhook_id: str
    url: str
    secret: str
    types: frozenset[str]
    position: int
    tries: int
    lease: str

    @classmethod
    def from_row(cls, row: Row, secret: str) -> "ClaimedWebhook":
        types = selected_types(row["events"])
        return cls(row["webhook_id"], row["url"], secret, types, row["position"], row["tries"], row["lease"])
