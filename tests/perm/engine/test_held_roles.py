"""Held roles: assigned, default, by condition and granted ones; end times, conditions and revokes."""

from typing import Any

import pytest

from sso.perm.engine.held_roles import ASSIGNMENT, CONDITION, DEFAULT, GROUP, Origin, compute_held_roles
from tests.perm.evaluation import GROUP_A, GROUP_B, NOW, evaluate, role_giving

BETA: dict[str, Any] = {"condition": {"tag": "beta"}}


def home(*actions: tuple[str, str, str], **fields: Any) -> dict[str, Any]:
    items = [{"group_id": group, "role": role, "action": action} for group, role, action in actions]
    return {
        "id": "red_dawn",
        "settings": {"services": {"10": {"groups": items}}} | fields.pop("settings", {}),
        "groups": [{"id": GROUP_A, "title": "Testers", "users": ["1001"]}, {"id": GROUP_B, "users": ["2"]}],
        "applications": [{"id": 10}],
        **fields,
    }


def test_role_that_is_not_assigned_gives_nothing() -> None:
    assert evaluate(roles=[role_giving("r")]).full() == []


def test_assigned_role_gives_its_rules() -> None:
    assert evaluate(roles=[role_giving("r")], own={"roles": ["r"]}).full() == ["private_data.chat.mute"]


def test_role_that_no_longer_exists_gives_nothing() -> None:
    result = evaluate(own={"roles": ["gone"]})
    assert (result.full(), result.roles(), result.effective_roles()) == ([], [], [])


@pytest.mark.parametrize(("expired", "held"), [(0, True), (NOW + 1, True), (NOW, False), (NOW - 1, False), (1, False)])
def test_role_is_excluded_after_its_expiry(expired: int, held: bool) -> None:
    result = evaluate(roles=[role_giving("r")], own={"roles": [{"name": "r", "expired": expired}]})
    assert (result.short() == ["chat.mute"]) is held
    assert (result.roles() == ["r"]) is held
    assert result.expired() == (expired if held else 0)


def test_ttl_restarts_with_each_evaluation() -> None:
    parts: dict[str, Any] = {"roles": [role_giving("r")], "own": {"roles": [{"name": "r", "ttl": 60}]}}
    assert evaluate(**parts).expired() == NOW + 60
    assert evaluate(**parts, now=NOW + 1000).expired() == NOW + 1060
    assert evaluate(**parts, now=NOW + 1000).short(with_exp=True) == ["chat.mute:60"]


@pytest.mark.parametrize("expired", [1, NOW + 5, NOW + 5000])
def test_ttl_takes_precedence_over_expired(expired: int) -> None:
    result = evaluate(roles=[role_giving("r")], own={"roles": [{"name": "r", "expired": expired, "ttl": 60}]})
    assert result.expired() == NOW + 60


def test_response_expired_is_the_earliest_end_of_the_effective_roles() -> None:
    limited = [{"name": "a", "expired": NOW + 90}, {"name": "b", "ttl": 30}, {"name": "c", "expired": NOW - 5}, "d"]
    # The first to end does not count: its condition does not hold.
    limited.append({"name": "e", "ttl": 1})
    roles = [role_giving("a"), role_giving("b"), role_giving("c"), role_giving("d"), role_giving("e", **BETA)]
    assert evaluate(roles=roles, own={"roles": limited}).expired() == NOW + 30


def test_response_expired_is_0_if_no_role_ends() -> None:
    assert (
        evaluate(
            roles=[role_giving("a")], own={"roles": ["a"], "private_data": {"x": {"value": 1, "expired": NOW + 5}}}
        ).expired()
        == 0
    )


def test_role_named_default_applies_to_every_user() -> None:
    assert evaluate(roles=[role_giving("default")]).short() == ["chat.mute"]


def test_role_with_default_true_applies_to_every_user() -> None:
    assert evaluate(roles=[role_giving("r", default=True)]).short() == ["chat.mute"]


def test_condition_on_a_default_role_is_ignored() -> None:
    assert evaluate(roles=[role_giving("default", **BETA)]).short() == ["chat.mute"]
    assert evaluate(roles=[role_giving("r", default=True, condition={"everyone": False})]).short() == ["chat.mute"]


def test_default_role_with_a_limited_assignment_does_not_end() -> None:
    result = evaluate(roles=[role_giving("default")], own={"roles": [{"name": "default", "ttl": 5}]})
    assert result.expired() == 0
    assert result.roles() == ["default"]


