"""Redacted explanations: no conditions, and no roles that the user lacks."""

from typing import Any

from sso.perm.engine.explanation.explain import explain_rule
from sso.perm.engine.explanation.redaction import redact_explanation
from tests.perm.evaluation import GROUP_A, Evaluation, evaluate, role_giving

RULE = "private_data.chat.mute"
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


def test_roles_that_the_user_lacks_are_hidden_and_not_counted() -> None:
    result = evaluate(roles=[role_giving("mod"), role_giving("other")])
    text = "a role has it, but is not assigned"
    assert redacted(result)["reasons"] == [{"reason": "not_assigned", "text": text}]
    assert [reason["role"] for reason in redacted(result, may_see=True)["reasons"]] == ["mod", "other"]


def test_reasons_without_a_role_are_shown() -> None:
    own = {"private_data": {"chat": {"mute": {"value": False}}}}
    assert redacted(evaluate(own=own))["reasons"][0]["reason"] == "own_value"
