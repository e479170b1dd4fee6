"""Names that make up rule paths. Paths are strings, so a name must never hold what joins them, or what only we write.

A path such as ``private_data.projectAccess.<project>.private_data.project.<rule>`` is a right over a project. If a name
could hold a dot or a slash, or be ``projectAccess``, whoever may write some permission could write that one.
"""

import re
from collections.abc import Iterable

from sso.perm.engine.names import PROJECT_ACCESS, is_segment, project_key
from sso.perm.errors import InvalidInput

RULE_MEMBERS = frozenset(("value", "params", "expired", "protected", "description"))
RESERVED_PROJECTS = frozenset(("internal", "game"))
PROJECT_TAG = "project"  # makes a group listable in allow and disallow
MAX_TITLE = 32
MAX_ALIASES = 20

_TITLE = re.compile(r"[A-Za-z0-9 _]{1,32}")
_GROUP_ID = re.compile(r"[0-9a-f]{24}")
_APPLICATION_ID = re.compile(r"[1-9][0-9]{0,9}")
MAX_APPLICATION = 2**31 - 1


def segment(name: object, where: str) -> str:
    if not is_segment(name):
        if name == PROJECT_ACCESS:
            raise InvalidInput(f"{where}: {PROJECT_ACCESS} is reserved")
        raise InvalidInput(f"{where}: a name must be 1 to 64 letters, digits, underscores or dashes")
    return str(name)


def title(value: object, where: str) -> str:
    """A project's or a group's title. Spaces at the ends are refused: two titles that look the same are a trap."""
    if not isinstance(value, str) or not _TITLE.fullmatch(value):
        raise InvalidInput(f"{where}: must be 1 to {MAX_TITLE} Latin letters, digits, spaces or underscores")
    if value != value.strip(" "):
        raise InvalidInput(f"{where}: must not begin or end with a space")
    if not value.strip(" _"):
        raise InvalidInput(f"{where}: must hold a letter or a digit")
    return value


def project_id(value: object, where: str = "project") -> str:
    """The id that a title gives. Uniqueness and reserved ids are judged by this, so every spelling of one is caught."""
    made = title(value, where).lower().replace(" ", "_")
    if made in RESERVED_PROJECTS:
        raise InvalidInput(f"{where}: this title is reserved")
    return made


def aliases(value: object, own_id: str, where: str = "aliases") -> tuple[str, ...]:
    """Other names of a project; they share one namespace with the ids, so what no id may be, no alias may be.
    Of several spellings of one name the first is kept."""
    if not isinstance(value, list):
        raise InvalidInput(f"{where}: must be an array of strings")
    found: dict[str, str] = {}
    for at, item in enumerate(value):
        alias = segment(item, f"{where}[{at}]")
        key = project_key(alias)
        if key in RESERVED_PROJECTS:
            raise InvalidInput(f"{where}[{at}]: this name is reserved")
        if key == project_key(own_id):
            raise InvalidInput(f"{where}[{at}]: is the id of the project itself")
        found.setdefault(key, alias)
    if len(found) > MAX_ALIASES:
        raise InvalidInput(f"{where}: must be at most {MAX_ALIASES}")
    return tuple(found.values())


def group_id(value: object, where: str) -> str:
    if not isinstance(value, str) or not _GROUP_ID.fullmatch(value):
        raise InvalidInput(f"{where}: must be a group id of 24 hex digits")
    return value


def is_application_key(text: str) -> bool:
    """An application id as a decimal string, with one spelling only."""
    return _APPLICATION_ID.fullmatch(text) is not None and int(text) <= MAX_APPLICATION


def application_key(value: object, where: str) -> int:
    """An application id as the key of an object."""
    if isinstance(value, str) and is_application_key(value):
        return int(value)
    raise InvalidInput(f"{where}: a key must be an application id")


def unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
