"""The data of a game session, a snapshot of its progress, and the possible outcomes of a poll."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.guest_upgrade_store import GuestLink
from sso.accounts.model import LoginOptions, User, application_ids
from sso.core.ban import Ban
from sso.core.hidden_fields import RecordWithHiddenFields
from sso.core.net import parse_address

GSID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)

# Values of the column game_sessions.status.
PENDING, CONFIRMED, DELIVERED, CLOSED, DENIED = "pending", "confirmed", "delivered", "closed", "denied"
# Progress of the browser, in the order of a login (column game_sessions.stage).
OPENED, SIGNING_IN, SECOND_FACTOR = "opened", "signing_in", "second_factor"

# Error texts of ended sessions.
SESSION_EXPIRED = "session expired"
END_ERRORS = {CLOSED: "session closed", DENIED: "session denied"}


def gsid_or_empty(gsid: str) -> str:
    """Returns a well-formed gsid unchanged and "" for anything else.

    The caller looks up "" as well, so that all refusals take the same time.
    """
    return gsid if GSID.fullmatch(gsid) else ""


class GameSessionData(RecordWithHiddenFields, frozen=True):
    """The parameters of a session as getGsid registered them, and the bindings to its client.

    They do not change until the confirmation, which may fill fields that were left empty.
    """

    hidden_fields = frozenset({"location", "public_key"})

    gsid: str
    location: bytes
    match: str
    address: str
    public_key: bytes | None
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
    client_id: str | None = None  # the OAuth client, if it is the session of a device
    scopes: Sequence[str] | None = None  # that the device asks for
    link_guest: str | None = None  # the guest that is linked to the account of the login
    linked: str | None = None  # upgraded or merged, when that is done

    @classmethod
    def from_row(cls, row: Any) -> "GameSessionData":
        return cls(*_session_fields(row))

    @property
    def application_ids(self) -> tuple[int, ...]:
        return application_ids(self.app_id, self.gapp_id)

    @property
    def registered_applications(self) -> tuple[int, ...]:
        """The applications whose servers may act for the session's client, without one that a link filled in."""
        return self.application_ids if self.bound_apps is None else application_ids(*self.bound_apps)

    @property
    def guest_link(self) -> GuestLink | None:
        return None if self.link_guest is None else GuestLink(self.gsid, self.link_guest)

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


class LinkValues(Struct, frozen=True):
    """Values from a link for fields that the session left empty; 0, "" and False fill nothing."""

    app_id: int = 0
    gapp_id: int = 0
    distr: str = ""
    meta: bool = False

    def apply_to(self, session: GameSessionData) -> GameSessionData:
        """Returns the session as it will be once it is confirmed."""
        return replace(
            session,
            app_id=session.app_id or self.app_id,
            gapp_id=session.gapp_id or self.gapp_id,
            distr=session.distr or self.distr,
            with_meta=session.with_meta or self.meta,
        )


class SessionSnapshot(Struct, frozen=True):
    """The progress of a session at one moment, by the database's clock."""

    status: str
    alive: bool
    newest_poll: int  # its number
    cancels: int
    ban: Mapping[str, Any] | None  # that has ended the session; see `Ban.from_json`
    started: int
    last_seen: int  # 0 if the session never had a socket
    ts: int

    @classmethod
    def from_row(cls, row: Any) -> "SessionSnapshot":
        return cls(*_snapshot_fields(row))

    @property
    def error(self) -> str | None:
        """The error text if the session ended without a login, otherwise None."""
        return END_ERRORS.get(self.status) or (SESSION_EXPIRED if not self.alive and self.status != DELIVERED else None)


_session_fields = itemgetter(*GameSessionData.__struct_fields__)
_snapshot_fields = itemgetter(*SessionSnapshot.__struct_fields__)


class Poll(Struct, frozen=True, eq=False):
    """One getGsidResult request: its number, and the session when the request arrived."""

    gsid: str
    number: int
    cancels: int
    left_s: float  # remaining life of the session, extended by this poll
    early: bool
    snapshot: SessionSnapshot
    lease_left_s: float | None = None  # until the claim of an earlier poll ends; None if there is none


class Claim(Struct, frozen=True):
    """The attempt of a poll to get the login."""

    gsid: str
    poll_number: int
    claim_id: str  # also the id of the sign-in that the tokens belong to


class Claimed(Struct, frozen=True):
    """The poll has claimed the login; no other poll can get it while the lease lasts."""

    snapshot: SessionSnapshot
    session: GameSessionData
    user: User
    auth: str  # how the user signed in to the browser that has confirmed the login
    auth_time: int  # when, in Unix seconds; 0 if no proof is known
    lease_ended: bool | None  # True if an earlier claim was taken over because its lease had ended


class NotClaimed(Struct, frozen=True):
    """There was no login to claim."""

    snapshot: SessionSnapshot
    user_invalid: bool  # the session was confirmed, but all logins of that user have been revoked since
    lease_left_s: float | None  # until the claim of another poll ends; None if there is none


class LoginReady(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"data"})

    snapshot: SessionSnapshot
    data: dict[str, Any]
    claim: Claim


class Retry(Struct, frozen=True):
    snapshot: SessionSnapshot
    delay: int
    early: bool = False  # the session had too many polls


class Cancelled(Struct, frozen=True):
    snapshot: SessionSnapshot


class Failed(Struct, frozen=True):
    error: str
    ban: Ban | None = None  # that is the reason


def ended(snapshot: SessionSnapshot) -> Failed | None:
    """Returns the outcome of a session that has ended without a login, and None for another one."""
    if snapshot.error is None:
        return None
    return Failed(snapshot.error, Ban.from_json(dict(snapshot.ban)) if snapshot.ban else None)


PollOutcome = LoginReady | Retry | Cancelled | Failed
