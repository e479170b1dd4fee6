"""Roles in lists and alone."""

from sso.cli.output import Record
from sso.perm.engine.records import RoleRecord


def listed_role(role: RoleRecord) -> Record:
    from sso.perm.input.rule_notation import rule_texts

    limit = [f"at most {role.user_limit} users"] if role.user_limit else []
    marks = {"protected": role.protected, "default": role.default, "condition": bool(role.condition)}
    flags = [name for name, is_set in marks.items() if is_set] + limit
    return {
        "name": role.name,
        "rules": len(rule_texts(role.meta)),
        "flags": flags,
        "description": role.description,
    }


def shown_role(app_id: int, role: RoleRecord) -> Record:
    from sso.perm.input.rule_notation import rule_texts

    return {
        "application_id": app_id,
        "name": role.name,
        "description": role.description,
        "rules": rule_texts(role.meta),
        "params": role.params,
        "protected": role.protected,
        "default": role.default,
        "condition": role.condition,
        "user_limit": role.user_limit,
    }
