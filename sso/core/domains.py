"""Domains of logins, in the one form by which they are compared."""

import unicodedata
from functools import lru_cache

import idna

MAX_LENGTH = 253
CACHED = 1024


def domain_key(domain: str) -> str:
    """The domain in A-labels, in lower case: ``straße.de`` is ``xn--strae-oqa.de``, and not ``strasse.de``."""
    return domain.lower() if domain.isascii() else _a_labels(domain)


@lru_cache(CACHED)
def _a_labels(domain: str) -> str:
    if len(domain) <= MAX_LENGTH:
        try:
            return idna.encode(domain, uts46=True).decode().lower()
        except UnicodeError:  # no valid name: it equals only itself
            pass
    return unicodedata.normalize("NFC", domain).lower()
