"""Addresses that this service sends requests to: https, or http on this machine while the service is used there."""

from urllib.parse import urlsplit

from sso.core.net import parse_address
from sso.core.urls import is_plain_address

MAX_URL = 2048
EXPECTED = "must be an address that begins with https:// (http:// for this machine only, while SSO_BASE_URL is http)"


def is_outgoing_url(url: object, *, allow_http: bool) -> bool:
    """``allow_http`` permits http for loopback addresses."""
    if not isinstance(url, str) or len(url) > MAX_URL or not is_plain_address(url.partition("?")[0], ("https", "http")):
        return False
    if not url.isascii() or not url.isprintable() or " " in url or "#" in url:
        return False
    return url.startswith("https://") or (allow_http and is_loopback(urlsplit(url).hostname or ""))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return parse_address(host).is_loopback
    except ValueError:
        return False
