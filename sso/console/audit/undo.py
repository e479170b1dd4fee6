"""The undo of a change: the operation of the management API that restores the values before it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from sso.audit.values import REDACTED

Values = dict[str, Any]


class Undo(Struct, frozen=True):
    method: str
    path: str  # a route of the management API
    variables: Mapping[str, str]  # in that path
    body: Values
    # What the change has stored, by field: if a field has another value now, the undo would overwrite a later change.
    # None: the change has deleted the record, so there must be none.
    expected: Values | None
    read: str = ""  # the route that reads the record, if it has another path
    read_variables: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)  # for reading the record
    member: str = "data"  # which member of the response it is
    has_dry_run: bool = True
    note: str = ""  # what is not restored
    shown: Values | None = None  # the values after the undo, if they are not those of the body

    @property
    def read_path(self) -> str:
        return self.read or self.path

    @property
    def restored(self) -> tuple[Values | None, Values | None]:
        """The values now and after the undo, as a page shows them."""
        if self.method == "DELETE":
            return self.expected, None
        if self.shown is not None:
            return self.expected, self.shown
        shown = {name: value for name, value in self.body.items() if self.expected is None or name in self.expected}
        return self.expected, shown

    def changed_since(self, current: Values | None) -> list[str]:
        """Returns the fields whose values are not those of the change any more."""
        if self.expected is None:
            return [] if current is None else ["the record exists again"]
        if current is None:
            return ["the record was deleted"]
        return [name for name, value in self.expected.items() if _comparable(current.get(name)) != _comparable(value)]


class CannotUndo(Struct, frozen=True):
    """``reason``: why, and what to do instead, as the end of a sentence."""

    reason: str


def restorable(before: Values | None, after: Values | None) -> bool:
    """Returns False if a value is a secret, which the audit trail does not contain, or was too large for it."""
    for values in (before, after):
        if values is not None and (_is_truncated(values) or any(map(_is_incomplete, values.values()))):
            return False
    return True


def changed_fields(before: Values, after: Values) -> list[str]:
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def _is_incomplete(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_truncated(value) or any(map(_is_incomplete, value.values()))
    return bool(value == REDACTED)


def _is_truncated(value: Values) -> bool:
    return value.get("truncated") is True and value.keys() == {"truncated", "bytes"}


def _comparable(value: Any) -> Any:
    """A field that is missing, or that has its empty default, is the same as an empty one."""
    return value if value or value is False or value == 0 else None
