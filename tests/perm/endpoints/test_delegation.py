"""Nobody gives or takes away rights in a project that they do not hold there, by whatever write."""

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.perm.endpoints.conftest import Person
from tests.perm.endpoints.crew import Crew, CrewProject, everyone, member, refused

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
def test_project_manager_cannot_give_or_take_the_role_admin(crew: Crew, changes: dict[str, Any]) -> None:
    made = crew.project()
    refused(made, lambda made: made.save_members(crew.manager, *made.members(**changes)))


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
def test_project_manager_gives_and_takes_roles_whose_rules_it_holds(crew: Crew, changes: dict[str, Any]) -> None:
    made = crew.project()
    assert made.save_members(crew.manager, *made.members(**changes)).status == 200


def test_roles_that_have_ended_are_taken_away_by_anybody_who_manages_the_project(crew: Crew) -> None:
    made = crew.project()
    ended = made.members(stranger=[{"name": "admin", "expired": 5}])
    assert made.save_members(crew.studio.root, *ended).status == 200
    assert made.save_members(crew.manager, *made.members()).status == 200


def test_role_at_one_resource_counts_with_the_rules_of_that_level_only(crew: Crew) -> None:
    made = crew.project()
    users = [*made.members(), member(crew.stranger, applications={str(made.app): ["admin"]})]
    assert made.save_members(crew.manager, *users).status == 200
    # Whoever manages memberships but holds no rule over applications cannot give one.
    crew.studio.role(1, "registrar", project={"can_manage_project": {"value": True}})
    assert made.save_members(crew.studio.root, *made.members(viewer=["registrar"])).status == 200
    given = [*made.members(viewer=["registrar"]), member(crew.stranger, applications={str(made.app): ["app_admin"]})]
    refused(made, lambda made: made.save_members(crew.viewer, *given))
    refused(made, lambda made: made.save_members(crew.viewer, *made.members(viewer=["registrar"], stranger=["viewer"])))
    assert made.save_members(crew.viewer, *made.members(viewer=["registrar"], stranger=["registrar"])).status == 200


def test_administrator_whose_role_ends_cannot_make_it_last(crew: Crew) -> None:
    made = crew.project()
    temporary = expiring("admin")
    assert made.save_members(crew.studio.root, *made.members(manager=[temporary])).status == 200
    refused(made, lambda made: made.save_members(crew.manager, *made.members(manager=["admin"])))
    refused(made, lambda made: made.save_members(crew.manager, *made.members(manager=[temporary], stranger=["admin"])))
    given = made.members(manager=[temporary], stranger=[temporary])
    assert made.save_members(crew.manager, *given).status == 200


def test_parameters_of_a_role_must_be_held_as_well(crew: Crew) -> None:
    made = crew.project()
    names = {params: f"region_{next(_numbers)}" for params in ("eu", "us", "")}
    for params, name in names.items():
        rules = {"project": {"can_manage_project": {"value": True, "params": params}}}
        crew.studio.role(1, name, **rules)
    base = made.members(manager=[names["eu"]])
    assert made.save_members(crew.studio.root, *base).status == 200
    for params, status in (("us", 403), ("", 403), ("eu", 200)):
        given = made.members(manager=[names["eu"]], stranger=[names[params]])
        assert made.save_members(crew.manager, *given).status == status, params
    assert made.save_members(crew.studio.root, *made.members(manager=[names[""]])).status == 200
    given = made.members(manager=[names[""]], stranger=[names["us"]])
    assert made.save_members(crew.manager, *given).status == 200  # without parameters a rule has no limit


def test_unknown_users_in_a_membership_are_refused(crew: Crew) -> None:
    made = crew.project()
    unknown = {"user_id": "987654321987", "roles": {"project": ["viewer"]}}
    refused(made, lambda made: made.save_members(crew.studio.root, *made.members(), unknown), 400)


# settings.services


