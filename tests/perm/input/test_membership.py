"""The membership of a project in requests: roles of members, and allow and disallow lists."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.engine.compiled_application import compile_application
from sso.perm.input.membership import read_group_list, read_member_roles, read_members
from sso.perm.input.references import ProjectResources
from sso.perm.stores import builtin_roles
from tests.perm.evaluation import GROUP_A, GROUP_B, application_of, project, role_giving

RESOURCES = ProjectResources.of(
    project(
        {
            "id": "p",
            "applications": [{"id": 1}, {"id": 10}, {"id": 11, "is_service": True}, {"id": 12, "removed": True}],
            "groups": [{"id": GROUP_A, "tags": ["project"]}, {"id": GROUP_B, "tags": ["other"]}],
        }
    )
)
CENTRAL = compile_application(1, 1, builtin_roles.SCHEMA, builtin_roles.ROLES)


def test_member_roles_are_stored_as_objects() -> None:
    roles = {
        "project": ["admin", {"name": "viewer", "expired": 5}],
        "applications": {"10": ["viewer"], "11": []},
        "services": {"11": [{"name": "srv_admin", "ttl": 9}]},
        "groups": {GROUP_B: ["group_admin"]},
    }
    stored, warnings = read_member_roles(roles | {"x": 1}, RESOURCES, CENTRAL)
    assert warnings == ["roles.x: unknown field, ignored"]
    assert stored == {
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
    with pytest.raises(FieldError):
        read_member_roles(roles, RESOURCES, CENTRAL)


def member(user_id: Any, **roles: Any) -> dict[str, Any]:
    return {"user_id": user_id, "roles": roles}


@pytest.mark.parametrize(
    "users",
    [
        None,
        {},
        "7",
        [7],
        [None],
        [{}],
        [member(7)],
        [member("x")],
        [member("07")],
        [member(None)],
        [{"user_id": "7", "roles": []}],
        [{"user_id": "7", "roles": None}],
        [member("7", project="viewer")],
        [member("7", project={"viewer": True})],
        [member("7", project=[5])],
        [member("7", project=[{"name": "viewer", "ttl": -1}])],
        [member("7", applications=[])],
        [member("7", applications={"x": ["viewer"]})],
        [member("7", groups={"x": ["viewer"]})],
        [member("7"), member("7")],
    ],
)
def test_wrong_members_are_refused(users: Any) -> None:
    with pytest.raises(FieldError):
        read_members(users, RESOURCES, CENTRAL)


def test_role_with_root_rules_cannot_be_assigned_through_a_project() -> None:
    central_like = application_of({"application_id": 1, "roles": [role_giving("maker", "can_create_projects")]})
    with pytest.raises(FieldError, match="holds root rules"):
        read_member_roles({"project": ["maker"]}, RESOURCES, central_like)


def test_allow_list_takes_only_groups_with_the_tag_project() -> None:
    assert read_group_list([GROUP_A, GROUP_A], RESOURCES, ("allow",)) == [GROUP_A]
    for value in ([GROUP_B], ["f" * 24], ["x"], GROUP_A, None):
        with pytest.raises(FieldError):
            read_group_list(value, RESOURCES, ("allow",))
