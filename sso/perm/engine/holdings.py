"""What a user holds in a project, and whether that includes everything that a role gives.

A caller may give or take away only what it holds itself. Rules, their parameters and how long they last all count.
A rule without parameters has no limit, so it includes the same rule with parameters.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sso.perm.engine.access import PROJECT, ProjectAccess, assignments
from sso.perm.engine.compiled import LEVELS, Application, Role
from sso.perm.engine.facts import Assignment


class Held(NamedTuple):
    """One source of a rule."""

    params: tuple[str, ...]
    until: int  # Unix time, 0: it never ends


def until(assignment: Assignment) -> int:
    """When an assignment ends. One with a ttl never does: the ttl begins again with each reading."""
    return 0 if assignment.ttl else assignment.expired


def includes(held: Iterable[Held], params: tuple[str, ...], lasting: int | None) -> bool:
    """Whether these sources of a rule include it with these parameters.

    ``lasting`` is the end of what shall be given, 0 for never. None: something is taken away, whenever it would end.
    """
    enough = [item for item in held if lasting is None or not item.until or 0 < lasting <= item.until]
    if any(not item.params for item in enough):
        return True
    return bool(params) and set(params) <= {param for item in enough for param in item.params}


class Holdings:
    """The rules that a user's roles give at each place of one project. No access: nothing."""

    def __init__(self, central: Application, access: ProjectAccess | None) -> None:
        self._held: dict[tuple[str, str], dict[tuple[str, str], list[Held]]] = {}  # (level, resource): (level, rule)
        if access is None:
            return
        ends = {
            (level, resource, assignment.name): until(assignment)
            for level, resource, assignment in assignments(access.project)
        }
        for given in access.roles:
            if given.applies:
                end = ends[given.level, given.resource, given.name]
                self._add(central.roles[given.name], given.level, given.resource, end)

    def _add(self, role: Role, level: str, resource: str, end: int) -> None:
        here = self._held.setdefault((level, resource), {})
        for section in _reached(level):
            for rule in role.by_level[section]:
                if rule.listed:
                    here.setdefault((section, rule.path), []).append(Held(rule.source.params, end))

    def include_role(self, role: Role, level: str, resource: str, lasting: int | None = None) -> bool:
        """Whether the user holds all that the role gives when it is assigned at this place."""
        return all(
            includes(self._sources(section, rule.path, level, resource), rule.source.params, lasting)
            for section in _reached(level)
            for rule in role.by_level[section]
            if rule.listed
        )

    def include_project_rules(self, rules: Iterable[str], *, for_good: bool = False) -> bool:
        """Whether the user has these rules over the whole project; ``for_good``: and they never end."""
        whole: Mapping[tuple[str, str], list[Held]] = self._held.get((PROJECT, ""), {})
        return all(any(not for_good or not held.until for held in whole.get((PROJECT, rule), ())) for rule in rules)

    def _sources(self, section: str, rule: str, level: str, resource: str) -> list[Held]:
        places = {(PROJECT, ""), (level, resource)}
        return [held for place in places for held in self._held.get(place, {}).get((section, rule), ())]


def _reached(level: str) -> Iterable[str]:
    """The sections of a role that count when it is given at this level."""
    return LEVELS if level == PROJECT else (level,)
