"""The look of a client on the pages of its sign-in: logo, accent colour, links and a text.

A logo is a data URI, or an https URL at a host of the client's redirect URIs. That host has sent the user here and gets
the user back, so it learns nothing from the request for the image; a third party would. The page allows images of
exactly this origin, and the browser sends no referrer.
"""

import base64
import binascii
import re
from typing import Any

from sso.core.brand import MAX_TEXT, parse_accent
from sso.core.logo import check_logo
from sso.core.urls import has_scheme, is_link, origin_of, split_url
from sso.oauth.model import Client
from sso.web.brand import SiteBrand, named_links, style_path

MAX_LOGO_URI = 32 * 1024
EXPECTED_LOGO = (
    f"must be a data URI in base64 of an SVG, PNG or WebP image, at most {MAX_LOGO_URI // 1024} KiB, or an https URL "
    "at a host of the redirect URIs"
)
_DATA = re.compile(r"data:(image/(?:svg\+xml|png|webp));base64,([A-Za-z0-9+/]+={0,2})", re.ASCII)


def check_logo_uri(uri: str) -> str:
    """Raises ValueError. Whether the host belongs to the client is checked by ``has_own_logo``."""
    if not uri or (is_link(uri) and has_scheme(uri, ("http", "https"))):
        return uri
    match = _DATA.fullmatch(uri) if len(uri) <= MAX_LOGO_URI else None
    try:
        logo = check_logo(base64.b64decode(match[2], validate=True)) if match else None
    except (ValueError, binascii.Error):
        logo = None
    if match is None or logo is None or logo.content_type != match[1]:
        raise ValueError(EXPECTED_LOGO)
    return uri


def check_accent(text: str) -> str:
    return parse_accent(text).hex if text else ""


def check_link(url: str) -> str:
    if url and not is_link(url):
        raise ValueError("must be a URL that begins with https://, http:// or mailto:")
    return url


def check_signin_text(text: str) -> str:
    if len(text) > MAX_TEXT or not text.isprintable():
        raise ValueError(f"must have at most {MAX_TEXT} printable characters")
    return text


def has_own_logo(row: Any) -> bool:
    """Returns whether the logo of the client is a data URI or is at one of the client's hosts, with its scheme."""
    uri = row["logo_uri"]
    if not uri or uri.startswith("data:"):
        return True
    hosts = (host if "://" in host else f"https://{host}" for host in row["redirect_hosts"])
    place = _place(uri)
    return place is not None and place in {_place(other) for other in (*hosts, *row["redirect_uris"])}


def _place(uri: str) -> tuple[str, str | None] | None:
    """Returns None for a malformed URI, which older versions may have stored."""
    parts = split_url(uri)
    return (parts.scheme, parts.hostname) if parts else None


def site_brand(client: Client) -> SiteBrand | None:
    """Returns what the pages of the client's sign-in show of it, or None if it has no look of its own."""
    links = named_links(client.support_uri, client.policy_uri, client.tos_uri)
    if not (links or client.logo_uri or client.accent or client.signin_text):
        return None
    accent = parse_accent(client.accent) if client.accent else None
    return SiteBrand(client.logo_uri, origin_of(client.logo_uri), style_path(accent), links, client.signin_text)
