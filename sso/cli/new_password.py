"""The new password of a user: from standard input, asked for at the terminal, or generated."""

import secrets
import sys
from collections.abc import Sequence

import click

from sso.cli.context import CommandFailure
from sso.cli.standard_input import read_line


def read_password(from_stdin: bool, *guessable: str) -> tuple[str, bool]:
    """Returns the password, and whether it was generated.

    A password is never an argument, which other users of the machine could see. One that a person types must be hard to
    guess; ``guessable`` are texts that it must not consist of, such as the login.
    """
    if from_stdin:
        password = read_line("password")
        if not password:
            raise CommandFailure("expected the password on standard input")
        return _check_length(password), False
    if sys.stdin.isatty():
        typed: str = _ask("Password (empty: generate one)")
        if typed:
            if _ask("Repeat the password") != typed:
                raise CommandFailure("the two passwords differ")
            return _check_strength(typed, guessable), False
    return secrets.token_urlsafe(12), True


def _ask(question: str) -> str:
    answer: str = click.prompt(question, default="", show_default=False, hide_input=True)
    return answer


def _check_strength(password: str, guessable: Sequence[str]) -> str:
    from sso.accounts.password_rules import UnacceptablePassword, check_new_password

    try:
        check_new_password(password, guessable)
    except UnacceptablePassword as error:
        raise CommandFailure(f"password: {error}") from None
    return password


def _check_length(password: str) -> str:
    from sso.core.passwords import MAX_PASSWORD_LENGTH

    if len(password) > MAX_PASSWORD_LENGTH:
        raise CommandFailure(f"password: expected at most {MAX_PASSWORD_LENGTH} characters")
    return password
