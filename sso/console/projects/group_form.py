"""The form of a group: its conditions, as rows or as JSON, and the users who were added."""

from typing import Any

from sso.console.document_forms import condition_rows
from sso.console.document_forms.condition_rows import CONDITION_VALUES
from sso.console.document_forms.field_texts import hidden_text
from sso.console.document_forms.views import DocumentForm, is_table
from sso.console.form_pages import Form
from sso.console.form_values import split_list
from sso.console.json_fields import read_condition, read_object
from sso.console.user_lookup import find_user_id
from sso.console.visit import ConsoleVisit
from sso.core.field_errors import FieldError
from sso.perm.input.condition_notation import condition_text
from sso.perm.input.groups import MAX_CONDITIONS, MAX_GROUP_USERS

MAX_SHOWN = 40  # conditions as rows: a form has at most 1000 fields


def read_conditions(form: Form) -> dict[str, Any]:
    """Returns the conditions, unchecked. One without a title and a condition is left out, so that it can be removed.

    Raises FieldError.
    """
    conditions = [
        {"title": form[f"title_{number}"].strip() or f"Condition {number}", "condition": condition}
        for number, condition in _filled(form)
    ]
    return {"conditions": conditions}


def _filled(form: Form) -> list[tuple[int, dict[str, Any]]]:
    read = [(number, _read_condition(form, f"condition_{number}")) for number in _numbers(form)]
    return [(number, condition) for number, condition in read if condition or form[f"title_{number}"].strip()]


def _read_condition(form: Form, name: str) -> dict[str, Any]:
    if not is_table(form):
        return read_condition(form.get(name, ""), name)
    return condition_rows.read_rows(form, name)


def _numbers(form: Form) -> list[int]:
    return [number for number in range(1, MAX_CONDITIONS + 2) if f"title_{number}" in form]


def _json_fields(group: dict[str, Any]) -> Form:
    form: Form = {}
    for number, item in enumerate(_with_spare(group["conditions"]), 1):
        form |= {f"title_{number}": item["title"], f"condition_{number}": condition_text(item["condition"])}
    return form


def _table_fields(group: dict[str, Any]) -> Form:
    form: Form = {}
    if len(group["conditions"]) > MAX_SHOWN:
        raise FieldError(("view",), f"at most {MAX_SHOWN} conditions are shown as rows")
    for number, item in enumerate(_with_spare(group["conditions"]), 1):
        form |= {f"title_{number}": item["title"]}
        form |= condition_rows.condition_fields(item["condition"], f"condition_{number}")
    return form


def _with_spare(conditions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*conditions, {"title": "", "condition": {}}][:MAX_CONDITIONS]


def _locate(form: Form, error: FieldError) -> FieldError:
    """Returns an error about a condition with its number on the page, where empty ones count as well."""
    match error.path:
        case ("conditions", int(index), *rest):
            number, _ = _filled(form)[index]
            return FieldError(("conditions", number - 1, *rest), error.expected, status=error.status)
    return error


GROUP_FORM = DocumentForm(
    _table_fields,
    _json_fields,
    read_conditions,
    condition_rows.add_row,
    condition_rows.remove_named_row,
    lambda form, _page: {"condition_numbers": _numbers(form), **CONDITION_VALUES},
    _locate,
)


def member_fields(user_ids: list[str], logins: dict[str, str]) -> Form:
    """Returns the fields of the members: their names, and the id of each, since an address may get another owner."""
    names = {logins.get(user_id) or user_id: user_id for user_id in user_ids}
    return {"users": "\n".join(names), "shown_users": hidden_text(names)}


async def read_users(visit: ConsoleVisit, form: Form) -> list[str]:
    """Returns the ids of users who are named by id or by e-mail address. Those that the form has shown stay the same.

    Raises FieldError.
    """
    names, shown = split_list(form.get("users", "")), read_object(form.get("shown_users", ""), "users")
    if len(names) > MAX_GROUP_USERS:  # each may be looked up
        raise FieldError(("users",), f"must be at most {MAX_GROUP_USERS} users")
    return [shown[name] if name in shown else await find_user_id(visit, name, "users") for name in names]
