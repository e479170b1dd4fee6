"""The two views of a document in an editor: a table and JSON. Buttons switch between them, and add and remove rows.

A button sends the whole form and changes its fields; nothing is saved. So the views always show the same document, and
the editor works without scripts.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from sso.console.form_pages import Form
from sso.core.field_errors import FieldError

TABLE, JSON = "table", "json"
# Fields of editors that both views have.
_PLAIN = ("override", "title", "description", "tags", "users", "shown_users", "default", "params", "user_limit")

_HIDDEN = frozenset(("view", "rest", "note", "version"))


def is_table(form: Form) -> bool:
    """A form that does not say so is read as JSON, so that a missing table does not empty the record."""
    return form.get("view") == TABLE


class DocumentForm(Struct, frozen=True):
    table_fields: Callable[[dict[str, Any]], Form]  # of a record. Raises FieldError if the table cannot show it
    json_fields: Callable[[dict[str, Any]], Form]
    read: Callable[[Form], dict[str, Any]]  # the parts of the record that the fields of either view show
    add_row: Callable[[Form, str], Form]  # the text is the value of the button
    remove_row: Callable[[Form, str], Form]
    values: Callable[[Form, dict[str, Any]], dict[str, Any]]  # for the template, from the fields and the page's values
    locate: Callable[[Form, FieldError], FieldError] = lambda _form, error: error  # at the field of a row

    def open(self, record: dict[str, Any], view: str) -> Form:
        """Returns the fields of a record. A record that is too large for the table is shown as JSON."""
        try:
            return self._fields(record, view)
        except FieldError as error:
            return self._fields(record, JSON) | {"note": error.expected}

    def press(self, form: Form) -> Form | None:
        """Returns the fields after the button that was pressed; None if it is none of these. Raises FieldError."""
        if "show" in form:
            kept = {name: form[name] for name in _PLAIN if name in form}
            return kept | self._fields(self.read(form), form["show"])
        if "add" in form:
            return self.add_row(form, form["add"]) | {"focus": form["add"]}
        if "remove" in form:
            return self.remove_row(form, form["remove"])
        return None

    def shown_fields(self, form: Form) -> set[str]:
        """Returns the names of fields that show their problem, also of conditions, which consist of several fields."""
        return {*form, *(name.partition(":")[0] for name in form)} - _HIDDEN

    def _fields(self, record: dict[str, Any], view: str) -> Form:
        if view == JSON:
            return {"view": JSON, **self.json_fields(record)}
        return {"view": TABLE, **self.table_fields(record)}
