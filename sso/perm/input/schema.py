"""The sections of an application's schema (§2.8) and of a user's own record (§2.9) in requests."""

from collections.abc import Mapping
from typing import Any

from sso.perm.engine.reserved_names import SECTIONS
from sso.perm.engine.rules import is_rule, rule_nodes
from sso.perm.engine.secret_rights import ALL, APPLICATION_RULES, META_DEFAULTS, NONE, SELF
from sso.perm.errors import InvalidInput
from sso.perm.input.rules import Layer, RuleReader
from sso.perm.input.validators import read_flag, read_object, unknown_field_warnings

# A get returns these fields and a save ignores them without a warning, so that a client can send a record back.
_READ_ONLY = frozenset(("application_id", "version", "updated_at"))
USER_DATA_FIELDS = frozenset(("user_id", "type", "roles", *SECTIONS))  # of meta/data
_LOGIN_RULES = frozenset(("can", "cannot"))
_META_VALUES = (SELF, ALL, NONE)
_SECRET_SECTIONS = ("application", "meta", "meta.roles", "meta.private", "meta.public", "meta.secret")


def read_schema(data: object, where: str = "") -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The sections that were given, and warnings. `read_schema_roles` reads the field ``roles``."""
    fields = read_object(data, where or "data")
    sections, warnings = _read_sections(fields, RuleReader(Layer.SCHEMA), where)
    known = _READ_ONLY | {"roles", *SECTIONS}
    return sections, warnings + unknown_field_warnings(fields, known, where)


def read_schema_roles(data: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The ``roles`` of a schema, an object with the roles by name, and warnings."""
    from sso.perm.input.roles import read_role  # not above: stores import this module, and pydantic is slow

    roles: list[dict[str, Any]] = []
    warnings: list[str] = []
    for name, item in read_object(data.get("roles", {}), "roles").items():
        fields = read_object(item, f"roles.{name}" if name.isidentifier() else "roles")
        if fields.get("name", name) != name:
            raise InvalidInput("roles: the name of a role differs from its key")
        role, role_warnings = read_role({**fields, "name": name}, "roles")
        roles.append(role)
        warnings += role_warnings
    return roles, warnings


def read_own_data(data: object, default_expired: int = 0, where: str = "") -> tuple[dict[str, Any], list[str]]:
    """The sections of a user's own data that were given, and warnings.

    ``default_expired`` is for entries without an end time of their own.
    """
    fields = read_object(data, where or "data")
    return _read_sections(fields, RuleReader(Layer.OWN, default_expired), where)


def _read_sections(
    fields: Mapping[str, Any], reader: RuleReader, where: str
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    prefix = f"{where}." if where else ""
    sections = {name: reader.section(fields[name], f"{prefix}{name}") for name in SECTIONS if name in fields}
    _check_login(sections.get("login", {}), f"{prefix}login")
    _check_secret(sections.get("secret_data", {}), f"{prefix}secret_data")
    return sections, reader.warnings


def with_default_rules(
    given: Mapping[str, Any], stored: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The given section with every rule of ``defaults``: the given rule, else the stored one, else the default."""
    section = dict(given)
    for name, default in defaults.items():
        stored_node = stored.get(name, {})
        if not is_rule(default):
            section[name] = with_default_rules(given.get(name, {}), stored_node, default)
        elif name not in given:
            section[name] = stored_node if is_rule(stored_node) else default
    return section


def _check_login(login: Mapping[str, Any], where: str) -> None:
    if not login.keys() <= _LOGIN_RULES:
        raise InvalidInput(f"{where}: has only the rules can and cannot")
    for name, node in login.items():
        if not is_rule(node):
            raise InvalidInput(f"{where}.{name}: must be a rule with a value")
        read_flag(node["value"], f"{where}.{name}.value")


def _check_secret(secret: Mapping[str, Any], where: str) -> None:
    """Check the values of the rules that the service itself reads. Other rules may have any value."""
    for path in _SECRET_SECTIONS:
        if is_rule(_node(secret, path)):
            raise InvalidInput(f"{where}.{path}: must contain rules, and must not be a rule itself")
    for path in (*(f"application.{name}" for name in APPLICATION_RULES), *(f"meta.{name}" for name in META_DEFAULTS)):
        node = _node(secret, path)
        if node and not is_rule(node):
            raise InvalidInput(f"{where}.{path}: must be a rule with a value")
    values = {path.removeprefix("."): node["value"] for path, node in rule_nodes(secret, "")}
    for name in APPLICATION_RULES:
        if f"application.{name}" in values:
            read_flag(values[f"application.{name}"], f"{where}.application.{name}.value")
    for name in META_DEFAULTS:
        if values.get(f"meta.{name}", NONE) not in _META_VALUES:
            raise InvalidInput(f'{where}.meta.{name}.value: must be "self", "all" or "none"')


def _node(tree: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The node at a dotted path; an empty one if there is none."""
    for name in path.split("."):
        tree = tree.get(name) or {}
    return tree
