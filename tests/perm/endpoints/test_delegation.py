"""A caller cannot give or take away rights in a project that the caller does not hold, with any write."""

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.perm.endpoints.conftest import ApiUser
from tests.perm.endpoints.team import Team, TeamProject, everyone, member, refused

_numbers = itertools.count(1)


def expiring(name: str) -> dict[str, Any]:
    return {"name": name, "expired": int(time.time()) + 9999}


# Memberships


@pytest.mark.parametrize(
    "changes",
    [
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
    ],
)
def test_project_manager_cannot_give_or_take_the_role_admin(team: Team, changes: dict[str, Any]) -> None:
    project = team.project()
    refused(project, lambda project: project.save_members(team.manager, *project.members(**changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"stranger": ["manager"]},
        {"stranger": ["developer", "viewer", "group_admin"]},
        {"viewer": None},
        {"manager": None},
        {"developer": [expiring("developer")]},
    ],
)
def test_project_manager_gives_and_takes_roles_whose_rules_it_holds(team: Team, changes: dict[str, Any]) -> None:
    project = team.project()
    assert project.save_members(team.manager, *project.members(**changes)).status == 200


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
    refused(project, lambda project: project.save_members(team.viewer, *members))
    refused(
        project,
        lambda project: project.save_members(team.viewer, *project.members(viewer=["registrar"], stranger=["viewer"])),
    )
    assert (
        project.save_members(team.viewer, *project.members(viewer=["registrar"], stranger=["registrar"])).status == 200
    )


def test_temporary_administrator_cannot_give_the_role_permanently(team: Team) -> None:
    project = team.project()
    temporary = expiring("admin")
    assert project.save_members(team.studio.root, *project.members(manager=[temporary])).status == 200
    refused(project, lambda project: project.save_members(team.manager, *project.members(manager=["admin"])))
    refused(
        project,
        lambda project: project.save_members(team.manager, *project.members(manager=[temporary], stranger=["admin"])),
    )
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


def test_membership_with_unknown_users_is_rejected(team: Team) -> None:
    project = team.project()
    unknown = {"user_id": "987654321987", "roles": {"project": ["viewer"]}}
    refused(project, lambda project: project.save_members(team.studio.root, *project.members(), unknown), 400)


# settings.services


@pytest.mark.parametrize("actions", [[("guard", "grant")], [("guard", "revoke")], [("chief", "revoke")]])
def test_project_manager_cannot_grant_or_revoke_application_roles_it_does_not_hold(
    team: Team, actions: list[tuple[str, str]]
) -> None:
    project = team.project()
    project.save_access(team.studio.root, users=[team.manager.user_id])
    refused(project, lambda project: project.save_actions(team.manager, *actions))


@pytest.mark.parametrize("actions", [[("guard", "grant")], [("guard", "revoke")], [("chief", "revoke")]])
def test_project_manager_cannot_remove_grants_and_revokes_it_could_not_save(
    team: Team, actions: list[tuple[str, str]]
) -> None:
    project = team.project()
    assert project.save_actions(team.studio.root, *actions).status == 200
    refused(project, lambda project: project.save_actions(team.manager))
    refused(project, lambda project: project.save_settings(team.manager, services={}))
    refused(project, lambda project: team.manager.call("group", action="delete", group_id=project.group, data={}))


def test_project_manager_grants_application_roles_whose_rules_it_holds(team: Team) -> None:
    project = team.project()
    team.studio.save_data(team.manager, project.app, roles=["guard"])
    assert project.save_actions(team.manager, ("guard", "grant")).status == 200
    team.studio.save_data(team.manager, project.app, roles=[])
    team.studio.give_secret(team.manager, project.app, roles={"canWrite": "all"})
    assert project.save_actions(team.manager).status == 200  # a caller who may assign the role may grant it


