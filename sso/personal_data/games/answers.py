"""What games answer: JSON documents, and the names of characters in them."""

from typing import Any

import orjson

MAX_CHARACTERS = 100
MAX_NAME = 100
MAX_PARSED = 256 * 1024  # bytes of an answer whose characters are listed: larger ones are only part of the export


class UnusableDocument(ValueError):
    """The text says why, without quoting the document."""


def read_text(body: bytes) -> str:
    """Returns the document as text. Whether it is JSON is checked by the database. Raises UnusableDocument."""
    if b"\0" in body:
        raise UnusableDocument("the answer is not JSON")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise UnusableDocument("the answer is not UTF-8") from None


def read_characters(document: str) -> list[str]:
    """Returns the names of the characters: of an array, or of the member ``characters``.

    A character is a name, or an object with a name. What has another form is not listed.
    """
    if len(document) > MAX_PARSED:
        return []
    try:
        parsed = orjson.loads(document)
    except ValueError:  # such as a number that only the database can read
        return []
    entries = parsed.get("characters") if isinstance(parsed, dict) else parsed
    if not isinstance(entries, list):
        return []
    names = (_name(entry) for entry in entries[: 10 * MAX_CHARACTERS])
    return [name for name in names if name][:MAX_CHARACTERS]


def _name(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, dict) else entry
    if not isinstance(name, str):
        return ""
    return "".join(character for character in name if character.isprintable()).strip()[:MAX_NAME]
