"""The files of imports: one that is read, and those that are written for the account that runs the command only."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

from sso.cli.context import CommandFailure


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """Opens a file with UTF-8, or standard input if it is ``-``. Raises CommandFailure."""
    if str(file) == "-":
        yield sys.stdin
        return
    try:
        opened = file.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise CommandFailure(f"cannot read {file}: {error.strerror}") from None
    with opened:
        yield opened


@contextmanager
def private_file(file: Path) -> Iterator[IO[bytes]]:
    """Only the account that runs the command may read the file. Raises CommandFailure."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise CommandFailure(f"cannot write {file}: {error.strerror}") from None
    os.fchmod(descriptor, 0o600)  # a file that existed has other rights
    with os.fdopen(descriptor, "wb") as opened:
        yield opened
