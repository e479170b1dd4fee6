"""Why a user does not have a rule: the nearest reasons first, each a word for programs and a line for people."""

from collections.abc import Iterator
from typing import Any

from sso.perm.engine import access, rules
from sso.perm.engine.compiled import Application, Role
from sso.perm.engine.conditions import compare
from sso.perm.engine.effective import Effective
from sso.perm.engine.facts import PermissionFacts, ProjectFacts
from sso.perm.engine.groups import closed, is_member
from sso.perm.engine.roles import actions_of, applies, through_a_project
from sso.perm.engine.rule_name import ProjectRule, RootRule
from sso.perm.names import CENTRAL_APPLICATION_ID

MAX_REASONS = 20
# From what is closest to having the rule to what is furthest from it.
NEARNESS = (
    "removed",
    "public_only",
    "own_value",
    "revoked",
    "project_closed",
    "protected",
    "expired",
    "condition",
    "not_in_group",
    "role_value",
    "schema_value",
    "elsewhere",
    "not_assigned",
    "no_membership",
    "no_resource",
    "unknown",
)


def why_not(
    application: Application, facts: PermissionFacts, effective: Effective, asked: RootRule | ProjectRule
) -> list[dict[str, Any]]:
    if facts.removed or (facts.home is not None and facts.home.removed):
        return [_reason("removed", "the application, or the project that it belongs to, is removed")]
    if isinstance(asked, ProjectRule):
        found = list(_project_reasons(application, facts, effective, asked))
    else:
        found = [r for path in asked.paths for r in _root_reasons(application, facts, effective, path)]
        found += [
            _reason("public_only", f"the user has it in public data only, under the name {path}", path=path)
            for path in asked.paths
            if path in effective.rules
        ]
    if not found:
        found = [_reason("unknown", "neither the schema nor a role of the application has this rule")]
    return sorted(found, key=lambda reason: NEARNESS.index(reason["reason"]))[:MAX_REASONS]


def _reason(word: str, text: str, **details: Any) -> dict[str, Any]:
    return {"reason": word, "text": text, **details}


def _root_reasons(
    application: Application, facts: PermissionFacts, effective: Effective, path: str
) -> Iterator[dict[str, Any]]:
    section = path.partition(".")[0]
    for entry in rules.entries(getattr(facts.own, section), section):
        if entry.path == path and 0 < entry.expired <= effective.now:
            yield _reason("expired", "the user's own entry has ended", expired=entry.expired)
        elif entry.path == path and not entry.listed:
            yield _reason("own_value", "the user's own data says no", path=path, expired=entry.expired)
    for role in application.roles.values():
        for rule in role.rules:
            if rule.path == path and rule.listed:
                if role.name not in effective.roles:
                    yield from _role_missing(application, facts, effective, role)
            elif rule.path == path and role.name in effective.roles:
                yield _reason("role_value", f"role {role.name} says no", role=role.name)
    for schema_path, node in rules.nodes(getattr(application.schema, section), section):
        if schema_path == path and not rules.is_listed(node["value"]):
            yield _reason("schema_value", "the schema's value says no, and nothing over it says yes", path=path)


def _role_missing(
    application: Application, facts: PermissionFacts, effective: Effective, role: Role
) -> Iterator[dict[str, Any]]:
    """Why a role that has the rule is not effective."""
    if role.name in effective.held.revoked:
        yield _revoked(application, facts, role)
        return
    if not applies(role, effective.held.holding):
        yield _condition_failed(facts, role)
        return
    ended = [item.expired for item in facts.own.roles if item.name == role.name and item.ended(effective.now)]
    if ended:
        yield _reason("expired", f"role {role.name} was assigned and has ended", role=role.name, expired=max(ended))
    grants = list(_grants_missed(application, facts, role))
    yield from grants
    if not ended and not grants:
        yield _reason("not_assigned", f"role {role.name} has it, and is not assigned", role=role.name)


