"""Rendering pages and reading the forms they send."""

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment
from quart import Response, current_app

from sso.core.language import reader
from sso.web import language, template_cache
from sso.web.body import InvalidBody
from sso.web.request import read_body
from sso.web.security_headers import page_policy

MAX_FORM = 32 * 1024


def install(environment: Environment) -> None:
    """To import them in each template again would take as long as the rest of a page."""
    environment.globals["forms"] = environment.get_template("_forms.html").module


async def page(
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    user: object = None,
    form_targets: Sequence[str] = (),
    own: Mapping[str, str] | None = None,
    **context: Any,
) -> Response:
    """In the language of the reader (``language.py``).

    ``form_targets``: origins to which the forms of this page may lead in the end, besides our own. ``own``: what of
    the context is this reader's alone, if the rest is the same for many (``stencil.py``).
    """
    language.select_language()
    names = {"lang": reader.get(), "service_name": current_app.config["SERVICE_NAME"], "user": user, **context}
    names = {"status": status, "notice": None, "problem": None, "csrf": "", **names}
    # Not by Quart's own way, which asks a thread for what our templates do not use.
    found = current_app.jinja_env.get_template(template)
    text = found.render(names) if own is None else template_cache.render_cached(found, names, own)
    response = Response(text, status, content_type="text/html; charset=utf-8")
    response.headers.update({"Content-Language": reader.get(), "Vary": "Accept-Language", **(headers or {})})
    if form_targets:
        response.headers["Content-Security-Policy"] = page_policy(form_targets)
    return response


async def form_fields() -> dict[str, str]:
    """The fields of a form of ours: text only."""
    language.select_language()
    sent = await read_body(max_bytes=MAX_FORM)
    if not sent.is_form and sent.raw:
        raise InvalidBody("a form is expected", status=415)
    return {name: value for name, value in sent.fields.items() if isinstance(value, str)}
