"""Translation of texts for users, and negotiation of their language.

English is the source language: the English text is the key in the gettext catalogues (``sso/languages``), and it is
shown where a catalogue has no translation. ``scripts/translations`` updates the catalogues.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import GNUTranslations
from pathlib import Path
from typing import Any, Self

from jinja2 import Environment
from markupsafe import escape

from sso.core.language_names import LANGUAGES, SOURCE

CATALOGUES = Path(__file__).parent.parent / "languages"
DOMAIN = "sso"

# Tags of the lookup, in lower case. Traditional Chinese is not simplified Chinese: its tags end the lookup.
_BY_TAG: dict[str, str | None] = {
    **{language.lower(): language for language in LANGUAGES},
    "pt": "pt-BR",
    "zh": "zh-Hans",
    **dict.fromkeys(("zh-hant", "zh-tw", "zh-hk", "zh-mo"), None),
}

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

    def __new__(cls, source: str, **values: Any) -> Self:
        self = super().__new__(cls, source % values if values else source)
        self.source = source
        self.values = values
        return self

    def __html__(self) -> str:
        translated = escape(self._translate_source())
        return translated % self.values if self.values else translated

    def translated(self) -> str:
        """Returns the text in the user's language, without markup, for mails."""
        translated = self._translate_source()
        return translated % self.values if self.values else translated

    def _translate_source(self) -> str:
        return translate(self.source)


class PluralText(Text):
    """A text with a number of things, in the plural form that the user's language has for this number."""

    forms: tuple[str, str, int]

    def _translate_source(self) -> str:
        return translate_plural(*self.forms)


def plural(one: str, several: str, count: int) -> Text:
    """Returns a text for ``%(count)s`` things. Other languages than English have their own rules and forms."""
    text = PluralText(one if count == 1 else several, count=count)
    text.forms = (one, several, count)
    return text


def install_translations(environment: Environment) -> None:
    """Lets templates translate: ``{{ _("…") }}`` and ``{% trans %}…{% pluralize %}…{% endtrans %}``."""
    environment.add_extension("jinja2.ext.i18n")
    environment.policies["ext.i18n.trimmed"] = True
    environment.install_gettext_callables(translate, translate_plural, newstyle=True)  # type: ignore[attr-defined]


def translate(source: str) -> str:
    """Returns the text in the user's language, or the source text if the catalogue does not have it."""
    language = current_language.get()
    # gettext translates "" to the header of the catalogue.
    return catalogue(language).gettext(source) if source and language != SOURCE else source


def translate_plural(one: str, several: str, count: int) -> str:
    """Returns the form for this number in the user's language, or the English one if the catalogue does not have it."""
    language = current_language.get()
    if language == SOURCE:
        return one if count == 1 else several
    return catalogue(language).ngettext(one, several, count)


@cache
def catalogue(language: str) -> GNUTranslations:
    """Loads the compiled catalogue of a supported language."""
    with (messages_folder(language) / f"{DOMAIN}.mo").open("rb") as file:
        return GNUTranslations(file)


def messages_folder(language: str) -> Path:
    """Returns the folder of the language's catalogue. gettext writes ``pt_BR`` for ``pt-BR``."""
    return CATALOGUES / language.replace("-", "_") / "LC_MESSAGES"


def first_supported(tags: Iterable[str]) -> str | None:
    """Returns the first supported language: ``de`` for ``de-AT``, ``zh-Hans`` for ``zh-CN``."""
    return next((language for tag in tags if (language := _lookup(tag.lower()))), None)


def _lookup(tag: str) -> str | None:
    """Removes subtags from the end until a language is found (the lookup of RFC 4647)."""
    while tag and tag not in _BY_TAG:
        tag = tag.rpartition("-")[0]
    return _BY_TAG.get(tag)


def parse_ui_locales(text: str) -> Iterator[str]:
    """Returns the tags of ``ui_locales``, the preferred one first."""
    words = text[:MAX_TEXT].split(" ")[:MAX_TAGS]
    return (word for word in words if TAG.fullmatch(word))


def parse_accept_language(header: str) -> list[str]:
    """Returns the tags of ``Accept-Language``, the preferred one first. Invalid parts are ignored."""
    ranges = (_RANGE.fullmatch(part.strip(" \t")) for part in header[:MAX_TEXT].split(",")[:MAX_TAGS])
    weighted = [(float(match[2] or 1), match[1]) for match in ranges if match and match[1] != "*"]
    return [tag for weight, tag in sorted(weighted, key=lambda item: -item[0]) if weight]
