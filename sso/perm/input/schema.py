"""Read an application's schema (§2.8) and the sections of a user's own record (§2.9)."""

from collections.abc import Mapping
from typing import Any

from sso.perm.engine.rights import ALL, APPLICATION_RULES, META_DEFAULTS, NONE, SELF
from sso.perm.engine.rules import is_rule, rule_nodes
from sso.perm.errors import InvalidInput
from sso.perm.input import validators
from sso.perm.input.roles import read_role
from sso.perm.input.rules import Layer, Reader

# What get gives and a save may not change: ignored without a word, so that it can be sent back.
_SILENT = frozenset(("application_id", "version", "updated_at"))
DATA = ("public_data", "private_data", "secret_data", "login")
USER_DATA_FIELDS = frozenset(("user_id", "type", "roles", *DATA))  # of meta/data
_LOGIN_RULES = frozenset(("can", "cannot"))
_LEVELS = (SELF, ALL, NONE)
_SECRET_SECTIONS = ("application", "meta", "meta.roles", "meta.private", "meta.public", "meta.secret")


def read_schema(data: object, where: str = "") -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The sections that were given, and warnings. ``roles`` is left to `input.roles`."""
    fields = validators.an_object(data, where or "data")
    found, warnings = _read(fields, Reader(Layer.SCHEMA), where)
    known = _SILENT | {"roles", *DATA}
    return found, warnings + validators.unknown(fields, known, where)


def read_schema_roles(data: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The ``roles`` of a schema, an object with the roles by name, and warnings."""
    roles: list[dict[str, Any]] = []
    warnings: list[str] = []
    for name, item in validators.an_object(data.get("roles", {}), "roles").items():
        fields = validators.an_object(item, f"roles.{name}" if name.isidentifier() else "roles")
        if fields.get("name", name) != name:
            raise InvalidInput("roles: the name of a role differs from its key")
        role, more = read_role({**fields, "name": name}, "roles")
        roles.append(role)
        warnings += more
    return roles, warnings


def read_own_data(data: object, default_expired: int = 0, where: str = "") -> tuple[dict[str, Any], list[str]]:
    """The sections of a user's own data that were given; entries without their own end get the default one."""
    fields = validators.an_object(data, where or "data")
    return _read(fields, Reader(Layer.OWN, default_expired), where)


def _read(fields: Mapping[str, Any], reader: Reader, where: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    prefix = f"{where}." if where else ""
    found = {name: reader.section(fields[name], f"{prefix}{name}") for name in DATA if name in fields}
    _check_login(found.get("login", {}), f"{prefix}login")
    _check_secret(found.get("secret_data", {}), f"{prefix}secret_data")
    return found, reader.warnings


def completed(given: Mapping[str, Any], stored: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The given section with every rule of ``defaults``: as given, else as stored, else the default."""
    found = dict(given)
    for name, default in defaults.items():
        kept = stored.get(name, {})
        if not is_rule(default):
            found[name] = completed(given.get(name, {}), kept, default)
        elif name not in given:
            found[name] = kept if is_rule(kept) else default
    return found


def _check_login(login: Mapping[str, Any], where: str) -> None:
    if not login.keys() <= _LOGIN_RULES:
        raise InvalidInput(f"{where}: has only the rules can and cannot")
    for name, node in login.items():
        if not is_rule(node):
            raise InvalidInput(f"{where}.{name}: must be a rule with a value")
        validators.flag(node["value"], f"{where}.{name}.value")


def _check_secret(secret: Mapping[str, Any], where: str) -> None:
    """The rules that the service itself reads have values of a known kind; others are free."""
    for path in _SECRET_SECTIONS:
        if is_rule(_node(secret, path)):
            raise InvalidInput(f"{where}.{path}: holds rules, it is no rule itself")
    for path in (*(f"application.{name}" for name in APPLICATION_RULES), *(f"meta.{name}" for name in META_DEFAULTS)):
        node = _node(secret, path)
        if node and not is_rule(node):
            raise InvalidInput(f"{where}.{path}: must be a rule with a value")
    said = {path.removeprefix("."): node["value"] for path, node in rule_nodes(secret, "")}
    for name in APPLICATION_RULES:
        if f"application.{name}" in said:
            validators.flag(said[f"application.{name}"], f"{where}.application.{name}.value")
    for name in META_DEFAULTS:
        if said.get(f"meta.{name}", NONE) not in _LEVELS:
            raise InvalidInput(f'{where}.meta.{name}.value: must be "self", "all" or "none"')


def _node(tree: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The node at a dotted path; an empty one where there is none."""
    for name in path.split("."):
        tree = tree.get(name) or {}
    return tree
