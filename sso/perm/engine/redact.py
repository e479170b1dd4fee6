"""Explanations without what only readers of the role list may see: conditions, and roles that the user does not have.

A user may ask about their own rules without being allowed to read the application's roles. Such an answer still tells
whether the rule is held, by which of the user's roles, and the kinds of reasons why not.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from sso.perm.engine.roles import CONDITION

# Whether the caller may see conditions, given the project that an explanation is about; None: no project.
Sees: TypeAlias = Callable[[str | None], bool]

# Reasons that name a role which the user does not have, or what a project does with it.
_TEXTS = {
    "revoked": "a role that has it is revoked by the project",
    "project_closed": "a role that has it is granted, but the project does not let the user in",
    "protected": "a role that has it is protected and never comes through a project",
    "condition": "a role has it, and its condition does not hold",
    "not_in_group": "a role that has it is granted to a group that the user does not belong to",
    "elsewhere": "a role that has it is given at another place of the project",
    "not_assigned": "a role has it, and is not assigned",
}
_HIDDEN = frozenset(("role", "group_id", "groups", "compared"))


def redacted_chain(chain: dict[str, Any], project_id: str | None, sees: Sees) -> dict[str, Any]:
    """One explanation; ``project_id`` is the project of the application, for links that name none."""
    found = dict(chain)
    if "sources" in chain:
        found["sources"] = [_link(link, project_id, sees) for link in chain["sources"]]
    if "reasons" in chain and not sees(project_id):
        found["reasons"] = _reasons(chain["reasons"])
    return found


def _link(link: dict[str, Any], project_id: str | None, sees: Sees) -> dict[str, Any]:
    if "by" not in link:
        return link
    about = next((origin["project_id"] for origin in link["by"] if origin["kind"] == "project"), project_id)
    return link if sees(about) else link | {"by": [_origin(origin) for origin in link["by"]]}


def _origin(origin: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in origin.items() if name != "compared"}
    if "compared" in origin and "member" in origin:
        kept["member"] = CONDITION  # instead of its title
    return kept


def _reasons(reasons: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each kind of hidden reason once: how many roles there are is not shown either."""
    found: list[dict[str, Any]] = []
    for reason in reasons:
        shown = reason
        if (text := _TEXTS.get(reason["reason"])) is not None and "role" in reason:
            shown = {name: value for name, value in reason.items() if name not in _HIDDEN} | {"text": text}
        if shown not in found:
            found.append(shown)
    return found