def test_role_whose_condition_holds_applies_without_assignment() -> None:
    result = evaluate(roles=[role_giving("r", **BETA)], user={"tags": ["beta"]})
    assert result.short() == ["chat.mute"]
    assert result.effective_roles() == ["r"]
    assert result.roles() == []


def test_assigned_role_with_a_condition_applies_only_while_it_holds() -> None:
    result = evaluate(roles=[role_giving("r", **BETA)], own={"roles": ["r"]})
    assert result.short() == []
    assert result.effective_roles() == []
    assert result.roles() == ["r"]


def test_empty_condition_on_a_role_means_no_condition() -> None:
    assert evaluate(roles=[role_giving("r", condition={})]).short() == []
    assert evaluate(roles=[role_giving("r", condition={})], own={"roles": ["r"]}).short() == ["chat.mute"]


@pytest.mark.parametrize("condition", [{"everyone": False}, {"and": []}, {"or": []}])
def test_condition_that_asks_for_nothing_holds_for_no_user(condition: dict[str, Any]) -> None:
    assert evaluate(roles=[role_giving("r", condition=condition)], own={"roles": ["r"]}).short() == []


def test_everyone_true_holds_for_every_user() -> None:
    assert evaluate(roles=[role_giving("r", condition={"everyone": True})]).short() == ["chat.mute"]


def test_project_grants_a_role_to_the_members_of_a_group() -> None:
    result = evaluate(roles=[role_giving("r")], home=home((GROUP_A, "r", "grant")))
    assert result.short() == ["chat.mute"]
    assert result.roles() == ["r"]


def test_grant_to_another_group_gives_nothing() -> None:
    assert evaluate(roles=[role_giving("r")], home=home((GROUP_B, "r", "grant"))).roles() == []


def test_grant_to_a_group_of_another_project_gives_nothing() -> None:
    assert evaluate(roles=[role_giving("r")], home=home(("c" * 24, "r", "grant"))).roles() == []


def test_grant_for_another_application_gives_nothing() -> None:
    assert evaluate(application_id=11, roles=[role_giving("r")], home=home((GROUP_A, "r", "grant"))).roles() == []


def test_grant_reaches_users_for_whom_the_group_condition_holds() -> None:
    project = home((GROUP_A, "r", "grant"))
    project["groups"] = [{"id": GROUP_A, "conditions": [{"title": "t", "condition": {"domain": "example.com"}}]}]
    assert evaluate(roles=[role_giving("r")], home=project).short() == ["chat.mute"]
    assert evaluate(roles=[role_giving("r")], home=project, user={"login": "a@b.c"}).short() == []


def test_one_of_several_group_conditions_is_sufficient() -> None:
    project = home((GROUP_A, "r", "grant"))
    conditions = [{"title": "no", "condition": {"tag": "x"}}, {"title": "yes", "condition": {"uid": ["1001"]}}]
    project["groups"] = [{"id": GROUP_A, "conditions": conditions}]
    assert evaluate(roles=[role_giving("r")], home=project).short() == ["chat.mute"]


def test_granted_role_with_a_condition_applies_only_while_it_holds() -> None:
    result = evaluate(roles=[role_giving("r", **BETA)], home=home((GROUP_A, "r", "grant")))
    assert result.short() == []
    assert result.roles() == ["r"]


def test_protected_role_is_never_granted_through_a_project() -> None:
    assert evaluate(roles=[role_giving("r", protected=True)], home=home((GROUP_A, "r", "grant"))).roles() == []


@pytest.mark.parametrize(
    "parts",
    [
        {"own": {"roles": ["r"]}},
        {"user": {"tags": ["beta"]}},
        {"extra": (GROUP_A, "r", "grant")},
    ],
)
def test_revoke_removes_a_role_of_any_origin(parts: dict[str, Any]) -> None:
    extra = parts.pop("extra", None)
    condition = BETA if "user" in parts else {}
    actions = [*([extra] if extra else []), (GROUP_A, "r", "revoke")]
    result = evaluate(roles=[role_giving("r", **condition)], home=home(*actions), **parts)
    assert (result.short(), result.roles(), result.effective_roles()) == ([], [], [])


