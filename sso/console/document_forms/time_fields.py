"""The time window of a condition as fields: from and until, a time zone, and rows of days and hours.

The names of the fields begin with that of the condition: ``condition:from``, ``condition:until``, ``condition:zone``,
and for each row ``condition:opens:1``, ``condition:closes:1`` and ``condition:mon:1``. Times are those of the zone.
"""

import re
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sso.console.form_pages import Form
from sso.core.field_errors import FieldError

DAYS = {"mon": "Mon", "tue": "Tue", "wed": "Wed", "thu": "Thu", "fri": "Fri", "sat": "Sat", "sun": "Sun"}
ZONES = (
    *("America/Chicago", "America/Los_Angeles", "America/New_York", "America/Sao_Paulo", "Asia/Dubai", "Asia/Kolkata"),
    *("Asia/Seoul", "Asia/Shanghai", "Asia/Singapore", "Asia/Tokyo", "Australia/Sydney", "Europe/Berlin"),
    *("Europe/Istanbul", "Europe/Kyiv", "Europe/London", "Europe/Madrid", "Europe/Paris", "Europe/Warsaw", "UTC"),
)
MAX_ROWS = 20
_EDGES = ("from", "until")
_LAST_SHOWN = 32_503_680_000  # the year 3000
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}", re.ASCII)


class HoursRow(NamedTuple):
    number: int
    days: frozenset[str]
    opens: str
    closes: str


def time_fields(time: Any, name: str) -> Form | None:
    """Returns None for a window that fields cannot show."""
    form = _fields(time, name) if isinstance(time, dict) else None
    try:
        is_same = form is not None and read_time(form, name) == time
    except FieldError:
        is_same = False
    return form if is_same else None


def _fields(time: dict[str, Any], name: str) -> Form | None:
    zone = time.get("zone", "")
    form: Form = {f"{name}:zone": zone} if isinstance(zone, str) else {}
    for edge in _EDGES:
        moment = time.get(edge)
        if type(moment) is int and 0 <= moment < _LAST_SHOWN and (place := _zone(zone)) is not None:
            form[f"{name}:{edge}"] = datetime.fromtimestamp(moment, place).replace(tzinfo=None).isoformat()
    weekly = time.get("weekly", [])
    for number, hours in enumerate(weekly if isinstance(weekly, list) else (), 1):
        if not isinstance(hours, dict):
            return None
        days = hours.get("days", [])
        form |= {f"{name}:{day}:{number}": "1" for day in DAYS if isinstance(days, list) and day in days}
        form |= {f"{name}:opens:{number}": _text(hours.get("from")), f"{name}:closes:{number}": _text(hours.get("to"))}
    return form


def _text(value: object) -> str:
    return value if isinstance(value, str) and _CLOCK.fullmatch(value) else ""


def _zone(name: object) -> tzinfo | None:
    try:
        return ZoneInfo(name) if isinstance(name, str) and name else UTC
    except (KeyError, OSError, ValueError):
        return None


def hours_numbers(form: Form, name: str) -> list[int]:
    start = f"{name}:opens:"
    numbers = (field.removeprefix(start) for field in form if field.startswith(start))
    return sorted(int(number) for number in numbers if number.isascii() and number.isdecimal() and len(number) < 5)


def hours_rows(form: Form, name: str) -> list[HoursRow]:
    """Returns the rows for the template."""
    return [
        HoursRow(
            number,
            frozenset(day for day in DAYS if form.get(f"{name}:{day}:{number}")),
            form.get(f"{name}:opens:{number}", ""),
            form.get(f"{name}:closes:{number}", ""),
        )
        for number in hours_numbers(form, name)
    ]


def add_hours(form: Form, name: str) -> Form:
    numbers = hours_numbers(form, name)
    if len(numbers) >= MAX_ROWS:
        raise FieldError((name,), f"has at most {MAX_ROWS} rows of hours")
    number = max(numbers, default=0) + 1
    return form | {f"{name}:opens:{number}": "", f"{name}:closes:{number}": ""}


def remove_hours(form: Form, name: str, number: str) -> Form:
    removed = {f"{name}:{part}:{number}" for part in (*DAYS, "opens", "closes")}
    return {field: text for field, text in form.items() if field not in removed}


def has_time(form: Form, name: str) -> bool:
    """Whether the fields have a value, so that the page shows them."""
    return any(form.get(f"{name}:{part}") for part in (*_EDGES, "zone")) or bool(hours_numbers(form, name))


def read_time(form: Form, name: str) -> dict[str, Any]:
    """Returns the window, unchecked; an empty one if no field has a value. Raises FieldError."""
    zone = form.get(f"{name}:zone", "").strip()
    time: dict[str, Any] = {"zone": zone} if zone else {}
    for edge in _EDGES:
        field = f"{name}:{edge}"
        if text := form.get(field, "").strip():
            time[edge] = _read_moment(text, zone, field)
    weekly = [hours for row in hours_rows(form, name) if (hours := _read_hours(row))]
    return time | ({"weekly": weekly} if weekly else {})


def _read_moment(text: str, zone: str, field: str) -> int:
    place = _zone(zone)
    if place is None:
        raise FieldError((field.rpartition(":")[0] + ":zone",), "must be a time zone such as Europe/Berlin, or UTC")
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=place).timestamp())
    except (OverflowError, ValueError):
        raise FieldError((field,), "must be a date and time such as 2026-01-31 18:00") from None


def _read_hours(row: HoursRow) -> dict[str, Any]:
    hours: dict[str, Any] = {"days": [day for day in DAYS if day in row.days]} if row.days else {}
    hours |= {"from": row.opens.strip()} if row.opens.strip() else {}
    return hours | ({"to": row.closes.strip()} if row.closes.strip() else {})


TIME_VALUES = {"time_days": DAYS, "time_zones": ZONES, "hours_rows": hours_rows, "has_time": has_time}
