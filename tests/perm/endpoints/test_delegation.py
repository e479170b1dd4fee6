"""A caller cannot give or take away rights over a project that the caller does not hold, with any write."""

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.perm.endpoints.conftest import ApiResponse, ApiUser
from tests.perm.endpoints.team import Team, TeamProject, everyone, member, refused

_numbers = itertools.count(1)


def expiring(name: str) -> dict[str, Any]:
    return {"name": name, "expired": int(time.time()) + 9999}


# Memberships


def saves_of_members(caller: ApiUser, *changes: dict[str, Any]) -> list[Callable[[TeamProject], ApiResponse]]:
    def save(change: dict[str, Any]) -> Callable[[TeamProject], ApiResponse]:
        return lambda project: project.save_members(caller, *project.members(**change))

    return [save(change) for change in changes]


def test_project_manager_cannot_give_or_take_the_role_admin(team: Team) -> None:
    writes = saves_of_members(
        team.manager,
        {"manager": ["admin"]},
        {"manager": ["manager", "admin"]},
        {"manager": ["manager", expiring("admin")]},
        {"stranger": ["admin"]},
        {"stranger": [{"name": "admin", "ttl": 60}]},
        {"stranger": [{"name": "admin", "expired": 5}]},
        {"owner": None},
        {"owner": ["viewer"]},
        {"owner": ["admin", "viewer"], "manager": ["admin"]},
        {"owner": [expiring("admin")]},
        {"owner": [{"name": "admin", "expired": 5}]},
    )
    refused(team.project(), *writes)


def test_project_manager_gives_and_takes_roles_whose_rules_it_holds(team: Team) -> None:
    project = team.project()
    writes = saves_of_members(
        team.manager,
        {"stranger": ["manager"]},
        {"stranger": ["developer", "viewer", "group_admin"]},
        {"viewer": None},
        {"developer": [expiring("developer")]},
        {"manager": None},
    )
    for write in writes:
        assert write(project).status == 200


def test_project_manager_removes_expired_roles_that_it_does_not_hold(team: Team) -> None:
    project = team.project()
    ended = project.members(stranger=[{"name": "admin", "expired": 5}])
    assert project.save_members(team.studio.root, *ended).status == 200
    assert project.save_members(team.manager, *project.members()).status == 200


def test_role_at_one_resource_counts_with_the_rules_of_that_level_only(team: Team) -> None:
    project = team.project()
    users = [*project.members(), member(team.stranger, applications={str(project.app): ["admin"]})]
    assert project.save_members(team.manager, *users).status == 200
    # A caller who manages memberships but has no rule over applications cannot give one.
    team.studio.role(1, "registrar", project={"can_manage_project": {"value": True}})
    assert project.save_members(team.studio.root, *project.members(viewer=["registrar"])).status == 200
    members = [
        *project.members(viewer=["registrar"]),
        member(team.stranger, applications={str(project.app): ["app_admin"]}),
    ]
    refused(
        project,
        lambda project: project.save_members(team.viewer, *members),
        lambda project: project.save_members(team.viewer, *project.members(viewer=["registrar"], stranger=["viewer"])),
    )
    assert (
        project.save_members(team.viewer, *project.members(viewer=["registrar"], stranger=["registrar"])).status == 200
    )


def test_temporary_administrator_cannot_give_the_role_permanently(team: Team) -> None:
    project = team.project()
    temporary = expiring("admin")
    assert project.save_members(team.studio.root, *project.members(manager=[temporary])).status == 200
    writes = saves_of_members(team.manager, {"manager": ["admin"]}, {"manager": [temporary], "stranger": ["admin"]})
    refused(project, *writes)
    members = project.members(manager=[temporary], stranger=[temporary])
    assert project.save_members(team.manager, *members).status == 200


