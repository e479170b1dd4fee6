"""Test players in the database."""

from sso.accounts.history.events import EventKind, record_event
from sso.core.test_players import IS_TEST_PLAYER_SQL
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction

_USABLE = Statement(
    f"""SELECT user_id FROM users
    WHERE {IS_TEST_PLAYER_SQL} AND (NOT disabled OR password_hash IS NOT NULL OR passkey_count > 0) ORDER BY user_id"""
)
_DELETE_IDENTITIES = Statement(
    """DELETE FROM linked_identities l USING identity_providers p
    WHERE l.user_id = :user_id AND p.provider_id = l.provider_id RETURNING p.name"""
)
_DELETE_KEYS = Statement("DELETE FROM device_keys WHERE user_id = :user_id RETURNING id")


async def usable_test_players(runner: Runner) -> list[str]:
    """Returns the ids of those who are enabled, or could sign in once they are enabled."""
    return [row["user_id"] for row in await runner.rows(_USABLE)]


async def remove_other_sign_ins(tx: Transaction, user_id: str) -> bool:
    """Removes store accounts, identities at other providers and keys of devices. Returns False if there were none."""
    identities = await tx.rows(_DELETE_IDENTITIES, user_id=user_id)
    for row in identities:
        await record_event(tx, user_id, EventKind.IDENTITY_UNLINKED, name=row["name"])
    return bool([*identities, *await tx.rows(_DELETE_KEYS, user_id=user_id)])
