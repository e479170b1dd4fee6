"""The base class and field types of request models, and the validation of a body against a model.

Types are strict: in JSON, a boolean is not an integer. A form has only strings, so there a decimal string is an
integer. Error messages name the field and what is expected. They never repeat the value, which may be a password that
was sent in the wrong field.
"""

import re
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    PlainValidator,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails

from sso.core.field_errors import FieldError, FieldPath, is_plain_name
from sso.core.ids import MAX_APPLICATION_ID
from sso.web.body import JSON, ParsedBody

MAX_TEXT = 4096
QUERY_FLAGS = {"0": False, "1": True, "false": False, "true": True}
_INT64 = range(-(2**63), 2**63)

# Integers as in JSON, short enough for int() to be fast. [0-9], since \d and int() accept digits of every script.
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_MAX_SHOWN = 3
_MAX_LISTED = 64


class RequestModel(BaseModel):
    """The base of all request models. A `str` field holds at most 4096 code points unless it sets another limit."""

    # Built at its first use, as every model (``sso/core/records.py``).
    model_config = ConfigDict(
        strict=True, extra="ignore", frozen=True, populate_by_name=True, str_max_length=MAX_TEXT, defer_build=True
    )
    repeatable: ClassVar[frozenset[str]] = frozenset()  # form fields that may be repeated without brackets in the name


M = TypeVar("M", bound=BaseModel)


def validate(model: type[M], body: ParsedBody) -> M:
    """Returns the model for the body. Raises FieldError, which names up to three invalid fields."""
    try:
        return model.model_validate(body.fields, context={"form": body.is_form})
    except ValidationError as error:
        raise field_error(error) from None


def field_error(
    error: ValidationError, path: FieldPath = (), *, root: str = "body", too_many: str = "too many fields are invalid"
) -> FieldError:
    """Returns the first three problems in our own words. ``path`` leads to the input, which ``root`` names if it is
    the whole of it."""
    # Formatting a hundred thousand errors would take longer than the rest of the request.
    if error.error_count() > _MAX_LISTED:
        return FieldError(path, too_many)
    problems: dict[str, FieldError] = {}
    for detail in error.errors(include_url=False, include_input=False):
        problem = FieldError((*path, *_path(detail["loc"])) or (root,), expectation(detail))
        problems.setdefault(problem.message, problem)
    first, *others = list(problems.values())[:_MAX_SHOWN]
    return FieldError(first.path, first.expected, others=tuple(others))


def at_most(characters: int, *, at_least: int = 0) -> StringConstraints:
    """Limits the length of a string in code points: `nick: Annotated[str, at_most(64)]`."""
    return StringConstraints(min_length=at_least, max_length=characters)


def _flag(value: object) -> bool:
    if isinstance(value, str) and value in ("0", "1"):
        return value == "1"
    raise ValueError('must be "0" or "1"')


def _query_flag(value: object) -> bool:
    if isinstance(value, str) and value in QUERY_FLAGS:
        return QUERY_FLAGS[value]
    raise ValueError('must be "0" or "1"')


def _whole_number(value: object, info: ValidationInfo) -> int:
    if _is_form(info) and isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if type(value) is int and value in _INT64:
        return value
    raise ValueError("must be an integer")


def _app_id(value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value) and not value.startswith("-"):
        value = int(value)
    if type(value) is int and 0 <= value <= MAX_APPLICATION_ID:
        return value
    raise ValueError("must be an application id")


def _as_list(value: object, info: ValidationInfo) -> object:
    return [value] if _is_form(info) and isinstance(value, str) else value


def _json_object(value: object) -> object:
    if isinstance(value, dict):
        return value
    raise ValueError("must be an object")


def _is_form(info: ValidationInfo) -> bool:
    return isinstance(info.context, dict) and info.context.get("form") is True


# "0" or "1" as a string; 1, true, "true" and ["1"] are not.
Flag: TypeAlias = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "string", "enum": ["0", "1"]})]
# In the query of an API, where "true" and "false" are understood, too.
QueryFlag: TypeAlias = Annotated[
    bool, BeforeValidator(_query_flag), WithJsonSchema({"type": "string", "enum": list(QUERY_FLAGS)})
]
# 64 bits. Narrow it with Field(ge=…, le=…).
WholeNumber: TypeAlias = Annotated[int, BeforeValidator(_whole_number)]
# An integer or its decimal string, from JSON too: clients send both.
AppId: TypeAlias = Annotated[
    int,
    BeforeValidator(_app_id),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_APPLICATION_ID},
                {"type": "string", "pattern": "^(0|[1-9][0-9]{0,9})$"},
            ]
        }
    ),
]
# An array of strings. In a form `name[]=a&name[]=b`, or `name=a` for a single one.
Strings: TypeAlias = Annotated[list[str], FailFast(), BeforeValidator(_as_list)]
# Any JSON object, unchanged: `parse_body` has checked it, and only the size of the body limits its strings.
JsonObject: TypeAlias = Annotated[dict[str, JSON], PlainValidator(_json_object), WithJsonSchema({"type": "object"})]


# Texts for pydantic's error types. Its own messages may quote the input, so other types get a general text.
_EXPECTED = {
    "missing": "is required",
    "extra_forbidden": "is unknown",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be an array",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "literal_error": "must be {expected}",
    "string_too_long": "must be at most {max_length} characters",
    "string_too_short": "must have a length of at least {min_length}",
    "too_long": "must have at most {max_length} items",
    "too_short": "must have at least {min_length} items",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "value_error": "{error}",
}


def expectation(detail: ErrorDetails) -> str:
    """Returns what was expected, in our own words."""
    context: dict[str, Any] = detail.get("ctx", {})
    return _EXPECTED.get(detail["type"], "is not valid").format_map(context)


def _path(loc: tuple[int | str, ...]) -> FieldPath:
    """Returns the names that lead to the value, without keys of free-form objects that are no plain names."""
    if loc and loc[-1] == "[key]":  # the path of the object that has the wrong key
        loc = loc[:-2]
    return tuple(part for part in loc if isinstance(part, int) or is_plain_name(part))