@pytest.mark.parametrize("role", [role_giving("default"), role_giving("r", default=True)])
def test_revoke_does_not_remove_a_default_role(role: dict[str, Any]) -> None:
    result = evaluate(roles=[role], home=home((GROUP_A, role["name"], "revoke")), own={"roles": [role["name"]]})
    assert result.short() == ["chat.mute"]
    assert result.roles() == [role["name"]]


def test_revoke_from_another_group_removes_nothing() -> None:
    result = evaluate(roles=[role_giving("r")], home=home((GROUP_B, "r", "revoke")), own={"roles": ["r"]})
    assert result.roles() == ["r"]


def test_revoke_reaches_users_whom_the_project_excludes() -> None:
    project = home((GROUP_A, "r", "revoke"), disallow=[GROUP_A])
    assert evaluate(roles=[role_giving("r")], home=project, own={"roles": ["r"]}).roles() == []


EXCLUDING: list[dict[str, Any]] = [
    {"disallow": [GROUP_A]},
    {"allow": [GROUP_B]},
    {"allow": [GROUP_A], "disallow": [GROUP_A]},
    {"allow": ["c" * 24]},
    {"settings": {"allowed_domains": ["other.org"]}},
]


@pytest.mark.parametrize("fields", EXCLUDING)
def test_grant_does_not_reach_users_whom_the_project_excludes(fields: dict[str, Any]) -> None:
    project = home((GROUP_A, "r", "grant"), **{key: value for key, value in fields.items() if key != "settings"})
    project["settings"] |= fields.get("settings", {})
    result = evaluate(roles=[role_giving("r"), role_giving("mine", "a")], home=project, own={"roles": ["mine"]})
    assert result.short() == ["a"]  # the user's own roles do not depend on the project


def test_allowed_domains_are_compared_case_insensitively() -> None:
    project = home((GROUP_A, "r", "grant"))
    project["settings"]["allowed_domains"] = ["EXAMPLE.com"]
    assert evaluate(roles=[role_giving("r")], home=project).roles() == ["r"]
    assert evaluate(roles=[role_giving("r")], home=project, user={"login": "a@sub.example.com"}).roles() == []


@pytest.mark.parametrize("parts", [{"removed": True}, {"home": home((GROUP_A, "r", "grant"), removed=True)}])
def test_removed_application_or_project_gives_nothing(parts: dict[str, Any]) -> None:
    data = {"private_data": {"x": {"value": True}}}
    result = evaluate(
        schema=data, roles=[role_giving("r"), role_giving("default")], own={"roles": ["r"], **data}, **parts
    )
    assert (result.full(), result.roles(), result.effective_roles(), result.expired()) == ([], [], [], 0)


IN_BETA_UNTIL = {"condition": {"tag": "beta", "time": {"until": NOW + 50}}}


@pytest.mark.parametrize(
    ("role", "assigned", "origins"),
    [
        ({}, {"ttl": 60}, [Origin(ASSIGNMENT, NOW + 60)]),
        (BETA, {"ttl": 60}, [Origin(ASSIGNMENT, NOW + 60), Origin(CONDITION)]),
        (BETA, {}, [Origin(ASSIGNMENT), Origin(CONDITION)]),
        (IN_BETA_UNTIL, {"ttl": 60}, [Origin(ASSIGNMENT, NOW + 50), Origin(CONDITION, NOW + 50)]),
        (IN_BETA_UNTIL, {"ttl": 40}, [Origin(ASSIGNMENT, NOW + 40), Origin(CONDITION, NOW + 50)]),
        (IN_BETA_UNTIL, {}, [Origin(ASSIGNMENT, NOW + 50), Origin(CONDITION, NOW + 50)]),
        ({"default": True, "condition": {"tag": "no"}}, {"ttl": 60}, [Origin(DEFAULT), Origin(ASSIGNMENT, NOW + 60)]),
    ],
)
def test_each_way_to_a_role_has_its_own_end(
    role: dict[str, Any], assigned: dict[str, Any], origins: list[Origin]
) -> None:
    roles = [role_giving("r", **role), role_giving("granted")]
    own = {"roles": [{"name": "r", **assigned}]}
    result = evaluate(roles=roles, own=own, user={"tags": ["beta"]}, home=home((GROUP_A, "granted", "grant")))
    held = compute_held_roles(result.application, result.facts, NOW).effective
    assert held["r"].origins == tuple(origins)
    assert held["granted"].origins == (Origin(GROUP, 0, "red_dawn", GROUP_A),)
