"""Lists game sessions for administrators, newest first, and finds one of them.

The session of a device is not among them: its gsid is part of what its client authenticates with.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from sso.core.hidden_fields import RecordWithHiddenFields
from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.gsid.model import CLOSED, CONFIRMED, DELIVERED, DENIED, GSID, OPENED, SECOND_FACTOR, SIGNING_IN

REGISTERED, EXPIRED = "registered", "expired"
STAGES = (REGISTERED, OPENED, SIGNING_IN, SECOND_FACTOR, CONFIRMED, DELIVERED, CLOSED, DENIED, EXPIRED)

_CURSOR = re.compile(r"([0-9]{1,17})-((?:[0-9a-f]{2}){1,64})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The gsid opens the login page of the session. This digest names the session without giving access to it.
_ID = "substr(encode(sha256(convert_to(s.gsid, 'UTF8')), 'hex'), 1, 24)"
# A login whose answer is still being written is not delivered yet.
_STAGE = """CASE WHEN s.status = 'delivered' AND s.claimed_until IS NOT NULL THEN 'confirmed'
    WHEN s.status IN ('delivered', 'closed', 'denied') THEN s.status
    WHEN s.ends <= now() THEN 'expired'
    WHEN s.status = 'confirmed' THEN 'confirmed'
    WHEN s.stage = '' THEN 'registered' ELSE s.stage END"""
_SELECT = f"""SELECT s.gsid, s.location, {_ID} AS id, {_STAGE} AS stage, s.created, s.ends, s.address, s.app_id,
    s.gapp_id, s.distr, s.user_id,
    s.status IN ('pending', 'confirmed') AND coalesce(s.held_until > now(), false) AS is_polled,
    s.socket IS NOT NULL AS has_socket, CAST(extract(epoch FROM now() - s.created) AS int) AS age
    FROM game_sessions s"""
# Sessions of one moment are ordered by the digest of their secret, which a cursor may show. The digest of the gsid is
# computed for the rows of the page only.
_PAGE = f"""WITH newest AS (
        SELECT * FROM game_sessions s WHERE s.client_id IS NULL AND s.expires > now() {{conditions}}
        ORDER BY s.created DESC, s.location DESC LIMIT :limit
    )
    {_SELECT.replace("game_sessions", "newest")} ORDER BY s.created DESC, s.location DESC"""
_CONDITIONS = {
    "created": "(s.created, s.location) < (:created, :location)",
    "stage": f"s.status = ANY (CAST(:statuses AS text[])) AND {_STAGE} = :stage",  # the first part is cheap
    "application_id": ":application_id IN (s.app_id, s.gapp_id)",
    "address": "s.address = :address",
    "user_id": "s.user_id = :user_id",
    "search": "(s.gsid = :search OR s.user_id = :search OR starts_with(s.address, :search))",
}
_STATUSES_OF_STAGE = {
    CONFIRMED: ("confirmed", "delivered"),
    DELIVERED: ("delivered",),
    CLOSED: ("closed",),
    DENIED: ("denied",),
    EXPIRED: ("pending", "confirmed"),
}
_FIND = Statement(f"{_SELECT} WHERE s.gsid = :gsid AND s.client_id IS NULL AND s.expires > now()")


class ListedSession(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"location"})

    gsid: str
    location: bytes  # the digest of its secret
    id: str  # a digest of the gsid
    stage: str  # one of STAGES
    created: datetime
    ends: datetime
    address: str
    app_id: int
    gapp_id: int
    distr: str
    user_id: str | None  # the user who confirmed
    is_polled: bool  # a poll may be held
    has_socket: bool
    age: int  # seconds

    @property
    def cursor(self) -> str:
        microseconds = (self.created - _EPOCH) // timedelta(microseconds=1)
        return f"{microseconds}-{self.location.hex()}"


_fields = itemgetter(*ListedSession.__struct_fields__)


class SessionFilter(Struct, frozen=True):
    stage: str | None = None
    application_id: int | None = None  # app_id or gapp_id
    address: str | None = None
    user_id: str | None = None
    search: str | None = None  # a gsid, a user id, or the beginning of an address


async def list_sessions(runner: Runner, wanted: SessionFilter, after: str, limit: int) -> list[ListedSession]:
    """Returns the sessions after the one with the cursor ``after``. Raises ValueError if that is no cursor."""
    values: dict[str, Any] = {name: value for name, value in asdict(wanted).items() if value is not None}
    if wanted.stage is not None:
        values["statuses"] = list(_STATUSES_OF_STAGE.get(wanted.stage, ("pending",)))
    if after:
        values["created"], values["location"] = _read_cursor(after)
    statement = _page_statement(tuple(name for name in _CONDITIONS if name in values))
    rows = await runner.rows(statement, limit=limit, **values)
    return [_listed(row) for row in rows]


@cache
def _page_statement(filters: tuple[str, ...]) -> Statement:
    """The statement with these filters only, so that PostgreSQL can use the index that fits them."""
    conditions = "".join(f" AND {_CONDITIONS[name]}" for name in filters)
    return Statement(_PAGE.format(conditions=conditions), name="gsid.session_directory_store.PAGE")


async def find_session(runner: Runner, gsid: str) -> ListedSession | None:
    row = await runner.row(_FIND, gsid=gsid) if GSID.fullmatch(gsid) else None
    return _listed(row) if row else None


def _listed(row: Any) -> ListedSession:
    return ListedSession(*_fields(row))


def _read_cursor(text: str) -> tuple[datetime, bytes]:
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise ValueError("not a cursor")
    return _EPOCH + timedelta(microseconds=int(match[1])), bytes.fromhex(match[2])
