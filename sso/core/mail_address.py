"""Validates the e-mail addresses of logins: RFC 5321 without quoting, comments, groups and address literals.

``local@domain``. The local part is 1 to 64 characters: letters, digits and ``!#$%&'*+-/=?^_`{|}~`` in parts that are
separated by single dots. The domain is a host name; a name with letters beyond ASCII must be a valid IDN.
"""

import re
import unicodedata

import idna

MAX_ADDRESS_LENGTH = 320
MAX_LOCAL, MAX_DOMAIN = 64, 253

EXPECTED = "must be an e-mail address such as name@example.com"
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


def check_mail_address(text: str) -> str:
    """Returns the text. Raises ValueError if it is not a deliverable address."""
    local, _, domain = text.rpartition("@")
    if len(text) > MAX_ADDRESS_LENGTH or not _is_local_part(local):
        raise ValueError(EXPECTED)
    ascii_domain(domain)
    return text


def ascii_domain(domain: str) -> str:
    """Returns the domain in A-labels, as mail servers use it. Raises ValueError if it is not a domain."""
    try:
        name = domain if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        raise ValueError(EXPECTED) from None
    labels = name.split(".")
    if len(name) > MAX_DOMAIN or labels[-1].isdigit() or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(EXPECTED)
    return name


def _is_local_part(local: str) -> bool:
    parts = local.split(".")
    return len(local) <= MAX_LOCAL and all(part and all(map(_is_allowed, part)) for part in parts)


def _is_allowed(character: str) -> bool:
    """Returns whether a local part may contain it. Non-ASCII characters must be letters, digits or combining marks."""
    return bool(_ATOM.fullmatch(character)) or (
        not character.isascii() and unicodedata.category(character)[0] in ("L", "M", "N")
    )
