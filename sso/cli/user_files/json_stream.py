"""Reads a large JSON file piece by piece: an object with an array ``users`` among its members."""

import json
from collections.abc import Collection, Iterator
from typing import Any, TextIO

from sso.cli.context import CommandFailure

CHUNK = 1 << 18
MAX_VALUE = 1 << 23  # characters of one user, or of another member of the file
USERS = "users"
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


class JsonStream:
    """A window of the file. ``line`` is that of the next character."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text = ""
        self._position = 0
        self.line = 1

    def users(self) -> Iterator[tuple[int, Any]]:
        """Yields each user and the line at which it begins. Raises CommandFailure."""
        found = False
        for name in self._names("an object with the member users"):
            if name == USERS:
                found = True
                yield from self._array()
            else:
                self._value()
        if not found:
            raise self.failure("the file has no member users")

    def members(self, names: Collection[str]) -> Iterator[tuple[str, Any]]:
        """Yields the members with these names, and the users one by one."""
        for name in self._names("an object"):
            if name == USERS:
                for _, user in self._array():
                    yield USERS, user
            elif name in names:
                yield name, self._value()
            else:
                self._value()

    def _names(self, expected: str) -> Iterator[str]:
        """Yields the name of each member of the file; the caller takes its value."""
        self._expect("{", expected)
        while (character := self._next()) != "}":
            if character == ",":
                self._skip(1)
                continue
            if character != '"':
                raise self.failure("expected the name of a member in quotation marks")
            name: str = self._value()
            self._expect(":", "a colon")
            yield name

    def _array(self) -> Iterator[tuple[int, Any]]:
        self._expect("[", "an array of users")
        while (character := self._next()) != "]":
            if character == ",":
                self._skip(1)
                continue
            line = self.line
            yield line, self._value()
        self._skip(1)

    def failure(self, problem: str) -> CommandFailure:
        return CommandFailure(f"{self._file.name}, line {self.line}: {problem}")

    def _expect(self, character: str, expected: str) -> None:
        if self._next() != character:
            raise self.failure(f"expected {expected}")
        self._skip(1)

    def _next(self) -> str:
        """Returns the next character that is not space, without taking it. Raises CommandFailure at the end."""
        while True:
            while self._position < len(self._text):
                if self._text[self._position] not in _SPACE:
                    return self._text[self._position]
                self._skip(1)
            if not self._read():
                raise self.failure("the file ends too early")

    def _value(self) -> Any:
        """Takes the next value. The character after it must be known: a number may continue in the next chunk."""
        self._next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._position)
            except (ValueError, RecursionError) as error:  # a ValueError may also be an integer with too many digits
                if len(self._text) - self._position > MAX_VALUE:
                    raise self.failure("the value is too large, or no JSON") from None
                if isinstance(error, RecursionError) or not self._read():
                    raise self.failure("expected JSON") from None
                continue
            if end < len(self._text) or not self._read():
                self._skip(end - self._position)
                return value

    def _skip(self, count: int) -> None:
        end = self._position + count
        self.line += self._text.count("\n", self._position, end)
        self._position = end

    def _read(self) -> bool:
        """Drops what was taken and doubles what waits, so that a large value is not parsed for each small chunk."""
        self._text = self._text[self._position :]
        self._position = 0
        chunk = self._file.read(max(CHUNK, len(self._text)))
        self._text += chunk
        return bool(chunk)
