"""Nobody gives or takes away rights in a project that they do not hold there, by whatever write."""

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
    made = team.project()
    refused(made, lambda made: made.save_members(team.manager, *made.members(**changes)))


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
    made = team.project()
    assert made.save_members(team.manager, *made.members(**changes)).status == 200


def test_roles_that_have_ended_are_taken_away_by_anybody_who_manages_the_project(team: Team) -> None:
    made = team.project()
    ended = made.members(stranger=[{"name": "admin", "expired": 5}])
    assert made.save_members(team.studio.root, *ended).status == 200
    assert made.save_members(team.manager, *made.members()).status == 200


def test_role_at_one_resource_counts_with_the_rules_of_that_level_only(team: Team) -> None:
    made = team.project()
    users = [*made.members(), member(team.stranger, applications={str(made.app): ["admin"]})]
    assert made.save_members(team.manager, *users).status == 200
    # Whoever manages memberships but holds no rule over applications cannot give one.
    team.studio.role(1, "registrar", project={"can_manage_project": {"value": True}})
    assert made.save_members(team.studio.root, *made.members(viewer=["registrar"])).status == 200
    given = [*made.members(viewer=["registrar"]), member(team.stranger, applications={str(made.app): ["app_admin"]})]
    refused(made, lambda made: made.save_members(team.viewer, *given))
    refused(made, lambda made: made.save_members(team.viewer, *made.members(viewer=["registrar"], stranger=["viewer"])))
    assert made.save_members(team.viewer, *made.members(viewer=["registrar"], stranger=["registrar"])).status == 200


def test_administrator_whose_role_ends_cannot_make_it_last(team: Team) -> None:
    made = team.project()
    temporary = expiring("admin")
    assert made.save_members(team.studio.root, *made.members(manager=[temporary])).status == 200
    refused(made, lambda made: made.save_members(team.manager, *made.members(manager=["admin"])))
    refused(made, lambda made: made.save_members(team.manager, *made.members(manager=[temporary], stranger=["admin"])))
    given = made.members(manager=[temporary], stranger=[temporary])
    assert made.save_members(team.manager, *given).status == 200


def test_parameters_of_a_role_must_be_held_as_well(team: Team) -> None:
    made = team.project()
    names = {params: f"region_{next(_numbers)}" for params in ("eu", "us", "")}
    for params, name in names.items():
        rules = {"project": {"can_manage_project": {"value": True, "params": params}}}
        team.studio.role(1, name, **rules)
    base = made.members(manager=[names["eu"]])
    assert made.save_members(team.studio.root, *base).status == 200
    for params, status in (("us", 403), ("", 403), ("eu", 200)):
        given = made.members(manager=[names["eu"]], stranger=[names[params]])
        assert made.save_members(team.manager, *given).status == status, params
    assert made.save_members(team.studio.root, *made.members(manager=[names[""]])).status == 200
    given = made.members(manager=[names[""]], stranger=[names["us"]])
    assert made.save_members(team.manager, *given).status == 200  # without parameters a rule has no limit


def test_unknown_users_in_a_membership_are_refused(team: Team) -> None:
    made = team.project()
    unknown = {"user_id": "987654321987", "roles": {"project": ["viewer"]}}
    refused(made, lambda made: made.save_members(team.studio.root, *made.members(), unknown), 400)


# settings.services


@pytest.mark.parametrize("actions", [[("guard", "grant")], [("guard", "revoke")], [("chief", "revoke")]])
def test_project_manager_cannot_grant_or_revoke_application_roles_it_does_not_hold(
    team: Team, actions: list[tuple[str, str]]
) -> None:
    made = team.project()
    made.save_access(team.studio.root, users=[team.manager.user_id])
    refused(made, lambda made: made.save_actions(team.manager, *actions))


@pytest.mark.parametrize("actions", [[("guard", "grant")], [("guard", "revoke")], [("chief", "revoke")]])
def test_project_manager_cannot_remove_grants_and_revokes_it_could_not_save(
    team: Team, actions: list[tuple[str, str]]
) -> None:
    made = team.project()
    assert made.save_actions(team.studio.root, *actions).status == 200
    refused(made, lambda made: made.save_actions(team.manager))
    refused(made, lambda made: made.save_settings(team.manager, services={}))
    refused(made, lambda made: team.manager.call("group", action="delete", group_id=made.group, data={}))


def test_project_manager_grants_application_roles_whose_rules_it_holds(team: Team) -> None:
    made = team.project()
    team.studio.save_data(team.manager, made.app, roles=["guard"])
    assert made.save_actions(team.manager, ("guard", "grant")).status == 200
    team.studio.save_data(team.manager, made.app, roles=[])
    team.studio.give_secret(team.manager, made.app, roles={"canWrite": "all"})
    assert made.save_actions(team.manager).status == 200  # whoever may assign the role may grant it


def test_a_rule_in_data_that_its_owner_may_write_is_not_held(team: Team) -> None:
    made = team.project()
    team.studio.give_secret(team.manager, made.app, private={"canWrite": "self"})
    mine = {"user_id": team.manager.user_id, "private_data": {"patrol": {"value": True}}}
    assert team.manager.call("meta/data", action="save", application_id=made.app, data=mine).status == 200
    refused(made, lambda made: made.save_actions(team.manager, ("guard", "grant")))


@pytest.mark.parametrize("kind", ["grant", "revoke"])
def test_a_role_that_its_owner_may_assign_to_itself_is_not_held(team: Team, kind: str) -> None:
    made = team.project()
    team.studio.give_secret(team.manager, made.app, roles={"canWrite": "self"})
    mine = {"user_id": team.manager.user_id, "roles": ["guard"]}
    assert team.manager.call("meta/data", action="save", application_id=made.app, data=mine).status == 200
    refused(made, lambda made: made.save_actions(team.manager, ("guard", kind)))


