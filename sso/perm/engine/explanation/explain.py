"""Explain where each rule comes from: its sources, and for each role how the user came by it."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from sso.perm.engine import rules
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.conditions import Condition, compare
from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.explanation.denial_reasons import denial_reasons
from sso.perm.engine.explanation.rule_name import ProjectRule, RootRule, parse_rule_name
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.groups import explain_membership
from sso.perm.engine.held_roles import ASSIGNMENT, CONDITION, GROUP, HeldRole, Origin
from sso.perm.engine.project_access import PROJECT_LEVEL, AccessScope, ProjectAccess
from sso.perm.engine.render import Options, list_prefix, short_name, short_prefix, visible_projects
from sso.perm.engine.rules import RuleSource, latest_end, merged_params, section_of, without_section
from sso.perm.engine.user_facts import UserFacts


def explain_all(
    application: CompiledApplication,
    facts: PermissionFacts,
    effective: EffectivePermissions,
    options: Options,
    *,
    short: bool = False,
) -> dict[str, Any]:
    """Returns the explanation of every rule of a response, by its name in that response (``list`` or
    ``list_short``)."""
    by_name: dict[str, list[tuple[RuleSource, ...]]] = {}
    for path in sorted(effective.rules):
        if section_of(path) in options.sections:
            name = short_name(effective, path) if short else path
            if name is not None:
                by_name.setdefault(name, []).append(effective.rules[path])
    explanations = {
        name: _held(source_groups, _root_sources(application, facts, effective, source_groups))
        for name, source_groups in by_name.items()
    }
    prefix = short_prefix if short else list_prefix
    if "private_data" in options.sections:
        for access in visible_projects(effective, options):
            for scope in access.scopes:
                scope_prefix = prefix(access.project.id, scope.level, scope.resource)
                for rule, sources in scope.rules.items():
                    rendered = _scope_sources(application, facts, access, scope, sources, effective.now)
                    explanations[scope_prefix + rule] = _held([sources], rendered)
    return dict(sorted(explanations.items()))


def explain_rule(
    application: CompiledApplication, facts: PermissionFacts, effective: EffectivePermissions, name: str
) -> dict[str, Any]:
    """The explanation of one rule: its sources, or the nearest reasons why the user does not hold it."""
    rule = parse_rule_name(name)
    if isinstance(rule, ProjectRule):
        for access in effective.projects:
            if access.project.is_named(rule.project):
                scope = access.scope(rule.level, rule.resource)
                if scope is not None and rule.rule in scope.rules:
                    sources = scope.rules[rule.rule]
                    rendered = _scope_sources(application, facts, access, scope, sources, effective.now)
                    return {"rule": name} | _held([sources], rendered)
    else:
        source_groups = [
            effective.rules[path]
            for path in rule.paths
            if path in effective.rules and _is_name_of(effective, rule, path)
        ]
        if source_groups:
            rendered = _root_sources(application, facts, effective, source_groups)
            return {"rule": name} | _held(source_groups, rendered)
    return {"rule": name, "held": False, "reasons": denial_reasons(application, facts, effective, rule)}


def _is_name_of(effective: EffectivePermissions, rule: RootRule, path: str) -> bool:
    """Returns whether the requested name stands for this path. A short name may not stand for a public path."""
    return len(rule.paths) == 1 or short_name(effective, path) == without_section(path)


def _held(source_groups: Iterable[tuple[RuleSource, ...]], rendered: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Returns the explanation of a rule that the user holds.

    There is one group of sources for each path of the rule.
    """
    groups = list(source_groups)
    return {
        "held": True,
        "params": list(merged_params(groups)),
        "expired": latest_end(source.ends for sources in groups for source in sources),
        "sources": list(rendered),
    }


def _root_sources(
    application: CompiledApplication,
    facts: PermissionFacts,
    effective: EffectivePermissions,
    source_groups: Iterable[tuple[RuleSource, ...]],
) -> Iterator[dict[str, Any]]:
    for source in chain.from_iterable(source_groups):
        rendered = _source(source)
        if source.layer == rules.ROLE:
            rendered["by"] = list(_origins(application, facts, effective.roles[source.role], effective.now))
        yield rendered


def _scope_sources(
    application: CompiledApplication,
    facts: PermissionFacts,
    access: ProjectAccess,
    scope: AccessScope,
    sources: Iterable[RuleSource],
    now: int,
) -> Iterator[dict[str, Any]]:
    for source in sources:
        origins: list[dict[str, Any]] = [
            {
                "kind": "project",
                "project_id": access.project.id,
                "at": f"{role.level}.{role.resource}" if role.resource else role.level,
                "expired": role.ends,
            }
            for role in access.roles
            if role.name == source.role
            and role.applies
            and (role.level == PROJECT_LEVEL or (role.level, role.resource) == (scope.level, scope.resource))
        ]
        condition = application.roles[source.role].condition
        if condition is not None and not application.roles[source.role].is_default:
            origins.append(_condition(condition, facts.user, now))
        yield _source(source) | {"by": origins}


def _source(source: RuleSource) -> dict[str, Any]:
    rendered: dict[str, Any] = {"layer": source.layer}
    if source.role:
        rendered["role"] = source.role
    return rendered | {"params": list(source.params), "expired": source.ends}


def _origins(
    application: CompiledApplication, facts: PermissionFacts, role: HeldRole, now: int
) -> Iterator[dict[str, Any]]:
    for origin in role.origins:
        if origin.kind == CONDITION:
            condition = application.roles[role.name].condition
            assert condition is not None
            yield _condition(condition, facts.user, now)
        elif origin.kind == GROUP:
            yield _group(origin, facts, now)
        elif origin.kind == ASSIGNMENT:
            yield {"kind": ASSIGNMENT, "expired": origin.ends}
        else:
            yield {"kind": origin.kind}


def _group(origin: Origin, facts: PermissionFacts, now: int) -> dict[str, Any]:
    rendered: dict[str, Any] = {"kind": GROUP, "project_id": origin.project_id, "group_id": origin.group_id}
    for group in facts.home.groups if facts.home else ():
        if group.id == origin.group_id and (membership := explain_membership(group, facts.user, now)) is not None:
            rendered["group"] = group.title
            rendered["member"] = "added" if membership.added else membership.title
            if not membership.added:
                rendered["compared"] = [comparison._asdict() for comparison in membership.compared]
    return rendered


def _condition(condition: Condition, user: UserFacts, now: int) -> dict[str, Any]:
    return {"kind": CONDITION, "compared": [comparison._asdict() for comparison in compare(condition, user, now)]}
