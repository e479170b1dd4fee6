"""The profile form of the account page, over HTTP."""

from collections.abc import Iterator

import pytest

from sso.accounts.history.change_limit import MAX_CHANGES, WINDOW_S
from sso.accounts.nickname import InvalidNickname, parse_nickname
from sso.accounts.profile.choices import countries, languages
from sso.core.language_names import LANGUAGES
from tests.kit.browser import Browser, fresh_browser, new_user, query
from tests.kit.server import Server

FIELDS = {"nick": "Ann Wanderer", "lang": "de", "country": "AT"}


@pytest.fixture
def login(server: Server) -> str:
    return new_user(server)


@pytest.fixture
def browser(server: Server, login: str) -> Iterator[Browser]:
    with fresh_browser(server, login) as browser:
        browser.open_account()
        yield browser


def stored(server: Server, login: str) -> dict[str, str]:
    return dict(query(server, "SELECT nick, lang, country FROM users WHERE login = $1", login)[0])


def test_profile_is_saved_and_shown(browser: Browser, server: Server, login: str) -> None:
    browser.follow(browser.submit("/account/profile", **FIELDS))
    assert stored(server, login) == FIELDS
    assert browser.notice
    assert '<html lang="de">' in browser.page.text
    assert '<option value="AT" selected>Österreich</option>' in browser.page.text
    assert '<option value="de" selected>Deutsch</option>' in browser.page.text


def test_nickname_is_stored_in_nfc_without_spaces_around_it(browser: Browser, server: Server, login: str) -> None:
    assert browser.submit("/account/profile", **FIELDS | {"nick": "  Jose\u0301 🎮 "}).status_code == 303
    assert stored(server, login)["nick"] == "Jos\u00e9 🎮"


def test_country_may_be_empty(browser: Browser, server: Server, login: str) -> None:
    assert browser.submit("/account/profile", **FIELDS).status_code == 303
    assert browser.submit("/account/profile", **FIELDS | {"country": ""}).status_code == 303
    assert stored(server, login)["country"] == ""


WRONG_VALUES = (
    ("nick", "", "Please enter a nickname."),
    ("nick", "   ", "Please enter a nickname."),
    ("nick", "x" * 65, "Your nickname must have at most 64 characters."),
    ("nick", "Ann\u202e", "Your nickname contains a character that cannot be shown."),
    ("nick", "Ann\u2066x", "Your nickname contains a character that cannot be shown."),
    ("nick", "Ann\u200bx", "Your nickname contains a character that cannot be shown."),
    ("nick", "Ann\nBob", "Your nickname contains a character that cannot be shown."),
    ("lang", "tlh", "Please choose a language from the list."),
    ("lang", "", "Please choose a language from the list."),
    ("country", "XX", "Please choose a country from the list."),
    ("country", "at", "Please choose a country from the list."),
    ("country", "EU", "Please choose a country from the list."),
)


def test_wrong_value_is_explained_and_changes_nothing(browser: Browser, server: Server, login: str) -> None:
    before = stored(server, login)
    for field, value, problem in WRONG_VALUES:
        assert browser.submit("/account/profile", **FIELDS | {field: value}).status_code == 422, (field, value)
        assert browser.problem == problem
        focused = browser.page.text.split("autofocus")[0].rpartition("<")[2]
        assert f'id="{field}"' in focused
    assert stored(server, login) == before
    assert query(server, "SELECT FROM account_events e JOIN users u USING (user_id) WHERE login = $1 AND kind = $2",
                 login, "profile_changed") == []  # fmt: skip


def test_values_that_were_stored_otherwise_can_be_kept(server: Server) -> None:
    login = new_user(server, country="Elbonia", lang="tlh")
    with fresh_browser(server, login) as browser:
        browser.open_account()
        fields = {"nick": "Ann", "country": "Elbonia", "lang": "tlh"}
        assert browser.submit("/account/profile", **fields).status_code == 303
    assert stored(server, login) == fields


def test_choices_are_complete() -> None:
    assert [code for code, _ in languages()] == list(LANGUAGES)
    assert dict(languages())["pt-BR"].startswith("Português")
    for language in LANGUAGES:
        assert len(countries(language)) == 249  # ISO 3166-1
    assert dict(countries("fr"))["DE"] == "Allemagne"


def test_changes_of_one_kind_are_limited(browser: Browser, server: Server, login: str) -> None:
    form = browser.form("/account/profile") | FIELDS
    for number in range(MAX_CHANGES):
        assert browser.post("/account/profile", form | {"nick": f"Ann {number}"}).status_code == 303
    refused = browser.post("/account/profile", form | {"nick": "Bob"})
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= WINDOW_S
    assert "Bitte warte" in refused.text
    assert stored(server, login)["nick"] == f"Ann {MAX_CHANGES - 1}"
    # What changes nothing is no change, and other kinds have limits of their own.
    assert browser.post("/account/profile", form | {"nick": f"Ann {MAX_CHANGES - 1}"}).status_code == 303
    assert browser.post("/account/email/notices", form | {"enable": "0"}).status_code == 303


def test_length_of_a_nickname_is_that_of_its_stored_form() -> None:
    assert parse_nickname(f" {'x' * 64} ") == "x" * 64
    assert len(parse_nickname("\u0958" * 32)) == 64  # each of them is two characters in NFC
    assert parse_nickname("\u1112\u1161\u11ab" * 64) == "\ud55c" * 64  # three letters are one syllable
    with pytest.raises(InvalidNickname):
        parse_nickname("\u1112\u1161\u11ab" * 65)
    with pytest.raises(InvalidNickname):
        parse_nickname("\u0958" * 33)
