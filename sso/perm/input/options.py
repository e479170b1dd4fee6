"""The ``options`` of a meta/data get (§4.5)."""

from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from sso.perm.input.model import InputModel, read_record
from sso.perm.input.validators import MAX_NUMBER, check_number
from sso.web.request_model import at_most

MAX_RULE_NAME = 512


def _check_explain(value: object) -> bool | str:
    if isinstance(value, bool) or (isinstance(value, str) and 0 < len(value) <= MAX_RULE_NAME):
        return value
    raise ValueError("must be true, or the name of a rule")


class UserDataOptions(InputModel):
    project_id: Annotated[str, at_most(64)] = ""  # or an alias
    hide_project_access: bool = False
    with_exp: bool = False
    with_roles: bool = False
    with_apps_data: bool = False
    # All rules, or the one with this name.
    explain: Annotated[
        bool | str,
        PlainValidator(_check_explain),
        WithJsonSchema(
            {"anyOf": [{"type": "boolean"}, {"type": "string", "minLength": 1, "maxLength": MAX_RULE_NAME}]}
        ),
    ] = False
    # A moment in the past, in Unix seconds.
    at: Annotated[
        int | None,
        PlainValidator(check_number),
        WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MAX_NUMBER}),
    ] = None


def read_user_data_options(value: object) -> tuple[dict[str, Any], list[str]]:
    """The options that were given, and warnings."""
    return read_record(UserDataOptions, value, ("options",))
