"""The code that a device shows and its user types: eight letters that are hard to confuse, such as WDJB-MJHT."""

import re
import secrets

# Consonants: the codes spell no words, and no letter looks like a digit (RFC 8628 section 6.1).
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
LENGTH = 8
MAX_TYPED = 64
_SEPARATORS = re.compile(r"[\s\-\u2010-\u2015_.]+")


def new_user_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def format_user_code(user_code: str) -> str:
    """Returns the code as people see it, with a dash in the middle."""
    return f"{user_code[: LENGTH // 2]}-{user_code[LENGTH // 2 :]}"


def parse_user_code(typed: str) -> str | None:
    """Returns the code that was typed, in any case and with or without dashes and spaces, or None if it is no code."""
    if len(typed) > MAX_TYPED or not (text := _SEPARATORS.sub("", typed)).isascii():
        return None
    user_code = text.upper()
    return user_code if len(user_code) == LENGTH and set(user_code) <= set(LETTERS) else None
