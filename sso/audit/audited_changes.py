"""What a document changes, record by record, read from the entries that it adds to the audit trail."""

from typing import Any

from msgspec import Struct

from sso.audit.store import read_entries_of_transaction
from sso.db.transaction import Transaction


class RecordDifference(Struct, frozen=True):
    """One change of a record: ``operation`` and ``target`` come from the audit trail."""

    operation: str
    target: str
    before: dict[str, Any] | None  # only the fields that differ; None if the record is new
    after: dict[str, Any] | None  # None if the record is removed

    @property
    def fields(self) -> list[str]:
        return sorted({*(self.before or ()), *(self.after or ())})

    @property
    def json(self) -> dict[str, Any]:
        return {"operation": self.operation, "target": self.target, "before": self.before, "after": self.after}


async def read_differences(tx: Transaction, last: int) -> list[RecordDifference]:
    """The changes that the transaction has made since ``last``, without secrets."""
    return [
        RecordDifference(row["operation"], row["target"], *_differing(row["before"], row["after"]))
        for row in await read_entries_of_transaction(tx, last)
    ]


def _differing(before: Any, after: Any) -> tuple[Any, Any]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return before, after
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    old, new = ({name: side[name] for name in names if name in side} for side in (before, after))
    return old, new
