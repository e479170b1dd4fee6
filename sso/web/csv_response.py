"""Lists as CSV files, which spreadsheet programs open."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quart import Response

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_response(name: str, columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> Response:
    """Returns a file with the name ``name`` that browsers store."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(_csv_text(columns, records), 200, headers, content_type="text/csv; charset=utf-8")


def _csv_text(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(columns)
    for record in records:
        writer.writerow([_cell(record.get(column)) for column in columns])
    return file.getvalue()


def _cell(value: Any) -> str:
    """Returns the text of a cell. A spreadsheet program would run a formula, so its first character is quoted."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
