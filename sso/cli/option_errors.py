"""Errors about a field in the words of the command line."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sso.cli.context import CommandFailure
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError, field_text


@contextmanager
def option_errors(options: Mapping[str, str], record: str = "") -> Iterator[None]:
    """Names the option or argument that sets the field which an error is about.

    The keys of ``options`` are regular expressions of the texts of paths, such as ``settings\\.services``. A field
    that has none is the option of its name. ``record`` names what the error "removed" is about.
    """
    try:
        yield
    except FieldError as error:
        option = _option(error, options)
        raise CommandFailure(f"{option}: {error.expected}" if option else error.message) from None
    except ApiError as error:
        raise CommandFailure(f"{record} is deleted" if error.message == "removed" else error.message) from None


def _option(error: FieldError, options: Mapping[str, str]) -> str:
    """Returns the option, and the place in its value if the value has parts."""
    path = field_text(error.path)
    for field, option in options.items():
        if match := re.match(rf"{field}(?=$|[.\[])", path):
            place = re.sub(r"\[\d+\]", "", path[match.end() :]).lstrip(".")
            return f"{option}: {place}" if place else option
    return f"--{str(error.path[0]).replace('_', '-')}" if error.path else ""
