"""Parsers of settings.

A value is a string, or in a TOML file also an integer, a boolean or a list. A parser returns the typed value, or raises
ValueError with a text that follows the name of the setting, such as "must be a string". The text does not repeat values
that may be secret.
"""

import pwd
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sso.core.bind_address import Bind, parse_bind, parse_binds
from sso.core.bus_url import parse_bus_url
from sso.core.database_url import database_hosts
from sso.core.net import Network, parse_networks
from sso.core.outgoing_url import is_loopback
from sso.core.urls import has_scheme, is_link, is_plain_address, parse_header_list, split_url

if TYPE_CHECKING:
    from sso.core.colour import Colour
    from sso.core.logo import Logo

EXPECTED_DOCUMENT = "must be a URL that begins with https://, or with http:// for this machine"
EXPECTED_LINK = "must be a URL that begins with https://, http:// or mailto:"
EXPECTED_MAIL_FROM = "must be an e-mail address such as sso@example.com"
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_FLAGS = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}


class SecretText:
    """A text that must not appear in logs and tracebacks."""

    def __init__(self, value: str) -> None:
        self._value = value

    def get_secret_value(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "SecretText('…')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


def integer(minimum: int, maximum: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise ValueError(f"must be an integer from {minimum} to {maximum}")
        return value

    return parse


seconds = integer(1, 10 * 366 * 86400)
count = integer(0, 1_000_000)


def flag(value: object) -> bool:
    number = _FLAGS.get(str(value).lower()) if isinstance(value, str | int) else None
    if number is None:
        raise ValueError("must be 0 or 1")
    return number


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - the caller catches one exception
    return value


def secret(value: object) -> SecretText:
    return SecretText(text(value))


def password(min_length: int, max_length: int) -> Callable[[object], SecretText]:
    def parse(value: object) -> SecretText:
        if not min_length <= len(text(value)) <= max_length:
            raise ValueError(f"must have {min_length}-{max_length} characters")
        return secret(value)

    return parse


def path(value: object) -> Path:
    return Path(text(value))


def choice(*names: str) -> Callable[[object], Any]:
    def parse(value: object) -> str:
        if value not in names:
            raise ValueError(f"must be {', '.join(names[:-1])} or {names[-1]}")
        return str(value)

    return parse


def matching(pattern: str, expected: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if not re.fullmatch(pattern, text(value)):
            raise ValueError(expected)
        return text(value)

    return parse


def comma_separated(value: object) -> str:
    return text(",".join(str(item) for item in value) if isinstance(value, list) else value)


def networks(value: object) -> tuple[Network, ...]:
    return parse_networks(comma_separated(value))


def hosts(value: object) -> tuple[str, ...]:
    if value == []:
        return ()
    try:
        # parse_bind validates the host.
        binds = [parse_bind(f"{item.strip()}:0") for item in comma_separated(value).split(",")]
    except ValueError:
        binds = [Bind()]
    if any(not bind.host for bind in binds):
        raise ValueError("expected host names or addresses without a port, separated by commas; IPv6 as [::1]")
    return tuple(bind.host for bind in binds)


def binds(value: object) -> str:
    addresses = comma_separated(value)
    parse_binds(addresses)
    return addresses


def tcp_bind(value: object) -> str:
    if any(bind.path for bind in parse_binds(text(value))):
        raise ValueError("must be host:port")
    return text(value)


def url(*schemes: str, example: str, has_path: bool = True) -> Callable[[object], str]:
    """A URL with a host, but no user, query and fragment. Without ``has_path`` it has no path either."""

    def parse(value: object) -> str:
        if not is_plain_address(text(value), schemes):
            raise ValueError(f"must be an address such as {example}")
        if not has_path and urlsplit(text(value)).path.strip("/"):
            raise ValueError(f"must be an address without a path, such as {example}")
        return text(value).rstrip("/")

    return parse


def secret_url(*schemes: str) -> Callable[[object], SecretText]:
    """A URL that may have a password."""
    expected = " or ".join(filter(None, [", ".join(f"{name}://" for name in schemes[:-1]), f"{schemes[-1]}://"]))

    def parse(value: object) -> SecretText:
        if not has_scheme(text(value), schemes):
            raise ValueError(f"must be a URL that begins with {expected}")
        return secret(value)

    return parse


def smtp_url(value: object) -> SecretText:
    url = secret_url("smtp", "smtp+starttls", "smtps")(value)
    parts = split_url(url.get_secret_value())
    if parts is None or not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(
            "must be a URL such as smtp+starttls://user:password@mail.example.com:587, with special characters as %XX"
        )
    return url


def database_url(value: object) -> SecretText:
    url = secret_url("postgresql", "postgres")(value)
    try:
        database_hosts(url.get_secret_value())
    except ValueError:  # its text may quote a password
        raise ValueError(
            "must be a URL such as postgresql://user:password@host1,host2:5433/name, with special characters as %XX"
        ) from None
    return url


def bus_url(value: object) -> SecretText:
    parse_bus_url(comma_separated(value))
    return secret(comma_separated(value))


def headers(value: object) -> SecretText:
    parse_header_list(text(value))
    return secret(value)


def account(value: object) -> str:
    try:
        uid = pwd.getpwnam(text(value)).pw_uid
    except (KeyError, ValueError):
        raise ValueError("must be the name of an account on this machine") from None
    if uid == 0:
        raise ValueError("must not be root")
    return text(value)


def certificate_file(value: object) -> Path:
    import ssl  # slow to import, and rarely needed

    try:
        ssl.create_default_context(cafile=text(value))
    except (OSError, ValueError):
        raise ValueError("must be a readable PEM file with the certificates of a CA") from None
    return path(value)


def line(limit: int) -> Callable[[object], str]:
    """A text for people, on one line."""

    def parse(value: object) -> str:
        shown = text(value).strip()
        if not 1 <= len(shown) <= limit or not shown.isprintable():
            raise ValueError(f"must have 1-{limit} printable characters")
        return shown

    return parse


def link(value: object) -> str:
    if not is_link(text(value)):
        raise ValueError(EXPECTED_LINK)
    return text(value)


def document_link(value: object) -> str:
    """The address of a document that people read: over TLS, except on this machine."""
    parts = urlsplit(link(value))
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return text(value)
    raise ValueError(EXPECTED_DOCUMENT)


def accent(value: object) -> "Colour":
    from sso.core.brand import parse_accent  # rarely needed

    return parse_accent(text(value))


def logo(value: object) -> "Logo":
    from sso.core.logo import read_logo  # slow to import, and rarely needed

    return read_logo(path(value))


def mail_sender(value: object) -> str:
    from email.message import EmailMessage  # slow to import, and rarely needed

    sender = text(value)
    try:
        message = EmailMessage()
        message["From"] = sender
        (address,) = message["From"].addresses
    except Exception:  # the parser of the library raises errors of many kinds
        raise ValueError(EXPECTED_MAIL_FROM) from None
    if not (address.username and address.domain and sender.isprintable()):
        raise ValueError(EXPECTED_MAIL_FROM)
    return sender
