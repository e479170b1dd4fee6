"""Users in the database. One method, one promise."""

from typing import Any

from sqlalchemy import bindparam, select

from sso.accounts.issue_guard import NOW, guarded_by_user
from sso.accounts.model import User, login_key, stored_login
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database, Runner, Transaction
from sso.db.statement import Statement
from sso.db.tables import users

_BY_ID = Statement(select(users).where(users.c.user_id == bindparam("user_id")))
_BY_LOGINS = Statement(
    """SELECT item.n, u.* FROM unnest(CAST(:login_keys AS text[])) WITH ORDINALITY AS item (login_key, n)
    JOIN users u ON u.login_key = item.login_key"""
)
_LIST = Statement(
    """SELECT * FROM users WHERE :search = '' OR login ILIKE :pattern OR user_id = :search
    ORDER BY length(user_id), user_id LIMIT :most OFFSET :skip"""
)
_BY_IDS = Statement(
    """SELECT item.n, u.* FROM unnest(CAST(:user_ids AS text[])) WITH ORDINALITY AS item (id, n)
    JOIN users u ON u.user_id = item.id"""
)
# The holder of a user JWT: nobody, if the sign-in that it derives from was ended.
_HOLDERS = Statement(
    """SELECT item.n, u.* FROM unnest(CAST(:user_ids AS text[]), CAST(:sign_ins AS text[]))
        WITH ORDINALITY AS item (id, sign_in, n)
    JOIN users u ON u.user_id = item.id
    WHERE NOT EXISTS (SELECT FROM sign_ins s WHERE s.id = item.sign_in AND s.ended)"""
)
_SET_PASSWORD = Statement(
    """UPDATE users SET password_hash = :password_hash
    WHERE user_id = :user_id AND coalesce(CAST(:valid_from AS bigint), valid_from) = valid_from RETURNING user_id"""
)
_REHASH = Statement(
    "UPDATE users SET password_hash = :new WHERE user_id = :user_id AND password_hash = :old RETURNING user_id"
)
_SET_DISABLED = Statement("UPDATE users SET disabled = :disabled WHERE user_id = :user_id")
# Always later than before, and than this very second: what was issued within it is void, too.
_VOID = Statement(
    """UPDATE users SET valid_from = greatest(valid_from, floor(extract(epoch FROM clock_timestamp()))) + 1
    WHERE user_id = :user_id"""
)
_USE_TOTP_STEP = Statement(
    """UPDATE users SET totp_last_step = :step
    WHERE user_id = :user_id AND totp_last_step < :step RETURNING user_id"""
)
# Rows are locked in the order of their keys, as a batch of sign-ins does that replaces several sessions of one user.
_END_OTHER_SESSIONS = Statement(
    """DELETE FROM browser_sessions WHERE digest IN (
        SELECT digest FROM browser_sessions WHERE user_id = :user_id AND id <> :session_id ORDER BY digest FOR UPDATE
    )"""
)
_END = tuple(
    Statement(
        f"""DELETE FROM {table} WHERE {key} IN (
            SELECT {key} FROM {table} WHERE user_id = :user_id ORDER BY {key} FOR UPDATE
        )"""  # noqa: S608 - the names are ours
    )
    for table, key in (
        ("sign_ins", "id"),
        ("session_tokens", "digest"),
        ("login_challenges", "digest"),
        ("email_codes", "user_id"),
    )
)
_VOUCH = (
    """SELECT * FROM unnest(CAST(:user_ids AS text[]), CAST(:valid_from AS bigint[]), CAST(:sign_ins AS text[]))
        WITH ORDINALITY AS item (user_id, valid_from, sign_in, n)""",
    f""", touched AS (
        SELECT id FROM sign_ins WHERE id = ANY (ARRAY(SELECT sign_in FROM still_valid))
            AND last_used < now() - interval '1 minute' FOR NO KEY UPDATE SKIP LOCKED
    ), used AS (
        UPDATE sign_ins SET last_used = now() WHERE id = ANY (ARRAY(SELECT id FROM touched))
    )
    SELECT n, {NOW} AS moment FROM still_valid""",  # noqa: S608 - the part is ours
)


class UserStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_id = Batch(database, _BY_IDS)
        self._holder = Batch(database, _HOLDERS)
        self._by_login = Batch(database, _BY_LOGINS)
        self._vouch = guarded_by_user(database, *_VOUCH)

    async def get(self, user_id: str) -> User | None:
        row = await self._by_id(user_id)
        return User.from_row(row) if row else None

    async def get_jwt_holder(self, user_id: str, sign_in_id: str) -> User | None:
        """The user of a user JWT, unless the sign-in that it derives from was ended."""
        row = await self._holder(user_id, sign_in_id)
        return User.from_row(row) if row else None

    async def by_login(self, login: str) -> User | None:
        row = await self._by_login(login_key(login))
        return User.from_row(row) if row else None

    async def find(self, id_or_login: str) -> User | None:
        return await self.get(id_or_login) or await self.by_login(id_or_login)

    async def list(self, search: str = "", most: int = 100, skip: int = 0) -> list[User]:
        escaped = stored_login(search).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        found = await self._database.rows(_LIST, search=search, pattern=f"%{escaped}%", most=most, skip=skip)
        return [User.from_row(row) for row in found]

    async def set_password(self, user_id: str, password_hash: str, valid_from: int | None = None) -> User | None:
        """From now on only the new password works, and everything issued before is void. The user as they are now.

        ``valid_from`` names the state of the user that the change was decided by. None, and no change, if everything of
        the user has ended since: a change that waited must not undo the one that ended it.
        """

        async def work(tx: Transaction) -> User | None:
            values = {"user_id": user_id, "password_hash": password_hash, "valid_from": valid_from}
            if await tx.value(_SET_PASSWORD, **values) is None:
                return None
            await revoke_everything(tx, user_id)
            return await by_id(tx, user_id)

        return await self._database.transaction(work)

    async def rehash(self, user: User, new_hash: str) -> None:
        """The same password under a hash of today's cost; nothing else changes."""
        await self._database.value(_REHASH, user_id=user.user_id, old=user.password_hash, new=new_hash)

    async def set_disabled(self, user_id: str, disabled: bool) -> None:
        """A disabled user can do nothing, and everything issued before is void, also after they are enabled again."""

        async def work(tx: Transaction) -> None:
            await tx.value(_SET_DISABLED, user_id=user_id, disabled=disabled)
            if disabled:
                await revoke_everything(tx, user_id)

        await self._database.transaction(work)

    async def revoke_all(self, user_id: str) -> None:
        """Everything issued before is void; the password stays."""
        await self._database.transaction(lambda tx: revoke_everything(tx, user_id))

    async def revoke_all_except(self, user_id: str, session_id: str) -> None:
        """Everything issued before is void, except the browser session with this id."""
        await self._database.transaction(lambda tx: revoke_everything(tx, user_id, session_id))

    async def revalidate(self, user: User, sign_in_id: str = "") -> int | None:
        """The database's moment, in Unix seconds, at which nothing of the user's had ended since they were read.

        Whatever is issued with this moment, or an earlier one, is void once everything is ended. The sign-in, if one is
        given, counts as used now.
        """
        row = await self._vouch(user.user_id, user.valid_from, sign_in_id)
        return row["moment"] if row else None

    async def use_totp_step(self, user_id: str, step: int) -> bool:
        """False if this step or a later one has been used: a code works once."""
        return await self._database.value(_USE_TOTP_STEP, user_id=user_id, step=step) is not None


async def by_id(tx: Runner, user_id: str) -> User:
    """Returns a user that exists."""
    return User.from_row(await tx.row(_BY_ID, user_id=user_id))


async def revoke_everything(tx: Runner, user_id: str, kept_session_id: str = "") -> None:
    """From now on, whatever was issued to the user before is void: sessions, tokens, half-finished logins, codes.

    The browser session with the id ``kept_session_id`` stays, if one is given.
    """
    await tx.value(_VOID, user_id=user_id)
    await tx.value(_END_OTHER_SESSIONS, user_id=user_id, session_id=kept_session_id)
    for statement in _END:
        await tx.value(statement, user_id=user_id)


def exportable_fields(user: User) -> dict[str, Any]:
    """What may be shown of a user: no hash, no secret."""
    return {
        "user_id": user.user_id,
        "login": user.login,
        "nick": user.nick,
        "country": user.country,
        "lang": user.lang,
        "level": user.level,
        "tags": list(user.tags),
        "purchases": list(user.purchases),
        "email_verified": user.email_verified,
        "phone": user.phone,
        "phone_verified": user.phone_verified,
        "email_2fa": user.email_2fa,
        "meta": user.meta,
    }
