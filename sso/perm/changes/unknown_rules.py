"""Warnings about rules that roles give although the schema of the application does not declare them."""

from sso.perm.changes.candidates import changed_roles
from sso.perm.changes.scope import Scope
from sso.perm.engine import rules
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.stores.permission_state import PermissionState

MAX_WARNINGS = 20  # for one application


def unknown_rule_warnings(scope: Scope, before: PermissionState, after: PermissionState) -> list[str]:
    """Warnings about the roles that a write saves; if it changed which rules are declared, about all roles."""
    warnings = []
    for application_id, new in after.compiled.items():
        old = before.compiled.get(application_id)
        if application_id in scope.applications and old is not new:
            saved = {name for role_application, name in scope.roles if role_application == application_id}
            warnings += _application_warnings(old, new, saved)
    return warnings


def _application_warnings(old: CompiledApplication | None, new: CompiledApplication, saved: set[str]) -> list[str]:
    declared = _declared(new)
    names = sorted(new.roles)
    if old is not None and _declared(old) == declared:
        names = sorted((changed_roles(old, new) | saved) & new.roles.keys())
    unknown = [
        f"roles: {name} gives {rule.path}, which the schema does not declare"
        for name in names
        for rule in new.roles[name].rules
        if rule.listed and rule.path not in declared
    ]
    more = len(unknown) - MAX_WARNINGS
    return [*unknown[:MAX_WARNINGS], *([f"roles: {more} more rules are not declared"] if more > 0 else [])]


def _declared(application: CompiledApplication) -> frozenset[str]:
    return frozenset(
        path
        for section in rules.LISTED_SECTIONS
        for path, _ in rules.rule_nodes(getattr(application.schema, section), section)
    )
