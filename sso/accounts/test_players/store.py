"""Which test players are in the database."""

from sso.core.test_players import TEST_PLAYER_IDS
from sso.db.statement import Statement
from sso.db.transaction import Runner

_ENABLED = Statement(
    "SELECT user_id FROM users WHERE user_id = ANY (CAST(:ids AS text[])) AND NOT disabled ORDER BY user_id"
)


async def enabled_test_players(runner: Runner) -> list[str]:
    return [row["user_id"] for row in await runner.rows(_ENABLED, ids=sorted(TEST_PLAYER_IDS))]
