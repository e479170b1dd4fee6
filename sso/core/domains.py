"""The canonical form of domains, by which logins are compared."""

import unicodedata
from functools import lru_cache

import idna

MAX_LENGTH = 253
MAX_CACHED = 1024


def domain_key(domain: str) -> str:
    """Returns the domain in lower-case A-labels: ``xn--strae-oqa.de`` for ``straße.de``, not ``strasse.de``."""
    return domain.lower() if domain.isascii() else _a_labels(domain)


@lru_cache(MAX_CACHED)
def _a_labels(domain: str) -> str:
    if len(domain) <= MAX_LENGTH:
        try:
            return idna.encode(domain, uts46=True).decode().lower()
        except UnicodeError:  # not a valid domain
            pass
    return unicodedata.normalize("NFC", domain).lower()
