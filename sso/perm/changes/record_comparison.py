"""Compares the permissions of a few users at a few applications before and after a write of their records."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from sso.db.transaction import Transaction, run_pure
from sso.perm.changes.assertion_check import AssertionCheck
from sso.perm.changes.impact import MAX_LISTED_BYTES, Impact, PermissionChange, permission_change
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.records import OwnRecord
from sso.perm.engine.render import as_list
from sso.perm.engine.rules import LISTED_SECTIONS, rule_entries
from sso.perm.stores.facts import FactsRow, StoredFacts, decode_fact_row, read_fact_rows
from sso.perm.stores.facts_reader import UserAt


class _Before(NamedTuple):
    entries: Sequence[str] = ()
    lasting: Hashable = None


class _Differences(Struct):
    """The changes, until their list is too long: the users of further applications are only counted."""

    changes: list[PermissionChange] = field(default_factory=list)
    touched: dict[int, set[str]] = field(default_factory=dict)
    users: Counter[int] = field(default_factory=Counter)  # by application
    unlisted: set[int] = field(default_factory=set)  # applications with a change that is not in the list
    listed_bytes: int = 0

    def add(self, pair: UserAt, change: PermissionChange | None, *, is_touched: bool) -> None:
        user_id, application_id = pair
        self.users[application_id] += 1
        if is_touched:
            self.touched.setdefault(application_id, set()).add(user_id)
        if change is not None:
            self.listed_bytes += change.size
            if self.listed_bytes > MAX_LISTED_BYTES:
                self.unlisted.add(application_id)
            else:
                self.changes.append(change)

    def impact(self) -> Impact:
        impact = Impact.of(self.changes, {key: self.users[key] for key in self.unlisted}, ())
        with_event = {(change.application_id, change.user_id) for change in self.changes}
        touched = {
            key: {user_id for user_id in user_ids if key in self.unlisted or (key, user_id) not in with_event}
            for key, user_ids in self.touched.items()
        }
        return replace(impact, touched={key: user_ids for key, user_ids in touched.items() if user_ids})


class RecordComparison:
    """Costs one statement before the write, and one after it."""

    def __init__(self, facts: StoredFacts, pairs: Sequence[UserAt], now: int) -> None:
        self._facts = facts
        self._pairs = pairs
        self._now = now
        self._before: dict[UserAt, _Before] = {}

    async def begin(self, tx: Transaction) -> None:
        for pair, encoded in await read_fact_rows(tx, self._pairs):
            row = await decode_fact_row(tx, pair[0], encoded)
            if row.user_exists:
                application = await self._facts.read_compiled(tx, pair[1], row.revision)
                is_large = application.is_large or row.is_large
                self._before[pair] = await run_pure(tx, is_large, self._evaluate, application, row)

    async def finish(self, tx: Transaction, assertions: Mapping[int, Sequence[str]]) -> Impact:
        """``assertions`` are those of the applications."""
        check = await AssertionCheck.begin(tx, assertions)
        differences = _Differences()
        for pair, encoded in await read_fact_rows(tx, self._pairs):
            row = await decode_fact_row(tx, pair[0], encoded)
            if row.user_exists:
                application = await self._facts.read_compiled(tx, pair[1], row.revision)
                is_large = application.is_large or row.is_large
                change, is_touched = await run_pure(tx, is_large, self._compare, application, pair, row, check)
                differences.add(pair, change, is_touched=is_touched)
        return replace(differences.impact(), failed_assertions=await check.failures(tx))

    def _evaluate(self, application: CompiledApplication, row: FactsRow) -> _Before:
        effective = compute_permissions(application, row.facts, self._now)
        return _Before(as_list(effective), _lasting(row.facts.own))

    def _compare(
        self, application: CompiledApplication, pair: UserAt, row: FactsRow, check: AssertionCheck
    ) -> tuple[PermissionChange | None, bool]:
        """Returns the change of the permissions at the moment, and whether they may be different at some moment."""
        effective = compute_permissions(application, row.facts, self._now)
        if not row.is_removed:
            check.see(effective, pair[0], row.facts.home)
        before = self._before.get(pair, _Before())
        change = permission_change(*pair, before.entries, as_list(effective))
        return change, change is not None or _lasting(row.facts.own) != before.lasting


def _lasting(own: OwnRecord) -> Hashable:
    """Returns what permissions depend on, now or later, such as the end of an entry. Values that games store do not
    matter."""
    entries = [entry for section in LISTED_SECTIONS for entry in rule_entries(getattr(own, section), section)]
    rights = own.secret_data.get("meta")
    return own.roles, tuple(entries), repr(rights)
