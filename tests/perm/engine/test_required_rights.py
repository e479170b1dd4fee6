"""The table of required permissions (§5.5): for each row, each alternative is sufficient, and no other right is."""

from typing import Any

import pytest

from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.management_rights import MANAGEMENT_RIGHTS
from sso.perm.engine.required_rights import REQUIRED, Operation, is_allowed
from sso.perm.engine.rights import Rights
from sso.perm.engine.secret_rights import APPLICATION_RULES, SecretRights
from sso.perm.stores import builtin_roles
from tests.perm.evaluation import (
    GROUP_A,
    GROUP_B,
    evaluate,
    evaluate_with,
    role_giving,
    rule,
)

PROJECT_RULES = tuple(f"project.{name}" for name in builtin_roles.GENERIC_RULES["project"])


def caller(**parts: Any) -> Rights:
    secret = SecretRights(frozenset(parts.pop("secret", ())))
    return Rights(evaluate(application_id=1, **parts).effective, secret)


def with_root_rule(name: str) -> Rights:
    return caller(own={"private_data": rule(name)})


def with_secret(name: str) -> Rights:
    return caller(secret=[name])


def with_rule_at(path: str, level: str = "project", resource: str = "", project: str = "p") -> Rights:
    roles: Any = ["r"] if level == "project" else {resource: ["r"]}
    facts = {
        "id": project,
        "member": {level: roles},
        "applications": [{"id": 10}, {"id": 11}],
        "groups": [{"id": GROUP_A}, {"id": GROUP_B}],
    }
    return caller(roles=[role_giving("r", path)], projects=[facts])


def callers_by_right() -> dict[str, Rights]:
    """One caller for each right."""
    callers = {f"root:{name}": with_root_rule(name) for name in builtin_roles.ROOT_RULES}
    callers |= {f"secret:{name}": with_secret(name) for name in APPLICATION_RULES}
    callers |= {f"project:{path}": with_rule_at(path) for path in PROJECT_RULES}
    callers["app:keys"] = with_rule_at("app.can_manage_app_api_keys", "applications", "10")
    callers["app:ban"] = with_rule_at("app.can_ban_users", "applications", "10")
    callers["app:any"] = with_rule_at("srv.whatever", "applications", "10")
    callers["group:manage"] = with_rule_at("group.can_manage_group", "groups", GROUP_A)
    return callers


