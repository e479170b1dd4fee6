"""The identities of banned users: keys of devices, and accounts at other providers. They are kept as digests.

Whoever was banned therefore cannot start again with the same identity, even after the account was erased. A ban of an
application or a project follows the identity to the user whom it is linked to next.
"""

from collections.abc import Collection

from sso.accounts.bans.store import insert_ban
from sso.accounts.errors import Banned
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.core.ban import Ban
from sso.core.ids import digest, record_id
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction

# The digests in SQL are those of `provider_identity` and `key_identity`.
_MARK = Statement(
    """INSERT INTO banned_identities (digest, ban_id)
    SELECT sha256(convert_to('identity:' || provider_id || ':' || subject, 'UTF8')), CAST(:ban_id AS text)
    FROM linked_identities WHERE user_id = :user_id
    UNION SELECT sha256(convert_to('key:' || encode(digest, 'hex'), 'UTF8')), CAST(:ban_id AS text)
    FROM device_keys WHERE user_id = :user_id ON CONFLICT DO NOTHING"""
)
_MARK_ONE = Statement(
    """INSERT INTO banned_identities (digest, ban_id)
    SELECT CAST(:digest AS bytea), id FROM user_bans WHERE user_id = :user_id ON CONFLICT DO NOTHING"""
)
# Without those that the user has as well: the identity may have belonged to the user before.
_FIND = Statement(
    """SELECT DISTINCT ON (b.application_id, b.project_id, b.until, b.reason)
        b.id AS ban_id, b.reason, b.until, b.application_id, b.project_id, b.note, b.author
    FROM banned_identities i JOIN user_bans b ON b.id = i.ban_id
    WHERE i.digest = :digest AND coalesce(b.until > extract(epoch FROM now()), true)
        AND NOT EXISTS (SELECT FROM user_bans own WHERE own.user_id = :user_id
            AND (own.application_id, own.project_id, own.until, own.reason)
                IS NOT DISTINCT FROM (b.application_id, b.project_id, b.until, b.reason))
    ORDER BY b.application_id, b.project_id, b.until, b.reason, b.created, b.id"""
)
_COVERS = Statement(
    """SELECT ban_in_force(jsonb_agg(jsonb_build_object('ban_id', b.id, 'reason', b.reason, 'until', b.until,
        'application_id', b.application_id, 'project_id', b.project_id)), CAST(:applications AS int[]))
    FROM banned_identities i JOIN user_bans b ON b.id = i.ban_id WHERE i.digest = :digest"""
)
# The bans of an erased user stay only if they keep identities from starting again; without the notes of the staff.
_FORGET = Statement(
    """WITH kept AS (
        UPDATE user_bans b SET note = '' WHERE user_id = :user_id
            AND EXISTS (SELECT FROM banned_identities i WHERE i.ban_id = b.id)
    )
    DELETE FROM user_bans b WHERE user_id = :user_id
        AND NOT EXISTS (SELECT FROM banned_identities i WHERE i.ban_id = b.id)"""
)


def provider_identity(provider_id: str, subject: str) -> bytes:
    """Returns the digest of an identity at another provider."""
    return digest(f"identity:{provider_id}:{subject}")


def key_identity(key: bytes) -> bytes:
    """Returns the digest of a device key, which is given by the digest that it is stored with."""
    return digest(f"key:{key.hex()}")


async def mark_identities(tx: Runner, user_id: str, ban_id: str) -> None:
    """Stores the digests of the identities that are linked to a user who is being banned."""
    await tx.value(_MARK, user_id=user_id, ban_id=ban_id)


async def refuse_banned(
    runner: Runner, identity: bytes, appeal_url: str, application_ids: Collection[int] = ()
) -> None:
    """Raises Banned if the identity was banned everywhere, or at one of the applications."""
    ban = await runner.value(_COVERS, digest=identity, applications=list(application_ids))
    if ban:
        raise Banned(Ban.from_json(ban), appeal_url)


async def link_identity(tx: Transaction, user_id: str, identity: bytes) -> list[Ban]:
    """Gives the user the bans of the identity, and the identity those of the user, when the two are linked.

    Returns the new bans of the user. The caller ends what was issued to the user in their scopes.
    """
    bans = []
    for row in await tx.rows(_FIND, digest=identity, user_id=user_id):
        ban = Ban(record_id(), row["reason"], row["until"], row["application_id"], row["project_id"])
        bans.append(ban)
        await insert_ban(tx, ban, user_id, row["note"], row["author"])
        data = {"ban_id": ban.ban_id, "scope": ban.scope, "until": ban.until, "reason": ban.reason}
        await record_changes(tx, [Change(ChangeType.USER_BANNED, user_id, ban.application_id, data)])
        await trail.write(tx, AuditActor(), "user.ban", user_id, None, {**data, "follows": row["ban_id"]})
    await tx.value(_MARK_ONE, digest=identity, user_id=user_id)
    return bans


async def forget_erased_user(tx: Runner, user_id: str) -> None:
    await tx.value(_FORGET, user_id=user_id)
