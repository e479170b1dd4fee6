"""Rules of a role as short texts."""

import re

import pytest

from sso.perm.input.rule_notation import add_rules, remove_rules, rule_texts

META = {"private_data": {"chat": {"mute": {"value": True, "params": "eu", "description": "Mute."}}}}


@pytest.mark.parametrize(
    ("text", "meta"),
    [
        ("mute", {"private_data": {"mute": {"value": True}}}),
        ("private_data.chat.mute", {"private_data": {"chat": {"mute": {"value": True}}}}),
        ("public_data.title=Major", {"public_data": {"title": {"value": "Major"}}}),
        ("a=false", {"private_data": {"a": {"value": False}}}),
        ("a=3", {"private_data": {"a": {"value": 3}}}),
        ('a="3"', {"private_data": {"a": {"value": "3"}}}),
        ("a=", {"private_data": {"a": {"value": ""}}}),
        ("a|eu,us", {"private_data": {"a": {"value": True, "params": "eu,us"}}}),
        ("a=x|y|", {"private_data": {"a": {"value": "x|y"}}}),
        ("a=x=y|k=v", {"private_data": {"a": {"value": "x=y", "params": "k=v"}}}),
    ],
)
def test_rule_text_has_an_optional_section_value_and_params(text: str, meta: dict[str, object]) -> None:
    assert add_rules({}, [text]) == meta
    assert add_rules({}, rule_texts(meta)) == meta


def test_added_rule_replaces_value_and_params_and_keeps_the_description() -> None:
    changed = add_rules(META, ["chat.mute=false"])
    assert changed == {"private_data": {"chat": {"mute": {"value": False, "description": "Mute."}}}}
    assert rule_texts(META) == ["chat.mute|eu"]  # the argument is unchanged


def test_removed_rule_leaves_no_empty_section() -> None:
    assert remove_rules(add_rules(META, ["public_data.a"]), ["chat.mute"]) == {"public_data": {"a": {"value": True}}}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "expected a rule such as chat.mute"),
        ("chat..mute", "expected a rule such as chat.mute"),
        ("chat.value", "value is a reserved name"),
        ("secret_data.a", "a role has rules of private_data and public_data only"),
        ("private_data", "a role has rules of private_data and public_data only"),
        ("a=[1]", "a: must be a string, a number, true, false or null"),
    ],
)
def test_wrong_rule_text_is_refused(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        add_rules(META, [text])


@pytest.mark.parametrize("text", ["chat", "chat.ban", "public_data.chat.mute", "chat.mute|eu"])
def test_rule_that_the_role_lacks_cannot_be_removed(text: str) -> None:
    with pytest.raises(ValueError, match="the role has no rule"):
        remove_rules(META, [text])
