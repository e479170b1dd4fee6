"""Words for people, and the language they are shown in: which one, and how. Pure but for the catalogues on disk.

English is the source: a text is known by its English words, and what a catalogue (``sso/languages``) has for them
is shown instead.
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

MAX_TAGS, MAX_TEXT = 32, 1024  # of what somebody says they read; beyond that it is no longer read
TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*", re.ASCII)
_RANGE = re.compile(rf"({TAG.pattern}|\*)(?:[ \t]*;[ \t]*[Qq]=(0(?:\.[0-9]{{0,3}})?|1(?:\.0{{0,3}})?))?", re.ASCII)

reader: ContextVar[str] = ContextVar("reader", default=SOURCE)
"""The language of whoever reads what is being made."""


@contextmanager
def reading(language: str) -> Iterator[None]:
    """Inside, texts are shown in this language, or in English if there is no catalogue of it."""
    token = reader.set(first_of([language]) or SOURCE)
    try:
        yield
    finally:
        reader.reset(token)


class Text(str):
    """Words for a person, with ``%(name)s`` where a value belongs. As a string they are English, for logs and other
    programs; on a page they are in the reader's language, chosen when the page is made."""

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

    def shown(self) -> str:
        """In the reader's language, where there is no markup: a mail."""
        translated = translate(self.source)
        return translated % self.values if self.values else translated


def either(one: str, several: str, count: int) -> Text:
    """For a number of things, ``%(count)s``, at least one. Each form is a text of its own: enough for languages with
    two forms, which these are."""
    return Text(one if count == 1 else several, count=count)


def translate(source: str) -> str:
    """Into the reader's language; what is not in its catalogue stays as it is."""
    language = reader.get()
    return source if language == SOURCE else catalogue(language).get(source, source)


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """English words to those of another language."""
    texts: dict[str, str] = tomllib.loads((CATALOGUES / f"{language}.toml").read_text())
    return texts


def first_of(tags: Iterable[str]) -> str | None:
    """The first that we speak: ``de-AT`` is ``de`` (the lookup of RFC 4647)."""
    return next((spoken for tag in tags if (spoken := tag.lower().partition("-")[0]) in LANGUAGES), None)


def in_ui_locales(text: str) -> Iterator[str]:
    """The tags of ``ui_locales``, the most wanted first."""
    words = text[:MAX_TEXT].split(" ")[:MAX_TAGS]
    return (word for word in words if TAG.fullmatch(word))


def in_accept_language(header: str) -> list[str]:
    """The tags of ``Accept-Language``, the most wanted first. What is not understood counts as not said."""
    ranges = (_RANGE.fullmatch(part.strip(" \t")) for part in header[:MAX_TEXT].split(",")[:MAX_TAGS])
    weighed = [(float(found[2] or 1), found[1]) for found in ranges if found and found[1] != "*"]
    return [tag for weight, tag in sorted(weighed, key=lambda item: -item[0]) if weight]
