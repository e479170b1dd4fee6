"""Compares the permissions of a few users at a few applications before and after a write of their records."""

from collections.abc import Sequence

from sso.db.transaction import Transaction
from sso.perm.changes.impact import PermissionChange, permission_change
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.render import as_list
from sso.perm.stores.facts import FactsStore, read_fact_rows


class RecordComparison:
    """Costs one statement before the write, and one after it."""

    def __init__(self, facts: FactsStore, pairs: Sequence[tuple[str, int]], now: int) -> None:
        self._facts = facts
        self._pairs = pairs  # user ids with application ids
        self._now = now
        self._before: dict[tuple[str, int], list[str]] = {}

    async def begin(self, tx: Transaction) -> None:
        self._before = await self._read(tx)

    async def finish(self, tx: Transaction) -> list[PermissionChange]:
        after = await self._read(tx)
        changes = (permission_change(*pair, self._before.get(pair, ()), after.get(pair, ())) for pair in self._pairs)
        return [change for change in changes if change is not None]

    async def _read(self, tx: Transaction) -> dict[tuple[str, int], list[str]]:
        lists = {}
        for (user_id, application_id), row in (await read_fact_rows(tx, self._pairs)).items():
            if row.user_exists:
                application = await self._facts.read_compiled(tx, application_id, row.revision)
                effective = compute_permissions(application, row.facts, self._now)
                lists[user_id, application_id] = as_list(effective)
        return lists
