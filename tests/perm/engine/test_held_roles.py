"""Which roles are effective: assigned, default, by condition, granted; expiry, conditions and revokes."""

from typing import Any

import pytest

from tests.perm.world import GROUP_A, GROUP_B, NOW, giving, world

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
    assert world(roles=[giving("r")]).full() == []


def test_assigned_role_gives_its_rules() -> None:
    assert world(roles=[giving("r")], own={"roles": ["r"]}).full() == ["private_data.chat.mute"]


def test_role_that_no_longer_exists_gives_nothing() -> None:
    made = world(own={"roles": ["gone"]})
    assert (made.full(), made.roles(), made.effective_roles()) == ([], [], [])


@pytest.mark.parametrize(("expired", "held"), [(0, True), (NOW + 1, True), (NOW, False), (NOW - 1, False), (1, False)])
def test_role_is_excluded_after_its_expiry(expired: int, held: bool) -> None:
    made = world(roles=[giving("r")], own={"roles": [{"name": "r", "expired": expired}]})
    assert (made.short() == ["chat.mute"]) is held
    assert (made.roles() == ["r"]) is held
    assert made.expired() == (expired if held else 0)


def test_ttl_counts_from_each_generation() -> None:
    parts: dict[str, Any] = {"roles": [giving("r")], "own": {"roles": [{"name": "r", "ttl": 60}]}}
    assert world(**parts).expired() == NOW + 60
    assert world(**parts, now=NOW + 1000).expired() == NOW + 1060
    assert world(**parts, now=NOW + 1000).short(with_exp=True) == ["chat.mute:60"]


@pytest.mark.parametrize("expired", [1, NOW + 5, NOW + 5000])
def test_ttl_takes_precedence_over_expired(expired: int) -> None:
    made = world(roles=[giving("r")], own={"roles": [{"name": "r", "expired": expired, "ttl": 60}]})
    assert made.expired() == NOW + 60


def test_expired_of_the_answer_is_the_earliest_of_the_effective_roles() -> None:
    limited = [{"name": "a", "expired": NOW + 90}, {"name": "b", "ttl": 30}, {"name": "c", "expired": NOW - 5}, "d"]
    # The first to end does not count: its condition does not hold.
    limited.append({"name": "e", "ttl": 1})
    roles = [giving("a"), giving("b"), giving("c"), giving("d"), giving("e", **BETA)]
    assert world(roles=roles, own={"roles": limited}).expired() == NOW + 30


def test_expired_of_the_answer_is_0_if_no_role_ends() -> None:
    assert (
        world(
            roles=[giving("a")], own={"roles": ["a"], "private_data": {"x": {"value": 1, "expired": NOW + 5}}}
        ).expired()
        == 0
    )


def test_role_named_default_applies_to_everybody() -> None:
    assert world(roles=[giving("default")]).short() == ["chat.mute"]


def test_role_with_default_true_applies_to_everybody() -> None:
    assert world(roles=[giving("r", default=True)]).short() == ["chat.mute"]


def test_condition_on_a_default_role_is_ignored() -> None:
    assert world(roles=[giving("default", **BETA)]).short() == ["chat.mute"]
    assert world(roles=[giving("r", default=True, condition={"everyone": False})]).short() == ["chat.mute"]


def test_default_role_that_is_assigned_for_a_while_does_not_end() -> None:
    made = world(roles=[giving("default")], own={"roles": [{"name": "default", "ttl": 5}]})
    assert made.expired() == 0
    assert made.roles() == ["default"]


def test_role_whose_condition_holds_applies_without_assignment() -> None:
    made = world(roles=[giving("r", **BETA)], user={"tags": ["beta"]})
    assert made.short() == ["chat.mute"]
    assert made.effective_roles() == ["r"]
    assert made.roles() == []


def test_role_with_a_condition_applies_only_while_it_holds_also_when_assigned() -> None:
    made = world(roles=[giving("r", **BETA)], own={"roles": ["r"]})
    assert made.short() == []
    assert made.effective_roles() == []
    assert made.roles() == ["r"]


def test_empty_condition_on_a_role_means_no_condition() -> None:
    assert world(roles=[giving("r", condition={})]).short() == []
    assert world(roles=[giving("r", condition={})], own={"roles": ["r"]}).short() == ["chat.mute"]


@pytest.mark.parametrize("condition", [{"everyone": False}, {"and": []}, {"or": []}])
def test_condition_that_asks_for_nothing_holds_for_nobody(condition: dict[str, Any]) -> None:
    assert world(roles=[giving("r", condition=condition)], own={"roles": ["r"]}).short() == []


def test_everyone_true_holds_for_everybody() -> None:
    assert world(roles=[giving("r", condition={"everyone": True})]).short() == ["chat.mute"]


def test_role_granted_to_a_group_through_the_project() -> None:
    made = world(roles=[giving("r")], home=home((GROUP_A, "r", "grant")))
    assert made.short() == ["chat.mute"]
    assert made.roles() == ["r"]


