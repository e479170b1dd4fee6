"""Reserved names, and the pure rules by which names are valid and compared. ``input.names`` reads them from requests.

Rule paths are strings, so a name must not contain a separator of paths or a name that only the service writes. A path
such as ``private_data.projectAccess.<project>.private_data.project.<rule>`` is a right over a project: a caller who
could name a rule with a dot or a slash, or ``projectAccess``, could grant that right.
"""

import re
import unicodedata

from sso.core.ids import MAX_APPLICATION_ID

PROJECT_ACCESS = "projectAccess"  # the part of private_data that is computed from memberships, never written
SECTIONS = ("login", "public_data", "private_data", "secret_data")  # of a schema, and of a user's record
RULE_MEMBERS = frozenset(("value", "params", "expired", "protected", "description"))
RESERVED_PROJECTS = frozenset(("internal", "game"))
CENTRAL_APPLICATION_ID = 1  # the application that holds the root rules and the generic roles
DEFAULT_ROLE = "default"
LIST_TYPES = ("list", "list_short", "roles", "tree")  # how permissions are rendered; the first is the default
ROOT_ROLE = "root"
PROJECT_TAG = "project"  # a group needs it to be in an allow or disallow list

_SEGMENT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FORBIDDEN_SEGMENTS = frozenset((PROJECT_ACCESS, "__proto__"))  # the latter breaks clients written in JavaScript
_APPLICATION_ID = re.compile(r"[1-9][0-9]{0,9}")


def is_segment(name: object) -> bool:
    """Returns whether this may be one part of a rule path."""
    return isinstance(name, str) and _SEGMENT.fullmatch(name) is not None and name not in _FORBIDDEN_SEGMENTS


def is_application_key(text: str) -> bool:
    """Returns whether this is an application id as a decimal string. Each id has one spelling."""
    return _APPLICATION_ID.fullmatch(text) is not None and int(text) <= MAX_APPLICATION_ID


def project_key(name: str) -> str:
    """Returns the form in which ids, titles and aliases of projects are compared. An id is its own key."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded).replace("-", "_")
