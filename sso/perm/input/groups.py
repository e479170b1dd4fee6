"""Groups in requests: the record, and its members: users that are added, and conditions."""

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, ConfigDict, FailFast, Field, PlainValidator, WithJsonSchema

from sso.core.field_errors import FieldPath
from sso.core.ids import is_user_id
from sso.perm.input.conditions import check_condition
from sso.perm.input.field_types import GroupId, Segment, Tags, Title, Word
from sso.perm.input.model import InputModel, read_record
from sso.perm.input.validators import unique
from sso.web.request_model import JsonObject

MAX_CONDITIONS = 100
MAX_GROUP_USERS = 100


def _check_user_id(value: object) -> str:
    if not isinstance(value, str) or not is_user_id(value):
        raise ValueError("must be a user id")
    return value


def _distinct_users(user_ids: list[str]) -> list[str]:
    distinct = unique(user_ids)
    if len(distinct) > MAX_GROUP_USERS:
        raise ValueError(f"must be at most {MAX_GROUP_USERS} users")
    return distinct


UserIds: TypeAlias = Annotated[
    list[
        Annotated[
            str,
            PlainValidator(_check_user_id),
            WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 64}),
        ]
    ],
    FailFast(),
    AfterValidator(_distinct_users),
    Field(json_schema_extra={"maxItems": MAX_GROUP_USERS}),
]


class GroupFields(InputModel):
    model_config = ConfigDict(extra="ignore")  # callers warn about unknown fields of the record itself

    title: Title = ""
    description: str = ""


class GroupConditionFields(InputModel):
    title: Word
    condition: JsonObject


class GroupAttributes(GroupFields):
    tags: Tags = Field(default_factory=list)
    conditions: Annotated[list[GroupConditionFields], FailFast(), Field(max_length=MAX_CONDITIONS)] = Field(
        default_factory=list
    )
    users: UserIds = Field(default_factory=list)


class GroupRecord(GroupAttributes):
    """A group in a document."""

    group_id: GroupId
    project_id: Segment = ""


def read_group_fields(data: object) -> dict[str, Any]:
    """The fields of a group that were given, ready to store, without its tags and members."""
    fields, _ = read_record(GroupFields, data)
    return fields


def read_group_changes(
    data: object, path: FieldPath = (), model: type[GroupAttributes] = GroupAttributes
) -> tuple[dict[str, Any], list[str]]:
    """The fields of a group that were given, ready to store, and warnings.

    A group's condition must not ask for ``ip``, at any depth. The users need not exist.
    """
    changes, warnings = read_record(model, data, path)
    for index, item in enumerate(changes.get("conditions", ())):
        check_condition(item["condition"], (*path, "conditions", index, "condition"), ip_allowed=False)
    return changes, warnings
