"""Names and ids in requests: segments of rule paths, titles, aliases, ids of projects, groups and applications."""

import re
import unicodedata

from sso.core.field_errors import FieldError, FieldPath
from sso.core.ids import MAX_APPLICATION_ID
from sso.perm.engine.reserved_names import (
    PROJECT_ACCESS,
    RESERVED_PROJECTS,
    is_application_key,
    is_segment,
    project_key,
)
from sso.perm.input.validators import read

MAX_TITLE = 32
MAX_DISPLAY_NAME = 100
MAX_ALIASES = 20

_TITLE = re.compile(r"[A-Za-z0-9 _]{1,32}")
# Controls, surrogates, line separators and changes of the writing direction. Joiners are letters of many scripts.
_UNSHOWN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"
_GROUP_ID = re.compile(r"[0-9a-f]{24}")


def check_segment(value: object) -> str:
    """A name that may be one part of a rule path."""
    if not is_segment(value):
        if value == PROJECT_ACCESS:
            raise ValueError(f"{PROJECT_ACCESS} is reserved")
        raise ValueError("a name must be 1 to 64 letters, digits, underscores or dashes")
    return str(value)


def read_segment(value: object, path: FieldPath) -> str:
    return read(check_segment, value, path)


def check_title(value: object) -> str:
    """The title of a project or group. Spaces at the ends are refused, because such titles look the same."""
    if not isinstance(value, str) or not _TITLE.fullmatch(value):
        raise ValueError(f"must be 1 to {MAX_TITLE} Latin letters, digits, spaces or underscores")
    if value != value.strip(" "):
        raise ValueError("must not begin or end with a space")
    if not value.strip(" _"):
        raise ValueError("must contain a letter or a digit")
    return value


def check_display_name(value: object) -> str:
    """The name of a project for people, in any script; "" for a project that is shown with its title."""
    if not isinstance(value, str) or len(value) > MAX_DISPLAY_NAME:
        raise ValueError(f"must be a text of at most {MAX_DISPLAY_NAME} characters")
    if any(unicodedata.category(one) in _UNSHOWN and one not in _JOINERS for one in value):
        raise ValueError("must not contain control characters or changes of the writing direction")
    if value != value.strip():
        raise ValueError("must not begin or end with a space")
    if value and not value.strip(_JOINERS):
        raise ValueError("must contain a character that is visible")
    return unicodedata.normalize("NFC", value)


def read_title(value: object, path: FieldPath) -> str:
    return read(check_title, value, path)


def project_id_from_title(value: object, path: FieldPath = ("project",)) -> str:
    """The id of a project with this title. Titles with the same id are duplicates; reserved ids are refused."""
    project_id = read_title(value, path).lower().replace(" ", "_")
    if project_id in RESERVED_PROJECTS:
        raise FieldError(path, "this title is reserved")
    return project_id


def read_aliases(value: object, own_id: str, path: FieldPath = ("aliases",)) -> tuple[str, ...]:
    """Other names of the project ``own_id``; of several spellings of one name the first is kept.

    Aliases and ids share one namespace, so an alias must not be a reserved id either.
    """
    if not isinstance(value, list):
        raise FieldError(path, "must be an array of strings")
    by_key: dict[str, str] = {}
    for index, item in enumerate(value):
        alias = read_segment(item, (*path, index))
        key = project_key(alias)
        if key in RESERVED_PROJECTS:
            raise FieldError((*path, index), "this name is reserved")
        if key == project_key(own_id):
            raise FieldError((*path, index), "is the id of the project itself")
        by_key.setdefault(key, alias)
    if len(by_key) > MAX_ALIASES:
        raise FieldError(path, f"must have at most {MAX_ALIASES} names")
    return tuple(by_key.values())


def is_group_id(value: object) -> bool:
    return isinstance(value, str) and _GROUP_ID.fullmatch(value) is not None


def check_group_id(value: object) -> str:
    if not isinstance(value, str) or not is_group_id(value):
        raise ValueError("must be a group id of 24 hex digits")
    return value


def read_group_id(value: object, path: FieldPath) -> str:
    return read(check_group_id, value, path)


def check_application_key(value: object) -> str:
    """An application id that is the key of a JSON object."""
    if not isinstance(value, str) or not is_application_key(value):
        raise ValueError("a key must be an application id")
    return value


def read_application_key(value: object, path: FieldPath) -> int:
    return int(read(check_application_key, value, path))


def check_application_id(value: object) -> int:
    """An application id as an integer, or as a string in its one spelling."""
    if type(value) is int and 0 < value <= MAX_APPLICATION_ID:
        return value
    if isinstance(value, str) and is_application_key(value):
        return int(value)
    raise ValueError("is required" if value is None else "must be an application id")


def read_application_id(value: object, path: FieldPath) -> int:
    return read(check_application_id, value, path)
