"""Explanations: the chain of a rule, and the nearest reasons why it is missing."""

from typing import Any

import pytest

from sso.perm.engine.explanation.explain import explain_all, explain_rule
from sso.perm.engine.render import Options
from tests.perm.world import GROUP_A, GROUP_B, NOW, World, giving, rule, world

RULE = "private_data.chat.mute"


def ask(made: World, name: str = RULE) -> dict[str, Any]:
    return explain_rule(made.application, made.facts, made.effective, name)


def reasons(made: World, name: str = RULE) -> list[str]:
    return [reason["reason"] for reason in ask(made, name)["reasons"]]


def granting(*actions: tuple[str, str], **fields: Any) -> dict[str, Any]:
    items = [{"group_id": group, "role": "mod", "action": action} for group, action in actions]
    groups = [
        {"id": GROUP_A, "title": "Testers", "conditions": [{"title": "us", "condition": {"domain": "example.com"}}]},
        {"id": GROUP_B, "title": "Others", "users": ["5"]},
    ]
    return {"id": "p", "settings": {"services": {"10": {"groups": items}}}, "groups": groups, **fields}


def test_chain_of_an_assigned_role_with_condition_parameters_and_expiry() -> None:
    roles = [giving("mod", params="b", condition={"tag": "beta"}), giving("default", params="a")]
    made = world(roles=roles, user={"tags": ["beta"]}, own={"roles": [{"name": "mod", "ttl": 60}]})
    assert ask(made) == {
        "rule": RULE,
        "held": True,
        "params": ["a", "b"],
        "expired": 0,
        "sources": [
            {"layer": "role", "role": "default", "params": ["a"], "expired": 0, "by": [{"kind": "default"}]},
            {
                "layer": "role",
                "role": "mod",
                "params": ["b"],
                "expired": 0,
                "by": [
                    {"kind": "assignment", "expired": NOW + 60},
                    {
                        "kind": "condition",
                        "compared": [{"member": "tag", "asked": "beta", "found": True, "holds": True}],
                    },
                ],
            },
        ],
    }


def test_condition_of_a_default_role_is_no_part_of_the_chain() -> None:
    made = world(roles=[giving("default", condition={"everyone": True})])
    assert ask(made)["sources"][0]["by"] == [{"kind": "default"}]


def test_chain_of_own_data_replaces_the_schema() -> None:
    schema = {"private_data": rule("chat.mute")}
    assert [link["layer"] for link in ask(world(schema=schema))["sources"]] == ["schema"]
    made = world(schema=schema, own={"private_data": rule("chat.mute", expired=NOW + 5)})
    assert [link["layer"] for link in ask(made)["sources"]] == ["own"]
    assert ask(made)["sources"][0]["expired"] == NOW + 5


def test_chain_of_a_grant_to_a_group_through_the_project() -> None:
    made = world(roles=[giving("mod")], home=granting((GROUP_A, "grant")))
    assert ask(made)["sources"][0]["by"] == [
        {
            "kind": "group",
            "project_id": "p",
            "group_id": GROUP_A,
            "group": "Testers",
            "member": "us",
            "compared": [{"member": "domain", "asked": "example.com", "found": "example.com", "holds": True}],
        }
    ]


def in_project(**fields: Any) -> World:
    project = {
        "id": "p",
        "aliases": ["alias"],
        "applications": [{"id": 10}, {"id": 11}],
        "groups": [{"id": GROUP_A, "users": ["1001"]}],
        **fields,
    }
    roles = [
        giving("dev", "app.can"),
        giving("late", "app.can", condition={"tag": "x"}),
        giving("top", "app.can", protected=True),
    ]
    return world(application_id=1, roles=roles, projects=[project])


@pytest.mark.parametrize(
    "name",
    [
        "p/applications/10/app.can",
        "alias/applications/10/app.can|x:5",
        "private_data.projectAccess.p.applications.10.private_data.app.can",
    ],
)
def test_chain_of_project_access(name: str) -> None:
    made = in_project(member={"project": [{"name": "dev", "ttl": 5}], "applications": {"10": ["dev"], "11": ["dev"]}})
    assert ask(made, name)["sources"][0]["by"] == [
        {"kind": "project", "project_id": "p", "at": "project", "expired": NOW + 5},
        {"kind": "project", "project_id": "p", "at": "applications.10", "expired": 0},
    ]


