"""Groups in requests: the record, and its members: users that are added, and conditions."""

from typing import Any

from pydantic import ConfigDict

from sso.core.field_errors import FieldError, FieldPath
from sso.core.ids import is_user_id
from sso.perm.input.conditions import check_condition
from sso.perm.input.field_types import Title, Word
from sso.perm.input.model import InputModel, read_record
from sso.perm.input.tags import read_tags
from sso.perm.input.validators import read_array, unique
from sso.web.request_model import JsonObject

MAX_CONDITIONS = 100
MAX_GROUP_USERS = 100


class GroupFields(InputModel):
    model_config = ConfigDict(extra="ignore")  # callers warn about unknown fields of the record itself

    title: Title = ""
    description: str = ""


class GroupConditionFields(InputModel):
    title: Word
    condition: JsonObject


def read_group_fields(data: object) -> dict[str, Any]:
    """The fields of a group that were given, ready to store, without its tags and members."""
    fields, _ = read_record(GroupFields, data)
    return fields


def read_group_changes(data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Returns all fields of a group that were given, ready to store, and warnings."""
    changes = read_group_fields(data)
    warnings: list[str] = []
    if "tags" in data:
        changes["tags"] = read_tags(data["tags"])
    if "users" in data:
        changes["users"] = read_group_users(data["users"])
    if "conditions" in data:
        changes["conditions"], warnings = read_group_conditions(data["conditions"])
    return changes, warnings


def read_group_conditions(value: object, path: FieldPath = ("conditions",)) -> tuple[list[dict[str, Any]], list[str]]:
    """The conditions of a group, and warnings. A group's condition must not ask for ``ip``, at any depth."""
    conditions: list[dict[str, Any]] = []
    warnings: list[str] = []
    for index, item in enumerate(read_array(value, path, MAX_CONDITIONS)):
        fields, item_warnings = read_record(GroupConditionFields, item, (*path, index))
        check_condition(fields["condition"], (*path, index, "condition"), ip_allowed=False)
        conditions.append(fields)
        warnings += item_warnings
    return conditions, warnings


def read_group_users(value: object, path: FieldPath = ("users",)) -> list[str]:
    """The ids of the users that are added to a group, without duplicates. The users need not exist."""
    user_ids = read_array(value, path)
    for index, user_id in enumerate(user_ids):
        if not isinstance(user_id, str) or not is_user_id(user_id):
            raise FieldError((*path, index), "must be a user id")
    distinct = unique(user_ids)
    if len(distinct) > MAX_GROUP_USERS:
        raise FieldError(path, f"must be at most {MAX_GROUP_USERS} users")
    return distinct
