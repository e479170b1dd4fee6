"""Assertions: statements about an application that every write is checked against.

``LOGIN may RULE``, ``LOGIN may not RULE`` and ``only ROLE may RULE``, each with an optional `` in PROJECT``. A rule is
written as in ``list_short`` or ``list``, without parameters.
"""

import re
from functools import lru_cache

from msgspec import Struct

from sso.core.field_errors import FieldError, FieldPath
from sso.perm.input import validators

MAX_ASSERTIONS = 500  # of one application
MAX_LENGTH = 640

FORMS = "must be 'LOGIN may RULE', 'LOGIN may not RULE' or 'only ROLE may RULE', each with or without ' in PROJECT'"
_RULE = r"(?P<rule>(?!not(?: |$))[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*)"
_PROJECT = r"(?: in (?P<project>[A-Za-z0-9_-]{1,64}))?"
_ONLY = re.compile(rf"only (?P<role>[A-Za-z0-9_-]{{1,64}}) may {_RULE}{_PROJECT}", re.ASCII)
_USER = re.compile(rf"(?P<login>[^\s\x00-\x1f\x7f]{{1,320}}) may (?P<negated>not )?{_RULE}{_PROJECT}")


class Assertion(Struct, frozen=True):
    """``only role may rule`` if it has a role, else ``login may rule``, or ``login may not rule``."""

    text: str
    rule: str
    login: str = ""
    role: str = ""
    negated: bool = False
    project: str = ""


@lru_cache(maxsize=4096)
def parse_assertion(text: str) -> Assertion:
    """Raises ValueError with what was expected."""
    match = _ONLY.fullmatch(text)
    if match is not None:
        return Assertion(text, match["rule"], role=match["role"], project=match["project"] or "")
    match = _USER.fullmatch(text)
    if match is None:
        raise ValueError(FORMS)
    negated = match["negated"] is not None
    return Assertion(text, match["rule"], login=match["login"], negated=negated, project=match["project"] or "")


def read_assertions(value: object, path: FieldPath = ("assertions",)) -> list[str]:
    """The statements with single spaces between their words. The error of a malformed statement repeats it."""
    statements = []
    for index, item in enumerate(validators.read_array(value, path, MAX_ASSERTIONS)):
        text = " ".join(validators.read_text(item, (*path, index), MAX_LENGTH, min_length=1).split())
        try:
            parse_assertion(text)
        except ValueError as error:
            raise FieldError((*path, index), f"{text[:100]!r} {error}") from None
        if text in statements:
            raise FieldError((*path, index), f"{text[:100]!r} appears twice")
        statements.append(text)
    return statements
