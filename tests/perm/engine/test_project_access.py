"""Project access: resource-specific roles, and whom a project lets in."""

from typing import Any

import pytest

from sso.perm.engine.compiled_application import compile_application
from sso.perm.stores import builtin_roles
from tests.perm.world import GROUP_A, GROUP_B, NOW, World, application_of, compute_with, giving

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


def member(roles: list[dict[str, Any]] | None = None, user: dict[str, Any] | None = None, **fields: Any) -> World:
    parts = {"application_id": 1, "roles": roles or [ALL_LEVELS], "user": user or {}, "projects": [project(**fields)]}
    return compute_with(application_of(parts), parts)


EVERYWHERE = [
    "p/applications/10/app.can",
    "p/applications/11/app.can",
    f"p/groups/{GROUP_A}/group.can",
    f"p/groups/{GROUP_B}/group.can",
    "p/project.can",
    "p/services/11/srv.can",
]


def test_role_at_project_level_reaches_everything_in_the_project() -> None:
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
def test_role_at_one_resource_reaches_only_that_one_and_only_its_section(
    level: str, resource: str, expected: list[str]
) -> None:
    made = member(member={level: {resource: ["all"]}})
    assert made.short() == expected
    assert made.roles() == ([f"p.{level}.{resource}/all"] if expected else [])


def test_list_form() -> None:
    made = member(member={"project": ["all"]})
    start = "private_data.projectAccess.p."
    assert made.full() == [
        f"{start}applications.10.private_data.app.can",
        f"{start}applications.11.private_data.app.can",
        f"{start}groups.{GROUP_A}.private_data.group.can",
        f"{start}groups.{GROUP_B}.private_data.group.can",
        f"{start}private_data.project.can",
        f"{start}services.11.private_data.srv.can",
    ]


def test_role_names() -> None:
    made = member(member={"project": ["all"], "applications": {"10": ["all"]}, "groups": {GROUP_A: ["all"]}})
    assert made.roles() == ["p.applications.10/all", f"p.groups.{GROUP_A}/all", "p/all"]
    assert made.effective_roles() == made.roles()


def test_project_access_is_reported_with_the_central_application_only() -> None:
    parts = {"application_id": 10, "roles": [ALL_LEVELS], "projects": [project(member={"project": ["all"]})]}
    assert compute_with(application_of(parts), parts).short() == []


def test_generic_role_in_the_own_record_gives_no_project_right() -> None:
    parts = {"application_id": 1, "roles": [ALL_LEVELS], "own": {"roles": ["all"]}, "projects": [project()]}
    assert compute_with(application_of(parts), parts).short() == ["app.can", "group.can", "project.can", "srv.can"]


def test_protected_role_is_never_assigned_through_a_project() -> None:
    made = member([ALL_LEVELS | {"protected": True}], member={"project": ["all"]})
    assert (made.short(), made.roles()) == ([], [])


@pytest.mark.parametrize("section", ["private_data", "public_data"])
@pytest.mark.parametrize("path", ["can_create_app", "project", "projects.x"])
def test_role_that_holds_root_rules_is_never_assigned_through_a_project(section: str, path: str) -> None:
    meta: dict[str, Any] = {"private_data": {"app": {"can": {"value": True}}}}
    name, _, below = path.partition(".")
    meta.setdefault(section, {})[name] = {below: {"value": False}} if below else {"value": False}
    made = member([{"name": "mixed", "meta": meta}], member={"project": ["mixed"]})
    assert (made.short(), made.roles()) == ([], [])


def test_role_with_a_condition_works_in_a_project_only_while_it_holds() -> None:
    roles = [ALL_LEVELS | {"condition": {"tag": "beta"}}]
    made = member(roles, member={"project": ["all"]})
    assert (made.short(), made.roles(), made.effective_roles()) == ([], ["p/all"], [])
    made = member(roles, {"tags": ["beta"]}, member={"project": ["all"]})
    assert set(EVERYWHERE) < set(made.short())  # and the role itself, by its condition, outside of projects
    assert made.effective_roles() == ["all", "p/all"]


def test_role_in_a_project_ends() -> None:
    made = member(
        member={"project": [{"name": "all", "expired": NOW}], "applications": {"10": [{"name": "all", "ttl": 9}]}}
    )
    assert made.short(with_exp=True) == ["p/applications/10/app.can:9"]
    assert made.expired() == NOW + 9
    assert made.expired(hide_project_access=True) == 0


def test_the_longest_of_two_assignments_counts_at_a_place() -> None:
    given = {"project": [{"name": "all", "ttl": 5}], "applications": {"10": [{"name": "all", "ttl": 9}]}}
    lines = member(member=given).short(with_exp=True)
    assert "p/applications/10/app.can:9" in lines
    assert "p/applications/11/app.can:5" in lines


def test_true_beats_false_in_a_project_too() -> None:
    roles = [giving("no", "project.can", False, params="n"), giving("yes", "project.can", params="y")]
    assert member(roles, member={"project": ["no", "yes"]}).short() == ["p/project.can|y"]
    assert member(roles, member={"project": ["no"]}).short() == []


def test_allow_list_lets_in_only_members_of_its_groups() -> None:
    assert member(member={"project": ["all"]}, allow=[GROUP_A]).short() == EVERYWHERE
    assert member(member={"project": ["all"]}, allow=[GROUP_B]).short() == []


def test_allow_list_of_a_group_that_is_gone_lets_nobody_in() -> None:
    assert member(member={"project": ["all"]}, allow=["f" * 24]).short() == []


def test_disallow_wins() -> None:
    made = member(member={"project": ["all"]}, allow=[GROUP_A], disallow=[GROUP_A])
    assert (made.short(), made.roles()) == ([], [])


@pytest.mark.parametrize(
    ("login", "inside"),
    [("a@example.com", True), ("a@EXAMPLE.com", True), ("a@sub.example.com", False), ("a@example.com.evil", False)],
)
def test_allowed_domains(login: str, inside: bool) -> None:
    made = member(None, {"login": login}, member={"project": ["all"]}, settings={"allowed_domains": ["Example.com"]})
    assert bool(made.short()) is inside


def test_removed_project_gives_nothing() -> None:
    made = member(member={"project": ["all"]}, removed=True)
    assert (made.short(), made.roles(), made.short(project_id="pp")) == ([], [], [])


def test_shipped_admin_role_grants_everything_in_a_project() -> None:
    parts = {"projects": [project(member={"project": [builtin_roles.ADMIN_ROLE]})]}
    lines = compute_with(compile_application(1, 1, builtin_roles.SCHEMA, builtin_roles.ROLES), parts).short()
    for section, start in (("project", "p/"), ("app", "p/applications/10/"), ("group", f"p/groups/{GROUP_A}/")):
        for rule in builtin_roles.GENERIC_RULES[section]:
            assert f"{start}{section}.{rule}" in lines
