"""Whether what somebody holds in a project includes what a role gives."""

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


def rules(**sections: Any) -> dict[str, Any]:
    given = {section: {name: {"value": True} for name in names} for section, names in sections.items()}
    return {"private_data": given}


CENTRAL = compile_application(
    1,
    1,
    Schema(),
    [
        RoleRecord("all", rules(project=["view", "manage"], app=["use"], group=["lead"])),
        RoleRecord("user", rules(app=["use"])),
        RoleRecord("viewer", rules(project=["view"])),
        RoleRecord("nothing"),
        RoleRecord("no", {"private_data": {"project": {"manage": {"value": False}}}}),
        RoleRecord("tagged", rules(project=["manage"]), condition={"tag": "x"}),
        RoleRecord("hidden", rules(project=["manage"]), protected=True),
    ],
)


def holdings(*project: Assignment, user: UserFacts = ANN, **levels: Any) -> HeldRules:
    membership = Membership(project=project, **levels)
    facts = ProjectFacts("p", applications=(ProjectApplication(10), ProjectApplication(11)), membership=membership)
    access = compute_project_access(CENTRAL, facts, user, CENTRAL.condition_index.find(user), NOW)
    return HeldRules(CENTRAL, access)


def may(held: HeldRules, role: str, level: str = "project", resource: str = "", lasting: int | None = 0) -> bool:
    return held.cover_role(CENTRAL.roles[role], level, resource, lasting)


def test_whoever_holds_everything_includes_every_role_everywhere() -> None:
    held = holdings(Assignment("all"))
    assert all(may(held, role) for role in CENTRAL.roles)
    assert may(held, "user", "applications", "10")
    assert may(held, "user", "applications", "12")  # the project may get such an application later


def test_no_access_includes_only_what_gives_nothing() -> None:
    held = HeldRules(CENTRAL, None)
    assert {role for role in CENTRAL.roles if may(held, role)} == {"nothing", "no"}


@pytest.mark.parametrize("assignment", [Assignment("hidden"), Assignment("tagged"), Assignment("all", expired=NOW)])
def test_a_role_that_does_not_work_is_not_held(assignment: Assignment) -> None:
    assert not may(holdings(assignment), "tagged")


def test_a_role_whose_condition_holds_is_held() -> None:
    assert may(holdings(Assignment("tagged"), user=UserFacts("5", tags=frozenset("x"))), "tagged")


def test_a_role_at_one_resource_is_held_there_only() -> None:
    held = holdings(applications={10: (Assignment("all"),)})
    assert may(held, "all", "applications", "10")  # at this place it gives no more than the rules of its level
    assert not may(held, "user", "applications", "11")
    assert not may(held, "user")
    assert not may(held, "viewer")


def test_what_is_given_ends_no_later_than_what_is_held() -> None:
    held = holdings(Assignment("viewer", expired=NOW + 50))
    assert may(held, "viewer", lasting=NOW + 50)
    assert not may(held, "viewer", lasting=NOW + 51)
    assert not may(held, "viewer", lasting=0)
    assert may(held, "viewer", lasting=None)
    assert may(holdings(Assignment("viewer", expired=NOW + 50), Assignment("all")), "viewer", lasting=0)
    assert may(holdings(Assignment("viewer", ttl=5)), "viewer", lasting=0)  # a ttl begins again with each reading


@pytest.mark.parametrize(
    ("held", "params", "enough"),
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
def test_parameters_are_included_together_or_by_a_rule_without(
    held: list[tuple[str, ...]], params: tuple[str, ...], enough: bool
) -> None:
    assert covers([HeldRule(each, 0) for each in held], params, 0) is enough


def test_rules_over_the_whole_project() -> None:
    assert holdings(Assignment("all")).cover_project_rules(["project.view", "project.manage"])
    assert not holdings(Assignment("viewer")).cover_project_rules(["project.view", "project.manage"])
    assert not holdings(applications={10: (Assignment("all"),)}).cover_project_rules(["project.view"])
