"""The rules of a role as check boxes of the rules of the schema, with values and parameters where a rule has them.

The names of the fields end with the section and path of the rule: ``give:private_data.chat.kick``.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sso.console.document_forms.field_texts import hidden_text, is_line, read_scalar, scalar_text
from sso.console.document_forms.rule_tree import ListedRule, PathTaken, join_rules, split_rules
from sso.console.form_pages import Form
from sso.console.json_fields import read_object
from sso.core.field_errors import FieldError
from sso.perm.engine.rules import LISTED_SECTIONS

MAX_RULES = 200  # in the list: a rule has up to four fields, and a form at most 1000


class RuleChoice(NamedTuple):
    """A rule that can be given: of the schema, or of the role alone."""

    key: str  # the end of the names of its fields
    path: str  # as permissions are listed
    section: str
    description: str
    is_declared: bool
    is_default: bool  # users have it without a role
    is_protected: bool
    has_value: bool  # it has a value other than true and false
    has_params: bool


def rule_fields(meta: Mapping[str, Any]) -> Form:
    """Returns the fields of the rules that a role gives. Raises FieldError if they are too many for a list."""
    rules, rest = split_rules(meta, LISTED_SECTIONS)
    if len(rules) > MAX_RULES:
        raise FieldError(("view",), f"the list shows at most {MAX_RULES} rules, and the role has {len(rules)}")
    form: Form = {"rest": hidden_text(rest)}
    for rule in rules:
        key, members = f"{rule.section}.{rule.path}", dict(rule.members)
        form[f"give:{key}"] = "1"
        if (value := members.pop("value")) is not True:
            form[f"value:{key}"] = scalar_text(value)
        if is_line(members.get("params")):
            form[f"params:{key}"] = members.pop("params")
        if members:
            form[f"more:{key}"] = hidden_text(members)
    return form


def read_rules(form: Form) -> dict[str, Any]:
    """Returns the rules of the fields, unchecked. Raises FieldError."""
    rules = [_read_rule(form, name.removeprefix("give:")) for name in form if name.startswith("give:")]
    try:
        return join_rules(rules, read_object(form.get("rest", ""), "rest"))
    except PathTaken as taken:
        raise FieldError(("rules",), f"{taken.rule.path} is below another rule") from None


def _read_rule(form: Form, key: str) -> ListedRule:
    section, *names = key.split(".")
    if section not in LISTED_SECTIONS or not all(names) or not names:
        raise FieldError(("rules",), f"expected rules of {' and '.join(LISTED_SECTIONS)}")
    members = read_object(form.get(f"more:{key}", ""), "rules")
    members["value"] = _read_value(form, key)
    if params := form.get(f"params:{key}", "").strip():
        members["params"] = params
    return ListedRule(section, tuple(names), members)


def _read_value(form: Form, key: str) -> Any:
    field = f"value:{key}"
    if field not in form:
        return True
    if not form[field].strip():
        raise FieldError((field,), "give a value, or clear the box")
    return read_scalar(form[field], field)


def rule_choices(schema: Mapping[str, Any], form: Form) -> list[RuleChoice]:
    """Returns the rules of the schema and those of the fields that it does not declare, which come first."""
    declared, _ = split_rules({name: schema.get(name, {}) for name in LISTED_SECTIONS}, LISTED_SECTIONS)
    choices = {f"{rule.section}.{rule.path}": _choice(rule, form) for rule in declared}
    others = [key for name in form if name.startswith("give:") and (key := name.removeprefix("give:")) not in choices]
    return [*(_undeclared(key, form) for key in others), *choices.values()]


def shown_choices(choices: list[RuleChoice], form: Form) -> list[RuleChoice]:
    """Returns as many as the list shows. Rules that the role gives are always shown: what is missing would be taken."""
    spare = MAX_RULES - sum(f"give:{choice.key}" in form for choice in choices)
    others = [choice for choice in choices if f"give:{choice.key}" not in form][: max(0, spare)]
    shown = {choice.key for choice in others}
    return [choice for choice in choices if choice.key in shown or f"give:{choice.key}" in form]


def _choice(rule: ListedRule, form: Form) -> RuleChoice:
    key, default = f"{rule.section}.{rule.path}", rule.members["value"]
    description = rule.members.get("description", "")
    return RuleChoice(
        key,
        rule.path,
        rule.section,
        description if isinstance(description, str) else "",
        is_declared=True,
        is_default=bool(default),
        is_protected=rule.members.get("protected") is True,
        has_value=not isinstance(default, bool) or f"value:{key}" in form,
        has_params=bool(rule.members.get("params")) or f"params:{key}" in form,
    )


def _undeclared(key: str, form: Form) -> RuleChoice:
    section, _, path = key.partition(".")
    return RuleChoice(key, path, section, "", False, False, False, f"value:{key}" in form, f"params:{key}" in form)
