"""Compares the permissions of a few users at a few applications before and after a write of their records."""

from collections.abc import Hashable, Mapping, Sequence

from msgspec.structs import replace

from sso.db.transaction import Transaction, run_pure
from sso.perm.changes.assertion_check import AssertionCheck
from sso.perm.changes.impact import Impact, permission_change
from sso.perm.engine.effective_permissions import EffectivePermissions, compute_permissions
from sso.perm.engine.records import OwnRecord
from sso.perm.engine.render import as_list
from sso.perm.engine.rules import LISTED_SECTIONS, rule_entries
from sso.perm.stores.facts import FactsRow, StoredFacts, read_fact_rows


class RecordComparison:
    """Costs one statement before the write, and one after it."""

    def __init__(self, facts: StoredFacts, pairs: Sequence[tuple[str, int]], now: int) -> None:
        self._facts = facts
        self._pairs = pairs  # user ids with application ids
        self._now = now
        self._before: dict[tuple[str, int], list[str]] = {}
        self._own_before: dict[tuple[str, int], Hashable] = {}

    async def begin(self, tx: Transaction) -> None:
        for pair, row in (await read_fact_rows(tx, self._pairs)).items():
            if row.user_exists:
                self._before[pair] = as_list(await self._evaluate(tx, pair[1], row))
                self._own_before[pair] = _lasting(row.facts.own)

    async def finish(self, tx: Transaction, assertions: Mapping[int, Sequence[str]]) -> Impact:
        """``assertions`` are those of the applications."""
        check = await AssertionCheck.begin(tx, assertions)
        changes = []
        touched: dict[int, set[str]] = {}
        for pair, row in (await read_fact_rows(tx, self._pairs)).items():
            if row.user_exists:
                effective = await self._evaluate(tx, pair[1], row)
                if not row.is_removed:
                    check.see(effective, pair[0], row.facts.home)
                change = permission_change(*pair, self._before.get(pair, ()), as_list(effective))
                if change is not None:
                    changes.append(change)
                elif _lasting(row.facts.own) != self._own_before.get(pair):
                    touched.setdefault(pair[1], set()).add(pair[0])
        impact = Impact.of(changes, {}, ())
        return replace(impact, failed_assertions=await check.failures(tx), touched=touched)

    async def _evaluate(self, tx: Transaction, application_id: int, row: FactsRow) -> EffectivePermissions:
        application = await self._facts.read_compiled(tx, application_id, row.revision)
        return await run_pure(tx, application.is_large, compute_permissions, application, row.facts, self._now)


def _lasting(own: OwnRecord) -> Hashable:
    """Returns what permissions depend on, now or later, such as the end of an entry. Values that games store do not
    matter."""
    entries = [entry for section in LISTED_SECTIONS for entry in rule_entries(getattr(own, section), section)]
    rights = own.secret_data.get("meta")
    return own.roles, tuple(entries), repr(rights)
