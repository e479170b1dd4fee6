"""Selects the language of a page: the one chosen on a page, else by ``ui_locales`` of the client, else by the browser,
else by the user, else English.

The choice comes first; otherwise the switcher would have no effect on the pages of a client that sends ``ui_locales``.

Texts are marked for translation: in templates ``{{ _("Sign in") }}`` and
``{% trans site=site %}to <bdi>{{ site }}</bdi>{% endtrans %}``, in Python ``_("Sign in")`` and
``_("Wait %(seconds)s seconds.", seconds=5)``, also in constants. The English text is the key in the
catalogues (``sso/languages``); ``scripts/translations`` updates them.
"""

from quart import Response, g

from sso.core.language import Text, current_language, first_supported, parse_accept_language, parse_ui_locales
from sso.core.language_names import SOURCE
from sso.web.cookies import LANGUAGE_COOKIE, read_language_cookie, set_cookie
from sso.web.request import current_request

CHOICE_S = 365 * 86400
_ = Text


def use_ui_locales(ui_locales: str) -> None:
    """Uses the languages that the client application asks for."""
    _candidates()["site"] = first_supported(parse_ui_locales(ui_locales)) or _candidates()["site"]
    select_language()


def use_user_language(language: str) -> None:
    """Uses the language of the signed-in user, unless the client or the browser asks for another."""
    _candidates()["user"] = first_supported([language])
    select_language()


def remember_choice(response: Response, language: str) -> None:
    """Lets the browser keep the language that was chosen on a page."""
    set_cookie(response, LANGUAGE_COOKIE, language, CHOICE_S)


def select_language() -> None:
    """Sets the language of this request from the sources that are known so far. Only pages call it."""
    current_language.set(next(filter(None, _candidates().values()), SOURCE))


def _candidates() -> dict[str, str | None]:
    """Returns the known languages by source, in order of preference; they are kept for the request."""
    candidates: dict[str, str | None] | None = g.get("languages")
    if candidates is None:
        browser = first_supported(parse_accept_language(current_request().headers.get("Accept-Language", "")))
        chosen = first_supported([read_language_cookie()])
        candidates = g.languages = {"chosen": chosen, "site": None, "browser": browser, "user": None}
    return candidates
