"""Read role records (§2.7) and the assignment of roles to users."""

from collections.abc import Collection, Mapping
from typing import Any

from sso.perm.engine.records import Assignment
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.conditions import read_role_condition
from sso.perm.input.names import read_segment
from sso.perm.input.params import read_params
from sso.perm.input.rules import Layer, Reader

MAX_ROLES = 1000  # assigned to one user in one place
_FIELDS = frozenset(
    ("name", "meta", "description", "protected", "default", "condition", "user_limit", "params", "application_id")
)
_META_SECTIONS = ("public_data", "private_data")
_ASSIGNMENT = frozenset(("name", "expired", "ttl"))


def read_role(data: object, where: str = "") -> tuple[dict[str, Any], list[str]]:
    """The fields that were given, ready to store, and warnings. Absent fields stay as they are."""
    fields = validators.an_object(data, where or "data")
    prefix = f"{where}." if where else ""
    if "name" not in fields:
        raise InvalidInput(f"{prefix}name: is required")
    warnings = validators.unknown(fields, _FIELDS, where)
    found: dict[str, Any] = {"name": read_segment(fields["name"], f"{prefix}name")}
    for name, value in fields.items():
        here = f"{prefix}{name}"
        match name:
            case "meta":
                found["meta"], more = _read_meta(value, here)
                warnings += more
            case "description":
                found["description"] = validators.text(value, here)
            case "protected" | "default":
                found[name] = validators.flag(value, here)
            case "condition":
                read_role_condition(validators.an_object({} if value is None else value, here), here)
                found["condition"] = value or {}
            case "user_limit":
                found["user_limit"] = validators.number(value, here)
            case "params":
                found["params"] = read_params(value, here)
    return found, warnings


def _read_meta(value: object, where: str) -> tuple[dict[str, Any], list[str]]:
    """A role gives listed rules only: rights over the application are the schema's and the user's own matter."""
    meta = validators.an_object(value, where)
    reader = Reader(Layer.ROLE)
    found = {name: reader.section(meta[name], f"{where}.{name}") for name in _META_SECTIONS if name in meta}
    return found, reader.warnings + validators.unknown(meta, frozenset(_META_SECTIONS), where)


def read_assignments(
    value: object, default_expired: int = 0, where: str = "roles"
) -> tuple[tuple[Assignment, ...], list[str]]:
    """An array of role names or objects ``{name, expired, ttl}``. `check_roles_exist` checks the names."""
    found: dict[str, Assignment] = {}
    warnings: list[str] = []
    for at, item in enumerate(validators.an_array(value, where, MAX_ROLES)):
        here = f"{where}[{at}]"
        assignment = _read_assignment(item, default_expired, here, warnings)
        if found.setdefault(assignment.name, assignment) != assignment:
            raise InvalidInput(f"{here}: the role is assigned twice, in different ways")
    return tuple(found.values()), warnings


def check_roles_exist(assignments: Collection[Assignment], roles: Collection[str], where: str = "roles") -> None:
    """Refuse assignments of roles that are not among ``roles``."""
    for index, assignment in enumerate(assignments):
        if assignment.name not in roles:
            raise InvalidInput(f"{where}[{index}]: there is no role {assignment.name}")


def _read_assignment(item: object, default_expired: int, where: str, warnings: list[str]) -> Assignment:
    if isinstance(item, str):
        return Assignment(read_segment(item, where), default_expired)
    if not isinstance(item, dict):
        raise InvalidInput(f"{where}: must be the name of a role, or an object with name, expired, ttl")
    if "name" not in item:
        raise InvalidInput(f"{where}.name: is required")
    warnings += validators.unknown(item, _ASSIGNMENT, where)
    expired = validators.number(item.get("expired", 0), f"{where}.expired")
    ttl = validators.number(item.get("ttl", 0), f"{where}.ttl")
    return Assignment(read_segment(item["name"], f"{where}.name"), expired or (0 if ttl else default_expired), ttl)


def stored(assignments: Collection[Assignment]) -> list[dict[str, Any]]:
    """Assignments in the one form that is stored."""
    return [_stored(assignment) for assignment in assignments]


def _stored(assignment: Assignment) -> dict[str, Any]:
    limits: Mapping[str, int] = {"expired": assignment.expired, "ttl": assignment.ttl}
    return {"name": assignment.name, **{name: value for name, value in limits.items() if value}}
