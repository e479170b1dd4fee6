"""Reads a document of desired state from a file. Errors have the line and the column."""

import sys
from pathlib import Path
from typing import NamedTuple

from sso.cli.context import CommandFailure
from sso.cli.records.types import Fields
from sso.core.field_errors import FieldError
from sso.state.document import Document, parse
from sso.state.position import located
from sso.web.body import InvalidBody, parse_body

MAX_DOCUMENT_BYTES, LARGE_DOCUMENT = 64 * 1024 * 1024, 256 * 1024


class DocumentFile(NamedTuple):
    name: str
    text: str
    fields: Fields
    document: Document

    @property
    def is_large(self) -> bool:
        """Whether the document would keep a worker of the service busy."""
        return len(self.text) > LARGE_DOCUMENT


def read_document(file: Path) -> DocumentFile:
    """Raises CommandFailure for a file that cannot be read, is no JSON or no document."""
    try:
        raw = sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1) if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise CommandFailure(f"cannot read {file}: {error.strerror}") from None
    text = raw.decode(errors="replace")
    try:
        fields = parse_body(raw, "application/json", max_bytes=MAX_DOCUMENT_BYTES, max_values=MAX_DOCUMENT_BYTES).fields
        return DocumentFile(str(file), text, fields, parse(fields))
    except (InvalidBody, FieldError) as error:
        raise CommandFailure(located(str(file), text, error)) from None