@pytest.mark.parametrize("actions", [[("guard", "grant")], [("guard", "revoke")], [("chief", "revoke")]])
def test_project_manager_cannot_grant_or_revoke_application_roles_it_does_not_hold(
    crew: Crew, actions: list[tuple[str, str]]
) -> None:
    made = crew.project()
    made.save_access(crew.studio.root, users=[crew.manager.user_id])
    refused(made, lambda made: made.save_actions(crew.manager, *actions))


@pytest.mark.parametrize("actions", [[("guard", "grant")], [("guard", "revoke")], [("chief", "revoke")]])
def test_project_manager_cannot_remove_grants_and_revokes_it_could_not_save(
    crew: Crew, actions: list[tuple[str, str]]
) -> None:
    made = crew.project()
    assert made.save_actions(crew.studio.root, *actions).status == 200
    refused(made, lambda made: made.save_actions(crew.manager))
    refused(made, lambda made: made.save_settings(crew.manager, services={}))
    refused(made, lambda made: crew.manager.call("group", action="delete", group_id=made.group, data={}))


def test_project_manager_grants_application_roles_whose_rules_it_holds(crew: Crew) -> None:
    made = crew.project()
    crew.studio.save_data(crew.manager, made.app, roles=["guard"])
    assert made.save_actions(crew.manager, ("guard", "grant")).status == 200
    crew.studio.save_data(crew.manager, made.app, roles=[])
    crew.studio.give_secret(crew.manager, made.app, roles={"canWrite": "all"})
    assert made.save_actions(crew.manager).status == 200  # whoever may assign the role may grant it


def test_a_rule_in_data_that_its_owner_may_write_is_not_held(crew: Crew) -> None:
    made = crew.project()
    crew.studio.give_secret(crew.manager, made.app, private={"canWrite": "self"})
    mine = {"user_id": crew.manager.user_id, "private_data": {"patrol": {"value": True}}}
    assert crew.manager.call("meta/data", action="save", application_id=made.app, data=mine).status == 200
    refused(made, lambda made: made.save_actions(crew.manager, ("guard", "grant")))


@pytest.mark.parametrize("kind", ["grant", "revoke"])
def test_a_role_that_its_owner_may_assign_to_itself_is_not_held(crew: Crew, kind: str) -> None:
    made = crew.project()
    crew.studio.give_secret(crew.manager, made.app, roles={"canWrite": "self"})
    mine = {"user_id": crew.manager.user_id, "roles": ["guard"]}
    assert crew.manager.call("meta/data", action="save", application_id=made.app, data=mine).status == 200
    refused(made, lambda made: made.save_actions(crew.manager, ("guard", kind)))


def test_holder_of_a_role_that_ends_cannot_grant_it(crew: Crew) -> None:
    made = crew.project()
    crew.studio.save_data(crew.manager, made.app, roles=[expiring("guard")])
    refused(made, lambda made: made.save_actions(crew.manager, ("guard", "grant")))


def test_a_role_that_denies_a_rule_takes_it_away(crew: Crew) -> None:
    made = crew.project()
    mute = {"name": "muted", "meta": {"private_data": {"patrol": {"value": False}}}}
    assert made.save_role(crew.studio.root, **mute).status == 200
    refused(made, lambda made: made.save_actions(crew.manager, ("muted", "grant")))


def test_administrator_grants_regular_roles_and_needs_the_schema_right_for_protected_ones(crew: Crew) -> None:
    made = crew.project()
    assert made.save_actions(crew.owner, ("guard", "grant")).status == 200
    refused(made, lambda made: made.save_actions(crew.owner, ("guard", "grant"), ("chief", "revoke")))
    crew.studio.give_secret(crew.owner, made.app, "canModifySchema")
    assert made.save_actions(crew.owner, ("guard", "grant"), ("chief", "revoke")).status == 200


# Who is let in


def shut_out(made: CrewProject, *users: Person) -> str:
    """Another group on the disallow list."""
    studio = made.crew.studio
    group = studio.group(made.id, *(user.user_id for user in users), tags=("project",))
    assert made.save_lists(studio.root, disallow=[group]).status == 200
    return group


