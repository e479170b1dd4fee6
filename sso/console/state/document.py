"""The document of a form, and what it would change, for the page that shows it."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import trio

from sso.admin.state import DOCUMENT_BODY
from sso.console.audit.differences import FieldDifference, differences
from sso.core.field_errors import FieldError
from sso.web.body import InvalidBody, parse_body

MAX_FORM = 3 * DOCUMENT_BODY.max_bytes  # the quotation marks and brackets of JSON take three bytes in a form
MAX_RECORDS = 200  # differences that are shown
MAX_FIELDS = 20  # for one record
MANY_RECORDS = 200  # a document with as many is applied with a page that shows how far it is


class RecordChange(NamedTuple):
    operation: str
    target: str
    fields: list[FieldDifference]
    more: int  # fields that are not shown


def digest(text: str) -> str:
    """Returns a value by which the page that compares a document and the form that applies it know the same text."""
    return hashlib.sha256(text.encode()).hexdigest()


async def read_document(text: str) -> dict[str, Any]:
    """Returns the document of a form. Raises FieldError with the line and column of an error."""
    if not text.strip():
        raise FieldError(("document",), "choose a file, or paste the document")
    try:
        return await trio.to_thread.run_sync(_parse, text.encode())
    except InvalidBody as error:
        raise FieldError(("document",), error.problem) from None


def _parse(raw: bytes) -> dict[str, Any]:
    return dict(parse_body(raw, "application/json", forms=False, **DOCUMENT_BODY._asdict()).fields)


def record_changes(members: Mapping[str, Any]) -> list[RecordChange]:
    """Returns the records that a document would change, from the response of a comparison."""
    changes = []
    for change in members["data"]["changes"][:MAX_RECORDS]:
        fields = differences(change["before"], change["after"])
        shown = fields[:MAX_FIELDS]
        changes.append(RecordChange(change["operation"], change["target"], shown, len(fields) - len(shown)))
    return changes
