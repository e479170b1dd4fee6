"""The games and programs that a user is signed in to, as the account page lists them (table ``sign_ins``)."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import application_ids
from sso.accounts.ports import ApplicationDirectory
from sso.core.ids import digest
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction

EXPIRED_JWT_S = 30 * 86400  # some endpoints accept a user JWT that has expired this long ago

# Sign-ins of one application from one address are one entry.
_LIST = Statement(
    """SELECT app_id, gapp_id, address, min(created) AS first_used, max(last_used) AS last_used, array_agg(id) AS ids
    FROM sign_ins WHERE user_id = :user_id AND expires > now() AND NOT ended
        AND last_used > now() - make_interval(secs => CAST(:idle_s AS float))
    GROUP BY app_id, gapp_id, address ORDER BY max(last_used) DESC LIMIT 100"""
)
# The user JWTs of an ended sign-in are void while this row exists, which is longer than any of them can be renewed.
_END = Statement(
    """UPDATE sign_ins SET ended = true, expires = now() + make_interval(secs => CAST(:keep_s AS float))
    WHERE id IN (
        SELECT id FROM sign_ins WHERE user_id = :user_id AND id = ANY (CAST(:ids AS text[])) AND NOT ended
        ORDER BY id FOR UPDATE
    ) RETURNING app_id, gapp_id"""
)
_OF_TOKEN = Statement("SELECT user_id, sign_in FROM session_tokens WHERE digest = :digest AND expires > now()")
_END_TOKENS = Statement(
    """DELETE FROM session_tokens WHERE digest IN (
        SELECT digest FROM session_tokens WHERE user_id = :user_id AND sign_in = ANY (CAST(:ids AS text[]))
        ORDER BY digest FOR UPDATE
    )"""
)


class SignedInGame(Struct, frozen=True):
    """The sign-ins of one application from one address."""

    title: str  # "" if no application was named at the sign-in
    ids: tuple[str, ...]
    address: str
    first_used: datetime
    last_used: datetime


class SignedInGames:
    def __init__(
        self, database: Database, applications: ApplicationDirectory, token_s: int, jwt_s: int, max_s: int
    ) -> None:
        self._database = database
        self._applications = applications
        self._idle_s = float(max(token_s, jwt_s + EXPIRED_JWT_S))  # all tokens of an older sign-in have expired
        self._keep_s = float(max_s + EXPIRED_JWT_S)

    async def list(self, user_id: str) -> list[SignedInGame]:
        rows = await self._database.rows(_LIST, user_id=user_id, idle_s=self._idle_s)
        titles = {
            pair: await self._applications.title(application_ids(*pair))
            for pair in {(row["app_id"], row["gapp_id"]) for row in rows}
        }
        return [
            SignedInGame(
                titles[row["app_id"], row["gapp_id"]],
                tuple(row["ids"]),
                row["address"],
                row["first_used"],
                row["last_used"],
            )
            for row in rows
        ]

    async def end_with_token(self, token: str) -> None:
        """Ends the sign-in of a session token. A token that is unknown or has ended changes nothing."""
        row = await self._database.row(_OF_TOKEN, digest=digest(token))
        if row is not None:
            await self.end(row["user_id"], [row["sign_in"]])

    async def end(self, user_id: str, ids: Sequence[str]) -> None:
        """Revokes the session tokens and user JWTs of these sign-ins of the user."""
        await self._database.transaction(self.end_in, user_id, ids)

    async def end_in(self, tx: Transaction, user_id: str, ids: Sequence[str]) -> None:
        """Like `end`, in the transaction of the caller."""
        ended = await tx.row(_END, user_id=user_id, ids=list(ids), keep_s=self._keep_s)
        await tx.value(_END_TOKENS, user_id=user_id, ids=list(ids))
        if ended:  # they belong to the same applications
            await record_event(tx, user_id, EventKind.GAME_ENDED, **dict(ended))
