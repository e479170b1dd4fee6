"""Renders pages, and reads the forms that they send."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from quart import Response, current_app, g, request

from sso.core.field_errors import FieldError
from sso.core.language import current_language
from sso.core.path_ids import path_id
from sso.web import language, template_cache
from sso.web.brand import SiteBrand
from sso.web.language_switcher import same_page
from sso.web.request import read_body, read_multipart
from sso.web.response import DataResponse
from sso.web.security_headers import page_policy
from sso.web.template_cache import compiled_templates

MAX_FORM = 32 * 1024
HTML_TYPE = "text/html; charset=utf-8"


def install(environment: Environment) -> None:
    """Imports the form macros once; importing them in each template would double the time of a page."""
    environment.bytecode_cache = compiled_templates
    environment.filters["colour_number"] = colour_number
    environment.filters["path_id"] = path_id
    environment.globals["forms"] = environment.get_template("_forms.html").module


def colour_number(name: str) -> int:
    """Returns which of the eight colours the tile of a game or site without a logo has, always the same for a name."""
    return zlib.crc32(name.encode()) % 8


async def page(
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    user: object = None,
    form_targets: Sequence[str] = (),
    own: Mapping[str, str] | None = None,
    here: str | None = None,
    site_brand: SiteBrand | None = None,
    **context: Any,
) -> Response:
    """Renders a page in the selected language.

    ``form_targets``: origins that the forms of this page may redirect to, in addition to our own. ``own``: values of
    this user alone; if given, the rest of the page is cached (``template_cache.py``). ``here``: the path at which the
    language switcher shows this page again, if it is not the path of the request; "" for a page that cannot be shown
    again, which then has no switcher. ``site_brand``: the look of the site that the user signs in to.
    """
    language.select_language()
    names = {
        "lang": current_language.get(),
        "user": user,
        "site_brand": site_brand,
        "impersonation": g.get("impersonation"),
        **context,
    }
    names = {"status": status, "notice": None, "problem": None, "csrf": "", **names}
    switcher_back = quote(same_page() if here is None else here, safe="/")
    # Not Quart's render_template, which runs context processors in a thread.
    loaded = current_app.jinja_env.get_template(template)
    if own is None:
        text = loaded.render(names, switcher_back=switcher_back)
    else:
        text = template_cache.render_cached(loaded, names, {**own, "switcher_back": switcher_back})
    shown = {"Content-Language": current_language.get(), "Vary": "Accept-Language", **(headers or {})}
    image_origins = (site_brand.logo_origin,) if site_brand and site_brand.logo_origin else ()
    if form_targets or image_origins:
        shown["Content-Security-Policy"] = page_policy(form_targets, image_origins)
    return DataResponse(text.encode(), HTML_TYPE, status, shown)


async def form_fields(max_bytes: int = MAX_FORM, *, files: bool = False) -> dict[str, str]:
    """Returns the text fields of a form that one of our pages sent. With ``files`` it may have files: data URIs."""
    language.select_language()
    if files and request.mimetype == "multipart/form-data":
        g.form_fields = await read_multipart(max_bytes)
        return dict(g.form_fields)
    content = await read_body(max_bytes=max_bytes)
    if not content.is_form and content.raw:
        raise FieldError(("Content-Type",), "expected application/x-www-form-urlencoded", status=415)
    g.form_fields = {name: value for name, value in content.fields.items() if isinstance(value, str)}
    return dict(g.form_fields)
