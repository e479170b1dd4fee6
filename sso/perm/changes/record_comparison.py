"""Compares the permissions of a few users at a few applications before and after a write of their records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sso.db.transaction import Transaction, run_pure
from sso.perm.changes.assertion_check import AssertionCheck
from sso.perm.changes.impact import Impact, permission_change
from sso.perm.engine.effective_permissions import EffectivePermissions, compute_permissions
from sso.perm.engine.render import as_list
from sso.perm.stores.facts import FactsRow, StoredFacts, read_fact_rows


class RecordComparison:
    """Costs one statement before the write, and one after it."""

    def __init__(self, facts: StoredFacts, pairs: Sequence[tuple[str, int]], now: int) -> None:
        self._facts = facts
        self._pairs = pairs  # user ids with application ids
        self._now = now
        self._before: dict[tuple[str, int], list[str]] = {}

    async def begin(self, tx: Transaction) -> None:
        for pair, row in (await read_fact_rows(tx, self._pairs)).items():
            if row.user_exists:
                self._before[pair] = as_list(await self._evaluate(tx, pair[1], row))

    async def finish(self, tx: Transaction, assertions: Mapping[int, Sequence[str]]) -> Impact:
        """``assertions`` are those of the applications."""
        check = await AssertionCheck.begin(tx, assertions)
        changes = []
        for pair, row in (await read_fact_rows(tx, self._pairs)).items():
            if row.user_exists:
                effective = await self._evaluate(tx, pair[1], row)
                if not row.is_removed:
                    check.see(effective, pair[0], row.facts.home)
                changes.append(permission_change(*pair, self._before.get(pair, ()), as_list(effective)))
        impact = Impact.of([change for change in changes if change is not None], {}, ())
        return replace(impact, failed_assertions=await check.failures(tx))

    async def _evaluate(self, tx: Transaction, application_id: int, row: FactsRow) -> EffectivePermissions:
        application = await self._facts.read_compiled(tx, application_id, row.revision)
        return await run_pure(tx, application.is_large, compute_permissions, application, row.facts, self._now)
