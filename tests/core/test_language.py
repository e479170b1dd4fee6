from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment
from markupsafe import Markup, escape

from sso.core.language import (
    Text,
    catalogue,
    current_language,
    first_supported,
    install_translations,
    parse_accept_language,
    parse_ui_locales,
    plural,
)
from sso.core.language_names import LANGUAGES


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
        ("pt", "pt-BR"),
        ("pt-PT", "pt-BR"),
        ("pt-br", "pt-BR"),
        ("zh", "zh-Hans"),
        ("zh-CN", "zh-Hans"),
        ("zh-SG", "zh-Hans"),
        ("zh-Hans-CN", "zh-Hans"),
        ("zh-Hant", None),
        ("zh-HK ko-KR", "ko"),
        ("zhx", None),
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
        ("se, *;q=0.5", None),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh-Hans"),
        ("pt-PT, en", "pt-BR"),
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
def test_plural_chooses_the_form_of_the_number() -> None:
    one, several = "%(count)s day ago", "%(count)s days ago"
    assert [escape(plural(one, several, count)) for count in (1, 2)] == ["vor 1 Tag", "vor 2 Tagen"]
    assert [str(plural(one, several, count)) for count in (1, 2)] == ["1 day ago", "2 days ago"]
    unknown = [plural("%(count)s elf", "%(count)s elves", count).translated() for count in (1, 2)]
    assert unknown == ["1 elf", "2 elves"]


@pytest.mark.usefixtures("german")
def test_templates_have_plurals() -> None:
    environment = Environment(autoescape=True)
    install_translations(environment)
    template = environment.from_string(
        "{% trans count=days %}{{ count }} day ago{% pluralize %}{{ count }} days ago{% endtrans %}"
    )
    assert [template.render(days=days) for days in (1, 2)] == ["vor 1 Tag", "vor 2 Tagen"]


@pytest.mark.parametrize(("language", "expected"), [("ru", [0, 1, 2, 2, 0, 1]), ("pl", [0, 1, 2, 2, 2, 1])])
def test_each_language_has_its_own_plural_rule(language: str, expected: list[int]) -> None:
    rule = catalogue(language).plural  # type: ignore[attr-defined]
    assert [rule(count) for count in (1, 2, 5, 11, 21, 22)] == expected


@pytest.mark.usefixtures("german")
def test_empty_text_stays_empty() -> None:
    assert Text("").translated() == ""


@pytest.mark.usefixtures("german")
def test_text_that_the_catalogue_does_not_have_stays_english() -> None:
    assert escape(Text("5 % <of> nobody's words")) == Markup("5 % &lt;of&gt; nobody&#39;s words")
