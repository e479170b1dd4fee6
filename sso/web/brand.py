"""The brand on pages: values for the templates, and the routes of the logo and of the accent colours.

Both are files with a name of their own for each content, which browsers may keep. A style sheet can be requested for
every accent colour that is legible, because sites have colours of their own.
"""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment
from msgspec import Struct
from quart import Blueprint, Response
from werkzeug.exceptions import NotFound

from sso.core.brand import Brand, CurrentBrand, accent_css, accent_variables, parse_accent
from sso.core.colour import Colour
from sso.core.language import Text
from sso.web import template_cache

_FOREVER = "public, max-age=31536000, immutable"
# An SVG file may contain scripts, which would run if it were opened as a page.
_LOGO_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_STYLE = Path(__file__).parent / "static" / "sso.css"
_ = Text


class PageBrand(Struct, frozen=True):
    """The brand as templates use it."""

    name: str
    logo_path: str
    logo_type: str
    style_path: str
    links: tuple[tuple[Text, str], ...]
    signin_text: str
    privacy_url: str
    terms_url: str


class SiteBrand(Struct, frozen=True):
    """The look of a site on the pages of its sign-in."""

    logo_uri: str
    logo_origin: str  # that the page must allow; "" for a data URI
    style_path: str
    links: tuple[tuple[Text, str], ...]
    signin_text: str


def page_brand(brand: Brand) -> PageBrand:
    return PageBrand(
        brand.name,
        _logo_path(brand),
        brand.logo.content_type if brand.logo else "",
        style_path(brand.accent),
        named_links(brand.support_url, brand.privacy_url, brand.terms_url),
        brand.signin_text,
        brand.privacy_url,
        brand.terms_url,
    )


def install(environment: Environment, brand: Brand) -> None:
    """Shows the brand on all pages. Called again after each change."""
    environment.globals["brand"] = page_brand(brand)
    environment.globals["service_name"] = brand.name
    environment.globals["support_url"] = brand.support_url
    template_cache.clear()


def named_links(support: str, privacy: str, terms: str) -> tuple[tuple[Text, str], ...]:
    """Returns the links that exist, with their names."""
    links = ((_("Support"), support), (_("Privacy"), privacy), (_("Terms"), terms))
    return tuple((name, url) for name, url in links if url)


def style_path(accent: Colour | None) -> str:
    return f"/brand/accent-{accent.hex[1:]}.css" if accent else ""


def theme_path(theme: str, accent: Colour | None) -> str:
    """Returns the style sheet with the colours of one theme, whatever the browser prefers. For previews."""
    return f"/brand/theme-{theme}{f'-{accent.hex[1:]}' if accent else ''}.css"


@cache
def _variables() -> dict[str, str]:
    """The colours of sso.css in both themes: its first two sets of variables."""
    light, dark = re.findall(r":root \{([^}]*)\}", _STYLE.read_text())[:2]
    return {"light": light, "dark": dark}


def theme_css(theme: str, accent: Colour | None) -> str:
    """Raises ValueError if there is no such theme."""
    if theme not in _variables():
        raise ValueError("theme: must be light or dark")
    own = accent_variables(accent, dark=theme == "dark") if accent else ""
    return f":root {{ {_variables()[theme]} {own} color-scheme: {theme}; }}\n"


def _logo_path(brand: Brand) -> str:
    return f"/brand/logo-{brand.logo.digest}.{brand.logo.kind}" if brand.logo else ""


def brand_routes(current: CurrentBrand) -> Blueprint:
    routes = Blueprint("brand", __name__)

    @routes.get("/brand/accent-<colour>.css")
    async def accent(colour: str) -> Response:
        try:
            style = accent_css(parse_accent(colour))
        except ValueError:
            raise NotFound from None
        return Response(style, content_type="text/css; charset=utf-8", headers={"Cache-Control": _FOREVER})

    @routes.get("/brand/theme-<name>.css")
    async def theme(name: str) -> Response:
        theme_name, _, colour = name.partition("-")
        try:
            style = theme_css(theme_name, parse_accent(colour) if colour else None)
        except ValueError:
            raise NotFound from None
        return Response(style, content_type="text/css; charset=utf-8", headers={"Cache-Control": _FOREVER})

    @routes.get("/brand/logo-<name>")
    async def logo(name: str) -> Response:
        image = current.value.logo
        if image is None or name != f"{image.digest}.{image.kind}":
            raise NotFound
        headers = {"Cache-Control": _FOREVER, "Content-Security-Policy": _LOGO_POLICY}
        return Response(image.content, content_type=image.content_type, headers=headers)

    return routes