def test_rule_in_data_that_the_caller_may_write_does_not_count_as_held(team: Team) -> None:
    project = team.project()
    team.studio.give_secret(team.manager, project.app, private={"canWrite": "self"})
    mine = {"user_id": team.manager.user_id, "private_data": {"patrol": {"value": True}}}
    assert team.manager.call("meta/data", action="save", application_id=project.app, data=mine).status == 200
    refused(project, lambda project: project.save_actions(team.manager, ("guard", "grant")))


@pytest.mark.parametrize("kind", ["grant", "revoke"])
def test_role_that_the_caller_may_assign_to_itself_does_not_count_as_held(team: Team, kind: str) -> None:
    project = team.project()
    team.studio.give_secret(team.manager, project.app, roles={"canWrite": "self"})
    mine = {"user_id": team.manager.user_id, "roles": ["guard"]}
    assert team.manager.call("meta/data", action="save", application_id=project.app, data=mine).status == 200
    refused(project, lambda project: project.save_actions(team.manager, ("guard", kind)))


def test_holder_of_a_temporary_role_cannot_grant_it(team: Team) -> None:
    project = team.project()
    team.studio.save_data(team.manager, project.app, roles=[expiring("guard")])
    refused(project, lambda project: project.save_actions(team.manager, ("guard", "grant")))


def test_project_manager_cannot_grant_a_role_that_denies_a_rule(team: Team) -> None:
    project = team.project()
    mute = {"name": "muted", "meta": {"private_data": {"patrol": {"value": False}}}}
    assert project.save_role(team.studio.root, **mute).status == 200
    refused(project, lambda project: project.save_actions(team.manager, ("muted", "grant")))


def test_administrator_grants_regular_roles_and_needs_the_schema_right_for_protected_ones(team: Team) -> None:
    project = team.project()
    assert project.save_actions(team.owner, ("guard", "grant")).status == 200
    refused(project, lambda project: project.save_actions(team.owner, ("guard", "grant"), ("chief", "revoke")))
    team.studio.give_secret(team.owner, project.app, "canModifySchema")
    assert project.save_actions(team.owner, ("guard", "grant"), ("chief", "revoke")).status == 200


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
    refused(project, lambda project: project.save_lists(team.manager, disallow=[project.group]))
    refused(project, lambda project: project.save_lists(team.manager, allow=[others]))
    refused(project, lambda project: project.save_settings(team.manager, allowed_domains=["elsewhere.example"]))


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


def test_project_manager_cannot_open_a_project_whose_grants_it_could_not_save(team: Team) -> None:
    project = team.project()
    assert project.save_actions(team.studio.root, ("guard", "grant")).status == 200
    domains = ["example.com", "other.example"]
    refused(project, lambda project: project.save_settings(team.manager, allowed_domains=domains))


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
    refused(project, lambda project: team.leader.call("group/access", group_id=group, data=wrong))
    if listed is disallow:
        data = {"conditions": [everyone()]}
        refused(project, lambda project: team.leader.call("group/access", group_id=group, data=data))


@pytest.mark.parametrize("kind", ["grant", "revoke"])
@pytest.mark.parametrize("access", [{"users": ["1"]}, {"users": ["{leader}"]}, {"conditions": [everyone()]}])
def test_group_administrator_cannot_change_a_group_that_has_roles_it_does_not_hold(
    team: Team, kind: str, access: dict[str, Any]
) -> None:
    project = team.project()
    assert project.save_actions(team.studio.root, ("guard", kind)).status == 200
    if access.get("users") == ["{leader}"]:
        access = {"users": [team.leader.user_id]}
    refused(project, lambda project: project.save_access(team.leader, **access))
    team.studio.save_data(team.leader, project.app, roles=["guard"])
    assert project.save_access(team.leader, **access).status == 200


def test_group_administrator_changes_a_group_without_roles(team: Team) -> None:
    project = team.project()
    assert project.save_access(team.leader, users=[team.owner.user_id], conditions=[everyone()]).status == 200
