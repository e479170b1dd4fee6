"""Every translatable text is in every catalogue, and nothing else is."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Message

import sso
from scripts.catalogues import TRANSLATED, as_mo, extract, messages, missing, po_file, read, translations
from sso.core.language import CATALOGUES, catalogue

PACKAGE = Path(sso.__file__).parent
PARTS = re.compile(r"%\(\w+\)s|<[^>]+>|%")
COUNT = "%(count)s"
# Marks that end a text, and what other languages write for them.
ENDS = {".": "。.", ":": "：:", "?": "？?", "\n": "\n"}
read = functools.cache(read)  # a file takes as long to read as all checks of it
in_each_language = pytest.mark.parametrize("language", TRANSLATED)


@pytest.fixture(scope="module")
def texts() -> set[Any]:
    """The texts of the source. They are not read when the tests are collected, which takes a second in each process."""
    return {message.id for message in messages(extract())}


def test_there_is_a_catalogue_for_each_language(texts: set[Any]) -> None:
    assert {po_file(language) for language in TRANSLATED} == set(CATALOGUES.rglob("*.po"))
    assert len(texts) > 100


@in_each_language
def test_catalogue_has_exactly_the_texts_of_the_source(language: str, texts: set[Any]) -> None:
    in_catalogue = [message.id for message in messages(read(language))]
    assert set(in_catalogue) == texts, "run: scripts/translations"


@in_each_language
def test_no_translation_is_missing(language: str) -> None:
    assert [message.id for message in missing(read(language))] == []


@in_each_language
def test_compiled_catalogue_is_up_to_date(language: str) -> None:
    compiled = po_file(language).with_suffix(".mo").read_bytes()
    assert compiled == as_mo(read(language)), "run: scripts/translations"


@in_each_language
def test_translation_has_the_placeholders_and_markup_of_the_source(language: str) -> None:
    for message in messages(read(language)):
        for form, text in enumerate(translations(message)):
            for source in sources(message)[-1:]:
                expected = sorted(PARTS.findall(source))
                if COUNT not in text and only_for_one(language, form):
                    expected = [part for part in expected if part != COUNT]
                assert not text or sorted(PARTS.findall(text)) == expected, source


def sources(message: Message) -> tuple[str, ...]:
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


def only_for_one(language: str, form: int) -> bool:
    """Whether the language uses this plural form for the number 1 alone, so that it may be written as a word."""
    rule = catalogue(language).plural  # type: ignore[attr-defined]
    return [count for count in range(200) if rule(count) == form] in ([1], [0, 1])


@in_each_language
def test_translation_ends_like_its_source(language: str) -> None:
    """With a full stop, a colon, a question mark or a line end."""
    for message in messages(read(language)):
        source, texts = sources(message)[-1], translations(message)
        for mark, others in ENDS.items():
            same = [without_tags(text).endswith(tuple(others)) == without_tags(source).endswith(mark) for text in texts]
            assert all(same) or not all(texts), (source, texts)


def without_tags(text: str) -> str:
    return re.sub(r"<[^>]+>", "", text)


def words(language: str) -> Iterator[str]:
    for message in messages(read(language)):
        yield from (PARTS.sub("", text) for text in translations(message))


def test_french_uses_narrow_spaces_and_typographic_apostrophes() -> None:
    for text in words("fr"):
        assert not re.search(r"(?<!\u202f)[;!?]|(?<!\u00a0):(?!//)|'", text), text


@pytest.mark.parametrize("language", ["ja", "zh-Hans"])
def test_chinese_and_japanese_have_their_own_punctuation(language: str) -> None:
    for text in words(language):
        assert not re.search(r"[\u3040-\u9fff][.,:;!?]", text), text


def test_templates_have_no_untranslated_text() -> None:
    """Without tags, comments and expressions, a template has no words. Console, demo and API are in English only."""
    for path in (
        path for path in PACKAGE.rglob("templates/**/*.html") if not {"console", "demo", "api_docs"} & set(path.parts)
    ):
        text = re.sub(r"{%-?\s*trans.*?endtrans\s*-?%}|{#.*?#}|{{.*?}}|{%.*?%}", " ", path.read_text(), flags=re.DOTALL)
        text = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.DOTALL)
        text = re.sub(r"<[^>]*>|/\w+|\?\w+=", " ", text)  # tags, and parts of addresses
        assert re.findall(r"[A-Za-z]{2,}", re.sub(r"\bnarrow|middle|wide\b", "", text)) == [], path.name
