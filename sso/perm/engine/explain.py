"""Where each rule comes from: the chain from the rule over its roles to what gave them to the user."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from sso.perm.engine import rules
from sso.perm.engine.access import PROJECT, AccessScope, ProjectAccess
from sso.perm.engine.compiled import Application
from sso.perm.engine.conditions import Compared, Condition, compare
from sso.perm.engine.effective import Effective
from sso.perm.engine.facts import PermissionFacts, UserFacts
from sso.perm.engine.groups import belonging
from sso.perm.engine.render import Options, list_prefix, short_name, short_prefix, shown
from sso.perm.engine.roles import ASSIGNMENT, CONDITION, GROUP, HeldRole, Origin
from sso.perm.engine.rule_name import ProjectRule, RootRule, read_rule_name
from sso.perm.engine.rules import RuleSource, longest, merged_params
from sso.perm.engine.why_not import why_not


def explain_all(
    application: Application, facts: PermissionFacts, effective: Effective, options: Options, *, short: bool = False
) -> dict[str, Any]:
    """The chain of every rule of the answer, under the name that the answer gives it (``list`` or ``list_short``)."""
    found: dict[str, list[tuple[RuleSource, ...]]] = {}
    for path in sorted(effective.rules):
        if path.partition(".")[0] in options.sections:
            name = short_name(effective, path, options.sections) if short else path
            found.setdefault(name, []).append(effective.rules[path])
    chains = {name: _chain(paths, _root_links(application, facts, effective, paths)) for name, paths in found.items()}
    prefix = short_prefix if short else list_prefix
    if "private_data" in options.sections:
        for access in shown(effective, options):
            for place in access.places:
                start = prefix(access.project.id, place.level, place.resource)
                for rule, sources in place.rules.items():
                    links = _place_links(application, facts, access, place, sources)
                    chains[start + rule] = _chain([sources], links)
    return dict(sorted(chains.items()))


def explain_rule(application: Application, facts: PermissionFacts, effective: Effective, rule: str) -> dict[str, Any]:
    """The chain of one rule, or the nearest reasons why the user does not have it."""
    asked = read_rule_name(rule)
    if isinstance(asked, ProjectRule):
        for access in effective.projects:
            if access.project.is_named(asked.project):
                place = access.place(asked.level, asked.resource)
                if place is not None and asked.rule in place.rules:
                    sources = place.rules[asked.rule]
                    return {"rule": rule} | _chain([sources], _place_links(application, facts, access, place, sources))
    else:
        held = [
            effective.rules[path] for path in asked.paths if path in effective.rules and _named(effective, asked, path)
        ]
        if held:
            return {"rule": rule} | _chain(held, _root_links(application, facts, effective, held))
    return {"rule": rule, "held": False, "reasons": why_not(application, facts, effective, asked)}


def _named(effective: Effective, asked: RootRule, path: str) -> bool:
    """Whether the name that was asked for is the name of this path: a short name may not stand for a public one."""
    return len(asked.paths) == 1 or short_name(effective, path) != path


def _chain(paths: Iterable[tuple[RuleSource, ...]], links: Iterable[dict[str, Any]]) -> dict[str, Any]:
    found = list(paths)
    return {
        "held": True,
        "params": list(merged_params(found)),
        "expired": longest(source.ends for sources in found for source in sources),
        "sources": list(links),
    }


def _root_links(
    application: Application, facts: PermissionFacts, effective: Effective, paths: Iterable[tuple[RuleSource, ...]]
) -> Iterator[dict[str, Any]]:
    for source in chain.from_iterable(paths):
        link = _link(source)
        if source.layer == rules.ROLE:
            link["by"] = list(_origins(application, facts, effective.roles[source.role]))
        yield link


def _place_links(
    application: Application,
    facts: PermissionFacts,
    access: ProjectAccess,
    place: AccessScope,
    sources: Iterable[RuleSource],
) -> Iterator[dict[str, Any]]:
    here = (place.level, place.resource)
    for source in sources:
        by: list[dict[str, Any]] = [
            {
                "kind": "project",
                "project_id": access.project.id,
                "at": f"{role.level}.{role.resource}" if role.resource else role.level,
                "expired": role.ends,
            }
            for role in access.roles
            if role.name == source.role
            and role.applies
            and (role.level == PROJECT or (role.level, role.resource) == here)
        ]
        condition = application.roles[source.role].condition
        if condition is not None and not application.roles[source.role].is_default:
            by.append(_condition(condition, facts.user))
        yield _link(source) | {"by": by}


def _link(source: RuleSource) -> dict[str, Any]:
    link: dict[str, Any] = {"layer": source.layer}
    if source.role:
        link["role"] = source.role
    return link | {"params": list(source.params), "expired": source.ends}


def _origins(application: Application, facts: PermissionFacts, held: HeldRole) -> Iterator[dict[str, Any]]:
    for origin in held.origins:
        if origin.kind == CONDITION:
            condition = application.roles[held.name].condition
            assert condition is not None
            yield _condition(condition, facts.user)
        elif origin.kind == GROUP:
            yield _group(origin, facts)
        elif origin.kind == ASSIGNMENT:
            yield {"kind": ASSIGNMENT, "expired": origin.ends}
        else:
            yield {"kind": origin.kind}


def _group(origin: Origin, facts: PermissionFacts) -> dict[str, Any]:
    link: dict[str, Any] = {"kind": GROUP, "project_id": origin.project_id, "group_id": origin.group_id}
    for group in facts.home.groups if facts.home else ():
        if group.id == origin.group_id and (why := belonging(group, facts.user)) is not None:
            link["group"] = group.title
            link["member"] = "added" if why.added else why.title
            if not why.added:
                link["compared"] = as_json(why.compared)
    return link


def _condition(condition: Condition, user: UserFacts) -> dict[str, Any]:
    return {"kind": CONDITION, "compared": as_json(compare(condition, user))}


def as_json(compared: Iterable[Compared]) -> list[dict[str, Any]]:
    return [item._asdict() for item in compared]