def test_explaining_all_uses_the_names_of_the_answer() -> None:
    made = in_project(member={"applications": {"10": ["dev"]}})
    arguments = (made.application, made.facts, made.effective, Options())
    assert list(explain_all(*arguments)) == made.full()
    assert list(explain_all(*arguments, short=True)) == made.short() == ["p/applications/10/app.can"]


def test_role_has_it_but_is_not_assigned() -> None:
    assert reasons(world(roles=[giving("mod")])) == ["not_assigned"]
    assert ask(world(roles=[giving("mod")]), "chat.mute")["reasons"][0]["role"] == "mod"


def test_assigned_but_expired() -> None:
    made = world(roles=[giving("mod")], own={"roles": [{"name": "mod", "expired": NOW - 9}]})
    assert ask(made)["reasons"] == [
        {"reason": "expired", "text": "role mod was assigned and has ended", "role": "mod", "expired": NOW - 9}
    ]


def test_condition_failed_with_the_value_compared() -> None:
    made = world(roles=[giving("mod", condition={"domain": "other.org"})], own={"roles": ["mod"]})
    assert ask(made)["reasons"][0]["compared"] == [
        {"member": "domain", "asked": "other.org", "found": "example.com", "holds": False}
    ]


def test_revoked_by_a_group() -> None:
    made = world(roles=[giving("mod")], own={"roles": ["mod"]}, home=granting((GROUP_A, "revoke"), (GROUP_B, "revoke")))
    (reason,) = ask(made)["reasons"]
    assert (reason["reason"], reason["groups"]) == ("revoked", [GROUP_A])
    assert "Testers" in reason["text"]


def test_value_false_in_own_data_comes_first() -> None:
    own = {"private_data": rule("chat.mute", False)}
    assert reasons(world(roles=[giving("mod"), giving("default")], own=own)) == ["own_value", "not_assigned"]


def test_own_entry_has_ended() -> None:
    assert reasons(world(own={"private_data": rule("chat.mute", expired=NOW)})) == ["expired"]


def test_role_or_schema_says_no() -> None:
    assert reasons(world(roles=[giving("default", value=False)])) == ["role_value"]
    assert reasons(world(schema={"private_data": rule("chat.mute", False)})) == ["schema_value"]


def test_grant_does_not_reach_the_user() -> None:
    assert reasons(world(roles=[giving("mod")], home=granting((GROUP_B, "grant")))) == ["not_in_group"]
    assert reasons(world(roles=[giving("mod")], home=granting((GROUP_A, "grant"), disallow=[GROUP_A]))) == [
        "project_closed"
    ]
    assert reasons(world(roles=[giving("mod", protected=True)], home=granting((GROUP_A, "grant")))) == ["protected"]


def test_unknown_rule() -> None:
    assert reasons(world(roles=[giving("mod")]), "other") == ["unknown"]


def test_removed_application() -> None:
    assert reasons(world(roles=[giving("default")], removed=True)) == ["removed"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"member": {}}, "not_assigned"),
        ({"member": {"applications": {"11": ["dev"]}}}, "elsewhere"),
        ({"member": {"applications": {"10": [{"name": "dev", "expired": 5}]}}}, "expired"),
        ({"member": {"project": ["late"]}}, "condition"),
        ({"member": {"project": ["top"]}}, "protected"),
        ({"member": {"project": ["dev"]}, "disallow": [GROUP_A]}, "project_closed"),
        ({"member": {"project": ["dev"]}, "allow": ["f" * 24]}, "project_closed"),
        ({"member": {"project": ["dev"]}, "settings": {"allowed_domains": ["x.y"]}}, "project_closed"),
        ({"member": {"project": ["dev"]}, "removed": True}, "project_closed"),
        ({"member": {"project": ["dev"]}, "applications": []}, "no_resource"),
    ],
)
def test_why_not_in_a_project(fields: dict[str, Any], expected: str) -> None:
    assert reasons(in_project(**fields), "p/applications/10/app.can")[0] == expected


def test_no_membership() -> None:
    assert reasons(in_project(), "other/project.can") == ["no_membership"]
    assert reasons(world(), "p/project.can") == ["unknown"]
