"""Lists, numbers and texts of forms. A text that is no number is left to the management API, which refuses it."""

import re

MAX_DIGITS = 16  # more than any field takes; int() raises an error above 4,300
_TAG_END = re.compile(r"[,\r\n]")


def split_list(text: str) -> list[str]:
    """Returns the words of a field with commas, spaces or lines between them, each of them once."""
    return split_uris(text.replace(",", " "))


def split_tags(text: str) -> list[str]:
    """Returns the tags of a field with commas or lines between them, each of them once. A tag may have spaces."""
    return list(dict.fromkeys(filter(None, map(str.strip, _TAG_END.split(text)))))


def split_uris(text: str) -> list[str]:
    """Returns the URIs of a field with spaces or lines between them, each of them once. A URI may have commas."""
    return list(dict.fromkeys(text.split()))


def read_text(text: str) -> str:
    """Returns the text of a field with several lines, which browsers send with CR and LF at the end of each."""
    return text.replace("\r\n", "\n").strip()


def read_number(text: str) -> int | str:
    """Returns the number, or the text itself if it is not a number or is too long."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else text