def test_project_manager_gives_only_parameters_that_it_holds(team: Team) -> None:
    project = team.project()
    names = {params: f"region_{next(_numbers)}" for params in ("eu", "us", "")}
    for params, name in names.items():
        rules = {"project": {"can_manage_project": {"value": True, "params": params}}}
        team.studio.role(1, name, **rules)
    base = project.members(manager=[names["eu"]])
    assert project.save_members(team.studio.root, *base).status == 200
    for params, status in (("us", 403), ("", 403), ("eu", 200)):
        members = project.members(manager=[names["eu"]], stranger=[names[params]])
        assert project.save_members(team.manager, *members).status == status, params
    assert project.save_members(team.studio.root, *project.members(manager=[names[""]])).status == 200
    members = project.members(manager=[names[""]], stranger=[names["us"]])
    assert project.save_members(team.manager, *members).status == 200  # without parameters a rule has no limit


@pytest.mark.parametrize("caller", ["owner", "manager"])
def test_rules_that_the_service_does_not_interpret_are_given_by_anyone_who_may_save_the_membership(
    team: Team, caller: str
) -> None:
    project = team.project()
    allowed = {"value": True, "params": "eu"}
    rules = {"can_deploy": allowed, "can_view_app": allowed}
    team.studio.role(1, "deployer", project={"can_deploy": allowed}, app=rules)
    giver: ApiUser = getattr(team, caller)
    members = [
        *project.members(stranger=["deployer"]),
        member(team.studio.keeper, applications={str(project.app): ["deployer"]}),
    ]
    assert project.save_members(giver, *members).status == 200
    held = team.studio.rules_of(team.studio.keeper, 1, project_id=project.id)
    assert f"{project.id}/applications/{project.app}/app.can_deploy|eu" in held
    assert project.save_members(giver, *project.members()).status == 200
    # A rule that the service interprets still counts.
    team.studio.role(1, "remover", project={"can_deploy": allowed, "can_remove_project": allowed})
    refused(project, lambda project: project.save_members(team.manager, *project.members(stranger=["remover"])))


def test_membership_with_unknown_users_is_rejected(team: Team) -> None:
    project = team.project()
    unknown = {"user_id": "987654321987", "roles": {"project": ["viewer"]}}
    refused(project, lambda project: project.save_members(team.studio.root, *project.members(), unknown), status=400)


# settings.services


@pytest.mark.parametrize("caller", ["owner", "manager"])
def test_regular_roles_of_applications_are_granted_and_revoked_by_anyone_who_may_save_the_project(
    team: Team, caller: str
) -> None:
    project = team.project()
    mute = {"name": "muted", "meta": {"private_data": {"patrol": {"value": False}}}}
    assert project.save_role(team.studio.root, **mute).status == 200
    giver: ApiUser = getattr(team, caller)
    project.save_access(team.studio.root, users=[giver.user_id, team.stranger.user_id])
    assert project.save_actions(giver, ("guard", "grant")).status == 200
    assert "patrol" in team.studio.rules_of(team.stranger, project.app)
    assert project.save_actions(giver, ("guard", "revoke"), ("muted", "grant")).status == 200
    assert "patrol" not in team.studio.rules_of(team.stranger, project.app)
    assert project.save_settings(giver, services={}).status == 200


@pytest.mark.parametrize("caller", ["owner", "manager"])
def test_protected_roles_of_applications_are_revoked_only_with_a_right_over_the_roles(team: Team, caller: str) -> None:
    project = team.project()
    user: ApiUser = getattr(team, caller)
    refused(project, lambda project: project.save_actions(user, ("guard", "grant"), ("chief", "revoke")))
    assert project.save_actions(team.studio.root, ("chief", "revoke")).status == 200
    refused(
        project,
        lambda project: project.save_actions(user),
        lambda project: project.save_settings(user, services={}),
        lambda project: user.call("group", action="delete", group_id=project.group, data={}),
    )
    team.studio.give_secret(user, project.app, roles={"canWrite": "all"})
    assert project.save_actions(user).status == 200
    team.studio.give_secret(user, project.app, "canModifySchema")
    assert project.save_actions(user, ("chief", "revoke")).status == 200


# Access to the project


def disallow(project: TeamProject, *users: ApiUser) -> str:
    """Put a group with these users on the disallow list."""
    studio = project.team.studio
    group = studio.group(project.id, *(user.user_id for user in users), tags=("project",))
    assert project.save_lists(studio.root, disallow=[group]).status == 200
    return group


