"""Remove from explanations what only readers of the role list may see: conditions, and roles that the user lacks.

A user may ask about their own rules without being allowed to read the application's roles. The redacted explanation
still says whether the user holds the rule, by which of the user's roles, and the kinds of reasons why not.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from sso.perm.engine.explanation.explain import ADDED
from sso.perm.engine.held_roles import CONDITION

# Whether the caller may see the conditions of a project's roles; None stands for an application in no project.
MaySeeConditions: TypeAlias = Callable[[str | None], bool]

# Texts for reasons that name a role which the user lacks, or what a project does with it.
_REDACTED_TEXTS = {
    "revoked": "a role that has it is revoked by the project",
    "project_closed": "a role that has it is granted, but the project excludes the user",
    "protected": "a role that has it is protected and cannot be granted through a project",
    "condition": "a role has it, but its condition does not hold",
    "not_in_group": "a role that has it is granted to a group that the user does not belong to",
    "elsewhere": "a role that has it is assigned at another resource of the project",
    "not_assigned": "a role has it, but is not assigned",
}
_HIDDEN_FIELDS = frozenset(("role", "group_id", "groups", "compared"))


def redact_explanation(
    explanation: dict[str, Any], project_id: str | None, may_see: MaySeeConditions
) -> dict[str, Any]:
    """Returns the explanation of one rule.

    ``project_id`` is the project of the application, for sources that name none.
    """
    redacted = dict(explanation)
    if "sources" in explanation:
        redacted["sources"] = [_source(source, project_id, may_see) for source in explanation["sources"]]
    if "reasons" in explanation and not may_see(project_id):
        redacted["reasons"] = _reasons(explanation["reasons"])
    return redacted


def _source(source: dict[str, Any], project_id: str | None, may_see: MaySeeConditions) -> dict[str, Any]:
    if "by" not in source:
        return source
    source_project = next((origin["project_id"] for origin in source["by"] if origin["kind"] == "project"), project_id)
    return source if may_see(source_project) else source | {"by": [_origin(origin) for origin in source["by"]]}


def _origin(origin: dict[str, Any]) -> dict[str, Any]:
    redacted = {name: value for name, value in origin.items() if name != "compared"}
    if redacted.get("member", ADDED) != ADDED:
        redacted["member"] = CONDITION  # instead of the title of the condition
    return redacted


def _reasons(reasons: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each kind of redacted reason appears once, so that the number of roles is not shown either."""
    shown: list[dict[str, Any]] = []
    for reason in reasons:
        redacted = reason
        if (text := _REDACTED_TEXTS.get(reason["reason"])) is not None and "role" in reason:
            kept = {name: value for name, value in reason.items() if name not in _HIDDEN_FIELDS}
            redacted = kept | {"text": text}
        if redacted not in shown:
            shown.append(redacted)
    return shown
