"""A project that has an administrator with access keeps one, whatever a request changes."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.browser import query
from tests.perm.endpoints.conftest import ApiResponse, ApiUser
from tests.perm.endpoints.team import Team, TeamProject, everyone, member


def conflicts(project: TeamProject, *writes: Callable[[], ApiResponse]) -> None:
    before = project.state()
    for number, write in enumerate(writes):
        response = write()
        assert (response.status, response.body["status"]) == (409, "ERROR"), (number, response.body)
        assert "administrator" in response.body["error"], number
    assert project.state() == before


@pytest.fixture(params=["owner", "root"])
def caller(team: Team, request: pytest.FixtureRequest) -> ApiUser:
    return team.owner if request.param == "owner" else team.studio.root


def test_membership_save_keeps_an_administrator(team: Team, caller: ApiUser) -> None:
    project = team.project()
    changes: tuple[dict[str, Any], ...] = (
        {"owner": ["manager"]},
        {"owner": ["viewer", "app_admin"], "manager": ["developer"]},
        {"owner": [{"name": "admin", "expired": 5}]},
        {"owner": None},
    )

    def save(change: dict[str, Any]) -> Callable[[], ApiResponse]:
        return lambda: project.save_members(caller, *project.members(**change))

    conflicts(project, *(save(change) for change in changes), lambda: project.save_members(caller))
    for change in changes:
        assert project.save_members(caller, *project.members(**change | {"stranger": ["admin"]})).status == 200
        assert project.save_members(team.studio.root, *project.members()).status == 200


def test_temporary_administrator_does_not_replace_a_permanent_one(team: Team) -> None:
    project = team.project()
    ends = {"name": "admin", "expired": int(time.time()) + 9999}
    temporary = project.members(stranger=[ends])
    assert project.save_members(team.studio.root, *temporary).status == 200
    alone = project.members(owner=None, stranger=[ends])
    conflicts(
        project,
        lambda: project.save_members(team.stranger, *alone),
        lambda: project.save_members(team.owner, *alone),
        lambda: project.save_members(team.owner, *project.members(owner=[ends])),
    )
    handed_over = project.members(owner=[ends], stranger=["admin"])
    assert project.save_members(team.owner, *handed_over).status == 200


def test_project_with_temporary_administrators_keeps_one(team: Team) -> None:
    project = team.project()
    ends = int(time.time()) + 9999
    sql = "UPDATE project_members SET expired = $1 WHERE project_id = $2 AND role = 'admin'"
    query(team.studio.server, sql, ends, project.id)
    users = project.members(owner=[{"name": "admin", "expired": ends}], viewer=None)
    assert project.save_members(team.studio.root, *users).status == 200
    conflicts(project, lambda: project.save_members(team.studio.root, *project.members(owner=None)))


def test_disabled_user_does_not_count_as_administrator(team: Team) -> None:
    project = team.project()
    gone = team.studio.user()
    team.studio.server.apply({"users": [{"login": gone.login, "disabled": True}]})
    users = [*project.members(owner=None), member(gone, project=["admin"])]
    conflicts(project, lambda: project.save_members(team.owner, *users))


def test_roles_that_give_the_rules_of_admin_together_make_an_administrator(team: Team) -> None:
    project = team.project()
    team.studio.role(1, "remover", project={"can_remove_project": {"value": True}})
    assert project.save_members(team.owner, *project.members(owner=["manager", "remover"])).status == 200


def test_access_lists_must_admit_an_administrator(team: Team, caller: ApiUser) -> None:
    project = team.project()
    conflicts(project, lambda: project.save_lists(caller, allow=[project.group]))  # the group is empty
    project.save_access(team.studio.root, users=[team.owner.user_id])
    conflicts(project, lambda: project.save_lists(caller, disallow=[project.group]))
    assert project.save_lists(caller, allow=[project.group]).status == 200
    conflicts(
        project,
        lambda: project.save_access(caller, users=[]),
        lambda: project.save_lists(caller, disallow=[project.group]),
    )


def test_allowed_domains_must_admit_an_administrator(team: Team, caller: ApiUser) -> None:
    project = team.project()
    conflicts(project, lambda: project.save_settings(caller, allowed_domains=["elsewhere.example"]))
    assert project.save_settings(caller, allowed_domains=["elsewhere.example", "EXAMPLE.com"]).status == 200


def test_group_conditions_must_admit_an_administrator(team: Team, caller: ApiUser) -> None:
    project = team.project()
    assert project.save_lists(caller, disallow=[project.group]).status == 200
    condition = {"title": "t", "condition": {"domain": "example.com"}}
    conflicts(
        project,
        lambda: project.save_access(caller, conditions=[everyone()]),
        lambda: project.save_access(caller, conditions=[condition]),
    )


def test_change_of_a_generic_role_must_keep_administrators(team: Team) -> None:
    project, root = team.project(), team.studio.root
    team.studio.role(1, "chair", **rules_of_admin(team))
    assert project.save_members(root, *project.members(owner=["chair"])).status == 200
    changes: tuple[dict[str, Any], ...] = (
        {"meta": {}},
        {"protected": True},
        {"condition": {"tag": "missing"}},
        {"meta": {"private_data": {"can_create_app": {"value": True}}}},
    )

    def save(path: str, data: dict[str, Any]) -> Callable[[], ApiResponse]:
        return lambda: root.call(path, action="save", application_id=1, data=data)

    conflicts(
        project,
        *(save("roles", {"name": "chair", **change}) for change in changes),
        *(save("meta/schema", {"roles": {"chair": {"name": "chair", **change}}}) for change in changes),
        lambda: root.call("roles", action="delete", application_id=1, data={"name": "chair"}),
    )
    assert project.save_members(root, *project.members(owner=["admin"])).status == 200
    assert root.call("roles", action="delete", application_id=1, data={"name": "chair"}).status == 200


def rules_of_admin(team: Team) -> Any:
    data = team.studio.root.call("roles", action="get", application_id=1, data={"name": "admin"}).data
    return data["meta"]["private_data"]


def test_project_that_never_had_an_administrator_can_be_changed(team: Team) -> None:
    team.studio.server.apply({"projects": [{"title": "Without Admin"}]})
    data: dict[str, Any] = {"id": "without_admin", "users": [member(team.viewer, project=["viewer"])]}
    assert team.studio.root.call("project/membership", action="save", data=data).status == 200
    data["users"].append(member(team.owner, project=["admin"]))
    assert team.studio.root.call("project/membership", action="save", data=data).status == 200
    data["users"].pop()
    assert team.studio.root.call("project/membership", action="save", data=data).status == 409
