"""Requests as values: a client of either kind sends them, so that each is written once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Record(dict[str, Any]):
    """A record of the service, with the version that it had."""

    etag: str | None = None


@dataclass(frozen=True)
class ServerAnswer:
    """A successful response."""

    status: int
    body: dict[str, Any]
    etag: str | None = None


@dataclass(frozen=True)
class ApiCall(Generic[T]):
    """A request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[ServerAnswer], T]
    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    authenticated: bool = True
    timeout_s: float | None = None  # of this request; None: that of the client
    only_asks: bool = False  # it changes nothing, although its method is POST

    @property
    def may_repeat(self) -> bool:
        """Whether sending it twice has the effect of sending it once."""
        return self.only_asks or "Idempotency-Key" in self.headers or self.method in ("GET", "PUT", "DELETE")


@dataclass(frozen=True)
class RecordPage:
    records: list[Record]
    next: str | None


@dataclass(frozen=True)
class ListCall(ApiCall[RecordPage]):
    """A request for a page of records."""

    def page_after(self, cursor: str) -> "ListCall":
        return replace(self, query={**self.query, "after": cursor})


def read_record(answer: ServerAnswer) -> Record:
    """Reads ``data``. Warnings of the server are in the member ``warnings`` of the answer, and here in the record."""
    data = answer.body.get("data")
    record = Record(data if isinstance(data, dict) else {})
    if warnings := answer.body.get("warnings"):
        record["warnings"] = warnings
    record.etag = answer.etag
    return record


def read_page(answer: ServerAnswer) -> RecordPage:
    return RecordPage([Record(item) for item in answer.body.get("data", ())], answer.body.get("next"))


def read_data(answer: ServerAnswer) -> Any:
    return answer.body.get("data")


def read_body(answer: ServerAnswer) -> dict[str, Any]:
    return answer.body


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that are given. Booleans are 1 and 0 in a query."""
    return {
        name: int(value) if isinstance(value, bool) else value for name, value in values.items() if value is not None
    }


def if_match_header(etag: str | None) -> dict[str, str]:
    return {"If-Match": etag} if etag else {}
