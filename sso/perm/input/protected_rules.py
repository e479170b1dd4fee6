"""Protected rules: only protected roles may include protected rules of the application's schema (§3).

Paths are compared without their section, because ``list_short`` shows public and private data as one. Otherwise a
public role could include a protected private rule under the same name in public data.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.engine.rules import LISTED_SECTIONS, rule_nodes, without_section


def protected_rules(schema: Schema) -> frozenset[str]:
    """The paths, without their sections, of all protected rules."""
    return frozenset(
        without_section(path)
        for section in LISTED_SECTIONS
        for path, node in rule_nodes(getattr(schema, section), section)
        if node.get("protected") is True
    )


def check_role_protection(role: RoleRecord, protected: frozenset[str]) -> None:
    """Raises ApiError if a public role includes one of these protected rules, whatever value it gives to it."""
    included = _included(role, protected)
    if included and not role.protected:
        raise ApiError(f"role {role.name}: {included[0]} is a protected rule, only a protected role may include it")


def includes_protected(role: RoleRecord, protected: frozenset[str]) -> bool:
    """Whether a role includes one of these protected rules, whatever value it gives to it."""
    return bool(_included(role, protected))


def check_schema_protection(schema: Schema, roles: Iterable[RoleRecord]) -> None:
    """Raises FieldError if a protected rule of the schema is included in a public role."""
    protected = protected_rules(schema)
    for role in roles:
        included = () if role.protected else _included(role, protected)
        if included:
            expected = f"the public role {role.name} holds this rule, so it cannot become protected"
            raise FieldError(tuple(included[0].split(".")), expected, status=409)


def shadowed_private_rules(public_data: Mapping[str, Any], schema: Schema, roles: Iterable[RoleRecord]) -> list[str]:
    """The paths in a user's public data that the application has as private rules only.

    Readers could mistake them for those private rules, so a caller who may write a user's public data but not the
    private data must not write them.
    """
    public = {without_section(path) for path, _ in rule_nodes(schema.public_data, "public_data")}
    private = {without_section(path) for path, _ in rule_nodes(schema.private_data, "private_data")}
    for role in roles:
        private |= {without_section(path) for path in _paths(role, ("private_data",))}
        public |= {without_section(path) for path in _paths(role, ("public_data",))}
    written = {without_section(path) for path, _ in rule_nodes(public_data, "public_data")}
    return sorted((written & private) - public)


def _included(role: RoleRecord, protected: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted({without_section(path) for path in _paths(role, LISTED_SECTIONS)} & protected))


def _paths(role: RoleRecord, sections: tuple[str, ...]) -> Iterator[str]:
    for section in sections:
        tree = role.meta.get(section)
        if isinstance(tree, dict):
            for path, _ in rule_nodes(tree, section):
                yield path
