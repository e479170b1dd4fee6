"""The language of a page: what the site asks for (``ui_locales``), else the browser, else the user's own, else English.

In templates ``{{ _("Sign in") }}`` and ``{% trans site=site %}to <bdi>{{ site }}</bdi>{% endtrans %}``, in Python
``_("Sign in")`` and ``_("Wait %(seconds)s seconds.", seconds=5)``, also for constants. The English words are the key in
``sso/languages/*.toml``; a test says which are missing there.
"""

from jinja2 import Environment
from quart import g

from sso.core.language import SOURCE, Text, first_of, in_accept_language, in_ui_locales, reader, translate
from sso.web.request import current_request

_ = Text


def install(environment: Environment) -> None:
    environment.add_extension("jinja2.ext.i18n")
    environment.policies["ext.i18n.trimmed"] = True
    environment.install_gettext_callables(  # type: ignore[attr-defined]
        translate, lambda one, several, count: translate(one if count == 1 else several), newstyle=True
    )


def use_ui_locales(ui_locales: str) -> None:
    """By the site on whose behalf somebody is here."""
    _reads()["site"] = first_of(in_ui_locales(ui_locales)) or _reads()["site"]
    select_language()


def use_user_language(language: str) -> None:
    """Of the user who is here."""
    _reads()["user"] = first_of([language])
    select_language()


def select_language() -> None:
    """For this request, by what is known so far. Most requests come from programs, which do not read."""
    reader.set(next(filter(None, _reads().values()), SOURCE))


def _reads() -> dict[str, str | None]:
    """Who reads what, in the order in which it counts."""
    found: dict[str, str | None] | None = g.get("reads")
    if found is None:
        browser = first_of(in_accept_language(current_request().headers.get("Accept-Language", "")))
        found = g.reads = {"site": None, "browser": browser, "user": None}
    return found
