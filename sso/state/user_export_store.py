"""Pages of users for a file, with what belongs to them elsewhere: identities and roles."""

from collections.abc import Sequence

from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID

# Guests have no login, and the accounts that are going to be erased stay here.
_PAGE = Statement(
    f"""SELECT u.*, (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'provider', provider_id, 'subject', subject, 'name', name) ORDER BY provider_id, subject), '[]')
            FROM linked_identities l WHERE l.user_id = u.user_id
        ) AS identities, (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'application_id', application_id, 'role', name) ORDER BY application_id, position), '[]')
            FROM role_assignments r
            WHERE r.user_id = u.user_id AND application_id <> {CENTRAL_APPLICATION_ID} AND coalesce(expired, 0) = 0
        ) AS roles
    FROM users u WHERE u.user_id > :after AND u.login <> '' AND u.deletion_due IS NULL AND u.merged_into IS NULL
    ORDER BY u.user_id LIMIT :limit"""
)


async def read_users_after(runner: Runner, after: str, limit: int) -> Sequence[Row]:
    """Returns the users whose ids, as texts, follow ``after``."""
    return await runner.rows(_PAGE, after=after, limit=limit)
