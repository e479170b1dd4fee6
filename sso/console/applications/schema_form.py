"""The editor of a schema: its rules as a table, or its sections as JSON."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sso.console.document_forms import schema_table
from sso.console.document_forms.views import DocumentForm, is_table
from sso.console.form_pages import Form
from sso.console.json_fields import json_text, read_object
from sso.core.field_errors import FieldError, field_text
from sso.perm.engine.rules import LISTED_SECTIONS

_RARE_SECTIONS = ("login", "secret_data")
CHOICES = {"private_data": "Private", "public_data": "Public", "login": "Login", "secret_data": "Management"}


class SchemaRow(NamedTuple):
    number: int
    section: str
    path: str
    default: str
    value: str
    protected: bool
    description: str
    more: str  # members that the table does not show, as JSON
    focus: bool = False


def read_schema(form: Form) -> dict[str, Any]:
    """Returns the sections of the form. Sections that it does not show are left out. Raises FieldError."""
    if not is_table(form):
        return {name: read_object(form[name], name) for name in schema_table.SHOWN_SECTIONS if name in form}
    return {**{name: {} for name in LISTED_SECTIONS}, **schema_table.read_table(form)}


def _json_fields(schema: dict[str, Any]) -> Form:
    return {name: json_text(schema.get(name)) for name in schema_table.SHOWN_SECTIONS}


def _values(form: Form, _page: dict[str, Any]) -> dict[str, Any]:
    rows = list(_rows(form))
    return {
        "rows": [row for row in rows if row.section not in _RARE_SECTIONS],
        "rare_rows": [row for row in rows if row.section in _RARE_SECTIONS],
        "section_choices": CHOICES,
        "kept": list(_kept(read_object(form.get("rest", ""), "rest"), ())),
    }


def _rows(form: Form) -> Iterable[SchemaRow]:
    numbers = schema_table.row_numbers(form)
    for number in numbers:
        texts = {name: form.get(f"{name}:{number}", "") for name in ("section", "path", "default", "value")}
        more = {name: form.get(f"{name}:{number}", "") for name in ("description", "more")}
        is_new = "focus" in form and number == numbers[-1]
        yield SchemaRow(number, **texts, **more, protected=f"protected:{number}" in form, focus=is_new)


def _kept(rest: dict[str, Any], path: tuple[str, ...]) -> Iterable[str]:
    """The places of what the table does not show, except empty sections at the top."""
    for name, value in rest.items():
        if isinstance(value, dict) and value and len(path) < 1:
            yield from _kept(value, (*path, name))
        elif path or value:
            yield field_text((*path, name)) or "a name that is no rule"


def _locate(form: Form, error: FieldError) -> FieldError:
    """Returns an error about a rule at the row of the rule."""
    path = tuple(map(str, error.path))
    for number in schema_table.row_numbers(form):
        names = tuple(form[f"path:{number}"].strip().partition("|")[0].split("."))
        own = (form.get(f"section:{number}", ""), *names)
        if path[: len(own)] == own or path == names:
            return FieldError((f"path:{number}",), error.expected, status=error.status)
    return error


SCHEMA_FORM = DocumentForm(
    schema_table.table_fields,
    _json_fields,
    read_schema,
    lambda form, _: schema_table.add_row(form),
    schema_table.remove_row,
    _values,
    _locate,
)
