"""Counts what happened to each record of the document, and remembers the current location for error texts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct, field

from sso.core.field_errors import FieldPath, field_text
from sso.core.records import Outcome
from sso.state.location import error_location

UNCHANGED, CHANGED, CREATED = Outcome.UNCHANGED, Outcome.CHANGED, Outcome.CREATED
_RANK = {outcome: rank for rank, outcome in enumerate(Outcome)}


class ApplyCounts(Struct, frozen=True):
    created: int
    changed: int
    unchanged: int
    warnings: tuple[str, ...] = ()  # about ignored fields, and about rules that no schema declares


class ApplySummary(Struct):
    """A record may be changed in several steps. It counts once: as created, else as changed, else as unchanged."""

    location: FieldPath = ()
    warnings: list[str] = field(default_factory=list)
    on_record: Callable[[int], None] = lambda _: None  # called with the number of records so far
    _outcomes: dict[FieldPath, Outcome] = field(default_factory=dict)

    @contextmanager
    def at(self, location: FieldPath) -> Iterator[None]:
        self.location = location
        with error_location(location):
            yield

    def record(self, location: FieldPath, outcome: Outcome) -> None:
        if _RANK[outcome] >= _RANK[self._outcomes.get(location, UNCHANGED)]:
            self._outcomes[location] = outcome
            self.on_record(len(self._outcomes))

    def record_change(self, location: FieldPath, *, changed: bool) -> None:
        self.record(location, CHANGED if changed else UNCHANGED)

    def changed_records(self) -> dict[str, str]:
        """Returns what happened to the records that were created or changed, by location."""
        return {field_text(location): outcome for location, outcome in self._outcomes.items() if outcome != UNCHANGED}

    def counts(self) -> ApplyCounts:
        outcomes = list(self._outcomes.values())
        return ApplyCounts(
            outcomes.count(CREATED), outcomes.count(CHANGED), outcomes.count(UNCHANGED), tuple(self.warnings)
        )
