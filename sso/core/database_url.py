"""The hosts in the URL of a database.

The URL has the form of libpq and asyncpg: ``postgresql://user:password@host1,host2:5433/name``, or with the parameters
``host=host1,host2`` and ``port=5432,5433``. A host may be a name, an address (IPv6 in brackets) or the directory of a
Unix socket.
"""

import re
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

DEFAULT_PORT = 5432
_IPV6 = re.compile(r"\[([^\]]+)\](?::(\d+))?")


class DatabaseHost(NamedTuple):
    name: str
    port: int

    def __str__(self) -> str:
        if self.name.startswith("/"):
            return self.name
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port == DEFAULT_PORT else f"{name}:{self.port}"


def database_hosts(url: str) -> tuple[DatabaseHost, ...]:
    """Returns the hosts in the order of the URL, none if it leaves the choice to the driver. Raises ValueError."""
    parts = urlsplit(url)
    query = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
    if authority := parts.netloc.rpartition("@")[2]:  # takes precedence over the parameters, as in the driver
        hosts = [_parse_host(unquote(text)) for text in authority.split(",")]
    else:
        hosts = [_parse_host(text) for text in query.get("host", [""])[-1].split(",") if text]
        ports = _parse_ports(query.get("port", [""])[-1], len(hosts))
        hosts = [(name, given or port) for (name, port), given in zip(hosts, ports, strict=True)]
    return tuple(DatabaseHost(name, port or DEFAULT_PORT) for name, port in hosts)


def _parse_host(text: str) -> tuple[str, int | None]:
    if text.startswith("/"):
        return text, None
    if text.startswith("["):
        match = _IPV6.fullmatch(text)
        name, port = (match[1], match[2]) if match else ("", None)
    else:
        name, _, port = text.partition(":")
    if not name:
        raise ValueError("a host is empty or not valid")
    return name, _parse_port(port) if port else None


def _parse_ports(text: str, count: int) -> list[int | None]:
    """Returns a port for each host: one may be for all of them."""
    ports: list[int | None] = [_parse_port(port) for port in text.split(",") if port]
    if len(ports) not in (0, 1, count):
        raise ValueError("there are more or fewer ports than hosts")
    return ports if len(ports) == count else (ports or [None]) * count


def _parse_port(text: str) -> int:
    port = int(text)
    if not 0 < port < 65536:
        raise ValueError("a port is not valid")
    return port
