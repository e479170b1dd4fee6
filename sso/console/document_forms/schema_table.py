"""The schema of an application as a table of rules: section, path, default, protection and description.

The fields of a row end with its number: ``path:3``. A row without a path is not read, so that it can be removed.
"""

from collections.abc import Mapping
from typing import Any

from sso.console.document_forms.field_texts import hidden_text, is_line, read_scalar, scalar_text
from sso.console.document_forms.rule_tree import ListedRule, PathTaken, join_rules, split_rules
from sso.console.form_pages import Form
from sso.console.json_fields import read_object
from sso.core.field_errors import FieldError
from sso.perm.engine.reserved_names import RULE_MEMBERS
from sso.perm.input.names import check_segment

SHOWN_SECTIONS = ("private_data", "public_data", "login", "secret_data")  # in their order
MAX_ROWS = 150  # a form has at most 1000 fields
_SPARE_ROWS = 1
_SWITCH = {"false": False, "true": True}


def table_fields(schema: Mapping[str, Any]) -> Form:
    """Returns the fields of the table. Raises FieldError if the schema has too many rules for it."""
    rules, rest = split_rules({name: schema[name] for name in SHOWN_SECTIONS if name in schema}, SHOWN_SECTIONS)
    if len(rules) > MAX_ROWS - _SPARE_ROWS:
        raise FieldError(("view",), f"the table shows at most {MAX_ROWS} rules, and the schema has {len(rules)}")
    form: Form = {"rest": hidden_text(rest)}
    for number, rule in enumerate(rules, 1):
        form |= {f"{name}:{number}": text for name, text in _row(rule).items()}
    return add_row(form)


def _row(rule: ListedRule) -> Form:
    members = dict(rule.members)
    row = {"section": rule.section, "path": rule.path, "default": "value", "value": "", "description": ""}
    value = members.pop("value")
    if isinstance(value, bool):
        row["default"] = "true" if value else "false"
    else:
        row["value"] = scalar_text(value)
    if _is_params(members.get("params")):
        row["path"] += f"|{members.pop('params')}"
    if members.get("protected") is True:
        row["protected"] = "1"
        del members["protected"]
    if is_line(members.get("description")):
        row["description"] = members.pop("description")
    return row | ({"more": hidden_text(members)} if members else {})


def _is_params(value: object) -> bool:
    return is_line(value) and "|" not in str(value)


def row_numbers(form: Form) -> list[int]:
    numbers = (name.partition(":")[2] for name in form if name.startswith("path:"))
    return sorted(int(number) for number in numbers if number.isascii() and number.isdecimal() and len(number) < 5)


def add_row(form: Form) -> Form:
    """Returns the fields with an empty row at the end. Raises FieldError if the table is full."""
    numbers = row_numbers(form)
    if len(numbers) >= MAX_ROWS:
        raise FieldError(("view",), f"the table has at most {MAX_ROWS} rules; write more of them as JSON")
    number = max(numbers, default=0) + 1
    return form | {f"section:{number}": "private_data", f"path:{number}": "", f"default:{number}": "false"}


def remove_row(form: Form, number: str) -> Form:
    return {name: text for name, text in form.items() if name.partition(":")[2] != number}


def read_table(form: Form) -> dict[str, Any]:
    """Returns the schema of the fields. Only what is needed to read them is checked. Raises FieldError."""
    rows = [(number, _read_row(form, number)) for number in row_numbers(form) if form[f"path:{number}"].strip()]
    try:
        return join_rules([rule for _, rule in rows], read_object(form.get("rest", ""), "rest"))
    except PathTaken as taken:
        number = next(number for number, rule in rows if rule is taken.rule)
        raise FieldError((f"path:{number}",), f"{taken.rule.path} is in the table twice, or below a rule") from None


def _read_row(form: Form, number: int) -> ListedRule:
    path, _, params = form[f"path:{number}"].strip().partition("|")
    members = read_object(form.get(f"more:{number}", ""), f"path:{number}")
    members["value"] = _read_default(form, number)
    if params.strip():
        members["params"] = params.strip()
    if f"protected:{number}" in form:
        members["protected"] = True
    if description := form.get(f"description:{number}", "").strip():
        members["description"] = description
    return ListedRule(_read_section(form, number), _read_names(path.strip(), number), members)


def _read_default(form: Form, number: int) -> Any:
    chosen, text = form.get(f"default:{number}", ""), form.get(f"value:{number}", "")
    if chosen in _SWITCH:
        return _SWITCH[chosen]
    if not text.strip():
        raise FieldError((f"value:{number}",), "give a value, or choose another default")
    return read_scalar(text, f"value:{number}")


def _read_section(form: Form, number: int) -> str:
    section = form.get(f"section:{number}", "")
    if section not in SHOWN_SECTIONS:
        raise FieldError((f"section:{number}",), f"must be one of {', '.join(SHOWN_SECTIONS)}")
    return section


def _read_names(path: str, number: int) -> tuple[str, ...]:
    field = f"path:{number}"
    names = tuple(path.split("."))
    for name in names:
        if name in RULE_MEMBERS:
            raise FieldError((field,), f"{name} is a reserved name")
        try:
            check_segment(name)
        except ValueError as error:
            raise FieldError((field,), f"{error}, with dots between names, such as chat.kick") from None
    return names
