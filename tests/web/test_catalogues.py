"""Every translatable text is in every catalogue, and nothing else is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment

import sso
from sso.core.language import CATALOGUES, LANGUAGES, SOURCE, catalogue
from sso.web import language

PACKAGE = Path(sso.__file__).parent
TEMPLATES = PACKAGE / "web" / "templates"
CALLS = {"_": 1, "Text": 1, "plural": 2}  # functions, and the number of their text arguments
PARTS = re.compile(r"%\(\w+\)s|<[^>]+>|%")
translations = pytest.mark.parametrize("name", [name for name in LANGUAGES if name != SOURCE])


def in_templates() -> Iterator[str]:
    environment = Environment(autoescape=True)
    language.install(environment)
    for path in TEMPLATES.rglob("*.html"):
        for _, _, message in environment.extract_translations(path.read_text()):  # type: ignore[attr-defined]
            yield message if isinstance(message, str) else message[0]


def in_python() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                texts = node.args[: CALLS[node.func.id]]
                yield from (str(text.value) for text in texts if isinstance(text, ast.Constant))


@pytest.fixture(scope="module")
def texts() -> set[str]:
    return {*in_templates(), *in_python()}


def test_there_is_a_catalogue_for_each_language(texts: set[str]) -> None:
    assert {path.stem for path in CATALOGUES.glob("*.toml")} == set(LANGUAGES) - {SOURCE}
    assert len(texts) > 100


@translations
def test_catalogue_has_exactly_the_texts_of_the_source(name: str, texts: set[str]) -> None:
    translated = set(catalogue(name))
    assert texts - translated == set()
    assert translated - texts == set()


@translations
def test_translation_has_the_placeholders_and_markup_of_the_source(name: str) -> None:
    for source, text in catalogue(name).items():
        assert sorted(PARTS.findall(text)) == sorted(PARTS.findall(source)), source
        assert text.strip(), source


@translations
def test_translation_ends_like_its_source(name: str) -> None:
    """With a full stop, a colon, a question mark or a line end."""
    marks = (".", ":", "?", "\n", ".</span>")
    for source, text in catalogue(name).items():
        assert [text.endswith(mark) for mark in marks] == [source.endswith(mark) for mark in marks], source


def test_french_uses_narrow_spaces_and_typographic_apostrophes() -> None:
    for text in catalogue("fr").values():
        words = PARTS.sub("", text)
        assert not re.search(r"(?<!\u202f)[;!?]|(?<!\u00a0):(?!//)|'", words), text


def test_templates_have_no_untranslated_text() -> None:
    """Without tags, comments and expressions, no words are left of a template."""
    for path in TEMPLATES.rglob("*.html"):
        text = re.sub(r"{%-?\s*trans.*?endtrans\s*-?%}|{#.*?#}|{{.*?}}|{%.*?%}", " ", path.read_text(), flags=re.DOTALL)
        text = re.sub(r"<[^>]*>", " ", text)
        assert re.findall(r"[A-Za-z]{2,}", re.sub(r"\bnarrow|middle|wide\b", "", text)) == [], path.name
