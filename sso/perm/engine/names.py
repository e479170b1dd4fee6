"""The names that the engine itself knows, and the form in which project names are compared."""

import re
import unicodedata

CENTRAL = 1  # id of the central application, which holds the root rules and the generic roles
DEFAULT_ROLE = "default"
ROOT_ROLE = "root"
PROJECT_ACCESS = "projectAccess"  # the part of private_data that is computed from memberships and never written

_SEGMENT = re.compile(r"[A-Za-z0-9_-]{1,64}")
# __proto__ is useless as a name and dangerous for clients written in JavaScript.
_FORBIDDEN = frozenset((PROJECT_ACCESS, "__proto__"))


def is_segment(name: object) -> bool:
    """Whether this is a valid segment of a rule path.

    A path such as ``private_data.projectAccess.<project>.private_data.project.<rule>`` is a right over a project. If a
    name could contain a dot or be ``projectAccess``, a caller who may write any permission could write that one.
    """
    return isinstance(name, str) and _SEGMENT.fullmatch(name) is not None and name not in _FORBIDDEN


def project_key(name: str) -> str:
    """The form in which ids, titles and aliases of projects are compared. The key of an id is the id."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded).replace("-", "_")
