"""Nicknames: the name that sites, games and other users see."""

import unicodedata

from sso.core.language import Text

MAX_NICKNAME_LENGTH = 64
_MAX_DECOMPOSED = 4  # a character in NFC has at most so many in other forms

# Controls, invisible formatting (such as a change of the writing direction), surrogates and line separators.
_FORBIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


class InvalidNickname(ValueError):
    """The text says what is expected."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        self.text = text


def parse_nickname(text: str) -> str:
    """Returns the nickname in NFC, without spaces around it. Raises InvalidNickname."""
    nick = text.strip()
    if not nick:
        raise InvalidNickname(Text("Please enter a nickname."))
    if len(nick) <= MAX_NICKNAME_LENGTH * _MAX_DECOMPOSED:  # a long text takes long
        nick = unicodedata.normalize("NFC", nick)
    if len(nick) > MAX_NICKNAME_LENGTH:
        raise InvalidNickname(Text("Your nickname must have at most %(count)s characters.", count=MAX_NICKNAME_LENGTH))
    if any(unicodedata.category(character) in _FORBIDDEN for character in nick):
        raise InvalidNickname(Text("Your nickname contains a character that cannot be shown."))
    return nick
