"""Users who were merged into another one, also by way of others. The id of a merged user is an alias of the other."""

from sso.db.statement import Statement
from sso.db.transaction import Runner

# The ids of the user and of all users who were merged into it.
IDS_WITH_MERGED = """WITH RECURSIVE merged AS (
        SELECT user_id FROM users WHERE user_id = :user_id
        UNION SELECT u.user_id FROM users u JOIN merged m ON u.merged_into = m.user_id
    )
    SELECT user_id FROM merged"""
_SURVIVING = Statement(
    """WITH RECURSIVE line AS (
        SELECT user_id, merged_into FROM users WHERE user_id = :user_id
        UNION SELECT u.user_id, u.merged_into FROM users u JOIN line l ON u.user_id = l.merged_into
    )
    SELECT user_id FROM line WHERE merged_into IS NULL"""
)


async def surviving_user(runner: Runner, user_id: str) -> str:
    """Returns the user whom this one was merged into in the end; the same id for a user who was not merged."""
    surviving: str | None = await runner.value(_SURVIVING, user_id=user_id)
    return surviving or user_id
