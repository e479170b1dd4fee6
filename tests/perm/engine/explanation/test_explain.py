"""Explanations: the sources of a rule that a user holds, and the reasons why a rule is missing."""

from typing import Any

import pytest

from sso.perm.engine.explanation.explain import MAX_COMPARISONS, explain_all, explain_rule
from sso.perm.engine.render import Options
from tests.perm.evaluation import GROUP_A, GROUP_B, NOW, Evaluation, evaluate, role_giving, rule

RULE = "private_data.chat.mute"


def explain(result: Evaluation, name: str = RULE) -> dict[str, Any]:
    return explain_rule(result.application, result.facts, result.effective, name)


def reasons(result: Evaluation, name: str = RULE) -> list[str]:
    return [reason["reason"] for reason in explain(result, name)["reasons"]]


def granting(*actions: tuple[str, str], **fields: Any) -> dict[str, Any]:
    items = [{"group_id": group, "role": "mod", "action": action} for group, action in actions]
    groups = [
        {"id": GROUP_A, "title": "Testers", "conditions": [{"title": "us", "condition": {"domain": "example.com"}}]},
        {"id": GROUP_B, "title": "Others", "users": ["5"]},
    ]
    return {"id": "p", "settings": {"services": {"10": {"groups": items}}}, "groups": groups, **fields}


