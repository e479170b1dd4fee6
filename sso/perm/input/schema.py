"""The sections of an application's schema (§2.8) and of a user's own record (§2.9) in requests."""

from collections.abc import Mapping
from typing import Any

from sso.core.field_errors import FieldError, FieldPath
from sso.perm.engine.reserved_names import SECTIONS
from sso.perm.engine.rules import is_rule
from sso.perm.engine.secret_rights import ALL, APPLICATION_RULES, META_DEFAULTS, NONE, SELF
from sso.perm.input.rules import Layer, RuleReader
from sso.perm.input.validators import read_flag, read_object, unknown_field_warnings

MAX_ROLES = 1000  # of one application
# A get returns these fields and a save ignores them without a warning, so that a client can send a record back.
_READ_ONLY = frozenset(("application_id", "version", "updated_at"))
USER_DATA_FIELDS = frozenset(("user_id", "type", "roles", *SECTIONS))  # of meta/data
_LOGIN_RULES = frozenset(("can", "cannot"))
_META_VALUES = (SELF, ALL, NONE)
_SECRET_SECTIONS: tuple[tuple[str, ...], ...] = (
    ("application",),
    ("meta",),
    ("meta", "roles"),
    ("meta", "private"),
    ("meta", "public"),
    ("meta", "secret"),
)
_SECRET_RULES: tuple[tuple[str, ...], ...] = (
    *(("application", name) for name in APPLICATION_RULES),
    *(("meta", *name.split(".")) for name in META_DEFAULTS),
)


def read_schema(data: object, path: FieldPath = ()) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The sections that were given, and warnings. `read_schema_roles` reads the field ``roles``."""
    fields = read_object(data, path or ("data",))
    sections, warnings = _read_sections(fields, RuleReader(Layer.SCHEMA), path)
    known = _READ_ONLY | {"roles", *SECTIONS}
    return sections, warnings + unknown_field_warnings(fields, known, path)


def read_schema_roles(data: dict[str, Any], path: FieldPath = ()) -> tuple[list[dict[str, Any]], list[str]]:
    """The ``roles`` of a schema, an object with the roles by name, and warnings."""
    from sso.perm.input.roles import read_role  # not above: stores import this module, and pydantic is slow

    roles: list[dict[str, Any]] = []
    warnings: list[str] = []
    path = (*path, "roles")
    items = read_object(data.get("roles", {}), path)
    if len(items) > MAX_ROLES:
        raise FieldError(path, f"must have at most {MAX_ROLES} roles")
    for name, item in items.items():
        fields = read_object(item, (*path, name) if name.isidentifier() else path)
        if fields.get("name", name) != name:
            raise FieldError(path, "the name of a role differs from its key")
        role, role_warnings = read_role({**fields, "name": name}, path)
        roles.append(role)
        warnings += role_warnings
    return roles, warnings


def read_own_data(
    data: object, default_expired: int = 0, path: FieldPath = (), *, limits_names: bool = True
) -> tuple[dict[str, Any], list[str]]:
    """The sections of a user's own data that were given, and warnings.

    ``default_expired`` is for entries without an end time of their own. Without ``limits_names``, the names may be
    longer together than those of new data, as in an export of data from before that limit.
    """
    fields = read_object(data, path or ("data",))
    return _read_sections(fields, RuleReader(Layer.OWN, default_expired, limits_names), path)


def _read_sections(
    fields: Mapping[str, Any], reader: RuleReader, path: FieldPath
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    sections = {name: reader.section(fields[name], (*path, name)) for name in SECTIONS if name in fields}
    _check_login(sections.get("login", {}), (*path, "login"))
    _check_secret(sections.get("secret_data", {}), (*path, "secret_data"))
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


def _check_login(login: Mapping[str, Any], path: FieldPath) -> None:
    if not login.keys() <= _LOGIN_RULES:
        raise FieldError(path, "has only the rules can and cannot")
    for name, node in login.items():
        if not is_rule(node):
            raise FieldError((*path, name), "must be a rule with a value")
        read_flag(node["value"], (*path, name, "value"))


def _check_secret(secret: Mapping[str, Any], path: FieldPath) -> None:
    """Check the values of the rules that the service itself reads. Other rules may have any value."""
    for names in _SECRET_SECTIONS:
        if is_rule(_node(secret, names)):
            raise FieldError((*path, *names), "must contain rules, and must not be a rule itself")
    for names in _SECRET_RULES:
        node = _node(secret, names)
        if node and not is_rule(node):
            raise FieldError((*path, *names), "must be a rule with a value")
        if not node:
            continue
        if names[0] == "application":
            read_flag(node["value"], (*path, *names, "value"))
        elif node["value"] not in _META_VALUES:
            raise FieldError((*path, *names, "value"), 'must be "self", "all" or "none"')


def _node(tree: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    """The node at a path; an empty one if there is none."""
    for name in names:
        tree = tree.get(name) or {}
    return tree
