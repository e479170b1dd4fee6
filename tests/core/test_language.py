from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from sso.core.language import (
    LANGUAGES,
    Text,
    current_language,
    first_supported,
    parse_accept_language,
    parse_ui_locales,
    plural,
)


@pytest.fixture
def german() -> Iterator[None]:
    before = current_language.set("de")
    yield
    current_language.reset(before)


@pytest.mark.parametrize(
    ("ui_locales", "expected"),
    [
        ("de", "de"),
        ("de-AT", "de"),
        ("DE-at", "de"),
        ("zh-Hant-TW fr-CA de", "fr"),
        ("en-GB de", "en"),
        ("se", None),
        ("", None),
        ("deu", None),
        ("de_AT", None),
        ("*", None),
        ("d\u00e9 es", "es"),
        ("  de  ", "de"),
        ("\0 de", "de"),
        ("-de de- de--AT es", "es"),
        ("x" * 5000 + " de", None),  # beyond MAX_TEXT
        ("aa " * 32 + "de", None),
    ],
)
def test_first_supported_language_of_ui_locales_is_used(ui_locales: str, expected: str | None) -> None:
    assert first_supported(parse_ui_locales(ui_locales)) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("de", "de"),
        ("de-CH, fr;q=0.9", "de"),
        ("fr;q=0.8, de;q=0.9", "de"),
        ("fr ; q=0.8 , es;Q=0.9", "es"),
        ("ja, *;q=0.5", None),
        ("de;q=0, fr;q=0.1", "fr"),
        ("de;q=0.000", None),
        ("de;q=2, fr;q=0.1", "fr"),
        ("de;q=abc", None),
        ("de;level=1, es", "es"),
        ("", None),
        (",,;q=1,,es", "es"),
        ("\xff, de", "de"),
        ("en;q=0.5, de;q=0.5", "en"),
        ("x" * 5000 + ",de", None),
        ("aa," * 40 + "de", None),
    ],
)
def test_accept_language_is_sorted_by_weight_then_by_order(header: str, expected: str | None) -> None:
    assert first_supported(parse_accept_language(header)) == expected


@given(st.text())
def test_any_text_gives_a_supported_language_or_none(said: str) -> None:
    for tags in (parse_ui_locales(said), parse_accept_language(said)):
        assert first_supported(tags) in (None, *LANGUAGES)


@pytest.mark.usefixtures("german")
def test_text_is_english_as_a_string_and_translated_on_a_page() -> None:
    text = Text("Sign in")
    assert text == "Sign in"
    assert escape(text) == "Anmelden"
    assert text.translated() == "Anmelden"


@pytest.mark.usefixtures("german")
def test_values_are_escaped_and_translated() -> None:
    assert escape(Text("Continue as %(name)s", name="<b>")) == Markup("Weiter als &lt;b&gt;")
    assert escape(Text("Knows %(what)s", what=Text("your e-mail address"))) == "Erfährt: deine E-Mail-Adresse"
    assert Text("Continue as %(name)s", name="<b>") == "Continue as <b>"


@pytest.mark.usefixtures("german")
def test_either_chooses_singular_or_plural() -> None:
    one, several = "%(count)s day ago", "%(count)s days ago"
    assert [escape(plural(one, several, count)) for count in (1, 2)] == ["vor 1 Tag", "vor 2 Tagen"]


@pytest.mark.usefixtures("german")
def test_text_that_the_catalogue_does_not_have_stays_english() -> None:
    assert escape(Text("5 % <of> nobody's words")) == Markup("5 % &lt;of&gt; nobody&#39;s words")