def test_holder_of_a_role_that_ends_cannot_grant_it(team: Team) -> None:
    made = team.project()
    team.studio.save_data(team.manager, made.app, roles=[expiring("guard")])
    refused(made, lambda made: made.save_actions(team.manager, ("guard", "grant")))


def test_a_role_that_denies_a_rule_takes_it_away(team: Team) -> None:
    made = team.project()
    mute = {"name": "muted", "meta": {"private_data": {"patrol": {"value": False}}}}
    assert made.save_role(team.studio.root, **mute).status == 200
    refused(made, lambda made: made.save_actions(team.manager, ("muted", "grant")))


def test_administrator_grants_regular_roles_and_needs_the_schema_right_for_protected_ones(team: Team) -> None:
    made = team.project()
    assert made.save_actions(team.owner, ("guard", "grant")).status == 200
    refused(made, lambda made: made.save_actions(team.owner, ("guard", "grant"), ("chief", "revoke")))
    team.studio.give_secret(team.owner, made.app, "canModifySchema")
    assert made.save_actions(team.owner, ("guard", "grant"), ("chief", "revoke")).status == 200


# Who is let in


def shut_out(made: TeamProject, *users: ApiUser) -> str:
    """Another group on the disallow list."""
    studio = made.team.studio
    group = studio.group(made.id, *(user.user_id for user in users), tags=("project",))
    assert made.save_lists(studio.root, disallow=[group]).status == 200
    return group


def keep_in(made: TeamProject, *users: ApiUser) -> str:
    """The group on the allow list, with these users."""
    assert made.save_access(made.team.studio.root, users=[user.user_id for user in users]).status == 200
    assert made.save_lists(made.team.studio.root, allow=[made.group]).status == 200
    return made.group


def test_project_manager_cannot_lock_the_administrator_out(team: Team) -> None:
    made = team.project()
    team.studio.join(made.id, team.stranger, project=["admin"])  # there would still be an administrator
    made.save_access(team.studio.root, users=[team.owner.user_id])
    others = team.studio.group(made.id, team.manager.user_id, team.stranger.user_id, tags=("project",))
    refused(made, lambda made: made.save_lists(team.manager, disallow=[made.group]))
    refused(made, lambda made: made.save_lists(team.manager, allow=[others]))
    refused(made, lambda made: made.save_settings(team.manager, allowed_domains=["elsewhere.example"]))


def test_project_manager_cannot_let_an_administrator_back_in(team: Team) -> None:
    made = team.project()
    team.studio.join(made.id, team.stranger, project=["admin"])
    shut_out(made, team.owner)
    refused(made, lambda made: made.save_lists(team.manager, disallow=[]))


def test_project_manager_closes_the_project_to_those_whose_roles_it_holds(team: Team) -> None:
    made = team.project()
    made.save_access(team.studio.root, users=[team.viewer.user_id])
    assert made.save_lists(team.manager, disallow=[made.group]).status == 200
    assert team.viewer.call("project", action="get", data={"id": made.id}).status == 403


def test_project_manager_cannot_open_a_project_whose_grants_it_could_not_save(team: Team) -> None:
    made = team.project()
    assert made.save_actions(team.studio.root, ("guard", "grant")).status == 200
    domains = ["example.com", "other.example"]
    refused(made, lambda made: made.save_settings(team.manager, allowed_domains=domains))


@pytest.mark.parametrize("listed", [shut_out, keep_in])
def test_group_administrator_cannot_lock_the_administrator_out(team: Team, listed: Callable[..., str]) -> None:
    made = team.project()
    team.studio.join(made.id, team.stranger, project=["admin"])
    everybody = (team.owner, team.manager, team.leader, team.stranger)
    group = listed(made, *(everybody if listed is keep_in else ()))
    users = [member for member in made.members() if member["user_id"] != team.leader.user_id]
    users += [member(team.stranger, project=["admin"]), member(team.leader, groups={group: ["group_admin"]})]
    assert made.save_members(team.studio.root, *users).status == 200
    remaining = [team.leader.user_id, team.manager.user_id, team.stranger.user_id]
    wrong: dict[str, Any] = {"users": [team.owner.user_id]} if listed is shut_out else {"users": remaining}
    refused(made, lambda made: team.leader.call("group/access", group_id=group, data=wrong))
    if listed is shut_out:
        data = {"conditions": [everyone()]}
        refused(made, lambda made: team.leader.call("group/access", group_id=group, data=data))


@pytest.mark.parametrize("kind", ["grant", "revoke"])
@pytest.mark.parametrize("access", [{"users": ["1"]}, {"users": ["{leader}"]}, {"conditions": [everyone()]}])
def test_group_administrator_cannot_change_a_group_that_has_roles_it_does_not_hold(
    team: Team, kind: str, access: dict[str, Any]
) -> None:
    made = team.project()
    assert made.save_actions(team.studio.root, ("guard", kind)).status == 200
    if access.get("users") == ["{leader}"]:
        access = {"users": [team.leader.user_id]}
    refused(made, lambda made: made.save_access(team.leader, **access))
    team.studio.save_data(team.leader, made.app, roles=["guard"])
    assert made.save_access(team.leader, **access).status == 200


def test_group_administrator_changes_a_group_that_gives_nothing(team: Team) -> None:
    made = team.project()
    assert made.save_access(team.leader, users=[team.owner.user_id], conditions=[everyone()]).status == 200