def test_sources_show_role_condition_parameters_and_end() -> None:
    roles = [role_giving("mod", params="b", condition={"tag": "beta"}), role_giving("default", params="a")]
    result = evaluate(roles=roles, user={"tags": ["beta"]}, own={"roles": [{"name": "mod", "ttl": 60}]})
    assert explain(result) == {
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


def test_condition_of_a_default_role_is_not_shown() -> None:
    result = evaluate(roles=[role_giving("default", condition={"everyone": True})])
    assert explain(result)["sources"][0]["by"] == [{"kind": "default"}]


def test_own_data_replaces_the_schema_as_source() -> None:
    schema = {"private_data": rule("chat.mute")}
    assert [source["layer"] for source in explain(evaluate(schema=schema))["sources"]] == ["schema"]
    result = evaluate(schema=schema, own={"private_data": rule("chat.mute", expired=NOW + 5)})
    assert [source["layer"] for source in explain(result)["sources"]] == ["own"]
    assert explain(result)["sources"][0]["expired"] == NOW + 5


def test_source_of_a_granted_role_shows_the_group() -> None:
    result = evaluate(roles=[role_giving("mod")], home=granting((GROUP_A, "grant")))
    assert explain(result)["sources"][0]["by"] == [
        {
            "kind": "group",
            "project_id": "p",
            "group_id": GROUP_A,
            "group": "Testers",
            "member": "us",
            "compared": [{"member": "domain", "asked": "example.com", "found": "example.com", "holds": True}],
        }
    ]


def in_project(**fields: Any) -> Evaluation:
    project = {
        "id": "p",
        "aliases": ["alias"],
        "applications": [{"id": 10}, {"id": 11}],
        "groups": [{"id": GROUP_A, "users": ["1001"]}],
        **fields,
    }
    roles = [
        role_giving("dev", "app.can"),
        role_giving("late", "app.can", condition={"tag": "x"}),
        role_giving("top", "app.can", protected=True),
    ]
    return evaluate(application_id=1, roles=roles, projects=[project])


@pytest.mark.parametrize(
    "name",
    [
        "p/applications/10/app.can",
        "alias/applications/10/app.can|x:5",
        "private_data.projectAccess.p.applications.10.private_data.app.can",
    ],
)
def test_source_of_project_access_shows_the_scopes(name: str) -> None:
    result = in_project(member={"project": [{"name": "dev", "ttl": 5}], "applications": {"10": ["dev"], "11": ["dev"]}})
    assert explain(result, name)["sources"][0]["by"] == [
        {"kind": "project", "project_id": "p", "at": "project", "expired": NOW + 5},
        {"kind": "project", "project_id": "p", "at": "applications.10", "expired": 0},
    ]


def test_explain_all_uses_the_names_of_the_list() -> None:
    result = in_project(member={"applications": {"10": ["dev"]}})
    arguments = (result.application, result.facts, result.effective, Options())
    assert list(explain_all(*arguments)) == result.full()
    assert list(explain_all(*arguments, short=True)) == result.short() == ["p/applications/10/app.can"]


def test_explain_all_has_a_bounded_number_of_comparisons() -> None:
    tags = [{"tag": f"t{number}"} for number in range(250)]
    names = [f"rule{number:03}" for number in range(60)]
    role = {"name": "mod", "condition": {"or": [{"everyone": True}, *tags]}}
    result = evaluate(roles=[role | {"meta": {"private_data": {name: {"value": True} for name in names}}}])
    explained = explain_all(result.application, result.facts, result.effective, Options())
    origins = [explained[f"private_data.{name}"]["sources"][0]["by"] for name in names]
    compared = [len(by[0].get("compared", ())) for by in origins]
    assert [by[0]["kind"] for by in origins] == ["condition"] * 60
    assert compared == [251] * (MAX_COMPARISONS // 251) + [0] * (60 - MAX_COMPARISONS // 251)
    assert origins[0] is origins[1]  # it is found out once for all rules of the role
    assert len(explain(result, names[-1])["sources"][0]["by"][0]["compared"]) == 251


def test_reason_not_assigned() -> None:
    assert reasons(evaluate(roles=[role_giving("mod")])) == ["not_assigned"]
    assert explain(evaluate(roles=[role_giving("mod")]), "chat.mute")["reasons"][0]["role"] == "mod"


def test_reason_expired_assignment() -> None:
    result = evaluate(roles=[role_giving("mod")], own={"roles": [{"name": "mod", "expired": NOW - 9}]})
    assert explain(result)["reasons"] == [
        {"reason": "expired", "text": "role mod was assigned and has ended", "role": "mod", "expired": NOW - 9}
    ]


def test_reason_condition_shows_the_compared_values() -> None:
    result = evaluate(roles=[role_giving("mod", condition={"domain": "other.org"})], own={"roles": ["mod"]})
    assert explain(result)["reasons"][0]["compared"] == [
        {"member": "domain", "asked": "other.org", "found": "example.com", "holds": False}
    ]


def test_reason_revoked_names_the_group() -> None:
    result = evaluate(
        roles=[role_giving("mod")], own={"roles": ["mod"]}, home=granting((GROUP_A, "revoke"), (GROUP_B, "revoke"))
    )
    (reason,) = explain(result)["reasons"]
    assert (reason["reason"], reason["groups"]) == ("revoked", [GROUP_A])
    assert "Testers" in reason["text"]


def test_reason_own_value_comes_first() -> None:
    own = {"private_data": rule("chat.mute", False)}
    assert reasons(evaluate(roles=[role_giving("mod"), role_giving("default")], own=own)) == [
        "own_value",
        "not_assigned",
    ]


def test_reason_expired_own_entry() -> None:
    assert reasons(evaluate(own={"private_data": rule("chat.mute", expired=NOW)})) == ["expired"]


def test_reasons_role_value_and_schema_value() -> None:
    assert reasons(evaluate(roles=[role_giving("default", value=False)])) == ["role_value"]
    assert reasons(evaluate(schema={"private_data": rule("chat.mute", False)})) == ["schema_value"]


def test_reasons_why_a_grant_does_not_reach_the_user() -> None:
    assert reasons(evaluate(roles=[role_giving("mod")], home=granting((GROUP_B, "grant")))) == ["not_in_group"]
    assert reasons(evaluate(roles=[role_giving("mod")], home=granting((GROUP_A, "grant"), disallow=[GROUP_A]))) == [
        "project_closed"
    ]
    assert reasons(evaluate(roles=[role_giving("mod", protected=True)], home=granting((GROUP_A, "grant")))) == [
        "protected"
    ]


def test_reason_unknown_rule() -> None:
    assert reasons(evaluate(roles=[role_giving("mod")]), "other") == ["unknown"]


def test_reason_removed_application() -> None:
    assert reasons(evaluate(roles=[role_giving("default")], removed=True)) == ["removed"]


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
def test_reasons_for_a_missing_project_rule(fields: dict[str, Any], expected: str) -> None:
    assert reasons(in_project(**fields), "p/applications/10/app.can")[0] == expected


def test_reason_no_membership() -> None:
    assert reasons(in_project(), "other/project.can") == ["no_membership"]
    assert reasons(evaluate(), "p/project.can") == ["unknown"]
