"""The new password of a user: from standard input, asked for at the terminal, or generated."""

import secrets
import sys

import click

from sso.cli.context import CommandFailure


def read_password(from_stdin: bool) -> tuple[str, bool]:
    """Returns the password, and whether it was generated.

    A password is never an argument, which other users of the machine could see.
    """
    if from_stdin:
        try:
            password = sys.stdin.buffer.readline().decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise CommandFailure("the password on standard input is not UTF-8") from None
        if not password:
            raise CommandFailure("expected the password on standard input")
        return _check_length(password), False
    if sys.stdin.isatty():
        typed: str = _ask("Password (empty: generate one)")
        if typed:
            if _ask("Repeat the password") != typed:
                raise CommandFailure("the two passwords differ")
            return _check_length(typed), False
    return secrets.token_urlsafe(12), True


def _ask(question: str) -> str:
    answer: str = click.prompt(question, default="", show_default=False, hide_input=True)
    return answer


def _check_length(password: str) -> str:
    from sso.core.passwords import MAX_PASSWORD_LENGTH

    if len(password) > MAX_PASSWORD_LENGTH:
        raise CommandFailure(f"password: expected at most {MAX_PASSWORD_LENGTH} characters")
    return password
