"""A condition as rows of a member and a value, all of which or one of which must be met.

The names of the fields begin with that of the condition: ``condition:member:1``, ``condition:value:1``. A part that
rows cannot show, such as a nested condition, is a row with its JSON. A row without a value is not read. The time window
has fields of its own (`time_fields`).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from sso.console.document_forms import time_fields
from sso.console.document_forms.field_texts import is_line, read_json
from sso.console.form_pages import Form
from sso.core.field_errors import FieldError

MAX_ROWS = 50
JSON = "json"
# What a row says about a user. The engine compares each member in one way.
MEMBERS = {
    "tag": "has the tag",
    "domain": "has an e-mail address of the domain",
    "uid": "is one of these users",
    "purchase": "has bought",
    "ip": "comes from the network",
    "everyone": "is any user",
}
_HOURS = ":hours"
_ALL, _ALL_AS_LIST, _ANY = "all", "and", "or"  # how the rows combine; "and" if the condition is written with it


class ConditionRow(NamedTuple):
    number: int
    member: str
    value: str


def condition_fields(condition: Mapping[str, Any], name: str) -> Form:
    time = time_fields.time_fields(condition["time"], name) if condition.get("time") else None
    if time is not None:
        condition = {member: value for member, value in condition.items() if member != "time"}
    match, parts = _parts(condition)
    form: Form = {f"{name}:match": match, **(time or {})}
    for number, part in enumerate(parts, 1):
        form[f"{name}:member:{number}"], form[f"{name}:value:{number}"] = _row(part)
    return add_row(form, name)


def _parts(condition: Mapping[str, Any]) -> tuple[str, list[Any]]:
    match list(condition.items()):
        case [("and" | "or" as match, [_, *_] as parts)]:
            return match, parts
    return _ALL, [{member: value} for member, value in condition.items()]


def _row(part: Any) -> tuple[str, str]:
    match list(part.items()) if isinstance(part, dict) else []:
        case [("tag" | "domain" | "purchase" | "ip" as member, value)] if is_line(value):
            return member, value
        case [("uid", [_, *_] as user_ids)] if all(map(_is_name, user_ids)):
            return "uid", ", ".join(user_ids)
        case [("everyone", True)]:
            return "everyone", ""
    return JSON, orjson.dumps(part).decode()


def _is_name(value: object) -> bool:
    return is_line(value) and len(_names(str(value))) == 1 and "," not in str(value)


def _names(text: str) -> list[str]:
    return text.replace(",", " ").split()


def row_numbers(form: Form, name: str) -> list[int]:
    start = f"{name}:member:"
    numbers = (field.removeprefix(start) for field in form if field.startswith(start))
    return sorted(int(number) for number in numbers if number.isascii() and number.isdecimal() and len(number) < 5)


def rows(form: Form, name: str) -> list[ConditionRow]:
    """Returns the rows for the template."""
    start = f"{name}:member:"
    return [
        ConditionRow(number, form[f"{start}{number}"], form.get(f"{name}:value:{number}", ""))
        for number in row_numbers(form, name)
    ]


def add_row(form: Form, name: str) -> Form:
    """Returns the fields with an empty row at the end. Raises FieldError if there are too many.

    The name of a condition with ``:hours`` stands for its rows of hours.
    """
    if name.endswith(_HOURS):
        return time_fields.add_hours(form, name.removesuffix(_HOURS))
    numbers = row_numbers(form, name)
    if len(numbers) >= MAX_ROWS:
        raise FieldError((name,), f"has at most {MAX_ROWS} rows; write more of them as JSON")
    number = max(numbers, default=0) + 1
    return form | {f"{name}:member:{number}": "tag", f"{name}:value:{number}": ""}


def remove_row(form: Form, name: str, number: str) -> Form:
    if name.endswith(_HOURS):
        return time_fields.remove_hours(form, name.removesuffix(_HOURS), number)
    removed = {f"{name}:member:{number}", f"{name}:value:{number}"}
    return {field: text for field, text in form.items() if field not in removed}


def remove_named_row(form: Form, row: str) -> Form:
    """``row`` is the value of a button: the name of the condition and the number of the row."""
    name, _, number = row.rpartition(":")
    return remove_row(form, name, number)


def read_rows(form: Form, name: str) -> dict[str, Any]:
    """Returns the condition of the fields, unchecked. Raises FieldError for the field of a row."""
    condition, time = _read_members(form, name), time_fields.read_time(form, name)
    if not time:
        return condition
    return {"and": [condition, {"time": time}]} if "time" in condition else {**condition, "time": time}


def _read_members(form: Form, name: str) -> dict[str, Any]:
    rows = [_read_row(form, name, number) for number in row_numbers(form, name)]
    parts = [part for row in rows for part in row]
    match = form.get(f"{name}:match", _ALL)
    if match == _ALL and all(isinstance(part, dict) for part in parts):
        members = [member for part in parts for member in part]
        if len(members) == len(set(members)):
            return {member: value for part in parts for member, value in part.items()}
    return {_ANY if match == _ANY else _ALL_AS_LIST: parts} if parts else {}


def _read_row(form: Form, name: str, number: int) -> list[Any]:
    """Returns the part of the condition that a row states; nothing if it has no value."""
    member, field = form[f"{name}:member:{number}"], f"{name}:value:{number}"
    text = form.get(field, "").strip()
    if member == "everyone":
        return [{"everyone": True}]
    if not text:
        return []
    match member:
        case "json":
            return [read_json(text, field)]
        case "uid":
            return [{"uid": _names(text)}]
        case "tag" | "domain" | "purchase" | "ip":
            return [{member: text}]
    raise FieldError((field,), f"must be about one of {', '.join(MEMBERS)}")


# For the template.
CONDITION_VALUES = {"condition_rows": rows, "condition_members": MEMBERS, **time_fields.TIME_VALUES}
