"""Lists as CSV files, which spreadsheet programs open."""

import csv
import io
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from quart import Response

# The beginning of a formula, at the beginning of a cell or after a character at which a spreadsheet program may divide
# the cell: which one it takes for the separator depends on the language of its user.
_FORMULA = re.compile(r"""(^|[;,|\t\r\n])([\s"]*)(?=[=+\-@＝＋－＠])""")


def csv_response(name: str, columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> Response:
    """Returns a file with the name ``name`` that browsers store."""
    return _file(name, _csv_text([columns], columns, records))


async def streamed_csv_response(
    name: str,
    columns: Sequence[str],
    pages: AsyncGenerator[list[dict[str, Any]]],
    convert: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda record: record,
) -> Response:
    """Like `csv_response`, for records that are read page by page: the browser shows how much of the file has arrived.

    The first page is read before the response begins, so that an error is shown as a page. A later error breaks the
    download off, so that no part of a file is taken for the whole.
    """
    first: list[dict[str, Any]] = await anext(pages, [])

    async def parts() -> AsyncGenerator[bytes]:
        async with aclosing(pages):
            yield _csv_text([columns], columns, map(convert, first)).encode()
            async for records in pages:
                yield _csv_text([], columns, map(convert, records)).encode()

    response = _file(name, parts())
    response.timeout = None  # for the whole response; each page has the time limit of its statement
    return response


def _file(name: str, content: str | AsyncGenerator[bytes]) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(content, 200, headers, content_type="text/csv; charset=utf-8")


def _csv_text(head: Sequence[Sequence[str]], columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerows(head)
    for record in records:
        writer.writerow([_cell(record.get(column)) for column in columns])
    return file.getvalue()


def _cell(value: Any) -> str:
    """Returns the text of a cell. A spreadsheet program would run a formula, so an apostrophe is put before it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    neutral = _FORMULA.sub(r"\1\2'", text)
    return f"'{neutral}" if neutral.startswith(("\t", "\r")) else neutral
