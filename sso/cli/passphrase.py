"""The passphrase of a backup: from a file, or asked for at the terminal."""

import sys
from pathlib import Path

import click

from sso.cli.context import CommandFailure

MIN_LENGTH = 8

passphrase_option = click.option(
    "--passphrase-file", type=click.Path(path_type=Path), help="A file whose first line is the passphrase."
)

unauthenticated_option = click.option(
    "--unauthenticated",
    is_flag=True,
    help="Accept a backup that was made without a passphrase or by an earlier version, and may have been changed.",
)
NOT_AUTHENTICATED = "warning: no passphrase authenticates this backup: it may have been changed since it was made"


def read_passphrase(path: Path | None, *, confirm: bool) -> str:
    if path is not None:
        try:
            text = path.read_text().partition("\n")[0].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandFailure(f"cannot read the passphrase file {path}: {error}") from None
    elif sys.stdin.isatty():
        text = click.prompt("Passphrase of the backup", hide_input=True, confirmation_prompt=confirm, err=True)
    else:
        raise CommandFailure("there is no terminal to ask for the passphrase: use --passphrase-file")
    if confirm and len(text) < MIN_LENGTH:
        raise CommandFailure(f"the passphrase must have at least {MIN_LENGTH} characters")
    return str(text)
