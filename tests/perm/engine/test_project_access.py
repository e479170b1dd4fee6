"""Project access: roles at a project and its resources, and users whom a project excludes."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.project_access import AccessScope, ProjectAccess
from sso.perm.stores import builtin_roles
from tests.perm.evaluation import GROUP_A, GROUP_B, NOW, Evaluation, application_of, evaluate_with, role_giving

ALL_LEVELS = {
    "name": "all",
    "meta": {"private_data": {s: {"can": {"value": True}} for s in ("project", "app", "srv", "group")}},
}


def project(**fields: Any) -> dict[str, Any]:
    return {
        "id": "p",
        "title": "P",
        "aliases": ["pp"],
        "applications": [{"id": 10, "name": "Tanks"}, {"id": 11, "is_service": True}, {"id": 12, "removed": True}],
        "groups": [{"id": GROUP_A, "users": ["1001"]}, {"id": GROUP_B, "users": ["2"]}],
        **fields,
    }


def member(roles: list[dict[str, Any]] | None = None, user: dict[str, Any] | None = None, **fields: Any) -> Evaluation:
    parts = {"application_id": 1, "roles": roles or [ALL_LEVELS], "user": user or {}, "projects": [project(**fields)]}
    return evaluate_with(application_of(parts), parts)


EVERYWHERE = [
    "p/applications/10/app.can",
    "p/applications/11/app.can",
    f"p/groups/{GROUP_A}/group.can",
    f"p/groups/{GROUP_B}/group.can",
    "p/project.can",
    "p/services/11/srv.can",
]


def test_project_wide_role_covers_every_resource() -> None:
    assert member(member={"project": ["all"]}).short() == EVERYWHERE


@pytest.mark.parametrize(
    ("level", "resource", "expected"),
    [
        ("applications", "10", ["p/applications/10/app.can"]),
        ("services", "11", ["p/services/11/srv.can"]),
        ("groups", GROUP_A, [f"p/groups/{GROUP_A}/group.can"]),
        ("applications", "12", []),  # removed
        ("services", "10", []),  # no service
        ("applications", "99", []),
        ("groups", "f" * 24, []),
    ],
)
def test_role_at_one_resource_covers_only_that_resource_and_its_level(
    level: str, resource: str, expected: list[str]
) -> None:
    result = member(member={level: {resource: ["all"]}})
    assert result.short() == expected
    assert result.roles() == ([f"p.{level}.{resource}/all"] if expected else [])


def test_list_shows_project_access_with_full_paths() -> None:
    result = member(member={"project": ["all"]})
    start = "private_data.projectAccess.p."
    assert result.full() == [
        f"{start}applications.10.private_data.app.can",
        f"{start}applications.11.private_data.app.can",
        f"{start}groups.{GROUP_A}.private_data.group.can",
        f"{start}groups.{GROUP_B}.private_data.group.can",
        f"{start}private_data.project.can",
        f"{start}services.11.private_data.srv.can",
    ]


def test_roles_show_their_project_and_resource() -> None:
    result = member(member={"project": ["all"], "applications": {"10": ["all"]}, "groups": {GROUP_A: ["all"]}})
    assert result.roles() == ["p.applications.10/all", f"p.groups.{GROUP_A}/all", "p/all"]
    assert result.effective_roles() == result.roles()


def test_project_access_is_reported_with_the_central_application_only() -> None:
    parts = {"application_id": 10, "roles": [ALL_LEVELS], "projects": [project(member={"project": ["all"]})]}
    assert evaluate_with(application_of(parts), parts).short() == []


def test_generic_role_in_the_own_record_gives_no_project_access() -> None:
    parts = {"application_id": 1, "roles": [ALL_LEVELS], "own": {"roles": ["all"]}, "projects": [project()]}
    assert evaluate_with(application_of(parts), parts).short() == ["app.can", "group.can", "project.can", "srv.can"]


def test_protected_role_is_never_assigned_through_a_project() -> None:
    result = member([ALL_LEVELS | {"protected": True}], member={"project": ["all"]})
    assert (result.short(), result.roles()) == ([], [])


@pytest.mark.parametrize("section", ["private_data", "public_data"])
@pytest.mark.parametrize("path", ["can_create_app", "project", "projects.x"])
def test_role_that_holds_root_rules_is_never_assigned_through_a_project(section: str, path: str) -> None:
    meta: dict[str, Any] = {"private_data": {"app": {"can": {"value": True}}}}
    name, _, below = path.partition(".")
    meta.setdefault(section, {})[name] = {below: {"value": False}} if below else {"value": False}
    result = member([{"name": "mixed", "meta": meta}], member={"project": ["mixed"]})
    assert (result.short(), result.roles()) == ([], [])


def test_membership_role_with_a_condition_applies_only_while_it_holds() -> None:
    roles = [ALL_LEVELS | {"condition": {"tag": "beta"}}]
    result = member(roles, member={"project": ["all"]})
    assert (result.short(), result.roles(), result.effective_roles()) == ([], ["p/all"], [])
    result = member(roles, {"tags": ["beta"]}, member={"project": ["all"]})
    assert set(EVERYWHERE) < set(result.short())  # and the role itself, by its condition, outside of projects
    assert result.effective_roles() == ["all", "p/all"]


def test_membership_role_ends() -> None:
    result = member(
        member={"project": [{"name": "all", "expired": NOW}], "applications": {"10": [{"name": "all", "ttl": 9}]}}
    )
    assert result.short(with_exp=True) == ["p/applications/10/app.can:9"]
    assert result.expired() == NOW + 9
    assert result.expired(hide_project_access=True) == 0


def test_later_end_of_two_assignments_counts_at_a_scope() -> None:
    roles = {"project": [{"name": "all", "ttl": 5}], "applications": {"10": [{"name": "all", "ttl": 9}]}}
    lines = member(member=roles).short(with_exp=True)
    assert "p/applications/10/app.can:9" in lines
    assert "p/applications/11/app.can:5" in lines


def test_true_value_wins_over_a_false_one_in_a_project() -> None:
    roles = [role_giving("no", "project.can", False, params="n"), role_giving("yes", "project.can", params="y")]
    assert member(roles, member={"project": ["no", "yes"]}).short() == ["p/project.can|y"]
    assert member(roles, member={"project": ["no"]}).short() == []


def test_allow_list_admits_only_members_of_its_groups() -> None:
    assert member(member={"project": ["all"]}, allow=[GROUP_A]).short() == EVERYWHERE
    assert member(member={"project": ["all"]}, allow=[GROUP_B]).short() == []


def test_allow_list_with_a_deleted_group_admits_no_user() -> None:
    assert member(member={"project": ["all"]}, allow=["f" * 24]).short() == []


def test_disallow_list_wins_over_allow_list() -> None:
    result = member(member={"project": ["all"]}, allow=[GROUP_A], disallow=[GROUP_A])
    assert (result.short(), result.roles()) == ([], [])


@pytest.mark.parametrize(
    ("login", "admitted"),
    [("a@example.com", True), ("a@EXAMPLE.com", True), ("a@sub.example.com", False), ("a@example.com.evil", False)],
)
def test_allowed_domains_admit_only_logins_of_these_domains(login: str, admitted: bool) -> None:
    result = member(None, {"login": login}, member={"project": ["all"]}, settings={"allowed_domains": ["Example.com"]})
    assert bool(result.short()) is admitted


def test_removed_project_gives_no_access() -> None:
    result = member(member={"project": ["all"]}, removed=True)
    assert (result.short(), result.roles(), result.short(project_id="pp")) == ([], [], [])


def test_builtin_admin_role_has_every_generic_rule() -> None:
    parts = {"projects": [project(member={"project": [builtin_roles.ADMIN_ROLE]})]}
    lines = evaluate_with(compile_application(1, 1, builtin_roles.SCHEMA, builtin_roles.ROLES), parts).short()
    for section, start in (("project", "p/"), ("app", "p/applications/10/"), ("group", f"p/groups/{GROUP_A}/")):
        for rule in builtin_roles.GENERIC_RULES[section]:
            assert f"{start}{section}.{rule}" in lines


def test_membership_role_ends_with_the_window_of_its_condition() -> None:
    """Whichever is earlier counts: the end of the window, or that of the assignment."""
    roles = [ALL_LEVELS | {"condition": {"time": {"until": NOW + 50}}}]
    for assignment, ends in (("all", 50), ({"name": "all", "expired": NOW + 9}, 9), ({"name": "all", "ttl": 90}, 50)):
        result = member(roles, member={"groups": {GROUP_A: [assignment]}})
        (access,) = result.effective.projects
        assert [(role.ends - NOW, role.window_end - NOW) for role in access.roles] == [(ends, 50)]
        assert f"p/groups/{GROUP_A}/group.can:{ends}" in result.short(with_exp=True)
    closed = member([ALL_LEVELS | {"condition": {"time": {"until": NOW}}}], member={"groups": {GROUP_A: ["all"]}})
    (access,) = closed.effective.projects
    assert [(role.applies, role.ends, role.window_end) for role in access.roles] == [(False, 0, 0)]


def test_membership_role_that_does_not_exist_gives_nothing() -> None:
    assert member(member={"project": ["gone", "all"]}).roles() == ["p/all"]
    assert member(member={"project": ["gone"]}).roles() == []


def test_scopes_of_a_large_project_are_searched_once() -> None:
    """Each of thousands of groups and applications is looked up for a list of those that a caller may see."""

    class Scopes(tuple[AccessScope, ...]):
        searches = 0

        def __iter__(self) -> Iterator[AccessScope]:
            Scopes.searches += 1
            return super().__iter__()

    scopes = Scopes(AccessScope("groups", group_id, {}) for group_id in (GROUP_A, GROUP_B))
    access = ProjectAccess(ProjectFacts("p"), (), scopes)
    found = [access.scope(*place) for place in (("groups", GROUP_B), ("groups", GROUP_A), ("services", GROUP_A))]
    assert ([scope and scope.resource for scope in found], Scopes.searches) == ([GROUP_B, GROUP_A, None], 1)
    assert replace(access, scopes=()).scope("groups", GROUP_A) is None
