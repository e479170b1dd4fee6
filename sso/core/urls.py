"""Checks of addresses, and of the headers in settings. No error text quotes a value, which may contain a password."""

import re
from urllib.parse import SplitResult, urlsplit

from sso.core.net import is_ipv6

_CHARACTERS = re.compile(r"[!\"$->@-~]+")  # printable ASCII except "#" and "?"
_LINK_CHARACTERS = re.compile(r"[!#-;=?-Z_a-z~\[\]]+")  # may be in URLs, without quotes and angle brackets
MAX_LINK = 1024
_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::[0-9]*)?")  # a host that is an IPv6 address, with its port
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)=([!-~](?:[ -~]*[!-~])?)")


def split_url(url: str) -> SplitResult | None:
    """Returns the parts of a URL, or None if its host or its port is malformed."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2]
    if "[" in host or "]" in host:  # Python checks this since 3.11.4
        match = _BRACKETED.fullmatch(host)
        return parts if match and is_ipv6(match[1]) else None
    return parts


def origin_of(url: str) -> str:
    """Returns the scheme and the host of a URL, with its port. Returns "" if it is malformed or has no host."""
    parts = split_url(url)
    return f"{parts.scheme}://{parts.netloc}" if parts and parts.netloc else ""


def is_plain_address(url: str, schemes: tuple[str, ...]) -> bool:
    """Returns whether the URL has one of the schemes and a host, but no user, query and fragment."""
    parts = split_url(url)
    return (
        parts is not None
        and url.startswith(tuple(f"{scheme}://" for scheme in schemes))
        and _CHARACTERS.fullmatch(url) is not None
        and bool(parts.hostname)
        and parts.username is None
    )


def is_link(url: str) -> bool:
    """Returns whether a page may link to it: an http or https URL with a host and no user, or a mailto URL."""
    parts = split_url(url)
    if parts is None or not _LINK_CHARACTERS.fullmatch(url) or len(url) > MAX_LINK:
        return False
    if parts.scheme == "mailto":
        return not parts.netloc and "@" in parts.path.strip("@")
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None


def has_scheme(url: str, schemes: tuple[str, ...]) -> bool:
    """Checks the scheme here because error texts of libraries may quote the password."""
    try:
        return urlsplit(url).scheme in schemes
    except ValueError:
        return False


def parse_header_list(text: str) -> dict[str, str]:
    """Returns the headers of a list ``name=value,name=value``. Raises ValueError."""
    matches = [_HEADER.fullmatch(item.strip()) for item in text.split(",")]
    if not all(matches):
        raise ValueError("must be name=value, several separated by commas")
    return {match[1]: match[2] for match in matches if match}
