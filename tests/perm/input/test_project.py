"""Project settings and memberships at save: what they name must be the project's own."""

from typing import Any

import pytest

from sso.perm.engine.compiled_application import compile_application
from sso.perm.errors import InvalidInput
from sso.perm.input.groups import read_group_users
from sso.perm.input.membership import read_group_list, read_member_roles
from sso.perm.input.project import ProjectResources, check_services, read_project_settings
from sso.perm.stores import builtin_roles
from tests.perm.world import GROUP_A, GROUP_B, application_of, giving, project

HAS = ProjectResources.of(
    project(
        {
            "id": "p",
            "applications": [{"id": 1}, {"id": 10}, {"id": 11, "is_service": True}, {"id": 12, "removed": True}],
            "groups": [{"id": GROUP_A, "tags": ["project"]}, {"id": GROUP_B, "tags": ["other"]}],
        }
    )
)
CENTRAL = compile_application(1, 1, builtin_roles.SCHEMA, builtin_roles.ROLES)
APPLICATIONS = {10: application_of({"roles": [giving("r"), giving("top", protected=True)]})}


def action(**fields: Any) -> dict[str, Any]:
    return {"group_id": GROUP_A, "role": "r", "action": "grant"} | fields


def services(*items: Any, key: str = "10") -> dict[str, Any]:
    return {"services": {key: {"groups": list(items)}}}


@pytest.mark.parametrize(
    "settings",
    [
        services(action(action="give")),
        services(action(group_id="x")),
        services(action(role="a/b")),
        services({"role": "r"}),
        services("x"),
        services(key="x"),
        services(key="01"),
        {"services": []},
        {"services": {"10": []}},
        {"services": {"10": {"groups": {}}}},
        {"allowed_domains": "a.b"},
        {"allowed_domains": ["a@b"]},
        [],
        None,
    ],
)
def test_wrong_settings_are_refused(settings: Any) -> None:
    with pytest.raises(InvalidInput):
        read_project_settings(settings)


def test_settings() -> None:
    settings = services(action(), action(action="revoke")) | {"allowed_domains": ["Example.com"]}
    found, warnings = read_project_settings(settings | {"x": 1})
    assert (found, warnings) == (settings, ["settings.x: unknown field, ignored"])
    check_services(found["services"], HAS, APPLICATIONS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (services(key="1"), "no application of this project"),
        (services(key="12"), "no application of this project"),
        (services(key="99"), "no application of this project"),
        (services(action(group_id="f" * 24)), "no group of this project"),
        (services(action(role="unknown")), "there is no role"),
        (services(action(role="top")), "protected role"),
    ],
)
def test_what_a_project_names_must_be_its_own(settings: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        check_services(read_project_settings(settings)[0]["services"], HAS, APPLICATIONS)


def test_protected_role_may_be_revoked() -> None:
    check_services(services(action(role="top", action="revoke"))["services"], HAS, APPLICATIONS)


def test_member_roles() -> None:
    roles = {
        "project": ["admin", {"name": "viewer", "expired": 5}],
        "applications": {"10": ["viewer"], "11": []},
        "services": {"11": [{"name": "srv_admin", "ttl": 9}]},
        "groups": {GROUP_B: ["group_admin"]},
    }
    found, warnings = read_member_roles(roles | {"x": 1}, HAS, CENTRAL)
    assert warnings == ["roles.x: unknown field, ignored"]
    assert found == {
        "project": [{"name": "admin"}, {"name": "viewer", "expired": 5}],
        "applications": {"10": [{"name": "viewer"}], "11": []},
        "services": {"11": [{"name": "srv_admin", "ttl": 9}]},
        "groups": {GROUP_B: [{"name": "group_admin"}]},
    }


@pytest.mark.parametrize(
    "roles",
    [
        {"project": ["root"]},
        {"project": ["unknown"]},
        {"project": "admin"},
        {"project": {"admin": 1}},
        {"applications": {"12": ["admin"]}},
        {"applications": {"1": ["admin"]}},
        {"applications": {"x": ["admin"]}},
        {"applications": ["admin"]},
        {"services": {"10": ["admin"]}},
        {"groups": {"f" * 24: ["admin"]}},
        {"groups": {"x": []}},
        [],
    ],
)
def test_wrong_member_roles_are_refused(roles: Any) -> None:
    with pytest.raises(InvalidInput):
        read_member_roles(roles, HAS, CENTRAL)


def test_role_with_root_rules_cannot_be_assigned_through_a_project() -> None:
    central_like = application_of({"application_id": 1, "roles": [giving("maker", "can_create_projects")]})
    with pytest.raises(InvalidInput, match="holds root rules"):
        read_member_roles({"project": ["maker"]}, HAS, central_like)


def test_allow_and_disallow_take_groups_with_the_tag_project() -> None:
    assert read_group_list([GROUP_A, GROUP_A], HAS, "allow") == [GROUP_A]
    for value in ([GROUP_B], ["f" * 24], ["x"], GROUP_A, None):
        with pytest.raises(InvalidInput):
            read_group_list(value, HAS, "allow")


def test_group_has_at_most_100_users_each_counted_once() -> None:
    users = [str(1000 + at) for at in range(100)]
    assert read_group_users(users + users) == users
    with pytest.raises(InvalidInput):
        read_group_users([*users, "5"])
    for value in ([1], ["x"], ["01"], "1", [None]):
        with pytest.raises(InvalidInput):
            read_group_users(value)
