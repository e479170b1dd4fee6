"""Keys of devices in the database: the sign-in with one, and the guest that a new one creates."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sso.accounts.authentication_context import GUEST_AUTH
from sso.accounts.bans.identity_store import key_identity, link_identity, refuse_banned
from sso.accounts.guarded_statements import NOW
from sso.accounts.model import GUEST_TAG, User
from sso.accounts.session_token_statements import ISSUE_COLUMNS, ISSUE_CTES
from sso.accounts.user_store import GUEST_LOGIN_KEY, unused_user_id
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.ban import Ban
from sso.core.ids import record_id
from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement import BatchStatement, by_index
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction

MAX_CLOCK_DIFFERENCE_S = 300  # between the time of a request and the database's
MAX_OLD_KEYS = 1000  # that one call of `unseen_guests` looks at
_NONCE_S = 2 * MAX_CLOCK_DIFFERENCE_S + 60  # a request from the future is accepted for twice that time

_BAN = "ban_in_force({0}.bans, ARRAY[CAST({1}.app_id AS int), CAST({1}.gapp_id AS int)])"
# One statement checks that the request is new, finds the user of the key and issues the session tokens.
_SIGN_IN = BatchStatement(
    f"""WITH item AS (
        SELECT * FROM {{items}}
    ), owned AS (
        -- The items whose key is known.
        SELECT item.*, k.user_id FROM item JOIN device_keys k ON {by_index("k.digest", "item.device_key")}
    ), valid_users AS (
        -- Their users, locked against revocation.
        SELECT * FROM users WHERE user_id = ANY (ARRAY(SELECT user_id FROM owned)) AND NOT disabled
        ORDER BY user_id FOR SHARE {{if_locked}}
    ), valid_keys AS (
        -- Their keys as they are now: a change that the lock has waited for may have removed or moved them. A lock that
        -- is weaker than FOR SHARE would not read a moved key again.
        SELECT digest, user_id FROM device_keys
        WHERE digest = ANY (ARRAY(SELECT device_key FROM owned JOIN valid_users USING (user_id)))
        ORDER BY digest FOR SHARE {{if_locked}}
    ), first_items AS (
        -- One item for each nonce of a key.
        SELECT DISTINCT ON (o.nonce) o.*, {_BAN.format("valid_users", "o")} AS ban
        FROM owned o JOIN valid_users USING (user_id)
            JOIN valid_keys k ON k.digest = o.device_key AND k.user_id = o.user_id
        ORDER BY o.nonce, o.n
    ), new_nonces AS (
        INSERT INTO device_nonces (digest, expires)
        SELECT nonce, now() + interval '{_NONCE_S} s' FROM first_items ORDER BY nonce
        ON CONFLICT DO NOTHING RETURNING digest
    ), valid_items AS (
        -- The items that have not been sent before, of users who are not banned.
        SELECT * FROM first_items WHERE nonce = ANY (ARRAY(SELECT digest FROM new_nonces)) AND ban IS NULL
    ), stale_keys AS (
        SELECT digest FROM device_keys WHERE digest = ANY (ARRAY(SELECT device_key FROM valid_items))
            AND last_used < now() - interval '1 minute' FOR NO KEY UPDATE SKIP LOCKED
    ), used_keys AS (
        UPDATE device_keys SET last_used = now() WHERE digest = ANY (ARRAY(SELECT digest FROM stale_keys))
    ){ISSUE_CTES}
    SELECT item.n, {NOW} AS validated_at, o.user_id IS NOT NULL AS is_known, a.n IS NOT NULL AS is_new,
        {_BAN.format("u", "item")} AS ban, u.*
    FROM item LEFT JOIN owned o ON o.n = item.n LEFT JOIN valid_users u ON u.user_id = o.user_id
        LEFT JOIN valid_keys k ON k.digest = o.device_key AND k.user_id = o.user_id LEFT JOIN accepted a ON a.n = item.n
    WHERE o.user_id IS NULL OR u.user_id IS NOT NULL AND k.digest IS NOT NULL""",
    {"nonce": "bytea", **ISSUE_COLUMNS},
)
# Of several concurrent calls with one key, one inserts it. Only then, the user is inserted.
_CREATE = Statement(
    f"""WITH new_key AS (
        INSERT INTO device_keys (digest, id, user_id, algorithm, of_guest)
        VALUES (:digest, :id, :user_id, :algorithm, true) ON CONFLICT (digest) DO NOTHING RETURNING user_id
    )
    INSERT INTO users (user_id, login, login_key, nick, tags)
    SELECT user_id, '', {GUEST_LOGIN_KEY}, 'Guest ' || user_id, ARRAY['{GUEST_TAG}'] FROM new_key RETURNING user_id"""
)
_LIST = Statement(
    """SELECT id, algorithm, created, last_used FROM device_keys WHERE user_id = :user_id
    ORDER BY last_used DESC, id LIMIT 100"""
)
_DELETE = Statement("DELETE FROM device_keys WHERE user_id = :user_id AND id = :id RETURNING digest")
# Sign-ins from before sign-ins named their key may have been made with this one.
_KEY_SIGN_INS = Statement(
    f"""SELECT id FROM sign_ins WHERE user_id = :user_id AND NOT ended
        AND (device_key = :key OR device_key IS NULL AND auth = '{GUEST_AUTH}') LIMIT 1000"""
)
_IS_OLD_KEY = "of_guest AND last_used < now() - make_interval(days => :days)"
# A guest without a key or sign-in that was used within the last days. A store account does not get lost with a device.
_IS_UNSEEN_GUEST = """u.deletion_due IS NULL
        AND NOT EXISTS (SELECT FROM device_keys other
            WHERE other.user_id = u.user_id AND other.last_used >= now() - make_interval(days => :days))
        AND NOT EXISTS (SELECT FROM sign_ins s
            WHERE s.user_id = u.user_id AND s.last_used >= now() - make_interval(days => :days))
        AND NOT EXISTS (SELECT FROM linked_identities l WHERE l.user_id = u.user_id)"""
_OLD_KEYS = Statement(
    f"""WITH old_keys AS MATERIALIZED (
        SELECT user_id, last_used, digest FROM device_keys
        WHERE {_IS_OLD_KEY} AND (last_used, digest) > (CAST(:last_used AS timestamptz), CAST(:digest AS bytea))
        ORDER BY last_used, digest LIMIT CAST(:most AS bigint)
    )
    SELECT k.*, EXISTS (SELECT FROM users u WHERE u.user_id = k.user_id AND {_IS_UNSEEN_GUEST}) AS is_unseen
    FROM old_keys k ORDER BY last_used, digest"""
)
_IS_UNSEEN = Statement(
    f"""SELECT EXISTS (SELECT FROM users u WHERE u.user_id = :user_id AND {_IS_UNSEEN_GUEST}
        AND EXISTS (SELECT FROM device_keys WHERE user_id = u.user_id AND {_IS_OLD_KEY}))"""
)


class KeyPosition(NamedTuple):
    """A key, in the order of their last uses."""

    last_used: datetime
    digest: bytes


BEFORE_ALL_KEYS = KeyPosition(datetime.fromtimestamp(0, UTC), b"")


class KeySignIn(NamedTuple):
    """The result of a request that a device key has signed."""

    is_known: bool  # the key has a user
    is_new: bool  # the request has not been sent before, so that tokens were issued
    validated_at: int
    user: User | None  # None if the key is not known
    ban: Ban | None = None  # at one of the applications of the request, or everywhere: no tokens were issued


class DeviceKeyStore:
    def __init__(self, database: Database, appeal_url: str = "") -> None:
        self._database = database
        self._appeal_url = appeal_url
        self._sign_in = SkipLockedBatch(database, _SIGN_IN)

    async def sign_in(self, nonce: bytes, tokens: dict[str, Any]) -> KeySignIn | None:
        """Issues the tokens to the user of their key, unless the nonce was used.

        Returns None for a disabled user, and if the key was removed or moved meanwhile.
        """
        row = await self._sign_in(nonce=nonce, **tokens)
        if row is None:
            return None
        user = User.from_row(row) if row["is_known"] else None
        ban = Ban.from_json(row["ban"]) if row["ban"] else None
        return KeySignIn(row["is_known"], row["is_new"], row["validated_at"], user, ban)

    async def create_guest(self, key: bytes, algorithm: str, address: str, application_ids: Collection[int]) -> None:
        """Creates the guest of a key, unless another call has done so.

        Raises Banned if the key belonged to a user who is banned everywhere, or at one of the applications.
        """
        identity = key_identity(key)
        await self._database.transaction(
            _create_guest, key, algorithm, address, identity, application_ids, self._appeal_url
        )


async def list_keys(runner: Runner, user_id: str) -> list[Row]:
    """Returns the keys of the user, the last used one first."""
    return await runner.rows(_LIST, user_id=user_id)


async def delete_key(tx: Transaction, user_id: str, key_id: str) -> bytes | None:
    """Returns the digest of the key, or None if the user has no such key."""
    key: bytes | None = await tx.value(_DELETE, user_id=user_id, id=key_id)
    return key


async def key_sign_ins(tx: Transaction, user_id: str, key: bytes) -> list[str]:
    """Returns the sign-ins of the user, whom the caller has locked, that were made with the key."""
    return [row["id"] for row in await tx.rows(_KEY_SIGN_INS, user_id=user_id, key=key)]


async def unseen_guests(runner: Runner, days: int, limit: int, after: KeyPosition) -> tuple[list[str], KeyPosition]:
    """Looks at the next keys of guests that were not used for this many days, in the order of their last uses.

    Returns the ids of at most ``limit`` guests who were not seen for so long, and the key after which the next call
    continues. So it does not read the guests again each time who are kept because of a sign-in or a store account.
    """
    position, guests = after, dict[str, None]()
    rows = await runner.rows(_OLD_KEYS, days=days, most=MAX_OLD_KEYS, **position._asdict())
    for row in rows:
        if len(guests) == limit:
            return list(guests), position
        position = KeyPosition(row["last_used"], row["digest"])
        if row["is_unseen"]:
            guests[row["user_id"]] = None
    return list(guests), position if len(rows) == MAX_OLD_KEYS else BEFORE_ALL_KEYS


async def is_unseen(tx: Transaction, user_id: str, days: int) -> bool:
    """Returns whether a guest, whom the caller has locked, was still not seen for this many days."""
    unseen: bool = await tx.value(_IS_UNSEEN, user_id=user_id, days=days)
    return unseen


async def _create_guest(
    tx: Transaction,
    key: bytes,
    algorithm: str,
    address: str,
    identity: bytes,
    application_ids: Collection[int],
    appeal_url: str,
) -> None:
    await refuse_banned(tx, identity, appeal_url, application_ids)
    user_id = await tx.value(_CREATE, digest=key, id=record_id(), user_id=await unused_user_id(tx), algorithm=algorithm)
    if user_id is not None:
        actor = AuditActor(user_id=user_id, address=address)
        await trail.write(tx, actor, "user.create", user_id, None, {"guest": True, "tags": [GUEST_TAG]})
        await link_identity(tx, user_id, identity)
