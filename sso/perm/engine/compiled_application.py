"""An application's schema and roles, compiled once per version.

A compiled application depends on nothing but the application's id and version, so workers cache it by these. An
evaluation does not visit roles that do not apply to the user: a role without a condition is looked up by its
assignment, a role with a condition is found through an index.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from sso.perm.engine import params, rules
from sso.perm.engine.condition_index import ConditionIndex
from sso.perm.engine.conditions import NEVER, Condition, count_nodes, time_windows
from sso.perm.engine.decode import decode_condition
from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.engine.reserved_names import DEFAULT_ROLE
from sso.perm.engine.rules import RuleEntry, RuleSource
from sso.perm.engine.time_windows import TimeWindow

# Level of a project → the section of private_data in which a generic role keeps its rules for that level.
LEVEL_SECTIONS: Mapping[str, str] = {"project": "project", "applications": "app", "services": "srv", "groups": "group"}
_LEVEL_PATHS = tuple(f"private_data.{section}." for section in LEVEL_SECTIONS.values())


class CompiledRule(NamedTuple):
    """A rule of a role."""

    path: str
    listed: bool
    source: RuleSource  # for an assignment that never ends


class CompiledRole(Struct, frozen=True, eq=False, dict=True):
    """A role. It is compiled on first use, because one worker never sees most roles of a large application."""

    record: RoleRecord

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def protected(self) -> bool:
        return self.record.protected

    @property
    def is_default(self) -> bool:
        """Whether the role applies to every user, whatever its condition."""
        return self.record.default or self.record.name == DEFAULT_ROLE

    @cached_property
    def condition(self) -> Condition | None:
        """Returns None for a role without a condition."""
        stored = self.record.condition
        return None if stored == {} else decode_condition(stored)

    @cached_property
    def windows(self) -> tuple[TimeWindow, ...]:
        """The time windows of a condition that counts."""
        if self.is_default or not _asks_for("time", self.record.condition) or self.condition is None:
            return ()
        return tuple(time_windows(self.condition))

    @cached_property
    def rules(self) -> tuple[CompiledRule, ...]:
        role_params = params.split(self.record.params)
        compiled = []
        for entry in self._entries():
            merged = params.merge((entry.params, role_params)) if role_params else entry.params
            source = RuleSource(rules.ROLE, self.name, merged, 0)
            compiled.append(CompiledRule(entry.path, entry.listed, source))
        return tuple(compiled)

    @property
    def list_size(self) -> int:
        """How many characters the rules of the role have in a ``list``, where each has the parameters of the role."""
        role_params = len(self.record.params)
        return sum(_list_size(entry.path, entry.params) + role_params for entry in self._entries() if entry.listed)

    def _entries(self) -> Iterator[RuleEntry]:
        for section in rules.LISTED_SECTIONS:
            tree = self.record.meta.get(section)
            if isinstance(tree, dict):
                yield from rules.rule_entries(tree, section)

    @cached_property
    def holds_root_rules(self) -> bool:
        """Whether a rule of the role is outside the sections of generic rules. Such a rule covers the whole service."""
        return any(not rule.path.startswith(_LEVEL_PATHS) for rule in self.rules)

    @cached_property
    def rules_by_level(self) -> Mapping[str, tuple[CompiledRule, ...]]:
        """The rules for each level of a project; their paths are such as ``app.can_manage_app_api_keys``."""
        return {
            level: tuple(
                rule._replace(path=rules.without_section(rule.path))
                for rule in self.rules
                if rule.path.startswith(f"private_data.{section}.")
            )
            for level, section in LEVEL_SECTIONS.items()
        }


class CompiledApplication(Struct, frozen=True, eq=False, dict=True):
    application_id: int
    version: int
    schema: Schema
    roles: Mapping[str, CompiledRole]
    default_roles: tuple[CompiledRole, ...]
    condition_index: ConditionIndex
    schema_rules: Mapping[str, RuleSource]  # the rules, by path, that the schema gives to every user
    is_large: bool = False  # work with all its roles takes many milliseconds
    size: int = 0  # of the stored schema and roles, in characters of JSON

    @property
    def role_records(self) -> dict[str, RoleRecord]:
        return {name: role.record for name, role in self.roles.items()}

    @cached_property
    def condition_nodes(self) -> int:
        """How many nodes the conditions of all roles have."""
        return sum(count_nodes(role.condition) for role in self.roles.values() if role.condition is not None)

    @cached_property
    def list_size(self) -> int:
        """How many characters a ``list`` has at most that all rules of the schema and of the roles are in."""
        schema_size = sum(_list_size(path, source.params) for path, source in self.schema_rules.items())
        return schema_size + sum(role.list_size for role in self.roles.values())

    @cached_property
    def depends_on_address(self) -> bool:
        """Whether the condition of a role asks for the address of the user."""
        return any(_asks_for("ip", role.record.condition) for role in self.roles.values())

    @cached_property
    def windows(self) -> tuple[TimeWindow, ...]:
        """The time windows of all conditions of roles."""
        return tuple({window for role in self.roles.values() for window in role.windows})

    @cached_property
    def public_names(self) -> frozenset[str]:
        """The paths, without their section, that the schema or any role declares as public rules."""
        return self._declared_names("public_data")

    @cached_property
    def private_names(self) -> frozenset[str]:
        """The paths, without their section, that the schema or any role declares as private rules."""
        return self._declared_names("private_data")

    def _declared_names(self, section: str) -> frozenset[str]:
        trees = [getattr(self.schema, section), *(role.record.meta.get(section) for role in self.roles.values())]
        return frozenset(
            rules.without_section(path)
            for tree in trees
            if isinstance(tree, dict)
            for path, _ in rules.rule_nodes(tree, section)
        )


def compile_application(
    application_id: int,
    version: int,
    schema: Schema,
    records: Iterable[RoleRecord] = (),
    *,
    is_large: bool = False,
    size: int = 0,
) -> CompiledApplication:
    roles = {record.name: CompiledRole(record) for record in records}
    schema_rules = {
        entry.path: RuleSource(rules.SCHEMA, "", entry.params, 0)
        for section in rules.LISTED_SECTIONS
        for entry in rules.rule_entries(getattr(schema, section), section)
        if entry.listed
    }
    default_roles = tuple(role for role in roles.values() if role.is_default)
    conditions = {
        name: role.record.condition for name, role in roles.items() if role.record.condition and not role.is_default
    }
    index = ConditionIndex(conditions, lambda name: roles[name].condition or NEVER)
    compiled = CompiledApplication(
        application_id, version, schema, roles, default_roles, index, schema_rules, is_large, size
    )
    if is_large:  # this is a thread, and later uses are on the event loop
        _ = compiled.depends_on_address, compiled.condition_nodes, compiled.windows
    return compiled


def _list_size(path: str, rule_params: Iterable[str]) -> int:
    return len(path) + sum(map(len, rule_params))


def _asks_for(member: str, stored: object) -> bool:
    """Returns whether a condition has the member, at any depth."""
    if isinstance(stored, Mapping):
        return member in stored or any(_asks_for(member, value) for value in stored.values())
    return isinstance(stored, list) and any(_asks_for(member, item) for item in stored)
