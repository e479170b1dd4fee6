"""A page from the cache equals the rendered page."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader, Template

import sso
from sso.core.brand import Brand
from sso.core.language import Text, current_language, install_translations
from sso.web import brand, pages
from sso.web.template_cache import MAX_PAGES, _render_pieces, render_cached

MARKUP = "\"'><script>&amp;%(x)s{{ 7 }}\\"
SPECIAL = ["plain", MARKUP, "ünï ☃", "csrf", "%", "a" * 300]
# Each value may be empty, and each special value is in each place, beside itself and beside another.
OWN_VALUES = [*itertools.product(("", MARKUP), repeat=3), *((value, value, value) for value in SPECIAL)]
OWN_VALUES += [(*SPECIAL[number:], *SPECIAL)[:3] for number in range(len(SPECIAL))]


@pytest.fixture(scope="module")
def signin() -> Template:
    folder = Path(sso.__file__).parent / "web" / "templates"
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True)
    install_translations(environment)
    brand.install(environment, Brand())
    pages.install(environment)
    return environment.get_template("login.html")


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    _render_pieces.cache_clear()


def names(**more: Any) -> dict[str, Any]:
    common = {
        "lang": current_language.get(),
        "user": None,
        "status": 200,
        "notice": None,
        "problem": None,
    }
    return {**common, "csrf": "", "page_title": Text("Sign in"), "action": "/login", "site": "", **more}


@pytest.mark.parametrize("site", ["", "A <b>site</b>"])
@pytest.mark.parametrize("problem", [None, Text("Wrong e-mail or password.")])
@pytest.mark.parametrize("lang", ["en", "de"])
def test_cached_page_equals_the_rendered_page(signin: Template, site: str, problem: Text | None, lang: str) -> None:
    token = current_language.set(lang)
    try:
        same = names(site=site, problem=problem)
        for csrf, next_path, login in OWN_VALUES:
            own = {"csrf": csrf, "next": next_path, "login": login}
            assert render_cached(signin, same, own) == signin.render({**same, **own})
        assert _render_pieces.cache_info().misses == 8  # one per combination of empty values
    finally:
        current_language.reset(token)


def test_translatable_text_and_plain_string_are_cached_separately(signin: Template) -> None:
    token = current_language.set("de")
    try:
        own = {"csrf": "x"}
        for title in (Text("Sign in"), "Sign in", Text("Sign in")):
            same = names(page_title=title)
            assert render_cached(signin, same, own) == signin.render({**same, **own})
    finally:
        current_language.reset(token)


def test_equal_values_of_different_types_are_cached_separately() -> None:
    template = Environment(autoescape=True).from_string("{{ value }} {{ own }}")
    assert [render_cached(template, {"value": value}, {"own": "me"}) for value in (1, True, 1.0)] == [
        "1 me", "True me", "1.0 me",
    ]  # fmt: skip


def test_cache_is_bounded(signin: Template) -> None:
    for number in range(MAX_PAGES + 10):
        render_cached(signin, names(site=f"Site {number}"), {"csrf": "x"})
    assert _render_pieces.cache_info().currsize == MAX_PAGES
