"""Explain where each rule comes from: its sources, and for each role how the user came by it."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from math import inf
from typing import Any, TypeVarTuple

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

Arguments = TypeVarTuple("Arguments")

ADDED = "added"  # a member of a group who was added by hand
# In the explanation of every rule: a role may have 10,000 rules and a condition of 256 comparisons.
MAX_COMPARISONS = 10_000


def explain_all(
    application: CompiledApplication,
    facts: PermissionFacts,
    effective: EffectivePermissions,
    options: Options,
    *,
    short: bool = False,
) -> dict[str, Any]:
    """Returns the explanation of every rule of a response, by its name in that response (``list`` or
    ``list_short``). It has at most `MAX_COMPARISONS`: what would exceed them is without ``compared``."""
    sources = _Sources(application, facts, effective, MAX_COMPARISONS)
    by_name: dict[str, list[tuple[RuleSource, ...]]] = {}
    for path in sorted(effective.rules):
        if section_of(path) in options.sections:
            name = short_name(effective, path) if short else path
            if name is not None:
                by_name.setdefault(name, []).append(effective.rules[path])
    explanations = {name: _held(groups, sources.of_application(groups)) for name, groups in by_name.items()}
    prefix = short_prefix if short else list_prefix
    if "private_data" in options.sections:
        for access in visible_projects(effective, options):
            for scope in access.scopes:
                scope_prefix = prefix(access.project.id, scope.level, scope.resource)
                for rule, group in scope.rules.items():
                    explanations[scope_prefix + rule] = _held([group], sources.of_project(access, scope, group))
    return dict(sorted(explanations.items()))


def explain_rule(
    application: CompiledApplication, facts: PermissionFacts, effective: EffectivePermissions, name: str
) -> dict[str, Any]:
    """The explanation of one rule: its sources, or the nearest reasons why the user does not hold it."""
    rule, sources = parse_rule_name(name), _Sources(application, facts, effective)
    if isinstance(rule, ProjectRule):
        for access in effective.projects:
            if access.project.is_named(rule.project):
                scope = access.scope(rule.level, rule.resource)
                if scope is not None and rule.rule in scope.rules:
                    group = scope.rules[rule.rule]
                    return {"rule": name} | _held([group], sources.of_project(access, scope, group))
    else:
        groups = [
            effective.rules[path]
            for path in rule.paths
            if path in effective.rules and _is_name_of(effective, rule, path)
        ]
        if groups:
            return {"rule": name} | _held(groups, sources.of_application(groups))
    return {"rule": name, "held": False, "reasons": denial_reasons(application, facts, effective, rule)}


def _is_name_of(effective: EffectivePermissions, rule: RootRule, path: str) -> bool:
    """Returns whether the requested name stands for this path. A short name may not stand for a public path."""
    return len(rule.paths) == 1 or short_name(effective, path) == without_section(path)


def _held(groups: list[tuple[RuleSource, ...]], rendered: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Returns the explanation of a rule that the user holds.

    There is one group of sources for each path of the rule.
    """
    return {
        "held": True,
        "params": list(merged_params(groups)),
        "expired": latest_end(source.ends for sources in groups for source in sources),
        "sources": list(rendered),
    }


class _Sources:
    """Renders the sources of rules. How the user came by a role is found out once for all of its rules."""

    def __init__(
        self,
        application: CompiledApplication,
        facts: PermissionFacts,
        effective: EffectivePermissions,
        max_comparisons: float = inf,
    ) -> None:
        self._application = application
        self._facts = facts
        self._effective = effective
        self._comparisons_left = max_comparisons
        self._origins: dict[object, list[dict[str, Any]]] = {}

    def of_application(self, groups: Iterable[tuple[RuleSource, ...]]) -> Iterator[dict[str, Any]]:
        """Renders the sources of a rule of the application itself."""
        for source in chain.from_iterable(groups):
            rendered = _source(source)
            if source.layer == rules.ROLE:
                role = self._effective.roles[source.role]
                rendered["by"] = self._limited(role.name, self._origins_of_role, role)
            yield rendered

    def of_project(
        self, access: ProjectAccess, scope: AccessScope, sources: Iterable[RuleSource]
    ) -> Iterator[dict[str, Any]]:
        """Renders the sources of a rule at a project or one of its resources."""
        for source in sources:
            place = access.project.id, scope.level, scope.resource, source.role
            origins = self._limited(place, self._origins_in_project, access, scope, source.role)
            yield _source(source) | {"by": origins}

    def _limited(
        self, key: object, compute: Callable[[*Arguments], Iterable[dict[str, Any]]], *arguments: *Arguments
    ) -> list[dict[str, Any]]:
        """Returns the origins, without comparisons if there have been too many."""
        origins = self._origins.get(key)
        if origins is None:
            origins = self._origins[key] = list(compute(*arguments))
        count = sum(len(origin.get("compared", ())) for origin in origins)
        if count > self._comparisons_left:
            return [{name: value for name, value in origin.items() if name != "compared"} for origin in origins]
        self._comparisons_left -= count
        return origins

    def _origins_of_role(self, role: HeldRole) -> Iterator[dict[str, Any]]:
        for origin in role.origins:
            if origin.kind == CONDITION:
                condition = self._application.roles[role.name].condition
                assert condition is not None
                yield self._condition(condition)
            elif origin.kind == GROUP:
                yield self._group(origin)
            elif origin.kind == ASSIGNMENT:
                yield {"kind": ASSIGNMENT, "expired": origin.ends}
            else:
                yield {"kind": origin.kind}

    def _origins_in_project(self, access: ProjectAccess, scope: AccessScope, name: str) -> Iterator[dict[str, Any]]:
        for role in access.roles:
            is_here = role.level == PROJECT_LEVEL or (role.level, role.resource) == (scope.level, scope.resource)
            if role.name == name and role.applies and is_here:
                yield {
                    "kind": "project",
                    "project_id": access.project.id,
                    "at": f"{role.level}.{role.resource}" if role.resource else role.level,
                    "expired": role.ends,
                }
        compiled = self._application.roles[name]
        if compiled.condition is not None and not compiled.is_default:
            yield self._condition(compiled.condition)

    def _group(self, origin: Origin) -> dict[str, Any]:
        facts, now = self._facts, self._effective.now
        rendered: dict[str, Any] = {"kind": GROUP, "project_id": origin.project_id, "group_id": origin.group_id}
        for group in facts.home.groups if facts.home else ():
            if group.id == origin.group_id and (membership := explain_membership(group, facts.user, now)) is not None:
                rendered["group"] = group.title
                rendered["member"] = ADDED if membership.added else membership.title
                if not membership.added:
                    rendered["compared"] = [comparison._asdict() for comparison in membership.compared]
        return rendered

    def _condition(self, condition: Condition) -> dict[str, Any]:
        comparisons = compare(condition, self._facts.user, self._effective.now)
        return {"kind": CONDITION, "compared": [comparison._asdict() for comparison in comparisons]}


def _source(source: RuleSource) -> dict[str, Any]:
    rendered: dict[str, Any] = {"layer": source.layer}
    if source.role:
        rendered["role"] = source.role
    return rendered | {"params": list(source.params), "expired": source.ends}
