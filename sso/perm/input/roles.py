"""Roles in requests (§2.7): role records, and assignments of roles to users."""

from typing import Any

from pydantic import Field

from sso.core.field_errors import FieldError, FieldPath
from sso.perm.engine.records import Assignment
from sso.perm.engine.rules import LISTED_SECTIONS
from sso.perm.input.conditions import check_condition
from sso.perm.input.field_types import Number, Params, Segment
from sso.perm.input.model import InputModel, read_record
from sso.perm.input.names import read_segment
from sso.perm.input.rules import Layer, RuleReader
from sso.perm.input.validators import read_array, unknown_field_warnings
from sso.web.request_model import JsonObject

MAX_ROLES = 1000  # assigned to one user in one place


class RoleAttributes(InputModel):
    meta: JsonObject = Field(default_factory=dict)
    description: str = ""
    protected: bool = False
    default: bool = False
    condition: JsonObject | None = None  # null and an empty object stand for no condition
    user_limit: Number = 0
    params: Params = ""


class _RoleName(InputModel):
    name: Segment


class RoleFields(RoleAttributes, _RoleName):
    application_id: Any = Field(default=None, exclude=True)  # a get returns it; a save ignores it


class AssignmentFields(InputModel):
    name: Segment
    expired: Number = 0
    ttl: Number = 0


def read_role(data: object, path: FieldPath = ()) -> tuple[dict[str, Any], list[str]]:
    """The fields of a role that were given, ready to store, and warnings."""
    fields, warnings = read_record(RoleFields, data, path)
    if "meta" in fields:
        fields["meta"], meta_warnings = _read_meta(fields["meta"], (*path, "meta"))
        warnings += meta_warnings
    if "condition" in fields:
        fields["condition"] = fields["condition"] or {}
        if fields["condition"]:
            check_condition(fields["condition"], (*path, "condition"))
    return fields, warnings


def _read_meta(meta: dict[str, Any], path: FieldPath) -> tuple[dict[str, Any], list[str]]:
    """The listed sections of a role. Roles give no rights over the application: secret_data and login are ignored."""
    reader = RuleReader(Layer.ROLE)
    sections = {name: reader.section(meta[name], (*path, name)) for name in LISTED_SECTIONS if name in meta}
    return sections, reader.warnings + unknown_field_warnings(meta, LISTED_SECTIONS, path)


def read_assignments(
    value: object, default_expired: int = 0, path: FieldPath = ("roles",)
) -> tuple[tuple[Assignment, ...], list[str]]:
    """The assignments in an array of role names or objects ``{name, expired, ttl}``, and warnings.

    ``default_expired`` is for assignments without an end time of their own. `check_roles_exist` checks the names.
    """
    assignments: dict[str, Assignment] = {}
    warnings: list[str] = []
    for index, item in enumerate(read_array(value, path, MAX_ROLES)):
        assignment = _read_assignment(item, default_expired, (*path, index), warnings)
        if assignments.setdefault(assignment.name, assignment) != assignment:
            raise FieldError((*path, index), "the role is assigned twice, in different ways")
    return tuple(assignments.values()), warnings


def _read_assignment(item: object, default_expired: int, path: FieldPath, warnings: list[str]) -> Assignment:
    if isinstance(item, str):
        return Assignment(read_segment(item, path), default_expired)
    if not isinstance(item, dict):
        raise FieldError(path, "must be the name of a role, or an object with name, expired, ttl")
    fields, item_warnings = read_record(AssignmentFields, item, path)
    warnings += item_warnings
    expired, ttl = fields.get("expired", 0), fields.get("ttl", 0)
    return Assignment(fields["name"], expired or (0 if ttl else default_expired), ttl)
