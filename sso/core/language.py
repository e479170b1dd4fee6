"""Translation of texts for users, and negotiation of their language.

English is the source language: the English text is the key in the catalogues (``sso/languages``).
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import escape

SOURCE = "en"
LANGUAGES = (SOURCE, "de", "es", "fr")
CATALOGUES = Path(__file__).parent.parent / "languages"

MAX_TAGS, MAX_TEXT = 32, 1024  # tags and characters in a list of languages; the rest is ignored
TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*", re.ASCII)
_RANGE = re.compile(rf"({TAG.pattern}|\*)(?:[ \t]*;[ \t]*[Qq]=(0(?:\.[0-9]{{0,3}})?|1(?:\.0{{0,3}})?))?", re.ASCII)

current_language: ContextVar[str] = ContextVar("current_language", default=SOURCE)
"""The language of the user for whom a response is rendered."""


@contextmanager
def in_language(language: str) -> Iterator[None]:
    """Shows texts in this language within the block, or in English if there is no catalogue for it."""
    token = current_language.set(first_supported([language]) or SOURCE)
    try:
        yield
    finally:
        current_language.reset(token)


class Text(str):
    """A text for users, with ``%(name)s`` for values. As a string it is English, for logs and other programs.

    On a page it is in the user's language, which is chosen when the page is rendered.
    """

    source: str
    values: Mapping[str, Any]

    def __new__(cls, source: str, **values: Any) -> "Text":
        self = super().__new__(cls, source % values if values else source)
        self.source = source
        self.values = values
        return self

    def __html__(self) -> str:
        translated = escape(translate(self.source))
        return translated % self.values if self.values else translated

    def translated(self) -> str:
        """Returns the text in the user's language, without markup, for mails."""
        translated = translate(self.source)
        return translated % self.values if self.values else translated


def plural(one: str, several: str, count: int) -> Text:
    """Returns the singular or plural text for ``%(count)s`` things. Two forms suffice for the supported languages."""
    return Text(one if count == 1 else several, count=count)


def translate(source: str) -> str:
    """Returns the text in the user's language, or the source text if the catalogue does not have it."""
    language = current_language.get()
    return source if language == SOURCE else catalogue(language).get(source, source)


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Returns the translations of the English texts."""
    texts: dict[str, str] = tomllib.loads((CATALOGUES / f"{language}.toml").read_text())
    return texts


def first_supported(tags: Iterable[str]) -> str | None:
    """Returns the first supported language: ``de`` for ``de-AT`` (the lookup of RFC 4647)."""
    return next((language for tag in tags if (language := tag.lower().partition("-")[0]) in LANGUAGES), None)


def parse_ui_locales(text: str) -> Iterator[str]:
    """Returns the tags of ``ui_locales``, the preferred one first."""
    words = text[:MAX_TEXT].split(" ")[:MAX_TAGS]
    return (word for word in words if TAG.fullmatch(word))


def parse_accept_language(header: str) -> list[str]:
    """Returns the tags of ``Accept-Language``, the preferred one first. Invalid parts are ignored."""
    ranges = (_RANGE.fullmatch(part.strip(" \t")) for part in header[:MAX_TEXT].split(",")[:MAX_TAGS])
    weighted = [(float(match[2] or 1), match[1]) for match in ranges if match and match[1] != "*"]
    return [tag for weight, tag in sorted(weighted, key=lambda item: -item[0]) if weight]
