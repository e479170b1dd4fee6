"""The undo of a change: the operation of the management API that restores the values before it."""

from dataclasses import dataclass
from typing import Any

from sso.perm.stores.audit_values import REDACTED
from sso.state.sections.users import UserChanges


@dataclass(frozen=True)
class Undo:
    method: str
    path: str
    variables: dict[str, Any]
    body: dict[str, Any]
    after: dict[str, Any]  # the values that the change has stored

    def changed_since(self, current: dict[str, Any]) -> list[str]:
        """Returns the fields whose values are not those of the change any more."""
        return [name for name in self.body if current.get(name) != self.after.get(name)]


def undo_of(entry: dict[str, Any]) -> Undo | None:
    """Returns None if the entry cannot be undone: its values before are not known, or there is no such operation."""
    match entry["operation"]:
        case "user.save":
            return _undo_user(entry)
    return None


def _undo_user(entry: dict[str, Any]) -> Undo | None:
    """Restores the fields that the management API accepts. Secrets are not in the audit trail."""
    before: dict[str, Any] = entry["before"] or {}
    if any(value == REDACTED for value in {**before, **(entry["after"] or {})}.values()):
        return None
    body = {name: value for name, value in before.items() if name in UserChanges.model_fields and value is not None}
    if not body or body.keys() != before.keys() - {"deletion_due"}:
        return None
    return Undo("PATCH", "/users/<user_id>", {"user_id": entry["target"]}, body, entry["after"] or {})
