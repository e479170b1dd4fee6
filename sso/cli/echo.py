"""Writes the texts of commands. All of them go through here, so that no text can control the terminal.

Names that users chose and texts of a server may contain control characters (C0, C1) or change the direction of text.
On a terminal these are escaped; a file or a program gets every text unchanged.
"""

import sys
from typing import Any

import click

from sso.core.printable import printable_json, printable_lines
from sso.environment import allows_colour


def on_terminal(*, err: bool = False) -> bool:
    stream = sys.stderr if err else sys.stdout
    return stream is not None and stream.isatty()


def echo(text: object = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Writes a text with its line breaks and tabs. ``style`` has the colours for terminals that may have them."""
    shown = str(text)
    if on_terminal(err=err):
        shown = printable_lines(shown)
        if style and allows_colour():
            shown = click.style(shown, **style)
    click.echo(shown, err=err, nl=nl)


def echo_json(value: object, *, indent: bool = False) -> None:
    """Writes a JSON document. Its values are unchanged on a terminal, too: JSON has escapes of its own."""
    import orjson  # most commands write none

    document = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None)
    click.echo(printable_json(document.decode()) if on_terminal() else document)
