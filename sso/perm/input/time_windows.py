"""Checks of the member ``time`` of a condition. All its members are optional; unknown ones are errors."""

from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from sso.core.field_errors import FieldError, FieldPath, is_plain_name
from sso.perm.engine.time_windows import CLOCK, DAY_MINUTES, DAYS, MAX_MOMENT, clock_minute, time_zone
from sso.perm.input.validators import check_number, read, read_array, read_object

MEMBERS = ("from", "until", "weekly", "zone")
HOURS_MEMBERS = ("days", "from", "to")
MAX_WEEKLY = 20
MAX_ZONE = 64
_ZONE = "must be a time zone such as Europe/Berlin, or UTC"


Moment: TypeAlias = Annotated[int, Field(ge=0, le=MAX_MOMENT)]  # in Unix seconds


def check_time_window(value: object, path: FieldPath) -> int:
    """Returns the number of weekly windows. Raises FieldError."""
    window = read_object(value, path)
    _refuse_unknown(window, MEMBERS, path)
    moments = {name: read(_check_moment, window[name], (*path, name)) for name in ("from", "until") if name in window}
    if "from" in moments and "until" in moments and moments["from"] >= moments["until"]:
        raise FieldError((*path, "until"), "must be later than from")
    if "zone" in window:
        read(_check_zone, window["zone"], (*path, "zone"))
    if "weekly" not in window:
        return 0
    items = read_array(window["weekly"], (*path, "weekly"), MAX_WEEKLY)
    if not items:
        raise FieldError((*path, "weekly"), "must have at least one window")
    for index, item in enumerate(items):
        _check_hours(item, (*path, "weekly", index))
    return len(items)


def time_window_schema() -> dict[str, Any]:
    """Returns the JSON schema of the member, without the rules that compare two of its values."""
    moment = {"type": "integer", "minimum": 0, "maximum": MAX_MOMENT}
    days = {"type": "array", "items": {"enum": list(DAYS)}, "minItems": 1, "maxItems": len(DAYS)}
    clock = {"type": "string", "pattern": f"^(?:{CLOCK.pattern})$"}
    hours = {"type": "object", "properties": {"days": days, "from": clock, "to": clock}, "additionalProperties": False}
    weekly = {"type": "array", "items": hours | {"minProperties": 1}, "minItems": 1, "maxItems": MAX_WEEKLY}
    members = {"from": moment, "until": moment, "weekly": weekly, "zone": {"type": "string", "maxLength": MAX_ZONE}}
    return {"type": "object", "properties": members, "additionalProperties": False}


def _check_hours(value: object, path: FieldPath) -> None:
    hours = read_object(value, path)
    _refuse_unknown(hours, HOURS_MEMBERS, path)
    if not hours:
        raise FieldError(path, f"must have at least one of {', '.join(HOURS_MEMBERS)}")
    days = read_array(hours.get("days", list(DAYS)), (*path, "days"))
    if not days or len(days) > len(DAYS) or any(day not in DAYS for day in days):
        raise FieldError((*path, "days"), f"must be a list of {', '.join(DAYS)}")
    start = read(_check_clock, hours.get("from", "00:00"), (*path, "from"))
    end = read(_check_clock, hours.get("to", "24:00"), (*path, "to"))
    if start == DAY_MINUTES:
        raise FieldError((*path, "from"), "must be earlier than 24:00")
    if start == end:
        raise FieldError((*path, "to"), "must differ from from; 00:00 to 24:00 is the whole day")


def _check_moment(value: object) -> int:
    moment = check_number(value)
    if moment > MAX_MOMENT:
        raise ValueError(f"must be Unix seconds, at most {MAX_MOMENT}")
    return moment


def _check_zone(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_ZONE:
        raise ValueError(_ZONE)
    try:
        time_zone(value)
    except ValueError:
        raise ValueError(f"{_ZONE}; there is no such zone") from None
    return value


def _check_clock(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError("must be a time of the day such as 22:00")  # noqa: TRY004 - a check raises one kind of error
    return clock_minute(value)


def _refuse_unknown(value: Iterable[str], known: tuple[str, ...], path: FieldPath) -> None:
    for name in value:
        if name not in known:
            text = f'"{name}" is not known' if is_plain_name(name) else "has an unknown member"
            raise FieldError(path, f"{text}; known are {', '.join(known)}")
