"""Whether a user has one rule: the answer is that of a list, without rendering the list."""

from collections.abc import Mapping

from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.explanation.rule_name import RootRule, parse_rule_name
from sso.perm.engine.project_access import PROJECT_LEVEL
from sso.perm.engine.render import (
    Options,
    SourceGroups,
    entry_params,
    list_entries,
    list_short_entries,
    short_name,
    short_prefix,
)
from sso.perm.engine.rules import LISTED_SECTIONS, section_of, without_section

_PREFIXES = tuple(f"{section}." for section in LISTED_SECTIONS)


def sections_of(rule: str) -> frozenset[str]:
    """Returns the sections in which a rule can be.

    A name with a section is one of ``list``, others are of ``list_short``.
    """
    if is_full_name(rule):
        return frozenset((rule.partition(".")[0],))
    return frozenset(LISTED_SECTIONS)


def rule_index(effective: EffectivePermissions, sections: frozenset[str]) -> Mapping[str, SourceGroups]:
    """Returns the rules in these sections by name, both as in ``list`` and as in ``list_short``.

    A name that begins with a section is one of ``list``. In ``list_short``, a public path such as
    ``public_data.private_data.kick`` could look like the private rule ``kick``.
    """
    options = Options(sections=sections)
    short = list_short_entries(effective, options)
    named = {name: groups for name, groups in short.items() if not is_full_name(name)}
    return named | list_entries(effective, options)


def find_rule(effective: EffectivePermissions, name: str, sections: frozenset[str]) -> SourceGroups | None:
    """Returns the entry of `rule_index` with this name, without the others."""
    rule = parse_rule_name(name)
    if isinstance(rule, RootRule) and name in (*rule.paths, without_section(rule.paths[0])):
        is_short = not is_full_name(name)
        groups = tuple(
            effective.rules[path]
            for path in sorted(rule.paths)
            if path in effective.rules
            and section_of(path) in sections
            and not (is_short and short_name(effective, path) != name)
        )
        return groups or None
    return rule_index(effective, sections).get(name)


def is_full_name(name: str) -> bool:
    """Returns whether the name of a rule begins with its section, as in ``list``."""
    return name.startswith(_PREFIXES)


def project_prefix(effective: EffectivePermissions, project: str) -> str:
    """Returns what the names of a project's rules begin with in ``list_short``. An alias names the project, too."""
    named = (access.project.id for access in effective.projects if access.project.is_named(project))
    return short_prefix(next(named, project), PROJECT_LEVEL, "")


def covers_param(source_groups: SourceGroups, param: str | None) -> bool:
    """Returns whether a rule that the user has is valid for the parameter. A rule without parameters is unlimited."""
    if param is None:
        return True
    params = entry_params(source_groups)
    return not params or param in params
