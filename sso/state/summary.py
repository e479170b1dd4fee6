"""What became of each record of the document, and where the work is now."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sso.state.location import said_at

SAME, CHANGED, CREATED = "same", "changed", "created"
_RANK = {SAME: 0, CHANGED: 1, CREATED: 2}


@dataclass(frozen=True)
class SectionCounts:
    created: int
    changed: int
    same: int
    warnings: tuple[str, ...] = ()  # fields that were ignored


@dataclass
class ApplySummary:
    """A record may be worked on in several steps; it counts once, by the most that happened to it."""

    place: str = "the document"
    warnings: list[str] = field(default_factory=list)
    _outcomes: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        self.place = place
        with said_at(place):
            yield

    def note(self, place: str, outcome: str) -> None:
        if _RANK[outcome] >= _RANK[self._outcomes.get(place, SAME)]:
            self._outcomes[place] = outcome

    def changed(self, place: str, *, changed: bool) -> None:
        self.note(place, CHANGED if changed else SAME)

    def counts(self) -> SectionCounts:
        found = list(self._outcomes.values())
        return SectionCounts(found.count(CREATED), found.count(CHANGED), found.count(SAME), tuple(self.warnings))
