"""Text for a terminal."""

import re

_NOT_IN_A_LINE = re.compile(r"[^\n\t]+")


def printable(text: str) -> str:
    """Escapes characters that control a terminal or are invisible: control characters (C0 and C1), line and paragraph
    separators, bidirectional controls and others."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines: line breaks and tabs stay."""
    return _NOT_IN_A_LINE.sub(lambda part: printable(part[0]), text)


def printable_json(document: str) -> str:
    """The same for a JSON document, with the escapes of JSON, so that its values stay the same."""
    return "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in document)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))