MANAGE_APPLICATIONS = "project:project.can_manage_applications"
MANAGE_GROUPS = "project:project.can_manage_groups"
TABLE: dict[Operation, set[str]] = {
    Operation.APPLICATION_GET: {MANAGE_APPLICATIONS, "secret:canRead", "app:keys", "app:ban", "app:any"},
    Operation.APPLICATION_GET_FULL: {MANAGE_APPLICATIONS, "secret:canSave"},
    Operation.APPLICATION_SAVE: {MANAGE_APPLICATIONS, "secret:canSave"},
    Operation.APPLICATION_CREATE_IN_PROJECT: {MANAGE_APPLICATIONS},
    Operation.APPLICATION_CREATE: {"root:can_create_app"},
    Operation.APPLICATION_MOVE: set(),
    Operation.APPLICATION_DELETE: {"root:can_remove_apps", MANAGE_APPLICATIONS},
    Operation.APPLICATION_SERVICE_META: {"root:can_publish_services"},
    Operation.PUBLISH: {"root:can_create_projects"},
    Operation.PROJECT_GET: {"project:project.can_view_project"},
    Operation.PROJECT_SAVE: {"project:project.can_manage_project"},
    Operation.PROJECT_DELETE: {"project:project.can_remove_project"},
    Operation.MEMBERSHIP_GET: {"project:project.can_view_project"},
    Operation.MEMBERSHIP_SAVE: {"project:project.can_manage_project"},
    Operation.GROUP_GET: {"group:manage"},
    Operation.GROUP_SAVE: {MANAGE_GROUPS},
    Operation.GROUP_DELETE: {MANAGE_GROUPS},
    Operation.GROUP_ACCESS: {"group:manage"},
    Operation.ACCESS_KEY: {"secret:canCreateJwt", "app:keys"},
    Operation.ACCESS_KEY_LIST: {"secret:canCreateJwt", "app:keys"},
    Operation.ROLE_READ: {"secret:canReadSchema"},
    Operation.ROLE_LIST: {"secret:canReadSchema", "secret:canSeeRoleList"},
    Operation.ROLE_MODIFY: {"secret:canModifySchema", MANAGE_APPLICATIONS},
    Operation.SCHEMA_READ: {"secret:canReadSchema"},
    Operation.SCHEMA_MODIFY: {"secret:canModifySchema"},
    Operation.SCHEMA_SECRET_DATA: set(),
    Operation.USER_BAN: {"project:project.can_ban_users", "app:ban"},
}
# What a right of the management API allows there, at all applications but the central one, and in all projects.
VIEWS_APPLICATIONS = {
    Operation.APPLICATION_GET,
    Operation.APPLICATION_GET_FULL,
    Operation.ACCESS_KEY_LIST,
    Operation.ROLE_READ,
    Operation.ROLE_LIST,
    Operation.SCHEMA_READ,
}
VIEWS_PROJECTS = {Operation.PROJECT_GET, Operation.MEMBERSHIP_GET, Operation.GROUP_GET}
OF_PROJECTS = {
    operation for operation in Operation if operation.name.startswith(("PUBLISH", "PROJECT", "MEMBERSHIP", "GROUP"))
}
MANAGEMENT: dict[str, set[Operation]] = {
    "can_view_applications": VIEWS_APPLICATIONS,
    "can_manage_applications": set(Operation) - OF_PROJECTS - {Operation.USER_BAN},
    "can_view_projects": VIEWS_PROJECTS,
    "can_manage_projects": OF_PROJECTS,
}
RIGHTS = callers_by_right()


def may(operation: Operation, rights: Rights, project: str | None = "p", app: int = 10, group: str = GROUP_A) -> bool:
    return is_allowed(operation, rights, project_id=project, application_id=app, group_id=group)


def test_every_operation_has_a_row() -> None:
    assert set(REQUIRED) == set(TABLE) == set(Operation)


@pytest.mark.parametrize("operation", list(Operation))
def test_operation_is_allowed_by_exactly_the_rights_of_the_table(operation: Operation) -> None:
    assert {right for right, rights in RIGHTS.items() if may(operation, rights)} == set(TABLE[operation])


@pytest.mark.parametrize("right", sorted(MANAGEMENT_RIGHTS))
def test_right_of_the_management_api_allows_exactly_its_operations(right: str) -> None:
    rights = caller()._replace(management=frozenset((right,)))
    assert {operation for operation in Operation if may(operation, rights, None)} == MANAGEMENT[right]


@pytest.mark.parametrize("operation", list(Operation))
def test_operation_is_refused_without_rights_and_allowed_for_root(operation: Operation) -> None:
    assert not may(operation, caller())
    shipped = compile_application(1, 1, builtin_roles.SCHEMA, builtin_roles.ROLES)
    root = Rights(evaluate_with(shipped, {"own": {"roles": ["root"]}}).effective)
    assert may(operation, root)
    assert may(operation, root, None)


@pytest.mark.parametrize("operation", list(Operation))
def test_rights_in_another_project_or_resource_do_not_count(operation: Operation) -> None:
    for right, rights in RIGHTS.items():
        if right.startswith(("project:", "app:", "group:")):
            assert not may(operation, rights, project="other")
            assert not may(operation, rights, project=None)
        if right.startswith(("app:", "group:")):
            assert not may(operation, rights, app=11, group=GROUP_B)


def test_project_wide_role_allows_access_keys_of_every_application() -> None:
    assert may(Operation.ACCESS_KEY, with_rule_at("app.can_manage_app_api_keys"), app=11)


@pytest.mark.parametrize("section", ["public_data", "secret_data"])
def test_root_rule_in_another_section_is_no_right(section: str) -> None:
    assert not may(Operation.PUBLISH, caller(own={section: rule("can_create_projects")}))
