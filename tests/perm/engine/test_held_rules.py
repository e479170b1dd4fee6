"""Held rules: whether the rules that a user holds in a project cover a role."""

from typing import Any

import pytest

from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.facts import Membership, ProjectApplication, ProjectFacts
from sso.perm.engine.held_rules import HeldRule, HeldRules, covers
from sso.perm.engine.project_access import compute_project_access
from sso.perm.engine.records import Assignment, RoleRecord, Schema
from sso.perm.engine.user_facts import UserFacts

NOW = 1000
ANN = UserFacts("5")
VIEW, MANAGE, KEYS = "can_view_project", "can_manage_project", "can_manage_app_api_keys"
WHOLE = [f"project.{VIEW}", f"project.{MANAGE}"]


def rules(**sections: Any) -> dict[str, Any]:
    given = {section: {name: {"value": True} for name in names} for section, names in sections.items()}
    return {"private_data": given}


CENTRAL = compile_application(
    1,
    1,
    Schema(),
    [
        RoleRecord("all", rules(project=[VIEW, MANAGE], app=[KEYS], group=["can_manage_group"])),
        RoleRecord("user", rules(app=[KEYS])),
        RoleRecord("viewer", rules(project=[VIEW])),
        RoleRecord("nothing"),
        RoleRecord("deployer", rules(project=["can_deploy"], app=["can_deploy"], srv=["can_manage_service"])),
        RoleRecord("no", {"private_data": {"project": {MANAGE: {"value": False}}}}),
        RoleRecord("tagged", rules(project=[MANAGE]), condition={"tag": "x"}),
        RoleRecord("hidden", rules(project=[MANAGE]), protected=True),
    ],
)


def held_rules(*project: Assignment, user: UserFacts = ANN, **levels: Any) -> HeldRules:
    membership = Membership(project=project, **levels)
    facts = ProjectFacts("p", applications=(ProjectApplication(10), ProjectApplication(11)), membership=membership)
    access = compute_project_access(CENTRAL, facts, user, CENTRAL.condition_index.find(user, NOW), NOW)
    return HeldRules(CENTRAL, access)


def cover(held: HeldRules, role: str, level: str = "project", resource: str = "", ends: int | None = 0) -> bool:
    return held.cover_role(CENTRAL.roles[role], level, resource, ends)


def test_user_with_all_rules_covers_every_role_everywhere() -> None:
    held = held_rules(Assignment("all"))
    assert all(cover(held, role) for role in CENTRAL.roles)
    assert cover(held, "user", "applications", "10")
    assert cover(held, "user", "applications", "12")  # the project may get such an application later


def test_user_without_access_covers_only_roles_without_rules_over_the_project() -> None:
    held = HeldRules(CENTRAL, None)
    assert {role for role in CENTRAL.roles if cover(held, role)} == {"nothing", "no", "deployer"}


@pytest.mark.parametrize("assignment", [Assignment("hidden"), Assignment("tagged"), Assignment("all", expired=NOW)])
def test_ineffective_role_covers_nothing(assignment: Assignment) -> None:
    assert not cover(held_rules(assignment), "tagged")


def test_role_whose_condition_holds_covers_itself() -> None:
    assert cover(held_rules(Assignment("tagged"), user=UserFacts("5", tags=frozenset("x"))), "tagged")


def test_role_at_one_resource_covers_only_that_resource() -> None:
    held = held_rules(applications={10: (Assignment("all"),)})
    assert cover(held, "all", "applications", "10")  # at this scope it gives only the rules of its level
    assert not cover(held, "user", "applications", "11")
    assert not cover(held, "user")
    assert not cover(held, "viewer")


def test_rule_does_not_cover_a_later_end_time() -> None:
    held = held_rules(Assignment("viewer", expired=NOW + 50))
    assert cover(held, "viewer", ends=NOW + 50)
    assert not cover(held, "viewer", ends=NOW + 51)
    assert not cover(held, "viewer", ends=0)
    assert cover(held, "viewer", ends=None)
    assert cover(held_rules(Assignment("viewer", expired=NOW + 50), Assignment("all")), "viewer", ends=0)
    assert cover(held_rules(Assignment("viewer", ttl=5)), "viewer", ends=0)  # a ttl restarts with each evaluation


@pytest.mark.parametrize(
    ("held", "params", "expected"),
    [
        ([], (), False),
        ([()], (), True),
        ([()], ("eu",), True),
        ([("eu",)], (), False),
        ([("eu",)], ("eu",), True),
        ([("eu",)], ("us",), False),
        ([("eu",), ("us",)], ("us", "eu"), True),
        ([("eu",), ("us",)], ("us", "eu", "asia"), False),
        ([("eu",), ()], ("asia",), True),
    ],
)
def test_parameters_are_covered_together_or_by_a_rule_without_parameters(
    held: list[tuple[str, ...]], params: tuple[str, ...], expected: bool
) -> None:
    assert covers([HeldRule(each, 0) for each in held], params, 0) is expected


def test_project_rules_are_covered_by_project_wide_roles_only() -> None:
    assert held_rules(Assignment("all")).cover_project_rules([f"project.{VIEW}", f"project.{MANAGE}"])
    assert not held_rules(Assignment("viewer")).cover_project_rules([f"project.{VIEW}", f"project.{MANAGE}"])
    assert not held_rules(applications={10: (Assignment("all"),)}).cover_project_rules([f"project.{VIEW}"])


def test_rules_that_last_are_those_without_an_end() -> None:
    for assignment, lasts in ((Assignment("all"), True), (Assignment("all", NOW + 9), False)):
        held = held_rules(assignment)
        assert held.cover_project_rules(WHOLE)
        assert held.cover_project_rules(WHOLE, permanently=True) is lasts
        assert not held.cover_project_rules(["project.can_do_more"])


def test_rules_held_for_another_reason_are_unlimited_and_last() -> None:
    held = HeldRules(CENTRAL, None, [("project", WHOLE[0])])
    assert held.cover_project_rules(WHOLE[:1], permanently=True)
    assert cover(held, "viewer")
    assert not held.cover_project_rules(WHOLE)
