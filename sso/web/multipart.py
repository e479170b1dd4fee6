"""Forms with files (multipart/form-data), which browsers send without JavaScript.

A file becomes a field with its content as a data URI, so a form with a file is a form of texts everywhere else. The
name and type of the file, which the browser chooses, are not used.

The parser reads what the HTML standard makes browsers send, and nothing else that MIME allows. A general one took
180 ms for 256 kB of parameters.
"""

import base64
import re

from sso.web.body import InvalidBody, check_text

MAX_PARTS = 100
MAX_PART_HEAD = 4096  # bytes; a browser sends some hundred
FILE_PREFIX = "data:application/octet-stream;base64,"
_HEADER = b"\r\ncontent-disposition:"
# A browser writes a quote in a name as %22.
_DISPOSITION = re.compile(_HEADER + rb' *form-data; *name="([^"\r\n]+)"(; *filename\*?=[^\r\n]*)?(?:\r\n|\Z)', re.I)


def parse_multipart(raw: bytes, boundary: str) -> dict[str, str]:
    """Returns the fields; a file that was not chosen is "". Raises InvalidBody."""
    preamble, *parts = (b"\r\n" + raw).split(b"\r\n--" + boundary.encode("ascii"), MAX_PARTS + 2)
    if len(parts) > MAX_PARTS + 1:
        raise InvalidBody(f"must have at most {MAX_PARTS} parts")
    if preamble or not parts or parts.pop() not in (b"--", b"--\r\n"):
        raise InvalidBody("is not a valid form with files")
    fields: dict[str, str] = {}
    for part in parts:
        name, value = _field(part)
        if name in fields:
            raise InvalidBody("has a repeated field")
        fields[name] = value
    return fields


def _field(part: bytes) -> tuple[str, str]:
    """Returns the name and the value of a part."""
    head, end, content = part.partition(b"\r\n\r\n")
    if not end or not head.startswith(b"\r\n") or len(head) > MAX_PART_HEAD:
        raise InvalidBody("has a part without an end of its headers")
    disposition = _DISPOSITION.search(head)
    if not disposition or head.lower().count(_HEADER) > 1:
        raise InvalidBody("has a part without a name")
    name, file_name = disposition.groups()
    return _text(name), _file(content) if file_name else _text(content)


def _file(content: bytes) -> str:
    return FILE_PREFIX + base64.b64encode(content).decode() if content else ""


def _text(content: bytes) -> str:
    check_text(content)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidBody("is not valid UTF-8") from None
