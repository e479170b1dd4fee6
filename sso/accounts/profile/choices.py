"""The languages and countries that a user can choose, with their names."""

import unicodedata
from functools import cache

from sso.core.language_names import LANGUAGES, NAMES

Choice = tuple[str, str]  # the stored value and its name

# Two-letter codes of Unicode that are no countries of ISO 3166-1.
_OTHER_CODES = frozenset(["AC", "CP", "CQ", "DG", "EA", "EU", "EZ", "IC", "QO", "TA", "UN", "XA", "XB", "XK", "ZZ"])


def languages() -> tuple[Choice, ...]:
    """Returns the languages of the pages, each with its name in that language."""
    return tuple(NAMES.items())


@cache
def countries(language: str) -> tuple[Choice, ...]:
    """Returns the countries of ISO 3166-1 with their names in this language, in the order of the names."""
    from babel import Locale  # slow to import

    names = {str(code): str(name) for code, name in Locale.parse(language, sep="-").territories.items()}
    codes = (code for code in names if len(code) == 2 and code.isalpha() and code not in _OTHER_CODES)
    return tuple(sorted(((code, names[code]) for code in codes), key=lambda choice: _sort_key(choice[1])))


def is_country(code: str) -> bool:
    return any(code == other for other, _ in countries(LANGUAGES[0]))


def _sort_key(name: str) -> str:
    """Sorts letters with marks beside those without."""
    return "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
