"""Reads a line of standard input: a password or a secret, which is never an argument that others could see."""

import sys

from sso.cli.context import CommandFailure


def read_line(name: str) -> str:
    """Returns the next line without its end. ``name`` is the value in the text of the CommandFailure."""
    try:
        return sys.stdin.buffer.readline().decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise CommandFailure(f"the {name} on standard input is not UTF-8") from None