def allow_only(project: TeamProject, *users: ApiUser) -> str:
    """Put the group, with these users, on the allow list."""
    assert project.save_access(project.team.studio.root, users=[user.user_id for user in users]).status == 200
    assert project.save_lists(project.team.studio.root, allow=[project.group]).status == 200
    return project.group


def test_project_manager_cannot_lock_the_administrator_out(team: Team) -> None:
    project = team.project()
    team.studio.join(project.id, team.stranger, project=["admin"])  # so that an administrator would remain
    project.save_access(team.studio.root, users=[team.owner.user_id])
    others = team.studio.group(project.id, team.manager.user_id, team.stranger.user_id, tags=("project",))
    refused(
        project,
        lambda project: project.save_lists(team.manager, disallow=[project.group]),
        lambda project: project.save_lists(team.manager, allow=[others]),
        lambda project: project.save_settings(team.manager, allowed_domains=["elsewhere.example"]),
    )


def test_project_manager_cannot_lock_the_administrator_out_by_a_time_window(team: Team) -> None:
    """The window is closed when the change is made, and would open later. Nor may the manager move a window."""
    project = team.project()
    team.studio.join(project.id, team.stranger, project=["admin"])
    window = {"title": "later", "condition": {"uid": [team.owner.user_id], "time": {"from": 32_000_000_000}}}
    project.save_access(team.studio.root, conditions=[window])
    refused(project, lambda project: project.save_lists(team.manager, disallow=[project.group]))
    assert project.save_lists(team.studio.root, disallow=[project.group]).status == 200
    window["condition"]["time"] = {"from": 32_100_000_000}  # type: ignore[index]
    refused(project, lambda project: project.save_access(team.manager, conditions=[window]))


def test_project_manager_cannot_let_an_administrator_back_in(team: Team) -> None:
    project = team.project()
    team.studio.join(project.id, team.stranger, project=["admin"])
    disallow(project, team.owner)
    refused(project, lambda project: project.save_lists(team.manager, disallow=[]))


def test_project_manager_locks_out_members_whose_roles_it_holds(team: Team) -> None:
    project = team.project()
    project.save_access(team.studio.root, users=[team.viewer.user_id])
    assert project.save_lists(team.manager, disallow=[project.group]).status == 200
    assert team.viewer.call("project", action="get", data={"id": project.id}).status == 403


@pytest.mark.parametrize("listed", [disallow, allow_only])
def test_group_administrator_cannot_lock_the_administrator_out(team: Team, listed: Callable[..., str]) -> None:
    project = team.project()
    team.studio.join(project.id, team.stranger, project=["admin"])
    everybody = (team.owner, team.manager, team.leader, team.stranger)
    group = listed(project, *(everybody if listed is allow_only else ()))
    users = [member for member in project.members() if member["user_id"] != team.leader.user_id]
    users += [member(team.stranger, project=["admin"]), member(team.leader, groups={group: ["group_admin"]})]
    assert project.save_members(team.studio.root, *users).status == 200
    remaining = [team.leader.user_id, team.manager.user_id, team.stranger.user_id]
    wrong: dict[str, Any] = {"users": [team.owner.user_id]} if listed is disallow else {"users": remaining}
    writes = [lambda project: team.leader.call("group/access", group_id=group, data=wrong)]
    if listed is disallow:
        data = {"conditions": [everyone()]}
        writes.append(lambda project: team.leader.call("group/access", group_id=group, data=data))
    refused(project, *writes)


def test_group_administrator_changes_groups_except_those_with_protected_roles(team: Team) -> None:
    project = team.project()

    def save(**access: Any) -> Callable[[TeamProject], ApiResponse]:
        return lambda project: project.save_access(team.leader, **access)

    writes = [save(users=["1"]), save(users=[team.leader.user_id]), save(conditions=[everyone()])]
    assert project.save_actions(team.studio.root, ("chief", "revoke")).status == 200
    refused(project, *writes)
    assert project.save_actions(team.studio.root, ("guard", "grant")).status == 200
    assert [write(project).status for write in writes] == [200, 200, 200]


def test_group_administrator_changes_a_group_without_roles(team: Team) -> None:
    project = team.project()
    assert project.save_access(team.leader, users=[team.owner.user_id], conditions=[everyone()]).status == 200
