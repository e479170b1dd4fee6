"""Too long logins are not normalized: for 16,000 combining characters that takes 0.3 seconds."""

import unicodedata

import pytest

from sso.accounts import model
from sso.accounts.model import NO_LOGIN, login_key
from sso.core.mail_address import MAX_ADDRESS_LENGTH
from tests.kit.browser import Browser
from tests.kit.server import Server

COMBINING = "\u0315\u0300"


def test_too_long_login_is_not_normalized(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 0

    class Measured:
        @staticmethod
        def normalize(form: str, text: str) -> str:
            nonlocal longest
            longest = max(longest, len(text))
            return unicodedata.normalize(form, text)  # type: ignore[arg-type]

    monkeypatch.setattr(model, "unicodedata", Measured)
    assert login_key(COMBINING * 8000) == NO_LOGIN
    assert longest == 0
    assert login_key("A" * MAX_ADDRESS_LENGTH) == "a" * MAX_ADDRESS_LENGTH


@pytest.mark.parametrize("login", [COMBINING * 2000, "a" * 20_000, "a" * 20_000 + "@example.com"])
def test_form_with_too_long_login_is_rejected_like_a_wrong_one(server: Server, login: str) -> None:
    with Browser(server) as browser:
        assert browser.sign_in(login).status_code == 401
