"""Redacted explanations: no conditions, and no roles that the user lacks."""

from typing import Any

from sso.perm.engine.explanation.explain import MAX_COMPARISONS, explain_all, explain_rule
from sso.perm.engine.explanation.redaction import redact_explanation
from sso.perm.engine.render import Options
from tests.perm.evaluation import GROUP_A, Evaluation, evaluate, role_giving

RULE = "private_data.chat.mute"
EVERYONE = {"everyone": True}
GRANT = {"group_id": GROUP_A, "role": "mod", "action": "grant"}
HOME = {
    "id": "p",
    "settings": {"services": {"10": {"groups": [GRANT]}}},
    "groups": [{"id": GROUP_A, "title": "Us", "conditions": [{"title": "secret", "condition": {"everyone": True}}]}],
}


def redacted(result: Evaluation, *, may_see: bool = False) -> dict[str, Any]:
    explanation = explain_rule(result.application, result.facts, result.effective, RULE)
    return redact_explanation(explanation, "p", lambda project_id: may_see)


def test_condition_of_a_held_role_is_hidden() -> None:
    result = evaluate(roles=[role_giving("mod", condition={"everyone": True})])
    assert redacted(result)["sources"][0]["by"] == [{"kind": "condition"}]
    assert "compared" in redacted(result, may_see=True)["sources"][0]["by"][0]


def test_title_of_a_group_condition_is_hidden() -> None:
    (origin,) = redacted(evaluate(roles=[role_giving("mod")], home=HOME))["sources"][0]["by"]
    assert (origin["group"], origin["member"]) == ("Us", "condition")
    assert "compared" not in origin


def test_title_of_a_group_condition_is_hidden_after_the_limit_of_comparisons() -> None:
    names = [f"rule{number:05}" for number in range(MAX_COMPARISONS // 2 + 1)]
    role = {"name": "mod", "meta": {"private_data": {name: {"value": True} for name in names}}}
    group = {"id": GROUP_A, "title": "Us", "conditions": [{"title": "secret", "condition": {"or": [EVERYONE] * 2}}]}
    result = evaluate(roles=[role], home=HOME | {"groups": [group]})
    explained = explain_all(result.application, result.facts, result.effective, Options())
    last = explained[f"private_data.{names[-1]}"]
    assert last["sources"][0]["by"][0].keys() >= {"group", "member"}
    assert "compared" not in last["sources"][0]["by"][0]
    (origin,) = redact_explanation(last, "p", lambda project_id: False)["sources"][0]["by"]
    assert (origin["group"], origin["member"]) == ("Us", "condition")


def test_roles_that_the_user_lacks_are_hidden_and_not_counted() -> None:
    result = evaluate(roles=[role_giving("mod"), role_giving("other")])
    text = "a role has it, but is not assigned"
    assert redacted(result)["reasons"] == [{"reason": "not_assigned", "text": text}]
    assert [reason["role"] for reason in redacted(result, may_see=True)["reasons"]] == ["mod", "other"]


def test_reasons_without_a_role_are_shown() -> None:
    own = {"private_data": {"chat": {"mute": {"value": False}}}}
    assert redacted(evaluate(own=own))["reasons"][0]["reason"] == "own_value"
