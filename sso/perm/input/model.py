"""Reads the records of requests with pydantic models: the fields that were sent, and warnings about unknown ones.

Errors are described in our own words; pydantic's messages never reach a client.
"""

from typing import Any, TypeVar

from pydantic import ConfigDict, ValidationError

from sso.core.field_errors import FieldPath
from sso.perm.input.validators import MAX_TEXT, unknown_field_warnings
from sso.web.request_model import RequestModel, field_error


class InputModel(RequestModel):
    """Base of the records that a save may contain.

    A field with a default is optional. The default itself is not used: a save changes only the fields that were given.
    Unknown fields are ignored, with a warning.
    """

    model_config = ConfigDict(extra="allow", str_max_length=MAX_TEXT)


M = TypeVar("M", bound=InputModel)


def read_record(model: type[M], value: object, path: FieldPath = ()) -> tuple[dict[str, Any], list[str]]:
    """The fields that were given, ready to store, and warnings. ``path`` leads to the record in the request."""
    try:
        record = model.model_validate(value)
    except ValidationError as error:
        too_many = f"{'' if path else 'data: '}too many fields are wrong"
        raise field_error(error, path, root="data", too_many=too_many) from None
    warnings: list[str] = []
    return _given_fields(record, path, warnings), warnings


def _given_fields(record: InputModel, path: FieldPath, warnings: list[str]) -> dict[str, Any]:
    if record.model_extra:
        warnings += unknown_field_warnings(record.model_extra, (), path)
    return {
        name: _plain(getattr(record, name), (*path, name), warnings)
        for name, field in type(record).model_fields.items()
        if name in record.model_fields_set and not field.exclude
    }


def _plain(value: Any, path: FieldPath, warnings: list[str]) -> Any:
    """Replace the models in a value by their given fields. Arrays and objects hold models only, or none."""
    match value:
        case InputModel():
            return _given_fields(value, path, warnings)
        case [InputModel(), *_]:
            return [_given_fields(item, (*path, index), warnings) for index, item in enumerate(value)]
        case dict() if isinstance(next(iter(value.values()), None), InputModel):
            return {key: _given_fields(item, (*path, key), warnings) for key, item in value.items()}
    return value
