"""The table of required permissions (§5.5): for each row, each alternative is sufficient, and no other right is."""

from typing import Any

import pytest

from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.operations import REQUIRED, Operation, is_allowed
from sso.perm.engine.records import OwnRecord
from sso.perm.engine.rights import APPLICATION_RULES, Rights, SecretRights, secret_rights
from sso.perm.stores import builtin_roles
from tests.perm.evaluation import (
    GROUP_A,
    GROUP_B,
    NOW,
    application_of,
    evaluate,
    evaluate_with,
    role_giving,
    rule,
    schema,
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
    callers["app:any"] = with_rule_at("srv.whatever", "applications", "10")
    callers["group:manage"] = with_rule_at("group.can_manage_group", "groups", GROUP_A)
    return callers


MANAGE_APPLICATIONS = "project:project.can_manage_applications"
MANAGE_GROUPS = "project:project.can_manage_groups"
TABLE: dict[Operation, set[str]] = {
    Operation.APPLICATION_GET: {MANAGE_APPLICATIONS, "secret:canRead", "app:keys", "app:any"},
    Operation.APPLICATION_SAVE: {MANAGE_APPLICATIONS, "secret:canSave"},
    Operation.APPLICATION_CREATE_IN_PROJECT: {MANAGE_APPLICATIONS},
    Operation.APPLICATION_CREATE: {"root:can_create_app"},
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
    Operation.ROLE_READ: {"secret:canReadSchema"},
    Operation.ROLE_LIST: {"secret:canReadSchema", "secret:canSeeRoleList"},
    Operation.ROLE_MODIFY: {"secret:canModifySchema", MANAGE_APPLICATIONS},
    Operation.SCHEMA_READ: {"secret:canReadSchema"},
    Operation.SCHEMA_MODIFY: {"secret:canModifySchema"},
}
RIGHTS = callers_by_right()


def may(operation: Operation, rights: Rights, project: str | None = "p", app: int = 10, group: str = GROUP_A) -> bool:
    return is_allowed(operation, rights, project_id=project, application_id=app, group_id=group)


def test_every_operation_has_a_row() -> None:
    assert set(REQUIRED) == set(TABLE) == set(Operation)


@pytest.mark.parametrize("right", sorted(RIGHTS))
@pytest.mark.parametrize("operation", list(Operation))
def test_right_allows_exactly_the_operations_of_the_table(operation: Operation, right: str) -> None:
    assert may(operation, RIGHTS[right]) is (right in TABLE[operation])


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


def test_only_the_role_root_is_root() -> None:
    parts = {"application_id": 1, "roles": [role_giving("not_root")], "own": {"roles": ["not_root"]}}
    assert not Rights(evaluate_with(application_of(parts), parts).effective).is_root


def test_own_secret_data_overrides_the_schema() -> None:
    base = schema({"secret_data": {"application": {"canRead": {"value": True}, "canSave": {"value": True}}}})
    own = {
        "application": {
            "canSave": {"value": False},
            "canReadSchema": {"value": True},
            "canModifySchema": {"value": True, "expired": NOW},
        },
        "meta": {"roles": {"canWrite": {"value": "all"}}, "public": {"canRead": {"value": "strange"}}},
    }
    rights = secret_rights(base, OwnRecord(secret_data=own), NOW)
    assert rights.application == {"canRead", "canReadSchema"}
    assert rights.meta["roles.canWrite"] == "all"
    assert rights.meta["public.canRead"] == "none"


def test_roles_give_no_secret_rights() -> None:
    meta = {"secret_data": {"application": {"canSave": {"value": True}}}}
    result = evaluate(roles=[{"name": "default", "meta": meta}])
    assert secret_rights(result.application.schema, result.facts.own, NOW).application == frozenset()


def test_default_rights_of_a_new_application() -> None:
    rights = Rights(evaluate(application_id=1).effective, secret_rights(builtin_roles.SCHEMA, OwnRecord(), NOW))
    assert rights.readable_sections(own=False) == {"public_data"}
    assert rights.writable_sections(own=True) == frozenset()
    assert rights.readable_sections(own=True) == {"public_data", "private_data", "roles", "secret_data", "login"}
    assert secret_rights(schema({}), OwnRecord(), NOW) == secret_rights(builtin_roles.SCHEMA, OwnRecord(), NOW)


@pytest.mark.parametrize(
    ("level", "own", "others"), [("self", True, False), ("all", True, True), ("none", False, False)]
)
@pytest.mark.parametrize(
    ("word", "sections"),
    [
        ("public", {"public_data"}),
        ("private", {"private_data"}),
        ("roles", {"roles"}),
        ("secret", {"secret_data", "login"}),
    ],
)
def test_can_write_allows_self_all_or_none(word: str, sections: set[str], level: str, own: bool, others: bool) -> None:
    base = schema({"secret_data": {"meta": {word: {"canWrite": {"value": level}}}}})
    rights = Rights(evaluate(application_id=1).effective, secret_rights(base, OwnRecord(), NOW))
    assert rights.writable_sections(own=True) == (sections if own else set())
    assert rights.writable_sections(own=False) == (sections if others else set())


def test_service_reads_and_writes_every_section() -> None:
    rights = Rights(evaluate(application_id=1).effective, service=True)
    assert rights.readable_sections(own=False) == rights.writable_sections(own=False) >= {"roles", "secret_data"}
