"""Selects the language of a page: from ``ui_locales`` of the client, else the browser, else the user, else English.

Texts are marked for translation: in templates ``{{ _("Sign in") }}`` and
``{% trans site=site %}to <bdi>{{ site }}</bdi>{% endtrans %}``, in Python ``_("Sign in")`` and
``_("Wait %(seconds)s seconds.", seconds=5)``, also in constants. The English text is the key in the
catalogues (``sso/languages``); ``scripts/translations`` updates them.
"""

from quart import g

from sso.core.language import (
    SOURCE,
    Text,
    current_language,
    first_supported,
    parse_accept_language,
    parse_ui_locales,
)
from sso.web.request import current_request

_ = Text


def use_ui_locales(ui_locales: str) -> None:
    """Uses the languages that the client application asks for."""
    _candidates()["site"] = first_supported(parse_ui_locales(ui_locales)) or _candidates()["site"]
    select_language()


def use_user_language(language: str) -> None:
    """Uses the language of the signed-in user, unless the client or the browser asks for another."""
    _candidates()["user"] = first_supported([language])
    select_language()


def select_language() -> None:
    """Sets the language of this request from the sources that are known so far. Only pages call it."""
    current_language.set(next(filter(None, _candidates().values()), SOURCE))


def _candidates() -> dict[str, str | None]:
    """Returns the known languages by source, in order of preference; they are kept for the request."""
    candidates: dict[str, str | None] | None = g.get("languages")
    if candidates is None:
        browser = first_supported(parse_accept_language(current_request().headers.get("Accept-Language", "")))
        candidates = g.languages = {"site": None, "browser": browser, "user": None}
    return candidates
