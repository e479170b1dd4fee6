"""Requests to games about the data of a user, and the sources of an application (``settings.gdpr``, §2.3)."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from sso.core.moments import rfc3339
from sso.db.transaction import Row

TOPIC = "data requests"  # wakes the senders
MAX_ANSWER = 5 * 1024 * 1024  # bytes
MAX_EXPORT = 50 * 1024 * 1024  # bytes of all answers of an export
MAX_SOURCES = 100  # that one export asks
EXPORT_DAYS = 7  # how long a finished export can be downloaded
ANSWER_DAYS = 3  # within which a game must call the link
REMOVAL_DAYS = 30  # within which a game must accept a removal
KEPT_DAYS = 90  # how long finished removals are listed


class RequestKind(StrEnum):
    DATA = "data"
    CHARACTERS = "characters"
    REMOVE = "remove"


class RequestState(StrEnum):
    PENDING = "pending"
    WAITING = "waiting"  # the game has answered 202, and will call the link
    DONE = "done"
    FAILED = "failed"


OPEN_STATES = (RequestState.PENDING, RequestState.WAITING)


class Sources(Struct, frozen=True):
    """What ``settings.gdpr`` of an application says."""

    data: tuple[str, ...]
    characters: tuple[str, ...]
    remove: tuple[str, ...]

    @classmethod
    def from_settings(cls, gdpr: Mapping[str, Any] | None) -> "Sources":
        gdpr = gdpr or {}
        data_sources = gdpr.get("data_sources") or ()
        return cls(
            data=_unique(source.get("fetch") for source in data_sources),
            characters=_unique(gdpr.get("char_sources") or ()),
            remove=_unique(source.get("remove") for source in data_sources),
        )

    def of_export(self) -> Iterator[tuple[RequestKind, str]]:
        yield from ((RequestKind.DATA, url) for url in self.data)
        yield from ((RequestKind.CHARACTERS, url) for url in self.characters)


class UsedApplication(Struct, frozen=True):
    """An application that the user has used, with the id that it knows the user by."""

    subject_id: str
    application_id: int
    name: str
    sources: Sources


class ClaimedRequest(Struct, frozen=True):
    """A request that this worker sends until the lease ends."""

    id: int
    request_id: str
    kind: RequestKind
    subject_id: str
    application_id: int
    project_id: str | None
    url: str
    accepted: tuple[str, ...]
    state: RequestState
    tries: int
    deadline: datetime
    sources: Sources
    secret_sealed: str | None

    @classmethod
    def from_row(cls, row: Row) -> "ClaimedRequest":
        return cls(
            **{name: row[name] for name in cls.__struct_fields__ if name not in ("sources", "accepted")},
            accepted=tuple(row["accepted"]),
            sources=Sources.from_settings(row["gdpr"]),
        )


class DataRequest(Struct, frozen=True):
    """A request as administrators and the user see it."""

    id: int
    request_id: str
    kind: RequestKind
    user_id: str
    subject_id: str
    application_id: int
    application_name: str
    state: RequestState
    created: datetime
    finished: datetime | None
    tries: int
    next_try: datetime | None
    deadline: datetime
    problem: str
    size: int
    characters: tuple[str, ...]
    expires: datetime | None

    @classmethod
    def from_row(cls, row: Row) -> "DataRequest":
        values = {name: row[name] for name in cls.__struct_fields__}
        return cls(**values | {"characters": tuple(row["characters"])})

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    def json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "request_id": self.request_id,
            "kind": self.kind,
            "user_id": self.user_id,
            "subject_id": self.subject_id,
            "application_id": self.application_id,
            "state": self.state,
            "created": rfc3339(self.created),
            "finished": _optional(self.finished),
            "tries": self.tries,
            "next_try": _optional(self.next_try),
            "deadline": rfc3339(self.deadline),
            "problem": self.problem,
        }


def _unique(urls: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(url for url in urls if url))


def _optional(time: datetime | None) -> str | None:
    return None if time is None else rfc3339(time)
