"""A user as a file has it, in the form of the management API."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from sso.cli.records.types import Fields

JsonObject: TypeAlias = Mapping[str, Any]


class NotImported(Exception):
    """This user cannot be imported. The text is the reason, for the report."""


class SourceUser(Struct):
    """``fields`` are those of an imported user. Names of roles, groups and providers are still those of the source."""

    fields: Fields
    source_id: str = ""  # the id of the user at the source
    roles: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    identities: list[Fields] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was not taken over


class Entry(Struct, frozen=True):
    """A user of a file, or why there is none."""

    line: int  # at which the user begins
    user: SourceUser | None
    problem: str = ""


Entries: TypeAlias = Iterator[Entry]


def text_of(values: JsonObject, *names: str) -> str:
    """Returns the first of these members that is a text and not empty."""
    return next((value for name in names if isinstance(value := values.get(name), str) and value), "")


def objects_of(values: JsonObject, name: str) -> list[JsonObject]:
    """Returns the objects of a list; others are left out."""
    items = values.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def names_of(values: JsonObject, name: str) -> list[str]:
    items = values.get(name)
    return [item for item in items if isinstance(item, str)] if isinstance(items, list) else []


def require_address(login: str, advice: str = "") -> str:
    if not login:
        raise NotImported(f"no e-mail address, with which users sign in here{advice}")
    return login


def nickname(login: str, *names: str) -> str:
    """Returns the first name that is no e-mail address, which other players must not see."""
    return next((name for name in names if name and "@" not in name), login.split("@")[0])
