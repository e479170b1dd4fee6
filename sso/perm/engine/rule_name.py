"""The name of a rule as a list shows it, read back: for people who ask about one."""

from typing import NamedTuple

from sso.perm.engine.compiled import LEVELS
from sso.perm.engine.rules import LISTED_SECTIONS
from sso.perm.names import PROJECT_ACCESS

_ACCESS = f"private_data.{PROJECT_ACCESS}."
_RESOURCE_PARTS = 4


class RootRule(NamedTuple):
    paths: tuple[str, ...]  # a short name may stand in private and in public data


class ProjectRule(NamedTuple):
    project: str  # id or alias
    level: str
    resource: str
    rule: str  # ``app.can_manage_app_api_keys``


def read_rule_name(name: str) -> RootRule | ProjectRule:
    """Takes the name in ``list`` or ``list_short`` form, with or without parameters and seconds."""
    plain = name.partition("|")[0].partition(":")[0].strip()
    if plain.startswith(_ACCESS):
        return _from_list(plain.removeprefix(_ACCESS))
    if "/" in plain:
        parts = plain.split("/")
        if len(parts) == _RESOURCE_PARTS and parts[1] in LEVELS:
            return ProjectRule(*parts)
        return ProjectRule(parts[0], "project", "", "/".join(parts[1:]))
    if plain.startswith(tuple(f"{section}." for section in LISTED_SECTIONS)):
        return RootRule((plain,))
    return RootRule(tuple(f"{section}.{plain}" for section in LISTED_SECTIONS))


def _from_list(rest: str) -> ProjectRule:
    """``<project>.private_data.<rule>`` or ``<project>.<level>.<resource>.private_data.<rule>``."""
    place, _, rule = rest.partition(".private_data.")
    project, _, below = place.partition(".")
    level, _, resource = below.partition(".")
    return ProjectRule(project, level or "project", resource, rule)