def test_grant_to_another_group_gives_nothing() -> None:
    assert world(roles=[giving("r")], home=home((GROUP_B, "r", "grant"))).roles() == []


def test_grant_to_a_group_that_is_not_the_projects_gives_nothing() -> None:
    assert world(roles=[giving("r")], home=home(("c" * 24, "r", "grant"))).roles() == []


def test_grant_for_another_application_gives_nothing() -> None:
    assert world(application_id=11, roles=[giving("r")], home=home((GROUP_A, "r", "grant"))).roles() == []


def test_grant_to_a_group_by_its_condition() -> None:
    project = home((GROUP_A, "r", "grant"))
    project["groups"] = [{"id": GROUP_A, "conditions": [{"title": "t", "condition": {"domain": "example.com"}}]}]
    assert world(roles=[giving("r")], home=project).short() == ["chat.mute"]
    assert world(roles=[giving("r")], home=project, user={"login": "a@b.c"}).short() == []


def test_any_one_condition_makes_a_member_of_a_group() -> None:
    project = home((GROUP_A, "r", "grant"))
    conditions = [{"title": "no", "condition": {"tag": "x"}}, {"title": "yes", "condition": {"uid": ["1001"]}}]
    project["groups"] = [{"id": GROUP_A, "conditions": conditions}]
    assert world(roles=[giving("r")], home=project).short() == ["chat.mute"]


def test_granted_role_with_a_condition_applies_only_while_it_holds() -> None:
    made = world(roles=[giving("r", **BETA)], home=home((GROUP_A, "r", "grant")))
    assert made.short() == []
    assert made.roles() == ["r"]


def test_protected_role_is_never_granted_through_a_project() -> None:
    assert world(roles=[giving("r", protected=True)], home=home((GROUP_A, "r", "grant"))).roles() == []


@pytest.mark.parametrize(
    "parts",
    [
        {"own": {"roles": ["r"]}},
        {"user": {"tags": ["beta"]}},
        {"extra": (GROUP_A, "r", "grant")},
    ],
)
def test_revoke_removes_the_role_whatever_its_source(parts: dict[str, Any]) -> None:
    extra = parts.pop("extra", None)
    condition = BETA if "user" in parts else {}
    actions = [*([extra] if extra else []), (GROUP_A, "r", "revoke")]
    made = world(roles=[giving("r", **condition)], home=home(*actions), **parts)
    assert (made.short(), made.roles(), made.effective_roles()) == ([], [], [])


@pytest.mark.parametrize("role", [giving("default"), giving("r", default=True)])
def test_revoke_does_not_remove_a_default_role(role: dict[str, Any]) -> None:
    made = world(roles=[role], home=home((GROUP_A, role["name"], "revoke")), own={"roles": [role["name"]]})
    assert made.short() == ["chat.mute"]
    assert made.roles() == [role["name"]]


def test_revoke_from_another_group_removes_nothing() -> None:
    made = world(roles=[giving("r")], home=home((GROUP_B, "r", "revoke")), own={"roles": ["r"]})
    assert made.roles() == ["r"]


def test_revoke_holds_also_for_whom_the_project_lets_in_no_further() -> None:
    project = home((GROUP_A, "r", "revoke"), disallow=[GROUP_A])
    assert world(roles=[giving("r")], home=project, own={"roles": ["r"]}).roles() == []


CLOSED: list[dict[str, Any]] = [
    {"disallow": [GROUP_A]},
    {"allow": [GROUP_B]},
    {"allow": [GROUP_A], "disallow": [GROUP_A]},
    {"allow": ["c" * 24]},
    {"settings": {"allowed_domains": ["other.org"]}},
]


@pytest.mark.parametrize("fields", CLOSED)
def test_grants_end_where_the_project_lets_nobody_in(fields: dict[str, Any]) -> None:
    project = home((GROUP_A, "r", "grant"), **{key: value for key, value in fields.items() if key != "settings"})
    project["settings"] |= fields.get("settings", {})
    made = world(roles=[giving("r"), giving("mine", "a")], home=project, own={"roles": ["mine"]})
    assert made.short() == ["a"]  # one's own roles are not the project's matter


def test_allowed_domains_compare_without_regard_to_case() -> None:
    project = home((GROUP_A, "r", "grant"))
    project["settings"]["allowed_domains"] = ["EXAMPLE.com"]
    assert world(roles=[giving("r")], home=project).roles() == ["r"]
    assert world(roles=[giving("r")], home=project, user={"login": "a@sub.example.com"}).roles() == []


@pytest.mark.parametrize("parts", [{"removed": True}, {"home": home((GROUP_A, "r", "grant"), removed=True)}])
def test_removed_application_or_project_gives_nothing(parts: dict[str, Any]) -> None:
    data = {"private_data": {"x": {"value": True}}}
    made = world(schema=data, roles=[giving("r"), giving("default")], own={"roles": ["r"], **data}, **parts)
    assert (made.full(), made.roles(), made.effective_roles(), made.expired()) == ([], [], [], 0)
