"""Users in the database. Each method is one transaction."""

from collections.abc import Sequence
from typing import Any

from sso.accounts.ended_session_store import REMEMBER_ENDED
from sso.accounts.guarded_statements import NOW, guarded_by_user
from sso.accounts.history.events import EventKind, record_event
from sso.accounts.model import User, login_key, stored_login
from sso.accounts.token_holder import IS_SIGNED_IN
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.backchannel_logout.store import end_site_sessions
from sso.core.ids import is_user_id
from sso.db.batch.statement import BatchStatement
from sso.db.batch.statement_batch import Batch
from sso.db.database import Database
from sso.db.row_statements import insert_statement, update_statement
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction

REVOKED_LINKS = ("password_reset", "email_change")  # purposes of mailed links that a revocation makes invalid
# Those that an operator makes invalid who sets another address: they were sent to addresses before.
ADDRESS_LINKS = (*REVOKED_LINKS, "email_undo", "email_verification")

# The login_key of a guest, who has no login: keys of logins are case-folded, so none of them is equal.
GUEST_LOGIN_KEY = "'GUEST ' || user_id"

_GET = Statement("SELECT * FROM users WHERE user_id = :user_id")
_GET_BY_IDS = BatchStatement(
    "SELECT item.n, u.* FROM {items} JOIN users u ON u.user_id = item.user_id", columns={"user_id": "text"}
)
_GET_BY_LOGINS = BatchStatement(
    "SELECT item.n, u.* FROM {items} JOIN users u ON u.login_key = item.login_key", columns={"login_key": "text"}
)
_GET_JWT_HOLDERS = BatchStatement(
    f"SELECT item.n, u.* FROM {{items}} JOIN users u ON u.user_id = item.user_id WHERE {IS_SIGNED_IN}",
    columns={"user_id": "text", "sign_in": "text"},
)
_NEXT_USER_ID = Statement(
    """WITH next AS MATERIALIZED (SELECT CAST(nextval('user_ids') AS text) AS user_id)
    SELECT user_id, EXISTS (SELECT FROM users u WHERE u.user_id = next.user_id)
        OR EXISTS (SELECT FROM erased_users e WHERE e.user_id = next.user_id) AS is_used
    FROM next"""
)
_IS_LOGIN_USED = Statement("SELECT EXISTS (SELECT FROM users WHERE login_key = :login_key)")
_CREATE = Statement(
    """INSERT INTO users
        (user_id, login, login_key, password_hash, nick, lang, email_verified, terms_version, terms_accepted)
    VALUES (:user_id, :login, :login_key, :password_hash, :nick, :lang, :email_verified,
        coalesce(CAST(:accepted_terms AS text), ''), CASE WHEN CAST(:accepted_terms AS text) IS NOT NULL THEN now() END)
    ON CONFLICT DO NOTHING RETURNING *"""
)
_REHASH = Statement(
    "UPDATE users SET password_hash = :new WHERE user_id = :user_id AND password_hash = :old RETURNING user_id"
)
# The next second, and always later than before: tokens that were issued within the current second are void as well.
# Tokens that are issued afterwards, before that time, say so (`token_holder.issued_after`).
_ADVANCE_VALID_FROM = Statement(
    """UPDATE users SET valid_from = greatest(valid_from, floor(extract(epoch FROM clock_timestamp()))) + 1
    WHERE user_id = :user_id"""
)
_CAN_SIGN_IN = Statement(
    """SELECT password_hash IS NOT NULL OR EXISTS (SELECT FROM passkeys p WHERE p.user_id = u.user_id)
        OR EXISTS (SELECT FROM linked_identities l JOIN identity_providers p USING (provider_id)
            WHERE l.user_id = u.user_id AND NOT p.disabled)
        OR (login = '' AND EXISTS (SELECT FROM device_keys k WHERE k.user_id = u.user_id))
    FROM users u WHERE user_id = :user_id"""
)
# Rows are locked in key order, as in the batch that starts sessions, to avoid deadlocks.
_END_OTHER_SESSIONS = Statement(
    f"""WITH ended AS (
        DELETE FROM browser_sessions WHERE digest IN (
            SELECT digest FROM browser_sessions WHERE user_id = :user_id AND id <> :session_id
            ORDER BY digest FOR UPDATE
        ) RETURNING digest, user_id
    )
    {REMEMBER_ENDED}"""
)
_SID = Statement("SELECT coalesce(sid, id) FROM browser_sessions WHERE user_id = :user_id AND id = :session_id")
_DELETE_ISSUED = {
    table: Statement(
        f"""DELETE FROM {table} WHERE {key} IN (
            SELECT {key} FROM {table} WHERE user_id = :user_id ORDER BY {key} FOR UPDATE
        )"""
    )
    for table, key in (
        ("sign_ins", "id"),
        ("session_tokens", "digest"),
        ("login_challenges", "digest"),
        ("email_codes", "user_id"),
    )
}
# The tokens stay, without effect, so that a program that uses one can be told about the ban.
_END_SIGN_INS = Statement(
    """UPDATE sign_ins SET ended = true WHERE id IN (
        SELECT id FROM sign_ins WHERE user_id = :user_id AND NOT ended ORDER BY id FOR UPDATE
    )"""
)
_LOCK = Statement("SELECT * FROM users WHERE user_id = :user_id FOR UPDATE")
_LOCK_BY_ID_OR_LOGIN = Statement("SELECT * FROM users WHERE user_id = :user_id OR login_key = :login_key FOR UPDATE")
_PASSWORD_HASH = Statement("SELECT password_hash FROM users WHERE user_id = :user_id OR login_key = :login_key")
_IS_ERASED = Statement("SELECT EXISTS (SELECT FROM erased_users WHERE user_id = :user_id)")
_REVOKE_LINKS = Statement(
    """DELETE FROM mailed_links WHERE digest IN (
        SELECT digest FROM mailed_links WHERE user_id = :user_id AND purpose = ANY (CAST(:purposes AS text[]))
        ORDER BY digest FOR UPDATE
    )"""
)
_REVALIDATE = f""", stale_sign_ins AS (
        -- Sign-ins whose last use is more than a minute ago. Those that another transaction holds are left as they are.
        SELECT id FROM sign_ins WHERE id = ANY (ARRAY(SELECT sign_in FROM valid_items))
            AND last_used < now() - interval '1 minute' FOR NO KEY UPDATE SKIP LOCKED
    ), touched_sign_ins AS (
        UPDATE sign_ins SET last_used = now() WHERE id = ANY (ARRAY(SELECT id FROM stale_sign_ins))
    )
    SELECT n, {NOW} AS validated_at FROM valid_items"""


class UserStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._get = Batch(database, _GET_BY_IDS)
        self._get_by_login = Batch(database, _GET_BY_LOGINS)
        self._get_jwt_holder = Batch(database, _GET_JWT_HOLDERS)
        self._revalidate = guarded_by_user(database, "accounts.user_store.REVALIDATE", _REVALIDATE, {"sign_in": "text"})

    async def get(self, user_id: str) -> User | None:
        row = await self._get(user_id=user_id)
        return User.from_row(row) if row else None

    async def get_jwt_holder(self, user_id: str, sign_in_id: str) -> User | None:
        """Returns the user of a user JWT, or None if the sign-in that the JWT derives from was ended."""
        row = await self._get_jwt_holder(user_id=user_id, sign_in=sign_in_id)
        return User.from_row(row) if row else None

    async def get_by_login(self, login: str) -> User | None:
        row = await self._get_by_login(login_key=login_key(login))
        return User.from_row(row) if row else None

    async def find(self, id_or_login: str) -> User | None:
        return await self.get(id_or_login) or await self.get_by_login(id_or_login)

    async def rehash(self, user: User, new_hash: str) -> None:
        """Stores a new hash of the same password, made with the current parameters."""
        await self._database.value(_REHASH, user_id=user.user_id, old=user.password_hash, new=new_hash)

    async def revoke_all(self, user_id: str) -> None:
        """Revokes everything issued to the user. The password stays valid."""
        await self._database.transaction(revoke_and_record, user_id)

    async def revoke_all_except(self, user_id: str, session_id: str) -> None:
        """Revokes everything issued to the user except the browser session with this id."""
        await self._database.transaction(revoke_and_record, user_id, session_id)

    async def revalidate(self, user: User, sign_in_id: str = "") -> int | None:
        """Returns the database time, in Unix seconds, or None if the user was revoked since it was read.

        A token that is issued with this time, or an earlier one, becomes void with the next revocation. The sign-in,
        if one is given, is marked as used.
        """
        row = await self._revalidate(user_id=user.user_id, valid_from=user.valid_from, sign_in=sign_in_id)
        return row["validated_at"] if row else None


async def get_user(tx: Runner, user_id: str) -> User:
    """Returns a user that is known to exist."""
    return User.from_row(await tx.row(_GET, user_id=user_id))


async def find_user(runner: Runner, user_id: str) -> User | None:
    row = await runner.row(_GET, user_id=user_id)
    return User.from_row(row) if row else None


async def lock_user(tx: Runner, user_id: str) -> User | None:
    """Makes other changes of the user wait until the transaction ends. Changes lock the user before other rows."""
    row = await tx.row(_LOCK, user_id=user_id)
    return User.from_row(row) if row else None


async def lock_unchanged_user(tx: Runner, user: User) -> bool:
    """Locks the user as `lock_user` does. Returns False if the user was disabled or revoked since it was read."""
    locked = await lock_user(tx, user.user_id)
    return locked is not None and not locked.disabled and locked.valid_from == user.valid_from


