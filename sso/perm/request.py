"""A call of a permission endpoint: its fields, read strictly, and who makes it."""

from dataclasses import dataclass, field
from typing import Any

from sso.perm.caller import Caller
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.names import read_application_id


@dataclass(frozen=True)
class PermissionRequest:
    fields: dict[str, Any]
    caller: Caller
    if_match: str | None = None
    warnings: list[str] = field(default_factory=list)  # filled on the way, shown in the answer

    def action(self, *known: str) -> str:
        action = self.fields.get("action")
        if action not in known:
            raise InvalidInput(f"action: must be {', '.join(known[:-1])} or {known[-1]}")
        return str(action)

    @property
    def data(self) -> dict[str, Any]:
        return validators.read_object(self.fields.get("data", {}), "data")

    def required_data(self) -> dict[str, Any]:
        if "data" not in self.fields:
            raise InvalidInput("data: is required")
        return self.data

    @property
    def options(self) -> dict[str, Any]:
        return validators.read_object(self.fields.get("options", {}), "options")

    def application_id(self) -> int:
        return read_application_id(self.fields.get("application_id"), "application_id")

    def text(self, name: str, most: int = 256) -> str:
        return validators.read_text(self.fields.get(name), name, most, min_length=1)

    def ignore_unknown(self, data: dict[str, Any], known: frozenset[str]) -> None:
        """Fields that nobody reads are named in the answer."""
        self.warnings.extend(validators.unknown_field_warnings(data, known, ""))

    def answer(self, **parts: Any) -> dict[str, Any]:
        warnings = {"warnings": self.warnings} if self.warnings else {}
        return {"status": "OK", **parts, **warnings}
