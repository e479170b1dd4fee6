"""Asks before a command does something that is hard to undo."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sso.cli.context import CommandFailure
from sso.core.printable import printable

Command = TypeVar("Command", bound=Callable[..., Any])


def yes_option(command: Command) -> Command:
    return click.option("--yes", is_flag=True, help="Do not ask for confirmation.")(command)


def confirm(question: str, yes: bool, outcome: str = "nothing is deleted") -> None:
    """Raises CommandFailure unless the answer, or the option --yes, is yes."""
    try:
        confirmed = yes or click.confirm(printable(question))
    except click.Abort:  # no terminal, or Ctrl-C
        confirmed = False
    if not confirmed:
        raise CommandFailure(f"{outcome}: expected the answer y, or the option --yes")
