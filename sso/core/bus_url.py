"""The address of a bus: ``nats://user:password@host:port,host:port``, or ``tls://`` for an encrypted connection."""

import re
from urllib.parse import unquote

from sso.core.hidden_fields import RecordWithHiddenFields

DEFAULT_PORT = 4222
EXPECTED = (
    "must be nats:// or tls://, then user:password@ or token@ if the servers need one, and then host:port,"
    " several separated by commas"
)

_URL = re.compile(r"(nats|tls)://(?:([^@/]*)@)?([^@/]+)/?", re.ASCII)
_SERVER = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?", re.ASCII)


class BusUrl(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"password", "token"})

    servers: tuple[str, ...]  # host:port
    tls: bool
    user: str | None = None
    password: str | None = None
    token: str | None = None


def parse_bus_url(url: str) -> BusUrl:
    """Raises ValueError, whose text does not quote the password."""
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError(EXPECTED)
    scheme, credentials, hosts = match.groups()
    servers = tuple(_server(host.strip()) for host in hosts.split(","))
    if not credentials:
        return BusUrl(servers, scheme == "tls")
    user, colon, password = credentials.partition(":")
    if not user or (colon and not password):
        raise ValueError(EXPECTED)
    if not colon:
        return BusUrl(servers, scheme == "tls", token=unquote(user))
    return BusUrl(servers, scheme == "tls", user=unquote(user), password=unquote(password))


def _server(text: str) -> str:
    match = _SERVER.fullmatch(text)
    port = int(match[2] or DEFAULT_PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise ValueError(EXPECTED)
    return f"{match[1]}:{port}"
