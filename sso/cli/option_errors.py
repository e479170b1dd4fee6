"""Errors of the permission model in the words of the command line."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sso.cli.context import CommandFailure
from sso.core.errors import ApiError

_INDEX = re.compile(r"\[\d+\]")


@contextmanager
def option_errors(options: Mapping[str, str], record: str = "") -> Iterator[None]:
    """Replaces the field that an error begins with by the option or argument that sets it.

    The keys of ``options`` are regular expressions of fields. ``record`` names what the error "removed" is about.
    """
    try:
        yield
    except ApiError as error:
        raise CommandFailure(_describe(error.message, options, record)) from None


def _describe(message: str, options: Mapping[str, str], record: str) -> str:
    if message == "removed":
        return f"{record} is deleted"
    for field, option in options.items():
        match = re.match(rf"{field}(?P<path>(?:\.[\w-]+|\[\d+\])*): (?P<expected>.*)", message, re.DOTALL)
        if match:
            path = _INDEX.sub("", match["path"]).removeprefix(".")
            return ": ".join(part for part in (option, path, match["expected"]) if part)
    return message