def _revoked(application: Application, facts: PermissionFacts, role: Role) -> dict[str, Any]:
    assert facts.home is not None
    groups = {group.id: group for group in facts.home.groups}
    by = [
        action.group_id
        for action in actions_of(application, facts)
        if action.role == role.name
        and action.action == "revoke"
        and action.group_id in groups
        and is_member(groups[action.group_id], facts.user)
    ]
    titles = ", ".join(groups[group_id].title or group_id for group_id in by)
    text = f"role {role.name} is revoked from the group {titles} by the project {facts.home.id}"
    return _reason("revoked", text, role=role.name, project_id=facts.home.id, groups=by)


def _grants_missed(application: Application, facts: PermissionFacts, role: Role) -> Iterator[dict[str, Any]]:
    if facts.home is None:
        return
    groups = {group.id: group for group in facts.home.groups}
    for action in actions_of(application, facts):
        if action.role != role.name or action.action != "grant" or action.group_id not in groups:
            continue
        details = {"role": role.name, "project_id": facts.home.id, "group_id": action.group_id}
        if not through_a_project(role, generic=False):
            yield _reason("protected", f"role {role.name} is protected and never comes through a project", **details)
        elif not is_member(groups[action.group_id], facts.user):
            title = groups[action.group_id].title or action.group_id
            yield _reason("not_in_group", f"role {role.name} is granted to the group {title} only", **details)
        elif (why := closed(facts.home, facts.user)) is not None:
            yield _reason("project_closed", f"role {role.name} is granted, but {why.value}", **details)


def _condition_failed(facts: PermissionFacts, role: Role) -> dict[str, Any]:
    assert role.condition is not None
    compared = [item._asdict() for item in compare(role.condition, facts.user)]
    text = f"role {role.name} has it, and its condition does not hold"
    return _reason("condition", text, role=role.name, compared=compared)


def _project_reasons(
    application: Application, facts: PermissionFacts, effective: Effective, asked: ProjectRule
) -> Iterator[dict[str, Any]]:
    if application.application_id != CENTRAL_APPLICATION_ID:
        yield _reason("unknown", "project access is reported with the central application")
        return
    project = next((p for p in facts.projects if p.is_named(asked.project)), None)
    if project is None:
        yield _reason("no_membership", "the user is no member of this project", project_id=asked.project)
        return
    if (why := closed(project, facts.user)) is not None:
        yield _reason("project_closed", why.value, project_id=project.id)
    if (asked.level, asked.resource) not in frozenset(access.resources(project)):
        yield _reason("no_resource", "the project has no such application, service or group")
        return
    for role in application.roles.values():
        for rule in role.by_level.get(asked.level, ()):
            if rule.path == asked.rule:
                yield from _given_reasons(facts, effective, project, role, asked, listed=rule.listed)


def _given_reasons(
    facts: PermissionFacts, effective: Effective, project: ProjectFacts, role: Role, asked: ProjectRule, *, listed: bool
) -> Iterator[dict[str, Any]]:
    """Why a generic role that has the rule does not give it at this place."""
    here = ((access.PROJECT, ""), (asked.level, asked.resource))
    given = [item for item in access.assignments(project) if item[2].name == role.name]
    reaching = [assignment for level, resource, assignment in given if (level, resource) in here]
    details = {"role": role.name, "project_id": project.id}
    if not listed:
        if reaching:
            yield _reason("role_value", f"role {role.name} says no", **details)
    elif given and not through_a_project(role, generic=True):
        yield _reason(
            "protected", f"role {role.name} is protected or holds root rules: not through a project", **details
        )
    elif reaching and all(assignment.ended(effective.now) for assignment in reaching):
        ended = max(assignment.expired for assignment in reaching)
        yield _reason("expired", f"role {role.name} was given and has ended", **details, expired=ended)
    elif reaching and not applies(role, effective.held.holding):
        yield _condition_failed(facts, role)
    elif given and not reaching:
        yield _reason("elsewhere", f"role {role.name} is given at another place of the project", **details)
    elif not given:
        yield _reason("not_assigned", f"role {role.name} has it, and is not given in the project", **details)
