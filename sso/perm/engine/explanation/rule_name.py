"""Parse the name of a rule as a list shows it."""

from typing import NamedTuple

from sso.perm.engine.compiled_application import LEVEL_SECTIONS
from sso.perm.engine.project_access import PROJECT_LEVEL
from sso.perm.engine.reserved_names import PROJECT_ACCESS
from sso.perm.engine.rules import LISTED_SECTIONS

_ACCESS_PREFIX = f"private_data.{PROJECT_ACCESS}."
_RESOURCE_PARTS = 4  # <project>/<level>/<resource>/<rule>


class RootRule(NamedTuple):
    paths: tuple[str, ...]  # a short name may stand for a path in private and in public data


class ProjectRule(NamedTuple):
    project: str  # id or alias
    level: str
    resource: str
    rule: str  # such as ``app.can_manage_app_api_keys``


def parse_rule_name(name: str) -> RootRule | ProjectRule:
    """Parse a name in ``list`` or ``list_short`` form, with or without parameters and seconds."""
    path = name.partition("|")[0].partition(":")[0].strip()
    if path.startswith(_ACCESS_PREFIX):
        return _parse_access_path(path.removeprefix(_ACCESS_PREFIX))
    if "/" in path:
        parts = path.split("/")
        if len(parts) == _RESOURCE_PARTS and parts[1] in LEVEL_SECTIONS:
            return ProjectRule(*parts)
        return ProjectRule(parts[0], PROJECT_LEVEL, "", "/".join(parts[1:]))
    if path.startswith(tuple(f"{section}." for section in LISTED_SECTIONS)):
        return RootRule((path,))
    return RootRule(tuple(f"{section}.{path}" for section in LISTED_SECTIONS))


def _parse_access_path(path: str) -> ProjectRule:
    """``<project>.private_data.<rule>`` or ``<project>.<level>.<resource>.private_data.<rule>``."""
    scope, _, rule = path.partition(".private_data.")
    project, _, level_and_resource = scope.partition(".")
    level, _, resource = level_and_resource.partition(".")
    return ProjectRule(project, level or PROJECT_LEVEL, resource, rule)
