"""An application's schema and roles, prepared once per version and then only looked up.

Kept under (application_id, version): everything here depends on nothing else. Roles that do not apply to a user cost
nothing in an evaluation: those without a condition are found by assignment, those with one by an index.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from sso.perm.engine import params, rules
from sso.perm.engine.condition_index import ConditionIndex
from sso.perm.engine.conditions import NOBODY, Condition
from sso.perm.engine.rules import RuleSource
from sso.perm.errors import InvalidInput
from sso.perm.input.conditions import read_role_condition
from sso.perm.names import DEFAULT_ROLE

# Where a generic role keeps the rules for each level of a project.
LEVELS: Mapping[str, str] = {"project": "project", "applications": "app", "services": "srv", "groups": "group"}
_LEVEL_PATHS = tuple(f"private_data.{section}." for section in LEVELS.values())


@dataclass(frozen=True)
class Schema:
    """The sections of §2.8, as stored."""

    public_data: Mapping[str, Any] = field(default_factory=dict)
    private_data: Mapping[str, Any] = field(default_factory=dict)
    secret_data: Mapping[str, Any] = field(default_factory=dict)
    login: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RoleRecord:
    """A role as stored (§2.7)."""

    name: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    protected: bool = False
    default: bool = False
    condition: Mapping[str, Any] = field(default_factory=dict)
    user_limit: int = 0
    params: str = ""


class RoleRule(NamedTuple):
    path: str
    listed: bool
    source: RuleSource  # for an assignment that never ends


@dataclass(frozen=True, eq=False)
class Role:
    """A role, prepared when first needed: most roles of a large application are never seen by one worker."""

    record: RoleRecord

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def protected(self) -> bool:
        return self.record.protected

    @property
    def is_default(self) -> bool:
        """It applies to everybody, whatever its condition."""
        return self.record.default or self.record.name == DEFAULT_ROLE

    @cached_property
    def condition(self) -> Condition | None:
        try:
            return read_role_condition(self.record.condition)
        except InvalidInput:  # checked when it was saved; what cannot be read any more opens nothing
            return NOBODY

    @cached_property
    def rules(self) -> tuple[RoleRule, ...]:
        appended = params.split(self.record.params)
        found = []
        for section in rules.LISTED_SECTIONS:
            tree = self.record.meta.get(section)
            if isinstance(tree, dict):
                for entry in rules.entries(tree, section):
                    merged = params.merge((entry.params, appended)) if appended else entry.params
                    source = RuleSource(rules.ROLE, self.name, merged, 0)
                    found.append(RoleRule(entry.path, entry.listed, source))
        return tuple(found)

    @cached_property
    def holds_root_rules(self) -> bool:
        """A rule outside the generic sections is a rule over the whole service, not over a project."""
        return any(not rule.path.startswith(_LEVEL_PATHS) for rule in self.rules)

    @cached_property
    def by_level(self) -> Mapping[str, tuple[RoleRule, ...]]:
        """The rules for each level of a project, as ``app.can_manage_app_api_keys``."""
        return {
            level: tuple(
                rule._replace(path=rules.short(rule.path))
                for rule in self.rules
                if rule.path.startswith(f"private_data.{section}.")
            )
            for level, section in LEVELS.items()
        }


@dataclass(frozen=True, eq=False)
class Application:
    application_id: int
    version: int
    schema: Schema
    roles: Mapping[str, Role]
    defaults: tuple[Role, ...]
    index: ConditionIndex
    listed: Mapping[str, RuleSource]  # rules that the schema itself gives to everybody

    @cached_property
    def public_names(self) -> frozenset[str]:
        """The paths, without their section, that the schema declares as public rules."""
        return frozenset(rules.short(path) for path, _ in rules.nodes(self.schema.public_data, "public_data"))

    @cached_property
    def private_names(self) -> frozenset[str]:
        """The paths, without their section, that the schema or any role declares as private rules."""
        found = {rules.short(path) for path, _ in rules.nodes(self.schema.private_data, "private_data")}
        for role in self.roles.values():
            tree = role.record.meta.get("private_data")
            if isinstance(tree, dict):
                found.update(rules.short(path) for path, _ in rules.nodes(tree, "private_data"))
        return frozenset(found)


def compile_application(
    application_id: int, version: int, schema: Schema, records: Iterable[RoleRecord] = ()
) -> Application:
    roles = {record.name: Role(record) for record in records}
    listed = {
        entry.path: RuleSource(rules.SCHEMA, "", entry.params, 0)
        for section in rules.LISTED_SECTIONS
        for entry in rules.entries(getattr(schema, section), section)
        if entry.listed
    }
    defaults = tuple(role for role in roles.values() if role.is_default)
    conditions = {
        name: role.record.condition for name, role in roles.items() if role.record.condition and not role.is_default
    }
    index = ConditionIndex(conditions, lambda name: roles[name].condition or NOBODY)
    return Application(application_id, version, schema, roles, defaults, index, listed)
