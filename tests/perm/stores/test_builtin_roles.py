"""The built-in central application passes the checks of every other application."""

from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.held_roles import assignable_through_project
from sso.perm.engine.render import as_list_short
from sso.perm.engine.rules import rule_nodes
from sso.perm.input.protected_rules import check_role_protection, protected_rules
from sso.perm.input.roles import read_role
from sso.perm.input.schema import read_schema
from sso.perm.stores import builtin_roles
from tests.perm.evaluation import evaluate_with

APPLICATION = compile_application(1, 1, builtin_roles.SCHEMA, builtin_roles.ROLES)


def test_builtin_schema_and_roles_are_valid() -> None:
    fields = ("public_data", "private_data", "secret_data", "login")
    given = {name: getattr(builtin_roles.SCHEMA, name) for name in fields}
    assert read_schema(given) == (given, [])
    for role in builtin_roles.ROLES:
        read, warnings = read_role({"name": role.name, "meta": role.meta, "description": role.description})
        assert (read["meta"], warnings) == (role.meta, [])
        check_role_protection(role, protected_rules(builtin_roles.SCHEMA))


def test_every_rule_of_a_builtin_role_is_in_the_schema() -> None:
    known = {path for path, _ in rule_nodes(builtin_roles.SCHEMA.private_data, "private_data")}
    for role in APPLICATION.roles.values():
        assert {rule.path for rule in role.rules} <= known


def test_projects_cannot_give_roles_with_rights_over_the_service() -> None:
    refused = {name for name, role in APPLICATION.roles.items() if not assignable_through_project(role, generic=True)}
    assert refused == {"root", "user_manager", "auditor", "application_manager", "project_manager"}
    assert all(APPLICATION.roles[name].protected for name in refused)


def test_new_user_has_no_rules() -> None:
    assert as_list_short(evaluate_with(APPLICATION, {}).effective) == []


def test_root_has_every_root_rule() -> None:
    made = evaluate_with(APPLICATION, {"own": {"roles": ["root"]}})
    assert made.short() == sorted(builtin_roles.ROOT_RULES)
