"""Every word that people read is in every catalogue, and nothing else is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment

import sso
from sso.core.language import CATALOGUES, LANGUAGES, SOURCE, catalogue
from sso.web import language

HOUSE = Path(sso.__file__).parent
TEMPLATES = HOUSE / "web" / "templates"
CALLS = {"_": 1, "Text": 1, "either": 2}  # and how many texts they take
PARTS = re.compile(r"%\(\w+\)s|<[^>]+>|%")
translations = pytest.mark.parametrize("name", [name for name in LANGUAGES if name != SOURCE])


def in_templates() -> Iterator[str]:
    environment = Environment(autoescape=True)
    language.install(environment)
    for path in TEMPLATES.glob("*.html"):
        for _, _, message in environment.extract_translations(path.read_text()):  # type: ignore[attr-defined]
            yield message if isinstance(message, str) else message[0]


def in_python() -> Iterator[str]:
    for path in HOUSE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                given = node.args[: CALLS[node.func.id]]
                yield from (str(word.value) for word in given if isinstance(word, ast.Constant))


TEXTS = {*in_templates(), *in_python()}


def test_there_is_a_catalogue_for_each_language() -> None:
    assert {path.stem for path in CATALOGUES.glob("*.toml")} == set(LANGUAGES) - {SOURCE}
    assert len(TEXTS) > 100


@translations
def test_nothing_is_missing_and_nothing_unused(name: str) -> None:
    found = set(catalogue(name))
    assert TEXTS - found == set()
    assert found - TEXTS == set()


@translations
def test_values_and_markup_are_those_of_the_source(name: str) -> None:
    for source, text in catalogue(name).items():
        assert sorted(PARTS.findall(text)) == sorted(PARTS.findall(source)), source
        assert text.strip(), source


@translations
def test_a_text_ends_as_its_source_does(name: str) -> None:
    """A full stop, a colon, a question mark, the end of a line."""
    marks = (".", ":", "?", "\n", ".</span>")
    for source, text in catalogue(name).items():
        assert [text.endswith(mark) for mark in marks] == [source.endswith(mark) for mark in marks], source


def test_french_has_its_spaces_and_apostrophes() -> None:
    for text in catalogue("fr").values():
        words = PARTS.sub("", text)
        assert not re.search(r"(?<!\u202f)[;!?]|(?<!\u00a0):(?!//)|'", words), text


def test_no_template_has_words_of_its_own() -> None:
    """What is left of a template without its tags, comments and expressions is no text."""
    for path in TEMPLATES.glob("*.html"):
        text = re.sub(r"{%-?\s*trans.*?endtrans\s*-?%}|{#.*?#}|{{.*?}}|{%.*?%}", " ", path.read_text(), flags=re.DOTALL)
        text = re.sub(r"<[^>]*>", " ", text)
        assert re.findall(r"[A-Za-z]{2,}", re.sub(r"\bnarrow|middle|wide\b", "", text)) == [], path.name
