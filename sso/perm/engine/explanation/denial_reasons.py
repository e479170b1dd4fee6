"""The reasons why a user does not hold a rule: each has a word for programs and a text for people.

The first reason is the nearest: the one with the least left to change until the user holds the rule.
"""

from collections.abc import Iterator
from typing import Any

from sso.core.ban import Ban, ban_in_force
from sso.perm.engine import rules
from sso.perm.engine.compiled_application import CompiledApplication, CompiledRole
from sso.perm.engine.conditions import compare
from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.explanation.rule_name import ProjectRule, RootRule
from sso.perm.engine.facts import PermissionFacts, ProjectFacts
from sso.perm.engine.groups import is_member
from sso.perm.engine.held_roles import assignable_through_project, group_actions, role_applies
from sso.perm.engine.project_access import PROJECT_LEVEL, membership_assignments, project_scopes
from sso.perm.engine.project_exclusion import project_exclusion
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID

MAX_REASONS = 20
# From the nearest to holding the rule to the furthest.
NEARNESS = (
    "removed",
    "banned",
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


def denial_reasons(
    application: CompiledApplication,
    facts: PermissionFacts,
    effective: EffectivePermissions,
    rule: RootRule | ProjectRule,
) -> list[dict[str, Any]]:
    if facts.removed or (facts.home is not None and facts.home.removed):
        return [_reason("removed", "the application, or the project that it belongs to, is removed")]
    if ban := facts.ban(application.application_id, effective.now):
        return [_banned(ban)]
    if isinstance(rule, ProjectRule):
        reasons = list(_project_reasons(application, facts, effective, rule))
    else:
        reasons = [reason for path in rule.paths for reason in _root_reasons(application, facts, effective, path)]
        reasons += [
            _reason("public_only", f"the user has it in public data only, under the name {path}", path=path)
            for path in rule.paths
            if path in effective.rules
        ]
    if not reasons:
        reasons = [_reason("unknown", "neither the schema nor a role of the application has this rule")]
    return sorted(reasons, key=lambda reason: NEARNESS.index(reason["reason"]))[:MAX_REASONS]


def _banned(ban: Ban) -> dict[str, Any]:
    return _reason("banned", ban.description, until=ban.until, scope=ban.scope)


def _reason(word: str, text: str, **details: Any) -> dict[str, Any]:
    return {"reason": word, "text": text, **details}


def _root_reasons(
    application: CompiledApplication, facts: PermissionFacts, effective: EffectivePermissions, path: str
) -> Iterator[dict[str, Any]]:
    section = rules.section_of(path)
    for entry in rules.rule_entries(getattr(facts.own, section), section):
        if entry.path == path and 0 < entry.expired <= effective.now:
            yield _reason("expired", "the user's own entry has ended", expired=entry.expired)
        elif entry.path == path and not entry.listed:
            yield _reason("own_value", "the user's own data has a false value for it", path=path, expired=entry.expired)
    for role in application.roles.values():
        for rule in role.rules:
            if rule.path == path and rule.listed:
                if role.name not in effective.roles:
                    yield from _role_reasons(application, facts, effective, role)
            elif rule.path == path and role.name in effective.roles:
                yield _reason("role_value", f"role {role.name} has a false value for it", role=role.name)
    for schema_path, node in rules.rule_nodes(getattr(application.schema, section), section):
        if schema_path == path and not rules.is_listed(node["value"]):
            yield _reason("schema_value", "the schema has a false value for it, and no role gives it", path=path)


def _role_reasons(
    application: CompiledApplication, facts: PermissionFacts, effective: EffectivePermissions, role: CompiledRole
) -> Iterator[dict[str, Any]]:
    """Why a role that has the rule is not effective."""
    if role.name in effective.held_roles.revoked:
        yield _revoked(application, facts, role, effective.now)
        return
    if not role_applies(role, effective.held_roles.met_conditions):
        yield _condition_failed(facts, role, effective.now)
        return
    ended = [item.expired for item in facts.own.roles if item.name == role.name and item.ended(effective.now)]
    if ended:
        yield _reason("expired", f"role {role.name} was assigned and has ended", role=role.name, expired=max(ended))
    missed_grants = list(_missed_grants(application, facts, role, effective.now))
    yield from missed_grants
    if not ended and not missed_grants:
        yield _reason("not_assigned", f"role {role.name} has it, but is not assigned", role=role.name)


def _revoked(application: CompiledApplication, facts: PermissionFacts, role: CompiledRole, now: int) -> dict[str, Any]:
    assert facts.home is not None
    groups = {group.id: group for group in facts.home.groups}
    group_ids = [
        action.group_id
        for action in group_actions(application, facts)
        if action.role == role.name
        and action.action == "revoke"
        and action.group_id in groups
        and is_member(groups[action.group_id], facts.user, now)
    ]
    titles = ", ".join(groups[group_id].title or group_id for group_id in group_ids)
    text = f"role {role.name} is revoked from the group {titles} by the project {facts.home.id}"
    return _reason("revoked", text, role=role.name, project_id=facts.home.id, groups=group_ids)


def _missed_grants(
    application: CompiledApplication, facts: PermissionFacts, role: CompiledRole, now: int
) -> Iterator[dict[str, Any]]:
    """Why each grant of the role by the project of the application does not reach the user."""
    if facts.home is None:
        return
    groups = {group.id: group for group in facts.home.groups}
    for action in group_actions(application, facts):
        if action.role != role.name or action.action != "grant" or action.group_id not in groups:
            continue
        details = {"role": role.name, "project_id": facts.home.id, "group_id": action.group_id}
        if not assignable_through_project(role, generic=False):
            yield _reason(
                "protected", f"role {role.name} is protected and cannot be granted through a project", **details
            )
        elif not is_member(groups[action.group_id], facts.user, now):
            title = groups[action.group_id].title or action.group_id
            yield _reason("not_in_group", f"role {role.name} is granted to the group {title} only", **details)
        elif (exclusion := project_exclusion(facts.home, facts.user, now)) is not None:
            yield _reason("project_closed", f"role {role.name} is granted, but {exclusion.value}", **details)


def _condition_failed(facts: PermissionFacts, role: CompiledRole, now: int) -> dict[str, Any]:
    assert role.condition is not None
    compared = [comparison._asdict() for comparison in compare(role.condition, facts.user, now)]
    text = f"role {role.name} has it, but its condition does not hold"
    return _reason("condition", text, role=role.name, compared=compared)


def _project_reasons(
    application: CompiledApplication, facts: PermissionFacts, effective: EffectivePermissions, rule: ProjectRule
) -> Iterator[dict[str, Any]]:
    if application.application_id != CENTRAL_APPLICATION_ID:
        yield _reason("unknown", "project access is reported with the central application")
        return
    project = next((project for project in facts.projects if project.is_named(rule.project)), None)
    if project is None:
        yield _reason("no_membership", "the user is not a member of this project", project_id=rule.project)
        return
    resource = int(rule.resource) if rule.level in ("applications", "services") and rule.resource.isdecimal() else 0
    if ban := ban_in_force(facts.bans, effective.now, (resource,), (project.id,)):
        yield _banned(ban)
    if (exclusion := project_exclusion(project, facts.user, effective.now)) is not None:
        yield _reason("project_closed", exclusion.value, project_id=project.id)
    if (rule.level, rule.resource) not in frozenset(project_scopes(project)):
        yield _reason("no_resource", "the project has no such application, service or group")
        return
    for role in application.roles.values():
        for role_rule in role.rules_by_level.get(rule.level, ()):
            if role_rule.path == rule.rule:
                yield from _membership_reasons(facts, effective, project, role, rule, listed=role_rule.listed)


def _membership_reasons(
    facts: PermissionFacts,
    effective: EffectivePermissions,
    project: ProjectFacts,
    role: CompiledRole,
    rule: ProjectRule,
    *,
    listed: bool,
) -> Iterator[dict[str, Any]]:
    """Why a generic role that has the rule does not give it at this scope."""
    scopes = ((PROJECT_LEVEL, ""), (rule.level, rule.resource))
    assigned = [item for item in membership_assignments(project) if item[2].name == role.name]
    reaching = [assignment for level, resource, assignment in assigned if (level, resource) in scopes]
    details = {"role": role.name, "project_id": project.id}
    if not listed:
        if reaching:
            yield _reason("role_value", f"role {role.name} has a false value for it", **details)
    elif assigned and not assignable_through_project(role, generic=True):
        yield _reason(
            "protected", f"role {role.name} is protected or has root rules: a project cannot assign it", **details
        )
    elif reaching and all(assignment.ended(effective.now) for assignment in reaching):
        ended = max(assignment.expired for assignment in reaching)
        yield _reason("expired", f"role {role.name} was assigned and has ended", **details, expired=ended)
    elif reaching and not role_applies(role, effective.held_roles.met_conditions):
        yield _condition_failed(facts, role, effective.now)
    elif assigned and not reaching:
        yield _reason("elsewhere", f"role {role.name} is assigned at another resource of the project", **details)
    elif not assigned:
        yield _reason("not_assigned", f"role {role.name} has it, but is not assigned in the project", **details)
