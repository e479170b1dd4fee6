"""Rows of a form with the roles that someone has: a check box to keep each of them, and the day on which it ends."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from sso.core.field_errors import FieldError
from sso.core.moments import utc_moment


class RoleRow(Struct, frozen=True):
    name: str
    expired: int = 0  # Unix seconds; 0: never
    ttl: int = 0
    place: str = ""  # where a member of a project has it: ``applications/10``; "" for the whole project
    place_title: str = ""

    @classmethod
    def of(cls, item: str | dict[str, Any], place: str = "", place_title: str = "") -> "RoleRow":
        if isinstance(item, str):
            return cls(item, place=place, place_title=place_title)
        return cls(item["name"], item.get("expired") or 0, item.get("ttl") or 0, place, place_title)

    @property
    def key(self) -> str:
        """The end of the names of its fields."""
        return f"{self.place}/{self.name}" if self.place else self.name

    @property
    def day(self) -> str:
        return f"{utc_moment(self.expired):%Y-%m-%d}" if self.expired else ""

    @property
    def item(self) -> str | dict[str, Any]:
        """The role as the management API takes it."""
        limits = {name: value for name, value in (("expired", self.expired), ("ttl", self.ttl)) if value}
        return {"name": self.name, **limits} if limits else self.name


def kept_rows(rows: Iterable[RoleRow], form: dict[str, str]) -> list[RoleRow]:
    """Returns the rows whose box is checked, with the days of the form. An unchanged day keeps the time of day."""
    kept = []
    for row in rows:
        if f"keep:{row.key}" in form:
            field = f"until:{row.key}"
            is_changed = form.get(field, row.day).strip() != row.day
            expired = read_day(form, field) if is_changed else row.expired
            kept.append(RoleRow(row.name, expired, row.ttl, row.place, row.place_title))
    return kept


def read_day(form: dict[str, str], field: str) -> int:
    """Returns the Unix seconds of the beginning of a day, in UTC; 0 for an empty field."""
    text = form.get(field, "").strip()
    if not text:
        return 0
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise FieldError(("until",), "must be a day such as 2035-12-31") from None


def no_role_chosen() -> FieldError:
    """The error of a form for another role that was saved as it was."""
    return FieldError(("role",), "choose a role")
