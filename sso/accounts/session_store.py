"""Browser sessions, and login challenges: logins whose password was correct and whose second factor is missing.

Cookies hold the secret, the database its digest.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sso.accounts.assurance import assurance_change
from sso.accounts.authentication_context import PASSWORD, AuthenticationContext, has_second_factor
from sso.accounts.ended_session_store import end_session, end_sessions_by_digest, why_ended
from sso.accounts.errors import InvalidCredentials
from sso.accounts.guarded_statements import guarded_by_user
from sso.accounts.login.rate_limit import raise_if_blocked
from sso.accounts.login.rate_limit_store import SUCCESS_COLUMNS
from sso.accounts.model import SessionEntry, User
from sso.accounts.session_statements import (
    ASSURANCE_COLUMN,
    NEW_SESSION_COLUMNS,
    START,
    START_AND_COUNT,
    STEP_UP,
    STEP_UP_AND_COUNT,
)
from sso.accounts.sign_in_extension import SignInExtension
from sso.backchannel_logout.store import end_site_sessions
from sso.core.ids import digest, record_id, secret_token
from sso.core.net import Address
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.statement import Statement
from sso.signals.recording import PUSH_TOPIC

CHALLENGE_S = 600

_LOOK_UP = BatchStatement(
    """SELECT item.n, u.*, s.id, s.created, s.last_seen, s.auth, s.authenticated, s.must_enrol,
        s.last_seen < now() - interval '1 minute' AS stale
    FROM {items} JOIN browser_sessions s ON s.digest = item.digest JOIN users u ON u.user_id = s.user_id
    WHERE s.expires > now() AND NOT u.disabled""",
    columns={"digest": "bytea"},
)
_TOUCH = Statement(
    """UPDATE browser_sessions SET last_seen = now(), address = :address
    WHERE id = :id AND last_seen < now() - interval '1 minute'"""
)
# A user who signs in again in the same browser continues the session at the sites: it keeps its sid.
_REPLACE = Statement(
    """WITH replaced_sessions AS (
        DELETE FROM browser_sessions WHERE digest = ANY (CAST(:digests AS bytea[])) AND user_id = :user_id
        RETURNING coalesce(sid, id) AS sid, auth
    ), continued_at_sites AS (
        UPDATE oauth_site_sessions SET expires = now() + make_interval(secs => :life)
        WHERE sid = ANY (ARRAY(SELECT sid FROM replaced_sessions))
    ), ended_challenges AS (
        DELETE FROM login_challenges WHERE digest = ANY (CAST(:digests AS bytea[]))
    )
    SELECT (SELECT sid FROM replaced_sessions LIMIT 1) AS sid,
        (SELECT auth FROM replaced_sessions LIMIT 1) AS auth, EXISTS (
        SELECT FROM browser_sessions WHERE digest = ANY (CAST(:digests AS bytea[])) AND user_id <> :user_id
    ) AS is_of_another_user"""
)
_LIST = Statement(
    """SELECT id, created, last_seen, address, device FROM browser_sessions
    WHERE user_id = :user_id AND expires > now() ORDER BY last_seen DESC LIMIT 100"""
)
_MARK_AUTHENTICATED = Statement("UPDATE browser_sessions SET authenticated = now() WHERE id = :id")
_START_CHALLENGE = """, new_challenges AS (
        INSERT INTO login_challenges (digest, user_id, expires, auth)
        SELECT digest, user_id, now() + make_interval(secs => life), auth FROM valid_items
    )
    SELECT n FROM valid_items"""
_CHALLENGED_USER = Statement(
    """SELECT u.*, c.auth FROM login_challenges c JOIN users u USING (user_id)
    WHERE c.digest = :digest AND c.expires > now() AND NOT u.disabled"""
)
_DROP_CHALLENGE = Statement("DELETE FROM login_challenges WHERE digest = :digest")


class Session(Struct, frozen=True):
    id: str
    user: User
    created: datetime  # when the user signed in
    auth: str
    secret: str
    authenticated: datetime | None = None  # when the user last proved who they are, with a second factor if one is on
    must_enrol: bool = False
    must_accept: bool = False  # the present version of the terms

    @property
    def is_usable(self) -> bool:
        """Whether the user can continue, without a step that the sign-in still needs."""
        return not (self.must_enrol or self.must_accept)

    @property
    def is_proven(self) -> bool:
        """Whether the user has proved who they are in this session.

        Not if another provider has signed them in silently, or a link in a mail has.
        """
        return self.authenticated is not None

    @property
    def auth_time(self) -> int:
        """When the user authenticated, in Unix seconds; 0 if no proof of it is known."""
        return int(self.created.timestamp()) if self.is_proven else 0

    @property
    def has_second_factor(self) -> bool:
        """Whether a second factor, or a passkey that has verified its user, was used to sign in."""
        return has_second_factor(self.auth)


class LoginChallenge(Struct, frozen=True):
    """A login whose second factor is missing."""

    user: User
    auth: str  # the first factor


class SessionStore:
    def __init__(
        self,
        database: Database,
        life_s: int,
        must_accept: Callable[[User], bool] = lambda _user: False,
        *,
        second_factor_of_all: bool = False,
    ) -> None:
        """``must_accept`` returns whether a user must accept the terms before a session can be used.

        ``second_factor_of_all``: every session needs a sign-in with a second factor, also one that is older than this
        requirement.
        """
        self._must_accept = must_accept
        self._second_factor_of_all = second_factor_of_all
        self._database = database
        self._life_s = life_s
        self._look_up = Batch(database, _LOOK_UP)
        self._start = guarded_by_user(database, "accounts.session_store.START", START, NEW_SESSION_COLUMNS)
        self._start_and_count = guarded_by_user(
            database, "accounts.session_store.START_AND_COUNT", START_AND_COUNT, NEW_SESSION_COLUMNS | SUCCESS_COLUMNS
        )
        step_up = NEW_SESSION_COLUMNS | ASSURANCE_COLUMN
        self._step_up = guarded_by_user(database, "accounts.session_store.STEP_UP", STEP_UP, step_up)
        self._step_up_and_count = guarded_by_user(
            database, "accounts.session_store.STEP_UP_AND_COUNT", STEP_UP_AND_COUNT, step_up | SUCCESS_COLUMNS
        )
        self._start_challenge = guarded_by_user(
            database,
            "accounts.session_store.START_CHALLENGE",
            _START_CHALLENGE,
            {"digest": "bytea", "life": "float", "auth": "text"},
        )

    async def why_ended(self, secret: str) -> str | None:
        """See `ended_session_store.why_ended`."""
        return await why_ended(self._database, digest(secret))

    async def look_up(
        self, secret: str, address: Address, *, may_enrol: bool = False, may_accept: bool = False
    ) -> Session | None:
        """Returns the session of a cookie, or None if there is none or it has ended. Reads the database each time.

        A session whose user must set up a second factor first is returned only with ``may_enrol``, one whose user must
        accept the terms first only with ``may_accept``. One whose user has a second factor, which is required, and has
        signed in without it is not returned: the user signs in again.
        """
        row = await self._look_up(digest=digest(secret))
        if row is None:
            return None
        user = User.from_row(row)
        must_enrol = row["must_enrol"] or (self._second_factor_of_all and not user.second_factors)
        must_accept = self._must_accept(user)
        if (must_enrol and not may_enrol) or (must_accept and not may_accept):
            return None
        if self._second_factor_of_all and not must_enrol and not has_second_factor(row["auth"]):
            return None
        if row["stale"]:
            await self._database.value(_TOUCH, id=row["id"], address=str(address))
        return Session(
            row["id"], user, row["created"], row["auth"], secret, row["authenticated"], must_enrol, must_accept
        )

    async def start(
        self,
        user: User,
        authentication: AuthenticationContext,
        address: Address,
        device: str,
        *,
        session: str = "",
        visit: str = "",
        must_enrol: bool = False,
        is_sign_in: bool = True,
        success: Mapping[str, Any] | None = None,
        extension: SignInExtension | None = None,
    ) -> Session:
        """Starts a session and ends the sessions of the cookies that the browser sent (``session`` and ``visit``).

        ``authentication`` says how and when the user has signed in. ``must_enrol``: the session can only be used to set
        up a second factor. ``is_sign_in`` adds it to the user's history; a session that replaces another after a change
        is not a sign-in. ``success`` has the values of SUCCESS_COLUMNS, if the correct password or the passkey has not
        been counted yet. Then ``extension`` replaces the statement, unless the user must do something first.

        Raises InvalidCredentials if the user was revoked since it was read, and TooManyAttempts if a counter of the
        login is blocked. Then the sessions of the cookies have ended, too.
        """
        if user.is_guest:  # whatever is linked to a guest: only the game signs a guest in
            raise InvalidCredentials
        # A statement of its own, because it may wait for a transaction that is ending the session.
        replaced = [digest(old) for old in (session, visit) if old]
        sid, old_auth = await self._replace(user.user_id, replaced) if session else (None, None)
        secret, session_id = secret_token(), record_id()
        values = dict(success or {})
        must_accept = self._must_accept(user)
        start = self._start_and_count if success else self._start
        if must_enrol or must_accept or not success:
            extension = None
        if assurance := assurance_change(old_auth, authentication.auth):
            start = self._step_up_and_count if success else self._step_up
            values["assurance"] = assurance
        elif extension:
            start = extension.statement
            values |= extension.values
        row = await start(
            **values,
            user_id=user.user_id,
            valid_from=user.valid_from,
            digest=digest(secret),
            id=session_id,
            life=float(self._life_s),
            address=str(address),
            device=device,
            auth=authentication.auth,
            visit=digest(visit) if visit else None,
            signed_in=authentication.signed_in,
            authenticated=authentication.proved,
            is_fresh=authentication.is_fresh,
            must_enrol=must_enrol,
            is_sign_in=is_sign_in,
            sid=sid,
        )
        if sid and (row is None or row["wait"] is not None):  # nothing continues the session that has ended
            await self._database.transaction(end_site_sessions, user.user_id, sids=[sid])
        if row is None:
            raise InvalidCredentials
        raise_if_blocked(row["wait"])
        if assurance:
            self._database.publish_topic(PUSH_TOPIC)
        elif extension:
            extension.receive_row(row)
        started = Session(session_id, user, row["created"], authentication.auth, secret, row["authenticated"])
        return replace(started, must_enrol=must_enrol, must_accept=must_accept)

    async def mark_authenticated(self, session_id: str) -> None:
        """Records that the user of this session has just proved who they are."""
        await self._database.value(_MARK_AUTHENTICATED, id=session_id)

    async def list(self, user_id: str) -> list[SessionEntry]:
        return [SessionEntry(**dict(row)) for row in await self._database.rows(_LIST, user_id=user_id)]

    async def end(self, user_id: str, session_id: str) -> bool:
        """Returns False if the user has no such session."""
        return await self._database.transaction(end_session, user_id, session_id)

    async def _replace(self, user_id: str, digests: Sequence[bytes]) -> tuple[str | None, str | None]:
        """Ends the sessions with these digests. Returns sid and ``auth`` of one that belongs to the user."""
        row = await self._database.row(_REPLACE, digests=list(digests), user_id=user_id, life=float(self._life_s))
        assert row is not None
        if row["is_of_another_user"]:
            await self._database.transaction(end_sessions_by_digest, digests)
        return row["sid"], row["auth"]

    async def start_challenge(self, user: User, auth: str = PASSWORD) -> str:
        """Returns the secret that lets this browser, and no other, send the second factor after the first, ``auth``."""
        secret = secret_token()
        row = await self._start_challenge(
            user_id=user.user_id, valid_from=user.valid_from, digest=digest(secret), life=float(CHALLENGE_S), auth=auth
        )
        if row is None:
            raise InvalidCredentials
        return secret

    async def find_challenge(self, secret: str) -> LoginChallenge | None:
        """Returns the login whose second factor is missing, or None if the challenge has expired or does not exist."""
        row = await self._database.row(_CHALLENGED_USER, digest=digest(secret))
        return LoginChallenge(User.from_row(row), row["auth"]) if row else None

    async def drop_challenge(self, secret: str) -> None:
        await self._database.value(_DROP_CHALLENGE, digest=digest(secret))