async def lock_users(tx: Transaction, user_id: str | None, login: str) -> Sequence[User]:
    """Returns the users with the id or the login, none to two of them, and locks them as `lock_user` does."""
    rows = await tx.rows(_LOCK_BY_ID_OR_LOGIN, user_id=user_id or "", login_key=login_key(login))
    return [User.from_row(row) for row in rows]


async def read_password_hash(runner: Runner, user_id: str | None, login: str) -> str | None:
    """Returns the hash of the user with the id or the login; None if there is none, or no password."""
    password_hash: str | None = await runner.value(_PASSWORD_HASH, user_id=user_id or "", login_key=login_key(login))
    return password_hash


async def insert_user(tx: Transaction, user_id: str, values: dict[str, Any]) -> None:
    await tx.value(insert_statement("users", ("user_id", *values)), user_id=user_id, **values)


async def update_user(tx: Transaction, user_id: str, values: dict[str, Any]) -> None:
    await tx.value(update_statement("users", "user_id", values), user_id=user_id, **values)


async def was_erased(tx: Runner, user_id: str) -> bool:
    is_erased: bool = await tx.value(_IS_ERASED, user_id=user_id)
    return is_erased


async def unused_user_id(tx: Runner) -> str:
    """Returns the next user id that was never used: documents of desired state may also name ids."""
    while True:
        row = await tx.row(_NEXT_USER_ID)
        assert row is not None
        assert is_user_id(row["user_id"])
        if not row["is_used"]:
            return str(row["user_id"])


async def is_login_used(tx: Runner, login: str) -> bool:
    is_used: bool = await tx.value(_IS_LOGIN_USED, login_key=login_key(login))
    return is_used


async def can_sign_in(tx: Runner, user_id: str) -> bool:
    """Returns whether the user has a password, a passkey or an identity at another provider. A guest needs a key.

    A change that removes one of them locks the user's row first and calls this afterwards, so that two concurrent
    changes cannot remove the last two.
    """
    has_way: bool = await tx.value(_CAN_SIGN_IN, user_id=user_id)
    return has_way


async def create_user(
    tx: Runner,
    login: str,
    password_hash: str | None,
    nick: str,
    lang: str,
    *,
    email_verified: bool,
    accepted_terms: str | None = None,
) -> User | None:
    """Creates a user who registers. Returns None if the login is taken; of several concurrent calls, one creates it.

    ``accepted_terms`` is the version of the terms, None if there is nothing to accept.
    """
    while True:
        row = await tx.row(
            _CREATE,
            user_id=await unused_user_id(tx),
            login=stored_login(login),
            login_key=login_key(login),
            password_hash=password_hash,
            nick=nick,
            lang=lang,
            email_verified=email_verified,
            accepted_terms=accepted_terms,
        )
        if row:
            # Conditions of roles and groups compare the domain of the login, so its changes are in the audit trail.
            actor, user_id = AuditActor(user_id=row["user_id"]), row["user_id"]
            await trail.write(tx, actor, "user.create", user_id, None, {"login": row["login"]})
            return User.from_row(row)
        if await is_login_used(tx, login):
            return None


async def revoke_everything(tx: Transaction, user_id: str, kept_session_id: str = "", *, is_ban: bool = False) -> None:
    """Revokes everything issued to the user: sessions, tokens, unfinished logins, mailed codes and mailed links that
    change the password or the address. Sites that the user has signed in to are notified.

    The browser session with the id ``kept_session_id`` stays, if one is given. After a ban, the sign-ins
    of programs and the codes of sites end, but are not deleted: their holders are told why.
    """
    await tx.value(_ADVANCE_VALID_FROM, user_id=user_id)
    await tx.value(_END_OTHER_SESSIONS, user_id=user_id, session_id=kept_session_id)
    if is_ban:
        await tx.value(_END_SIGN_INS, user_id=user_id)
    for table, statement in _DELETE_ISSUED.items():
        if not (is_ban and table in ("sign_ins", "session_tokens")):
            await tx.value(statement, user_id=user_id)
    await revoke_links(tx, user_id)
    kept_sid = await tx.value(_SID, user_id=user_id, session_id=kept_session_id) if kept_session_id else None
    await end_site_sessions(tx, user_id, kept_sid=kept_sid, keeps_codes=is_ban)


async def revoke_links(tx: Runner, user_id: str, purposes: Sequence[str] = REVOKED_LINKS) -> None:
    """Makes mailed links invalid: those that change the password or the address, unless other purposes are named."""
    await tx.value(_REVOKE_LINKS, user_id=user_id, purposes=list(purposes))


async def revoke_and_record(tx: Transaction, user_id: str, kept_session_id: str = "") -> None:
    """Like `revoke_everything`, with an event in the history of the user."""
    await revoke_everything(tx, user_id, kept_session_id)
    await record_event(tx, user_id, EventKind.SIGNED_OUT_ELSEWHERE)
