"""Errors that name a field of the input by its path, and the text of such a path."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from sso.core.errors import ApiError

FieldPath: TypeAlias = tuple[str | int, ...]  # names of members and indexes of arrays

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}(?:\[\])?")


class FieldError(ApiError):
    """A field of the input is refused: ``path`` leads to it, and ``expected`` says what it must be.

    Neither repeats the value, which may be a password that was sent in the wrong field.
    """

    def __init__(
        self, path: FieldPath, expected: str, *, status: int = 400, others: tuple["FieldError", ...] = ()
    ) -> None:
        self.path = path
        self.expected = expected
        self.status = status
        self.others = others  # further errors in the same input
        text = field_text(path)
        own = f"{text}: {expected}" if text else expected
        super().__init__("; ".join((own, *(error.message for error in others))))

    def within(self, *prefix: str | int) -> "FieldError":
        """Returns the error for the record that has the input at this path."""
        others = tuple(error.within(*prefix) for error in self.others)
        return FieldError((*prefix, *self.path), self.expected, status=self.status, others=others)

    def without(self, *prefix: str | int) -> "FieldError":
        """Returns the error for the input at this path; the same error if it is about something else."""
        if self.path[: len(prefix)] != prefix:
            return self
        others = tuple(error.without(*prefix) for error in self.others)
        return FieldError(self.path[len(prefix) :], self.expected, status=self.status, others=others)


class InvalidCursor(FieldError):
    """A page of a list is asked for that follows no other page."""

    def __init__(self) -> None:
        super().__init__(("after",), "must be `next` of an earlier response")


@contextmanager
def field_prefix(*prefix: str | int) -> Iterator[None]:
    """Puts the prefix in front of the path of a FieldError that is raised inside this block."""
    try:
        yield
    except FieldError as error:
        raise error.within(*prefix) from None


def field_text(path: FieldPath) -> str:
    """Returns ``groups[3].title`` for ("groups", 3, "title").

    Keys of free-form objects are left out if they are no plain names: they could break the reader's screen.
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif is_plain_name(part):
            text += f".{part}" if text else part
    return text


def is_plain_name(name: str) -> bool:
    """Returns whether a name from the input may be repeated in a message."""
    return _PLAIN_NAME.fullmatch(name) is not None
