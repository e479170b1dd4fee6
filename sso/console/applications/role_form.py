"""The editor of a role: check boxes of rules and rows of a condition, or both as JSON."""

from typing import Any

from sso.console.document_forms import condition_rows, role_rules
from sso.console.document_forms.condition_rows import CONDITION_VALUES
from sso.console.document_forms.views import DocumentForm, is_table
from sso.console.form_pages import Form
from sso.console.json_fields import json_text, read_condition, read_object
from sso.perm.input.condition_notation import condition_text

CONDITION = "condition"


def read_role(form: Form) -> dict[str, Any]:
    """Returns the rules and the condition of the form, unchecked. Raises FieldError."""
    if not is_table(form):
        condition = read_condition(form.get(CONDITION, ""), CONDITION)
        return {"meta": read_object(form.get("meta", ""), "meta"), CONDITION: condition}
    return {"meta": role_rules.read_rules(form), CONDITION: condition_rows.read_rows(form, CONDITION)}


def _json_fields(role: dict[str, Any]) -> Form:
    return {"meta": json_text(role["meta"]), CONDITION: condition_text(role[CONDITION] or {})}


def _table_fields(role: dict[str, Any]) -> Form:
    form = role_rules.rule_fields(role["meta"])
    return form | condition_rows.condition_fields(role[CONDITION] or {}, CONDITION)


def _values(form: Form, page: dict[str, Any]) -> dict[str, Any]:
    choices = role_rules.rule_choices(page["schema"], form)
    shown = role_rules.shown_choices(choices, form)
    return {
        "choices": shown,
        "hidden_choices": len(choices) - len(shown),
        "kept": sorted(read_object(form.get("rest", ""), "rest")),
        **CONDITION_VALUES,
    }


ROLE_FORM = DocumentForm(
    _table_fields,
    _json_fields,
    read_role,
    condition_rows.add_row,
    condition_rows.remove_named_row,
    _values,
)
