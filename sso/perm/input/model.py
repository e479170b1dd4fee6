"""Reads the records of requests with pydantic models: the fields that were sent, and warnings about unknown ones.

Errors are described in our own words; pydantic's messages never reach a client.
"""

from typing import Any, TypeVar

from pydantic import ConfigDict, ValidationError

from sso.perm.errors import InvalidInput
from sso.perm.input.validators import MAX_TEXT, is_plain_name, unknown_field_warnings
from sso.web.request_model import RequestModel, expectation

MAX_ERRORS = 64  # describing more of them would take longer than the rest of the request
MAX_SHOWN = 3


class InputModel(RequestModel):
    """Base of the records that a save may contain.

    A field with a default is optional. The default itself is not used: a save changes only the fields that were given.
    Unknown fields are ignored, with a warning.
    """

    model_config = ConfigDict(extra="allow", str_max_length=MAX_TEXT)


M = TypeVar("M", bound=InputModel)


def read_record(model: type[M], value: object, where: str = "") -> tuple[dict[str, Any], list[str]]:
    """The fields that were given, ready to store, and warnings. ``where`` is the path of the record in the request."""
    try:
        record = model.model_validate(value)
    except ValidationError as error:
        raise InvalidInput(_describe(error, where)) from None
    warnings: list[str] = []
    return _given_fields(record, where, warnings), warnings


def _given_fields(record: InputModel, where: str, warnings: list[str]) -> dict[str, Any]:
    warnings += unknown_field_warnings(record.model_extra or {}, (), where)
    return {
        name: _plain(getattr(record, name), _member_path(where, name), warnings)
        for name, field in type(record).model_fields.items()
        if name in record.model_fields_set and not field.exclude
    }


def _plain(value: Any, where: str, warnings: list[str]) -> Any:
    """Replace the models in a value by their given fields. Arrays and objects hold models only, or none."""
    match value:
        case InputModel():
            return _given_fields(value, where, warnings)
        case [InputModel(), *_]:
            return [_given_fields(item, f"{where}[{index}]", warnings) for index, item in enumerate(value)]
        case dict() if isinstance(next(iter(value.values()), None), InputModel):
            return {key: _given_fields(item, f"{where}.{key}", warnings) for key, item in value.items()}
    return value


def _describe(error: ValidationError, where: str) -> str:
    """One line that names up to three wrong fields."""
    if error.error_count() > MAX_ERRORS:
        return f"{where or 'data'}: too many fields are wrong"
    details = error.errors(include_url=False, include_input=False)
    lines = dict.fromkeys(f"{_path(detail['loc'], where)}: {expectation(detail)}" for detail in details)
    return "; ".join(list(lines)[:MAX_SHOWN])


def _path(location: tuple[int | str, ...], where: str) -> str:
    """The path of a wrong value, such as ``settings.services.10.groups[3].role``."""
    if location and location[-1] == "[key]":  # the path of the object that has the wrong key
        location = location[:-2]
    path = where
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif is_plain_name(part):
            path = _member_path(path, part)
    return path or "data"


def _member_path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
