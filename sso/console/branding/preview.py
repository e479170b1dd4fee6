"""Renders the pages of a sign-in as users will see them, with the values that an administrator has typed.

The previews are documents inside the page of the console (``srcdoc`` of frames), so nothing of the service can be
framed, and they have its Content-Security-Policy. The frames are sandboxed: no script runs, and no form is sent.
"""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment
from msgspec import Struct

from sso.accounts.account_page.sections import describe_scopes
from sso.core.colour import Colour
from sso.web.brand import PageBrand, SiteBrand, theme_path

THEMES = ("light", "dark")
WIDTHS = ("phone", "desktop")
PAGES: Mapping[str, tuple[str, str]] = {  # key → title, template
    "sign-in": ("Sign-in", "login.html"),
    "consent": ("Consent", "authorize.html"),
    "confirmation": ("Confirmation of a device or game", "game.html"),
}
DEFAULT_PAGE = "sign-in"
_KNOWS = describe_scopes(["openid", "email", "profile"])
_USER = {"nick": "Ann", "login": "ann@example.com"}


class PreviewBrand(Struct, frozen=True):
    """The brand of a preview: that of the service, and that of a client whose sign-in it is."""

    service: PageBrand
    accent: Colour | None  # for the buttons: the client's, or the service's
    site: SiteBrand | None = None
    site_name: str = ""
    host: str = ""


class PagePreview(Struct, frozen=True):
    title: str
    theme: str
    width: str
    document: str


def read_page(name: str) -> str:
    return name if name in PAGES else DEFAULT_PAGE


def previews(environment: Environment, page: str, brand: PreviewBrand) -> list[PagePreview]:
    """Returns the page in both themes, for a phone and for a desktop."""
    title, template = PAGES[page]
    documents = {
        theme: environment.get_template(template).render(
            _values(brand, theme_path(theme, brand.accent)), user=None if page == "sign-in" else _USER
        )
        for theme in THEMES
    }
    return [
        PagePreview(f"{title}: {theme}, {width}", theme, width, documents[theme])
        for width in WIDTHS
        for theme in THEMES
    ]


def _values(brand: PreviewBrand, style: str) -> dict[str, Any]:
    """Returns the values of the templates, with an example of a user and of a game."""
    site = brand.site_name or "Example game"
    device = {"knows": _KNOWS, "offline": False} if brand.site_name else None
    return {
        "preview_style": style,
        "lang": "en",
        "brand": brand.service,
        "service_name": brand.service.name,
        "site_brand": brand.site,
        "site": brand.site_name,
        "page_title": "Preview",
        "autofocus": False,
        "consent": True,
        "knows": _KNOWS,
        "host": brand.host,
        "allowed": True,
        "same_network": True,
        "game": {
            "title": site, "site": device, "match": "amber falcon", "age_s": 20, "address": "192.0.2.7",
            "parameters": {},
        },
        "csrf": "", "problem": None, "notice": None, "action": "", "switcher_back": "", "status": 200,
    }  # fmt: skip
