"""A game session, and what a poll of it can come to."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from sso.accounts.model import LoginOptions, User, application_ids
from sso.core.net import parse_address

GSID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)

# Of a game session's row.
PENDING, CONFIRMED, DELIVERED, CLOSED, DENIED = "pending", "confirmed", "delivered", "closed", "denied"
# How far the browser is, in the order of a login.
OPENED, SIGNING_IN, SECOND_FACTOR = "opened", "signing_in", "second_factor"

EXPIRED = "session expired"
OVER = {CLOSED: "session closed", DENIED: "session denied"}


def possible(gsid: str) -> str:
    """The same, or "" for what cannot be one. That is looked for all the same: refusals take the same time for all."""
    return gsid if GSID.fullmatch(gsid) else ""


@dataclass(frozen=True, slots=True)
class GameSessionData:
    """What was said when the session was registered, and to whom it belongs. Until it is confirmed, none of it
    changes; the confirmation may fill fields that were left empty."""

    gsid: str
    location: bytes = field(repr=False)
    match: str
    address: str
    public_key: bytes | None = field(repr=False)
    distr: str
    factor: str
    jwt_public_key: str
    app_id: int
    gapp_id: int
    nojwt: bool
    short_token: bool
    fixed_ips: Sequence[str]
    with_meta: bool
    with_email: bool
    meta_given: bool
    bound_apps: Sequence[int] | None  # app_id and gapp_id as registered, if the confirmation filled one of them
    started: int

    @classmethod
    def from_row(cls, row: Any) -> "GameSessionData":
        return cls(*_facts_of(row))

    @property
    def application_ids(self) -> tuple[int, ...]:
        return application_ids(self.app_id, self.gapp_id)

    @property
    def registered_applications(self) -> tuple[int, ...]:
        """The applications whose servers may speak for the session's client: never one that a link has filled in."""
        return self.application_ids if self.bound_apps is None else application_ids(*self.bound_apps)

    @property
    def key_digest(self) -> bytes | None:
        return hashlib.sha256(self.public_key).digest() if self.public_key is not None else None

    @property
    def options(self) -> LoginOptions:
        return LoginOptions(
            address=parse_address(self.address),
            factor=self.factor,
            jwt_public_key=self.jwt_public_key,
            distr=self.distr,
            nojwt=self.nojwt,
            short_token=self.short_token,
            fixed_ips=tuple(self.fixed_ips),
            meta=self.with_meta,
            app_id=self.app_id,
            gapp_id=self.gapp_id,
            with_email=self.with_email,
        )


@dataclass(frozen=True)
class Filled:
    """Values of a link for fields of a session that were left empty; 0, "" and False fill nothing."""

    app_id: int = 0
    gapp_id: int = 0
    distr: str = ""
    meta: bool = False

    @property
    def application_ids(self) -> tuple[int, ...]:
        return application_ids(self.app_id, self.gapp_id)

    def apply(self, facts: GameSessionData) -> GameSessionData:
        """The session as it will be once it is confirmed."""
        return replace(
            facts,
            app_id=facts.app_id or self.app_id,
            gapp_id=facts.gapp_id or self.gapp_id,
            distr=facts.distr or self.distr,
            with_meta=facts.with_meta or self.meta,
        )


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """Where a session stands at one moment, by the database's clock."""

    status: str
    alive: bool
    poll: int  # the number of the newest one
    cancels: int
    started: int
    last_seen: int  # 0: there was never a socket
    ts: int

    @classmethod
    def from_row(cls, row: Any) -> "SessionStatus":
        return cls(*_standing_of(row))

    @property
    def error(self) -> str | None:
        """Why nothing can come of it any more, if so and if that is nobody's fault."""
        return OVER.get(self.status) or (EXPIRED if not self.alive and self.status != DELIVERED else None)


_facts_of = itemgetter(*GameSessionData.__dataclass_fields__)
_standing_of = itemgetter(*SessionStatus.__dataclass_fields__)


@dataclass(frozen=True, slots=True, eq=False)
class PollTurn:
    """One poll: its number, and how things stood when it came."""

    gsid: str
    number: int
    cancels: int
    left_s: float  # of the session's life, with this poll counted
    early: bool
    standing: SessionStatus


@dataclass(frozen=True)
class Claimed:
    """The login is this poll's, and nobody else's."""

    turn: PollTurn
    standing: SessionStatus
    facts: GameSessionData
    user: User


@dataclass(frozen=True)
class LoginReady:
    standing: SessionStatus
    data: dict[str, Any] = field(repr=False)
    turn: PollTurn


@dataclass(frozen=True)
class Retry:
    standing: SessionStatus
    delay: int


@dataclass(frozen=True)
class Cancelled:
    standing: SessionStatus


@dataclass(frozen=True)
class Failed:
    error: str


Outcome = LoginReady | Retry | Cancelled | Failed
