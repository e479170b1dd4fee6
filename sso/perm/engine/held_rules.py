"""The rules that a user holds in a project, and whether they cover what a role gives over the project.

A caller may give or take away rules over the project (`PROJECT_RULES`) only if the caller holds them. The rules
themselves, their parameters and their end times all count. A rule without parameters is unlimited, so it covers the
same rule with parameters.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sso.perm.engine.compiled_application import LEVEL_SECTIONS, CompiledApplication, CompiledRole
from sso.perm.engine.project_access import PROJECT_LEVEL, ProjectAccess, membership_assignments
from sso.perm.engine.records import Assignment
from sso.perm.engine.required_rights import PROJECT_RULES
from sso.perm.engine.rules import earliest_end


class HeldRule(NamedTuple):
    """One source of a rule that the user holds."""

    params: tuple[str, ...]
    ends: int  # Unix time; 0 if it never ends


def assignment_end(assignment: Assignment) -> int:
    """When an assignment ends. One with a ttl never does, because the ttl restarts with each evaluation."""
    return 0 if assignment.ttl else assignment.expired


def covers(held: Iterable[HeldRule], params: tuple[str, ...], ends: int | None) -> bool:
    """Returns whether these sources of a rule cover the rule with these parameters.

    ``ends`` is the end time of the rule to give, 0 for never. It is None if a rule is taken away: end times do not
    matter then.
    """
    lasting = [rule for rule in held if ends is None or not rule.ends or 0 < ends <= rule.ends]
    if any(not rule.params for rule in lasting):
        return True
    return bool(params) and set(params) <= {param for rule in lasting for param in rule.params}


class HeldRules:
    """The rules that a user's roles give at each scope of one project; none if ``access`` is None.

    ``more`` are rules, each with its level, that the user holds in every project for another reason.
    """

    def __init__(
        self, central: CompiledApplication, access: ProjectAccess | None, more: Iterable[tuple[str, str]] = ()
    ) -> None:
        # By scope (level, resource), then by rule (level, path).
        self._held: dict[tuple[str, str], dict[tuple[str, str], list[HeldRule]]] = {
            (PROJECT_LEVEL, ""): {rule: [HeldRule((), 0)] for rule in more}
        }
        if access is None:
            return
        ends = {
            (level, resource, assignment.name): assignment_end(assignment)
            for level, resource, assignment in membership_assignments(access.project)
        }
        for role in access.roles:
            if role.applies:
                end = earliest_end((ends[role.level, role.resource, role.name], role.window_end))
                self._add(central.roles[role.name], role.level, role.resource, end)

    def _add(self, role: CompiledRole, level: str, resource: str, ends: int) -> None:
        rules_at_scope = self._held.setdefault((level, resource), {})
        for rule_level in _covered_levels(level):
            for rule in role.rules_by_level[rule_level]:
                if rule.listed:
                    held = HeldRule(rule.source.params, ends)
                    rules_at_scope.setdefault((rule_level, rule.path), []).append(held)

    def cover_role(self, role: CompiledRole, level: str, resource: str, ends: int | None = None) -> bool:
        """Returns whether the user holds what the role gives over the project when it is assigned here until
        ``ends``."""
        return all(
            covers(self._sources(rule_level, rule.path, level, resource), rule.source.params, ends)
            for rule_level in _covered_levels(level)
            for rule in role.rules_by_level[rule_level]
            if rule.listed and rule.path in PROJECT_RULES.get(rule_level, ())
        )

    def cover_project_rules(self, rules: Iterable[str], *, permanently: bool = False) -> bool:
        """Returns whether the user holds these rules over the whole project; with ``permanently``, without an end
        time."""
        whole: Mapping[tuple[str, str], list[HeldRule]] = self._held.get((PROJECT_LEVEL, ""), {})
        return all(
            any(not permanently or not held.ends for held in whole.get((PROJECT_LEVEL, rule), ())) for rule in rules
        )

    def _sources(self, rule_level: str, path: str, level: str, resource: str) -> list[HeldRule]:
        scopes = {(PROJECT_LEVEL, ""), (level, resource)}
        return [held for scope in scopes for held in self._held.get(scope, {}).get((rule_level, path), ())]


def _covered_levels(level: str) -> Iterable[str]:
    """Returns the levels whose rules a role gives when it is assigned at this level."""
    return LEVEL_SECTIONS if level == PROJECT_LEVEL else (level,)
