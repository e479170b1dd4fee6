"""Forms with files (multipart/form-data), which browsers send without JavaScript.

A file becomes a field with its content as a data URI, so a form with a file is a form of texts everywhere else. The
name and type of the file, which the browser chooses, are not used.
"""

import base64

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData

from sso.web.body import InvalidBody

MAX_PARTS = 100
MAX_PART_HEAD = 4096  # bytes; a browser sends some hundred
FILE_PREFIX = "data:application/octet-stream;base64,"


def parse_multipart(raw: bytes, boundary: str) -> dict[str, str]:
    """Returns the fields; a file that was not chosen is "". Raises InvalidBody.

    It takes milliseconds, so call it in a thread.
    """
    fields: dict[str, str] = {}
    part: Field | File | None = None
    content: list[bytes] = []
    _check_heads(raw, boundary.encode("ascii"))
    try:
        decoder = MultipartDecoder(boundary.encode("ascii"), len(raw), max_parts=MAX_PARTS)
        decoder.receive_data(raw)
        decoder.receive_data(None)
        while not isinstance(event := decoder.next_event(), Epilogue | NeedData):
            if isinstance(event, Field | File):
                if not event.name:  # None in spite of its type: the parameter may be missing
                    raise InvalidBody("has a part without a name")
                part, content = event, []
            elif isinstance(event, Data) and part is not None:
                content.append(event.data)
                if not event.more_data:
                    if part.name in fields:
                        raise InvalidBody("has a repeated field")
                    fields[part.name] = _text(part, b"".join(content))
    except (ValueError, RequestEntityTooLarge):
        raise InvalidBody("is not a valid form with files") from None
    return fields


def _check_heads(raw: bytes, boundary: bytes) -> None:
    """Refuses many parts, and long heads of parts, before they are parsed: it takes 200 ns for each byte of a head."""
    _, *parts = raw.split(b"--" + boundary, MAX_PARTS + 2)
    if len(parts) > MAX_PARTS + 1:
        raise InvalidBody(f"must have at most {MAX_PARTS} parts")
    if any(b"\r\n\r\n" not in part[:MAX_PART_HEAD] for part in parts if not part.startswith(b"--")):
        raise InvalidBody("has a part without an end of its headers")


def _text(part: Field | File, content: bytes) -> str:
    if isinstance(part, File):
        return FILE_PREFIX + base64.b64encode(content).decode() if content else ""
    if b"\0" in content:
        raise InvalidBody("has a NUL character")
    return content.decode()
