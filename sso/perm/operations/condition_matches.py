"""How many users meet one of several conditions, with a bounded amount of work. Nothing is stored or changed."""

from collections.abc import Sequence
from typing import Any

from sso.db.database import Database
from sso.db.transaction import Transaction, run_pure
from sso.perm.changes.candidates import Candidates
from sso.perm.engine.conditions import Condition, count_nodes, holds
from sso.perm.engine.decode import decode_condition
from sso.perm.input.conditions import check_condition
from sso.perm.stores.user_rows import UserAccount, read_accounts

MAX_EXAMINED = 1000  # users
MAX_COMPARISONS = 100_000  # users times objects of the conditions
MAX_EXAMPLES = 5
_FEW_NODES = 100
_NO_APPLICATION = 0


async def count_matches(database: Database, conditions: Sequence[object]) -> dict[str, Any]:
    """Returns how many users meet a condition, some of them, and how many were examined.

    ``exact`` is false if more users may meet a condition than are examined. Conditions on addresses count as not met.
    Raises FieldError for a malformed condition.
    """
    decoded = await run_pure(database, len(conditions) > 1, _decode, conditions)
    candidates = Candidates(_NO_APPLICATION)
    for condition in decoded:
        candidates.add_condition(condition)
    nodes = sum(map(count_nodes, decoded))
    limit = min(MAX_EXAMINED, max(1, MAX_COMPARISONS // max(1, nodes)))
    user_ids = await database.transaction(_find, candidates, limit + 1) if candidates else []
    accounts = await read_accounts(database, user_ids[:limit])
    takes_long = nodes * len(accounts) > _FEW_NODES
    matching = await run_pure(database, takes_long, _matching, decoded, accounts, int(database.clock.now()))
    return {
        "total": len(matching),
        "exact": len(user_ids) <= limit,
        "examined": len(accounts),
        "users": [account.user_id for account in matching[:MAX_EXAMPLES]],
    }


async def _find(tx: Transaction, candidates: Candidates, limit: int) -> list[str]:
    return await candidates.find_some(tx, limit)


def _decode(conditions: Sequence[object]) -> list[Condition]:
    for index, condition in enumerate(conditions):
        check_condition(condition, ("conditions", index))
    return [decode_condition(condition) for condition in conditions]


def _matching(conditions: Sequence[Condition], accounts: Sequence[UserAccount], now: int) -> list[UserAccount]:
    return [account for account in accounts if any(holds(condition, account.facts, now) for condition in conditions)]