def keep_in(made: CrewProject, *users: Person) -> str:
    """The group on the allow list, with these users."""
    assert made.save_access(made.crew.studio.root, users=[user.user_id for user in users]).status == 200
    assert made.save_lists(made.crew.studio.root, allow=[made.group]).status == 200
    return made.group


def test_project_manager_cannot_lock_the_administrator_out(crew: Crew) -> None:
    made = crew.project()
    crew.studio.join(made.id, crew.stranger, project=["admin"])  # there would still be an administrator
    made.save_access(crew.studio.root, users=[crew.owner.user_id])
    others = crew.studio.group(made.id, crew.manager.user_id, crew.stranger.user_id, tags=("project",))
    refused(made, lambda made: made.save_lists(crew.manager, disallow=[made.group]))
    refused(made, lambda made: made.save_lists(crew.manager, allow=[others]))
    refused(made, lambda made: made.save_settings(crew.manager, allowed_domains=["elsewhere.example"]))


def test_project_manager_cannot_let_an_administrator_back_in(crew: Crew) -> None:
    made = crew.project()
    crew.studio.join(made.id, crew.stranger, project=["admin"])
    shut_out(made, crew.owner)
    refused(made, lambda made: made.save_lists(crew.manager, disallow=[]))


def test_project_manager_closes_the_project_to_those_whose_roles_it_holds(crew: Crew) -> None:
    made = crew.project()
    made.save_access(crew.studio.root, users=[crew.viewer.user_id])
    assert made.save_lists(crew.manager, disallow=[made.group]).status == 200
    assert crew.viewer.call("project", action="get", data={"id": made.id}).status == 403


def test_project_manager_cannot_open_a_project_whose_grants_it_could_not_save(crew: Crew) -> None:
    made = crew.project()
    assert made.save_actions(crew.studio.root, ("guard", "grant")).status == 200
    domains = ["example.com", "other.example"]
    refused(made, lambda made: made.save_settings(crew.manager, allowed_domains=domains))


@pytest.mark.parametrize("listed", [shut_out, keep_in])
def test_group_administrator_cannot_lock_the_administrator_out(crew: Crew, listed: Callable[..., str]) -> None:
    made = crew.project()
    crew.studio.join(made.id, crew.stranger, project=["admin"])
    everybody = (crew.owner, crew.manager, crew.leader, crew.stranger)
    group = listed(made, *(everybody if listed is keep_in else ()))
    users = [member for member in made.members() if member["user_id"] != crew.leader.user_id]
    users += [member(crew.stranger, project=["admin"]), member(crew.leader, groups={group: ["group_admin"]})]
    assert made.save_members(crew.studio.root, *users).status == 200
    remaining = [crew.leader.user_id, crew.manager.user_id, crew.stranger.user_id]
    wrong: dict[str, Any] = {"users": [crew.owner.user_id]} if listed is shut_out else {"users": remaining}
    refused(made, lambda made: crew.leader.call("group/access", group_id=group, data=wrong))
    if listed is shut_out:
        data = {"conditions": [everyone()]}
        refused(made, lambda made: crew.leader.call("group/access", group_id=group, data=data))


@pytest.mark.parametrize("kind", ["grant", "revoke"])
@pytest.mark.parametrize("access", [{"users": ["1"]}, {"users": ["{leader}"]}, {"conditions": [everyone()]}])
def test_group_administrator_cannot_change_a_group_that_has_roles_it_does_not_hold(
    crew: Crew, kind: str, access: dict[str, Any]
) -> None:
    made = crew.project()
    assert made.save_actions(crew.studio.root, ("guard", kind)).status == 200
    if access.get("users") == ["{leader}"]:
        access = {"users": [crew.leader.user_id]}
    refused(made, lambda made: made.save_access(crew.leader, **access))
    crew.studio.save_data(crew.leader, made.app, roles=["guard"])
    assert made.save_access(crew.leader, **access).status == 200


def test_group_administrator_changes_a_group_that_gives_nothing(crew: Crew) -> None:
    made = crew.project()
    assert made.save_access(crew.leader, users=[crew.owner.user_id], conditions=[everyone()]).status == 200
